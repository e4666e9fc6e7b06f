/* SPDX-License-Identifier: Apache-2.0 */
/* The behavior that Triton's documentation specifies for backends and front ends. The backend
 * "probe" records its calls. */
#include "server/support.h"

#include "server/probe_backend.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MODEL                                                             \
    "backend: \"probe\"\n"                                                \
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"  \
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 2 ] },\n" \
    "         { name: \"EXTRA\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"

static const int64_t two[] = {2};
static const int32_t data[] = {1, 2};

static int set_up(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                             .backends = KELP_TEST_BACKENDS,
                                             .backend_setting = {"probe", "own", "yes"}});
}

static probe_notes *seen(void) {
    static probe_notes *notes;
    if (!notes) {
        void *library =
            dlopen(KELP_TEST_BACKENDS "/probe/libtriton_probe.so", RTLD_LAZY | RTLD_NOLOAD);
        assert_non_null(library);
        notes = dlsym(library, "probe_seen");
        dlclose(library);
        assert_non_null(notes);
    }
    return notes;
}

static void open_model(world *w, const char *name, const char *config, call *c) {
    world_load(w, name, config);
    call_init(c, w->server, name, -1);
}

static void put_data(call *c) {
    call_input(c, "INPUT0", TRITONSERVER_TYPE_INT32, two, 1, data, sizeof data);
}

/* ---- handles ---- */

static void test_handles_are_the_same_on_both_sides(void **state) {
    call c;
    open_model(*state, "handles", MODEL, &c);
    put_data(&c);
    call_run(&c);
    assert_ptr_equal(seen()->request, c.request);
    assert_ptr_equal(seen()->response, c.response);
    call_deinit(&c);
}

static void test_errors_are_independent(void **state) {
    call c;
    open_model(*state, "fail",
               "backend: \"misbehave\"\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n",
               &c);
    put_data(&c);
    call_run(&c);
    TRITONSERVER_Error *first = TRITONSERVER_InferenceResponseError(c.response);
    TRITONSERVER_Error *second = TRITONSERVER_InferenceResponseError(c.response);
    assert_non_null(first);
    assert_ptr_not_equal(first, second);
    TRITONSERVER_ErrorDelete(first);
    assert_string_equal(TRITONSERVER_ErrorMessage(second), "the model has caught fire");
    TRITONSERVER_ErrorDelete(second);
    call_deinit(&c);
}

/* ---- what a backend is told ---- */

static void test_backend_gets_its_configuration(void **state) {
    world_load(*state, "config", MODEL);
    contains(seen()->backend_config, "{\"cmdline\":{");
    contains(seen()->backend_config, "\"auto-complete-config\":\"false\"");
    contains(seen()->backend_config, "\"backend-directory\":\"" KELP_TEST_BACKENDS "\"");
    contains(seen()->backend_config, "\"min-compute-capability\":\"");
    contains(seen()->backend_config, "\"default-max-batch-size\":\"4\"");
    contains(seen()->backend_config, "\"own\":\"yes\"");
    assert_string_equal(seen()->artifacts, KELP_TEST_BACKENDS "/probe");
    assert_false(seen()->auto_complete);
}

static TRITONSERVER_Error *prefer(TRITONSERVER_ResponseAllocator *allocator, void *userp,
                                  const char *name, size_t *size_bytes,
                                  TRITONSERVER_MemoryType *type, int64_t *id) {
    (void)allocator;
    (void)userp;
    assert_string_equal(name, "OUTPUT0");
    assert_int_equal(*size_bytes, 64);
    *type = TRITONSERVER_MEMORY_CPU_PINNED;
    *id = 3;
    return NULL;
}

static void test_backend_reads_the_request(void **state) {
    call c;
    open_model(*state, "request", MODEL, &c);
    put_data(&c);
    ok(TRITONSERVER_InferenceRequestSetId(c.request, "an id"));
    ok(TRITONSERVER_InferenceRequestSetCorrelationId(c.request, 77));
    ok(TRITONSERVER_InferenceRequestSetFlags(c.request, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START));
    ok(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(c.request, 1234567));
    ok(TRITONSERVER_InferenceRequestSetStringParameter(c.request, "text", "a b"));
    ok(TRITONSERVER_InferenceRequestSetIntParameter(c.request, "number", -5));
    ok(TRITONSERVER_InferenceRequestSetBoolParameter(c.request, "yes", true));
    ok(TRITONSERVER_InferenceRequestSetDoubleParameter(c.request, "half", 0.5));
    ok(TRITONSERVER_ResponseAllocatorSetQueryFunction(c.allocator, prefer));
    call_run(&c);
    assert_string_equal(seen()->id, "an id");
    assert_int_equal(seen()->correlation, 77);
    assert_int_equal(seen()->flags, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START);
    assert_int_equal(seen()->timeout_us, 1234567);
    assert_string_equal(seen()->parameters, "text=a b;number=-5;yes=1;half=0.5;");
    assert_int_equal(seen()->preferred, TRITONSERVER_MEMORY_CPU_PINNED);
    assert_int_equal(seen()->preferred_id, 3);
    assert_string_equal(seen()->preferred_error, "");
    assert_int_equal(seen()->inputs, 1);
    assert_string_equal(seen()->outputs, "OUTPUT0;EXTRA;"); /* no requested outputs: all */
    call_clear(&c);
    ok(TRITONSERVER_InferenceRequestAddRequestedOutput(c.request, "OUTPUT0"));
    ok(TRITONSERVER_InferenceRequestAddRequestedOutput(c.request, "EXTRA"));
    ok(TRITONSERVER_InferenceRequestAddRequestedOutput(c.request, "OUTPUT0"));
    ok(TRITONSERVER_ResponseAllocatorSetQueryFunction(c.allocator, NULL));
    call_run(&c);
    contains(seen()->preferred_error, "Output properties are not available");
    assert_string_equal(seen()->outputs, "EXTRA;OUTPUT0;"); /* a sorted set */
    call_deinit(&c);
}

