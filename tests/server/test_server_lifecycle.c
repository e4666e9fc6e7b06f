/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and unloading of models: control modes, versions, errors, unloading while requests
 * run, and the server's metadata. */
#include "server/support.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const server_setup explicit_mode = {.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT};

static char *index_of(TRITONSERVER_Server *server, uint32_t flags) {
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelIndex(server, flags, &message));
    return message_text(message);
}

static char *stats_of(TRITONSERVER_Server *server, const char *name) {
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelStatistics(server, name, -1, &message));
    return message_text(message);
}

/* Waits, at most 10 s, until the model has so many executions, which a backend reports after its
 * responses; returns the statistics. */
static char *stats_after(TRITONSERVER_Server *server, const char *name, long long executions) {
    for (int i = 0; i < 1000; i++) {
        char *stats = stats_of(server, name);
        if (number_after(stats, "\"execution_count\":") >= executions)
            return stats;
        free(stats);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return stats_of(server, name);
}

static bool ready(TRITONSERVER_Server *server) {
    bool is = false;
    ok(TRITONSERVER_ServerIsReady(server, &is));
    return is;
}

static void infer_once(TRITONSERVER_Server *server, const char *model, float value) {
    call c;
    float a[16], b[16];
    size_t size_bytes = 0;
    call_init(&c, server, model, -1);
    call_addsub(&c, a, b, value);
    call_run(&c);
    const float *sum = call_output(&c, "OUTPUT0", &size_bytes);
    assert_true(sum[15] == value + 16);
    call_deinit(&c);
}

static void test_mode_none_loads_all_models(void **state) {
    repo r;
    bool live = false;
    (void)state;
    repo_make(&r);
    repo_model(&r, "addsub", addsub_config);
    repo_model(&r, "other", addsub_config);
    TRITONSERVER_Server *server = server_start(&r, &(server_setup){0});
    ok(TRITONSERVER_ServerIsLive(server, &live));
    assert_true(live);
    assert_true(ready(server));
    fails(TRITONSERVER_ServerLoadModel(server, "addsub"), TRITONSERVER_ERROR_UNAVAILABLE,
          "explicit model load / unload is not allowed in model control mode 'none': expected mode "
          "'explicit'");
    fails(TRITONSERVER_ServerUnloadModel(server, "addsub"), TRITONSERVER_ERROR_UNAVAILABLE,
          "explicit model load / unload is not allowed in model control mode 'none': expected mode "
          "'explicit'");
    char *index = index_of(server, 0);
    assert_string_equal(index, "[{\"name\":\"addsub\",\"version\":\"1\",\"state\":\"READY\"},"
                               "{\"name\":\"other\",\"version\":\"1\",\"state\":\"READY\"}]");
    free(index);
    infer_once(server, "other", 2);
    server_end(server);
    repo_remove(&r);
}

static void test_mode_explicit_loads_on_request(void **state) {
    repo r;
    (void)state;
    repo_make(&r);
    repo_model(&r, "addsub", addsub_config);
    repo_model(&r, "started", addsub_config);
    TRITONSERVER_Server *server = server_start(
        &r, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT, .startup = {"started"}});
    char *index = index_of(server, 0);
    assert_string_equal(index, "[{\"name\":\"addsub\"},{\"name\":\"started\",\"version\":\"1\","
                               "\"state\":\"READY\"}]");
    free(index);
    ok(TRITONSERVER_ServerLoadModel(server, "addsub"));
    infer_once(server, "addsub", 1);
    ok(TRITONSERVER_ServerUnloadModel(server, "started"));
    wait_for_index(server, "{\"name\":\"started\",\"version\":\"1\",\"state\":\"UNAVAILABLE\","
                           "\"reason\":\"unloaded\"}");
    index = index_of(server, TRITONSERVER_INDEX_FLAG_READY);
    assert_string_equal(index, "[{\"name\":\"addsub\",\"version\":\"1\",\"state\":\"READY\"}]");
    free(index);
    assert_true(ready(server)); /* the server is ready, because the model was unloaded on request */
    fails(TRITONSERVER_ServerLoadModel(server, "unknown"), TRITONSERVER_ERROR_INTERNAL,
          "failed to load 'unknown', failed to poll from model repository");
    ok(TRITONSERVER_ServerUnloadModel(server, "unknown")); /* no effect */
    fails(TRITONSERVER_ServerLoadModel(server, "../etc"), TRITONSERVER_ERROR_INVALID_ARG, "../etc");
    TRITONSERVER_InferenceRequest *request = NULL;
    fails(TRITONSERVER_InferenceRequestNew(&request, server, "started", -1),
          TRITONSERVER_ERROR_NOT_FOUND, "'started' has no available versions");
    fails(TRITONSERVER_InferenceRequestNew(&request, server, "started", 1),
          TRITONSERVER_ERROR_UNAVAILABLE, "'started' version 1 is not at ready state");
    TRITONSERVER_Message *statistics = NULL;
    fails(TRITONSERVER_ServerModelStatistics(server, "started", 1, &statistics),
          TRITONSERVER_ERROR_UNAVAILABLE,
          "requested model version is not available for model 'started'");
    fails(TRITONSERVER_ServerModelStatistics(server, "unknown", -1, &statistics),
          TRITONSERVER_ERROR_NOT_FOUND, "requested model 'unknown' is not available");
    server_end(server);
    repo_remove(&r);
}

