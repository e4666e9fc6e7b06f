/* SPDX-License-Identifier: Apache-2.0 */
/* Several repositories: the same name in two repositories, with and without namespaces;
 * registration of repositories; models with a name that differs from their directory's. */
#include "server/support.h"

typedef struct worlds {
    repo first, second;
    TRITONSERVER_Server *server;
} worlds;

static void contains_once(const char *text, const char *part) {
    const char *at = strstr(text, part);
    contains(text, part);
    assert_null(strstr(at + 1, part));
}

static char *index_of(TRITONSERVER_Server *server) {
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelIndex(server, 0, &message));
    return message_text(message);
}

/* addsub with a different batch size, which distinguishes the models. */
static void add(const repo *r, const char *name, const char *batch) {
    char text[2048];
    snprintf(text, sizeof text, "%s", addsub_config);
    char *size = strstr(text, "max_batch_size: 8");
    assert_non_null(size);
    size[16] = batch[0];
    repo_model(r, name, text);
}

static void has_batch(TRITONSERVER_Server *server, const char *name, const char *batch) {
    TRITONSERVER_Message *message = NULL;
    char expected[64];
    ok(TRITONSERVER_ServerModelConfig(server, name, -1, 1, &message));
    char *text = message_text(message);
    snprintf(expected, sizeof expected, "\"max_batch_size\":%s", batch);
    contains(text, expected);
    free(text);
}

static void ask(TRITONSERVER_Server *server, const char *model) {
    call c;
    float a[16], b[16];
    const char *name = NULL;
    int64_t version = 0;
    size_t size_bytes = 0;
    call_init(&c, server, model, -1);
    call_addsub(&c, a, b, 2);
    call_run(&c);
    const float *sum = call_output(&c, "OUTPUT0", &size_bytes);
    assert_true(sum[0] == 3);
    ok(TRITONSERVER_InferenceResponseModel(c.response, &name, &version));
    assert_null(strstr(name, "::")); /* the name without the namespace */
    call_deinit(&c);
}

/* Two repositories: "same" is in both, "one" and "two" are in one of them. */
static void world_make(worlds *w, TRITONSERVER_ModelControlMode mode, bool namespaces) {
    repo_make(&w->first);
    repo_make(&w->second);
    add(&w->first, "same", "3");
    add(&w->second, "same", "5");
    add(&w->first, "one", "1");
    add(&w->second, "two", "2");
    w->server = server_start(&w->first, &(server_setup){.mode = mode,
                                                        .keep_on_error = true,
                                                        .namespaces = namespaces,
                                                        .second_repository = w->second.path});
}

static void world_end(worlds *w) {
    server_end(w->server);
    repo_remove(&w->first);
    repo_remove(&w->second);
}

static void test_duplicate_name_is_rejected_without_namespaces(void **state) {
    worlds w;
    bool ready = false;
    (void)state;
    world_make(&w, TRITONSERVER_MODEL_CONTROL_NONE, false);
    char *index = index_of(w.server);
    contains_once(index, "{\"name\":\"same\",\"state\":\"UNAVAILABLE\",\"reason\":\"model appears "
                         "in two or more repositories\"}");
    free(index);
    ask(w.server, "one");
    ask(w.server, "two");
    ready = true;
    ok(TRITONSERVER_ServerModelIsReady(w.server, "same", -1, &ready));
    assert_false(ready);
    world_end(&w);

    world_make(&w, TRITONSERVER_MODEL_CONTROL_EXPLICIT, false);
    fails(TRITONSERVER_ServerLoadModel(w.server, "same"), TRITONSERVER_ERROR_INTERNAL,
          "model 'same' is in two repositories: '");
    world_end(&w);
}