static void test_threads_of_entry_points(void **state) {
    world *w = *state;
    call c;
    open_model(w, "threads", MODEL "instance_group [ { kind: KIND_CPU } ]\n", &c);
    put_data(&c);
    assert_true(pthread_equal(seen()->initialize_thread, pthread_self()));
    call_run(&c);
    assert_false(pthread_equal(seen()->execute_thread, pthread_self()));
    call_deinit(&c);
    ok(TRITONSERVER_ServerUnloadModel(w->server, "threads"));
    wait_for_index(w->server, "{\"name\":\"threads\",\"version\":\"1\",\"state\":\"UNAVAILABLE\"");
    assert_false(pthread_equal(seen()->finalize_thread, pthread_self()));
    assert_false(pthread_equal(seen()->finalize_thread, seen()->execute_thread));
}

static void test_passive_instances_execute_nothing(void **state) {
    world *w = *state;
    unsigned before = seen()->instances, passive = seen()->passive;
    call c;
    open_model(w, "passive",
               MODEL "instance_group [ { name: \"a\" kind: KIND_CPU count: 1 },\n"
                     "{ name: \"b\" kind: KIND_CPU count: 2 passive: true } ]\n",
               &c);
    assert_int_equal(seen()->instances - before, 3);
    assert_int_equal(seen()->passive - passive, 2);
    assert_string_equal(seen()->instance, "b_1");
    put_data(&c);
    for (int i = 0; i < 20; i++) {
        call_run(&c);
        call_clear(&c);
    }
    call_deinit(&c);
    repo_model(&w->r, "only", MODEL "instance_group [ { kind: KIND_CPU passive: true } ]\n");
    fails(TRITONSERVER_ServerLoadModel(w->server, "only"), TRITONSERVER_ERROR_INVALID_ARG,
          "no instance that is not passive");
}

/* Instances that wait for each other during initialization, so that they must be initialized
 * concurrently. */
static void test_instances_are_initialized_in_parallel(void **state) {
    world *w = *state;
    repo_model(&w->r, "together", MODEL "instance_group [ { kind: KIND_CPU count: 3 } ]\n");
    setenv("TRITON_PARALLEL_INSTANCE_LOADING", "1", 1);
    TRITONSERVER_Error *error = TRITONSERVER_ServerLoadModel(w->server, "together");
    unsetenv("TRITON_PARALLEL_INSTANCE_LOADING");
    ok(error);
}

static void test_data_for_a_host_policy_is_selected(void **state) {
    static const int32_t others[] = {8, 9};
    call c;
    open_model(*state, "policy",
               MODEL "instance_group [ { kind: KIND_CPU host_policy: \"near\" } ]\n", &c);
    contains(seen()->host_policy, "{\"near\":{");
    put_data(&c);
    ok(TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
        c.request, "INPUT0", others, sizeof others, TRITONSERVER_MEMORY_CPU, 0, "near"));
    ok(TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
        c.request, "INPUT0", data, sizeof data, TRITONSERVER_MEMORY_CPU, 0, "far"));
    call_run(&c);
    assert_memory_equal(seen()->data, others, sizeof others);
    call_deinit(&c);
}

/* ---- metrics ---- */

static void test_metrics_of_models_and_machine_are_reported(void **state) {
    world *w = *state;
    world_load(w, "tagged",
               MODEL
               "metric_tags [ { key: \"team\" value: \"blue\" }, { key: \"n\" value: \"1\" } ]\n");
    char *page = metrics_of(w->server);
    contains(page,
             "nv_inference_count{_n=\"1\",_team=\"blue\",model=\"tagged\",version=\"1\"} 0\n");
    contains(page, "# TYPE nv_model_load_duration_secs gauge\n");
    contains(page, "nv_model_load_duration_secs{_n=\"1\",_team=\"blue\",model=\"tagged\",");
    contains(page, "\nnv_cpu_utilization ");
    long long total = number_after(page, "\nnv_cpu_memory_total_bytes ");
    long long used = number_after(page, "\nnv_cpu_memory_used_bytes ");
    assert_true(total > 1 << 20);
    assert_true(used > 1 << 20 && used < total);
    free(page);
}

/* ---- shapes ---- */