static void test_missing_library_names_every_path(void **state) {
    repo r;
    char path[600];
    TRITONSERVER_Server *server = NULL;
    (void)state;
    repo_make(&r);
    repo_model(&r, "lonely",
               "backend: \"nowhere\" input [{ name: \"I\" data_type: TYPE_FP32 dims: [ 1 ] }] "
               "output [{ name: \"O\" data_type: TYPE_FP32 dims: [ 1 ] }]");
    TRITONSERVER_Error *error = server_try(&r, &(server_setup){0}, &server);
    assert_non_null(error);
    assert_null(server);
    const char *text = TRITONSERVER_ErrorMessage(error);
    contains(text, "load failed for model 'lonely': version 1 is at UNAVAILABLE state:");
    snprintf(path, sizeof path, "'%s/lonely/1/libtriton_nowhere.so' (no such file)", r.path);
    contains(text, path);
    snprintf(path, sizeof path, "'%s/lonely/libtriton_nowhere.so' (no such file)", r.path);
    contains(text, path);
    contains(text, KELP_BACKENDS "/nowhere/libtriton_nowhere.so' (no such directory)");
    TRITONSERVER_ErrorDelete(error);
    /* A directory in place of the library. */
    char link[600];
    repo_version(&r, "lonely", "1/libtriton_nowhere.so");
    snprintf(link, sizeof link, "%s/lonely/libtriton_nowhere.so", r.path);
    assert_int_equal(symlink("nothing", link), 0);
    error = server_try(&r, &(server_setup){0}, &server);
    assert_non_null(error);
    contains(TRITONSERVER_ErrorMessage(error), "libtriton_nowhere.so' (it is a directory)");
    contains(TRITONSERVER_ErrorMessage(error), "libtriton_nowhere.so' (it is a dangling link)");
    TRITONSERVER_ErrorDelete(error);
    repo_drop(&r, "lonely/1/libtriton_nowhere.so");
    repo_drop(&r, "lonely/libtriton_nowhere.so");
    /* A file that is not a library. */
    repo_file(&r, "lonely/1/libtriton_nowhere.so", "not ELF");
    fails(server_try(&r, &(server_setup){0}, &server), TRITONSERVER_ERROR_INTERNAL,
          "unable to load backend 'nowhere' from");
    /* Without exit_on_error, the server runs, but is not ready; the index contains the reason. */
    repo_model(&r, "addsub", addsub_config);
    server = server_start(&r, &(server_setup){.keep_on_error = true});
    assert_false(ready(server));
    infer_once(server, "addsub", 1);
    wait_for_index(server, "{\"name\":\"lonely\",\"version\":\"1\",\"state\":\"UNAVAILABLE\","
                           "\"reason\":\"unable to load backend");
    server_end(server);
    repo_remove(&r);
}

/* A backend written in Python: the library of "python" executes its model.py. The test uses
 * another library. */
static void test_backend_written_in_python_is_found(void **state) {
    repo r, backends;
    char path[600];
    call c;
    TRITONSERVER_Message *message = NULL;
    static const int64_t shape[] = {2};
    static const int32_t data[] = {1, 2};
    static const char *const names[] = {"good", "good-2"};
    (void)state;
    repo_make(&r);
    repo_make(&backends);
    for (int i = 0; i < 2; i++) {
        char config[1024];
        snprintf(config, sizeof config,
                 "backend: \"mine%d\" %s"
                 "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"
                 "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n",
                 i, i ? "runtime: \"model.py\"\n" : "");
        repo_model(&r, names[i], config);
    }
    TRITONSERVER_Server *server =
        server_start(&r, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                         .backends = backends.path});
    snprintf(path, sizeof path, "'%s/mine0/model.py' (no such directory)", backends.path);
    fails(TRITONSERVER_ServerLoadModel(server, "good"), TRITONSERVER_ERROR_INVALID_ARG, path);
    snprintf(path, sizeof path, "%s/mine0", backends.path);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/mine1", backends.path);
    mkdir(path, 0755);
    repo_file(&backends, "mine0/model.py", "");
    repo_file(&backends, "mine1/model.py", "");
    snprintf(path, sizeof path, "'%s/python/libtriton_python.so' (no such directory)",
             backends.path);
    fails(TRITONSERVER_ServerLoadModel(server, "good"), TRITONSERVER_ERROR_INVALID_ARG, path);
    snprintf(path, sizeof path, "%s/python", backends.path);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/python/libtriton_python.so", backends.path);
    assert_int_equal(symlink(KELP_TEST_BACKENDS "/misbehave/libtriton_misbehave.so", path), 0);
    for (int i = 0; i < 2; i++) {
        ok(TRITONSERVER_ServerLoadModel(server, names[i]));
        call_init(&c, server, names[i], -1);
        call_input(&c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, data, sizeof data);
        call_run(&c);
        size_t size_bytes = 0;
        call_output(&c, "OUTPUT0", &size_bytes);
        call_deinit(&c);
        ok(TRITONSERVER_ServerModelConfig(server, names[i], -1, 1, &message));
        char *config = message_text(message);
        contains(config, "\"runtime\":\"model.py\"");
        free(config);
    }
    server_end(server);
    repo_remove(&r);
    repo_remove(&backends);
}

