/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic batching through the C API: the order of responses, full queues, cancellation, and random
 * requests of several threads. The policy's decisions are tested in test_scheduler_batch.c. */
#include "server/support.h"

#include <kelp/server.h>
#include <stdatomic.h>

#define IO                                                                \
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n" \
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
#define INSTANCES(count) "instance_group [ { kind: KIND_CPU count: " #count " } ]\n"
#define IDENTITY(count) "backend: \"identity\"\nmax_batch_size: 4\n" IO INSTANCES(count)
#define PARAMETER(name, text) \
    "parameters { key: \"" name "\" value { string_value: \"" text "\" } }\n"

enum { FOREVER_MS = 3600000 };
static const int64_t shape[] = {1, 2};
static const int32_t data[] = {1, 2};

static int set_up(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT});
}

/* The final responses of several requests, in order. */
typedef struct record {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t count;
    size_t order[2048];
    pthread_t thread; /* of the latest one */
} record;

/* A request that appends its number to a record. */
typedef struct numbered {
    call c;
    record *to;
    size_t number;
    TRITONSERVER_Error_Code code; /* of the response */
    bool failed;
} numbered;

static void note(TRITONSERVER_InferenceResponse *response, const uint32_t flags, void *userp) {
    numbered *n = userp;
    if (response != NULL) {
        TRITONSERVER_Error *error = TRITONSERVER_InferenceResponseError(response);
        n->failed = error != NULL;
        if (error != NULL)
            n->code = TRITONSERVER_ErrorCode(error);
        TRITONSERVER_ErrorDelete(error);
        ok(TRITONSERVER_InferenceResponseDelete(response));
    }
    if (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) {
        pthread_mutex_lock(&n->to->lock);
        n->to->order[n->to->count++] = n->number;
        n->to->thread = pthread_self();
        pthread_cond_broadcast(&n->to->changed);
        pthread_mutex_unlock(&n->to->lock);
    }
    pthread_mutex_lock(&n->c.lock);
    n->c.responses += response != NULL;
    n->c.finals += (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
    pthread_cond_broadcast(&n->c.changed);
    pthread_mutex_unlock(&n->c.lock);
}

static void record_init(record *r) {
    memset(r, 0, sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
}

static void numbered_init(numbered *n, world *w, const char *model, record *to, size_t number) {
    call_init(&n->c, w->server, model, -1);
    n->to = to;
    n->number = number;
    n->failed = false;
    ok(TRITONSERVER_InferenceRequestSetResponseCallback(n->c.request, n->c.allocator, &n->c, note,
                                                        n));
}

static void identity_init(numbered *n, world *w, record *to, size_t number, int64_t delay_ms) {
    numbered_init(n, w, "m", to, number);
    call_input(&n->c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 2, data, sizeof data);
    if (delay_ms > 0)
        ok(TRITONSERVER_InferenceRequestSetIntParameter(n->c.request, "delay_ms", delay_ms));
}

static void wait_for_release(call *c) {
    pthread_mutex_lock(&c->lock);
    while (c->releases == 0)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

/* Queues a request as soon as the queue, of one request, is empty. */
static void queue_after_start(world *w, numbered *n) {
    bool queued = false;
    while (!queued) {
        TRITONSERVER_Error *error = TRITONSERVER_ServerInferAsync(w->server, n->c.request, NULL);
        queued = error == NULL;
        TRITONSERVER_ErrorDelete(error);
    }
}

/* ---- the order of responses ---- */

static void test_responses_leave_in_the_order_of_submission(void **state) {
    world *w = *state;
    record r;
    numbered n[4];
    record_init(&r);
    world_load(w, "m",
               IDENTITY(2) "dynamic_batching { preserve_ordering: true preferred_batch_size: 1 }");
    identity_init(&n[0], w, &r, 0, FOREVER_MS);
    for (size_t i = 1; i < 4; i++)
        identity_init(&n[i], w, &r, i, 0);
    for (size_t i = 0; i < 4; i++)
        call_start(&n[i].c);
    for (size_t i = 1; i < 4; i++)
        wait_for_release(&n[i].c); /* they are executed, but their responses are held */
    assert_int_equal(r.count, 0);
    ok(TRITONSERVER_InferenceRequestCancel(n[0].c.request));
    for (size_t i = 0; i < 4; i++) {
        call_wait(&n[i].c);
        assert_int_equal(r.order[i], i);
        assert_int_equal(n[i].c.responses, 1);
        assert_int_equal(n[i].failed, i == 0);
    }
    for (size_t i = 0; i < 4; i++)
        call_deinit(&n[i].c);
    world_unload(w, "m");
}

static void test_rejected_submission_does_not_hold_responses(void **state) {
    world *w = *state;
    record r;
    numbered n[3];
    record_init(&r);
    world_load(w, "m",
               IDENTITY(1) "dynamic_batching { preserve_ordering: true }" PARAMETER(
                   "kelp_max_queue_size", "1"));
    for (size_t i = 0; i < 3; i++)
        identity_init(&n[i], w, &r, i, i == 0 ? FOREVER_MS : 0);
    call_start(&n[0].c);
    queue_after_start(w, &n[1]);
    fails(TRITONSERVER_ServerInferAsync(w->server, n[2].c.request, NULL),
          TRITONSERVER_ERROR_UNAVAILABLE, "Exceeds maximum queue size");
    ok(TRITONSERVER_InferenceRequestCancel(n[1].c.request));
    call_start(&n[2].c); /* the full queue drops the cancelled request */
    assert_int_equal(r.count, 0);
    ok(TRITONSERVER_InferenceRequestCancel(n[0].c.request));
    for (size_t i = 0; i < 3; i++) {
        call_wait(&n[i].c);
        assert_int_equal(r.order[i], i);
        call_deinit(&n[i].c);
    }
    assert_int_equal(n[1].code, TRITONSERVER_ERROR_CANCELLED);
    assert_false(n[2].failed);
}

static void test_decoupled_responses_leave_in_order(void **state) {
    static const char config[] =
        "backend: \"repeat\" model_transaction_policy { decoupled: true }\n"
        "input [ { name: \"IN\" data_type: TYPE_INT32 dims: -1 }, "
        "{ name: \"DELAY\" data_type: TYPE_UINT32 dims: -1 } ]\n"
        "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: 1 }, "
        "{ name: \"IDX\" data_type: TYPE_UINT32 dims: 1 } ]\n"
        "dynamic_batching { preserve_ordering: true }";
    static const uint32_t delays[2][2] = {{0, FOREVER_MS}, {0, 0}};
    world *w = *state;
    record r;
    numbered n[2];
    record_init(&r);
    world_load(w, "m", config);
    for (size_t i = 0; i < 2; i++) {
        numbered_init(&n[i], w, "m", &r, i);
        call_input(&n[i].c, "IN", TRITONSERVER_TYPE_INT32, shape + 1, 1, data, sizeof data);
        call_input(&n[i].c, "DELAY", TRITONSERVER_TYPE_UINT32, shape + 1, 1, delays[i],
                   sizeof delays[i]);
        call_start(&n[i].c);
    }
    pthread_mutex_lock(&n[0].c.lock);
    while (n[0].c.responses == 0) /* the first submission does not wait for its end */
        pthread_cond_wait(&n[0].c.changed, &n[0].c.lock);
    pthread_mutex_unlock(&n[0].c.lock);
    wait_for_release(&n[1].c);
    assert_int_equal(n[1].c.responses, 0);
    ok(TRITONSERVER_InferenceRequestCancel(n[0].c.request));
    for (size_t i = 0; i < 2; i++) {
        call_wait(&n[i].c);
        assert_int_equal(r.order[i], i);
        assert_int_equal(n[i].c.responses, i + 1);
        call_deinit(&n[i].c);
    }
}

static void test_cancelled_request_does_not_wait_for_a_batch(void **state) {
    world *w = *state;
    record r;
    numbered n;
    record_init(&r);
    world_load(w, "m", IDENTITY(1) "dynamic_batching { max_queue_delay_microseconds: 3600000000 }");
    identity_init(&n, w, &r, 0, 0);
    call_start(&n.c);
    ok(TRITONSERVER_InferenceRequestCancel(n.c.request));
    call_wait(&n.c);
    assert_int_equal(n.code, TRITONSERVER_ERROR_CANCELLED);
    call_deinit(&n.c);
}

static void check_queue_of(world *w, bool full) {
    TRITONSERVER_InferenceRequest *request = NULL;
    ok(TRITONSERVER_InferenceRequestNew(&request, w->server, "m", -1));
    if (full)
        fails(KELP_InferenceRequestCheckQueue(request), TRITONSERVER_ERROR_UNAVAILABLE,
              "Exceeds maximum queue size");
    else
        ok(KELP_InferenceRequestCheckQueue(request));
    ok(TRITONSERVER_InferenceRequestDelete(request));
}

/* A front end may ask before it adds the inputs. */
static void full_queue_is_known_in_advance(world *w, const char *config) {
    record r;
    numbered n[2];
    record_init(&r);
    world_load(w, "m", config);
    check_queue_of(w, false);
    identity_init(&n[0], w, &r, 0, FOREVER_MS);
    identity_init(&n[1], w, &r, 1, 0);
    call_start(&n[0].c);
    queue_after_start(w, &n[1]);
    check_queue_of(w, true);
    ok(TRITONSERVER_InferenceRequestCancel(n[1].c.request));
    check_queue_of(w, false); /* the cancelled request leaves the queue */
    ok(TRITONSERVER_InferenceRequestCancel(n[0].c.request));
    for (size_t i = 0; i < 2; i++) {
        call_wait(&n[i].c);
        call_deinit(&n[i].c);
    }
    world_unload(w, "m");
}

static void test_full_queues_are_known_in_advance(void **state) {
    world *w = *state;
    fails(KELP_InferenceRequestCheckQueue(NULL), TRITONSERVER_ERROR_INVALID_ARG, "request");
    full_queue_is_known_in_advance(w, IDENTITY(1) PARAMETER("kelp_max_queue_size", "1"));
    full_queue_is_known_in_advance(
        w, IDENTITY(1) "dynamic_batching { default_queue_policy { max_queue_size: 1 } }");
}

/* ---- random requests ---- */

enum { THREADS = 4, REQUESTS = 100 };

typedef struct client {
    world *w;
    unsigned seed;
    size_t index;
    record *to;
    numbered n[REQUESTS];
    bool rejected[REQUESTS];
} client;

static unsigned random_below(unsigned *seed, unsigned bound) {
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 16) % bound;
}

static bool is_over(numbered *n) {
    pthread_mutex_lock(&n->c.lock);
    bool over = n->c.finals == 1 && n->c.releases == 1;
    pthread_mutex_unlock(&n->c.lock);
    return over;
}

/* Executes due batches until all requests are over. */
static void execute_all(client *c, KELP_DueBatches *due) {
    for (size_t i = 0; i < REQUESTS; i++) {
        uint64_t next_ns;
        while (!c->rejected[i] && !is_over(&c->n[i]))
            ok(KELP_DueBatchesExecute(due, &next_ns));
    }
}

/* Every second client can wait for the queue delay, as an event loop. */
static void *submit_all(void *userp) {
    client *c = userp;
    KELP_DueBatches *due = NULL;
    ok(KELP_DueBatchesNew(&due));
    for (size_t i = 0; i < REQUESTS; i++) {
        numbered *n = &c->n[i];
        identity_init(n, c->w, c->to, c->index * REQUESTS + i, random_below(&c->seed, 8) == 0);
        ok(TRITONSERVER_InferenceRequestSetPriority(n->c.request, random_below(&c->seed, 4)));
        if (random_below(&c->seed, 2))
            ok(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(n->c.request,
                                                                   random_below(&c->seed, 20000)));
        if (random_below(&c->seed, 8) == 0)
            ok(KELP_InferenceRequestSkipQueueDelay(n->c.request));
        uint64_t next_ns;
        if (c->index % 2)
            ok(KELP_InferenceRequestSetDueBatches(n->c.request, due));
        if (random_below(&c->seed, 4) == 0)
            ok(KELP_DueBatchesExecute(due, &next_ns));
        TRITONSERVER_Error *error = TRITONSERVER_ServerInferAsync(c->w->server, n->c.request, NULL);
        c->rejected[i] = error != NULL;
        TRITONSERVER_ErrorDelete(error);
        if (i > 0 && random_below(&c->seed, 6) == 0 && !c->rejected[i / 2])
            ok(TRITONSERVER_InferenceRequestCancel(c->n[i / 2].c.request));
    }
    if (c->index % 2)
        execute_all(c, due);
    for (size_t i = 0; i < REQUESTS; i++)
        if (!c->rejected[i])
            call_wait(&c->n[i].c);
    ok(KELP_DueBatchesDelete(due));
    return NULL;
}

/* Responses to the requests of a thread have its order. */
static void check_order(const record *r) {
    size_t last[THREADS] = {0};
    for (size_t i = 0; i < r->count; i++) {
        size_t thread = r->order[i] / REQUESTS, number = r->order[i] % REQUESTS + 1;
        assert_true(number > last[thread]);
        last[thread] = number;
    }
}

static void run_random_requests(world *w, const char *config, bool ordered) {
    static client clients[THREADS];
    pthread_t threads[THREADS];
    record r;
    size_t expected = 0;
    record_init(&r);
    world_load(w, "m", config);
    for (size_t t = 0; t < THREADS; t++) {
        clients[t].w = w;
        clients[t].seed = (unsigned)t + 1;
        clients[t].index = t;
        clients[t].to = &r;
        assert_int_equal(pthread_create(&threads[t], NULL, submit_all, &clients[t]), 0);
    }
    for (size_t t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (size_t t = 0; t < THREADS; t++) {
        for (size_t i = 0; i < REQUESTS; i++) {
            numbered *n = &clients[t].n[i];
            bool accepted = !clients[t].rejected[i];
            expected += accepted;
            assert_int_equal(n->c.responses, accepted);
            assert_int_equal(n->c.finals, accepted);
            assert_int_equal(n->c.releases, accepted);
            call_deinit(&n->c);
        }
    }
    assert_int_equal(r.count, expected);
    if (ordered)
        check_order(&r);
    world_unload(w, "m");
}

#define RANDOM_POLICY                                                                           \
    "max_queue_delay_microseconds: 300 preferred_batch_size: 3 priority_levels: 2 "             \
    "default_priority_level: 2 default_queue_policy { default_timeout_microseconds: 15000 "     \
    "allow_timeout_override: true max_queue_size: 60 } priority_queue_policy { key: 1 value { " \
    "timeout_action: DELAY default_timeout_microseconds: 2000 allow_timeout_override: true } }"

static void test_each_request_has_one_response(void **state) {
    world *w = *state;
    run_random_requests(w, IDENTITY(2) "dynamic_batching { " RANDOM_POLICY " }", false);
    run_random_requests(
        w, IDENTITY(2) "dynamic_batching { preserve_ordering: true " RANDOM_POLICY " }", true);
    run_random_requests(w, IDENTITY(2) PARAMETER("kelp_queue_timeout_us", "15000"), false);
}

static void test_latency_target_gives_one_response(void **state) {
    world *w = *state;
    run_random_requests(
        w, IDENTITY(2) PARAMETER("kelp_latency_target_us", "5000") "dynamic_batching { }", false);
    run_random_requests(w,
                        IDENTITY(1) PARAMETER("kelp_latency_target_us", "2000")
                            PARAMETER("kelp_execute_on", "instance")
                                PARAMETER("kelp_max_queue_size", "40") "dynamic_batching { "
                                                                       "preserve_ordering: true }",
                        true);
}

static void test_instance_threads_give_one_response(void **state) {
    world *w = *state;
    run_random_requests(
        w,
        IDENTITY(2)
            PARAMETER("kelp_execute_on",
                      "instance") "dynamic_batching { preserve_ordering: true " RANDOM_POLICY " }",
        true);
    run_random_requests(w,
                        IDENTITY(1) PARAMETER("kelp_execute_on", "instance")
                            PARAMETER("kelp_max_queue_size", "30"),
                        false);
}

/* ---- batches of a thread that can wait ---- */

/* Submits two requests, and executes what is due until they are over. Returns true if this thread
 * executed them: otherwise it was late, or their execution time was not known. */
static bool waits_for_both(world *w, record *r, KELP_DueBatches *due) {
    numbered n[2];
    for (size_t i = 0; i < 2; i++) {
        identity_init(&n[i], w, r, i, 0);
        ok(KELP_InferenceRequestSetDueBatches(n[i].c.request, due));
        call_start(&n[i].c);
    }
    while (!is_over(&n[0]) || !is_over(&n[1])) {
        uint64_t next_ns;
        ok(KELP_DueBatchesExecute(due, &next_ns));
    }
    bool here = pthread_equal(r->thread, pthread_self());
    for (size_t i = 0; i < 2; i++) {
        call_wait(&n[i].c);
        call_deinit(&n[i].c);
    }
    r->count = 0;
    return here;
}

static void test_a_thread_that_waits_executes_its_batches(void **state) {
    world *w = *state;
    KELP_DueBatches *due = NULL;
    uint64_t next_ns = 0;
    record r;
    record_init(&r);
    world_load(w, "m",
               IDENTITY(1) PARAMETER("kelp_caller_limit_us", "1000000") "dynamic_batching { "
                                                                        "max_queue_delay_"
                                                                        "microseconds: 1000 }");
    fails(KELP_DueBatchesNew(NULL), TRITONSERVER_ERROR_INVALID_ARG, "due");
    fails(KELP_DueBatchesExecute(NULL, &next_ns), TRITONSERVER_ERROR_INVALID_ARG, "due");
    fails(KELP_InferenceRequestSetDueBatches(NULL, NULL), TRITONSERVER_ERROR_INVALID_ARG,
          "request");
    fails(KELP_InferenceRequestSkipQueueDelay(NULL), TRITONSERVER_ERROR_INVALID_ARG, "request");
    ok(KELP_DueBatchesDelete(NULL));
    ok(KELP_DueBatchesNew(&due));
    fails(KELP_DueBatchesExecute(due, NULL), TRITONSERVER_ERROR_INVALID_ARG, "next_ns");
    ok(KELP_DueBatchesExecute(due, &next_ns));
    assert_true(next_ns == UINT64_MAX);
    bool here = false;
    for (int i = 0; i < 1000 && !here; i++)
        here = waits_for_both(w, &r, due);
    assert_true(here);
    ok(KELP_DueBatchesDelete(due));
    world_unload(w, "m");
}

/* Without calls of KELP_DueBatchesExecute, and after the deletion, other threads execute. */
static void test_forgotten_batches_are_executed(void **state) {
    world *w = *state;
    record r;
    record_init(&r);
    world_load(w, "m",
               IDENTITY(1) PARAMETER("kelp_caller_limit_us", "1000000") "dynamic_batching { "
                                                                        "max_queue_delay_"
                                                                        "microseconds: 1000 }");
    for (size_t i = 0; i < 6; i++) {
        KELP_DueBatches *due = NULL;
        numbered n;
        ok(KELP_DueBatchesNew(&due));
        identity_init(&n, w, &r, i, 0);
        ok(KELP_InferenceRequestSetDueBatches(n.c.request, due));
        call_start(&n.c);
        if (i % 2)
            ok(KELP_DueBatchesDelete(due));
        call_wait(&n.c);
        if (i % 2 == 0)
            ok(KELP_DueBatchesDelete(due));
        call_deinit(&n.c);
    }
    assert_int_equal(r.count, 6);
    world_unload(w, "m");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_responses_leave_in_the_order_of_submission, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_rejected_submission_does_not_hold_responses, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_decoupled_responses_leave_in_order, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_cancelled_request_does_not_wait_for_a_batch, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_full_queues_are_known_in_advance, set_up, world_close),
        cmocka_unit_test_setup_teardown(test_each_request_has_one_response, set_up, world_close),
        cmocka_unit_test_setup_teardown(test_latency_target_gives_one_response, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_instance_threads_give_one_response, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_a_thread_that_waits_executes_its_batches, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_forgotten_batches_are_executed, set_up, world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
