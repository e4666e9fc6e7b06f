/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for work that blocks, such as loading a model. Threads start when there is work, up to a
 * limit, and end when there is none; further work waits, first in, first out. */
#ifndef KELP_FRONTENDS_COMMON_WORKERS_H_
#define KELP_FRONTENDS_COMMON_WORKERS_H_

#include <kelp/allocator.h>

typedef struct kelp_workers kelp_workers;

/* A piece of work, usually a member of another object. */
typedef struct kelp_work {
    struct kelp_work *next;
    void (*run)(struct kelp_work *work); /* may free the object */
} kelp_work;

/* Creates workers without starting a thread. `max_threads` is at least 1. */
kelp_status *kelp_workers_create(kelp_allocator allocator, unsigned max_threads,
                                 kelp_workers **out) KELP_MUST_USE;
/* Waits until there is no work. */
void kelp_workers_wait(kelp_workers *workers);
/* Waits for all work, and frees the workers. NULL is allowed. */
void kelp_workers_destroy(kelp_workers *workers);
/* Runs the work on a thread, later. `run` is set. Fails, without running it, if no thread can be
 * started. Thread-safe. */
kelp_status *kelp_workers_submit(kelp_workers *workers, kelp_work *work) KELP_MUST_USE;

#endif
