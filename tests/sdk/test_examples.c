/* SPDX-License-Identifier: Apache-2.0 */
/* The example backends, tested through the in-process API. */
#include "server/support.h"

#include <unistd.h>

#define F32 TRITONSERVER_TYPE_FP32

static const char pair_config[] =
    "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ 4 ] },\n"
    "        { name: \"INPUT1\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n";

static int set_up(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT});
}

static void load(world *w, const char *name, const char *backend, const char *config) {
    char text[2048];
    snprintf(text, sizeof text, "backend: \"%s\"\n%sinstance_group [ { kind: KIND_CPU } ]\n",
             backend, config);
    repo_model(&w->r, name, text);
    ok(TRITONSERVER_ServerLoadModel(w->server, name));
}

/* identity returns tensors of all Triton types unchanged. */
static void identity_copies_all_types(void **state) {
    world *w = *state;
    static const unsigned char bytes[32] = {1, 0, 0, 0, 'x', 9, 8, 7, 6, 5, 4, 3, 2, 1};
    for (int type = TRITONSERVER_TYPE_BOOL; type <= TRITONSERVER_TYPE_BF16; type++) {
        char name[64], config[512];
        const char *type_name = TRITONSERVER_DataTypeString((TRITONSERVER_DataType)type);
        bool strings = type == TRITONSERVER_TYPE_BYTES;
        int64_t shape[] = {1};
        size_t size_bytes =
            strings ? 5 : TRITONSERVER_DataTypeByteSize((TRITONSERVER_DataType)type);
        size_t found_bytes = 0;
        call c;
        snprintf(name, sizeof name, "identity_%s", type_name);
        snprintf(config, sizeof config,
                 "input [ { name: \"INPUT0\" data_type: TYPE_%s dims: [ -1 ] } ]\n"
                 "output [ { name: \"OUTPUT0\" data_type: TYPE_%s dims: [ -1 ] } ]\n",
                 strings ? "STRING" : type_name, strings ? "STRING" : type_name);
        load(w, name, "identity", config);
        call_init(&c, w->server, name, -1);
        call_input(&c, "INPUT0", (TRITONSERVER_DataType)type, shape, 1, bytes, size_bytes);
        call_run(&c);
        const void *found = call_output(&c, "OUTPUT0", &found_bytes);
        assert_int_equal(found_bytes, size_bytes);
        assert_memory_equal(found, bytes, size_bytes);
        call_deinit(&c);
    }
}

static void identity_echoes_parameters_and_can_be_cancelled(void **state) {
    world *w = *state;
    static const int64_t shape[] = {4};
    static const float values[] = {1, 2, 3, 4};
    uint32_t count = 0;
    call c;
    load(w, "identity", "identity",
         "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n"
         "output [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n");
    call_init(&c, w->server, "identity", -1);
    call_input(&c, "INPUT0", F32, shape, 1, values, sizeof values);
    ok(TRITONSERVER_InferenceRequestSetBoolParameter(c.request, "echo", true));
    ok(TRITONSERVER_InferenceRequestSetDoubleParameter(c.request, "ratio", 0.5));
    call_run(&c);
    ok(TRITONSERVER_InferenceResponseParameterCount(c.response, &count));
    assert_int_equal(count, 2);
    call_clear(&c);
    ok(TRITONSERVER_InferenceRequestSetIntParameter(c.request, "delay_ms", 3600000));
    call_start(&c);
    ok(TRITONSERVER_InferenceRequestCancel(c.request));
    call_wait(&c);
    fails(TRITONSERVER_InferenceResponseError(c.response), TRITONSERVER_ERROR_CANCELLED, "");
    call_deinit(&c);
}

