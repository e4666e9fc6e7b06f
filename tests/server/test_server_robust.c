/* SPDX-License-Identifier: Apache-2.0 */
/* Backends with errors or unusual behavior: every request ends, and the server continues. */
#include "server/support.h"

#include <dlfcn.h>
#include <time.h>

#define CONFIG_OF(backend)                                                 \
    "backend: \"" backend "\"\n"                                           \
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"   \
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n" \
    "instance_group [ { kind: KIND_CPU count: 1 } ]\n"

static const int64_t shape[] = {2};
static const int32_t data[] = {1, 2};

static int set_up(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                             .complete = true,
                                             .backends = KELP_TEST_BACKENDS});
}

static void open_model(world *w, const char *name, const char *config, call *c) {
    world_load(w, name, config);
    call_init(c, w->server, name, -1);
    call_input(c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, data, sizeof data);
}

static void close_model(world *w, const char *name, call *c) {
    call_deinit(c);
    world_unload(w, name); /* no submission is in flight */
}

static void check_output(call *c) {
    static const int32_t expected[] = {7, 8};
    size_t size_bytes = 0;
    assert_memory_equal(call_output(c, "OUTPUT0", &size_bytes), expected, sizeof expected);
}

static void test_correct_backends_respond(void **state) {
    call c;
    open_model(*state, "good", CONFIG_OF("misbehave"), &c);
    for (int i = 0; i < 3; i++) {
        call_run(&c);
        check_output(&c);
        call_clear(&c);
    }
    close_model(*state, "good", &c);
}

static void test_execute_error_becomes_the_response(void **state) {
    TRITONSERVER_Message *message = NULL;
    call c;
    open_model(*state, "fail", CONFIG_OF("misbehave"), &c);
    for (int i = 0; i < 3; i++) {
        call_run(&c);
        call_fails(&c, TRITONSERVER_ERROR_INTERNAL, "the model has caught fire");
        call_clear(&c);
    }
    ok(TRITONSERVER_ServerModelStatistics(((world *)*state)->server, "fail", 1, &message));
    char *stats = message_text(message), *page = metrics_of(((world *)*state)->server);
    contains(page, "{model=\"fail\",reason=\"BACKEND\",version=\"1\"} 3\n");
    free(page);
    assert_int_equal(number_after(stats, "\"fail\":{\"count\":"), 3);
    assert_int_equal(number_after(stats, "\"inference_count\":"), 0);
    contains(stats, "\"memory_usage\":[{\"type\":\"CPU\",\"id\":0,\"byte_size\":1234}]");
    free(stats);
    close_model(*state, "fail", &c);
}

