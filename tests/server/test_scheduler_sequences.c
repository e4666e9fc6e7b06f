/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of sequence batching, with a clock that the tests set. */
#include "sequence_world.h"
#include "server/scheduler/queue.h"

#include <stdlib.h>

#define MODEL(batch, instances, batching)                    \
    "backend: \"x\" max_batch_size: " #batch                 \
    " input { name: \"IN\" data_type: TYPE_FP32 dims: 1 }"   \
    " output { name: \"OUT\" data_type: TYPE_FP32 dims: 1 }" \
    " instance_group { count: " #instances " } sequence_batching { " batching " }"

static kelp_request *taken[KELP_MAX_EXECUTION_REQUESTS];

static void accepts(sequence_world *w, sequence_request *r, uint64_t id, uint32_t flags) {
    sequence_request_init(w, r, id, flags);
    kelp_status *status = sequence_submit(w, r);
    if (status != NULL)
        fail_msg("%s", kelp_status_message(status));
}

static void rejects(sequence_world *w, sequence_request *r, kelp_code code, const char *part) {
    kelp_status *status = sequence_submit(w, r);
    assert_int_equal(kelp_status_code(status), code);
    if (strstr(kelp_status_message(status), part) == NULL)
        fail_msg("expected '%s' in: %s", part, kelp_status_message(status));
    kelp_status_free(status);
    sequence_request_deinit(r);
}

/* Asserts the reason for which a returned request is rejected. */
static void is_rejected(kelp_request *request, kelp_code code, const char *part) {
    kelp_status *status = kelp_request_queue_check(request, 0);
    assert_int_equal(kelp_status_code(status), code);
    assert_non_null(strstr(kelp_status_message(status), part));
    kelp_status_free(status);
}

static void close_all(sequence_world *w, sequence_request *requests, size_t count) {
    for (size_t i = 0; i < count; i++)
        sequence_request_deinit(&requests[i]);
    sequence_world_close(w);
}

static void requests_must_be_valid(void **state) {
    sequence_world w;
    sequence_request r[4];
    (void)state;
    sequence_world_open(&w, MODEL(4, 1, "direct { }"));
    sequence_request_init(&w, &r[0], 0, START);
    rejects(&w, &r[0], KELP_INVALID_ARGUMENT,
            "inference request to model 'm' must specify a non-zero or non-empty correlation ID");
    sequence_request_init(&w, &r[0], 0, START);
    r[0].request.correlation_is_string = true;
    rejects(&w, &r[0], KELP_INVALID_ARGUMENT, "non-empty correlation ID");
    sequence_request_init(&w, &r[0], 7, 0);
    rejects(&w, &r[0], KELP_INVALID_ARGUMENT,
            "inference request for sequence 7 to model 'm' must specify the START flag on the "
            "first request of the sequence");
    sequence_request_init(&w, &r[0], 7, START);
    r[0].request.batch_size = 2;
    rejects(&w, &r[0], KELP_INVALID_ARGUMENT,
            "must specify batch-size 1 due to requirements of sequence batcher");
    accepts(&w, &r[0], 7, START | END);
    sequence_request_init(&w, &r[1], 7, 0); /* after END */
    rejects(&w, &r[1], KELP_INVALID_ARGUMENT, "must specify the START flag");
    assert_int_equal(sequence_take(&w, 0, taken), 1);
    sequence_release(&w, taken[0]);
    assert_int_equal(w.policy->ops->live(w.policy), 0);
    close_all(&w, r, 1);
}

static void direct_batches_the_slots(void **state) {
    sequence_world w;
    sequence_request r[6];
    (void)state;
    sequence_world_open(&w, MODEL(4, 1, "direct { }"));
    accepts(&w, &r[0], 1, START);
    accepts(&w, &r[1], 2, START);
    accepts(&w, &r[2], 3, START);
    accepts(&w, &r[3], 1, END);
    assert_int_equal(sequence_take(&w, 0, taken), 3); /* one for each sequence */
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(taken[i]->slot, i);
        assert_int_equal(taken[i]->span, 3);
        assert_int_equal(taken[i]->correlation_id, i + 1);
    }
    assert_int_equal(sequence_take(&w, 0, taken + 3),
                     0); /* the next one of 1 waits for the first */
    sequence_release(&w, taken[0]);
    assert_int_equal(sequence_take(&w, 0, taken), 1);
    assert_ptr_equal(taken[0], &r[3].request);
    assert_int_equal(taken[0]->span, 1);
    sequence_release(&w, taken[0]);
    accepts(&w, &r[4], 4, START | END); /* in the slot that became free */
    assert_int_equal(sequence_take(&w, 0, taken), 1);
    assert_int_equal(taken[0]->slot, 0);
    sequence_release(&w, taken[0]);
    sequence_release(&w, &r[1].request);
    sequence_release(&w, &r[2].request);
    close_all(&w, r, 5);
}

