/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events: order, full queues, drain, errors, ownership of the model. */
#include "compute/small_provider.h"
#include "support/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "support/check_status.h"

#define COUNT 8

typedef struct session {
    kelp_runtime *runtime;
    kelp_compute_model *model;
    kelp_compute_stream *stream;
    kelp_event *events[COUNT];
    kelp_infer_item items[COUNT];
    kelp_tensor in[COUNT], out[COUNT];
    float data[COUNT], results[COUNT];
} session;

static void begin(session *s, const char *name, kelp_allocator allocator, size_t capacity) {
    const int64_t one = 1;
    kelp_runtime_options options = {.struct_size = sizeof options, .allocator = allocator};
    kelp_artifact artifact = {.data = "", .size_bytes = 1};
    memset(s, 0, sizeof *s);
    memset(&test_small, 0, sizeof test_small);
    check_ok(kelp_runtime_create(&options, &s->runtime));
    check_ok(kelp_compute_register(s->runtime, test_small_backend(name)));
    check_ok(kelp_compute_load(s->runtime, name, &artifact, &s->model));
    check_ok(kelp_compute_init(s->model));
    check_ok(kelp_compute_stream_create(s->model, capacity, &s->stream));
    for (int i = 0; i < COUNT; i++) {
        check_ok(kelp_event_create(allocator, &s->events[i]));
        s->data[i] = (float)i;
        check_ok(kelp_tensor_init(&s->in[i], KELP_F32, 1, &one, &s->data[i]));
        check_ok(kelp_tensor_init(&s->out[i], KELP_F32, 1, &one, &s->results[i]));
        s->items[i] = (kelp_infer_item){.inputs = &s->in[i], .outputs = &s->out[i]};
    }
}

static void end(session *s) {
    kelp_compute_stream_destroy(s->stream);
    kelp_compute_destroy(s->model);
    kelp_runtime_release(s->runtime);
    for (int i = 0; i < COUNT; i++)
        kelp_event_destroy(s->events[i]);
}

/* Items run in order, drain waits for all of them, and each item keeps its error.
 */
static void runs_all(const char *provider) {
    session s;
    begin(&s, provider, kelp_allocator_system(), COUNT);
    assert_true(kelp_event_done(s.events[0])); /* never submitted */
    s.data[3] = -1;
    for (int i = 0; i < COUNT; i++)
        check_ok(kelp_compute_submit(s.stream, &s.items[i], s.events[i]));
    check_ok(kelp_compute_drain(s.model));
    assert_int_equal(test_small.drains, 1);
    for (int i = 0; i < COUNT; i++) {
        assert_true(kelp_event_done(s.events[i]));
        if (i == 3) {
            expect_failure(s.items[i].status, KELP_UNAVAILABLE, "an element is -1");
        } else {
            check_ok(s.items[i].status);
            assert_true(s.results[i] == 2 * (float)i);
        }
    }
    end(&s);
}

static void thread_runs_items_in_order(void **state) {
    (void)state;
    runs_all("plain");
}

static void provider_runs_items_in_order(void **state) {
    (void)state;
    runs_all("submit");
}

static void submission_to_a_full_stream_fails(void **state) {
    (void)state;
    session s;
    test_small_close();
    begin(&s, "gate", kelp_allocator_system(), 2);
    check_ok(kelp_compute_submit(s.stream, &s.items[0], s.events[0]));
    check_ok(kelp_compute_submit(s.stream, &s.items[1], NULL));
    expect_failure(kelp_compute_submit(s.stream, &s.items[2], s.events[2]), KELP_RESOURCE_EXHAUSTED,
                   "2 tasks are in flight");
    assert_true(kelp_event_done(s.events[2]));
    assert_false(kelp_event_done(s.events[0]));
    assert_false(kelp_event_wait(s.events[0], 1000000));
    expect_failure(kelp_compute_submit(s.stream, &s.items[3], s.events[0]),
                   KELP_FAILED_PRECONDITION, "another task");
    test_small_open();
    assert_true(kelp_event_wait(s.events[0], UINT64_MAX));
    check_ok(s.items[0].status);
    end(&s); /* waits for the second */
    check_ok(s.items[1].status);
    assert_true(s.results[1] == 2);
}

static void stream_owns_its_model(void **state) {
    (void)state;
    session s;
    kelp_compute_stream *second = NULL;
    kelp_compute_model *fork = NULL;
    begin(&s, "plain", kelp_allocator_system(), 1);
    expect_failure(kelp_compute_infer_one(s.model, &s.items[0]), KELP_FAILED_PRECONDITION,
                   "a stream owns the model");
    expect_failure(kelp_compute_infer_batch(s.model, s.items, 2, KELP_BATCH_EACH),
                   KELP_FAILED_PRECONDITION, "a stream owns the model");
    expect_failure(kelp_compute_stream_create(s.model, 1, &second), KELP_FAILED_PRECONDITION,
                   "fork the model");
    check_ok(kelp_compute_fork(s.model, &fork));
    check_ok(kelp_compute_init(fork));
    check_ok(kelp_compute_infer_one(fork, &s.items[1]));
    assert_true(s.results[1] == 2);
    kelp_compute_destroy(fork);
    kelp_compute_stream_destroy(s.stream);
    s.stream = NULL;
    check_ok(kelp_compute_infer_one(s.model, &s.items[2]));
    expect_failure(kelp_compute_stream_create(s.model, 0, &second), KELP_INVALID_ARGUMENT,
                   "the stream has capacity 0: expected at least 1");
    end(&s);
}

static void invalid_items_fail_at_submission(void **state) {
    (void)state;
    session s;
    begin(&s, "submit", kelp_allocator_system(), COUNT);
    s.in[0].dtype = KELP_I32;
    expect_failure(kelp_compute_submit(s.stream, &s.items[0], s.events[0]), KELP_INVALID_ARGUMENT,
                   "expected float32, found int32");
    float gaps[4] = {0};
    const int64_t two = 2;
    check_ok(kelp_tensor_init(&s.in[1], KELP_F32, 1, &two, gaps));
    s.in[1].strides[0] = 2;
    expect_failure(kelp_compute_submit(s.stream, &s.items[1], s.events[1]), KELP_UNIMPLEMENTED,
                   "does not copy inputs");
    assert_true(kelp_event_done(s.events[0]));
    end(&s);
}

static void repeated_submissions_do_not_allocate(void **state) {
    (void)state;
    session s;
    test_failing memory;
    test_failing_init(&memory, 0);
    begin(&s, "plain", test_failing_allocator(&memory), COUNT);
    uint64_t before = memory.calls;
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < COUNT; i++)
            check_ok(kelp_compute_submit(s.stream, &s.items[i], s.events[i]));
        assert_true(kelp_event_wait(s.events[COUNT - 1], UINT64_MAX));
        check_ok(kelp_compute_drain(s.model));
    }
    assert_int_equal(memory.calls, before);
    end(&s);
    test_failing_check(&memory);
    test_failing_deinit(&memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thread_runs_items_in_order),
        cmocka_unit_test(provider_runs_items_in_order),
        cmocka_unit_test(submission_to_a_full_stream_fails),
        cmocka_unit_test(stream_owns_its_model),
        cmocka_unit_test(invalid_items_fail_at_submission),
        cmocka_unit_test(repeated_submissions_do_not_allocate),
    };
    return cmocka_run_group_tests_name("compute.stream", tests, NULL, NULL);
}
