/* SPDX-License-Identifier: Apache-2.0 */
/* Loading ensembles: order, wrong configurations, and members that disappear, return or change. */
#include "server/support.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static const int64_t two[] = {2};
static const int32_t pair[] = {1, 2};

#define TENSOR(name, type, dims) \
    "{ name: \"" name "\" data_type: TYPE_" type " dims: [ " dims " ] }"
#define PAIR(key, value) "{ key: \"" key "\" value: \"" value "\" } "
#define ENSEMBLE(steps)                                                                    \
    "input [ " TENSOR("IN", "INT32",                                                       \
                      "-1") " ]\n"                                                         \
                            "output [ " TENSOR("OUT", "INT32",                             \
                                               "-1") " ]\n"                                \
                                                     "ensemble_scheduling { step [ " steps \
                                                     " ] }\n"
#define STEP(model, input, output) \
    "{ model_name: \"" model       \
    "\" input_map " PAIR("INPUT0", input) "output_map " PAIR("OUTPUT0", output) "}"
/* Renames the tensors of an ensemble with ENSEMBLE to those of identity_config. */
#define NESTED(model) \
    "{ model_name: \"" model "\" input_map " PAIR("IN", "IN") "output_map " PAIR("OUT", "OUT") "}"

static const char pair_config[] = ENSEMBLE(STEP("one", "IN", "x") "," STEP("two", "x", "OUT"));

static int set_up(void **state) {
    return world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT});
}

static void run_pair(TRITONSERVER_Server *server, const char *model) {
    size_t size_bytes = 0;
    call c;
    call_init(&c, server, model, -1);
    call_input(&c, "IN", TRITONSERVER_TYPE_INT32, two, 1, pair, sizeof pair);
    call_run(&c);
    assert_memory_equal(call_output(&c, "OUT", &size_bytes), pair, sizeof pair);
    call_deinit(&c);
}

static bool is_ready(TRITONSERVER_Server *server, const char *model) {
    bool ready = true;
    ok(TRITONSERVER_ServerModelIsReady(server, model, -1, &ready));
    return ready;
}

static bool server_is_ready(TRITONSERVER_Server *server) {
    bool ready = false;
    ok(TRITONSERVER_ServerIsReady(server, &ready));
    return ready;
}

/* ---- order ---- */

static void test_loading_an_ensemble_loads_its_members(void **state) {
    world *w = *state;
    repo_model(&w->r, "one", identity_config);
    repo_model(&w->r, "two", identity_config);
    repo_model(&w->r, "inner", pair_config);
    repo_model(&w->r, "outer", ENSEMBLE(NESTED("inner")));
    ok(TRITONSERVER_ServerLoadModel(w->server, "outer"));
    run_pair(w->server, "outer");
    assert_true(is_ready(w->server, "one"));
    assert_true(is_ready(w->server, "inner"));
}

static void test_a_member_that_fails_to_load_is_named(void **state) {
    world *w = *state;
    repo_model(&w->r, "one", identity_config);
    repo_model(&w->r, "two",
               "backend: \"no_such_backend\" input [ " TENSOR(
                   "INPUT0", "INT32", "-1") " ]\n"
                                            "output [ " TENSOR("OUTPUT0", "INT32", "-1") " ]\n");
    repo_model(&w->r, "pair", pair_config);
    TRITONSERVER_Error *error = TRITONSERVER_ServerLoadModel(w->server, "pair");
    assert_non_null(error);
    contains(TRITONSERVER_ErrorMessage(error), "step[1] depends on model 'two'");
    contains(TRITONSERVER_ErrorMessage(error), "no_such_backend");
    TRITONSERVER_ErrorDelete(error);
    repo_drop(&w->r, "two");
    fails(TRITONSERVER_ServerLoadModel(w->server, "pair"), TRITONSERVER_ERROR_UNAVAILABLE,
          "step[1] depends on model 'two', which is not ready");
    assert_true(is_ready(w->server, "one"));
}

