/* SPDX-License-Identifier: Apache-2.0 */
/* Warmup samples: repeat count, batches, data, execution on every instance, and failures. */
#include "server/support.h"

#include <sys/stat.h>

#define MODEL(backend, batch, count)                                       \
    "backend: \"" backend "\"\nmax_batch_size: " batch "\n"                \
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"   \
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n" \
    "instance_group [ { kind: KIND_CPU count: " count " } ]\n"
#define SAMPLE(rest) "model_warmup [ { name: \"first\" " rest " } ]\n"
#define INPUT(data) \
    "inputs { key: \"INPUT0\" value { data_type: TYPE_INT32 dims: [ 2 ] " data " } }"

static int set_up(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                             .backends = KELP_TEST_BACKENDS});
}

static char *stats_of(world *w, const char *name) {
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelStatistics(w->server, name, 1, &message));
    return message_text(message);
}

static void test_samples_run_on_every_instance(void **state) {
    world *w = *state;
    repo_model(&w->r, "good",
               MODEL("misbehave", "4", "2")
                   SAMPLE("batch_size: 3 count: 5 " INPUT("zero_data: true")));
    ok(TRITONSERVER_ServerLoadModel(w->server, "good"));
    char *stats = stats_of(w, "good");
    assert_int_equal(number_after(stats, "\"execution_count\":"), 10);
    contains(stats, "\"batch_stats\":[{\"batch_size\":3,\"compute_input\":{\"count\":10,");
    free(stats);
    call c;
    static const int64_t shape[] = {1, 2};
    static const int32_t data[] = {1, 2};
    call_init(&c, w->server, "good", -1);
    call_input(&c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 2, data, sizeof data);
    call_run(&c);
    size_t size_bytes = 0;
    call_output(&c, "OUTPUT0", &size_bytes);
    call_deinit(&c);
}

/* A sample waits for responses from other threads. */
static void test_samples_wait_for_late_responses(void **state) {
    world *w = *state;
    repo_model(&w->r, "elsewhere",
               MODEL("misbehave", "0", "1") SAMPLE("batch_size: 1 " INPUT("random_data: true")));
    ok(TRITONSERVER_ServerLoadModel(w->server, "elsewhere"));
    repo_model(&w->r, "decoupled",
               MODEL("misbehave", "0", "1") "model_transaction_policy { decoupled: true }\n" SAMPLE(
                   "batch_size: 1 " INPUT("random_data: true")));
    ok(TRITONSERVER_ServerLoadModel(w->server, "decoupled"));
    char *stats = stats_of(w, "decoupled");
    assert_int_equal(number_after(stats, "\"execution_count\":"), 1);
    free(stats);
}

static void test_batch_size_0_runs_nothing(void **state) {
    world *w = *state;
    repo_model(&w->r, "good-0", MODEL("misbehave", "4", "1") SAMPLE("batch_size: 0 count: 9"));
    ok(TRITONSERVER_ServerLoadModel(w->server, "good-0"));
    char *stats = stats_of(w, "good-0");
    assert_int_equal(number_after(stats, "\"execution_count\":"), 0);
    free(stats);
}

static void test_failure_fails_the_load(void **state) {
    static const struct {
        const char *name, *warmup, *text;
    } cases[] = {
        {"fail", SAMPLE("batch_size: 1 " INPUT("zero_data: true")), "the model has caught fire"},
        {"no_response", SAMPLE("batch_size: 1 " INPUT("zero_data: true")), "without a response"},
        {"good-1", SAMPLE("batch_size: 1"), "expected 1 inputs but got 0 inputs"},
        {"good-2", SAMPLE("batch_size: 1 " INPUT("")), "expected zero_data, random_data or"},
        {"good-3", SAMPLE("batch_size: 1 " INPUT("input_data_file: \"none\"")), "warmup/none"},
        {"good-4", SAMPLE("batch_size: 1 " INPUT("input_data_file: \"../../x\"")), "outside"},
        {"good-5", SAMPLE("batch_size: 1000 " INPUT("zero_data: true")), "found 1000"},
        {"good-6",
         SAMPLE("batch_size: 1 inputs { key: \"INPUT0\" value { data_type: TYPE_INT32 dims: [ -1 ] "
                "zero_data: true } }"),
         "every dimension"},
    };
    world *w = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char config[2048];
        snprintf(config, sizeof config, "%s%s", MODEL("misbehave", "0", "2"), cases[i].warmup);
        repo_model(&w->r, cases[i].name, config);
        TRITONSERVER_Error *error = TRITONSERVER_ServerLoadModel(w->server, cases[i].name);
        assert_non_null(error);
        contains(TRITONSERVER_ErrorMessage(error), "failed to run warmup sample 'first'");
        contains(TRITONSERVER_ErrorMessage(error), cases[i].text);
        TRITONSERVER_ErrorDelete(error);
    }
}

/* Data from files, including strings, with a backend that runs on the submitting thread. */
static void test_data_is_read_from_files(void **state) {
    static const char strings[] = "\x03\0\0\0abc\0\0\0\0";
    static const char config[] =
        "backend: \"identity\"\n"
        "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] },\n"
        "        { name: \"INPUT1\" data_type: TYPE_STRING dims: [ -1 ] } ]\n"
        "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] },\n"
        "         { name: \"OUTPUT1\" data_type: TYPE_STRING dims: [ -1 ] } ]\n"
        "model_warmup [ { name: \"files\" batch_size: 1 count: 3\n"
        " inputs { key: \"INPUT0\" value { data_type: TYPE_INT32 dims: [ 1 ] input_data_file: "
        "\"numbers\" } }\n"
        " inputs { key: \"INPUT1\" value { data_type: TYPE_STRING dims: [ 2 ] input_data_file: "
        "\"strings\" } } },\n"
        "{ name: \"none\" batch_size: 1\n"
        " inputs { key: \"INPUT0\" value { data_type: TYPE_INT32 dims: [ 0 ] zero_data: true } }\n"
        " inputs { key: \"INPUT1\" value { data_type: TYPE_STRING dims: [ 2 ] random_data: true } "
        "} } ]\n";
    repo r;
    char path[400];
    (void)state;
    repo_make(&r);
    repo_model(&r, "m", config);
    snprintf(path, sizeof path, "%s/m/warmup", r.path);
    mkdir(path, 0755);
    repo_file(&r, "m/warmup/numbers", "1234");
    snprintf(path, sizeof path, "%s/m/warmup/strings", r.path);
    FILE *file = fopen(path, "w");
    fwrite(strings, 1, sizeof strings - 1, file);
    fclose(file);
    TRITONSERVER_Server *server = server_start(&r, &(server_setup){0});
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelStatistics(server, "m", 1, &message));
    char *stats = message_text(message);
    assert_int_equal(number_after(stats, "\"execution_count\":"), 4);
    assert_int_equal(number_after(stats, "\"success\":{\"count\":"), 4);
    free(stats);
    server_end(server);
    /* Too few bytes, also on the submitting thread. */
    repo_file(&r, "m/warmup/numbers", "12");
    fails(server_try(&r, &(server_setup){0}, &server), TRITONSERVER_ERROR_INTERNAL,
          "expected 4 bytes, found 2 in 'warmup/numbers'");
    repo_remove(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_run_on_every_instance),
        cmocka_unit_test(test_samples_wait_for_late_responses),
        cmocka_unit_test(test_batch_size_0_runs_nothing),
        cmocka_unit_test(test_failure_fails_the_load),
        cmocka_unit_test(test_data_is_read_from_files),
    };
    return cmocka_run_group_tests(tests, set_up, world_close);
}