static void test_ambiguous_name_is_rejected(void **state) {
    worlds w;
    bool ready = false;
    char full[400], label[400];
    TRITONSERVER_InferenceRequest *request = NULL;
    (void)state;
    world_make(&w, TRITONSERVER_MODEL_CONTROL_NONE, true);
    char *index = index_of(w.server);
    const char *row = "{\"name\":\"same\",\"version\":\"1\",\"state\":\"READY\"}";
    contains(index, row);
    contains_once(strstr(index, row) + 1, row); /* both */
    free(index);
    ask(w.server, "one");
    ask(w.server, "two");
    fails(TRITONSERVER_InferenceRequestNew(&request, w.server, "same", -1),
          TRITONSERVER_ERROR_INVALID_ARG, "there are 2 models 'same'");
    fails(TRITONSERVER_ServerModelIsReady(w.server, "same", -1, &ready),
          TRITONSERVER_ERROR_INVALID_ARG, "namespace");
    snprintf(full, sizeof full, "%s::same", w.first.path);
    has_batch(w.server, full, "3");
    ask(w.server, full);
    snprintf(full, sizeof full, "%s::same", w.second.path);
    has_batch(w.server, full, "5");
    ask(w.server, full);
    fails(TRITONSERVER_InferenceRequestNew(&request, w.server, "/nowhere::same", -1),
          TRITONSERVER_ERROR_NOT_FOUND, "'/nowhere::same' is not found");

    TRITONSERVER_Metrics *metrics = NULL;
    const char *base = NULL;
    size_t size = 0;
    ok(TRITONSERVER_ServerMetrics(w.server, &metrics));
    ok(TRITONSERVER_MetricsFormatted(metrics, TRITONSERVER_METRIC_PROMETHEUS, &base, &size));
    snprintf(label, sizeof label,
             "nv_inference_count{model=\"same\",namespace=\"%s\",version=\"1\"} 1\n",
             w.second.path);
    char *page = strndup(base, size);
    contains(page, label);
    free(page);
    ok(TRITONSERVER_MetricsDelete(metrics));
    world_end(&w);
}

static void test_load_and_unload_apply_to_all_namespaces(void **state) {
    worlds w;
    char text[400];
    (void)state;
    world_make(&w, TRITONSERVER_MODEL_CONTROL_EXPLICIT, true);
    /* Only one of them can be loaded, so that the name is not ambiguous; the error names the
     * other. */
    repo_file(&w.second, "same/config.pbtxt", "no such field { }");
    snprintf(text, sizeof text, "%s/same/config.pbtxt:1:", w.second.path);
    fails(TRITONSERVER_ServerLoadModel(w.server, "same"), TRITONSERVER_ERROR_INTERNAL, text);
    has_batch(w.server, "same", "3");
    ask(w.server, "same");
    add(&w.second, "same", "5");
    ok(TRITONSERVER_ServerLoadModel(w.server, "same"));
    TRITONSERVER_InferenceRequest *request = NULL;
    fails(TRITONSERVER_InferenceRequestNew(&request, w.server, "same", -1),
          TRITONSERVER_ERROR_INVALID_ARG, "there are 2 models 'same'");
    ok(TRITONSERVER_ServerUnloadModel(w.server, "same"));
    fails(TRITONSERVER_InferenceRequestNew(&request, w.server, "same", -1),
          TRITONSERVER_ERROR_NOT_FOUND, "no available versions");
    /* The name is not ambiguous any more. */
    repo_drop(&w.first, "same");
    ok(TRITONSERVER_ServerLoadModel(w.server, "same"));
    has_batch(w.server, "same", "5");
    ask(w.server, "same");
    world_end(&w);
}

static void test_polling_updates_one_namespace(void **state) {
    worlds w;
    char full[400];
    (void)state;
    world_make(&w, TRITONSERVER_MODEL_CONTROL_POLL, true);
    add(&w.first, "same", "4");
    repo_file(&w.first, "same/1/changed", "so that it differs by more than a time");
    ok(TRITONSERVER_ServerPollModelRepository(w.server));
    snprintf(full, sizeof full, "%s::same", w.first.path);
    has_batch(w.server, full, "4");
    repo_drop(&w.first, "same");
    ok(TRITONSERVER_ServerPollModelRepository(w.server));
    has_batch(w.server, "same", "5");
    world_end(&w);
}

/* After a reload, a request that is resubmitted stays in its namespace. */
static void test_requests_keep_their_namespace(void **state) {
    worlds w;
    char full[400];
    call c;
    float a[16], b[16];
    static const int64_t five[] = {5, 16};
    static float many[5 * 16];
    (void)state;
    world_make(&w, TRITONSERVER_MODEL_CONTROL_EXPLICIT, true);
    ok(TRITONSERVER_ServerLoadModel(w.server, "same"));
    snprintf(full, sizeof full, "%s::same", w.second.path);
    call_init(&c, w.server, full, -1);
    call_addsub(&c, a, b, 1);
    call_run(&c);
    call_clear(&c);
    ok(TRITONSERVER_ServerLoadModel(w.server, "same"));
    ok(TRITONSERVER_InferenceRequestRemoveAllInputs(c.request));
    call_input(&c, "INPUT0", TRITONSERVER_TYPE_FP32, five, 2, many, sizeof many);
    call_input(&c, "INPUT1", TRITONSERVER_TYPE_FP32, five, 2, many, sizeof many);
    call_run(&c); /* a batch of 5 is too large for the first model */
    size_t size_bytes = 0;
    call_output(&c, "OUTPUT0", &size_bytes);
    assert_int_equal(size_bytes, sizeof many);
    call_deinit(&c);
    world_end(&w);
}

