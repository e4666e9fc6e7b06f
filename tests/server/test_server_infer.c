/* SPDX-License-Identifier: Apache-2.0 */
/* Inference through the C API: correct responses, and errors for each kind of invalid request. */
#include "server/support.h"

static int set_up(void **state) {
    world *w = world_new();
    repo_model(&w->r, "addsub", addsub_config);
    repo_model(&w->r, "identity", identity_config);
    w->server = server_start(&w->r, &(server_setup){0});
    *state = w;
    return 0;
}

static TRITONSERVER_Server *server_of(void **state) {
    return ((world *)*state)->server;
}

static void check_sum(call *c, float value) {
    size_t size_bytes = 0;
    const float *sum = call_output(c, "OUTPUT0", &size_bytes);
    assert_int_equal(size_bytes, 16 * sizeof(float));
    const float *difference = call_output(c, "OUTPUT1", &size_bytes);
    for (int i = 0; i < 16; i++) {
        assert_true(sum[i] == value + (float)i + 1);
        assert_true(difference[i] == value + (float)i - 1);
    }
}

static void test_outputs_are_correct(void **state) {
    call c;
    float a[16], b[16];
    const char *id = NULL, *name = NULL;
    int64_t version = 0;
    call_init(&c, server_of(state), "addsub", -1);
    ok(TRITONSERVER_InferenceRequestSetId(c.request, "forty-two"));
    call_addsub(&c, a, b, 3);
    call_run(&c);
    check_sum(&c, 3);
    ok(TRITONSERVER_InferenceResponseId(c.response, &id));
    assert_string_equal(id, "forty-two");
    ok(TRITONSERVER_InferenceResponseModel(c.response, &name, &version));
    assert_string_equal(name, "addsub");
    assert_int_equal(version, 1);
    assert_int_equal(c.starts, 1);
    assert_int_equal(c.allocations, 2);
    call_clear(&c);
    assert_int_equal(c.frees, 2);
    call_deinit(&c);
}

static void test_request_can_be_resubmitted(void **state) {
    call c;
    float a[16], b[16];
    call_init(&c, server_of(state), "addsub", 1);
    call_addsub(&c, a, b, 0);
    for (int i = 0; i < 200; i++) {
        for (int k = 0; k < 16; k++)
            a[k] = (float)(i + k);
        call_run(&c);
        check_sum(&c, (float)i);
        call_clear(&c);
    }
    call_deinit(&c);
}

static void test_input_may_have_several_buffers(void **state) {
    static const int64_t shape[] = {1, 16};
    call c;
    float a[16], b[16];
    call_init(&c, server_of(state), "addsub", -1);
    call_addsub(&c, a, b, 5);
    ok(TRITONSERVER_InferenceRequestRemoveInput(c.request, "INPUT0"));
    ok(TRITONSERVER_InferenceRequestAddInput(c.request, "INPUT0", TRITONSERVER_TYPE_FP32, shape,
                                             2));
    for (int i = 0; i < 16; i += 4)
        ok(TRITONSERVER_InferenceRequestAppendInputData(c.request, "INPUT0", a + i, 16,
                                                        TRITONSERVER_MEMORY_CPU, 0));
    call_run(&c);
    check_sum(&c, 5);
    call_deinit(&c);
}

static void test_batch_is_executed(void **state) {
    static const int64_t shape[] = {8, 16};
    static float a[8 * 16], b[8 * 16];
    call c;
    size_t size_bytes = 0;
    call_init(&c, server_of(state), "addsub", -1);
    call_input(&c, "INPUT0", TRITONSERVER_TYPE_FP32, shape, 2, a, sizeof a);
    call_input(&c, "INPUT1", TRITONSERVER_TYPE_FP32, shape, 2, b, sizeof b);
    call_run(&c);
    call_output(&c, "OUTPUT0", &size_bytes);
    assert_int_equal(size_bytes, sizeof a);
    call_deinit(&c);
}

