/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random events against the policy of sequence batching and a small model of its rules: arrivals,
 * executions, cancellations, timeouts and pauses. The model predicts which requests are accepted,
 * which sequence has a slot, which request is next, and which requests are rejected.
 */
#include "sequence_world.h"
#include "base/checked.h"
#include "server/scheduler/queue.h"

#include <stdio.h>
#include <stdlib.h>

enum { IDS = 12, REQUESTS = 400, IDLE_NS = 50000, NONE = -1 };

/* What became of a request. */
typedef enum fate { UNUSED, QUEUED, EXECUTES, DOOMED, DONE } fate;

/* A sequence of the model. */
typedef struct expectation {
    bool exists, open, has_slot, ending;
    int queue[REQUESTS];
    int count;
    int executing; /* a request, or NONE */
    uint32_t slot; /* that the policy reported; UINT32_MAX before */
    uint64_t idle_ns;
} expectation;

typedef struct simulation {
    sequence_world w;
    expectation sequences[IDS];
    int backlog[IDS]; /* in order */
    int waiting, used, slots;
    bool iterative;
    sequence_request requests[REQUESTS];
    fate fates[REQUESTS];
    int executions[REQUESTS];
    int count; /* of requests */
    uint32_t state;
} simulation;

static uint32_t draw(simulation *s, uint32_t limit) {
    s->state = s->state * 1664525u + 1013904223u;
    return (s->state >> 8) % limit;
}

static int index_of(const simulation *s, const kelp_request *request) {
    return (int)((const sequence_request *)(const void *)request - s->requests);
}

static int id_of(const simulation *s, int request) {
    return (int)s->requests[request].request.correlation_id - 1;
}

static bool has_flag(const simulation *s, int request, uint32_t flag) {
    return (s->requests[request].request.flags & flag) != 0;
}

/* ---- the model ---- */

static void fill_slots(simulation *s) {
    while (s->waiting > 0 && s->used < s->slots) {
        expectation *e = &s->sequences[s->backlog[0]];
        memmove(s->backlog, s->backlog + 1, (size_t)--s->waiting * sizeof *s->backlog);
        e->has_slot = true;
        e->slot = UINT32_MAX;
        e->idle_ns = s->w.now_ns;
        s->used++;
    }
}

static void lose_slot(simulation *s, expectation *e) {
    s->used -= e->has_slot;
    e->has_slot = false;
}

static void forget(simulation *s, int id) {
    expectation *e = &s->sequences[id];
    for (int i = 0; i < s->waiting; i++)
        if (s->backlog[i] == id) {
            memmove(s->backlog + i, s->backlog + i + 1,
                    (size_t)(s->waiting - i - 1) * sizeof *s->backlog);
            s->waiting--;
            break;
        }
    lose_slot(s, e);
    e->exists = e->open = e->ending = false;
}

static void arrive(simulation *s, int request) {
    int id = id_of(s, request);
    expectation *e = &s->sequences[id];
    if (!e->exists) {
        *e = (expectation){.exists = true, .executing = NONE, .slot = UINT32_MAX};
        s->backlog[s->waiting++] = id;
    }
    e->queue[e->count++] = request;
    e->open = !has_flag(s, request, END);
    s->fates[request] = QUEUED;
    fill_slots(s);
}

/* Rejects the queued requests [from, to) of a sequence. */
static void doom(simulation *s, expectation *e, int from, int to) {
    for (int i = from; i < to; i++)
        s->fates[e->queue[i]] = DOOMED;
    if (to == e->count)
        e->open = false;
    memmove(e->queue + from, e->queue + to, (size_t)(e->count - to) * sizeof *e->queue);
    e->count -= to - from;
}

static int end_of_run(const simulation *s, const expectation *e, int from) {
    int to = from + 1;
    while (to < e->count && !has_flag(s, e->queue[to], START))
        to++;
    return to;
}

/* A run ended: the sequence goes behind the backlog if another run follows. */
static void finish_run(simulation *s, int id) {
    expectation *e = &s->sequences[id];
    e->ending = false;
    if (e->count == 0) {
        forget(s, id);
    } else if (s->waiting > 0) {
        lose_slot(s, e);
        s->backlog[s->waiting++] = id;
    }
    fill_slots(s);
}

