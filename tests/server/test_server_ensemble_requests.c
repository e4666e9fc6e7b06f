/* SPDX-License-Identifier: Apache-2.0 */
/* Ensembles and their callers: traces, batching of the steps of several requests, requests that
 * callbacks submit, and threads. */
#include "server/support.h"

#include <stdatomic.h>
#include <time.h>

static const int64_t two[] = {2};
static const int32_t pair[] = {1, 2};

#define TENSOR(name, type, dims) \
    "{ name: \"" name "\" data_type: TYPE_" type " dims: [ " dims " ] }"
#define STEP(model, input, output)                                                   \
    "step [ { model_name: \"" model "\" input_map { key: \"INPUT0\" value: \"" input \
    "\" } output_map { key: \"OUTPUT0\" value: \"" output "\" } } ] "
#define ENSEMBLE(steps)                                           \
    "input [ " TENSOR("IN", "INT32", "-1") " ] output [ " TENSOR( \
        "OUT", "INT32", "-1") " ]\n"                              \
                              "ensemble_scheduling { " steps "}\n"

static int set_up(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT});
}

static void load_chain(world *w) {
    world_load(w, "identity", identity_config);
    world_load(w, "chain",
               ENSEMBLE(STEP("identity", "IN", "x") STEP("identity", "x", "y")
                            STEP("identity", "y", "OUT")));
}

static void put_pair(call *c) {
    call_input(c, "IN", TRITONSERVER_TYPE_INT32, two, 1, pair, sizeof pair);
}

/* ---- traces ---- */

typedef struct traces {
    uint64_t root;
    atomic_uint starts, ends, children, releases;
} traces;

static void on_activity(TRITONSERVER_InferenceTrace *trace,
                        TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns,
                        void *userp) {
    traces *seen = userp;
    uint64_t parent = 0;
    const char *name = NULL;
    (void)timestamp_ns;
    ok(TRITONSERVER_InferenceTraceParentId(trace, &parent));
    ok(TRITONSERVER_InferenceTraceModelName(trace, &name));
    if (activity == TRITONSERVER_TRACE_REQUEST_START) {
        atomic_fetch_add(&seen->starts, 1);
        if (parent == seen->root && strcmp(name, "identity") == 0)
            atomic_fetch_add(&seen->children, 1);
    }
    if (activity == TRITONSERVER_TRACE_REQUEST_END)
        atomic_fetch_add(&seen->ends, 1);
}

static void on_trace_release(TRITONSERVER_InferenceTrace *trace, void *userp) {
    atomic_fetch_add(&((traces *)userp)->releases, 1);
    ok(TRITONSERVER_InferenceTraceDelete(trace));
}

