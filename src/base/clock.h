/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic and wall time in nanoseconds. */
#ifndef KELP_BASE_CLOCK_H_
#define KELP_BASE_CLOCK_H_

#include <stdint.h>

/* The time that never comes. */
#define KELP_NEVER_NS UINT64_MAX

/* A clock that tests replace; the default is kelp_now_ns. Thread-safe. */
typedef uint64_t (*kelp_clock_fn)(void);

uint64_t kelp_now_ns(void);      /* CLOCK_MONOTONIC */
uint64_t kelp_wall_now_ns(void); /* CLOCK_REALTIME, since 1970 */
/* Returns the wall time with a resolution of a few milliseconds, at a fraction of the cost. */
uint64_t kelp_wall_about_ns(void);

#endif
