/* SPDX-License-Identifier: Apache-2.0 */
/* Batches with the SDK: joining, splitting, and batch inputs of the configuration. */
#include "server/support.h"

enum { CALLS = 3 };

static call gate, calls[CALLS];

static int set_up(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                             .backends = KELP_TEST_BACKENDS});
}

static const char batch_config[] =
    "backend: \"sdkbatch\"\nmax_batch_size: 8\ndynamic_batching { }\n"
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"
    "instance_group [ { kind: KIND_CPU count: 1 } ]\n";

/* Blocks the instance, queues the requests, and then releases them together. */
static void run_together(world *w, const char *name, const int64_t *shape, uint64_t rank,
                         const void *data, size_t size_bytes) {
    call_init(&gate, w->server, name, -1);
    ok(TRITONSERVER_InferenceRequestSetId(gate.request, "gate"));
    call_input(&gate, "INPUT0", TRITONSERVER_TYPE_INT32, shape, rank, data, size_bytes);
    call_start(&gate);
    /* The gate is in execution once it no longer waits: nothing tells, so a first request that
     * joined it would only make a batch of one more. */
    for (int i = 0; i < CALLS; i++)
        call_start(&calls[i]);
    ok(TRITONSERVER_InferenceRequestCancel(gate.request));
    call_wait(&gate);
    call_deinit(&gate);
    for (int i = 0; i < CALLS; i++)
        call_wait(&calls[i]);
}

/* Each part takes at least 20 ms, and both executions no longer than this test. */
static void times_of_the_parts_are_reported(void **state) {
    world *w = *state;
    static const int32_t values[] = {1, 2};
    static const char *const parts[] = {"compute_input", "compute_infer", "compute_output"};
    TRITONSERVER_Message *message = NULL;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    world_load(w, "waiting", batch_config);
    for (int i = 0; i < 2; i++) {
        call c;
        call_init(&c, w->server, "waiting", -1);
        call_input(&c, "INPUT0", TRITONSERVER_TYPE_INT32, (int64_t[]){1, 2}, 2, values, 8);
        call_run(&c);
        call_deinit(&c);
    }
    char *stats = NULL;
    for (int i = 0; i < 1000; i++) { /* requests are counted at their end, after the response */
        free(stats);
        ok(TRITONSERVER_ServerModelStatistics(w->server, "waiting", 1, &message));
        stats = message_text(message);
        if (strstr(stats, "\"success\":{\"count\":2") != NULL)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    long long sum = 0, most = (end.tv_sec - begin.tv_sec + 1) * 1000000000ll;
    for (int i = 0; i < 3; i++) {
        char key[64];
        snprintf(key, sizeof key, "\"%s\":{\"count\":2,\"ns\":", parts[i]);
        contains(stats, key);
        long long ns = number_after(stats, key);
        assert_true(ns >= 40000000);
        sum += ns;
    }
    assert_true(sum <= most);
    free(stats);
    world_unload(w, "waiting");
}

static void joins_inputs_and_splits_outputs(void **state) {
    world *w = *state;
    static const int32_t values[] = {1, 2, 3, 4, 5, 6, 7, 8};
    repo_model(&w->r, "batch", batch_config);
    ok(TRITONSERVER_ServerLoadModel(w->server, "batch"));
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < CALLS; i++) { /* batches of 1, 2 and 3 */
            int64_t shape[] = {i + 1, 2};
            call_init(&calls[i], w->server, "batch", -1);
            call_input(&calls[i], "INPUT0", TRITONSERVER_TYPE_INT32, shape, 2, values + i,
                       (size_t)(i + 1) * 8);
        }
        run_together(w, "batch", (int64_t[]){1, 2}, 2, values, 8);
        for (int i = 0; i < CALLS; i++) {
            size_t size_bytes = 0;
            TRITONSERVER_Error *error = TRITONSERVER_InferenceResponseError(calls[i].response);
            if (error) { /* it was in the batch of the gate */
                assert_int_equal(TRITONSERVER_ErrorCode(error), TRITONSERVER_ERROR_CANCELLED);
                TRITONSERVER_ErrorDelete(error);
            } else {
                const int32_t *out = call_output(&calls[i], "OUTPUT0", &size_bytes);
                assert_int_equal(size_bytes, (size_t)(i + 1) * 8);
                for (int k = 0; k < 2 * (i + 1); k++)
                    assert_int_equal(out[k], 2 * values[i + k]);
            }
            call_deinit(&calls[i]);
        }
    }
}