static void sequences_spread_over_instances_and_the_backlog(void **state) {
    sequence_world w;
    sequence_request r[6];
    (void)state;
    sequence_world_open(&w, MODEL(2, 2, "direct { }"));
    for (uint32_t i = 0; i < 5; i++)
        accepts(&w, &r[i], i + 1, START | END);
    assert_int_equal(sequence_take(&w, 0, taken), 2);
    assert_int_equal(taken[0]->correlation_id, 1);
    assert_int_equal(taken[1]->correlation_id, 3);
    assert_int_equal(sequence_take(&w, 1, taken + 2), 2);
    assert_int_equal(taken[2]->correlation_id, 2);
    assert_int_equal(taken[3]->correlation_id, 4);
    sequence_release(&w, taken[3]);
    assert_int_equal(sequence_take(&w, 0, taken + 4), 0);
    assert_int_equal(sequence_take(&w, 1, taken + 3), 1);
    assert_int_equal(taken[3]->correlation_id, 5);
    assert_int_equal(taken[3]->slot, 3);
    for (uint32_t i = 0; i < 4; i++)
        sequence_release(&w, taken[i]);
    close_all(&w, r, 5);
}

static void idle_sequences_end(void **state) {
    sequence_world w;
    sequence_request r[3];
    (void)state;
    sequence_world_open(&w, MODEL(1, 1, "max_sequence_idle_microseconds: 1000"));
    accepts(&w, &r[0], 1, START);
    accepts(&w, &r[1], 2, START | END);
    assert_int_equal(sequence_take(&w, 0, taken), 1);
    w.now_ns += 5000000; /* it executes, and is not idle */
    assert_null(w.policy->ops->expire(w.policy, w.now_ns));
    sequence_release(&w, taken[0]);
    assert_int_equal(w.policy->ops->expires_at_ns(w.policy), w.now_ns + 1000000);
    assert_int_equal(sequence_take(&w, 0, taken), 0);
    w.now_ns += 1000000;
    assert_null(w.policy->ops->expire(w.policy, w.now_ns));
    assert_int_equal(sequence_take(&w, 0, taken), 1);
    assert_int_equal(taken[0]->correlation_id, 2);
    sequence_release(&w, taken[0]);
    sequence_request_init(&w, &r[2], 1, 0);
    rejects(&w, &r[2], KELP_INVALID_ARGUMENT, "must specify the START flag");
    close_all(&w, r, 2);
}

static void start_replaces_a_live_sequence(void **state) {
    sequence_world w;
    sequence_request r[3];
    (void)state;
    sequence_world_open(&w, MODEL(2, 1, "direct { }"));
    accepts(&w, &r[0], 1, START);
    accepts(&w, &r[1], 1, START | END);
    assert_false(r[0].request.replaces_run);
    assert_true(r[1].request.replaces_run);
    assert_int_equal(sequence_take(&w, 0, taken), 1);
    sequence_release(&w, taken[0]);
    assert_int_equal(sequence_take(&w, 0, taken), 1);
    assert_int_equal(taken[0]->slot, 0);
    sequence_release(&w, taken[0]);
    assert_int_equal(w.policy->ops->live(w.policy), 0);
    close_all(&w, r, 2);
}

