/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An intrusive queue with many producers and one consumer, lock-free to push; pop blocks on a futex
 * or polls. Put kelp_queue_node first in the item.
 */
#ifndef KELP_BASE_QUEUE_H_
#define KELP_BASE_QUEUE_H_

#include <kelp/status.h>

#ifndef __cplusplus
#include <stdatomic.h>
#endif

typedef struct kelp_queue_node {
    struct kelp_queue_node *_Atomic next;
} kelp_queue_node;

typedef struct kelp_queue {
    kelp_queue_node *_Atomic tail; /* producers swap here */
    kelp_queue_node *head;         /* consumer's */
    kelp_queue_node stub;
} kelp_queue;

void kelp_queue_init(kelp_queue *queue);
/* Returns true when the queue was empty before, so that the producer wakes the consumer. Any
 * thread. */
bool kelp_queue_push(kelp_queue *queue, kelp_queue_node *node);
/* NULL when empty, or when a producer is half-way (it will wake the consumer). Consumer's thread
 * only. */
kelp_queue_node *kelp_queue_pop(kelp_queue *queue);

#endif