static void test_only_requested_outputs_are_returned(void **state) {
    call c;
    float a[16], b[16];
    uint32_t count = 0;
    call_init(&c, server_of(state), "addsub", -1);
    call_addsub(&c, a, b, 1);
    ok(TRITONSERVER_InferenceRequestAddRequestedOutput(c.request, "OUTPUT1"));
    ok(TRITONSERVER_InferenceRequestAddRequestedOutput(c.request, "OUTPUT1"));
    call_run(&c);
    ok(TRITONSERVER_InferenceResponseOutputCount(c.response, &count));
    assert_int_equal(count, 1);
    call_clear(&c);
    ok(TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(c.request));
    call_run(&c);
    ok(TRITONSERVER_InferenceResponseOutputCount(c.response, &count));
    assert_int_equal(count, 2);
    call_deinit(&c);
}

static void test_strings_and_empty_tensors_are_returned(void **state) {
    static const char bytes[] = "\x03\0\0\0abc\0\0\0\0\x01\0\0\0z";
    static const int64_t three[] = {3}, none[] = {0};
    call c;
    size_t size_bytes = 1;
    call_init(&c, server_of(state), "identity", -1);
    call_input(&c, "INPUT0", TRITONSERVER_TYPE_INT32, none, 1, NULL, 0);
    call_input(&c, "INPUT1", TRITONSERVER_TYPE_BYTES, three, 1, bytes, sizeof bytes - 1);
    call_run(&c);
    const void *text = call_output(&c, "OUTPUT1", &size_bytes);
    assert_int_equal(size_bytes, sizeof bytes - 1);
    assert_memory_equal(text, bytes, size_bytes);
    call_output(&c, "OUTPUT0", &size_bytes);
    assert_int_equal(size_bytes, 0);
    assert_int_equal(c.allocations, 2); /* includes the empty output */
    call_clear(&c);
    assert_int_equal(c.frees, 1); /* the empty output has no buffer */
    call_deinit(&c);
}

/* Submits a request, which must be rejected: the caller still owns it and no callback is called. */
static void rejected(call *c, const char *text) {
    fails(TRITONSERVER_ServerInferAsync(c->server, c->request, NULL),
          TRITONSERVER_ERROR_INVALID_ARG, text);
    assert_int_equal(c->releases + c->responses + c->finals, 0);
}

/* The server compares the names of a list with each other, so that long lists took minutes. */
static void test_length_of_lists_is_limited(void **state) {
    static const int64_t shape[] = {1, 16};
    TRITONSERVER_Error *error = NULL;
    call c;
    char name[24];
    int count;
    call_init(&c, server_of(state), "addsub", -1);
    for (count = 0; count < 10000 && error == NULL; count++) {
        snprintf(name, sizeof name, "INPUT%d", count);
        error = TRITONSERVER_InferenceRequestAddInput(c.request, name, TRITONSERVER_TYPE_FP32,
                                                      shape, 2);
    }
    assert_in_range(count, 3, 100);
    fails(error, TRITONSERVER_ERROR_INVALID_ARG, "too many inputs: model 'addsub' has 2");
    error = NULL;
    for (count = 0; count < 10000 && error == NULL; count++) {
        snprintf(name, sizeof name, "OUTPUT%d", count);
        error = TRITONSERVER_InferenceRequestAddRequestedOutput(c.request, name);
    }
    assert_in_range(count, 3, 100);
    fails(error, TRITONSERVER_ERROR_INVALID_ARG,
          "too many requested outputs: model 'addsub' has 2");
    error = NULL;
    for (count = 0; count < 10000 && error == NULL; count++) {
        snprintf(name, sizeof name, "parameter %d", count);
        error = TRITONSERVER_InferenceRequestSetIntParameter(c.request, name, count);
    }
    assert_in_range(count, 1000, 2000);
    fails(error, TRITONSERVER_ERROR_INVALID_ARG, "expected at most 1024 parameters");
    call_deinit(&c);
}

