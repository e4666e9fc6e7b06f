/* SPDX-License-Identifier: Apache-2.0 */
/* Backends that do what they must not, or what is seldom done: whoever asked always gets an end,
 * and the server goes on. */
#include "server/support.h"

#define CONFIG_OF(backend)                                                 \
    "backend: \"" backend "\"\n"                                           \
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"   \
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n" \
    "instance_group [ { kind: KIND_CPU count: 1 } ]\n"

static const int64_t shape[] = {2};
static const int32_t data[] = {1, 2};

typedef struct world {
    repo r;
    TRITONSERVER_Server *server;
} world;

static int set_up(void **state) {
    world *w = calloc(1, sizeof *w);
    repo_make(&w->r);
    w->server = server_start(&w->r, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                                    .complete = true,
                                                    .backends = KELP_TEST_BACKENDS});
    *state = w;
    return 0;
}

static int tear_down(void **state) {
    world *w = *state;
    server_end(w->server);
    repo_remove(&w->r);
    free(w);
    return 0;
}

static void open_model(world *w, const char *name, const char *config, call *c) {
    repo_model(&w->r, name, config);
    ok(TRITONSERVER_ServerLoadModel(w->server, name));
    call_init(c, w->server, name, -1);
    call_input(c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, data, sizeof data);
}

static void close_model(world *w, const char *name, call *c) {
    char gone[256];
    call_deinit(c);
    ok(TRITONSERVER_ServerUnloadModel(w->server, name));
    snprintf(
        gone, sizeof gone,
        "{\"name\":\"%s\",\"version\":\"1\",\"state\":\"UNAVAILABLE\",\"reason\":\"unloaded\"}",
        name);
    wait_for_index(w->server, gone); /* nothing of it is left in flight */
}

static void check_output(call *c) {
    static const int32_t expected[] = {7, 8};
    size_t size_bytes = 0;
    assert_memory_equal(call_output(c, "OUTPUT0", &size_bytes), expected, sizeof expected);
}

static void test_good_conduct(void **state) {
    call c;
    open_model(*state, "good", CONFIG_OF("misbehave"), &c);
    for (int i = 0; i < 3; i++) {
        call_run(&c);
        check_output(&c);
        call_clear(&c);
    }
    close_model(*state, "good", &c);
}

static void test_execute_that_fails(void **state) {
    TRITONSERVER_Message *message = NULL;
    call c;
    open_model(*state, "fail", CONFIG_OF("misbehave"), &c);
    for (int i = 0; i < 3; i++) {
        call_run(&c);
        call_fails(&c, TRITONSERVER_ERROR_INTERNAL, "the model has caught fire");
        call_clear(&c);
    }
    ok(TRITONSERVER_ServerModelStatistics(((world *)*state)->server, "fail", 1, &message));
    char *stats = message_text(message);
    assert_int_equal(number_after(stats, "\"fail\":{\"count\":"), 3);
    assert_int_equal(number_after(stats, "\"inference_count\":"), 0);
    contains(stats, "\"memory_usage\":[{\"type\":\"CPU\",\"id\":0,\"byte_size\":1234}]");
    free(stats);
    close_model(*state, "fail", &c);
}

static void test_no_answer_becomes_an_error(void **state) {
    static const char *const names[] = {"no_response", "unsent"};
    for (int i = 0; i < 2; i++) {
        call c;
        open_model(*state, names[i], CONFIG_OF("misbehave"), &c);
        call_run(&c);
        call_fails(&c, TRITONSERVER_ERROR_INTERNAL, "without a response");
        assert_int_equal(c.responses, 1);
        close_model(*state, names[i], &c);
    }
}

static void test_no_final_is_said_by_the_server(void **state) {
    call c;
    open_model(*state, "no_final", CONFIG_OF("misbehave"), &c);
    call_run(&c);
    check_output(&c);
    assert_int_equal(c.responses, 1);
    close_model(*state, "no_final", &c);
}