static void test_repositories_can_be_registered(void **state) {
    worlds w;
    (void)state;
    world_make(&w, TRITONSERVER_MODEL_CONTROL_EXPLICIT, false);
    ok(TRITONSERVER_ServerUnregisterModelRepository(w.server, w.second.path));
    fails(TRITONSERVER_ServerUnregisterModelRepository(w.server, w.second.path),
          TRITONSERVER_ERROR_INVALID_ARG, "repository not found");
    ok(TRITONSERVER_ServerLoadModel(w.server, "same"));
    has_batch(w.server, "same", "3");
    fails(TRITONSERVER_ServerLoadModel(w.server, "two"), TRITONSERVER_ERROR_INTERNAL,
          "failed to poll from model repository");
    fails(TRITONSERVER_ServerRegisterModelRepository(w.server, w.first.path, NULL, 0),
          TRITONSERVER_ERROR_ALREADY_EXISTS, "already been registered");
    fails(TRITONSERVER_ServerRegisterModelRepository(w.server, "/nowhere", NULL, 0),
          TRITONSERVER_ERROR_INVALID_ARG, "/nowhere");
    fails(TRITONSERVER_ServerRegisterModelRepository(w.server, w.second.path, NULL, 1),
          TRITONSERVER_ERROR_INVALID_ARG, "name_mapping");
    ok(TRITONSERVER_ServerRegisterModelRepository(w.server, w.second.path, NULL, 0));
    ok(TRITONSERVER_ServerLoadModel(w.server, "two"));
    ok(TRITONSERVER_ServerUnregisterModelRepository(w.server, w.second.path));
    char *index = index_of(w.server);
    contains(index,
             "{\"name\":\"two\",\"version\":\"1\",\"state\":\"READY\"}"); /* it still serves */
    free(index);
    ok(TRITONSERVER_ServerUnloadModel(w.server, "two"));
    wait_until_unlisted(w.server, "two");
    wait_for_index(w.server, "\"same\"");
    world_end(&w);

    world_make(&w, TRITONSERVER_MODEL_CONTROL_NONE, false);
    fails(TRITONSERVER_ServerRegisterModelRepository(w.server, w.first.path, NULL, 0),
          TRITONSERVER_ERROR_UNSUPPORTED, "not EXPLICIT");
    world_end(&w);
}

static void test_directories_are_mapped_to_names(void **state) {
    worlds w;
    char text[2048];
    (void)state;
    world_make(&w, TRITONSERVER_MODEL_CONTROL_EXPLICIT, false);
    ok(TRITONSERVER_ServerUnregisterModelRepository(w.server, w.second.path));
    TRITONSERVER_Parameter *mapping =
        TRITONSERVER_ParameterNew("same", TRITONSERVER_PARAMETER_STRING, "other");
    TRITONSERVER_Parameter *number;
    int64_t seven = 7;
    number = TRITONSERVER_ParameterNew("two", TRITONSERVER_PARAMETER_INT, &seven);
    const TRITONSERVER_Parameter *good[] = {mapping}, *bad[] = {mapping, number};
    fails(TRITONSERVER_ServerRegisterModelRepository(w.server, w.second.path, bad, 2),
          TRITONSERVER_ERROR_INVALID_ARG, "STRING");
    snprintf(text, sizeof text, "name: \"same\"\n%s",
             addsub_config); /* the name of the directory */
    strstr(text, "max_batch_size: 8")[16] = '5';
    repo_file(&w.second, "same/config.pbtxt", text);
    ok(TRITONSERVER_ServerRegisterModelRepository(w.server, w.second.path, good, 1));
    ok(TRITONSERVER_ServerLoadModel(w.server, "same"));
    ok(TRITONSERVER_ServerLoadModel(w.server, "other"));
    has_batch(w.server, "same", "3");
    has_batch(w.server, "other", "5");
    ask(w.server, "other");
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelConfig(w.server, "other", -1, 1, &message));
    char *config = message_text(message);
    contains(config, "{\"name\":\"other\"");
    free(config);
    char *index = index_of(w.server);
    contains_once(index, "\"name\":\"same\"");
    contains_once(index, "\"name\":\"other\"");
    free(index);
    ok(TRITONSERVER_ServerUnregisterModelRepository(w.server, w.second.path));
    TRITONSERVER_Parameter *both[] = {
        TRITONSERVER_ParameterNew("two", TRITONSERVER_PARAMETER_STRING, "left"),
        TRITONSERVER_ParameterNew("two", TRITONSERVER_PARAMETER_STRING, "right")};
    ok(TRITONSERVER_ServerRegisterModelRepository(
        w.server, w.second.path, (const TRITONSERVER_Parameter **)(void *)both, 2));
    ok(TRITONSERVER_ServerLoadModel(w.server, "left"));
    ok(TRITONSERVER_ServerLoadModel(w.server, "right"));
    ask(w.server, "left");
    ask(w.server, "right");
    fails(TRITONSERVER_ServerLoadModel(w.server, "two"), TRITONSERVER_ERROR_INTERNAL,
          "model not found in any model repository");
    ok(TRITONSERVER_ServerUnregisterModelRepository(w.server, w.second.path));
    const TRITONSERVER_Parameter *twice[] = {both[0], both[0]};
    fails(TRITONSERVER_ServerRegisterModelRepository(w.server, w.second.path, twice, 2),
          TRITONSERVER_ERROR_INVALID_ARG, "conflicting mapping for 'left'");
    TRITONSERVER_ParameterDelete(both[0]);
    TRITONSERVER_ParameterDelete(both[1]);
    TRITONSERVER_ParameterDelete(mapping);
    TRITONSERVER_ParameterDelete(number);
    world_end(&w);
}