static void test_reshape_is_applied(void **state) {
    static const int64_t three_four[] = {3, 4};
    static const int32_t twelve[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    call c;
    open_model(*state, "reshape",
               "backend: \"probe\" max_batch_size: 4\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 4 ] reshape { shape: [ "
               "2, 2 ] } } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 4 ] reshape { shape: [ "
               "2, 2 ] } } ]\n",
               &c);
    call_input(&c, "INPUT0", TRITONSERVER_TYPE_INT32, three_four, 2, twelve, sizeof twelve);
    call_run(&c);
    assert_int_equal(seen()->rank, 3);
    assert_int_equal(seen()->shape[0], 3);
    assert_int_equal(seen()->shape[1], 2);
    assert_int_equal(seen()->shape[2], 2);
    const char *name = NULL;
    TRITONSERVER_DataType type;
    const int64_t *shape = NULL;
    uint64_t rank = 0;
    const void *base = NULL;
    size_t size_bytes = 0;
    TRITONSERVER_MemoryType memory;
    int64_t id = 0;
    void *userp = NULL;
    ok(TRITONSERVER_InferenceResponseOutput(c.response, 0, &name, &type, &shape, &rank, &base,
                                            &size_bytes, &memory, &id, &userp));
    assert_int_equal(rank, 2); /* as clients see it */
    assert_int_equal(shape[0], 3);
    assert_int_equal(shape[1], 4);
    assert_memory_equal(base, twelve, sizeof twelve);
    call_deinit(&c);
}

static void test_shape_of_raw_input_is_deduced(void **state) {
    call c;
    static const int32_t six[] = {1, 2, 3, 4, 5, 6};
    open_model(*state, "raw",
               "backend: \"probe\" max_batch_size: 8\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1, 2 ] } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1, 2 ] } ]\n",
               &c);
    ok(TRITONSERVER_InferenceRequestAddRawInput(c.request, "whatever"));
    fails(TRITONSERVER_InferenceRequestAddRawInput(c.request, "more"),
          TRITONSERVER_ERROR_INVALID_ARG, "");
    ok(TRITONSERVER_InferenceRequestAppendInputData(c.request, "whatever", six, sizeof six,
                                                    TRITONSERVER_MEMORY_CPU, 0));
    call_run(&c);
    assert_int_equal(seen()->datatype, TRITONSERVER_TYPE_INT32);
    assert_int_equal(seen()->rank, 3);
    assert_int_equal(seen()->shape[0], 1);
    assert_int_equal(seen()->shape[1], 3);
    assert_int_equal(seen()->shape[2], 2);
    call_deinit(&c);
}

static void test_optional_inputs_may_be_omitted(void **state) {
    call c;
    open_model(*state, "optional",
               "backend: \"probe\"\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 2 ] },\n"
               "        { name: \"MORE\" data_type: TYPE_INT32 dims: [ 2 ] optional: true } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n",
               &c);
    call_input(&c, "MORE", TRITONSERVER_TYPE_INT32, two, 1, data, sizeof data);
    fails(TRITONSERVER_ServerInferAsync(c.server, c.request, NULL), TRITONSERVER_ERROR_INVALID_ARG,
          "expected number of inputs between 1 and 2 but got 1 inputs for model 'optional'");
    put_data(&c);
    call_run(&c);
    assert_int_equal(seen()->inputs, 2);
    call_clear(&c);
    ok(TRITONSERVER_InferenceRequestRemoveInput(c.request, "MORE"));
    call_run(&c);
    assert_int_equal(seen()->inputs, 1);
    call_deinit(&c);
}

/* A string may continue in the next buffer, but its length must not. */
static void test_strings_may_span_buffers(void **state) {
    static const char bytes[] = "\x05\0\0\0hello\x01\0\0\0!";
    static const struct {
        size_t cut;
        bool good;
    } cases[] = {{4, true}, {6, true}, {9, true}, {2, false}, {11, false}};
    call c;
    open_model(*state, "strings",
               "backend: \"probe\"\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_STRING dims: [ 2 ] } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_STRING dims: [ 2 ] } ]\n",
               &c);
    ok(TRITONSERVER_InferenceRequestAddInput(c.request, "INPUT0", TRITONSERVER_TYPE_BYTES, two, 1));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ok(TRITONSERVER_InferenceRequestRemoveAllInputData(c.request, "INPUT0"));
        ok(TRITONSERVER_InferenceRequestAppendInputData(c.request, "INPUT0", bytes, cases[i].cut,
                                                        TRITONSERVER_MEMORY_CPU, 0));
        ok(TRITONSERVER_InferenceRequestAppendInputData(c.request, "INPUT0", bytes + cases[i].cut,
                                                        sizeof bytes - 1 - cases[i].cut,
                                                        TRITONSERVER_MEMORY_CPU, 0));
        if (!cases[i].good) {
            fails(TRITONSERVER_ServerInferAsync(c.server, c.request, NULL),
                  TRITONSERVER_ERROR_INVALID_ARG, "incomplete string length indicator");
            continue;
        }
        call_run(&c);
        assert_int_equal(seen()->buffers, 2);
        assert_memory_equal(seen()->data, bytes, sizeof bytes - 1);
        call_clear(&c);
    }
    call_deinit(&c);
}

/* ---- versions and overrides ---- */

static void test_other_directories_are_not_versions(void **state) {
    static const char *const names[] = {"01", "x", "-3", "2x", "99999999999999999999", "0"};
    world *w = *state;
    unsigned before = seen()->models;
    repo_model(&w->r, "directories", MODEL "version_policy { all { } }\n");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        repo_version(&w->r, "directories", names[i]);
    ok(TRITONSERVER_ServerLoadModel(w->server, "directories"));
    assert_int_equal(seen()->models - before, 1);
}

static void test_one_bad_version_fails_the_load(void **state) {
    world *w = *state;
    TRITONSERVER_InferenceRequest *request = NULL;
    repo_model(&w->r, "bad", MODEL "version_policy { all { } }\n");
    repo_version(&w->r, "bad", "2");
    repo_file(&w->r, "bad/2/bad", "");
    fails(TRITONSERVER_ServerLoadModel(w->server, "bad"), TRITONSERVER_ERROR_INTERNAL,
          "version 2 is at UNAVAILABLE state: a bad version");
    fails(TRITONSERVER_InferenceRequestNew(&request, w->server, "bad", 1),
          TRITONSERVER_ERROR_UNAVAILABLE, "not at ready state");
    repo_drop(&w->r, "bad/2/bad");
    ok(TRITONSERVER_ServerLoadModel(w->server, "bad"));
    /* It continues to serve if the next load fails. */
    repo_version(&w->r, "bad", "3");
    repo_file(&w->r, "bad/3/bad", "");
    fails(TRITONSERVER_ServerLoadModel(w->server, "bad"), TRITONSERVER_ERROR_INTERNAL,
          "version 3 is at UNAVAILABLE state: a bad version");
    ok(TRITONSERVER_InferenceRequestNew(&request, w->server, "bad", 2));
    ok(TRITONSERVER_InferenceRequestDelete(request));
}