static void test_missing_response_becomes_an_error(void **state) {
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

static void test_server_sends_missing_final(void **state) {
    call c;
    open_model(*state, "no_final", CONFIG_OF("misbehave"), &c);
    call_run(&c);
    check_output(&c);
    assert_int_equal(c.responses, 1);
    close_model(*state, "no_final", &c);
}

static void test_invalid_releases_are_rejected(void **state) {
    static const char *const names[] = {"double_release", "reschedule"};
    for (int i = 0; i < 2; i++) {
        call c;
        open_model(*state, names[i], CONFIG_OF("misbehave"), &c);
        call_run(&c);
        check_output(&c);
        close_model(*state, names[i], &c);
    }
}

static void test_factories_can_be_created_after_the_release(void **state) {
    static const char config[] = CONFIG_OF("misbehave") "parameters [{ key: \"kelp_execute_on\" "
                                                        "value { string_value: \"caller\" } }]";
    call c;
    open_model(*state, "late_factory", config, &c);
    for (int round = 0; round < 3; round++) {
        call_run(&c);
        check_output(&c);
        assert_int_equal(c.responses, 1);
        call_clear(&c);
    }
    close_model(*state, "late_factory", &c);
}

/* Unusual sequences of calls that lead to one response. The backend ends the test if the server
 * does not reject its invalid calls. */
static void test_invalid_calls_do_not_change_the_response(void **state) {
    static const char *const names[] = {
        "touch", "again", "use_after", "elsewhere", "respond_then_fail", "release_then_fail"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        call c;
        open_model(*state, names[i], CONFIG_OF("misbehave"), &c);
        for (int round = 0; round < 5; round++) {
            call_run(&c);
            check_output(&c);
            assert_int_equal(c.responses, 1);
            call_clear(&c);
        }
        close_model(*state, names[i], &c);
    }
}

/* The caller deletes the request in its release callback, and then Execute fails. */
static void delete_request(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
                           void *userp) {
    call *c = userp;
    (void)flags;
    ok(TRITONSERVER_InferenceRequestDelete(request));
    pthread_mutex_lock(&c->lock);
    c->releases++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void test_execute_can_fail_after_the_request_is_deleted(void **state) {
    world *w = *state;
    call c;
    open_model(w, "release_then_fail-gone", CONFIG_OF("misbehave"), &c);
    ok(TRITONSERVER_InferenceRequestSetReleaseCallback(c.request, delete_request, &c));
    call_run(&c);
    check_output(&c);
    fails(TRITONSERVER_InferenceRequestDelete(c.request), TRITONSERVER_ERROR_INTERNAL,
          "deleted before");
    fails(TRITONSERVER_ServerInferAsync(w->server, c.request, NULL), TRITONSERVER_ERROR_INTERNAL,
          "deleted before");
    TRITONSERVER_InferenceResponse *response = c.response;
    call_clear(&c);
    fails(TRITONSERVER_InferenceResponseDelete(response), TRITONSERVER_ERROR_INTERNAL,
          "deleted before");
    ok(TRITONSERVER_InferenceRequestNew(&c.request, w->server, "release_then_fail-gone", -1));
    close_model(w, "release_then_fail-gone", &c);
}

/* The caller deletes the request in its release callback, and the backend uses it after that. A
 * release for rescheduling used to read the model of the deleted request. */
static void test_backend_cannot_use_a_deleted_request(void **state) {
    world *w = *state;
    call c;
    open_model(w, "use_after-deleted", CONFIG_OF("misbehave"), &c);
    ok(TRITONSERVER_InferenceRequestSetReleaseCallback(c.request, delete_request, &c));
    call_run(&c);
    check_output(&c);
    call_clear(&c);
    ok(TRITONSERVER_InferenceRequestNew(&c.request, w->server, "use_after-deleted", -1));
    close_model(w, "use_after-deleted", &c);
}

static void test_several_threads_respond(void **state) {
    call c;
    open_model(*state, "crowd",
               CONFIG_OF("misbehave") "model_transaction_policy { decoupled: true }\n", &c);
    for (int round = 0; round < 5; round++) {
        call_run(&c);
        assert_int_equal(c.responses, 20);
        check_output(&c);
        call_clear(&c);
    }
    /* Unload while the backend responds. */
    call_start(&c);
    ok(TRITONSERVER_ServerUnloadModel(((world *)*state)->server, "crowd"));
    call_wait(&c);
    assert_int_equal(c.responses, 20);
    call_clear(&c);
    call_deinit(&c);
    wait_for_index(((world *)*state)->server, "{\"name\":\"crowd\",\"version\":\"1\",\"state\":"
                                              "\"UNAVAILABLE\",\"reason\":\"unloaded\"}");
}

/* ---- a backend that fails at each entry point ---- */

typedef struct unlucky_counts {
    int initialized, finalized, models, models_gone, instances, instances_gone, executions, held;
} unlucky_counts;

/* A backend is never unmapped, so that its counts can be read after it was finalized. */
static unlucky_counts *unlucky(void) {
    static unlucky_counts *seen;
    if (!seen) {
        void *library =
            dlopen(KELP_TEST_BACKENDS "/unlucky/libtriton_unlucky.so", RTLD_LAZY | RTLD_NOLOAD);
        assert_non_null(library);
        seen = dlsym(library, "unlucky_seen");
        dlclose(library);
        assert_non_null(seen);
    }
    return seen;
}

static TRITONSERVER_Server *unlucky_server(repo *r, const char *fail_at) {
    repo_make(r);
    repo_model(r, "m",
               "backend: \"unlucky\"\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"
               "instance_group [ { kind: KIND_CPU count: 2 } ]\n");
    return server_start(r, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                           .backends = KELP_TEST_BACKENDS,
                                           .backend_setting = {"unlucky", "fail_at", fail_at}});
}

/* No memory is held, and every object that was initialized was finalized. */
static void unlucky_end(TRITONSERVER_Server *server, repo *r) {
    server_end(server);
    repo_remove(r);
    const unlucky_counts *seen = unlucky();
    assert_int_equal(seen->held, 0);
    assert_int_equal(seen->initialized, seen->finalized);
    assert_int_equal(seen->models, seen->models_gone);
    assert_int_equal(seen->instances, seen->instances_gone);
}

static void test_failed_entry_point_fails_the_load(void **state) {
    static const char *const points[] = {"initialize", "attribute", "model", "instance",
                                         "second_instance"};
    (void)state;
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        repo r;
        char reason[128];
        TRITONSERVER_Server *server = unlucky_server(&r, points[i]);
        for (int round = 0; round < 3; round++)
            fails(TRITONSERVER_ServerLoadModel(server, "m"), TRITONSERVER_ERROR_UNAVAILABLE,
                  points[i]);
        snprintf(reason, sizeof reason, "%s\"}", points[i]);
        wait_for_index(server, reason);
        unlucky_end(server, &r);
        if (i < 2)
            assert_int_equal(unlucky()->models, 0);
    }
    assert_int_equal(unlucky()->executions, 0);
}