/* The ensembles are the first in the alphabetical order. */
static void test_startup_loads_members_first(void **state) {
    repo r;
    (void)state;
    repo_make(&r);
    repo_model(&r, "a", ENSEMBLE(NESTED("b")));
    repo_model(&r, "b", pair_config);
    repo_model(&r, "c", ENSEMBLE(STEP("missing", "IN", "OUT")));
    repo_model(&r, "d", ENSEMBLE(NESTED("e")));
    repo_model(&r, "e", ENSEMBLE(NESTED("d")));
    repo_model(&r, "one", identity_config);
    repo_model(&r, "two", identity_config);
    TRITONSERVER_Server *server = server_start(&r, &(server_setup){.keep_on_error = true});
    run_pair(server, "a");
    wait_for_index(server, "depends on model 'missing', which is not ready");
    wait_for_index(server, "circular dependency between ensembles");
    server_end(server);
    server = NULL;
    TRITONSERVER_Error *error = server_try(&r, &(server_setup){0}, &server);
    assert_non_null(error);
    contains(TRITONSERVER_ErrorMessage(error), "depends on model 'missing'");
    TRITONSERVER_ErrorDelete(error);
    repo_remove(&r);
}

static void test_ensembles_that_contain_each_other_are_rejected(void **state) {
    world *w = *state;
    repo_model(&w->r, "x", ENSEMBLE(NESTED("y")));
    repo_model(&w->r, "y", ENSEMBLE(NESTED("z")));
    repo_model(&w->r, "z", ENSEMBLE(NESTED("x")));
    repo_model(&w->r, "self", ENSEMBLE(NESTED("self")));
    fails(TRITONSERVER_ServerLoadModel(w->server, "x"), TRITONSERVER_ERROR_INVALID_ARG,
          "circular dependency between ensembles: 'x' <- 'z' <- 'y' <- 'x'");
    fails(TRITONSERVER_ServerLoadModel(w->server, "self"), TRITONSERVER_ERROR_INVALID_ARG,
          "circular dependency between ensembles: 'self' <- 'self'");
}

/* ---- wrong configurations ---- */

typedef struct wrong {
    const char *config;
    const char *message;
} wrong;