static void test_invalid_shapes_are_rejected(void **state) {
    static const int64_t narrow[] = {1, 15}, flat[] = {16}, crowd[] = {9, 16}, empty[] = {0, 16},
                         two[] = {2, 16}, negative[] = {-1, 16}, huge[] = {1, INT64_MAX},
                         one[] = {1, 16};
    static const struct {
        const int64_t *shape;
        uint64_t rank;
        const char *text;
    } cases[] = {
        {narrow, 2,
         "[request id: <id_unknown>] unexpected shape for input 'INPUT0' for model "
         "'addsub'. Expected [-1,16], got [1,15]. NOTE: Setting a non-zero"},
        {flat, 1, "input 'INPUT1' batch size does not match other inputs for 'addsub'"},
        {crowd, 2, "inference request batch-size must be <= 8 for 'addsub'"},
        {empty, 2, "inference request batch-size must be <= 8 for 'addsub'"},
        {two, 2, "input 'INPUT1' batch size does not match other inputs for 'addsub'"},
        {negative, 2, "inference request batch-size must be <= 8"},
        {huge, 2, "unexpected shape for input 'INPUT0'"},
        {one, 0, "input 'INPUT0' has no shape but model requires batch dimension for 'addsub'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        call c;
        float data[16] = {0};
        call_init(&c, server_of(state), "addsub", -1);
        call_input(&c, "INPUT0", TRITONSERVER_TYPE_FP32, cases[i].shape, cases[i].rank, data,
                   sizeof data);
        bool alone =
            cases[i].shape == crowd || cases[i].shape == empty || cases[i].shape == negative;
        call_input(&c, "INPUT1", TRITONSERVER_TYPE_FP32, alone ? cases[i].shape : one, 2, data,
                   sizeof data);
        rejected(&c, cases[i].text);
        call_deinit(&c);
    }
}

static void test_invalid_inputs_are_rejected(void **state) {
    static const int64_t one[] = {1, 16};
    float data[16] = {0};
    call c;
    call_init(&c, server_of(state), "addsub", -1);
    rejected(&c, "expected 2 inputs but got 0 inputs for model 'addsub'");
    call_input(&c, "INPUT0", TRITONSERVER_TYPE_FP32, one, 2, data, sizeof data);
    rejected(&c, "expected 2 inputs but got 1 inputs for model 'addsub'. Got input(s) ['INPUT0'], "
                 "but missing required input(s) ['INPUT1']. Please provide all required input(s).");
    call_input(&c, "NOVEL", TRITONSERVER_TYPE_FP32, one, 2, data, sizeof data);
    rejected(&c, "unexpected inference input 'NOVEL' for model 'addsub'");
    ok(TRITONSERVER_InferenceRequestRemoveInput(c.request, "NOVEL"));
    call_input(&c, "INPUT1", TRITONSERVER_TYPE_INT32, one, 2, data, sizeof data);
    rejected(&c,
             "inference input 'INPUT1' data-type is 'INT32', but model 'addsub' expects 'FP32'");
    ok(TRITONSERVER_InferenceRequestRemoveInput(c.request, "INPUT1"));
    call_input(&c, "INPUT1", TRITONSERVER_TYPE_FP32, one, 2, data, sizeof data - 4);
    rejected(&c, "input byte size mismatch for input 'INPUT1' for model 'addsub'. Expected 64, got "
                 "60");
    fails(
        TRITONSERVER_InferenceRequestAddInput(c.request, "INPUT1", TRITONSERVER_TYPE_FP32, one, 2),
        TRITONSERVER_ERROR_ALREADY_EXISTS, "input 'INPUT1' already exists in request");
    fails(TRITONSERVER_InferenceRequestRemoveInput(c.request, "NOVEL"),
          TRITONSERVER_ERROR_INVALID_ARG, "input 'NOVEL' does not exist in request");
    ok(TRITONSERVER_InferenceRequestRemoveAllInputData(c.request, "INPUT1"));
    ok(TRITONSERVER_InferenceRequestAppendInputData(c.request, "INPUT1", data, sizeof data,
                                                    TRITONSERVER_MEMORY_CPU, 0));
    ok(TRITONSERVER_InferenceRequestAddRequestedOutput(c.request, "OUTPUT7"));
    rejected(&c, "unexpected inference output 'OUTPUT7' for model 'addsub'");
    ok(TRITONSERVER_InferenceRequestRemoveRequestedOutput(c.request, "OUTPUT7"));
    call_run(&c); /* the same request without the error */
    size_t size_bytes = 0;
    call_output(&c, "OUTPUT0", &size_bytes);
    assert_int_equal(size_bytes, sizeof data);
    call_deinit(&c);
}

static void test_invalid_strings_are_rejected(void **state) {
    static const int64_t two[] = {2};
    static const struct {
        const char *bytes;
        size_t size_bytes;
        const char *text;
    } cases[] = {
        {"\x01\0\0\0a", 5,
         "unexpected number of string elements 1 for inference input 'INPUT1' for "
         "model 'identity', expecting 2"},
        {"\x01\0\0\0a\x09\0\0\0b", 10,
         "incomplete string data for inference input 'INPUT1' for "
         "model 'identity', expecting string of length 9 but only 1 "
         "bytes available"},
        {"\x01\0\0\0a\x09\0", 7,
         "incomplete string length indicator for inference input 'INPUT1' "
         "for model 'identity', expecting 4 bytes but only 2 bytes"},
        {"\xff\xff\xff\xff", 4, "expecting string of length 4294967295 but only 0 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        call c;
        call_init(&c, server_of(state), "identity", -1);
        call_input(&c, "INPUT1", TRITONSERVER_TYPE_BYTES, two, 1, cases[i].bytes,
                   cases[i].size_bytes);
        rejected(&c, cases[i].text);
        call_deinit(&c);
    }
}

static void test_unknown_models_are_not_found(void **state) {
    TRITONSERVER_InferenceRequest *request = NULL;
    bool ready = true;
    fails(TRITONSERVER_InferenceRequestNew(&request, server_of(state), "unknown", -1),
          TRITONSERVER_ERROR_NOT_FOUND, "Request for unknown model: 'unknown' is not found");
    fails(TRITONSERVER_InferenceRequestNew(&request, server_of(state), "addsub", 7),
          TRITONSERVER_ERROR_NOT_FOUND,
          "Request for unknown model: 'addsub' version 7 is not found");
    ok(TRITONSERVER_ServerModelIsReady(server_of(state), "unknown", -1, &ready));
    assert_false(ready);
    ready = true;
    ok(TRITONSERVER_ServerModelIsReady(server_of(state), "addsub", 7, &ready));
    assert_false(ready);
    ok(TRITONSERVER_ServerModelIsReady(server_of(state), "addsub", 1, &ready));
    assert_true(ready);
}

static void test_invalid_raw_input_is_rejected(void **state) {
    call c;
    float data[16] = {0};
    call_init(&c, server_of(state), "addsub", -1);
    ok(TRITONSERVER_InferenceRequestAddRawInput(c.request, "raw"));
    ok(TRITONSERVER_InferenceRequestAppendInputData(c.request, "raw", data, sizeof data,
                                                    TRITONSERVER_MEMORY_CPU, 0));
    rejected(&c, "Raw request must only have 1 input (found 1) to be deduced but got 2 inputs in "
                 "'addsub' model configuration");
    call_deinit(&c);
}

static void test_client_may_have_no_buffers(void **state) {
    call c;
    float a[16], b[16];
    size_t size_bytes = 0;
    call_init(&c, server_of(state), "addsub", -1);
    call_addsub(&c, a, b, 1);
    c.no_buffers = true;
    call_run(&c);
    assert_null(call_output(&c, "OUTPUT0", &size_bytes));
    assert_int_equal(size_bytes, sizeof a);
    call_clear(&c);
    assert_int_equal(c.frees, 0);
    c.no_buffers = false;
    call_run(&c);
    check_sum(&c, 1);
    call_deinit(&c);
}

static void test_raw_string_needs_no_length(void **state) {
    static const char config[] =
        "backend: \"identity\" input [ { name: \"INPUT0\" data_type: TYPE_STRING dims: [ 1 ] } ] "
        "output [ { name: \"OUTPUT0\" data_type: TYPE_STRING dims: [ 1 ] } ] "
        "instance_group [ { kind: KIND_CPU } ]";
    static const char *const texts[] = {"hello", "", "a longer text"};
    world w;
    call c;
    size_t size_bytes = 0;
    (void)state;
    repo_make(&w.r);
    repo_model(&w.r, "echo", config);
    w.server = server_start(&w.r, &(server_setup){0});
    call_init(&c, w.server, "echo", -1);
    ok(TRITONSERVER_InferenceRequestAddRawInput(c.request, "raw"));
    for (size_t i = 0; i < 6; i++) { /* each text twice, the second time with the same data */
        const char *text = texts[i / 2];
        uint32_t length = (uint32_t)strlen(text);
        if (i % 2 == 0) {
            ok(TRITONSERVER_InferenceRequestRemoveAllInputs(c.request));
            ok(TRITONSERVER_InferenceRequestAddRawInput(c.request, "raw"));
            ok(TRITONSERVER_InferenceRequestAppendInputData(c.request, "raw", text, length,
                                                            TRITONSERVER_MEMORY_CPU, 0));
        }
        call_run(&c);
        const char *output = call_output(&c, "OUTPUT0", &size_bytes);
        assert_int_equal(size_bytes, length + 4);
        assert_memory_equal(output, &length, 4);
        assert_memory_equal(output + 4, text, length);
        call_clear(&c);
    }
    call_deinit(&c);
    server_end(w.server);
    repo_remove(&w.r);
}

static void test_invalid_state_transitions_are_rejected(void **state) {
    bool cancelled = true;
    call c;
    float a[16], b[16];
    call_init(&c, server_of(state), "addsub", -1);
    fails(TRITONSERVER_InferenceRequestCancel(c.request), TRITONSERVER_ERROR_INTERNAL,
          "has not been submitted");
    call_addsub(&c, a, b, 1);
    call_run(&c);
    ok(TRITONSERVER_InferenceRequestIsCancelled(c.request, &cancelled));
    assert_false(cancelled);
    ok(TRITONSERVER_InferenceRequestCancel(c.request)); /* too late, without effect */
    call_deinit(&c);
}

static void test_failed_allocation_fails_the_request(void **state) {
    call c;
    float a[16], b[16];
    call_init(&c, server_of(state), "addsub", -1);
    call_addsub(&c, a, b, 1);
    c.fail_allocation = true;
    call_run(&c);
    call_fails(&c, TRITONSERVER_ERROR_UNAVAILABLE, "no room for outputs");
    call_clear(&c);
    assert_int_equal(c.frees, 0);
    c.fail_allocation = false;
    call_run(&c);
    check_sum(&c, 1);
    call_deinit(&c);
}

static void test_responses_outlive_the_server(void **state) {
    world w;
    call c;
    float a[16], b[16];
    (void)state;
    repo_make(&w.r);
    repo_model(&w.r, "addsub", addsub_config);
    w.server = server_start(&w.r, &(server_setup){0});
    call_init(&c, w.server, "addsub", -1);
    call_addsub(&c, a, b, 9);
    call_run(&c);
    server_end(w.server);
    check_sum(&c, 9);
    call_deinit(&c);
    repo_remove(&w.r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outputs_are_correct),
        cmocka_unit_test(test_request_can_be_resubmitted),
        cmocka_unit_test(test_input_may_have_several_buffers),
        cmocka_unit_test(test_batch_is_executed),
        cmocka_unit_test(test_only_requested_outputs_are_returned),
        cmocka_unit_test(test_strings_and_empty_tensors_are_returned),
        cmocka_unit_test(test_length_of_lists_is_limited),
        cmocka_unit_test(test_invalid_shapes_are_rejected),
        cmocka_unit_test(test_invalid_inputs_are_rejected),
        cmocka_unit_test(test_invalid_strings_are_rejected),
        cmocka_unit_test(test_unknown_models_are_not_found),
        cmocka_unit_test(test_invalid_raw_input_is_rejected),
        cmocka_unit_test(test_raw_string_needs_no_length),
        cmocka_unit_test(test_client_may_have_no_buffers),
        cmocka_unit_test(test_invalid_state_transitions_are_rejected),
        cmocka_unit_test(test_failed_allocation_fails_the_request),
        cmocka_unit_test(test_responses_outlive_the_server),
    };
    return cmocka_run_group_tests(tests, set_up, world_close);
}