static void has(TRITONSERVER_Server *server, const char *model, const char *part) {
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelConfig(server, model, -1, 1, &message));
    char *text = message_text(message);
    contains(text, part);
    free(text);
}

/* ---- changes of a model that serves ---- */

typedef struct counts {
    unsigned models, instances, ended;
} counts;

static counts count_seen(void) {
    return (counts){seen()->models, seen()->instances, atomic_load(&seen()->ended)};
}

static void reconfigure(world *w, const char *more) {
    char config[2048];
    snprintf(config, sizeof config, "%s%s", MODEL, more);
    repo_file(&w->r, "grows/config.pbtxt", config);
}

/* Loads the model with an addition to its configuration, and checks which instances the backend
 * initializes and finalizes. */
static void change(world *w, const char *more, unsigned models, unsigned instances,
                   unsigned ended) {
    const counts before = count_seen();
    counts now = before;
    reconfigure(w, more);
    ok(TRITONSERVER_ServerLoadModel(w->server, "grows"));
    char expected[256], found[256];
    for (int i = 0; i < 1000; i++) {
        now = count_seen();
        if (now.ended - before.ended == ended)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    snprintf(expected, sizeof expected, "%s: %u models, %u instances, %u ended", more, models,
             instances, ended);
    snprintf(found, sizeof found, "%s: %u models, %u instances, %u ended", more,
             now.models - before.models, now.instances - before.instances,
             now.ended - before.ended);
    assert_string_equal(found, expected);
}

static void test_instances_change_in_place(void **state) {
    world *w = *state;
    call c;
    open_model(w, "grows", MODEL "instance_group [ { kind: KIND_CPU } ]\n", &c);
    put_data(&c);
    call_run(&c);
    change(w, "instance_group [ { kind: KIND_CPU count: 3 } ]\n", 0, 2, 0);
    has(w->server, "grows", "\"count\":3");
    change(w, "# nothing\ninstance_group [ { kind: KIND_CPU count: 3 } ]\n", 0, 0, 0);
    change(w, "instance_group [ { kind: KIND_CPU count: 1 }, { passive: true kind: KIND_CPU } ]\n",
           0, 1, 2);
    /* A different host policy is a different instance. */
    change(w, "instance_group [ { kind: KIND_CPU host_policy: \"far\" } ]\n", 0, 1, 2);
    contains(seen()->host_policy, "{\"far\":");
    /* If an instance cannot be initialized, the model does not change. */
    counts before = count_seen();
    reconfigure(w, "instance_group [ { kind: KIND_CPU host_policy: \"far\" count: 2 },"
                   " { name: \"rejected\" kind: KIND_CPU } ]\n");
    fails(TRITONSERVER_ServerLoadModel(w->server, "grows"), TRITONSERVER_ERROR_UNAVAILABLE,
          "no such instance here");
    assert_int_equal(count_seen().models, before.models);
    assert_int_equal(count_seen().instances - before.instances, count_seen().ended - before.ended);
    has(w->server, "grows", "\"host_policy\":\"far\"");
    reconfigure(w, "instance_group [ { kind: KIND_CPU passive: true } ]\n");
    fails(TRITONSERVER_ServerLoadModel(w->server, "grows"), TRITONSERVER_ERROR_INVALID_ARG,
          "has no instance that is not passive");
    reconfigure(w, "instance_group [ { kind: KIND_GPU } ]\n");
    fails(TRITONSERVER_ServerLoadModel(w->server, "grows"), TRITONSERVER_ERROR_INTERNAL,
          "this server has no GPU");
    /* The model was never replaced, also for requests that were created at the beginning. */
    call_clear(&c);
    call_run(&c);
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelStatistics(w->server, "grows", -1, &message));
    char *text = message_text(message);
    contains(text, "\"name\":\"grows\",\"version\":\"1\"");
    free(text);
    call_deinit(&c);
    /* Versions are added and removed while others stay. */
    repo_version(&w->r, "grows", "2");
    change(w, "version_policy { all { } }\n", 1, 2, 1);
    wait_for_index(w->server, "{\"name\":\"grows\",\"version\":\"1\",\"state\":\"READY\"}");
    wait_for_index(w->server, "{\"name\":\"grows\",\"version\":\"2\",\"state\":\"READY\"}");
    has(w->server, "grows", "\"all\":{}");
    change(w, "version_policy { specific { versions: [ 1 ] } }\n", 0, 0, 1);
    wait_for_index(w->server, "\"version\":\"2\",\"state\":\"UNAVAILABLE\"");
    /* Any other change creates a new model: in its files, in shared files, in other fields of
     * the configuration. */
    repo_file(&w->r, "grows/1/weights", "new");
    change(w, "version_policy { specific { versions: [ 1 ] } }\n", 1, 1, 1);
    repo_file(&w->r, "grows/labels.txt", "new");
    change(w, "version_policy { specific { versions: [ 1 ] } }\n", 1, 1, 1);
    repo_file(&w->r, "grows/2/weights", "of another version");
    repo_version(&w->r, "grows", "1/__pycache__"); /* Python's compiled files are ignored */
    repo_file(&w->r, "grows/1/__pycache__/model.pyc", "code");
    change(w, "version_policy { specific { versions: [ 1 ] } }\n", 0, 0, 0);
    change(w,
           "parameters { key: \"a\" value { string_value: \"b\" } }\n"
           "version_policy { specific { versions: [ 1 ] } }\n",
           1, 1, 1);
}