static const wrong wrong_configs[] = {
    {ENSEMBLE(STEP("one", "nothing", "OUT")),
     "step[0] of model 'one' reads ensemble tensor 'nothing', which is neither an input"},
    {ENSEMBLE(STEP("one", "IN", "x")), "ensemble output 'OUT' is not produced by any step"},
    {ENSEMBLE(STEP("one", "IN", "OUT") "," STEP("two", "IN", "OUT")),
     "ensemble tensor 'OUT' is produced twice: by step[0] of model 'one' and step[1] of model "
     "'two'"},
    {ENSEMBLE(STEP("one", "IN", "IN")), "is mapped to ensemble tensor 'IN', which is an input"},
    {ENSEMBLE("{ model_name: \"one\" output_map " PAIR("OUTPUT0", "OUT") "}"),
     "ensemble input 'IN' is not used"},
    {ENSEMBLE(STEP("", "IN", "OUT")), "must specify 'model_name'"},
    {ENSEMBLE("{ model_name: \"one\" input_map " PAIR("INPUT0", "IN") "}"),
     "must specify 'output_map'"},
    {ENSEMBLE(STEP("one", "IN", "OUT") "," STEP("one", "b", "a") "," STEP("two", "a", "b")),
     "the steps form a cycle: step[2] 'two' <- 'a' <- step[1] 'one' <- 'b' <- step[2] 'two'"},
    {ENSEMBLE("{ model_name: \"one\" input_map " PAIR("WRONG", "IN") "output_map " PAIR("OUTPUT0",
                                                                                        "OUT") "}"),
     "ensemble tensor 'IN' is mapping to non-existing input 'WRONG' in model 'one'"},
    {ENSEMBLE("{ model_name: \"one\" input_map " PAIR("INPUT0",
                                                      "IN") "output_map " PAIR("WRONG", "OUT") "}"),
     "ensemble tensor 'OUT' is mapped from non-existing output 'WRONG' in model 'one' (path: 'IN' "
     "-> step[0] 'one')"},
    {ENSEMBLE(STEP("one", "IN", "x") "," STEP("real", "x", "OUT")),
     "ensemble tensor 'OUT': inconsistent data type: TYPE_FP32 is inferred from model 'real' while "
     "TYPE_INT32 is inferred from model 'wrong' (path: 'IN' -> step[0] 'one' -> 'x' -> step[1] "
     "'real')"},
    {ENSEMBLE(STEP("real", "IN", "x") "," STEP("one", "x", "OUT")),
     "ensemble tensor 'IN': inconsistent data type: TYPE_INT32 is inferred from model 'wrong' "
     "while TYPE_FP32 is inferred from model 'real' (path: 'IN' -> step[0] 'real')"},
    {ENSEMBLE(STEP("wide", "IN", "x") "," STEP("narrow", "x", "OUT")),
     "ensemble tensor 'x': inconsistent shape: [3] is inferred from model 'wide' while [2] is "
     "inferred from model 'narrow' (path: 'IN' -> step[0] 'wide' -> 'x' -> step[1] 'narrow')"},
    {"max_batch_size: 16 input [ " TENSOR(
         "IN", "FP32",
         "16") " ]\n"
               "output [ " TENSOR(
                   "OUT", "FP32",
                   "16") " ]\n"
                         "ensemble_scheduling { step [ { model_name: \"addsub\" input_map " PAIR(
                             "INPUT0",
                             "IN") "input_map " PAIR("INPUT1",
                                                     "IN") "output_map " PAIR("OUTPUT0",
                                                                              "OUT") "} ] }\n",
     "allows maximum batch size 16, but it contains model 'addsub' which only allows maximum batch "
     "size to be 8"},
    {"max_batch_size: 8 input [ " TENSOR(
         "IN", "FP32",
         "16") " ]\n"
               "output [ " TENSOR(
                   "OUT", "FP32",
                   "16") " ]\n"
                         "ensemble_scheduling { step [ { model_name: \"addsub\" input_map " PAIR(
                             "INPUT0", "IN") "output_map " PAIR("OUTPUT0", "OUT") "} ] }\n",
     "input 'INPUT1' in model 'addsub' is not mapped to any ensemble tensors (path: 'IN' -> "
     "step[0] 'addsub')"},
    {"input [ " TENSOR("IN", "INT32", "-1") " ]\n"
                                            "ensemble_scheduling { step [ " STEP("one", "IN",
                                                                                 "OUT") " ] }\n",
     "ensemble 'wrong' has no output"},
    {ENSEMBLE(
         "{ model_name: \"repeat\" input_map " PAIR("IN", "IN") "output_map " PAIR("OUT", "many") "}, { model_name: \"two_inputs\" input_map " PAIR(
             "INPUT0", "many") "input_map " PAIR("INPUT1", "IN") "output_map " PAIR("OUTPUT0",
                                                                                    "OUT") "}"),
     "step of model 'two_inputs' receives inputs originated from different decoupled models"},
    {ENSEMBLE(STEP("one", "IN", "OUT")) "instance_group [ { count: 1 kind: KIND_CPU } ]\n",
     "config.pbtxt: instance group should not be specified for ensemble '"},
    {ENSEMBLE(STEP("one", "IN", "OUT")) "backend: \"identity\"\n",
     "config.pbtxt: Ensemble model 'wrong' must have platform type 'ensemble' and empty backend "
     "type"},
    {ENSEMBLE(STEP("one", "IN", "OUT")) "model_warmup [ { name: \"w\" batch_size: 1 } ]\n",
     "config.pbtxt: model_warmup can not be specified for ensemble '"},
};

