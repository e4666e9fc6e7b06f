/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The models of which a thread executes batches when their queue delay ends, such as an event loop.
 * The thread that queues the first request of a batch promises to do so, so that no other thread
 * must wake up. Used by this thread only.
 */
#ifndef KELP_SERVER_REQUEST_DUE_H_
#define KELP_SERVER_REQUEST_DUE_H_

#include "server/request/model_base.h"

/* A model with queued requests. */
typedef struct kelp_due_entry {
    kelp_model_base *model; /* a reference */
    uint64_t time_ns;
} kelp_due_entry;

/* The models of a thread. Zero-initialized except for the allocator, it is empty. */
typedef struct kelp_due {
    kelp_allocator allocator;
    kelp_due_entry *entries;
    size_t count, capacity;
} kelp_due;

/* Frees the memory. Other threads execute the batches a little later. */
void kelp_due_deinit(kelp_due *due);
/* Ensures that the next kelp_due_add has memory. RESOURCE_EXHAUSTED without memory. */
kelp_status *kelp_due_reserve(kelp_due *due) KELP_MUST_USE;
/* Adds a model, or an earlier time of a model. Takes no locks; kelp_due_reserve was called. */
void kelp_due_add(kelp_due *due, kelp_model_base *model, uint64_t time_ns);
/* Returns the time of the first model; KELP_NEVER_NS if there is none. */
uint64_t kelp_due_time_ns(const kelp_due *due);
/* Executes the batches that are due on the calling thread. */
void kelp_due_execute(kelp_due *due, uint64_t now_ns);

#endif