/* All versions that stay get the new instances, or none does. */
static void test_versions_change_together(void **state) {
    static const char first[] = "version_policy { all { } }\n";
    world *w = *state;
    char config[2048];
    snprintf(config, sizeof config, "%s%sinstance_group [ { kind: KIND_CPU } ]\n", MODEL, first);
    repo_model(&w->r, "both", config);
    repo_version(&w->r, "both", "2");
    ok(TRITONSERVER_ServerLoadModel(w->server, "both"));
    counts before = count_seen();
    snprintf(config, sizeof config,
             "%s%sinstance_group [ { kind: KIND_CPU },"
             " { name: \"only_first\" kind: KIND_CPU host_policy: \"near\" } ]\n",
             MODEL, first);
    repo_file(&w->r, "both/config.pbtxt", config);
    fails(TRITONSERVER_ServerLoadModel(w->server, "both"), TRITONSERVER_ERROR_UNAVAILABLE,
          "version 2: no such instance here");
    assert_int_equal(count_seen().models, before.models);
    assert_int_equal(count_seen().instances - before.instances, 2);
    assert_int_equal(count_seen().ended - before.ended, 2);
    for (int64_t version = 1; version <= 2; version++) {
        TRITONSERVER_Message *message = NULL;
        ok(TRITONSERVER_ServerModelConfig(w->server, "both", version, 1, &message));
        char *text = message_text(message);
        assert_null(strstr(text, "only_first"));
        free(text);
        call c;
        call_init(&c, w->server, "both", version);
        put_data(&c);
        call_run(&c);
        call_deinit(&c);
    }
    ok(TRITONSERVER_ServerUnloadModel(w->server, "both"));
}

#define WARM_UP                                                                       \
    "model_warmup [ { name: \"first\" batch_size: 1 inputs { key: \"INPUT0\" value {" \
    " data_type: TYPE_INT32 dims: [ 2 ] zero_data: true } } } ]\n"

static void *load_warm(void *userp) {
    return TRITONSERVER_ServerLoadModel(userp, "warm");
}

/* Requests are executed while another instance warms up. */
static void test_requests_run_while_an_instance_warms_up(void **state) {
    world *w = *state;
    call c;
    pthread_t loading;
    void *error = NULL;
    open_model(w, "warm", MODEL WARM_UP "instance_group [ { kind: KIND_CPU } ]\n", &c);
    put_data(&c);
    call_run(&c);
    repo_file(&w->r, "warm/config.pbtxt",
              MODEL WARM_UP "instance_group [ { kind: KIND_CPU },"
                            " { name: \"held\" kind: KIND_CPU host_policy: \"far\" } ]\n");
    assert_int_equal(pthread_create(&loading, NULL, load_warm, w->server), 0);
    for (int i = 0; i < 10000 && !atomic_load(&seen()->held); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (int i = 0; i < 50; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* the instance is sleeping now */
        call_clear(&c);
        call_run(&c);
    }
    atomic_store(&seen()->let_go, true);
    pthread_join(loading, &error);
    ok(error); /* the wait has not timed out, so that the requests did not wait for it */
    assert_int_equal(atomic_load(&seen()->held), 1);
    call_deinit(&c);
    ok(TRITONSERVER_ServerUnloadModel(w->server, "warm"));
}

/* A model that loads itself during an execution: a load that would remove its instance is
 * rejected. */
static void test_model_can_load_itself(void **state) {
    static const char *const places[] = {"instance", "caller"};
    world *w = *state;
    for (int i = 0; i < 2; i++) {
        char config[2048];
        call c;
        snprintf(config, sizeof config,
                 "%sparameters { key: \"kelp_execute_on\" value { string_value: \"%s\" } }\n",
                 MODEL, places[i]);
        open_model(w, "itself", config, &c);
        put_data(&c);
        call_run(&c);
        assert_string_equal(seen()->reload, "loaded");
        call_clear(&c);
        strcat(config, "instance_group [ { kind: KIND_CPU host_policy: \"far\" } ]\n");
        repo_file(&w->r, "itself/config.pbtxt", config);
        call_run(&c);
        contains(seen()->reload, "removed by a request that it executes");
        call_deinit(&c);
        ok(TRITONSERVER_ServerLoadModel(w->server,
                                        "itself")); /* it succeeds outside of the execution */
        contains(seen()->host_policy, "{\"far\":");
        ok(TRITONSERVER_ServerUnloadModel(w->server, "itself"));
        wait_for_index(w->server,
                       "{\"name\":\"itself\",\"version\":\"1\",\"state\":\"UNAVAILABLE\"");
    }
}

static void test_overrides_end_when_files_change(void **state) {
    static const char json[] =
        "{\"backend\":\"probe\",\"max_batch_size\":3,\"input\":[{\"name\":\"INPUT0\",\"data_type\":"
        "\"TYPE_INT32\",\"dims\":[2]}],\"output\":[{\"name\":\"OUTPUT0\",\"data_type\":"
        "\"TYPE_INT32\",\"dims\":[2]}]}";
    world *w = *state;
    world_load(w, "override", MODEL);
    TRITONSERVER_Parameter *config =
        TRITONSERVER_ParameterNew("config", TRITONSERVER_PARAMETER_STRING, json);
    TRITONSERVER_Parameter *bad = TRITONSERVER_ParameterBytesNew("file:1/bad", "x", 1);
    TRITONSERVER_Parameter *file = TRITONSERVER_ParameterBytesNew("file:7/data", "x", 1);
    const TRITONSERVER_Parameter *only[] = {config}, *whole[] = {config, file},
                                 *failing[] = {config, bad};
    /* The override applies until a file of the model changes. */
    ok(TRITONSERVER_ServerLoadModelWithParameters(w->server, "override", only, 1));
    ok(TRITONSERVER_ServerLoadModel(w->server, "override"));
    has(w->server, "override", "\"max_batch_size\":3");
    repo_file(&w->r, "override/1/new", "a new file");
    ok(TRITONSERVER_ServerLoadModel(w->server, "override"));
    has(w->server, "override", "\"max_batch_size\":0");
    /* Files replace the whole directory, including versions, until the next load without
     * parameters. */
    ok(TRITONSERVER_ServerLoadModelWithParameters(w->server, "override", whole, 2));
    wait_for_index(w->server, "{\"name\":\"override\",\"version\":\"7\",\"state\":\"READY\"}");
    wait_for_index(w->server, "{\"name\":\"override\",\"version\":\"1\",\"state\":\"UNAVAILABLE\"");
    ok(TRITONSERVER_ServerLoadModel(w->server, "override"));
    has(w->server, "override", "\"max_batch_size\":0");
    wait_for_index(w->server, "{\"name\":\"override\",\"version\":\"1\",\"state\":\"READY\"}");
    /* After a failure, the previous model continues to serve. */
    fails(TRITONSERVER_ServerLoadModelWithParameters(w->server, "override", failing, 2),
          TRITONSERVER_ERROR_INTERNAL, "a bad version");
    has(w->server, "override", "\"max_batch_size\":0");
    ok(TRITONSERVER_ServerLoadModel(w->server, "override"));
    TRITONSERVER_ParameterDelete(config);
    TRITONSERVER_ParameterDelete(bad);
    TRITONSERVER_ParameterDelete(file);
}

/* ---- options ---- */

static void test_wildcard_must_be_the_only_startup_model(void **state) {
    world *w = *state;
    TRITONSERVER_Server *server = NULL;
    fails(server_try(&w->r,
                     &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                     .startup = {"*", "handles"},
                                     .backends = KELP_TEST_BACKENDS},
                     &server),
          TRITONSERVER_ERROR_INVALID_ARG, "'*' must be the ONLY startup model");
}