static void cancel(simulation *s, int request) {
    int id = id_of(s, request), at = 0;
    expectation *e = &s->sequences[id];
    while (e->queue[at] != request)
        at++;
    int from = at;
    while (from > 0 && !has_flag(s, e->queue[from], START))
        from--;
    bool current = from == 0 && !has_flag(s, e->queue[0], START);
    doom(s, e, from, end_of_run(s, e, from));
    if (current)
        e->ending = true;
    if (e->executing == NONE && e->count == 0)
        forget(s, id);
    fill_slots(s);
}

static void expire_idle(simulation *s) {
    for (int id = 0; id < IDS; id++) {
        expectation *e = &s->sequences[id];
        if (e->exists && e->has_slot && e->count == 0 && e->executing == NONE &&
            e->idle_ns + IDLE_NS <= s->w.now_ns)
            forget(s, id);
    }
    fill_slots(s);
}

/* ---- events ---- */

/* Receives requests that the policy rejects. */
static void reject_one(simulation *s, kelp_request *request) {
    int index = index_of(s, request);
    assert_int_equal(s->fates[index], DOOMED);
    assert_null(request->place);
    kelp_request_leave_sequence(request);
    s->fates[index] = DONE;
}

static void expire(simulation *s) {
    kelp_request *next;
    for (kelp_request *r = s->w.policy->ops->expire(s->w.policy, s->w.now_ns); r; r = next) {
        next = r->next;
        reject_one(s, r);
    }
    expire_idle(s);
}

static void submit(simulation *s) {
    static const uint32_t flags[] = {START, START, START | END, 0, 0, 0, 0, END, END};
    if (s->count == REQUESTS)
        return;
    int index = s->count++, id = (int)draw(s, IDS);
    sequence_request *r = &s->requests[index];
    sequence_request_init(&s->w, r, (uint64_t)id + 1, flags[draw(s, KELP_COUNT(flags))]);
    const expectation *e = &s->sequences[id];
    bool expected = has_flag(s, index, START) || (e->exists && e->open);
    kelp_status *status = sequence_submit(&s->w, r);
    if ((status == NULL) != expected)
        fail_msg("request %d of %d: %s", index, id + 1,
                 status != NULL ? kelp_status_message(status) : "accepted");
    if (status == NULL) {
        arrive(s, index);
    } else {
        kelp_status_free(status);
        kelp_request_leave_sequence(&r->request);
        s->fates[index] = DONE;
    }
}

static void execute_one(simulation *s, kelp_request *request, uint32_t instance) {
    int index = index_of(s, request), id = id_of(s, index);
    expectation *e = &s->sequences[id];
    assert_int_equal(s->fates[index], QUEUED);
    assert_true(e->exists && e->has_slot);
    assert_int_equal(e->executing, NONE);
    assert_int_equal(e->queue[0], index); /* in order */
    assert_int_equal(request->slot / s->w.config->sequence->slots, instance);
    if (e->slot == UINT32_MAX)
        e->slot = request->slot;
    assert_int_equal(e->slot, request->slot); /* until the sequence ends */
    for (int other = 0; other < IDS; other++)
        if (other != id && s->sequences[other].exists && s->sequences[other].has_slot)
            assert_int_not_equal(s->sequences[other].slot, e->slot);
    memmove(e->queue, e->queue + 1, (size_t)--e->count * sizeof *e->queue);
    e->executing = index;
    e->ending = has_flag(s, index, END);
    s->fates[index] = EXECUTES;
    s->executions[index]++;
}

static void take(simulation *s) {
    kelp_request *taken[KELP_MAX_EXECUTION_REQUESTS];
    uint32_t instance = draw(s, kelp_sequence_instances(s->w.config));
    uint32_t count = sequence_take(&s->w, instance, taken);
    assert_true(count <= (uint32_t)s->w.config->max_batch_size);
    for (uint32_t i = 0; i < count; i++)
        execute_one(s, taken[i], instance);
}

