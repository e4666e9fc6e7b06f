/* SPDX-License-Identifier: Apache-2.0 */
/* The queue: order, exact reports of emptiness, and no wake-up lost between several producers and a
 * consumer. */
#include "base/sync/queue.h"

#include "base/checked.h"
#include "base/sync/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <semaphore.h>

typedef struct item {
    kelp_queue_node node;
    int producer;
    int number;
} item;

static void order_and_emptiness(void **state) {
    (void)state;
    kelp_queue queue;
    item items[4] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    kelp_queue_init(&queue);
    assert_null(kelp_queue_pop(&queue));
    assert_true(kelp_queue_push(&queue, &items[0].node));
    assert_false(kelp_queue_push(&queue, &items[1].node));
    assert_ptr_equal(kelp_queue_pop(&queue), &items[0]);
    assert_false(kelp_queue_push(&queue, &items[2].node)); /* 1 is still in it */
    assert_ptr_equal(kelp_queue_pop(&queue), &items[1]);
    assert_false(kelp_queue_push(&queue, &items[3].node)); /* 2 is */
    assert_ptr_equal(kelp_queue_pop(&queue), &items[2]);
    assert_ptr_equal(kelp_queue_pop(&queue), &items[3]);
    assert_true(kelp_queue_push(&queue, &items[0].node)); /* emptied, though pop never said so */
    assert_ptr_equal(kelp_queue_pop(&queue), &items[0]);
    assert_null(kelp_queue_pop(&queue));
    assert_null(kelp_queue_pop(&queue));
}

#define PRODUCERS 4
#define EACH 20000

typedef struct shared {
    kelp_queue queue;
    sem_t wake;
} shared;

typedef struct producer {
    shared *to;
    item *items;
} producer;

static void *produce(void *userp) {
    producer *self = userp;
    for (int i = 0; i < EACH; i++) {
        if (kelp_queue_push(&self->to->queue, &self->items[i].node))
            sem_post(&self->to->wake);
    }
    return NULL;
}

static item all_items[PRODUCERS][EACH];

/* The consumer sleeps whenever it finds nothing: one lost wake-up and this test never ends. */
static void no_item_is_lost(void **state) {
    (void)state;
    shared to;
    producer producers[PRODUCERS];
    pthread_t threads[PRODUCERS];
    int next[PRODUCERS] = {0};
    kelp_queue_init(&to.queue);
    sem_init(&to.wake, 0, 0);
    for (int p = 0; p < PRODUCERS; p++) {
        for (int i = 0; i < EACH; i++) {
            all_items[p][i].producer = p;
            all_items[p][i].number = i;
        }
        producers[p] = (producer){&to, all_items[p]};
        assert_null(kelp_thread_start(&threads[p], "producer", produce, &producers[p]));
    }
    for (int got = 0; got < PRODUCERS * EACH;) {
        const item *found = (const item *)kelp_queue_pop(&to.queue);
        if (!found) {
            sem_wait(&to.wake);
            continue;
        }
        assert_int_equal(found->number, next[found->producer]);
        next[found->producer]++;
        got++;
    }
    assert_null(kelp_queue_pop(&to.queue));
    for (int p = 0; p < PRODUCERS; p++)
        pthread_join(threads[p], NULL);
    sem_destroy(&to.wake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_and_emptiness),
        cmocka_unit_test(no_item_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