/* A server with a repository and no other options. */
static void test_options_have_defaults(void **state) {
    repo r;
    TRITONSERVER_ServerOptions *options = NULL;
    TRITONSERVER_Server *server = NULL;
    (void)state;
    repo_make(&r);
    repo_model(&r, "m", MODEL);
    ok(TRITONSERVER_ServerOptionsNew(&options));
    ok(TRITONSERVER_ServerOptionsSetModelRepositoryPath(options, r.path));
    ok(TRITONSERVER_ServerOptionsSetLogError(options, false));
    TRITONSERVER_Error *error = TRITONSERVER_ServerNew(&server, options);
    assert_non_null(error); /* exit_on_error */
    contains(TRITONSERVER_ErrorMessage(error),
             "'/opt/tritonserver/backends/probe/libtriton_probe.so'");
    TRITONSERVER_ErrorDelete(error);
    repo_file(&r, "m/config.pbtxt", "backend: \"probe\"\n");
    error = TRITONSERVER_ServerNew(&server, options);
    assert_non_null(error); /* strict: a complete configuration is required */
    assert_null(strstr(TRITONSERVER_ErrorMessage(error), "libtriton_probe"));
    TRITONSERVER_ErrorDelete(error);
    ok(TRITONSERVER_ServerOptionsDelete(options));
    repo_remove(&r);
}

/* ---- log ---- */

static void read_text(FILE *file, char *out, size_t size) {
    rewind(file);
    size_t length = fread(out, 1, size - 1, file);
    out[length] = '\0';
    fclose(file);
}

/* INFO is written to standard output, other levels to standard error. */
static void test_log_levels_select_the_stream(void **state) {
    char out[512], err[512];
    FILE *files[] = {tmpfile(), tmpfile()};
    int saved[] = {dup(1), dup(2)};
    (void)state;
    fflush(NULL);
    dup2(fileno(files[0]), 1);
    dup2(fileno(files[1]), 2);
    ok(TRITONSERVER_ServerOptionsSetLogInfo(NULL, true));
    ok(TRITONSERVER_ServerOptionsSetLogWarn(NULL, true));
    ok(TRITONSERVER_LogMessage(TRITONSERVER_LOG_INFO, "a.c", 1, "news"));
    ok(TRITONSERVER_LogMessage(TRITONSERVER_LOG_WARN, "a.c", 2, "trouble"));
    ok(TRITONSERVER_ServerOptionsSetLogInfo(NULL, false));
    ok(TRITONSERVER_ServerOptionsSetLogWarn(NULL, false));
    fflush(NULL);
    dup2(saved[0], 1);
    dup2(saved[1], 2);
    close(saved[0]);
    close(saved[1]);
    read_text(files[0], out, sizeof out);
    read_text(files[1], err, sizeof err);
    contains(out, "a.c:1] \"news\"");
    assert_null(strstr(out, "trouble"));
    contains(err, "a.c:2] \"trouble\"");
    assert_null(strstr(err, "news"));
}