static void timeout_rejects_a_sequence_of_the_backlog(void **state) {
    sequence_world w;
    sequence_request r[4];
    (void)state;
    sequence_world_open(&w, MODEL(1, 1, "direct { }"));
    accepts(&w, &r[0], 1, START);
    sequence_request_init(&w, &r[1], 2, START);
    r[1].request.timeout_us = 50;
    assert_null(sequence_submit(&w, &r[1]));
    accepts(&w, &r[2], 2, END);
    assert_int_equal(w.policy->ops->expires_at_ns(w.policy), w.now_ns + 50000);
    w.now_ns += 50000;
    kelp_request *rejected = w.policy->ops->expire(w.policy, w.now_ns);
    assert_ptr_equal(rejected, &r[1].request);
    assert_ptr_equal(rejected->next, &r[2].request);
    assert_null(rejected->next->next);
    is_rejected(rejected, KELP_UNAVAILABLE,
                "timeout of the corresponding sequence has been expired");
    is_rejected(rejected->next, KELP_UNAVAILABLE,
                "timeout of the corresponding sequence has been expired");
    assert_int_equal(sequence_take(&w, 0, taken), 1);
    sequence_release(&w, taken[0]);
    assert_int_equal(w.policy->ops->live(w.policy), 1);
    close_all(&w, r, 3);
}

static void cancellation_ends_a_sequence(void **state) {
    sequence_world w;
    sequence_request r[5];
    (void)state;
    sequence_world_open(&w, MODEL(1, 1, "direct { }"));
    accepts(&w, &r[0], 1, START);
    accepts(&w, &r[1], 1, 0);
    accepts(&w, &r[2], 1, 0);
    accepts(&w, &r[3], 1, START | END); /* another sequence */
    assert_int_equal(sequence_take(&w, 0, taken), 1);
    atomic_store(&r[2].factory.cancelled, true);
    sequence_release(&w, taken[0]);
    assert_int_equal(sequence_take(&w, 0, taken), 1); /* cancellation is seen when it is next */
    assert_ptr_equal(taken[0], &r[1].request);
    sequence_release(&w, taken[0]);
    assert_int_equal(sequence_take(&w, 0, taken), 1);
    assert_ptr_equal(taken[0], &r[2].request);
    is_rejected(taken[0], KELP_CANCELLED, "cancelled");
    sequence_release(&w, taken[0]);
    assert_int_equal(sequence_take(&w, 0, taken), 1);
    assert_ptr_equal(taken[0], &r[3].request);
    sequence_release(&w, taken[0]);
    assert_int_equal(w.policy->ops->live(w.policy), 0);
    close_all(&w, r, 4);
}

static void direct_waits_for_the_utilization_or_the_delay(void **state) {
    sequence_world w;
    sequence_request r[4];
    (void)state;
    sequence_world_open(&w, MODEL(4, 1,
                                  "direct { max_queue_delay_microseconds: 100 "
                                  "minimum_slot_utilization: 0.5 }"));
    accepts(&w, &r[0], 1, START | END);
    assert_int_equal(sequence_take(&w, 0, taken), 0);
    assert_int_equal(w.policy->ops->ready_at_ns(w.policy, &w.instances[0]), w.now_ns + 100000);
    w.now_ns += 100000;
    assert_int_equal(sequence_take(&w, 0, taken), 1);
    sequence_release(&w, taken[0]);
    accepts(&w, &r[1], 2, START | END);
    accepts(&w, &r[2], 3, START | END);
    assert_int_equal(sequence_take(&w, 0, taken), 2);
    sequence_release(&w, taken[0]);
    sequence_release(&w, taken[1]);
    close_all(&w, r, 3);
}

static void oldest_takes_preferred_sizes(void **state) {
    sequence_world w;
    sequence_request r[6];
    (void)state;
    sequence_world_open(&w, MODEL(4, 1,
                                  "oldest { max_candidate_sequences: 8 preferred_batch_size: [ 2 ] "
                                  "max_queue_delay_microseconds: 100 }"));
    for (uint32_t i = 0; i < 3; i++)
        accepts(&w, &r[i], i + 1, START | END);
    assert_int_equal(sequence_take(&w, 0, taken), 2);
    assert_int_equal(taken[0]->correlation_id, 1);
    assert_int_equal(taken[0]->span, 0); /* no null requests */
    assert_int_equal(sequence_take(&w, 0, taken + 2), 0);
    w.now_ns += 100000;
    assert_int_equal(sequence_take(&w, 0, taken + 2), 1);
    for (uint32_t i = 0; i < 3; i++)
        sequence_release(&w, taken[i]);
    close_all(&w, r, 3);
}

