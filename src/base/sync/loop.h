/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event loop with timers and posts from other threads. One loop per thread; codecs do not
 * depend on it. All functions except kelp_event_loop_post and kelp_event_loop_stop may only be
 * called on the loop's thread, or on any one thread while it is not running.
 */
#ifndef KELP_BASE_SYNC_LOOP_H_
#define KELP_BASE_SYNC_LOOP_H_

#include "base/sync/queue.h"

#include <kelp/allocator.h>

typedef struct kelp_event_loop kelp_event_loop;

#define KELP_LOOP_READ 1u
#define KELP_LOOP_WRITE 2u
#define KELP_LOOP_HANGUP 4u

typedef struct kelp_event_loop_io kelp_event_loop_io;
/* Callback for events, bits of KELP_LOOP_*. It may remove its own or any other io. */
typedef void (*kelp_event_loop_io_fn)(kelp_event_loop_io *io, uint32_t events);
struct kelp_event_loop_io { /* embedded by its owner */
    int fd;
    uint32_t events; /* as registered */
    kelp_event_loop_io_fn fn;
    void *userp;
};

typedef struct kelp_event_loop_timer kelp_event_loop_timer;
typedef void (*kelp_event_loop_timer_fn)(kelp_event_loop_timer *timer);
struct kelp_event_loop_timer { /* embedded by its owner; zero it before first use */
    uint64_t deadline_ns;
    kelp_event_loop_timer_fn fn;
    void *userp;
    size_t heap_index; /* 0 when not armed */
};

/* A task posted from another thread; tasks run on the loop's thread in order of posting. Embedded
 * by its owner. */
typedef struct kelp_event_loop_task kelp_event_loop_task;
struct kelp_event_loop_task {
    kelp_queue_node node;
    void (*fn)(kelp_event_loop_task *task);
};

/* A task that its own thread runs at the end of the round. Embedded by its owner; zero it before
 * first use. */
typedef struct kelp_event_loop_deferred kelp_event_loop_deferred;
struct kelp_event_loop_deferred {
    void (*fn)(kelp_event_loop_deferred *task);
    kelp_event_loop_deferred *previous;
    kelp_event_loop_deferred *next;
    bool set;
};

kelp_status *kelp_event_loop_create(kelp_allocator allocator, kelp_event_loop **out) KELP_MUST_USE;
void kelp_event_loop_destroy(kelp_event_loop *loop);
/* Runs the loop until kelp_event_loop_stop. */
kelp_status *kelp_event_loop_run(kelp_event_loop *loop) KELP_MUST_USE;
void kelp_event_loop_stop(kelp_event_loop *loop); /* thread-safe and async-signal-safe */

kelp_status *kelp_event_loop_add(kelp_event_loop *loop, kelp_event_loop_io *io,
                                 uint32_t events) KELP_MUST_USE;
kelp_status *kelp_event_loop_modify(kelp_event_loop *loop, kelp_event_loop_io *io,
                                    uint32_t events) KELP_MUST_USE;
void kelp_event_loop_remove(kelp_event_loop *loop,
                            kelp_event_loop_io *io); /* does not close the fd */

/* Passes a file to another io, which receives its events from now on. */
kelp_status *kelp_event_loop_replace(kelp_event_loop *loop, kelp_event_loop_io *old,
                                     kelp_event_loop_io *io, uint32_t events) KELP_MUST_USE;

/* Sets or resets a timer. */
kelp_status *kelp_event_loop_timer_set(kelp_event_loop *loop, kelp_event_loop_timer *timer,
                                       uint64_t deadline_ns) KELP_MUST_USE;
void kelp_event_loop_timer_cancel(kelp_event_loop *loop, kelp_event_loop_timer *timer);
/* Returns true if timers are precise. Before Linux 5.11, they run up to a millisecond late. */
bool kelp_event_loop_is_precise(const kelp_event_loop *loop);

/* Runs a task once after the events, posts and timers of the current round. Never fails. No effect
 * while the task is set. */
void kelp_event_loop_defer(kelp_event_loop *loop, kelp_event_loop_deferred *task);
void kelp_event_loop_defer_cancel(kelp_event_loop *loop, kelp_event_loop_deferred *task);

/* Posts a task. Thread-safe; never fails, never allocates; one eventfd write if the queue was
 * empty. The loop must exist when the call begins; kelp_event_loop_destroy waits for its end. */
void kelp_event_loop_post(kelp_event_loop *loop, kelp_event_loop_task *task);
/* Returns true if the loop has worked for more than an eighth of the last milliseconds, and not
 * waited; until it has worked for less than a sixteenth of them. */
bool kelp_event_loop_is_busy(const kelp_event_loop *loop);
/* Returns the time at which the current round began (cached kelp_now_ns). */
uint64_t kelp_event_loop_now_ns(const kelp_event_loop *loop);

#endif