static void release(simulation *s) {
    int executing[REQUESTS], count = 0;
    for (int i = 0; i < s->count; i++)
        if (s->fates[i] == EXECUTES)
            executing[count++] = i;
    if (count == 0)
        return;
    int index = executing[draw(s, (uint32_t)count)], id = id_of(s, index);
    expectation *e = &s->sequences[id];
    sequence_release(&s->w, &s->requests[index].request);
    s->fates[index] = DONE;
    e->executing = NONE;
    e->idle_ns = s->w.now_ns;
    bool over = e->ending;
    if (!over && atomic_load(&s->requests[index].factory.cancelled)) {
        over = true;
        if (e->count > 0 && !has_flag(s, e->queue[0], START))
            doom(s, e, 0, end_of_run(s, e, 0));
    }
    if (over || (e->count == 0 && !e->open))
        finish_run(s, id);
    expire(s); /* returns what the release rejected */
}

static void cancel_some(simulation *s) {
    int index = s->count > 0 ? (int)draw(s, (uint32_t)s->count) : 0;
    if (s->fates[index] != QUEUED && s->fates[index] != EXECUTES)
        return;
    atomic_store(&s->requests[index].factory.cancelled, true);
    if (s->fates[index] == QUEUED)
        cancel(s, index);
    expire(s);
}

static void step(simulation *s) {
    uint32_t event = draw(s, 100);
    if (event < 35) {
        submit(s);
    } else if (event < 65) {
        take(s);
    } else if (event < 92) {
        release(s);
    } else if (event < 95) {
        cancel_some(s);
    } else {
        s->w.now_ns += draw(s, 30000);
        expire(s);
    }
}

/* Executes everything, and lets the open sequences end by the idle timeout. */
static void drain(simulation *s) {
    for (int round = 0; round < 20 * REQUESTS && s->w.policy->ops->size(s->w.policy) > 0; round++) {
        s->w.now_ns += 1000; /* longer than the queue delays */
        take(s);
        release(s);
        if (round % 50 == 49) { /* sequences of the backlog wait for those that never end */
            s->w.now_ns += 2 * IDLE_NS;
            expire(s);
        }
    }
    for (int i = 0; i < REQUESTS; i++)
        release(s);
    s->w.now_ns += 2 * IDLE_NS;
    expire(s);
    assert_int_equal(s->w.policy->ops->live(s->w.policy), 0);
    for (int i = 0; i < s->count; i++) {
        assert_int_equal(s->fates[i], DONE);
        assert_true(s->executions[i] <= 1);
    }
}

static void simulate(const char *text, uint32_t seed) {
    simulation *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->state = seed;
    sequence_world_open(&s->w, text);
    s->slots = (int)(kelp_sequence_instances(s->w.config) * s->w.config->sequence->slots);
    for (int i = 0; i < 3000; i++)
        step(s);
    drain(s);
    for (int i = 0; i < s->count; i++)
        sequence_request_deinit(&s->requests[i]);
    sequence_world_close(&s->w);
    free(s);
}

static void policies_agree_with_the_model(void **state) {
    static const char *const rows[] = {
        "direct { }",
        "direct { max_queue_delay_microseconds: 1 minimum_slot_utilization: 0.7 }",
        "oldest { max_candidate_sequences: 2 }",
        ("oldest { max_candidate_sequences: 5 preferred_batch_size: [ 2 ] "
         "max_queue_delay_microseconds: 1 }"),
    };
    (void)state;
    for (uint32_t seed = 1; seed <= 200; seed++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "backend: \"x\" max_batch_size: %u input { name: \"IN\" data_type: TYPE_FP32 "
                 "dims: 1 } output { name: \"OUT\" data_type: TYPE_FP32 dims: 1 } instance_group { "
                 "count: %u } sequence_batching { max_sequence_idle_microseconds: 50 %s }",
                 2 + seed % 3, 1 + seed / 3 % 3, rows[seed % KELP_COUNT(rows)]);
        simulate(text, seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(policies_agree_with_the_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
