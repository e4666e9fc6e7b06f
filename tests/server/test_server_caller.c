/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that executes a request: the submitting thread for short executions of backends that
 * do not block, with limits on nested callbacks and on the work for other submitters; otherwise a
 * thread of the server. The tests compare the thread of the callbacks.
 */
#include "server/support.h"

#include <stdatomic.h>

#define IO                                                                \
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n" \
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
#define INSTANCES(count) "instance_group [ { kind: KIND_CPU count: " #count " } ]\n"
#define IDENTITY(count) "backend: \"identity\"\n" IO INSTANCES(count)
#define EXECUTE_ON(where) \
    "parameters { key: \"kelp_execute_on\" value { string_value: \"" where "\" } }\n"

#define CALLER_LIMIT(us) \
    "parameters { key: \"kelp_caller_limit_us\" value { string_value: \"" us "\" } }\n"

static const int64_t shape[] = {2};
static const int32_t data[] = {1, 2};

static int set_up(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT});
}

/* Uses the backends for tests, which do not declare whether they block. */
static int set_up_silent(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                             .backends = KELP_TEST_BACKENDS});
}

/* ---- which thread ---- */

typedef struct seen {
    call c;
    pthread_t responder; /* after the submission has returned */
} seen;

static void note(TRITONSERVER_InferenceResponse *response, const uint32_t flags, void *userp) {
    seen *s = userp;
    if (response)
        ok(TRITONSERVER_InferenceResponseDelete(response));
    pthread_mutex_lock(&s->c.lock);
    s->responder = pthread_self();
    s->c.finals += flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL;
    pthread_cond_broadcast(&s->c.changed);
    pthread_mutex_unlock(&s->c.lock);
}

static void seen_init(seen *s, world *w, const char *model) {
    call_init(&s->c, w->server, model, -1);
    ok(TRITONSERVER_InferenceRequestSetResponseCallback(s->c.request, s->c.allocator, &s->c, note,
                                                        s));
    call_input(&s->c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, data, sizeof data);
}

/* Returns true if a request to the model is executed on the submitting thread. */
static bool runs_here(world *w, const char *model, int64_t delay_ms) {
    seen s;
    seen_init(&s, w, model);
    if (delay_ms)
        ok(TRITONSERVER_InferenceRequestSetIntParameter(s.c.request, "delay_ms", delay_ms));
    call_start(&s.c);
    pthread_mutex_lock(&s.c.lock);
    bool over = s.c.finals == 1 && s.c.releases == 1;
    pthread_mutex_unlock(&s.c.lock);
    call_wait(&s.c);
    bool here = pthread_equal(s.responder, pthread_self());
    if (here)
        assert_true(over);
    call_deinit(&s.c);
    return here;
}

/* Sends requests until one is executed on the submitting thread: the first ones run on other
 * threads because their execution time is unknown, or because the instance becomes idle only after
 * the response. */
static void wait_until_here(world *w, const char *model) {
    bool here = false;
    for (int i = 0; i < 1000 && !here; i++)
        here = runs_here(w, model, 0);
    assert_true(here);
}

static void test_short_requests_run_on_the_submitting_thread(void **state) {
    world *w = *state;
    world_load(w, "one", IDENTITY(1) EXECUTE_ON("auto") CALLER_LIMIT("1000000"));
    world_load(w, "three", IDENTITY(3) CALLER_LIMIT("1000000"));
    assert_false(runs_here(w, "one", 0)); /* its execution time is unknown */
    wait_until_here(w, "one");
    wait_until_here(w, "three");
    for (int i = 0; i < 5; i++) {
        assert_true(runs_here(w, "one", 0));
        assert_true(runs_here(w, "three", 0));
    }
}

/* A request or a model requests a delay; the next request runs on the submitting thread again. */
static void test_blocking_requests_run_on_worker_threads(void **state) {
    world *w = *state;
    world_load(w, "one", IDENTITY(1) CALLER_LIMIT("1000000"));
    world_load(
        w, "slow",
        IDENTITY(2) "parameters { key: \"execute_delay_ms\" value { string_value: \"1\" } }\n");
    for (int i = 0; i < 3; i++) {
        assert_false(runs_here(w, "one", 1));
        assert_false(runs_here(w, "slow", 0));
    }
    wait_until_here(w, "one");
}

/* Two blocking requests run concurrently on two instances, whose threads are started for them. */
static void test_blocking_requests_use_all_instances(void **state) {
    world *w = *state;
    seen s[2];
    world_load(w, "two", IDENTITY(2));
    for (int i = 0; i < 2; i++) {
        seen_init(&s[i], w, "two");
        ok(TRITONSERVER_InferenceRequestSetIntParameter(s[i].c.request, "delay_ms", 3600000));
        call_start(&s[i].c);
    }
    /* Only a request that is being executed polls this; a queued one would not be started. */
    for (int i = 2; i-- > 0;) {
        ok(TRITONSERVER_InferenceRequestCancel(s[i].c.request));
        call_wait(&s[i].c);
        assert_false(pthread_equal(s[i].responder, pthread_self()));
        call_deinit(&s[i].c);
    }
    world_unload(w, "two");
}

