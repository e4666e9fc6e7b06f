/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of responses (`preserve_ordering`): the responses of a submission are passed to their
 * callback after all responses of the submissions before it. Each submission has a slot, from
 * before it is queued (`dynamic_batching`) or executed (`oldest`: a sequence may wait for the end
 * of another one) until its final response was passed on. Responses that come too early are held in
 * the slot.
 *
 * Callbacks are called without a lock, by one thread at a time. Thread-safe.
 */
#ifndef KELP_SERVER_REQUEST_RESPONSE_ORDER_H_
#define KELP_SERVER_REQUEST_RESPONSE_ORDER_H_

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct kelp_factory kelp_factory;
typedef struct kelp_response kelp_response;

/* The slots of a model. */
typedef struct kelp_response_order {
    bool enabled; /* for all submissions; immutable while the model serves */
    pthread_mutex_t lock;
    kelp_factory *head, *tail;
    bool delivering; /* a thread passes responses on */
} kelp_response_order;

/* The slot of a submission; a member of kelp_factory. Protected by the order's lock. */
typedef struct kelp_response_slot {
    kelp_response_order *order; /* NULL: the model does not order responses */
    kelp_factory *previous, *next;
    kelp_response *held, *held_tail; /* linked by `next` */
    bool has_flags;                  /* flags without a response follow */
    uint32_t flags;
    bool over;       /* FINAL was passed on */
    bool is_retired; /* kelp_response_order_retire returned true */
    bool to_retire;  /* it was called before the slot was over */
} kelp_response_slot;

void kelp_response_order_init(kelp_response_order *order);
void kelp_response_order_deinit(kelp_response_order *order);

/* Appends a slot for a submission. */
void kelp_response_order_join(kelp_response_order *order, kelp_factory *factory);
/* Removes the slot of a submission that the model did not accept. */
void kelp_response_order_leave(kelp_factory *factory);
/* Passes on a response, or NULL for flags alone; or holds it until its turn. Closes the factory
 * once for a response that was passed on. */
void kelp_response_order_send(kelp_factory *factory, kelp_response *response, uint32_t flags);
/* Called when no more responses follow. Returns true, once, if the caller ends the submission
 * (kelp_factory_retire); otherwise the thread that passes on FINAL does. */
bool kelp_response_order_retire(kelp_factory *factory);

#endif