static void test_releases(void **state) {
    static const char *const names[] = {"double_release", "reschedule"};
    for (int i = 0; i < 2; i++) {
        call c;
        open_model(*state, names[i], CONFIG_OF("misbehave"), &c);
        call_run(&c);
        check_output(&c);
        close_model(*state, names[i], &c);
    }
}

static void test_backend_that_forgets_everything(void **state) {
    TRITONSERVER_Message *message = NULL;
    call c;
    open_model(*state, "forgetful", CONFIG_OF("forgetful"), &c);
    call_run(&c);
    call_fails(&c, TRITONSERVER_ERROR_INTERNAL, "without a response");
    /* It cannot report either, so the server counts. */
    ok(TRITONSERVER_ServerModelStatistics(((world *)*state)->server, "forgetful", 1, &message));
    char *stats = message_text(message);
    assert_int_equal(number_after(stats, "\"execution_count\":"), 1);
    assert_int_equal(number_after(stats, "\"fail\":{\"count\":"), 1);
    assert_int_equal(number_after(stats, "\"inference_count\":"), 0);
    free(stats);
    close_model(*state, "forgetful", &c);
}

static void test_decoupled_answers(void **state) {
    world *w = *state;
    uint32_t flags = 0;
    call c;
    open_model(w, "decoupled",
               CONFIG_OF("misbehave") "model_transaction_policy { decoupled: true }\n", &c);
    ok(TRITONSERVER_ServerModelTransactionProperties(w->server, "decoupled", 1, &flags, NULL));
    assert_int_equal(flags, TRITONSERVER_TXN_DECOUPLED);
    for (int i = 0; i < 3; i++) {
        const char *name = NULL;
        TRITONSERVER_ParameterType type;
        const void *value = NULL;
        call_run(&c);
        assert_int_equal(c.responses, 3);
        check_output(&c);
        ok(TRITONSERVER_InferenceResponseParameter(c.response, 0, &name, &type, &value));
        assert_string_equal(name, "index");
        assert_int_equal(type, TRITONSERVER_PARAMETER_INT);
        assert_int_equal(*(const int64_t *)value, 2);
        fails(TRITONSERVER_InferenceResponseParameter(c.response, 1, &name, &type, &value),
              TRITONSERVER_ERROR_INVALID_ARG, "out of bounds index 1");
        call_clear(&c);
    }
    /* Unloading waits for the factory, though the request was released long ago. */
    call_start(&c);
    ok(TRITONSERVER_ServerUnloadModel(w->server, "decoupled"));
    call_wait(&c);
    assert_int_equal(c.responses, 3);
    wait_for_index(w->server, "\"name\":\"decoupled\",\"version\":\"1\",\"state\":\"UNAVAILABLE\"");
    call_deinit(&c);
}

static void test_cancellation_reaches_the_backend(void **state) {
    bool cancelled = false;
    call c;
    open_model(*state, "cancel", CONFIG_OF("misbehave"), &c);
    call_start(&c);
    pthread_mutex_lock(&c.lock);
    while (!c.releases) /* the backend has it */
        pthread_cond_wait(&c.changed, &c.lock);
    pthread_mutex_unlock(&c.lock);
    ok(TRITONSERVER_InferenceRequestCancel(c.request));
    ok(TRITONSERVER_InferenceRequestIsCancelled(c.request, &cancelled));
    assert_true(cancelled);
    call_wait(&c);
    call_fails(&c, TRITONSERVER_ERROR_CANCELLED, "given up");
    close_model(*state, "cancel", &c);
}

static void test_initialization_that_fails(void **state) {
    world *w = *state;
    repo_model(&w->r, "init_error", CONFIG_OF("misbehave"));
    fails(TRITONSERVER_ServerLoadModel(w->server, "init_error"), TRITONSERVER_ERROR_INVALID_ARG,
          "load failed for model 'init_error': version 1 is at UNAVAILABLE state: no model would "
          "please me");
    wait_for_index(w->server, "\"reason\":\"no model would please me\"");
    repo_model(&w->r, "instance_error", CONFIG_OF("misbehave"));
    fails(TRITONSERVER_ServerLoadModel(w->server, "instance_error"), TRITONSERVER_ERROR_UNAVAILABLE,
          "no instance today");
}