static void load_members(world *w) {
    world_load(w, "one", identity_config);
    world_load(w, "two", identity_config);
    world_load(w, "addsub", addsub_config);
    world_load(w, "real",
               "backend: \"identity\" input [ " TENSOR(
                   "INPUT0", "FP32", "-1") " ]\n"
                                           "output [ " TENSOR("OUTPUT0", "FP32", "-1") " ]\n");
    world_load(w, "wide",
               "backend: \"identity\" input [ " TENSOR(
                   "INPUT0", "INT32", "-1") " ]\n"
                                            "output [ " TENSOR("OUTPUT0", "INT32", "3") " ]\n");
    world_load(w, "narrow",
               "backend: \"identity\" input [ " TENSOR(
                   "INPUT0", "INT32", "2") " ]\n"
                                           "output [ " TENSOR("OUTPUT0", "INT32", "-1") " ]\n");
    world_load(
        w, "repeat",
        "backend: \"repeat\" model_transaction_policy { decoupled: true }\n"
        "input [ " TENSOR("IN", "INT32", "-1") " ]\n"
                                               "output [ " TENSOR("OUT", "INT32", "1") "," TENSOR(
                                                   "IDX", "UINT32", "1") " ]\n");
    world_load(w, "two_inputs",
               "backend: \"identity\" input [ " TENSOR("INPUT0", "INT32", "-1") "," TENSOR(
                   "INPUT1", "INT32", "-1") " ]\n"
                                            "output [ " TENSOR("OUTPUT0", "INT32", "-1") " ]\n");
}

static void test_wrong_configurations_are_rejected(void **state) {
    world *w = *state;
    load_members(w);
    for (size_t i = 0; i < sizeof wrong_configs / sizeof wrong_configs[0]; i++) {
        repo_model(&w->r, "wrong", wrong_configs[i].config);
        /* A configuration that cannot be read has the code of Triton. */
        bool unreadable = strncmp(wrong_configs[i].message, "config.pbtxt:", 13) == 0;
        fails(TRITONSERVER_ServerLoadModel(w->server, "wrong"),
              unreadable ? TRITONSERVER_ERROR_INTERNAL : TRITONSERVER_ERROR_INVALID_ARG,
              wrong_configs[i].message);
    }
    repo_model(&w->r, "wrong", ENSEMBLE(STEP("one", "IN", "OUT")));
    ok(TRITONSERVER_ServerLoadModel(w->server, "wrong"));
    run_pair(w->server, "wrong");
}

/* ---- members that disappear and return ---- */

static void test_an_ensemble_is_unavailable_without_a_member(void **state) {
    world *w = *state;
    call c;
    world_load(w, "one", identity_config);
    world_load(w, "two", identity_config);
    world_load(w, "pair", pair_config);
    world_load(w, "outer", ENSEMBLE(NESTED("pair")));
    world_unload(w, "two");
    assert_false(is_ready(w->server, "pair"));
    assert_false(is_ready(w->server, "outer"));
    assert_true(server_is_ready(w->server));
    wait_for_index(w->server, "\"name\":\"pair\",\"version\":\"1\",\"state\":\"UNAVAILABLE\","
                              "\"reason\":\"in ensemble 'pair', step[1] depends on model 'two'");
    call_init(&c, w->server, "outer", -1);
    call_input(&c, "IN", TRITONSERVER_TYPE_INT32, two, 1, pair, sizeof pair);
    TRITONSERVER_Error *error = TRITONSERVER_ServerInferAsync(w->server, c.request, NULL);
    if (error == NULL) {
        call_wait(&c);
        call_fails(&c, TRITONSERVER_ERROR_UNAVAILABLE, "depends on model 'two'");
    } else {
        fails(error, TRITONSERVER_ERROR_UNAVAILABLE, "depends on model 'two'");
    }
    ok(TRITONSERVER_ServerLoadModel(w->server, "two"));
    assert_true(is_ready(w->server, "outer"));
    call_deinit(&c);
    run_pair(w->server, "outer");
}