static void repeat_sends_one_response_per_element(void **state) {
    world *w = *state;
    static const int64_t three[] = {3};
    static const int32_t values[] = {5, 6, 7};
    static const uint32_t delays[] = {1, 2, 1}, delays_of_two[] = {1, 2};
    size_t size_bytes = 0;
    call c;
    load(w, "repeat", "repeat",
         "model_transaction_policy { decoupled: true }\n"
         "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] },\n"
         "        { name: \"DELAY\" data_type: TYPE_UINT32 dims: [ -1 ] optional: true },\n"
         "        { name: \"WAIT\" data_type: TYPE_UINT32 dims: [ 1 ] optional: true } ]\n"
         "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ 1 ] },\n"
         "         { name: \"IDX\" data_type: TYPE_UINT32 dims: [ 1 ] } ]\n");
    call_init(&c, w->server, "repeat", -1);
    call_input(&c, "IN", TRITONSERVER_TYPE_INT32, three, 1, values, sizeof values);
    call_run(&c);
    assert_int_equal(c.responses, 3);
    assert_int_equal(*(const int32_t *)call_output(&c, "OUT", &size_bytes), 7);
    assert_int_equal(*(const uint32_t *)call_output(&c, "IDX", &size_bytes), 2);
    call_clear(&c);
    call_input(&c, "DELAY", TRITONSERVER_TYPE_UINT32, three, 1, delays, sizeof delays);
    call_input(&c, "WAIT", TRITONSERVER_TYPE_UINT32, (int64_t[]){1}, 1, delays, 4);
    call_run(&c);
    assert_int_equal(c.responses, 3);
    call_clear(&c);
    ok(TRITONSERVER_InferenceRequestRemoveInput(c.request, "DELAY"));
    call_input(&c, "DELAY", TRITONSERVER_TYPE_UINT32, (int64_t[]){2}, 1, delays_of_two, 8);
    call_run(&c);
    call_fails(&c, TRITONSERVER_ERROR_INVALID_ARG,
               "DELAY' has the wrong shape: expected 3 elements, found 2");
    /* Without elements, there is only the final flag. */
    call_clear(&c);
    ok(TRITONSERVER_InferenceRequestRemoveAllInputs(c.request));
    call_input(&c, "IN", TRITONSERVER_TYPE_INT32, (int64_t[]){0}, 1, values, 0);
    call_run(&c);
    assert_int_equal(c.responses, 0);
    call_deinit(&c);
    repo_model(&w->r, "repeat_coupled", "backend: \"repeat\"\n");
    fails(TRITONSERVER_ServerLoadModel(w->server, "repeat_coupled"), TRITONSERVER_ERROR_INTERNAL,
          "");
}

static void repeat_ends_on_cancellation(void **state) {
    world *w = *state;
    static const int32_t values[2] = {1, 2};
    static const uint32_t delays[2] = {0, 60000};
    call c;
    load(w, "repeat", "repeat",
         "model_transaction_policy { decoupled: true }\n"
         "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] },\n"
         "        { name: \"DELAY\" data_type: TYPE_UINT32 dims: [ -1 ] optional: true } ]\n"
         "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n");
    call_init(&c, w->server, "repeat", -1);
    call_input(&c, "IN", TRITONSERVER_TYPE_INT32, (int64_t[]){2}, 1, values, 8);
    call_input(&c, "DELAY", TRITONSERVER_TYPE_UINT32, (int64_t[]){2}, 1, delays, 8);
    call_start(&c);
    usleep(20000); /* now it waits for the time of the second response */
    ok(TRITONSERVER_InferenceRequestCancel(c.request));
    call_wait(&c); /* does not wait for the remaining minute */
    call_deinit(&c);
}

static float accumulate(call *c, float value, uint32_t flags) {
    size_t size_bytes = 0;
    ok(TRITONSERVER_InferenceRequestSetFlags(c->request, flags));
    ok(TRITONSERVER_InferenceRequestRemoveAllInputs(c->request));
    call_input(c, "INPUT", F32, (int64_t[]){1}, 1, &value, sizeof value);
    call_run(c);
    float sum = *(const float *)call_output(c, "OUTPUT", &size_bytes);
    call_clear(c);
    return sum;
}