typedef struct log_record {
    int count;
    TRITONSERVER_LogLevel level;
    char file[32];
    int line;
    uint64_t time_us;
    char message[64];
} log_record;

static void keep_record(TRITONSERVER_LogLevel level, const char *filename, int line,
                        uint64_t timestamp_us, const char *message, void *userp) {
    log_record *record = userp;
    record->count++;
    record->level = level;
    record->line = line;
    record->time_us = timestamp_us;
    snprintf(record->file, sizeof record->file, "%s", filename);
    snprintf(record->message, sizeof record->message, "%s", message);
}

/* The servers of these tests write no messages of their own. */
static void new_server_with_callback(const char *repository, TRITONSERVER_LogCallbackFn_t callback,
                                     log_record *record) {
    TRITONSERVER_ServerOptions *options = NULL;
    TRITONSERVER_Server *server = NULL;
    ok(TRITONSERVER_ServerOptionsNew(&options));
    ok(TRITONSERVER_ServerOptionsSetModelRepositoryPath(options, repository));
    ok(TRITONSERVER_ServerOptionsSetLogInfo(options, false));
    ok(TRITONSERVER_ServerOptionsSetLogCallback(options, callback, record));
    ok(TRITONSERVER_ServerNew(&server, options));
    ok(TRITONSERVER_ServerOptionsDelete(options));
    ok(TRITONSERVER_ServerStop(server));
    ok(TRITONSERVER_ServerDelete(server));
}

static void test_log_is_passed_to_a_callback(void **state) {
    repo r;
    log_record record = {0};
    TRITONSERVER_ServerOptions *options = NULL;
    (void)state;
    repo_make(&r);
    fails(TRITONSERVER_ServerOptionsSetLogCallback(NULL, keep_record, &record),
          TRITONSERVER_ERROR_INVALID_ARG, "options");
    ok(TRITONSERVER_ServerOptionsNew(&options));
    ok(TRITONSERVER_ServerOptionsSetLogCallback(options, keep_record, &record));
    ok(TRITONSERVER_ServerOptionsDelete(options));
    ok(TRITONSERVER_ServerOptionsSetLogWarn(NULL, true));
    ok(TRITONSERVER_LogMessage(TRITONSERVER_LOG_WARN, "a.c", 1, "no server has the options"));
    assert_int_equal(record.count, 0);
    new_server_with_callback(r.path, keep_record, &record);
    record.count = 0;
    uint64_t before_us = (uint64_t)time(NULL) * 1000000u;
    ok(TRITONSERVER_LogMessage(TRITONSERVER_LOG_WARN, "/far/away/a.c", 12, "say \"it\"\nnow"));
    assert_int_equal(record.count, 1);
    assert_int_equal(record.level, TRITONSERVER_LOG_WARN);
    assert_string_equal(record.file, "a.c");
    assert_int_equal(record.line, 12);
    assert_string_equal(record.message, "say \"it\"\nnow");
    assert_true(record.time_us >= before_us && record.time_us < before_us + 60000000u);
    ok(TRITONSERVER_LogMessage(TRITONSERVER_LOG_INFO, NULL, 0, "disabled"));
    assert_int_equal(record.count, 1);
    ok(TRITONSERVER_ServerOptionsSetLogVerbose(NULL, 1));
    ok(TRITONSERVER_LogMessage(TRITONSERVER_LOG_VERBOSE, NULL, 0, "details"));
    ok(TRITONSERVER_ServerOptionsSetLogVerbose(NULL, 0));
    assert_int_equal(record.level, TRITONSERVER_LOG_VERBOSE);
    assert_string_equal(record.file, "");
    new_server_with_callback(r.path, NULL, NULL);
    record.count = 0;
    ok(TRITONSERVER_LogMessage(TRITONSERVER_LOG_WARN, "a.c", 1, "to the streams"));
    ok(TRITONSERVER_ServerOptionsSetLogWarn(NULL, false));
    assert_int_equal(record.count, 0);
    repo_remove(&r);
}

/* ---- traces ---- */

static void drop_trace(TRITONSERVER_InferenceTrace *trace, void *userp) {
    (void)userp;
    ok(TRITONSERVER_InferenceTraceDelete(trace));
}

static void test_trace_ids_are_unique(void **state) {
    TRITONSERVER_InferenceTrace *first = NULL, *second = NULL, *child = NULL;
    uint64_t id = 0, next = 0, parent = 7;
    (void)state;
    ok(TRITONSERVER_InferenceTraceNew(&first, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, NULL,
                                      drop_trace, NULL));
    ok(TRITONSERVER_InferenceTraceNew(&second, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, NULL,
                                      drop_trace, NULL));
    ok(TRITONSERVER_InferenceTraceId(first, &id));
    ok(TRITONSERVER_InferenceTraceId(second, &next));
    assert_true(id >= 1);
    assert_int_equal(next, id + 1);
    ok(TRITONSERVER_InferenceTraceParentId(first, &parent));
    assert_int_equal(parent, 0);
    ok(TRITONSERVER_InferenceTraceSpawnChildTrace(first, &child));
    ok(TRITONSERVER_InferenceTraceParentId(child, &parent));
    assert_int_equal(parent, id);
    ok(TRITONSERVER_InferenceTraceDelete(first));
    ok(TRITONSERVER_InferenceTraceDelete(second));
    ok(TRITONSERVER_InferenceTraceDelete(child));
}

/* Keeps the context that the callback of a custom activity finds. */
static void keep_context(TRITONSERVER_InferenceTrace *trace,
                         TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns,
                         void *userp) {
    const char *context = NULL;
    assert_int_equal(activity, TRITONSERVER_TRACE_CUSTOM_ACTIVITY);
    assert_int_equal(timestamp_ns, 12);
    ok(TRITONSERVER_InferenceTraceContext(trace, &context));
    snprintf(userp, 128, "%s", context);
}

