/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers: callbacks at times of the monotonic clock. All timers of a service share one thread,
 * which starts when a timer is first set. Setting a timer does not allocate.
 *
 * Thread-safe, except for kelp_timers_destroy.
 */
#ifndef KELP_BASE_SYNC_TIMER_H_
#define KELP_BASE_SYNC_TIMER_H_

#include "base/clock.h"

#include <kelp/allocator.h>

typedef struct kelp_timers kelp_timers;
typedef struct kelp_timer kelp_timer;

/* Called on the service's thread, without a lock. The timer is not set during the call; the
 * callback may set it again. Must return quickly, because other timers wait for it. */
typedef void (*kelp_timer_fn)(void *userp);

/* A timer. */
struct kelp_timer {
    kelp_timers *service;
    kelp_timer_fn fn;
    void *userp;
    uint64_t time_ns; /* KELP_NEVER_NS: not set */
    size_t position;  /* in the heap, if it is set */
};

/* Creates a service. */
kelp_status *kelp_timers_create(kelp_allocator allocator, kelp_timers **out) KELP_MUST_USE;
/* Stops the thread and frees the service. All timers were removed. Not called from a callback. NULL
 * is ignored. */
void kelp_timers_destroy(kelp_timers *service);

/* Adds a timer, which is not set. The timer must stay in memory until it is removed. */
kelp_status *kelp_timer_add(kelp_timers *service, kelp_timer *timer, kelp_timer_fn fn,
                            void *userp) KELP_MUST_USE;
/* Removes a timer, and waits until its callback has returned. Not called from a callback. */
void kelp_timer_remove(kelp_timer *timer);
/* Sets the timer to a time, which replaces its earlier one; KELP_NEVER_NS unsets it.
 * RESOURCE_EXHAUSTED if the thread cannot be started; the timer then is set, and runs once a later
 * call has started the thread. */
kelp_status *kelp_timer_set(kelp_timer *timer, uint64_t time_ns) KELP_MUST_USE;

#endif