static void adjacent_inputs_are_not_copied(void **state) {
    static const char config[] =
        "backend: \"sdkbatch\"\nmax_batch_size: 8\n"
        "dynamic_batching { preferred_batch_size: 3 max_queue_delay_microseconds: 60000000 }\n"
        "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"
        "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n";
    static const char *const models[] = {"adjacent", "apart"};
    static _Alignas(8) const int32_t values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    world *w = *state;
    for (int apart = 0; apart < 2; apart++) {
        world_load(w, models[apart], config);
        for (int i = 0; i < CALLS; i++) {
            call_init(&calls[i], w->server, models[apart], -1);
            call_input(&calls[i], "INPUT0", TRITONSERVER_TYPE_INT32, (int64_t[]){1, 2}, 2,
                       values + 2 * i * (1 + apart), 8);
            call_start(&calls[i]);
        }
        for (int i = 0; i < CALLS; i++) {
            size_t size_bytes = 0;
            call_wait(&calls[i]);
            const int32_t *out = call_output(&calls[i], "OUTPUT0", &size_bytes);
            assert_int_equal(out[1], 2 * values[2 * i * (1 + apart) + 1]);
            call_deinit(&calls[i]);
        }
    }
}

/* Requests of a failed batch that have no response yet get the failure. */
static void failure_of_a_batch_is_sent_to_all_open_requests(void **state) {
    world *w = *state;
    static const int32_t values[] = {1, 2};
    repo_model(&w->r, "fail", batch_config);
    ok(TRITONSERVER_ServerLoadModel(w->server, "fail"));
    for (int i = 0; i < CALLS; i++) {
        call_init(&calls[i], w->server, "fail", -1);
        call_input(&calls[i], "INPUT0", TRITONSERVER_TYPE_INT32, (int64_t[]){1, 2}, 2, values, 8);
    }
    run_together(w, "fail", (int64_t[]){1, 2}, 2, values, 8);
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal(calls[i].responses, 1);
        call_deinit(&calls[i]);
    }
}

#define BATCH_INPUT(kind, name, type)                                           \
    "batch_input [ { kind: " kind " target_name: \"" name "\" data_type: " type \
    " source_input: \"INPUT0\" } ]\n"
static const char ragged_config[] =
    "backend: \"sdkbatch\"\nmax_batch_size: 8\ndynamic_batching { }\n"
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] allow_ragged_batch: true } ]\n"
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] },\n"
    "         { name: \"COUNT\" data_type: TYPE_INT32 dims: [ -1 ] },\n"
    "         { name: \"SUM\" data_type: TYPE_INT32 dims: [ -1 ] },\n"
    "         { name: \"ZERO\" data_type: TYPE_FP32 dims: [ -1 ] },\n"
    "         { name: \"MAX\" data_type: TYPE_INT32 dims: [ -1 ] },\n"
    "         { name: \"SHAPE\" data_type: TYPE_INT32 dims: [ -1 ] },\n"
    "         { name: \"FLAT\" data_type: TYPE_INT64 dims: [ -1 ] } ]\n"
    "instance_group [ { kind: KIND_CPU count: 1 } ]\n" BATCH_INPUT("BATCH_ELEMENT_COUNT", "COUNT",
                                                                   "TYPE_INT32")
        BATCH_INPUT("BATCH_ACCUMULATED_ELEMENT_COUNT", "SUM", "TYPE_INT32")
            BATCH_INPUT("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", "ZERO", "TYPE_FP32")
                BATCH_INPUT("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", "MAX", "TYPE_INT32")
                    BATCH_INPUT("BATCH_ITEM_SHAPE", "SHAPE", "TYPE_INT32")
                        BATCH_INPUT("BATCH_ITEM_SHAPE_FLATTEN", "FLAT", "TYPE_INT64");