static void test_configuration_selects_the_thread(void **state) {
    world *w = *state;
    world_load(w, "here", IDENTITY(1) EXECUTE_ON("caller"));
    world_load(w, "there", IDENTITY(1) EXECUTE_ON("instance"));
    repo_model(&w->r, "wrong", IDENTITY(1) EXECUTE_ON("moon"));
    fails(TRITONSERVER_ServerLoadModel(w->server, "wrong"), TRITONSERVER_ERROR_INVALID_ARG,
          "parameter 'kelp_execute_on': expected auto, caller or instance, found 'moon'");
    repo_model(&w->r, "zero", IDENTITY(1) CALLER_LIMIT("0"));
    fails(TRITONSERVER_ServerLoadModel(w->server, "zero"), TRITONSERVER_ERROR_INVALID_ARG,
          "parameter 'kelp_caller_limit_us': expected a number of microseconds from 1 to 1000000, "
          "found '0'");
    assert_true(runs_here(w, "here", 0));
    assert_true(runs_here(w, "here", 1)); /* the configuration is responsible for that */
    assert_false(runs_here(w, "there", 0));
}

static void test_undeclared_backend_runs_on_instance_threads(void **state) {
    world *w = *state;
    world_load(w, "good", "backend: \"misbehave\"\n" IO INSTANCES(1));
    world_load(w, "good-here", "backend: \"misbehave\"\n" IO INSTANCES(1) EXECUTE_ON("caller"));
    world_load(w, "good-auto", "backend: \"misbehave\"\n" IO INSTANCES(1) EXECUTE_ON("auto"));
    assert_false(runs_here(w, "good", 0));
    for (int i = 0; i < 5; i++)
        assert_false(runs_here(w, "good-auto", 0));
    assert_true(runs_here(w, "good-here", 0));
}

/* ---- callbacks that submit ---- */

static _Thread_local unsigned nested; /* nested submissions on this thread */

/* A request that is resubmitted whenever it is over. */
typedef struct chain {
    call c;
    atomic_uint links, deepest;
    unsigned at_least;
    atomic_bool returned; /* the first submission has returned */
    bool over;            /* under the lock of the call */
} chain;

static void submit(chain *ch) {
    nested++;
    if (nested > atomic_load(&ch->deepest))
        atomic_store(&ch->deepest, nested);
    call_start(&ch->c);
    nested--;
}

static void drop(TRITONSERVER_InferenceResponse *response, const uint32_t flags, void *userp) {
    (void)flags;
    (void)userp;
    if (response) {
        ok(TRITONSERVER_InferenceResponseError(response));
        ok(TRITONSERVER_InferenceResponseDelete(response));
    }
}

static void next_link(TRITONSERVER_InferenceRequest *request, const uint32_t flags, void *userp) {
    chain *ch = userp;
    (void)request;
    (void)flags;
    /* Without limit, unless the first submission returns. */
    if (atomic_fetch_add(&ch->links, 1) < ch->at_least || !atomic_load(&ch->returned)) {
        submit(ch);
        return;
    }
    pthread_mutex_lock(&ch->c.lock);
    ch->over = true;
    pthread_cond_broadcast(&ch->c.changed);
    pthread_mutex_unlock(&ch->c.lock);
}

static void chain_start(chain *ch, world *w, const char *model, unsigned at_least) {
    *ch = (chain){.at_least = at_least};
    call_init(&ch->c, w->server, model, -1);
    ok(TRITONSERVER_InferenceRequestSetResponseCallback(ch->c.request, ch->c.allocator, &ch->c,
                                                        drop, ch));
    ok(TRITONSERVER_InferenceRequestSetReleaseCallback(ch->c.request, next_link, ch));
    call_input(&ch->c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, data, sizeof data);
    submit(ch);
    atomic_store(&ch->returned, true);
}

static void chain_end(chain *ch) {
    pthread_mutex_lock(&ch->c.lock);
    while (!ch->over)
        pthread_cond_wait(&ch->c.changed, &ch->c.lock);
    pthread_mutex_unlock(&ch->c.lock);
    assert_in_range(atomic_load(&ch->deepest), 1, 8);
    call_deinit(&ch->c);
}

static void test_callback_can_submit_the_next_request(void **state) {
    world *w = *state;
    chain one, nine;
    world_load(w, "one", IDENTITY(1));
    world_load(w, "nine", IDENTITY(9));
    chain_start(&one, w, "one", 5000);
    chain_start(&nine, w, "nine", 5000);
    chain_end(&one);
    chain_end(&nine);
    world_unload(w, "one");
    world_unload(w, "nine");
}

/* ---- all at once ---- */

typedef struct crowd {
    world *w;
    const char *model;
    int64_t delay_ms;
    unsigned count;
} crowd;