static void test_failed_entry_point_leaves_the_server_working(void **state) {
    static const char *const points[] = {"nowhere",       "execute",    "ready",
                                         "instance_gone", "model_gone", "finalize"};
    (void)state;
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        repo r;
        call c;
        bool ready = false, unready = strcmp(points[i], "ready") == 0;
        TRITONSERVER_Server *server = unlucky_server(&r, points[i]);
        ok(TRITONSERVER_ServerLoadModel(server, "m"));
        ok(TRITONSERVER_ServerModelIsReady(server, "m", 1, &ready));
        assert_int_equal(ready, !unready);
        ok(TRITONSERVER_ServerIsReady(server, &ready));
        assert_int_equal(ready, !unready);
        call_init(&c, server, "m", -1);
        call_input(&c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, data, sizeof data);
        call_run(&c);
        if (strcmp(points[i], "execute") == 0)
            call_fails(&c, TRITONSERVER_ERROR_UNAVAILABLE, "execute");
        else
            ok(TRITONSERVER_InferenceResponseError(c.response));
        call_deinit(&c);
        ok(TRITONSERVER_ServerLoadModel(server, "m")); /* again */
        ok(TRITONSERVER_ServerUnloadModel(server, "m"));
        wait_for_index(server, "\"reason\":\"unloaded\"");
        unlucky_end(server, &r);
    }
}

static void test_backend_that_never_responds_or_releases(void **state) {
    TRITONSERVER_Message *message = NULL;
    call c;
    open_model(*state, "forgetful", CONFIG_OF("forgetful"), &c);
    call_run(&c);
    call_fails(&c, TRITONSERVER_ERROR_INTERNAL, "without a response");
    /* The backend cannot report statistics either, so that the server counts. */
    ok(TRITONSERVER_ServerModelStatistics(((world *)*state)->server, "forgetful", 1, &message));
    char *stats = message_text(message);
    assert_int_equal(number_after(stats, "\"execution_count\":"), 1);
    assert_int_equal(number_after(stats, "\"fail\":{\"count\":"), 1);
    assert_int_equal(number_after(stats, "\"inference_count\":"), 0);
    free(stats);
    close_model(*state, "forgetful", &c);
}

