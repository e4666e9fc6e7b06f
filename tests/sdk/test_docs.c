/* SPDX-License-Identifier: Apache-2.0 */
/* The backends of the documentation and of `kelp new` work as described. */
#include "server/support.h"

static const char scale_config[] =
    "backend: \"my_scale\"\nmax_batch_size: 8\n"
    "input [ { name: \"INPUT\" data_type: TYPE_FP32 dims: [ -1 ] } ]\n"
    "output [ { name: \"OUTPUT\" data_type: TYPE_FP32 dims: [ -1 ] } ]\n"
    "parameters { key: \"scale\" value { string_value: \"%s\" } }\n";
static const char stream_config[] =
    "backend: \"stream\"\nmodel_transaction_policy { decoupled: true }\n"
    "input [ { name: \"IN\" data_type: TYPE_FP32 dims: [ -1 ] } ]\n"
    "output [ { name: \"OUT\" data_type: TYPE_FP32 dims: [ 1, 1 ] } ]\n";

static void load_scale(const repo *r, TRITONSERVER_Server *server, const char *scale) {
    char config[512];
    snprintf(config, sizeof config, scale_config, scale);
    repo_model(r, "my_scale", config);
    ok(TRITONSERVER_ServerLoadModel(server, "my_scale"));
}

static void example_backends_of_the_documentation_work(void **state) {
    repo r;
    call c;
    size_t size_bytes = 0;
    static const float values[] = {1, 2, -3};
    (void)state;
    repo_make(&r);
    TRITONSERVER_Server *server =
        server_start(&r, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                         .backends = KELP_TEST_BACKENDS});
    load_scale(&r, server, "2");
    call_init(&c, server, "my_scale", -1);
    call_input(&c, "INPUT", TRITONSERVER_TYPE_FP32, (int64_t[]){1, 3}, 2, values, sizeof values);
    call_run(&c);
    const float *scaled = call_output(&c, "OUTPUT", &size_bytes);
    assert_true(scaled[0] == 2 && scaled[1] == 4 && scaled[2] == -6);
    call_deinit(&c);

    repo_model(&r, "stream", stream_config);
    ok(TRITONSERVER_ServerLoadModel(server, "stream"));
    call_init(&c, server, "stream", -1);
    call_input(&c, "IN", TRITONSERVER_TYPE_FP32, (int64_t[]){3}, 1, values, sizeof values);
    for (int i = 0; i < 10; i++) {
        call_run(&c);
        assert_int_equal(c.responses, 3);
        (void)call_output(&c, "OUT", &size_bytes);
        assert_int_equal(size_bytes, 4);
        call_clear(&c);
    }
    /* Without the model that it calls, the response has the reason. */
    ok(TRITONSERVER_ServerUnloadModel(server, "my_scale"));
    wait_for_index(server, "\"name\":\"my_scale\",\"version\":\"1\",\"state\":\"UNAVAILABLE\"");
    call_run(&c);
    assert_int_equal(c.responses, 1);
    TRITONSERVER_Error *error = TRITONSERVER_InferenceResponseError(c.response);
    contains(TRITONSERVER_ErrorMessage(error), "cannot call model 'my_scale'");
    TRITONSERVER_ErrorDelete(error);
    call_deinit(&c);

    repo_drop(&r, "my_scale");
    char config[512];
    snprintf(config, sizeof config, scale_config, "twice");
    repo_model(&r, "my_scale", config);
    fails(TRITONSERVER_ServerLoadModel(server, "my_scale"), TRITONSERVER_ERROR_INVALID_ARG,
          "parameter 'scale' of model 'my_scale': expected a number, found 'twice'");
    server_end(server);
    repo_remove(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(example_backends_of_the_documentation_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