static void accumulator_keeps_one_sum_per_sequence(void **state) {
    world *w = *state;
    float value = 1;
    call a, b;
    load(w, "accumulator", "accumulator",
         "input [ { name: \"INPUT\" data_type: TYPE_FP32 dims: [ 1 ] } ]\n"
         "output [ { name: \"OUTPUT\" data_type: TYPE_FP32 dims: [ 1 ] },\n"
         "         { name: \"COUNT\" data_type: TYPE_INT64 dims: [ 1 ] } ]\n"
         "parameters { key: \"max_sequences\" value { string_value: \"2\" } }\n");
    call_init(&a, w->server, "accumulator", -1);
    call_init(&b, w->server, "accumulator", -1);
    ok(TRITONSERVER_InferenceRequestSetCorrelationId(a.request, 1));
    ok(TRITONSERVER_InferenceRequestSetCorrelationIdString(b.request, "one"));
    assert_true(accumulate(&a, 1, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START) == 1);
    assert_true(accumulate(&b, 10, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START) == 10);
    assert_true(accumulate(&a, 2, 0) == 3);
    assert_true(accumulate(&b, 20, 0) == 30);
    /* A third sequence exceeds the limit until one ends. */
    ok(TRITONSERVER_InferenceRequestSetCorrelationId(a.request, 3));
    ok(TRITONSERVER_InferenceRequestRemoveAllInputs(a.request));
    call_input(&a, "INPUT", F32, (int64_t[]){1}, 1, &value, sizeof value);
    call_run(&a);
    call_fails(&a, TRITONSERVER_ERROR_UNAVAILABLE, "too many sequences: at most 2");
    call_clear(&a);
    assert_true(accumulate(&b, 3, TRITONSERVER_REQUEST_FLAG_SEQUENCE_END) == 33);
    assert_true(accumulate(&a, 5, 0) == 5);
    ok(TRITONSERVER_InferenceRequestSetCorrelationId(a.request, 0));
    ok(TRITONSERVER_InferenceRequestRemoveAllInputs(a.request));
    call_input(&a, "INPUT", F32, (int64_t[]){1}, 1, &value, sizeof value);
    call_run(&a);
    call_fails(&a, TRITONSERVER_ERROR_INVALID_ARG, "no sequence id");
    call_deinit(&a);
    call_deinit(&b);
}

static void run_pipeline(world *w, const char *name, call *c) {
    static const int64_t shape[] = {4};
    static const float a[] = {5, 4, 3, 2}, b[] = {1, 2, 3, 4};
    call_init(c, w->server, name, -1);
    call_input(c, "INPUT0", F32, shape, 1, a, sizeof a);
    call_input(c, "INPUT1", F32, shape, 1, b, sizeof b);
    call_run(c);
}

static void pipeline_joins_two_models(void **state) {
    world *w = *state;
    static const float expected[] = {24, 12, 0, -12};
    char config[1024];
    size_t size_bytes = 0;
    call c;
    snprintf(config, sizeof config,
             "%soutput [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 4 ] },\n"
             "         { name: \"OUTPUT1\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n",
             pair_config);
    load(w, "addsub", "addsub", config);
    load(w, "addsub2", "addsub", config);
    snprintf(config, sizeof config,
             "%soutput [ { name: \"OUTPUT\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n"
             "parameters { key: \"difference_model\" value { string_value: \"addsub2\" } }\n",
             pair_config);
    load(w, "pipeline", "pipeline", config);
    for (int i = 0; i < 20; i++) {
        run_pipeline(w, "pipeline", &c);
        assert_memory_equal(call_output(&c, "OUTPUT", &size_bytes), expected, sizeof expected);
        call_deinit(&c);
    }
    /* One of the two models is missing: the response has the reason, after both calls are over. */
    ok(TRITONSERVER_ServerUnloadModel(w->server, "addsub2"));
    wait_for_index(w->server, "\"name\":\"addsub2\",\"version\":\"1\",\"state\":\"UNAVAILABLE\"");
    run_pipeline(w, "pipeline", &c);
    TRITONSERVER_Error *error = TRITONSERVER_InferenceResponseError(c.response);
    assert_non_null(error);
    contains(TRITONSERVER_ErrorMessage(error), "cannot call model 'addsub2'");
    TRITONSERVER_ErrorDelete(error);
    call_deinit(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(identity_copies_all_types, set_up, world_close),
        cmocka_unit_test_setup_teardown(identity_echoes_parameters_and_can_be_cancelled, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(repeat_sends_one_response_per_element, set_up, world_close),
        cmocka_unit_test_setup_teardown(repeat_ends_on_cancellation, set_up, world_close),
        cmocka_unit_test_setup_teardown(accumulator_keeps_one_sum_per_sequence, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(pipeline_joins_two_models, set_up, world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