static void test_custom_activities_are_named_by_the_context(void **state) {
    static const char *const cases[][2] = {
        {"", "{\"12\":\"a \\\"b\\\"\"}"},
        {"{}", "{\"12\":\"a \\\"b\\\"\"}"},
        {"{\"traceparent\":\"00\"}", "{\"traceparent\":\"00\",\"12\":\"a \\\"b\\\"\"}"},
        {"text", "{\"12\":\"a \\\"b\\\"\"}"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TRITONSERVER_InferenceTrace *trace = NULL;
        char seen[128] = "";
        const char *after = NULL;
        ok(TRITONSERVER_InferenceTraceNew(&trace, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0,
                                          keep_context, drop_trace, seen));
        ok(TRITONSERVER_InferenceTraceSetContext(trace, cases[i][0]));
        ok(TRITONSERVER_InferenceTraceReportActivity(trace, 12, "a \"b\""));
        assert_string_equal(seen, cases[i][1]);
        ok(TRITONSERVER_InferenceTraceContext(trace, &after));
        assert_string_equal(after, cases[i][0]);
        ok(TRITONSERVER_InferenceTraceDelete(trace));
    }
}

/* Two threads, each of which reports activities while the other one does. */
typedef struct meeting {
    TRITONSERVER_InferenceTrace *trace;
    pthread_barrier_t barrier;
    atomic_int time_ns; /* of the latest activity */
    atomic_int wrong;   /* contexts without the name of their activity, its time */
} meeting;

static void check_context(TRITONSERVER_InferenceTrace *trace,
                          TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns,
                          void *userp) {
    meeting *m = userp;
    const char *context = NULL;
    char expected[64];
    (void)activity;
    snprintf(expected, sizeof expected, "{\"a\":1,\"%llu\":\"%llu\"}",
             (unsigned long long)timestamp_ns, (unsigned long long)timestamp_ns);
    pthread_barrier_wait(&m->barrier);
    ok(TRITONSERVER_InferenceTraceContext(trace, &context));
    if (strcmp(context, expected) != 0)
        atomic_fetch_add(&m->wrong, 1);
    pthread_barrier_wait(&m->barrier);
}

static void *report_activities(void *userp) {
    meeting *m = userp;
    char name[16];
    for (int i = 0; i < 100; i++) {
        int time_ns = atomic_fetch_add(&m->time_ns, 1);
        snprintf(name, sizeof name, "%d", time_ns);
        ok(TRITONSERVER_InferenceTraceReportActivity(m->trace, (uint64_t)time_ns, name));
    }
    return NULL;
}

static void test_two_threads_report_custom_activities_of_a_trace(void **state) {
    meeting m = {0};
    const char *after = NULL;
    pthread_t other;
    (void)state;
    assert_int_equal(pthread_barrier_init(&m.barrier, NULL, 2), 0);
    ok(TRITONSERVER_InferenceTraceNew(&m.trace, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0,
                                      check_context, drop_trace, &m));
    ok(TRITONSERVER_InferenceTraceSetContext(m.trace, "{\"a\":1}"));
    assert_int_equal(pthread_create(&other, NULL, report_activities, &m), 0);
    report_activities(&m);
    pthread_join(other, NULL);
    ok(TRITONSERVER_InferenceTraceContext(m.trace, &after));
    assert_string_equal(after, "{\"a\":1}");
    ok(TRITONSERVER_InferenceTraceDelete(m.trace));
    pthread_barrier_destroy(&m.barrier);
    assert_int_equal(m.wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handles_are_the_same_on_both_sides),
        cmocka_unit_test(test_errors_are_independent),
        cmocka_unit_test(test_backend_gets_its_configuration),
        cmocka_unit_test(test_backend_reads_the_request),
        cmocka_unit_test(test_threads_of_entry_points),
        cmocka_unit_test(test_passive_instances_execute_nothing),
        cmocka_unit_test(test_instances_are_initialized_in_parallel),
        cmocka_unit_test(test_instances_change_in_place),
        cmocka_unit_test(test_versions_change_together),
        cmocka_unit_test(test_requests_run_while_an_instance_warms_up),
        cmocka_unit_test(test_model_can_load_itself),
        cmocka_unit_test(test_data_for_a_host_policy_is_selected),
        cmocka_unit_test(test_metrics_of_models_and_machine_are_reported),
        cmocka_unit_test(test_reshape_is_applied),
        cmocka_unit_test(test_shape_of_raw_input_is_deduced),
        cmocka_unit_test(test_optional_inputs_may_be_omitted),
        cmocka_unit_test(test_strings_may_span_buffers),
        cmocka_unit_test(test_other_directories_are_not_versions),
        cmocka_unit_test(test_one_bad_version_fails_the_load),
        cmocka_unit_test(test_overrides_end_when_files_change),
        cmocka_unit_test(test_wildcard_must_be_the_only_startup_model),
        cmocka_unit_test(test_options_have_defaults),
        cmocka_unit_test(test_log_levels_select_the_stream),
        cmocka_unit_test(test_log_is_passed_to_a_callback),
        cmocka_unit_test(test_trace_ids_are_unique),
        cmocka_unit_test(test_custom_activities_are_named_by_the_context),
        cmocka_unit_test(test_two_threads_report_custom_activities_of_a_trace),
    };
    return cmocka_run_group_tests(tests, set_up, world_close);
}