static void test_each_step_has_a_trace_of_its_own(void **state) {
    world *w = *state;
    traces seen = {0};
    TRITONSERVER_InferenceTrace *trace = NULL;
    call c;
    load_chain(w);
    call_init(&c, w->server, "chain", -1);
    put_pair(&c);
    ok(TRITONSERVER_InferenceTraceNew(&trace, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, on_activity,
                                      on_trace_release, &seen));
    ok(TRITONSERVER_InferenceTraceId(trace, &seen.root));
    ok(TRITONSERVER_ServerInferAsync(w->server, c.request, trace));
    call_wait(&c);
    call_deinit(&c);
    for (int i = 0; i < 1000 && atomic_load(&seen.releases) < 4; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(atomic_load(&seen.starts), 4);
    assert_int_equal(atomic_load(&seen.ends), 4);
    assert_int_equal(atomic_load(&seen.children), 3);
    assert_int_equal(atomic_load(&seen.releases), 4);
}

/* ---- batching ---- */

static void test_steps_of_several_requests_form_batches(void **state) {
    enum { COUNT = 8 };
    static const int64_t one[] = {1, 2};
    world *w = *state;
    call calls[COUNT];
    TRITONSERVER_Message *message = NULL;
    size_t size_bytes = 0;
    world_load(w, "batching",
               "backend: \"identity\" max_batch_size: 8\n"
               "input [ " TENSOR("INPUT0", "INT32", "-1") " ] output [ " TENSOR(
                   "OUTPUT0", "INT32", "-1") " ]\n"
                                             "dynamic_batching { preferred_batch_size: [ 8 ] "
                                             "max_queue_delay_microseconds: 2000000 }\n");
    world_load(w, "batches", "max_batch_size: 8\n" ENSEMBLE(STEP("batching", "IN", "OUT")));
    for (int i = 0; i < COUNT; i++) {
        call_init(&calls[i], w->server, "batches", -1);
        call_input(&calls[i], "IN", TRITONSERVER_TYPE_INT32, one, 2, pair, sizeof pair);
        call_start(&calls[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        call_wait(&calls[i]);
        assert_memory_equal(call_output(&calls[i], "OUT", &size_bytes), pair, sizeof pair);
        call_deinit(&calls[i]);
    }
    ok(TRITONSERVER_ServerModelStatistics(w->server, "batching", -1, &message));
    char *stats = message_text(message);
    assert_int_equal(number_after(stats, "\"inference_count\":"), COUNT);
    assert_true(number_after(stats, "\"execution_count\":") < COUNT);
    free(stats);
}

/* ---- callbacks that submit ---- */

typedef struct loop {
    call c;
    TRITONSERVER_Server *server;
    unsigned left;
} loop;

static void count_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
                           void *userp) {
    loop *l = userp;
    (void)flags;
    ok(TRITONSERVER_InferenceResponseError(response));
    ok(TRITONSERVER_InferenceResponseDelete(response));
    pthread_mutex_lock(&l->c.lock);
    l->c.responses++;
    pthread_mutex_unlock(&l->c.lock);
}

/* Submits the request again. */
static void submit_again(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
                         void *userp) {
    loop *l = userp;
    (void)flags;
    if (l->left > 0) {
        l->left--;
        ok(TRITONSERVER_ServerInferAsync(l->server, request, NULL));
        return;
    }
    pthread_mutex_lock(&l->c.lock);
    l->c.releases = l->c.finals = 1;
    pthread_cond_broadcast(&l->c.changed);
    pthread_mutex_unlock(&l->c.lock);
}

/* Each request is submitted by the release of the previous one. The stack would overflow if the
 * submissions were nested. */
static void test_callbacks_can_submit_without_recursion(void **state) {
    enum { COUNT = 20000 };
    world *w = *state;
    loop l = {.server = w->server, .left = COUNT};
    load_chain(w);
    call_init(&l.c, w->server, "chain", -1);
    put_pair(&l.c);
    ok(TRITONSERVER_InferenceRequestSetReleaseCallback(l.c.request, submit_again, &l));
    ok(TRITONSERVER_InferenceRequestSetResponseCallback(l.c.request, l.c.allocator, &l.c,
                                                        count_response, &l));
    call_start(&l.c);
    call_wait(&l.c);
    assert_int_equal(l.c.responses, COUNT + 1);
    call_deinit(&l.c);
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 200 };

static void *send_and_cancel(void *userp) {
    world *w = userp;
    call c;
    call_init(&c, w->server, "slow", -1);
    put_pair(&c);
    for (int i = 0; i < ROUNDS; i++) {
        call_start(&c);
        if (i % 3 == 0)
            ok(TRITONSERVER_InferenceRequestCancel(c.request));
        call_wait(&c);
        assert_int_equal(c.responses, 1);
        TRITONSERVER_Error *error = TRITONSERVER_InferenceResponseError(c.response);
        if (error)
            assert_int_equal(TRITONSERVER_ErrorCode(error), TRITONSERVER_ERROR_CANCELLED);
        TRITONSERVER_ErrorDelete(error);
        call_clear(&c);
    }
    call_deinit(&c);
    return NULL;
}

/* Two steps at the same time on threads of their own, then one that needs both. */
static void test_requests_are_cancelled_at_any_time(void **state) {
    static const char threaded[] =
        "backend: \"identity\"\n"
        "input [ " TENSOR("INPUT0", "INT32", "-1") "," TENSOR(
            "INPUT1", "INT32",
            "-1") " ]\n"
                  "output [ " TENSOR("OUTPUT0", "INT32",
                                     "-1") " ]\n"
                                           "parameters { key: \"kelp_execute_on\" value { "
                                           "string_value: \"instance\" } }\n";
    world *w = *state;
    pthread_t threads[THREADS];
    world_load(w, "both", threaded);
    world_load(w, "slow",
               "input [ " TENSOR("IN", "INT32", "-1") " ] output [ " TENSOR(
                   "OUT", "INT32",
                   "-1") " ]\nensemble_scheduling { step [\n"
                         "{ model_name: \"both\" input_map { key: \"INPUT0\" value: \"IN\" }\n"
                         "  input_map { key: \"INPUT1\" value: \"IN\" }\n"
                         "  output_map { key: \"OUTPUT0\" value: \"x\" } },\n"
                         "{ model_name: \"both\" input_map { key: \"INPUT0\" value: \"IN\" }\n"
                         "  input_map { key: \"INPUT1\" value: \"IN\" }\n"
                         "  output_map { key: \"OUTPUT0\" value: \"y\" } },\n"
                         "{ model_name: \"both\" input_map { key: \"INPUT0\" value: \"x\" }\n"
                         "  input_map { key: \"INPUT1\" value: \"y\" }\n"
                         "  output_map { key: \"OUTPUT0\" value: \"OUT\" } } ] }\n");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, send_and_cancel, w), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, world_close)
int main(void) {
    const struct CMUnitTest tests[] = {
        WORLD(test_each_step_has_a_trace_of_its_own),
        WORLD(test_steps_of_several_requests_form_batches),
        WORLD(test_callbacks_can_submit_without_recursion),
        WORLD(test_requests_are_cancelled_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
