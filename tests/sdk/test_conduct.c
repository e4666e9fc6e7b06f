/* SPDX-License-Identifier: Apache-2.0 */
/* Typical errors of backend authors: each request still gets exactly one final response, and no
 * resources leak. */
#include "server/support.h"

#include <time.h>

#define IO                                                                 \
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n"   \
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n" \
    "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
#define ONE "backend: \"sdkone\"\n" IO
#define DECOUPLED "model_transaction_policy { decoupled: true }\n"

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
    world_unload(w, name); /* no request is in flight */
}

static void check_output(call *c, int32_t value) {
    size_t size_bytes = 0;
    const int32_t *out = call_output(c, "OUTPUT0", &size_bytes);
    assert_int_equal(size_bytes, 8);
    assert_int_equal(out[0], value);
    assert_int_equal(out[1], value + 1);
}

static char *statistics(world *w, const char *name) {
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelStatistics(w->server, name, 1, &message));
    return message_text(message);
}

/* An execution is counted at its end, which may be after the last response. */
static void wait_for_executions(world *w, const char *name, long long count) {
    long long found = -1;
    for (int i = 0; i < 1000 && found != count; i++) {
        char *stats = statistics(w, name);
        found = number_after(stats, "\"execution_count\":");
        free(stats);
        if (found != count)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    assert_int_equal(found, count);
}

/* Unusual sequences of calls that still produce a correct response. */
static void unusual_call_sequences_succeed(void **state) {
    static const struct {
        const char *name;
        int32_t value;
    } cases[] = {{"good", 7},          {"twice", 7},   {"error_after", 7},
                 {"release_twice", 7}, {"dropped", 9}, {"late", 7},
                 {"factory", 7},       {"orphan", 7},  {"state", 7}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        call c;
        open_model(*state, cases[i].name, ONE, &c);
        for (int round = 0; round < 3; round++) {
            call_run(&c);
            assert_int_equal(c.responses, 1);
            check_output(&c, cases[i].value);
            call_clear(&c);
        }
        char *stats = statistics(*state, cases[i].name);
        assert_int_equal(number_after(stats, "\"success\":{\"count\":"), 3);
        free(stats);
        wait_for_executions(*state, cases[i].name, 3);
        close_model(*state, cases[i].name, &c);
    }
}

/* Errors of the backend produce an error response with the reason. */
static void errors_of_the_backend_are_sent_to_the_client(void **state) {
    static const struct {
        const char *name;
        TRITONSERVER_Error_Code code;
        const char *text;
    } cases[] = {
        {"midway", TRITONSERVER_ERROR_UNAVAILABLE, "cannot go on: the disk is full"},
        {"silent", TRITONSERVER_ERROR_INTERNAL,
         "backend 'sdkone' sent no response to a request for model 'silent'"},
        {"fail_twice", TRITONSERVER_ERROR_NOT_FOUND, "the first failure"},
        {"late_forget", TRITONSERVER_ERROR_INTERNAL, "sent no response"},
        {"factory_forget", TRITONSERVER_ERROR_INTERNAL, "sent no response"},
        {"finish", TRITONSERVER_ERROR_INTERNAL, "sent no response"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        call c;
        open_model(*state, cases[i].name, ONE, &c);
        for (int round = 0; round < 3; round++) {
            call_run(&c);
            assert_int_equal(c.responses, 1);
            call_fails(&c, cases[i].code, cases[i].text);
            call_clear(&c);
        }
        char *stats = statistics(*state, cases[i].name);
        /* A response of a factory may follow the report of the request. */
        if (!strstr(cases[i].name, "factory"))
            assert_int_equal(number_after(stats, "\"fail\":{\"count\":"), 3);
        free(stats);
        close_model(*state, cases[i].name, &c);
    }
}

static void decoupled_models_send_any_number_of_responses(void **state) {
    static const struct {
        const char *name;
        unsigned responses;
        const char *error;
    } cases[] = {{"stream", 3, NULL},        {"stream_error", 4, "the stream broke"},
                 {"two_factories", 1, NULL}, {"finish", 0, NULL},
                 {"silent", 0, NULL},        {"factory_forget", 0, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        call c;
        open_model(*state, cases[i].name, ONE DECOUPLED, &c);
        for (int round = 0; round < 2; round++) {
            call_run(&c);
            assert_int_equal(c.responses, cases[i].responses);
            if (cases[i].error)
                call_fails(&c, TRITONSERVER_ERROR_INTERNAL, cases[i].error);
            else if (cases[i].responses)
                check_output(&c, 7);
            call_clear(&c);
        }
        close_model(*state, cases[i].name, &c);
    }
}

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void responses_of_decoupled_models_are_counted(void **state) {
    call c;
    long long began_ns = now_ns();
    open_model(*state, "stream", ONE DECOUPLED, &c);
    call_run(&c);
    char *stats = statistics(*state, "stream");
    contains(stats, "\"response_stats\":{\"0\":");
    contains(stats, "\"2\":{");
    /* The times are those since this call, in parts. */
    const char *first = strstr(stats, "\"response_stats\":{\"0\":");
    long long total = number_after(first, "\"success\":{\"count\":1,\"ns\":"),
              infer = number_after(first, "\"compute_infer\":{\"count\":1,\"ns\":"),
              output = number_after(first, "\"compute_output\":{\"count\":1,\"ns\":");
    assert_true(infer >= 0 && output >= 0 && infer + output == total);
    assert_true(total > 0 && total <= now_ns() - began_ns);
    free(stats);
    close_model(*state, "stream", &c);
}

static void backends_see_cancellation(void **state) {
    call c;
    open_model(*state, "cancel", ONE, &c);
    call_start(&c);
    ok(TRITONSERVER_InferenceRequestCancel(c.request));
    call_wait(&c);
    fails(TRITONSERVER_InferenceResponseError(c.response), TRITONSERVER_ERROR_CANCELLED, "");
    close_model(*state, "cancel", &c);
}

static void unloading_waits_for_kept_requests(void **state) {
    world *w = *state;
    call c;
    open_model(w, "late", ONE, &c);
    call_start(&c);
    ok(TRITONSERVER_ServerUnloadModel(w->server, "late"));
    call_wait(&c);
    check_output(&c, 7);
    wait_for_index(w->server, "\"name\":\"late\",\"version\":\"1\",\"state\":\"UNAVAILABLE\"");
    call_deinit(&c);
}

/* Several instances, many requests in flight, responses from other threads, and unloading of the
 * model in the meantime. */
static void unloading_waits_for_many_requests_in_flight(void **state) {
    enum { MANY = 64 };
    world *w = *state;
    static const char *const names[] = {"late",    "factory", "orphan",     "good",
                                        "dropped", "call",    "call_stream"};
    static call calls[MANY];
    world_load(w, "stream", ONE DECOUPLED);
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        char config[1024];
        snprintf(config, sizeof config, "%s", ONE);
        *strstr(config, "count: 1") = '\0';
        strcat(config, "count: 4 } ]\n");
        world_load(w, names[n], config);
        if (strcmp(names[n], "call") == 0)
            world_load(w, "good", ONE);
        for (int i = 0; i < MANY; i++) {
            call_init(&calls[i], w->server, names[n], -1);
            call_input(&calls[i], "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, data, sizeof data);
        }
        for (int i = 0; i < MANY; i++)
            call_start(&calls[i]);
        ok(TRITONSERVER_ServerUnloadModel(w->server, names[n]));
        for (int i = 0; i < MANY; i++) {
            call_wait(&calls[i]);
            check_output(&calls[i], strcmp(names[n], "dropped") ? 7 : 9);
            call_deinit(&calls[i]);
        }
    }
}

static void models_that_cannot_be_loaded_report_the_reason(void **state) {
    world *w = *state;
    repo_model(&w->r, "model_fails", ONE);
    fails(TRITONSERVER_ServerLoadModel(w->server, "model_fails"), TRITONSERVER_ERROR_INVALID_ARG,
          "no model would please me");
    repo_model(&w->r, "instance_fails", ONE);
    fails(TRITONSERVER_ServerLoadModel(w->server, "instance_fails"), TRITONSERVER_ERROR_UNAVAILABLE,
          "no instance today");
    repo_model(&w->r, "badcreate", "backend: \"sdkbadcreate\"\n" IO);
    fails(TRITONSERVER_ServerLoadModel(w->server, "badcreate"), TRITONSERVER_ERROR_UNAVAILABLE,
          "no licence in 'the drawer'");
    repo_model(&w->r, "badsize", "backend: \"sdkbadsize\"\n" IO);
    fails(TRITONSERVER_ServerLoadModel(w->server, "badsize"), TRITONSERVER_ERROR_INVALID_ARG,
          "struct_size of its definition is wrong: expected");
    repo_model(&w->r, "badexecute", "backend: \"sdkbadexecute\"\n" IO);
    fails(TRITONSERVER_ServerLoadModel(w->server, "badexecute"), TRITONSERVER_ERROR_INVALID_ARG,
          "exactly one of execute and execute_one");
}

static void backends_read_and_complete_the_configuration(void **state) {
    world *w = *state;
    world_load(w, "config",
               "backend: \"sdkone\"\n"
               "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ -1, 3 ] },\n"
               "        { name: \"INPUT1\" data_type: TYPE_STRING dims: [ 1 ] optional: true } ]\n"
               "output [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 1 ] } ]\n"
               "instance_group [ { kind: KIND_CPU count: 2 } ]\n"
               "parameters { key: \"number\" value { string_value: \"12\" } }\n"
               "parameters { key: \"yes\" value { string_value: \"yes\" } }\n"
               "parameters { key: \"word\" value { string_value: \"x \\\"y\\\"\" } }\n");
    world_load(w, "complete", "backend: \"sdkone\"\n");
    TRITONSERVER_Message *message = NULL;
    ok(TRITONSERVER_ServerModelConfig(w->server, "complete", 1, 1, &message));
    char *config = message_text(message);
    contains(config, "\"max_batch_size\":4");
    free(config);
    world_load(w, "complete_io", "backend: \"sdkone\"\n");
    ok(TRITONSERVER_ServerModelConfig(w->server, "complete_io", 1, 1, &message));
    config = message_text(message);
    const char *x = strstr(config, "\"name\":\"X\""), *s = strstr(config, "\"name\":\"S\""),
               *y = strstr(config, "\"name\":\"Y\"");
    assert_true(x != NULL && s != NULL && y != NULL);
    contains(x, "\"data_type\":\"TYPE_FP32\"");
    contains(x, "\"dims\":[-1,3]");
    contains(s, "\"data_type\":\"TYPE_STRING\"");
    contains(s, "\"dims\":[1],\"reshape\":{\"shape\":[]}");
    contains(s, "\"optional\":true");
    contains(y, "\"data_type\":\"TYPE_INT64\"");
    contains(y, "\"dims\":[5]");
    free(config);
}

static const char rich_config[] =
    "backend: \"sdkone\"\n"
    "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ 2, 3 ] },\n"
    "        { name: \"INPUT1\" data_type: TYPE_STRING dims: [ 2 ] } ]\n"
    "output [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 2, 2 ] },\n"
    "         { name: \"OUTPUT1\" data_type: TYPE_STRING dims: [ 2 ] },\n"
    "         { name: \"OUTPUT2\" data_type: TYPE_INT32 dims: [ 2, 2 ] },\n"
    "         { name: \"OUTPUT3\" data_type: TYPE_INT32 dims: [ 2, 1 ] },\n"
    "         { name: \"OUTPUT4\" data_type: TYPE_INT32 dims: [ 2, 2, 1 ] } ]\n"
    "instance_group [ { kind: KIND_CPU count: 1 } ]\n";

static void rich_call(world *w, const char *name, call *c) {
    static const int64_t matrix[] = {2, 3}, vector[] = {2};
    static const float values[] = {0, 1, 2, 3, 4, 5};
    static const char strings[] = "\3\0\0\0one\0\0\0\0";
    world_load(w, name, rich_config);
    call_init(c, w->server, name, -1);
    ok(TRITONSERVER_InferenceRequestAddInput(c->request, "INPUT0", TRITONSERVER_TYPE_FP32, matrix,
                                             2));
    /* In three pieces, one of which is empty and one of which ends within an element. */
    ok(TRITONSERVER_InferenceRequestAppendInputData(c->request, "INPUT0", values, 10,
                                                    TRITONSERVER_MEMORY_CPU, 0));
    ok(TRITONSERVER_InferenceRequestAppendInputData(c->request, "INPUT0", values, 0,
                                                    TRITONSERVER_MEMORY_CPU, 0));
    ok(TRITONSERVER_InferenceRequestAppendInputData(c->request, "INPUT0", (const char *)values + 10,
                                                    14, TRITONSERVER_MEMORY_CPU, 0));
    call_input(c, "INPUT1", TRITONSERVER_TYPE_BYTES, vector, 1, strings, 11);
}

static void inputs_in_pieces_are_joined(void **state) {
    call c;
    rich_call(*state, "inputs", &c);
    call_run(&c);
    call_fails(&c, TRITONSERVER_ERROR_INTERNAL, "sent no response"); /* it only looks */
    close_model(*state, "inputs", &c);
}

/* One piece, but at an address that is not aligned for float. */
static void unaligned_inputs_are_copied(void **state) {
    static _Alignas(8) char odd[32];
    const float values[] = {0, 1, 2, 3, 4, 5};
    call c;
    memcpy(odd + 1, values, sizeof values);
    rich_call(*state, "inputs", &c);
    ok(TRITONSERVER_InferenceRequestRemoveAllInputData(c.request, "INPUT0"));
    ok(TRITONSERVER_InferenceRequestAppendInputData(c.request, "INPUT0", odd + 1, sizeof values,
                                                    TRITONSERVER_MEMORY_CPU, 0));
    call_run(&c);
    call_fails(&c, TRITONSERVER_ERROR_INTERNAL, "sent no response"); /* it only looks */
    close_model(*state, "inputs", &c);
}

static void outputs_can_have_strides_and_strings(void **state) {
    static const float columns[] = {1, 2, 4, 5};
    static const int32_t transposed[] = {1, 3, 2, 4}, column[] = {0, 5}, blocks[] = {0, 1, 10, 11};
    size_t size_bytes = 0;
    call c;
    rich_call(*state, "outputs", &c);
    call_run(&c);
    const void *found = call_output(&c, "OUTPUT0", &size_bytes);
    assert_int_equal(size_bytes, sizeof columns);
    assert_memory_equal(found, columns, sizeof columns);
    found = call_output(&c, "OUTPUT1", &size_bytes);
    assert_int_equal(size_bytes, 11);
    assert_memory_equal(found, "\1\0\0\0a\2\0\0\0bc", 11);
    found = call_output(&c, "OUTPUT2", &size_bytes);
    assert_memory_equal(found, transposed, sizeof transposed);
    found = call_output(&c, "OUTPUT3", &size_bytes);
    assert_int_equal(size_bytes, sizeof column);
    assert_memory_equal(found, column, sizeof column);
    found = call_output(&c, "OUTPUT4", &size_bytes);
    assert_int_equal(size_bytes, sizeof blocks);
    assert_memory_equal(found, blocks, sizeof blocks);
    close_model(*state, "outputs", &c);
}

static void parameters_of_requests_and_responses_have_types(void **state) {
    uint32_t count = 0;
    const char *name = NULL;
    TRITONSERVER_ParameterType type;
    const void *value = NULL;
    call c;
    open_model(*state, "parameters", ONE, &c);
    ok(TRITONSERVER_InferenceRequestSetIntParameter(c.request, "int", 7));
    ok(TRITONSERVER_InferenceRequestSetDoubleParameter(c.request, "float", 1.5));
    ok(TRITONSERVER_InferenceRequestSetBoolParameter(c.request, "flag", true));
    ok(TRITONSERVER_InferenceRequestSetStringParameter(c.request, "text", "t"));
    ok(TRITONSERVER_InferenceRequestSetId(c.request, "the id"));
    ok(TRITONSERVER_InferenceRequestSetCorrelationId(c.request, 12));
    ok(TRITONSERVER_InferenceRequestSetFlags(c.request, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START));
    ok(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(c.request, 99000000));
    call_run(&c);
    ok(TRITONSERVER_InferenceResponseError(c.response));
    ok(TRITONSERVER_InferenceResponseParameterCount(c.response, &count));
    assert_int_equal(count, 4);
    ok(TRITONSERVER_InferenceResponseParameter(c.response, 0, &name, &type, &value));
    assert_string_equal(name, "i");
    assert_int_equal(*(const int64_t *)value, 42);
    ok(TRITONSERVER_InferenceResponseParameter(c.response, 3, &name, &type, &value));
    assert_string_equal((const char *)value, "text");
    close_model(*state, "parameters", &c);
}

static void backends_can_call_other_models(void **state) {
    world *w = *state;
    static const char *const names[] = {"call", "call_many", "call_stream", "abandon"};
    world_load(w, "good", ONE);
    world_load(w, "midway", ONE);
    world_load(w, "stream", ONE DECOUPLED);
    world_load(w, "cancel", ONE);
    for (int i = 0; i < 4; i++) {
        call c;
        open_model(w, names[i], ONE, &c);
        for (int round = 0; round < 3; round++) {
            call_run(&c);
            check_output(&c, 7);
            call_clear(&c);
        }
        close_model(w, names[i], &c);
    }
    call c;
    open_model(w, "call_missing", ONE, &c);
    call_run(&c);
    fails(TRITONSERVER_InferenceResponseError(c.response), TRITONSERVER_ERROR_NOT_FOUND,
          "cannot call model 'nowhere'");
    close_model(w, "call_missing", &c);
    open_model(w, "call_midway", ONE, &c);
    call_run(&c);
    call_fails(&c, TRITONSERVER_ERROR_UNAVAILABLE, "the disk is full");
    close_model(w, "call_midway", &c);
}

typedef struct traces {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned released;
    uint64_t root, child_parent; /* ids */
} traces;

static void on_activity(TRITONSERVER_InferenceTrace *trace,
                        TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns,
                        void *userp) {
    (void)trace;
    (void)activity;
    (void)timestamp_ns;
    (void)userp;
}

static void on_trace_release(TRITONSERVER_InferenceTrace *trace, void *userp) {
    traces *t = userp;
    uint64_t parent = 0;
    ok(TRITONSERVER_InferenceTraceParentId(trace, &parent));
    pthread_mutex_lock(&t->lock);
    if (parent)
        t->child_parent = parent;
    t->released++;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    ok(TRITONSERVER_InferenceTraceDelete(trace));
}

/* A call to another model is a child of the request in a trace. */
static void calls_are_traced(void **state) {
    world *w = *state;
    static traces t = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    TRITONSERVER_InferenceTrace *trace = NULL;
    call c;
    world_load(w, "good", ONE);
    open_model(w, "call", ONE, &c);
    ok(TRITONSERVER_InferenceTraceNew(&trace, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, on_activity,
                                      on_trace_release, &t));
    ok(TRITONSERVER_InferenceTraceId(trace, &t.root));
    ok(TRITONSERVER_ServerInferAsync(w->server, c.request, trace));
    call_wait(&c);
    check_output(&c, 7);
    close_model(w, "call", &c);
    pthread_mutex_lock(&t.lock);
    while (t.released < 2) /* a trace ends with its request, which may be after the response */
        pthread_cond_wait(&t.changed, &t.lock);
    pthread_mutex_unlock(&t.lock);
    assert_int_equal(t.released, 2);
    assert_int_equal(t.child_parent, t.root);
}

static void readiness_comes_from_the_backend(void **state) {
    world *w = *state;
    bool is_ready = true;
    world_load(w, "unready", ONE);
    ok(TRITONSERVER_ServerModelIsReady(w->server, "unready", 1, &is_ready));
    assert_false(is_ready);
    world_load(w, "good", ONE);
    ok(TRITONSERVER_ServerModelIsReady(w->server, "good", 1, &is_ready));
    assert_true(is_ready);
}

static void cancellation_reaches_called_models(void **state) {
    world *w = *state;
    call c;
    world_load(w, "cancel", ONE);
    open_model(w, "call_cancel", ONE, &c);
    call_start(&c);
    ok(TRITONSERVER_InferenceRequestCancel(c.request));
    call_wait(&c);
    fails(TRITONSERVER_InferenceResponseError(c.response), TRITONSERVER_ERROR_CANCELLED, "");
    close_model(w, "call_cancel", &c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(unusual_call_sequences_succeed, set_up, world_close),
        cmocka_unit_test_setup_teardown(errors_of_the_backend_are_sent_to_the_client, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(decoupled_models_send_any_number_of_responses, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(responses_of_decoupled_models_are_counted, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(backends_see_cancellation, set_up, world_close),
        cmocka_unit_test_setup_teardown(unloading_waits_for_kept_requests, set_up, world_close),
        cmocka_unit_test_setup_teardown(unloading_waits_for_many_requests_in_flight, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(models_that_cannot_be_loaded_report_the_reason, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(backends_read_and_complete_the_configuration, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(inputs_in_pieces_are_joined, set_up, world_close),
        cmocka_unit_test_setup_teardown(unaligned_inputs_are_copied, set_up, world_close),
        cmocka_unit_test_setup_teardown(outputs_can_have_strides_and_strings, set_up, world_close),
        cmocka_unit_test_setup_teardown(parameters_of_requests_and_responses_have_types, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(backends_can_call_other_models, set_up, world_close),
        cmocka_unit_test_setup_teardown(calls_are_traced, set_up, world_close),
        cmocka_unit_test_setup_teardown(readiness_comes_from_the_backend, set_up, world_close),
        cmocka_unit_test_setup_teardown(cancellation_reaches_called_models, set_up, world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
