/* SPDX-License-Identifier: Apache-2.0 */
/* Backends that call the server from their entry points, backends that take long there, and clients
 * that take long in their callbacks. No test depends on times: the backend waits in a gate. */
#include "server/support.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>

#define HOOK                                                   \
    "backend: \"hook\" max_batch_size: 0\n"                    \
    "input { name: \"IN\" data_type: TYPE_INT32 dims: 1 }\n"   \
    "output { name: \"OUT\" data_type: TYPE_INT32 dims: 1 }\n" \
    "instance_group [ { kind: KIND_CPU count: 2 } ]\n"
#define OTHER                                                \
    "backend: \"forgetful\" max_batch_size: 0\n"             \
    "input { name: \"IN\" data_type: TYPE_INT32 dims: 1 }\n" \
    "output { name: \"OUT\" data_type: TYPE_INT32 dims: 1 }\n"

typedef void hook_function(const char *entry_point, const char *model);

static const server_setup setup = {.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                   .backends = KELP_TEST_BACKENDS};
static world *current; /* for the hooks */

static hook_function **hook_of_library(void) {
    void *library = dlopen(KELP_TEST_BACKENDS "/hook/libtriton_hook.so", RTLD_NOW);
    assert_non_null(library);
    return (hook_function **)dlsym(library, "hook_fn");
}

static int set_up(void **state) {
    int result = world_open(state, &setup);
    current = *state;
    repo_model(&current->r, "a", HOOK);
    repo_model(&current->r, "b", HOOK);
    repo_model(&current->r, "other", OTHER);
    return result;
}

static int tear_down(void **state) {
    int result = world_close(state); /* finalizes the backend */
    *hook_of_library() = NULL;
    return result;
}

/* ---- calls of the server ---- */

static atomic_uint hooks_called;

/* Uses everything that a client could use while a model is loaded or finalized. */
static void use_server(const char *entry_point, const char *model) {
    TRITONSERVER_Message *message = NULL;
    bool flag = false;
    (void)model;
    if (strcmp(entry_point, "Finalize") == 0)
        return; /* the server is deleted */
    atomic_fetch_add(&hooks_called, 1);
    ok(TRITONSERVER_ServerIsReady(current->server, &flag));
    ok(TRITONSERVER_ServerIsLive(current->server, &flag));
    assert_true(flag);
    ok(TRITONSERVER_ServerModelIsReady(current->server, "a", 1, &flag));
    ok(TRITONSERVER_ServerModelIndex(current->server, 0, &message));
    ok(TRITONSERVER_MessageDelete(message));
    ok(TRITONSERVER_ServerModelStatistics(current->server, "", -1, &message));
    ok(TRITONSERVER_MessageDelete(message));
    free(metrics_of(current->server));
    ok(TRITONSERVER_ServerLoadModel(current->server, "other"));
    ok(TRITONSERVER_ServerUnloadModel(current->server, "other"));
}

static void entry_points_use_the_server(void **state) {
    world *w = *state;
    atomic_store(&hooks_called, 0);
    *hook_of_library() = use_server;
    ok(TRITONSERVER_ServerLoadModel(w->server, "a"));
    assert_int_equal(atomic_load(&hooks_called), 4); /* backend, model and two instances */
    world_unload(w, "a");
    assert_int_equal(atomic_load(&hooks_called), 7);
}

static void load_b(const char *entry_point, const char *model) {
    if (strcmp(entry_point, "ModelInitialize") == 0 && strcmp(model, "a") == 0)
        ok(TRITONSERVER_ServerLoadModel(current->server, "b"));
}

static void model_loads_a_model_of_its_backend(void **state) {
    world *w = *state;
    *hook_of_library() = load_b;
    ok(TRITONSERVER_ServerLoadModel(w->server, "a"));
    call c;
    call_init(&c, w->server, "b", -1);
    static const int64_t shape[] = {1};
    static const int32_t value = 1;
    call_input(&c, "IN", TRITONSERVER_TYPE_INT32, shape, 1, &value, sizeof value);
    call_run(&c);
    call_deinit(&c);
}

static void load_itself(const char *entry_point, const char *model) {
    (void)model;
    if (strcmp(entry_point, "Initialize") == 0)
        fails(TRITONSERVER_ServerLoadModel(current->server, "b"), TRITONSERVER_ERROR_UNAVAILABLE,
              "cannot be used while it is initialized or finalized");
    if (strcmp(entry_point, "ModelInitialize") == 0) {
        fails(TRITONSERVER_ServerLoadModel(current->server, "a"), TRITONSERVER_ERROR_UNAVAILABLE,
              "model 'a' cannot be loaded or unloaded: the calling thread is loading");
        fails(TRITONSERVER_ServerUnloadModel(current->server, "a"), TRITONSERVER_ERROR_UNAVAILABLE,
              "model 'a' cannot be loaded or unloaded: the calling thread is loading");
    }
}

static void model_that_loads_itself_fails(void **state) {
    world *w = *state;
    *hook_of_library() = load_itself;
    ok(TRITONSERVER_ServerLoadModel(w->server, "a"));
}