static void oldest_limits_candidates_not_the_batch(void **state) {
    sequence_world w;
    sequence_request r[6];
    (void)state;
    sequence_world_open(&w, MODEL(2, 1, "oldest { max_candidate_sequences: 4 }"));
    for (uint32_t i = 0; i < 5; i++)
        accepts(&w, &r[i], i + 1, START | END);
    for (uint32_t i = 0; i < 4; i += 2)
        assert_int_equal(sequence_take(&w, 0, taken + i), 2);
    assert_int_equal(sequence_take(&w, 0, taken + 4), 0); /* 5 is no candidate yet */
    sequence_release(&w, taken[0]);
    assert_int_equal(sequence_take(&w, 0, taken), 1);
    assert_int_equal(taken[0]->correlation_id, 5);
    for (uint32_t i = 0; i < 4; i++)
        sequence_release(&w, taken[i]);
    close_all(&w, r, 5);
}

static void iterative_requests_are_sequences(void **state) {
    sequence_world w;
    sequence_request r[2];
    (void)state;
    sequence_world_open(&w, MODEL(2, 1, "iterative_sequence: true"));
    accepts(&w, &r[0], 0, 0);
    accepts(&w, &r[1], 0, 0);
    assert_int_not_equal(r[0].request.correlation_id, r[1].request.correlation_id);
    assert_int_equal(sequence_take(&w, 0, taken), 2);
    assert_int_equal(taken[0]->flags, START);
    sequence_release(&w, taken[1]);
    w.policy->ops->reschedule(w.policy, taken[0], w.now_ns);
    assert_int_equal(w.policy->ops->size(w.policy), 1);
    assert_int_equal(sequence_take(&w, 0, taken), 1);
    assert_ptr_equal(taken[0], &r[0].request);
    assert_int_equal(taken[0]->slot, 0);
    sequence_release(&w, taken[0]);
    assert_int_equal(r[0].request.correlation_id, 0); /* as the client set it */
    assert_int_equal(w.policy->ops->live(w.policy), 0);
    close_all(&w, r, 2);
}

static void queue_has_a_limit(void **state) {
    sequence_world w;
    sequence_request r[3];
    (void)state;
    sequence_world_open(
        &w, MODEL(1, 1,
                  "direct { }") " parameters { key: \"kelp_max_queue_size\" value { string_value: "
                                "\"2\" } }");
    accepts(&w, &r[0], 1, START | END);
    accepts(&w, &r[1], 2, START | END);
    sequence_request_init(&w, &r[2], 3, START | END);
    rejects(&w, &r[2], KELP_UNAVAILABLE, "Exceeds maximum queue size");
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(sequence_take(&w, 0, taken), 1);
        sequence_release(&w, taken[0]);
    }
    close_all(&w, r, 2);
}

static void environment_delays_the_first_execution(void **state) {
    sequence_world w;
    sequence_request r[4];
    (void)state;
    setenv("TRITONSERVER_DELAY_SCHEDULER", "2", 1);
    setenv("TRITONSERVER_BACKLOG_DELAY_SCHEDULER", "1", 1);
    sequence_world_open(&w, MODEL(1, 1, "direct { }"));
    unsetenv("TRITONSERVER_DELAY_SCHEDULER");
    unsetenv("TRITONSERVER_BACKLOG_DELAY_SCHEDULER");
    accepts(&w, &r[0], 1, START);
    accepts(&w, &r[1], 1, END);
    assert_int_equal(sequence_take(&w, 0, taken), 0);
    accepts(&w, &r[2], 2, START | END);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(sequence_take(&w, 0, taken), 1);
        assert_ptr_equal(taken[0], &r[i].request);
        sequence_release(&w, taken[0]);
    }
    close_all(&w, r, 3);
}

static void environment_delays_oldest_sequences(void **state) {
    sequence_world w;
    sequence_request r[3];
    (void)state;
    setenv("TRITONSERVER_DELAY_SCHEDULER", "2", 1);
    sequence_world_open(&w, MODEL(4, 1, "oldest { max_candidate_sequences: 4 }"));
    unsetenv("TRITONSERVER_DELAY_SCHEDULER");
    accepts(&w, &r[0], 1, START);
    accepts(&w, &r[1], 1, END);
    assert_int_equal(sequence_take(&w, 0, taken), 0);
    accepts(&w, &r[2], 2, START | END);
    assert_int_equal(sequence_take(&w, 0, taken), 2);
    sequence_release(&w, taken[0]);
    sequence_release(&w, taken[1]);
    assert_int_equal(sequence_take(&w, 0, taken), 1);
    sequence_release(&w, taken[0]);
    close_all(&w, r, 3);
}