static void test_unloading_keeps_members_unless_dependents_are_unloaded(void **state) {
    world *w = *state;
    repo_model(&w->r, "one", identity_config);
    repo_model(&w->r, "two", identity_config);
    repo_model(&w->r, "pair", pair_config);
    repo_model(&w->r, "outer", ENSEMBLE(NESTED("pair")));
    ok(TRITONSERVER_ServerLoadModel(w->server, "outer"));
    world_unload(w, "outer");
    assert_true(is_ready(w->server, "pair"));
    ok(TRITONSERVER_ServerLoadModel(w->server, "outer"));
    world_unload(w, "one");
    ok(TRITONSERVER_ServerUnloadModelAndDependents(w->server, "outer"));
    wait_for_index(w->server, "\"name\":\"pair\",\"version\":\"1\",\"state\":\"UNAVAILABLE\","
                              "\"reason\":\"unloaded\"");
    wait_for_index(w->server, "\"name\":\"two\",\"version\":\"1\",\"state\":\"UNAVAILABLE\","
                              "\"reason\":\"unloaded\"");
    ok(TRITONSERVER_ServerUnloadModelAndDependents(w->server, "never")); /* no effect */
}

static void test_a_member_that_does_not_fit_any_more_makes_it_unavailable(void **state) {
    world *w = *state;
    load_members(w);
    world_load(w, "pair", pair_config);
    run_pair(w->server, "pair");
    world_load(w, "two",
               "backend: \"identity\" input [ " TENSOR(
                   "INPUT0", "FP32", "-1") " ]\n"
                                           "output [ " TENSOR("OUTPUT0", "INT32", "-1") " ]\n");
    assert_false(is_ready(w->server, "pair"));
    wait_for_index(w->server, "inconsistent data type: TYPE_INT32 is inferred from model 'one'");
    world_load(w, "two",
               "backend: \"repeat\" model_transaction_policy { decoupled: true }\n"
               "input [ " TENSOR("INPUT0", "INT32", "-1") "," TENSOR(
                   "IN", "INT32", "-1") " ]\noutput [ " TENSOR("OUTPUT0", "INT32", "-1") " ]\n");
    wait_for_index(w->server, "model 'two' was loaded again and is now decoupled");
    world_load(w, "two", identity_config);
    run_pair(w->server, "pair");
}

static void test_polling_loads_members_first_and_follows_them(void **state) {
    repo r;
    (void)state;
    repo_make(&r);
    TRITONSERVER_Server *server =
        server_start(&r, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_POLL});
    repo_model(&r, "a", pair_config);
    repo_model(&r, "one", identity_config);
    TRITONSERVER_ErrorDelete(TRITONSERVER_ServerPollModelRepository(server));
    wait_for_index(server, "step[1] depends on model 'two', which is not ready");
    repo_model(&r, "two", identity_config);
    ok(TRITONSERVER_ServerPollModelRepository(server));
    run_pair(server, "a");
    repo_drop(&r, "two");
    ok(TRITONSERVER_ServerPollModelRepository(server));
    assert_false(is_ready(server, "a"));
    repo_model(&r, "two", identity_config);
    ok(TRITONSERVER_ServerPollModelRepository(server));
    run_pair(server, "a");
    server_end(server);
    repo_remove(&r);
}

static void test_requests_and_responses_outlive_the_ensemble(void **state) {
    world *w = *state;
    size_t size_bytes = 0;
    call c;
    world_load(w, "one", identity_config);
    world_load(w, "two", identity_config);
    world_load(w, "pair", pair_config);
    call_init(&c, w->server, "pair", -1);
    call_input(&c, "IN", TRITONSERVER_TYPE_INT32, two, 1, pair, sizeof pair);
    call_run(&c);
    world_unload(w, "pair");
    world_unload(w, "one");
    assert_memory_equal(call_output(&c, "OUT", &size_bytes), pair, sizeof pair);
    ok(TRITONSERVER_InferenceRequestCancel(c.request)); /* no effect: it is over */
    fails(TRITONSERVER_ServerInferAsync(w->server, c.request, NULL), TRITONSERVER_ERROR_NOT_FOUND,
          "'pair' has no available versions");
    call_deinit(&c);
}

/* ---- under load ---- */

typedef struct load {
    TRITONSERVER_Server *server;
    atomic_bool stop;
    atomic_uint done;
} load;