static void *ask(void *userp) {
    const crowd *me = userp;
    int32_t values[2] = {(int32_t)me->count, (int32_t)me->delay_ms};
    size_t size_bytes = 0;
    call c;
    call_init(&c, me->w->server, me->model, -1);
    call_input(&c, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, values, sizeof values);
    if (me->delay_ms)
        ok(TRITONSERVER_InferenceRequestSetIntParameter(c.request, "delay_ms", me->delay_ms));
    for (unsigned i = 0; i < me->count; i++) {
        values[0]++;
        call_run(&c);
        assert_memory_equal(call_output(&c, "OUTPUT0", &size_bytes), values, sizeof values);
        call_clear(&c);
    }
    call_deinit(&c);
    return NULL;
}

static void crowd_asks(world *w, const char *model) {
    crowd crowds[] = {
        {w, model, 0, 2000}, {w, model, 0, 2000}, {w, model, 1, 20}, {w, model, 1, 20}};
    pthread_t threads[4];
    chain ch;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &crowds[i]), 0);
    chain_start(&ch, w, model, 1000);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    chain_end(&ch);
}

static void test_mixed_submissions_complete(void **state) {
    world *w = *state;
    world_load(w, "one", IDENTITY(1));
    world_load(w, "two", IDENTITY(2));
    crowd_asks(w, "one");
    crowd_asks(w, "two");
}

/* An unloaded model is finalized after its requests in flight, on any thread. */
static void test_unload_waits_for_requests_in_flight(void **state) {
    world *w = *state;
    for (int round = 0; round < 10; round++) {
        seen s[6];
        world_load(w, "two", IDENTITY(2));
        for (int i = 0; i < 6; i++) {
            seen_init(&s[i], w, "two");
            if (i % 3 < 2)
                ok(TRITONSERVER_InferenceRequestSetIntParameter(s[i].c.request, "delay_ms", 2));
            call_start(&s[i].c);
        }
        world_unload(w, "two");
        for (int i = 0; i < 6; i++) {
            call_wait(&s[i].c);
            call_deinit(&s[i].c);
        }
    }
}

/* ---- the rate limiter ---- */

#define LIMITED(count)                                                                          \
    "instance_group [ { kind: KIND_CPU rate_limiter { resources [ { name: \"R\" count: " #count \
    " } ] } } ]\n"

static int set_up_limited(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                             .rate_limit = true,
                                             .rate_resource = "R",
                                             .rate_count = 2});
}

/* Two of three requests hold all units until they are cancelled. */
static void test_limited_models_wait_for_resources(void **state) {
    world *w = *state;
    seen s[3];
    static const char *const models[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        world_load(w, models[i], "backend: \"identity\"\n" IO LIMITED(1) EXECUTE_ON("caller"));
        seen_init(&s[i], w, models[i]);
        ok(TRITONSERVER_InferenceRequestSetIntParameter(s[i].c.request, "delay_ms", 3600000));
    }
    for (int i = 0; i < 3; i++)
        call_start(&s[i].c);
    for (int i = 0; i < 3; i++)
        ok(TRITONSERVER_InferenceRequestCancel(s[i].c.request));
    for (int i = 0; i < 3; i++) {
        call_wait(&s[i].c);
        assert_false(pthread_equal(s[i].responder, pthread_self()));
        call_deinit(&s[i].c);
    }
}

static void test_resources_are_checked_at_load(void **state) {
    world *w = *state;
    repo_model(&w->r, "large", "backend: \"identity\"\n" IO LIMITED(3));
    fails(TRITONSERVER_ServerLoadModel(w->server, "large"), TRITONSERVER_ERROR_INVALID_ARG,
          "Resource count for \"R\" is limited to 2");
    world_load(w, "fits", "backend: \"identity\"\n" IO LIMITED(2));
    assert_false(runs_here(w, "fits", 0));
}

/* A model gets threads when its instances become limited, and loses them again. */
static void test_update_adds_and_removes_resources(void **state) {
    world *w = *state;
    for (int i = 0; i < 3; i++) {
        world_load(w, "m", "backend: \"identity\"\n" IO EXECUTE_ON("caller"));
        assert_true(runs_here(w, "m", 0));
        world_load(w, "m", "backend: \"identity\"\n" IO LIMITED(1) EXECUTE_ON("caller"));
        assert_false(runs_here(w, "m", 0));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_short_requests_run_on_the_submitting_thread, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_blocking_requests_run_on_worker_threads, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_blocking_requests_use_all_instances, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_configuration_selects_the_thread, set_up, world_close),
        cmocka_unit_test_setup_teardown(test_undeclared_backend_runs_on_instance_threads,
                                        set_up_silent, world_close),
        cmocka_unit_test_setup_teardown(test_callback_can_submit_the_next_request, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_mixed_submissions_complete, set_up, world_close),
        cmocka_unit_test_setup_teardown(test_unload_waits_for_requests_in_flight, set_up,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_limited_models_wait_for_resources, set_up_limited,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_resources_are_checked_at_load, set_up_limited,
                                        world_close),
        cmocka_unit_test_setup_teardown(test_update_adds_and_removes_resources, set_up_limited,
                                        world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