static void test_invalid_configurations_are_rejected(void **state) {
    repo r;
    TRITONSERVER_Server *server = NULL;
    (void)state;
    repo_make(&r);
    server = server_start(&r, &explicit_mode);
    repo_model(&r, "m", "backend: \"addsub\"\nmax_batch_sise: 8\n");
    fails(TRITONSERVER_ServerLoadModel(server, "m"), TRITONSERVER_ERROR_INTERNAL,
          "config.pbtxt:2:1");
    repo_model(&r, "m",
               "backend: \"addsub\"\ninstance_group [{ kind: KIND_GPU gpus: [ 0 ] }]"
               "input [{ name: \"I\" data_type: TYPE_FP32 dims: [ 1 ] }] "
               "output [{ name: \"O\" data_type: TYPE_FP32 dims: [ 1 ] }]");
    TRITONSERVER_Error *error = TRITONSERVER_ServerLoadModel(server, "m");
    assert_non_null(error);
    contains(TRITONSERVER_ErrorMessage(error), "GPU");
    TRITONSERVER_ErrorDelete(error);
    repo_drop(&r, "m/1");
    repo_file(&r, "m/config.pbtxt", addsub_config);
    error = TRITONSERVER_ServerLoadModel(server, "m");
    assert_non_null(error); /* no version directory */
    contains(TRITONSERVER_ErrorMessage(error), "m");
    TRITONSERVER_ErrorDelete(error);
    repo_version(&r, "m", "1");
    ok(TRITONSERVER_ServerLoadModel(server, "m")); /* now it is valid */
    /* After a failed reload, the previous model continues to serve. */
    repo_file(&r, "m/config.pbtxt", "nonsense {");
    error = TRITONSERVER_ServerLoadModel(server, "m");
    assert_non_null(error);
    TRITONSERVER_ErrorDelete(error);
    infer_once(server, "m", 4);
    server_end(server);
    repo_remove(&r);
}

static void test_version_policy_selects_versions(void **state) {
    repo r;
    call c;
    float a[16], b[16];
    const char *name = NULL;
    int64_t version = 0;
    char config[2048];
    (void)state;
    repo_make(&r);
    repo_model(&r, "m", addsub_config);
    repo_version(&r, "m", "3");
    TRITONSERVER_Server *server = server_start(&r, &explicit_mode);
    ok(TRITONSERVER_ServerLoadModel(server, "m"));
    call_init(&c, server, "m", -1);
    call_addsub(&c, a, b, 1);
    call_run(&c);
    ok(TRITONSERVER_InferenceResponseModel(c.response, &name, &version));
    assert_int_equal(version, 3); /* only the latest version */
    snprintf(config, sizeof config, "%s\nversion_policy { all { } }\n", addsub_config);
    repo_file(&r, "m/config.pbtxt", config);
    repo_version(&r, "m", "10");
    ok(TRITONSERVER_ServerLoadModel(server, "m"));
    wait_for_index(server,
                   "[{\"name\":\"m\",\"version\":\"1\",\"state\":\"READY\"},{\"name\":\"m\","
                   "\"version\":\"3\",\"state\":\"READY\"},{\"name\":\"m\",\"version\":"
                   "\"10\",\"state\":\"READY\"}]");
    /* A request that was created before uses its version, */
    call_clear(&c);
    call_run(&c);
    ok(TRITONSERVER_InferenceResponseModel(c.response, &name, &version));
    assert_int_equal(version, 3);
    /* and the version that replaced it after it was unloaded. */
    repo_drop(&r, "m/3");
    ok(TRITONSERVER_ServerLoadModel(server, "m"));
    call_clear(&c);
    call_run(&c);
    ok(TRITONSERVER_InferenceResponseModel(c.response, &name, &version));
    assert_int_equal(version, 10);
    repo_version(&r, "m", "3");
    ok(TRITONSERVER_ServerLoadModel(server, "m"));
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelMetadata(server, "m", -1, &message));
    char *text = message_text(message);
    assert_string_equal(
        text,
        "{\"name\":\"m\",\"versions\":[\"1\",\"3\",\"10\"],\"platform\":\"addsub\",\"inputs\":"
        "[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[-1,16]},{\"name\":\"INPUT1\","
        "\"datatype\":\"FP32\",\"shape\":[-1,16]}],\"outputs\":[{\"name\":\"OUTPUT0\","
        "\"datatype\":\"FP32\",\"shape\":[-1,16]},{\"name\":\"OUTPUT1\",\"datatype\":\"FP32\","
        "\"shape\":[-1,16]}]}");
    free(text);
    call_deinit(&c);
    server_end(server);
    repo_remove(&r);
}

/* ---- requests in flight: the one whose id is "gate" holds its execution until it is cancelled
 * ---- */

static const char gate_config[] =
    "backend: \"misbehave\" max_batch_size: 4\n"
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
    "instance_group [ { kind: KIND_CPU count: 1 } ]\n";

static void gate_init(call *c, TRITONSERVER_Server *server, int64_t batch, int64_t size) {
    static const int32_t data[] = {1, 2, 3, 4};
    const int64_t shape[] = {batch, size};
    call_init(c, server, "gate", -1);
    call_input(c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 2, data,
               (size_t)(batch * size) * sizeof *data);
}