/* ---- entry points that take long ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const char *entry_point; /* that waits, once */
    bool inside, released;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void wait_in_gate(const char *entry_point, const char *model) {
    (void)model;
    pthread_mutex_lock(&gate.lock);
    if (gate.entry_point != NULL && strcmp(entry_point, gate.entry_point) == 0) {
        gate.entry_point = NULL;
        gate.inside = true;
        pthread_cond_broadcast(&gate.changed);
        while (!gate.released)
            pthread_cond_wait(&gate.changed, &gate.lock);
    }
    pthread_mutex_unlock(&gate.lock);
}

static void close_gate(const char *entry_point) {
    gate.entry_point = entry_point;
    gate.inside = gate.released = false;
    *hook_of_library() = wait_in_gate;
}

static void wait_until_inside(void) {
    pthread_mutex_lock(&gate.lock);
    while (!gate.inside)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static void open_gate(void) {
    pthread_mutex_lock(&gate.lock);
    gate.released = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static void *load_model(void *name) {
    ok(TRITONSERVER_ServerLoadModel(current->server, name));
    return NULL;
}

static pthread_t start_to_load(char *name) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, load_model, name), 0);
    return thread;
}

static void *delete_server(void *server) {
    server_end(server);
    return NULL;
}

static bool is_ready(const world *w, const char *model) {
    bool ready = false;
    ok(TRITONSERVER_ServerModelIsReady(w->server, model, 1, &ready));
    return ready;
}

static void slow_initialization_delays(world *w, const char *entry_point) {
    pthread_t threads[2];
    char a[] = "a", b[] = "b";
    bool ready = false;
    close_gate(entry_point);
    threads[0] = start_to_load(a);
    wait_until_inside();
    ok(TRITONSERVER_ServerLoadModel(w->server, "other"));
    assert_true(is_ready(w, "other"));
    assert_false(is_ready(w, "a"));
    ok(TRITONSERVER_ServerIsReady(w->server, &ready));
    wait_for_index(w->server, "\"LOADING\"");
    threads[1] = start_to_load(b);
    open_gate();
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_true(is_ready(w, "a"));
    assert_true(is_ready(w, "b"));
}

static void slow_backend_delays_its_models_only(void **state) {
    slow_initialization_delays(*state, "Initialize");
}

static void slow_model_delays_itself_only(void **state) {
    slow_initialization_delays(*state, "ModelInitialize");
}

/* A backend that is being finalized for one server is initialized again for another one. */
static void slow_finalization_delays_the_next_initialization(void **state) {
    world *w = *state;
    pthread_t threads[2];
    char b[] = "b";
    TRITONSERVER_Server *first = server_start(&w->r, &setup);
    ok(TRITONSERVER_ServerLoadModel(first, "a"));
    close_gate("Finalize");
    assert_int_equal(pthread_create(&threads[0], NULL, delete_server, first), 0);
    wait_until_inside();
    ok(TRITONSERVER_ServerLoadModel(w->server, "other"));
    threads[1] = start_to_load(b);
    wait_for_index(w->server, "\"LOADING\"");
    open_gate();
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_true(is_ready(w, "b"));
}

/* ---- executions that take long ---- */

