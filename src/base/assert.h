/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assertions of invariants: active in debug and sanitizer builds, compiled to nothing when NDEBUG
 * is defined, as it is in release builds. A failed assertion prints the location and aborts. Assert
 * what only a bug in Kelp can violate; check what a caller or a file can violate, and return a
 * status.
 */
#ifndef KELP_BASE_ASSERT_H_
#define KELP_BASE_ASSERT_H_

#include <stdbool.h>

#ifdef NDEBUG
/* The condition is not evaluated, but compiled, so that what it uses counts as used. */
#define KELP_ASSERT(condition) ((void)(false && (condition)))
#define KELP_ASSERT_HELD(mutex) ((void)sizeof(mutex))
#else
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#define KELP_ASSERT(condition) assert(condition)
/* Asserts that some thread holds `mutex` (a pthread_mutex_t *): POSIX cannot tell which one. */
#define KELP_ASSERT_HELD(mutex) assert(pthread_mutex_trylock(mutex) == EBUSY)
#endif

#endif