/* Starts the request "gate", and waits until it is being executed. */
static void gate_close(call *c, TRITONSERVER_Server *server) {
    gate_init(c, server, 1, 2);
    ok(TRITONSERVER_InferenceRequestSetId(c->request, "gate"));
    call_start(c);
    pthread_mutex_lock(&c->lock);
    while (!c->starts)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

static void gate_open(call *c) {
    ok(TRITONSERVER_InferenceRequestCancel(c->request));
    call_wait(c);
}

static void check_response(call *c) {
    static const int32_t expected[] = {7, 8};
    size_t size_bytes = 0;
    assert_memory_equal(call_output(c, "OUTPUT0", &size_bytes), expected, sizeof expected);
}

static const server_setup gate_setup = {.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                        .startup = {"gate"},
                                        .backends = KELP_TEST_BACKENDS};

static void test_unload_waits_for_requests(void **state) {
    repo r;
    call gate, queued;
    (void)state;
    repo_make(&r);
    repo_model(&r, "gate", gate_config);
    TRITONSERVER_Server *server = server_start(&r, &gate_setup);
    gate_close(&gate, server);
    gate_init(&queued, server, 1, 2);
    call_start(&queued);
    ok(TRITONSERVER_ServerUnloadModel(server, "gate"));
    wait_for_index(server, "\"state\":\"UNLOADING\"");
    fails(TRITONSERVER_InferenceRequestDelete(queued.request), TRITONSERVER_ERROR_INTERNAL,
          "cannot delete a request in state PENDING");
    fails(TRITONSERVER_InferenceRequestDelete(gate.request), TRITONSERVER_ERROR_INTERNAL,
          "cannot delete a request in state EXECUTING");
    fails(TRITONSERVER_ServerInferAsync(server, queued.request, NULL), TRITONSERVER_ERROR_INTERNAL,
          "invalid request state transition from PENDING to PENDING");
    gate_open(&gate);
    call_wait(&queued);
    check_response(&gate);
    check_response(&queued);
    wait_for_index(server, "\"reason\":\"unloaded\"");
    call_clear(&queued);
    fails(TRITONSERVER_ServerInferAsync(server, queued.request, NULL), TRITONSERVER_ERROR_NOT_FOUND,
          "'gate' has no available versions");
    ok(TRITONSERVER_ServerLoadModel(server, "gate"));
    call_run(&queued);
    check_response(&queued);
    call_deinit(&gate);
    call_deinit(&queued);
    server_end(server);
    repo_remove(&r);
}

static void test_a_server_that_cannot_start_is_not_live(void **state) {
    static const server_setup setup = {.second_repository = "/nonexistent/models",
                                       .keep_on_error = true,
                                       .mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT};
    repo r;
    TRITONSERVER_Message *message = NULL;
    TRITONSERVER_InferenceRequest *request = NULL;
    bool live = true;
    (void)state;
    repo_make(&r);
    TRITONSERVER_Server *server = server_start(&r, &setup);
    ok(TRITONSERVER_ServerIsLive(server, &live));
    assert_false(live);
    assert_false(ready(server));
    ok(TRITONSERVER_ServerMetadata(server, &message));
    char *text = message_text(message);
    contains(text, "\"name\":\"triton\"");
    free(text);
    fails(TRITONSERVER_ServerModelIndex(server, 0, &message), TRITONSERVER_ERROR_UNAVAILABLE,
          "Server not ready");
    fails(TRITONSERVER_ServerLoadModel(server, "any"), TRITONSERVER_ERROR_UNAVAILABLE,
          "Server not ready");
    fails(TRITONSERVER_InferenceRequestNew(&request, server, "any", -1),
          TRITONSERVER_ERROR_UNAVAILABLE, "Server not ready");
    free(metrics_of(server));
    server_end(server);
    repo_remove(&r);
}

static void test_cancelled_requests_leave_the_queue(void **state) {
    repo r;
    call gate, kept, cancelled;
    (void)state;
    repo_make(&r);
    repo_model(&r, "gate", gate_config);
    TRITONSERVER_Server *server = server_start(&r, &gate_setup);
    gate_close(&gate, server);
    gate_init(&kept, server, 1, 2);
    gate_init(&cancelled, server, 1, 2);
    call_start(&kept);
    call_start(&cancelled);
    ok(TRITONSERVER_InferenceRequestCancel(cancelled.request));
    gate_open(&gate);
    call_wait(&kept);
    call_wait(&cancelled);
    check_response(&kept);
    call_fails(&cancelled, TRITONSERVER_ERROR_CANCELLED, "Request cancelled");
    char *page = metrics_of(server);
    contains(page, "{model=\"gate\",reason=\"CANCELED\",version=\"1\"} 1\n");
    contains(page, "{model=\"gate\",reason=\"OTHER\",version=\"1\"} 0\n");
    free(page);
    call_deinit(&gate);
    call_deinit(&kept);
    call_deinit(&cancelled);
    server_end(server);
    repo_remove(&r);
}

static void test_dynamic_batching_joins_queued_requests(void **state) {
    /* Three requests that form a batch of 4, and one of a different shape; then the queue is
     * full. */
    static const int64_t shapes[][2] = {{1, 2}, {2, 2}, {1, 2}, {1, 3}, {1, 2}};
    repo r;
    call gate, c[5];
    char config[1024];
    (void)state;
    repo_make(&r);
    snprintf(config, sizeof config,
             "%sdynamic_batching { default_queue_policy { max_queue_size: 4 } }\n", gate_config);
    repo_model(&r, "gate", config);
    TRITONSERVER_Server *server = server_start(&r, &gate_setup);
    gate_close(&gate, server);
    for (int i = 0; i < 5; i++)
        gate_init(&c[i], server, shapes[i][0], shapes[i][1]);
    for (int i = 0; i < 4; i++)
        call_start(&c[i]);
    fails(TRITONSERVER_ServerInferAsync(server, c[4].request, NULL), TRITONSERVER_ERROR_UNAVAILABLE,
          "Exceeds maximum queue size");
    char *page = metrics_of(server);
    contains(page, "nv_inference_pending_request_count{model=\"gate\",version=\"1\"} 4\n");
    contains(page, "{model=\"gate\",reason=\"REJECTED\",version=\"1\"} 1\n");
    contains(page, "{model=\"gate\",reason=\"BACKEND\",version=\"1\"} 0\n");
    free(page);
    gate_open(&gate);
    for (int i = 0; i < 4; i++) {
        call_wait(&c[i]);
        check_response(&c[i]);
    }
    call_run(&c[4]); /* rejected before, and valid now */
    check_response(&c[4]);
    call_deinit(&gate);
    for (int i = 0; i < 5; i++)
        call_deinit(&c[i]);
    char *stats = stats_after(server, "gate", 4);
    assert_int_equal(number_after(stats, "\"execution_count\":"), 4);
    contains(stats, "{\"batch_size\":1,\"compute_input\":{\"count\":3,");
    contains(stats, "{\"batch_size\":4,\"compute_input\":{\"count\":1,");
    free(stats);
    server_end(server);
    repo_remove(&r);
}

static void test_queue_timeout_rejects_requests(void **state) {
    repo r;
    call gate, patient, hasty;
    char config[1024];
    (void)state;
    repo_make(&r);
    snprintf(config, sizeof config,
             "%sdynamic_batching { default_queue_policy { default_timeout_microseconds: 3600000000 "
             "allow_timeout_override: true timeout_action: REJECT } }\n",
             gate_config);
    repo_model(&r, "gate", config);
    TRITONSERVER_Server *server = server_start(&r, &gate_setup);
    gate_close(&gate, server);
    gate_init(&patient, server, 1, 2);
    gate_init(&hasty, server, 1, 2);
    ok(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(hasty.request, 1));
    call_start(&patient);
    call_start(&hasty);
    gate_open(&gate);
    call_wait(&patient);
    call_wait(&hasty);
    check_response(&patient);
    call_fails(&hasty, TRITONSERVER_ERROR_UNAVAILABLE, "Request timeout expired");
    TRITONSERVER_Error *error = TRITONSERVER_InferenceResponseError(hasty.response);
    assert_string_equal(TRITONSERVER_ErrorMessage(error), "Request timeout expired"); /* exactly */
    TRITONSERVER_ErrorDelete(error);
    char *page = metrics_of(server);
    contains(page, "{model=\"gate\",reason=\"REJECTED\",version=\"1\"} 1\n");
    free(page);
    call_deinit(&gate);
    call_deinit(&patient);
    call_deinit(&hasty);
    server_end(server);
    repo_remove(&r);
}

static void test_stop_lets_requests_finish(void **state) {
    repo r;
    call gate, queued;
    bool live = true;
    TRITONSERVER_InferenceRequest *request = NULL;
    (void)state;
    repo_make(&r);
    repo_model(&r, "gate", gate_config);
    TRITONSERVER_Server *server = server_start(&r, &gate_setup);
    gate_close(&gate, server);
    gate_init(&queued, server, 1, 2);
    call_start(&queued);
    ok(TRITONSERVER_InferenceRequestCancel(gate.request));
    ok(TRITONSERVER_ServerStop(server));
    call_wait(&gate);
    call_wait(&queued);
    check_response(&queued);
    fails(TRITONSERVER_ServerIsLive(server, &live), TRITONSERVER_ERROR_UNAVAILABLE,
          "Server exiting");
    fails(TRITONSERVER_InferenceRequestNew(&request, server, "gate", -1),
          TRITONSERVER_ERROR_UNAVAILABLE, "Server exiting");
    call_deinit(&gate);
    call_deinit(&queued);
    server_end(server);
    repo_remove(&r);
}

static void test_models_can_be_loaded_repeatedly(void **state) {
    repo r;
    (void)state;
    repo_make(&r);
    repo_model(&r, "addsub", addsub_config);
    TRITONSERVER_Server *server = server_start(&r, &explicit_mode);
    for (int i = 0; i < 100; i++) {
        ok(TRITONSERVER_ServerLoadModel(server, "addsub"));
        infer_once(server, "addsub", (float)i);
        if (i % 3)
            ok(TRITONSERVER_ServerUnloadModel(server, "addsub"));
    }
    server_end(server);
    repo_remove(&r);
}

/* ---- many threads ---- */

typedef struct worker {
    TRITONSERVER_Server *server;
    int count;
    float value;
} worker;

static void *work(void *userp) {
    worker *w = userp;
    call c;
    float a[16], b[16];
    size_t size_bytes = 0;
    call_init(&c, w->server, "addsub", -1);
    call_addsub(&c, a, b, w->value);
    for (int i = 0; i < w->count; i++) {
        call_run(&c);
        const float *sum = call_output(&c, "OUTPUT0", &size_bytes);
        assert_true(sum[3] == w->value + 4);
        call_clear(&c);
    }
    call_deinit(&c);
    return NULL;
}

/* The page of metrics: the server's counters, and a family of the application. */
static void check_metrics(TRITONSERVER_Server *server) {
    static const double bounds[] = {1, 2.5};
    TRITONSERVER_MetricFamily *family = NULL;
    TRITONSERVER_Metric *metric = NULL;
    TRITONSERVER_MetricArgs *args = NULL;
    TRITONSERVER_Metrics *metrics = NULL;
    const char *base = NULL;
    size_t size = 0;
    ok(TRITONSERVER_MetricFamilyNew(&family, TRITONSERVER_METRIC_KIND_HISTOGRAM, "spread", "S"));
    ok(TRITONSERVER_MetricArgsNew(&args));
    ok(TRITONSERVER_MetricArgsSetHistogram(args, bounds, 2));
    ok(TRITONSERVER_MetricNewWithArgs(&metric, family, NULL, 0, args));
    ok(TRITONSERVER_MetricArgsDelete(args));
    ok(TRITONSERVER_MetricObserve(metric, 1));
    ok(TRITONSERVER_MetricObserve(metric, 9));
    ok(TRITONSERVER_ServerMetrics(server, &metrics));
    ok(TRITONSERVER_MetricsFormatted(metrics, TRITONSERVER_METRIC_PROMETHEUS, &base, &size));
    char *text = strndup(base, size);
    contains(text, "# TYPE nv_inference_count counter\n"
                   "nv_inference_count{model=\"addsub\",version=\"1\"} 1200\n");
    contains(text, "nv_inference_request_failure{model=\"addsub\",reason=\"BACKEND\","
                   "version=\"1\"} 0\n");
    contains(text, "# HELP spread S\n# TYPE spread histogram\nspread_bucket{le=\"1\"} 1\n"
                   "spread_bucket{le=\"2.5\"} 1\nspread_bucket{le=\"+Inf\"} 2\nspread_sum 10\n"
                   "spread_count 2\n");
    free(text);
    ok(TRITONSERVER_MetricsDelete(metrics));
    ok(TRITONSERVER_MetricDelete(metric));
    ok(TRITONSERVER_MetricFamilyDelete(family));
}

static void test_instances_execute_concurrently_and_are_counted(void **state) {
    enum { THREADS = 6, EACH = 200 };
    repo r;
    char config[2048];
    worker workers[THREADS];
    pthread_t threads[THREADS];
    (void)state;
    repo_make(&r);
    snprintf(config, sizeof config, "%s", addsub_config);
    char *count = strstr(config, "count: 1");
    count[7] = '3';
    repo_model(&r, "addsub", config);
    TRITONSERVER_Server *server = server_start(&r, &(server_setup){0});
    char *stats = stats_of(server, "addsub");
    assert_string_equal(
        stats,
        "{\"model_stats\":[{\"name\":\"addsub\",\"version\":\"1\",\"last_inference\":0,"
        "\"inference_count\":0,\"execution_count\":0,\"inference_stats\":{\"success\":{\"count\":0,"
        "\"ns\":0},\"fail\":{\"count\":0,\"ns\":0},\"queue\":{\"count\":0,\"ns\":0},"
        "\"compute_input\":{\"count\":0,\"ns\":0},\"compute_infer\":{\"count\":0,\"ns\":0},"
        "\"compute_output\":{\"count\":0,\"ns\":0},\"cache_hit\":{\"count\":0,\"ns\":0},"
        "\"cache_miss\":{\"count\":0,\"ns\":0}},\"response_stats\":{},\"batch_stats\":[],"
        "\"memory_usage\":[]}]}");
    free(stats);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.server = server, .count = EACH, .value = (float)(10 * i)};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    stats = stats_after(server, "", THREADS * EACH);
    assert_int_equal(number_after(stats, "\"inference_count\":"), THREADS * EACH);
    assert_int_equal(number_after(stats, "\"execution_count\":"), THREADS * EACH);
    assert_int_equal(number_after(stats, "\"success\":{\"count\":"), THREADS * EACH);
    assert_int_equal(number_after(stats, "\"queue\":{\"count\":"), THREADS * EACH);
    assert_int_equal(number_after(stats, "\"fail\":{\"count\":"), 0);
    contains(stats, "\"batch_stats\":[{\"batch_size\":1,\"compute_input\":{\"count\":1200,\"ns\":");
    assert_true(number_after(stats, "\"last_inference\":") > 1000000000000);
    assert_true(number_after(stats, "\"success\":{\"count\":1200,\"ns\":") > 0);
    free(stats);
    check_metrics(server);
    server_end(server);
    repo_remove(&r);
}