static void control_inputs_are_added_and_removed(void **state) {
    sequence_world w;
    sequence_request r;
    (void)state;
    sequence_world_open(&w,
                        MODEL(1, 1,
                              "control_input { name: \"S\" control { kind: CONTROL_SEQUENCE_START "
                              "int32_false_true: [ -1, 5 ] } } "
                              "control_input { name: \"R\" control { kind: CONTROL_SEQUENCE_READY "
                              "fp32_false_true: [ 0, 2.5 ] } } "
                              "control_input { name: \"E\" control { kind: CONTROL_SEQUENCE_END "
                              "bool_false_true: [ false, true ] } } "
                              "control_input { name: \"C\" control { kind: CONTROL_SEQUENCE_CORRID "
                              "data_type: TYPE_STRING } } "));
    sequence_request_init(&w, &r, 1234, START);
    assert_null(kelp_request_enter_sequence(&r.request));
    kelp_request_set_controls(&r.request, true);
    assert_int_equal(r.request.input_count, 4);
    const kelp_input *c = kelp_request_find_input(&r.request, "C");
    assert_int_equal(c->datatype, TRITONSERVER_TYPE_BYTES);
    assert_int_equal(c->rank, 2);
    assert_int_equal(c->data.size_bytes, 8);
    assert_memory_equal(c->data.blocks[0].base,
                        "\4\0\0\0"
                        "1234",
                        8);
    const kelp_input *s = kelp_request_find_input(&r.request, "S");
    assert_int_equal(*(const int32_t *)s->data.blocks[0].base, 5);
    const kelp_input *ready = kelp_request_find_input(&r.request, "R");
    assert_true(*(const float *)ready->data.blocks[0].base == 2.5f);
    const kelp_input *e = kelp_request_find_input(&r.request, "E");
    assert_int_equal(*(const uint8_t *)e->data.blocks[0].base, 0);
    kelp_request_set_controls(&r.request, false);
    assert_int_equal(*(const int32_t *)s->data.blocks[0].base, -1);
    assert_true(*(const float *)ready->data.blocks[0].base == 0);
    sequence_request_deinit(&r);
    assert_int_equal(r.request.input_count, 0);
    assert_int_equal(r.request.flags, START);
    sequence_world_close(&w);
}

static void string_ids_do_not_fit_numeric_controls(void **state) {
    sequence_world w;
    sequence_request r;
    (void)state;
    sequence_world_open(&w, MODEL(1, 1,
                                  "control_input { name: \"C\" control { kind: "
                                  "CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } } "));
    sequence_request_init(&w, &r, 0, START);
    assert_null(kelp_request_set_correlation_string(&r.request, "one"));
    rejects(&w, &r, KELP_INVALID_ARGUMENT, "expects a number as the correlation ID");
    sequence_world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_must_be_valid),
        cmocka_unit_test(direct_batches_the_slots),
        cmocka_unit_test(sequences_spread_over_instances_and_the_backlog),
        cmocka_unit_test(idle_sequences_end),
        cmocka_unit_test(start_replaces_a_live_sequence),
        cmocka_unit_test(timeout_rejects_a_sequence_of_the_backlog),
        cmocka_unit_test(cancellation_ends_a_sequence),
        cmocka_unit_test(direct_waits_for_the_utilization_or_the_delay),
        cmocka_unit_test(oldest_takes_preferred_sizes),
        cmocka_unit_test(oldest_limits_candidates_not_the_batch),
        cmocka_unit_test(iterative_requests_are_sequences),
        cmocka_unit_test(queue_has_a_limit),
        cmocka_unit_test(environment_delays_the_first_execution),
        cmocka_unit_test(environment_delays_oldest_sequences),
        cmocka_unit_test(control_inputs_are_added_and_removed),
        cmocka_unit_test(string_ids_do_not_fit_numeric_controls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