/* A response after the release is counted as success or failure. */
static void test_late_responses_are_counted(void **state) {
    static const int32_t wrong[] = {-1, 0};
    world *w = *state;
    call c;
    open_model(w, "late", CONFIG_OF("late"), &c);
    call_run(&c);
    ok(TRITONSERVER_InferenceResponseError(c.response));
    call_clear(&c);
    ok(TRITONSERVER_InferenceRequestRemoveAllInputs(c.request));
    call_input(&c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, wrong, sizeof wrong);
    for (int i = 0; i < 2; i++) {
        call_run(&c);
        call_fails(&c, TRITONSERVER_ERROR_INTERNAL, "it went wrong later");
        call_clear(&c);
    }
    long long succeeded = 0, failed = 0;
    for (int i = 0; i < 1000 && succeeded + failed < 3; i++) {
        TRITONSERVER_Message *message = NULL;
        ok(TRITONSERVER_ServerModelStatistics(w->server, "late", 1, &message));
        char *stats = message_text(message);
        succeeded = number_after(stats, "\"success\":{\"count\":");
        failed = number_after(stats, "\"fail\":{\"count\":");
        free(stats);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    assert_int_equal(succeeded, 1);
    assert_int_equal(failed, 2);
    close_model(w, "late", &c);
}

/* ---- what was deleted ---- */

/* Calls all functions with a deleted request: they fail, or have no effect. */
static void use_request(TRITONSERVER_Server *server, TRITONSERVER_InferenceRequest *request) {
    const char *text = NULL;
    uint32_t number = 0;
    uint64_t big = 0;
    bool flag = false;
    fails(TRITONSERVER_InferenceRequestDelete(request), TRITONSERVER_ERROR_INTERNAL,
          "deleted before");
    fails(TRITONSERVER_ServerInferAsync(server, request, NULL), TRITONSERVER_ERROR_INTERNAL,
          "deleted before");
    fails(TRITONSERVER_InferenceRequestCancel(request), TRITONSERVER_ERROR_INTERNAL, "");
    fails(TRITONSERVER_InferenceRequestIsCancelled(request, &flag), TRITONSERVER_ERROR_INTERNAL,
          "");
    ok(TRITONSERVER_InferenceRequestId(request, &text));
    ok(TRITONSERVER_InferenceRequestSetId(request, "gone"));
    ok(TRITONSERVER_InferenceRequestFlags(request, &number));
    ok(TRITONSERVER_InferenceRequestSetFlags(request, 0));
    ok(TRITONSERVER_InferenceRequestCorrelationId(request, &big));
    ok(TRITONSERVER_InferenceRequestPriorityUInt64(request, &big));
    ok(TRITONSERVER_InferenceRequestTimeoutMicroseconds(request, &big));
    fails(TRITONSERVER_InferenceRequestAppendInputData(request, "INPUT0", data, sizeof data,
                                                       TRITONSERVER_MEMORY_CPU, 0),
          TRITONSERVER_ERROR_INVALID_ARG, "");
    fails(TRITONSERVER_InferenceRequestRemoveInput(request, "INPUT0"),
          TRITONSERVER_ERROR_INVALID_ARG, "");
    ok(TRITONSERVER_InferenceRequestAddInput(request, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1));
    ok(TRITONSERVER_InferenceRequestAddRequestedOutput(request, "OUTPUT0"));
    ok(TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(request));
    ok(TRITONSERVER_InferenceRequestSetStringParameter(request, "name", "value"));
}

static void use_response(TRITONSERVER_InferenceResponse *response) {
    const char *text = NULL;
    int64_t version = 0;
    uint32_t count = 0;
    TRITONSERVER_DataType datatype;
    const int64_t *dims = NULL;
    uint64_t rank = 0;
    const void *base = NULL;
    size_t size_bytes = 0;
    TRITONSERVER_MemoryType memory;
    TRITONSERVER_ParameterType type;
    int64_t id = 0;
    void *userp = NULL;
    TRITONSERVER_Error *const rejected[] = {
        TRITONSERVER_InferenceResponseDelete(response),
        TRITONSERVER_InferenceResponseError(response),
        TRITONSERVER_InferenceResponseModel(response, &text, &version),
        TRITONSERVER_InferenceResponseId(response, &text),
        TRITONSERVER_InferenceResponseOutputCount(response, &count),
        TRITONSERVER_InferenceResponseOutput(response, 0, &text, &datatype, &dims, &rank, &base,
                                             &size_bytes, &memory, &id, &userp),
        TRITONSERVER_InferenceResponseParameterCount(response, &count),
        TRITONSERVER_InferenceResponseParameter(response, 0, &text, &type, &base),
        TRITONSERVER_InferenceResponseOutputClassificationLabel(response, 0, 0, &text)};
    for (size_t i = 0; i < sizeof rejected / sizeof rejected[0]; i++)
        fails(rejected[i], TRITONSERVER_ERROR_INTERNAL, "the response was deleted before");
}

/* More than the pools keep with their memory. */
static void test_deleted_requests_are_rejected(void **state) {
    enum { MANY = 400 };
    world *w = *state;
    static TRITONSERVER_InferenceRequest *requests[MANY];
    static TRITONSERVER_InferenceResponse *responses[MANY];
    static call calls[MANY];
    call c;
    open_model(w, "good-many", CONFIG_OF("misbehave"), &c);
    for (int i = 0; i < MANY; i++) {
        call_init(&calls[i], w->server, "good-many", -1);
        call_input(&calls[i], "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, data, sizeof data);
        call_run(&calls[i]);
        requests[i] = calls[i].request;
        responses[i] = calls[i].response;
    }
    for (int i = 0; i < MANY; i++)
        call_deinit(&calls[i]);
    for (int i = 0; i < MANY; i++) {
        use_request(w->server, requests[i]);
        use_response(responses[i]);
    }
    /* The next requests have no data of earlier ones. */
    for (int i = 0; i < MANY; i++) {
        call_init(&calls[i], w->server, "good-many", -1);
        call_input(&calls[i], "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, data, sizeof data);
        call_run(&calls[i]);
        check_output(&calls[i]);
    }
    for (int i = 0; i < MANY; i++)
        call_deinit(&calls[i]);
    close_model(w, "good-many", &c);
}

/* Existing backends read an error that they have just deleted, or delete it twice. */
static void test_deleted_errors_stay_readable(void **state) {
    TRITONSERVER_Error *errors[20];
    (void)state;
    for (int i = 0; i < 20; i++) {
        errors[i] = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "not here");
        TRITONSERVER_ErrorDelete(errors[i]);
    }
    for (int i = 0; i < 20; i++) {
        assert_int_equal(TRITONSERVER_ErrorCode(errors[i]), TRITONSERVER_ERROR_UNSUPPORTED);
        assert_string_equal(TRITONSERVER_ErrorMessage(errors[i]), "not here");
        TRITONSERVER_ErrorDelete(errors[i]);
    }
    for (int i = 0; i < 200; i++) /* then the first ones are freed */
        TRITONSERVER_ErrorDelete(TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "more"));
}

static void test_decoupled_responses_arrive(void **state) {
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
    /* Unloading waits for the factory, although the request was released. */
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
    while (!c.releases) /* the backend has the request */
        pthread_cond_wait(&c.changed, &c.lock);
    pthread_mutex_unlock(&c.lock);
    ok(TRITONSERVER_InferenceRequestCancel(c.request));
    ok(TRITONSERVER_InferenceRequestIsCancelled(c.request, &cancelled));
    assert_true(cancelled);
    call_wait(&c);
    call_fails(&c, TRITONSERVER_ERROR_CANCELLED, "given up");
    close_model(*state, "cancel", &c);
}

static void test_failed_initialization_fails_the_load(void **state) {
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

/* Only the model's name determines the backend. */
static void test_model_name_determines_the_backend(void **state) {
    world *w = *state;
    TRITONSERVER_Message *message = NULL;
    repo_model(&w->r, "complete-x.misbehave", NULL);
    ok(TRITONSERVER_ServerLoadModel(w->server, "complete-x.misbehave"));
    ok(TRITONSERVER_ServerModelConfig(w->server, "complete-x.misbehave", -1, 1, &message));
    char *text = message_text(message);
    contains(text, "\"backend\":\"misbehave\"");
    contains(text, "\"max_batch_size\":4");
    contains(text, "{\"name\":\"complete-x.misbehave\""); /* not the backend's name for it */
    free(text);
}

static void test_stop_fails_after_the_exit_timeout(void **state) {
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
    server_end(server); /* no request is in flight */
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

/* Checks the tensors that a trace reports, and that REQUEST_END precedes the release callback. */
typedef struct tensors_seen {
    call c;
    unsigned inputs, outputs, wrong, ends_at_release;
    bool ended, released;
} tensors_seen;

static void on_end(TRITONSERVER_InferenceTrace *trace, TRITONSERVER_InferenceTraceActivity activity,
                   uint64_t timestamp_ns, void *userp) {
    tensors_seen *seen = userp;
    (void)trace;
    (void)timestamp_ns;
    if (activity == TRITONSERVER_TRACE_REQUEST_END)
        seen->ended = true;
}

static void on_tensor(TRITONSERVER_InferenceTrace *trace,
                      TRITONSERVER_InferenceTraceActivity activity, const char *name,
                      TRITONSERVER_DataType datatype, const void *base, size_t byte_size,
                      const int64_t *shape_of_tensor, uint64_t dim_count,
                      TRITONSERVER_MemoryType memory_type, int64_t memory_type_id, void *userp) {
    static const int32_t response_values[] = {7, 8};
    tensors_seen *seen = userp;
    bool input = activity == TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT;
    const void *expected = input ? (const void *)data : (const void *)response_values;
    (void)trace;
    (void)memory_type_id;
    seen->inputs += input;
    seen->outputs += activity == TRITONSERVER_TRACE_TENSOR_BACKEND_OUTPUT;
    seen->wrong += strcmp(name, input ? "INPUT0" : "OUTPUT0") != 0 ||
                   datatype != TRITONSERVER_TYPE_INT32 || byte_size != 8 || dim_count != 1 ||
                   shape_of_tensor[0] != 2 || memory_type != TRITONSERVER_MEMORY_CPU ||
                   memcmp(base, expected, 8) != 0;
}

static void on_tensors_release(TRITONSERVER_InferenceTrace *trace, void *userp) {
    ((tensors_seen *)userp)->released = true;
    ok(TRITONSERVER_InferenceTraceDelete(trace));
}

static void on_request_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
                               void *userp) {
    tensors_seen *seen = userp;
    (void)request;
    (void)flags;
    pthread_mutex_lock(&seen->c.lock);
    seen->ends_at_release = seen->ended;
    seen->c.releases++;
    pthread_cond_broadcast(&seen->c.changed);
    pthread_mutex_unlock(&seen->c.lock);
}

static void test_trace_reports_tensors(void **state) {
    world *w = *state;
    tensors_seen seen = {0};
    TRITONSERVER_InferenceTrace *trace = NULL;
    open_model(w, "good-tensors", CONFIG_OF("misbehave"), &seen.c);
    /* In two buffers, which the trace reports as one. */
    ok(TRITONSERVER_InferenceRequestRemoveAllInputData(seen.c.request, "INPUT0"));
    for (int i = 0; i < 2; i++)
        ok(TRITONSERVER_InferenceRequestAppendInputData(seen.c.request, "INPUT0", &data[i], 4,
                                                        TRITONSERVER_MEMORY_CPU, 0));
    ok(TRITONSERVER_InferenceRequestSetReleaseCallback(seen.c.request, on_request_release, &seen));
    ok(TRITONSERVER_InferenceTraceTensorNew(
        &trace, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS | TRITONSERVER_TRACE_LEVEL_TENSORS, 0, on_end,
        on_tensor, on_tensors_release, &seen));
    ok(TRITONSERVER_ServerInferAsync(w->server, seen.c.request, trace));
    call_wait(&seen.c);
    assert_int_equal(seen.inputs, 1);
    assert_int_equal(seen.outputs, 1);
    assert_int_equal(seen.wrong, 0);
    assert_true(seen.ends_at_release);
    close_model(w, "good-tensors", &seen.c);
    assert_true(seen.released);
}

static void test_trace_is_released(void **state) {
    world *w = *state;
    trace_seen seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    TRITONSERVER_InferenceTrace *trace = NULL;
    call c;
    open_model(w, "good-traced", CONFIG_OF("misbehave"), &c);
    ok(TRITONSERVER_InferenceTraceNew(&trace, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, on_activity,
                                      on_trace_release, &seen));
    ok(TRITONSERVER_ServerInferAsync(w->server, c.request, trace));
    call_wait(&c);
    assert_int_equal(seen.releases, 0); /* the response still refers to it */
    call_clear(&c);
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
        cmocka_unit_test(test_correct_backends_respond),
        cmocka_unit_test(test_execute_error_becomes_the_response),
        cmocka_unit_test(test_missing_response_becomes_an_error),
        cmocka_unit_test(test_server_sends_missing_final),
        cmocka_unit_test(test_invalid_releases_are_rejected),
        cmocka_unit_test(test_factories_can_be_created_after_the_release),
        cmocka_unit_test(test_invalid_calls_do_not_change_the_response),
        cmocka_unit_test(test_execute_can_fail_after_the_request_is_deleted),
        cmocka_unit_test(test_backend_cannot_use_a_deleted_request),
        cmocka_unit_test(test_several_threads_respond),
        cmocka_unit_test(test_failed_entry_point_fails_the_load),
        cmocka_unit_test(test_failed_entry_point_leaves_the_server_working),
        cmocka_unit_test(test_backend_that_never_responds_or_releases),
        cmocka_unit_test(test_late_responses_are_counted),
        cmocka_unit_test(test_deleted_requests_are_rejected),
        cmocka_unit_test(test_deleted_errors_stay_readable),
        cmocka_unit_test(test_decoupled_responses_arrive),
        cmocka_unit_test(test_cancellation_reaches_the_backend),
        cmocka_unit_test(test_failed_initialization_fails_the_load),
        cmocka_unit_test(test_backend_completes_the_configuration),
        cmocka_unit_test(test_model_name_determines_the_backend),
        cmocka_unit_test(test_stop_fails_after_the_exit_timeout),
        cmocka_unit_test(test_trace_is_released),
        cmocka_unit_test(test_trace_reports_tensors),
    };
    return cmocka_run_group_tests(tests, set_up, world_close);
}