/* An ensemble of addsub, whose step has the fields `step`. */
static void add_ensemble(const repo *r, const char *name, const char *step) {
    char text[2048];
    snprintf(text, sizeof text,
             "max_batch_size: 1\n"
             "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ 16 ] },\n"
             "        { name: \"INPUT1\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n"
             "output [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n"
             "ensemble_scheduling { step [ { %s\n"
             "input_map { key: \"INPUT0\" value: \"INPUT0\" }\n"
             "input_map { key: \"INPUT1\" value: \"INPUT1\" }\n"
             "output_map { key: \"OUTPUT0\" value: \"OUTPUT0\" } } ] }\n",
             step);
    repo_model(r, name, text);
}

static long long inferences(TRITONSERVER_Server *server, const repo *r, const char *name) {
    char full[400];
    TRITONSERVER_Message *message = NULL;
    snprintf(full, sizeof full, "%s::%s", r->path, name);
    ok(TRITONSERVER_ServerModelStatistics(server, full, -1, &message));
    char *text = message_text(message);
    long long count = number_after(text, "\"inference_count\":");
    free(text);
    return count;
}

static void test_ensembles_prefer_models_of_their_namespace(void **state) {
    worlds w;
    char step[512];
    (void)state;
    world_make(&w, TRITONSERVER_MODEL_CONTROL_EXPLICIT, true);
    add_ensemble(&w.first, "near", "model_name: \"same\"");
    add_ensemble(&w.first, "far", "model_name: \"two\"");
    snprintf(step, sizeof step, "model_name: \"same\" model_namespace: \"%s\"", w.second.path);
    add_ensemble(&w.first, "named", step);
    ok(TRITONSERVER_ServerLoadModel(w.server, "near"));
    ask(w.server, "near");
    assert_int_equal(inferences(w.server, &w.first, "same"), 1);
    ok(TRITONSERVER_ServerLoadModel(w.server, "named"));
    ask(w.server, "named");
    assert_int_equal(inferences(w.server, &w.first, "same"), 1);
    assert_int_equal(inferences(w.server, &w.second, "same"), 1);
    ask(w.server, "near"); /* although the name is ambiguous now */
    assert_int_equal(inferences(w.server, &w.first, "same"), 2);
    ok(TRITONSERVER_ServerLoadModel(w.server, "far"));
    ask(w.server, "far");
    assert_int_equal(inferences(w.server, &w.second, "two"), 1);
    world_end(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_duplicate_name_is_rejected_without_namespaces),
        cmocka_unit_test(test_ambiguous_name_is_rejected),
        cmocka_unit_test(test_load_and_unload_apply_to_all_namespaces),
        cmocka_unit_test(test_polling_updates_one_namespace),
        cmocka_unit_test(test_requests_keep_their_namespace),
        cmocka_unit_test(test_ensembles_prefer_models_of_their_namespace),
        cmocka_unit_test(test_repositories_can_be_registered),
        cmocka_unit_test(test_directories_are_mapped_to_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
