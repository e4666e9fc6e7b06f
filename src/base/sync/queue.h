/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An intrusive queue with many producers and one consumer; pushing is lock-free. Put
 * kelp_queue_node first in the item.
 */
#ifndef KELP_BASE_SYNC_QUEUE_H_
#define KELP_BASE_SYNC_QUEUE_H_

#include <kelp/status.h>

#ifndef __cplusplus
#include <stdatomic.h>
#endif

typedef struct kelp_queue_node {
    struct kelp_queue_node *_Atomic next;
} kelp_queue_node;

typedef struct kelp_queue {
    kelp_queue_node *_Atomic tail; /* swapped by producers */
    kelp_queue_node *head;         /* owned by the consumer */
    kelp_queue_node stub;
} kelp_queue;

void kelp_queue_init(kelp_queue *queue);
/* Pushes an item. Returns true if the queue was empty, so that the producer must wake up the
 * consumer. Thread-safe. */
bool kelp_queue_push(kelp_queue *queue, kelp_queue_node *node);
/* Pops an item. Returns NULL if the queue is empty. Called by the consumer's thread only. */
kelp_queue_node *kelp_queue_pop(kelp_queue *queue);

#endif