typedef struct loader {
    TRITONSERVER_Server *server;
    repo *r;
    const char *file; /* a change, so that there is a model to load */
} loader;

static void *reload(void *userp) {
    const loader *l = userp;
    for (int i = 0; i < 30; i++) {
        char text[32];
        snprintf(text, sizeof text, "%0*d", i + 1, i);
        repo_file(l->r, l->file, text);
        ok(TRITONSERVER_ServerLoadModel(l->server, "addsub"));
    }
    return NULL;
}

static void test_models_reload_while_requests_run(void **state) {
    enum { THREADS = 4 };
    repo r;
    worker workers[THREADS];
    pthread_t threads[THREADS], loading[2];
    loader loaders[2];
    (void)state;
    repo_make(&r);
    repo_model(&r, "addsub", addsub_config);
    TRITONSERVER_Server *server = server_start(&r, &explicit_mode);
    ok(TRITONSERVER_ServerLoadModel(server, "addsub"));
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.server = server, .count = 300, .value = (float)i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        loaders[i] = (loader){server, &r, i ? "addsub/1/one" : "addsub/1/two"};
        assert_int_equal(pthread_create(&loading[i], NULL, reload, &loaders[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(loading[i], NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    server_end(server);
    repo_remove(&r);
}

/* Instances are added and removed while requests run, on their own threads and on submitting
 * threads. No request is lost, and all are counted in the same statistics. */
static void test_instances_change_while_requests_run(void **state) {
    enum { THREADS = 4, EACH = 1000 };
    static const char *const places[] = {"instance", "caller"};
    (void)state;
    for (int place = 0; place < 2; place++) {
        repo r;
        worker workers[THREADS];
        pthread_t threads[THREADS];
        char config[2048], more[256];
        repo_make(&r);
        snprintf(more, sizeof more,
                 "parameters { key: \"kelp_execute_on\" value { string_value: \"%s\" } }\n",
                 places[place]);
        snprintf(config, sizeof config, "%s%s", addsub_config, more);
        char *count = strstr(config, "count: 1");
        repo_model(&r, "addsub", config);
        TRITONSERVER_Server *server = server_start(&r, &explicit_mode);
        ok(TRITONSERVER_ServerLoadModel(server, "addsub"));
        for (int i = 0; i < THREADS; i++) {
            workers[i] = (worker){.server = server, .count = EACH, .value = (float)i};
            assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
        }
        for (int i = 0; i < 40; i++) {
            count[7] = "1342"[i % 4];
            repo_file(&r, "addsub/config.pbtxt", config);
            ok(TRITONSERVER_ServerLoadModel(server, "addsub"));
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        char *stats = stats_after(server, "", THREADS * EACH);
        assert_int_equal(number_after(stats, "\"inference_count\":"), THREADS * EACH);
        free(stats);
        server_end(server);
        repo_remove(&r);
    }
}

/* ---- overrides and polling ---- */

static void test_load_parameter_overrides_the_configuration(void **state) {
    static const char json[] =
        "{\"backend\":\"addsub\",\"max_batch_size\":2,\"input\":[{\"name\":"
        "\"INPUT0\",\"data_type\":\"TYPE_FP32\",\"dims\":[16]},{\"name\":\"INPUT1\",\"data_type\":"
        "\"TYPE_FP32\",\"dims\":[16]}],\"output\":[{\"name\":\"OUTPUT0\",\"data_type\":"
        "\"TYPE_FP32\",\"dims\":[16]},{\"name\":\"OUTPUT1\",\"data_type\":\"TYPE_FP32\",\"dims\":"
        "[16]}]}";
    repo r;
    TRITONSERVER_Message *message = NULL;
    (void)state;
    repo_make(&r);
    repo_model(&r, "m", addsub_config);
    TRITONSERVER_Server *server = server_start(&r, &explicit_mode);
    TRITONSERVER_Parameter *config =
        TRITONSERVER_ParameterNew("config", TRITONSERVER_PARAMETER_STRING, json);
    TRITONSERVER_Parameter *file = TRITONSERVER_ParameterBytesNew("file:1/data", "xyz", 3);
    TRITONSERVER_Parameter *escape = TRITONSERVER_ParameterBytesNew("file:../data", "xyz", 3);
    char name[300] = "file:";
    memset(name + 5, 'a', 256); /* one more than file systems allow */
    TRITONSERVER_Parameter *long_name = TRITONSERVER_ParameterBytesNew(name, "xyz", 3);
    const TRITONSERVER_Parameter *both[] = {config, file}, *bad[] = {config, escape};
    ok(TRITONSERVER_ServerLoadModelWithParameters(server, "m", both, 1));
    for (int i = 0; i < 2; i++) {
        ok(TRITONSERVER_ServerModelConfig(server, "m", -1, 1, &message));
        char *text = message_text(message);
        contains(text, "\"max_batch_size\":2");
        free(text);
        ok(TRITONSERVER_ServerLoadModel(server, "m")); /* a load without parameters keeps it */
    }
    ok(TRITONSERVER_ServerUnloadModel(server, "m"));
    ok(TRITONSERVER_ServerLoadModel(server, "m"));
    ok(TRITONSERVER_ServerModelConfig(server, "m", -1, 1, &message));
    char *text = message_text(message);
    contains(text, "\"max_batch_size\":8");
    free(text);
    fails(TRITONSERVER_ServerModelConfig(server, "m", -1, 2, &message),
          TRITONSERVER_ERROR_UNSUPPORTED, "");
    fails(TRITONSERVER_ServerLoadModelWithParameters(server, "m", &both[1], 1),
          TRITONSERVER_ERROR_INVALID_ARG, "requires additional 'config' parameter");
    fails(TRITONSERVER_ServerLoadModelWithParameters(server, "m", bad, 2),
          TRITONSERVER_ERROR_INVALID_ARG, "outside");
    bad[1] = long_name;
    fails(TRITONSERVER_ServerLoadModelWithParameters(server, "m", bad, 2),
          TRITONSERVER_ERROR_INTERNAL,
          "failed to poll from model repository: cannot write 'file:aaa");
    ok(TRITONSERVER_ServerLoadModelWithParameters(server, "fresh", both, 2));
    infer_once(server, "fresh", 1);
    TRITONSERVER_ParameterDelete(config);
    TRITONSERVER_ParameterDelete(file);
    TRITONSERVER_ParameterDelete(escape);
    TRITONSERVER_ParameterDelete(long_name);
    server_end(server);
    repo_remove(&r);
}

static void test_polling_loads_and_unloads_models(void **state) {
    repo r;
    char config[2048];
    (void)state;
    repo_make(&r);
    repo_model(&r, "m", addsub_config);
    TRITONSERVER_Server *server =
        server_start(&r, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_POLL});
    fails(TRITONSERVER_ServerLoadModel(server, "m"), TRITONSERVER_ERROR_UNAVAILABLE, "polling");
    repo_model(&r, "n", addsub_config);
    ok(TRITONSERVER_ServerPollModelRepository(server));
    infer_once(server, "n", 1);
    snprintf(config, sizeof config, "%s# longer\nversion_policy { all { } }\n", addsub_config);
    repo_file(&r, "n/config.pbtxt", config);
    repo_version(&r, "n", "2");
    repo_drop(&r, "m");
    ok(TRITONSERVER_ServerPollModelRepository(server));
    wait_for_index(server, "{\"name\":\"n\",\"version\":\"2\",\"state\":\"READY\"}");
    wait_until_unlisted(server, "m");
    server_end(server);
    repo_remove(&r);
}

/* The files that come back have the times that they had before. */
static void test_polling_loads_a_model_that_comes_back(void **state) {
    repo r, other;
    char here[600], there[600];
    (void)state;
    repo_make(&r);
    repo_make(&other);
    repo_model(&r, "m", addsub_config);
    repo_model(&r, "n", addsub_config);
    TRITONSERVER_Server *server =
        server_start(&r, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_POLL});
    snprintf(here, sizeof here, "%s/m", r.path);
    snprintf(there, sizeof there, "%s/m", other.path);
    assert_int_equal(rename(here, there), 0);
    ok(TRITONSERVER_ServerPollModelRepository(server));
    wait_until_unlisted(server, "m");
    assert_int_equal(rename(there, here), 0);
    ok(TRITONSERVER_ServerPollModelRepository(server));
    infer_once(server, "m", 1);
    server_end(server);
    repo_remove(&r);
    repo_remove(&other);
}

static void test_servers_share_a_backend(void **state) {
    repo r;
    (void)state;
    repo_make(&r);
    repo_model(&r, "addsub", addsub_config);
    TRITONSERVER_Server *first = server_start(&r, &(server_setup){0});
    TRITONSERVER_Server *second = server_start(&r, &(server_setup){0});
    infer_once(first, "addsub", 1);
    server_end(first);
    infer_once(second, "addsub", 1);
    server_end(second);
    repo_remove(&r);
}

static void test_missing_repository_is_an_error(void **state) {
    TRITONSERVER_Server *server = NULL;
    (void)state;
    repo r = {.path = "/tmp/kelp-there-is-no-such-directory"};
    TRITONSERVER_Error *error = server_try(&r, &(server_setup){0}, &server);
    assert_non_null(error);
    contains(TRITONSERVER_ErrorMessage(error), "kelp-there-is-no-such-directory");
    TRITONSERVER_ErrorDelete(error);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mode_none_loads_all_models),
        cmocka_unit_test(test_mode_explicit_loads_on_request),
        cmocka_unit_test(test_missing_library_names_every_path),
        cmocka_unit_test(test_backend_written_in_python_is_found),
        cmocka_unit_test(test_invalid_configurations_are_rejected),
        cmocka_unit_test(test_version_policy_selects_versions),
        cmocka_unit_test(test_unload_waits_for_requests),
        cmocka_unit_test(test_a_server_that_cannot_start_is_not_live),
        cmocka_unit_test(test_cancelled_requests_leave_the_queue),
        cmocka_unit_test(test_dynamic_batching_joins_queued_requests),
        cmocka_unit_test(test_queue_timeout_rejects_requests),
        cmocka_unit_test(test_stop_lets_requests_finish),
        cmocka_unit_test(test_models_can_be_loaded_repeatedly),
        cmocka_unit_test(test_instances_execute_concurrently_and_are_counted),
        cmocka_unit_test(test_models_reload_while_requests_run),
        cmocka_unit_test(test_instances_change_while_requests_run),
        cmocka_unit_test(test_load_parameter_overrides_the_configuration),
        cmocka_unit_test(test_polling_loads_and_unloads_models),
        cmocka_unit_test(test_polling_loads_a_model_that_comes_back),
        cmocka_unit_test(test_servers_share_a_backend),
        cmocka_unit_test(test_missing_repository_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
