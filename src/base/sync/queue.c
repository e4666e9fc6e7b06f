/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements the queue. Producers push onto a stack at `tail`; the consumer takes the whole stack
 * in one swap, reverses it into `head` and returns items in the order they were pushed. No
 * producer is ever half-way, and no wake-up is lost. `tail` is NULL if the queue is empty, &stub
 * if the consumer still holds items of its last swap, else the newest item. A push therefore sees
 * from the value it replaces whether the queue was empty.
 */
#include "base/sync/queue.h"

#include "base/assert.h"

void kelp_queue_init(kelp_queue *queue) {
    atomic_init(&queue->tail, NULL);
    atomic_init(&queue->stub.next, NULL);
    queue->head = NULL;
}

bool kelp_queue_push(kelp_queue *queue, kelp_queue_node *node) {
    KELP_ASSERT(node != &queue->stub);
    kelp_queue_node *old = atomic_load_explicit(&queue->tail, memory_order_relaxed);
    do {
        atomic_store_explicit(&node->next, old, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&queue->tail, &old, node, memory_order_release,
                                                    memory_order_relaxed));
    return old == NULL;
}

/* Reverses the list from the newest to the oldest item, which ends at NULL or at the stub. */
static kelp_queue_node *reverse(kelp_queue_node *newest, const kelp_queue_node *stub) {
    kelp_queue_node *oldest = NULL;
    while (newest != NULL && newest != stub) {
        kelp_queue_node *next = atomic_load_explicit(&newest->next, memory_order_relaxed);
        atomic_store_explicit(&newest->next, oldest, memory_order_relaxed);
        oldest = newest;
        newest = next;
    }
    return oldest;
}

kelp_queue_node *kelp_queue_pop(kelp_queue *queue) {
    if (queue->head == NULL) {
        if (!atomic_load_explicit(&queue->tail, memory_order_relaxed))
            return NULL;
        kelp_queue_node *newest =
            atomic_exchange_explicit(&queue->tail, &queue->stub, memory_order_acquire);
        queue->head = reverse(newest, &queue->stub);
    }
    KELP_ASSERT(queue->head != NULL); /* a swap returned at least one item */
    kelp_queue_node *node = queue->head;
    queue->head = atomic_load_explicit(&node->next, memory_order_relaxed);
    if (queue->head == NULL) {
        /* the last item of the swap: unless something was pushed since, the queue is empty now */
        kelp_queue_node *expected = &queue->stub;
        (void)atomic_compare_exchange_strong_explicit(&queue->tail, &expected, NULL,
                                                      memory_order_relaxed, memory_order_relaxed);
    }
    return node;
}