/* The order of final responses. */
static struct {
    pthread_mutex_t lock;
    int count;
    const call *calls[2];
} ended = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note_end(TRITONSERVER_InferenceResponse *response, const uint32_t flags, void *userp) {
    call *c = userp;
    ok(TRITONSERVER_InferenceResponseDelete(response));
    pthread_mutex_lock(&ended.lock);
    ended.calls[ended.count++] = c;
    pthread_mutex_unlock(&ended.lock);
    pthread_mutex_lock(&c->lock);
    c->finals += (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void start_sequence(call *c, const world *w, uint64_t id) {
    static const int64_t shape[] = {1, 1};
    static const int32_t value = 1;
    call_init(c, w->server, "m", -1);
    ok(TRITONSERVER_InferenceRequestSetCorrelationId(c->request, id));
    ok(TRITONSERVER_InferenceRequestSetFlags(c->request,
                                             TRITONSERVER_REQUEST_FLAG_SEQUENCE_START |
                                                 TRITONSERVER_REQUEST_FLAG_SEQUENCE_END));
    call_input(c, "IN", TRITONSERVER_TYPE_INT32, shape, 2, &value, sizeof value);
    ok(TRITONSERVER_InferenceRequestSetResponseCallback(c->request, c->allocator, c, note_end, c));
    call_start(c);
}

static void wait_for_execution(const world *w) {
    for (long long count = 0; count != 1; sched_yield()) {
        char *text = metrics_of(w->server);
        count = number_after(text, "nv_inference_exec_count{model=\"m\",version=\"1\"} ");
        free(text);
    }
}

/* The second sequence is executed while the first one executes on another instance. */
static void responses_are_ordered_by_execution(world *w, const char *oldest, int first) {
    call calls[2];
    char config[1024];
    snprintf(config, sizeof config,
             "backend: \"hook\" max_batch_size: 4\n"
             "input { name: \"IN\" data_type: TYPE_INT32 dims: 1 }\n"
             "output { name: \"OUT\" data_type: TYPE_INT32 dims: 1 }\n"
             "instance_group [ { kind: KIND_CPU count: 2 } ]\n"
             "sequence_batching { max_sequence_idle_microseconds: 60000000 oldest { "
             "max_candidate_sequences: 1 %s } }",
             oldest);
    world_load(w, "m", config);
    ended.count = 0;
    close_gate("Execute");
    start_sequence(&calls[0], w, 1);
    wait_until_inside();
    start_sequence(&calls[1], w, 2);
    wait_for_execution(w);
    if (first == 1)
        call_wait(&calls[1]);
    open_gate();
    for (int i = 0; i < 2; i++)
        call_wait(&calls[i]);
    assert_ptr_equal(ended.calls[0], &calls[first]);
    for (int i = 0; i < 2; i++)
        call_deinit(&calls[i]);
    world_unload(w, "m");
}

static void oldest_preserves_the_order_of_executions(void **state) {
    *hook_of_library() = NULL;
    responses_are_ordered_by_execution(*state, "", 1);
    responses_are_ordered_by_execution(*state, "preserve_ordering: true", 0);
}

/* ---- clients ---- */

static void wait_for_count(call *c, const unsigned *count) {
    pthread_mutex_lock(&c->lock);
    while (*count == 0)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

/* A client that waits for the response only may delete the request before the backend releases it.
 */
static void request_is_deleted_between_response_and_release(void **state) {
    world *w = *state;
    static const int64_t shape[] = {1};
    static const int32_t value = 1;
    call c;
    *hook_of_library() = NULL;
    ok(TRITONSERVER_ServerLoadModel(w->server, "a"));
    close_gate("Responded");
    call_init(&c, w->server, "a", -1);
    call_input(&c, "IN", TRITONSERVER_TYPE_INT32, shape, 1, &value, sizeof value);
    call_start(&c);
    wait_until_inside();
    wait_for_count(&c, &c.finals);
    assert_int_equal(c.releases, 0);
    call_clear(&c);
    ok(TRITONSERVER_InferenceRequestDelete(c.request));
    open_gate();
    wait_for_count(&c, &c.releases);
    ok(TRITONSERVER_ResponseAllocatorDelete(c.allocator));
    world_unload(w, "a");
}

static int set_up_identity(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT});
}

static void respond_in_gate(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
                            void *userp) {
    call *c = userp;
    fails(TRITONSERVER_InferenceResponseError(response), TRITONSERVER_ERROR_UNAVAILABLE,
          "Request timeout expired");
    ok(TRITONSERVER_InferenceResponseDelete(response));
    wait_in_gate("callback", NULL);
    pthread_mutex_lock(&c->lock);
    c->finals += (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void start_identity(call *c, const world *w, const char *model, int64_t delay_ms) {
    static const int64_t shape[] = {1};
    static const int32_t value = 1;
    call_init(c, w->server, model, -1);
    call_input(c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, &value, sizeof value);
    if (delay_ms > 0) {
        ok(TRITONSERVER_InferenceRequestSetIntParameter(c->request, "delay_ms", delay_ms));
    } else {
        ok(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(c->request, 1000));
        ok(TRITONSERVER_InferenceRequestSetResponseCallback(c->request, c->allocator, c,
                                                            respond_in_gate, c));
    }
    call_start(c);
}

/* The instances of both models are busy, so that requests are rejected while they are queued. */
static void slow_callback_of_a_rejection_delays_its_model_only(void **state) {
    world *w = *state;
    static const char *const names[] = {"a", "b"};
    call busy[2], queued[2];
    for (int i = 0; i < 2; i++) {
        world_load(
            w, names[i],
            "backend: \"identity\" instance_group [ { kind: KIND_CPU count: 1 } ]\n"
            "input { name: \"INPUT0\" data_type: TYPE_INT32 dims: 1 }\n"
            "output { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: 1 }\n"
            "parameters { key: \"kelp_queue_timeout_us\" value { string_value: \"3600000000\" } "
            "}\n");
        start_identity(&busy[i], w, names[i], 3600000);
    }
    gate.entry_point = "callback";
    gate.inside = gate.released = false;
    start_identity(&queued[0], w, "a", 0);
    wait_until_inside();
    start_identity(&queued[1], w, "b", 0);
    call_wait(&queued[1]);
    open_gate();
    call_wait(&queued[0]);
    for (int i = 0; i < 2; i++) {
        ok(TRITONSERVER_InferenceRequestCancel(busy[i].request));
        call_wait(&busy[i]);
        call_deinit(&busy[i]);
        call_deinit(&queued[i]);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(entry_points_use_the_server),
        TEST(model_loads_a_model_of_its_backend),
        TEST(model_that_loads_itself_fails),
        TEST(slow_backend_delays_its_models_only),
        TEST(slow_model_delays_itself_only),
        TEST(slow_finalization_delays_the_next_initialization),
        TEST(oldest_preserves_the_order_of_executions),
        TEST(request_is_deleted_between_response_and_release),
        cmocka_unit_test_setup_teardown(slow_callback_of_a_rejection_delays_its_model_only,
                                        set_up_identity, world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