static void test_backend_completes_the_configuration(void **state) {
    world *w = *state;
    TRITONSERVER_Message *message = NULL;
    repo_model(&w->r, "complete", "backend: \"misbehave\"\n");
    ok(TRITONSERVER_ServerLoadModel(w->server, "complete"));
    ok(TRITONSERVER_ServerModelConfig(w->server, "complete", -1, 1, &message));
    char *text = message_text(message);
    contains(text, "\"max_batch_size\":4");
    contains(text, "\"name\":\"INPUT0\",\"data_type\":\"TYPE_INT32\"");
    free(text);
}

static void test_exit_timeout(void **state) {
    repo r;
    call c;
    (void)state;
    repo_make(&r);
    repo_model(&r, "cancel", CONFIG_OF("misbehave"));
    TRITONSERVER_Server *server = server_start(
        &r, &(server_setup){.exit_timeout_s = 1, .complete = true, .backends = KELP_TEST_BACKENDS});
    call_init(&c, server, "cancel", -1);
    call_input(&c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, data, sizeof data);
    call_start(&c);
    fails(TRITONSERVER_ServerStop(server), TRITONSERVER_ERROR_INTERNAL, "Exit timeout expired");
    ok(TRITONSERVER_InferenceRequestCancel(c.request));
    call_wait(&c);
    call_deinit(&c);
    server_end(server); /* nothing is in flight any more */
    repo_remove(&r);
}

/* ---- traces ---- */

typedef struct trace_seen {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned activities;
    unsigned releases;
} trace_seen;

static void on_activity(TRITONSERVER_InferenceTrace *trace,
                        TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns,
                        void *userp) {
    trace_seen *seen = userp;
    (void)trace;
    assert_true(timestamp_ns > 0);
    pthread_mutex_lock(&seen->lock);
    seen->activities |= 1u << activity;
    pthread_mutex_unlock(&seen->lock);
}

static void on_trace_release(TRITONSERVER_InferenceTrace *trace, void *userp) {
    trace_seen *seen = userp;
    const char *name = NULL;
    ok(TRITONSERVER_InferenceTraceModelName(trace, &name));
    assert_string_equal(name, "good-traced");
    ok(TRITONSERVER_InferenceTraceDelete(trace));
    pthread_mutex_lock(&seen->lock);
    seen->releases++;
    pthread_cond_broadcast(&seen->changed);
    pthread_mutex_unlock(&seen->lock);
}

static void test_trace_comes_back(void **state) {
    world *w = *state;
    trace_seen seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    TRITONSERVER_InferenceTrace *trace = NULL;
    call c;
    open_model(w, "good-traced", CONFIG_OF("misbehave"), &c);
    ok(TRITONSERVER_InferenceTraceNew(&trace, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, on_activity,
                                      on_trace_release, &seen));
    ok(TRITONSERVER_ServerInferAsync(w->server, c.request, trace));
    call_wait(&c);
    pthread_mutex_lock(&seen.lock);
    while (!seen.releases)
        pthread_cond_wait(&seen.changed, &seen.lock);
    pthread_mutex_unlock(&seen.lock);
    assert_int_equal(seen.activities & 3, 3);
    assert_true(seen.activities & (1u << TRITONSERVER_TRACE_REQUEST_END));
    close_model(w, "good-traced", &c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_conduct),
        cmocka_unit_test(test_execute_that_fails),
        cmocka_unit_test(test_no_answer_becomes_an_error),
        cmocka_unit_test(test_no_final_is_said_by_the_server),
        cmocka_unit_test(test_releases),
        cmocka_unit_test(test_backend_that_forgets_everything),
        cmocka_unit_test(test_decoupled_answers),
        cmocka_unit_test(test_cancellation_reaches_the_backend),
        cmocka_unit_test(test_initialization_that_fails),
        cmocka_unit_test(test_backend_completes_the_configuration),
        cmocka_unit_test(test_exit_timeout),
        cmocka_unit_test(test_trace_comes_back),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