static void *send_requests(void *userp) {
    load *l = userp;
    call c;
    call_init(&c, l->server, "outer", -1);
    call_input(&c, "IN", TRITONSERVER_TYPE_INT32, two, 1, pair, sizeof pair);
    while (!atomic_load(&l->stop)) {
        size_t size_bytes = 0;
        call_run(&c);
        assert_memory_equal(call_output(&c, "OUT", &size_bytes), pair, sizeof pair);
        call_clear(&c);
        atomic_fetch_add(&l->done, 1);
    }
    call_deinit(&c);
    return NULL;
}

static void test_reloading_under_load_fails_no_request(void **state) {
    world *w = *state;
    enum { THREADS = 3, RELOADS = 30 };
    static const char *const names[] = {"one", "two", "pair", "outer"};
    pthread_t threads[THREADS];
    load l = {.server = w->server};
    world_load(w, "one", identity_config);
    world_load(w, "two", identity_config);
    world_load(w, "pair", pair_config);
    world_load(w, "outer", ENSEMBLE(NESTED("pair")));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, send_requests, &l), 0);
    for (int i = 0; i < RELOADS; i++) {
        char path[64];
        unsigned before = atomic_load(&l.done);
        while (atomic_load(&l.done) == before) /* requests run between the loads */
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        snprintf(path, sizeof path, "%s/1/file", names[i % 4]);
        repo_file(&w->r, path, i % 8 < 4 ? "a" : "bc"); /* the model is created again */
        ok(TRITONSERVER_ServerLoadModel(w->server, names[i % 4]));
    }
    atomic_store(&l.stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void test_accepted_requests_complete_when_the_server_stops(void **state) {
    enum { COUNT = 8 };
    static const char slow[] =
        "backend: \"identity\"\n"
        "input [ " TENSOR("INPUT0", "INT32", "-1") " ] output [ " TENSOR(
            "OUTPUT0", "INT32",
            "-1") " ]\nparameters { key: \"execute_delay_ms\" value { string_value: \"10\" } }\n";
    repo r;
    call calls[COUNT];
    (void)state;
    repo_make(&r);
    repo_model(&r, "one", slow);
    repo_model(&r, "two", slow);
    repo_model(&r, "pair", pair_config);
    repo_model(&r, "outer", ENSEMBLE(NESTED("pair")));
    TRITONSERVER_Server *server = server_start(&r, &(server_setup){0});
    for (int i = 0; i < COUNT; i++) {
        call_init(&calls[i], server, "outer", -1);
        call_input(&calls[i], "IN", TRITONSERVER_TYPE_INT32, two, 1, pair, sizeof pair);
        call_start(&calls[i]);
    }
    ok(TRITONSERVER_ServerStop(server));
    for (int i = 0; i < COUNT; i++) {
        size_t size_bytes = 0;
        call_wait(&calls[i]);
        assert_memory_equal(call_output(&calls[i], "OUT", &size_bytes), pair, sizeof pair);
        call_deinit(&calls[i]);
    }
    server_end(server);
    repo_remove(&r);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, world_close)
int main(void) {
    const struct CMUnitTest tests[] = {
        WORLD(test_loading_an_ensemble_loads_its_members),
        WORLD(test_a_member_that_fails_to_load_is_named),
        cmocka_unit_test(test_startup_loads_members_first),
        WORLD(test_ensembles_that_contain_each_other_are_rejected),
        WORLD(test_wrong_configurations_are_rejected),
        WORLD(test_an_ensemble_is_unavailable_without_a_member),
        WORLD(test_unloading_keeps_members_unless_dependents_are_unloaded),
        WORLD(test_a_member_that_does_not_fit_any_more_makes_it_unavailable),
        cmocka_unit_test(test_polling_loads_members_first_and_follows_them),
        WORLD(test_requests_and_responses_outlive_the_ensemble),
        WORLD(test_reloading_under_load_fails_no_request),
        cmocka_unit_test(test_accepted_requests_complete_when_the_server_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