/* Checks the batch inputs of a batch with the first `count` requests, which have 1, 2, … elements.
 */
static void check_batch_inputs(call *c, int count) {
    size_t size_bytes = 0;
    const int32_t *counts = call_output(c, "COUNT", &size_bytes);
    assert_int_equal(size_bytes, (size_t)count * 4);
    const int32_t *sums = call_output(c, "SUM", &size_bytes);
    const float *zero = call_output(c, "ZERO", &size_bytes);
    assert_int_equal(size_bytes, ((size_t)count + 1) * 4);
    const int32_t *shapes = call_output(c, "SHAPE", &size_bytes);
    assert_int_equal(size_bytes, (size_t)count * 4);
    const int64_t *flat = call_output(c, "FLAT", &size_bytes);
    assert_true(zero[0] == 0);
    for (int i = 0; i < count; i++) {
        int32_t sum = (i + 1) * (i + 2) / 2;
        assert_int_equal(counts[i], i + 1);
        assert_int_equal(sums[i], sum);
        assert_true(zero[i + 1] == (float)sum);
        assert_int_equal(shapes[i], i + 1);
        assert_int_equal(flat[i], i + 1);
    }
    (void)call_output(c, "MAX", &size_bytes);
    assert_int_equal(size_bytes, (size_t)count * 4);
}

static void computes_batch_inputs_of_ragged_batches(void **state) {
    world *w = *state;
    static const int32_t values[] = {1, 2, 3, 4, 5};
    repo_model(&w->r, "batch_input", ragged_config);
    ok(TRITONSERVER_ServerLoadModel(w->server, "batch_input"));
    int largest = 0;
    for (int round = 0; round < 50 && largest < CALLS; round++) {
        int together = 0;
        for (int i = 0; i < CALLS; i++) {
            int64_t shape[] = {1, i + 1};
            call_init(&calls[i], w->server, "batch_input", -1);
            call_input(&calls[i], "INPUT0", TRITONSERVER_TYPE_INT32, shape, 2, values + i,
                       (size_t)(i + 1) * 4);
        }
        run_together(w, "batch_input", (int64_t[]){1, 2}, 2, values, 8);
        for (int i = 0; i < CALLS; i++) {
            size_t size_bytes = 0;
            TRITONSERVER_Error *error = TRITONSERVER_InferenceResponseError(calls[i].response);
            bool failed = error != NULL;
            TRITONSERVER_ErrorDelete(error);
            if (failed)
                continue; /* it was in the batch of the gate */
            const int32_t *out = call_output(&calls[i], "OUTPUT0", &size_bytes);
            assert_int_equal(size_bytes, (size_t)(i + 1) * 4);
            for (int k = 0; k <= i; k++)
                assert_int_equal(out[k], 2 * values[i + k]);
            uint32_t count = 0;
            ok(TRITONSERVER_InferenceResponseOutputCount(calls[i].response, &count));
            if (i == 0 && count > 1) {
                (void)call_output(&calls[0], "COUNT", &size_bytes);
                check_batch_inputs(&calls[0], together = (int)(size_bytes / 4));
            }
        }
        for (int i = 0; i < CALLS; i++)
            call_deinit(&calls[i]);
        largest = together > largest ? together : largest;
    }
    assert_int_equal(largest, CALLS); /* all three were in one batch, at least once */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(times_of_the_parts_are_reported, set_up, world_close),
        cmocka_unit_test_setup_teardown(joins_inputs_and_splits_outputs, set_up, world_close),
        cmocka_unit_test_setup_teardown(adjacent_inputs_are_not_copied, set_up, world_close),
        cmocka_unit_test_setup_teardown(failure_of_a_batch_is_sent_to_all_open_requests, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(computes_batch_inputs_of_ragged_batches, set_up,
                                        world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
