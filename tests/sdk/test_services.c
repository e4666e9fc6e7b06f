/* SPDX-License-Identifier: Apache-2.0 */
/* Services of the server that the SDK offers: timeouts and cancellation of calls to other models,
 * kinds of memory, metrics, batching strategies. */
#include "server/support.h"

#include <time.h>
#include <unistd.h>

#define IO                                                               \
    "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n" \
    "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n"
#define SERVICE "backend: \"sdkservice\"\n" IO "instance_group [ { kind: KIND_CPU count: 1 } ]\n"

static const int64_t one[] = {1};
static const int32_t value = 21;

static int set_up(void **state) {
    int result = world_open(state, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                                   .backends = KELP_TEST_BACKENDS});
    if (result == 0)
        world_load(*state, "sleeper", SERVICE);
    return result;
}

static void open_model(world *w, const char *name, call *c) {
    world_load(w, name, SERVICE);
    call_init(c, w->server, name, -1);
    call_input(c, "INPUT0", TRITONSERVER_TYPE_INT32, one, 1, &value, sizeof value);
}

/* Unloading fails, after a while, if a call was lost. */
static void close_model(world *w, const char *name, call *c) {
    call_deinit(c);
    world_unload(w, name);
}

static int32_t output(call *c) {
    size_t size_bytes = 0;
    const int32_t *out = call_output(c, "OUTPUT0", &size_bytes);
    assert_int_equal(size_bytes, sizeof *out);
    return *out;
}

/* ---- calls to other models ---- */

static void calls_end_at_their_timeout(void **state) {
    world *w = *state;
    static const char *const names[] = {"deadline", "itself", "callback_deadline"};
    for (int i = 0; i < 3; i++) {
        call c;
        open_model(w, names[i], &c);
        for (int round = 0; round < 3; round++) {
            call_run(&c);
            call_fails(&c, TRITONSERVER_ERROR_UNAVAILABLE,
                       i < 2 ? "within the timeout of 0.03 s" : "the callback has code");
            call_clear(&c);
        }
        close_model(w, names[i], &c);
    }
}

/* A cancelled request cancels its calls, whether or not a thread waits for them. */
static void a_cancelled_request_cancels_its_calls(void **state) {
    world *w = *state;
    static const char *const names[] = {"cancelled", "callback"};
    for (int i = 0; i < 2; i++) {
        call c;
        open_model(w, names[i], &c);
        call_start(&c);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        ok(TRITONSERVER_InferenceRequestCancel(c.request));
        call_wait(&c);
        call_fails(&c, TRITONSERVER_ERROR_CANCELLED, i ? "the callback" : "sleeper was cancelled");
        close_model(w, names[i], &c);
    }
}

static void a_call_with_a_timeout_can_be_destroyed_in_flight(void **state) {
    call c;
    open_model(*state, "abandon", &c);
    call_run(&c);
    assert_int_equal(output(&c), 2);
    close_model(*state, "abandon", &c);
}

/* Whatever comes first, each request has one response. */
static void timeouts_race_with_the_end_of_calls(void **state) {
    enum { CALLS = 8, ROUNDS = 25 };
    world *w = *state;
    call calls[CALLS];
    world_load(w, "quick",
               "backend: \"sdkservice\"\n" IO "instance_group [ { kind: KIND_CPU count: 4 } ]\n");
    world_load(w, "race",
               "backend: \"sdkservice\"\n" IO "instance_group [ { kind: KIND_CPU count: 4 } ]\n");
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CALLS; i++) {
            call_init(&calls[i], w->server, "race", -1);
            call_input(&calls[i], "INPUT0", TRITONSERVER_TYPE_INT32, one, 1, &value, sizeof value);
            call_start(&calls[i]);
        }
        ok(TRITONSERVER_InferenceRequestCancel(calls[round % CALLS].request));
        for (int i = 0; i < CALLS; i++) {
            call_wait(&calls[i]);
            assert_int_equal(calls[i].responses, 1);
            call_deinit(&calls[i]);
        }
    }
    world_unload(w, "race");
    world_unload(w, "quick");
}

static void a_call_has_the_timeout_of_its_request(void **state) {
    call c;
    open_model(*state, "checks", &c);
    ok(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(c.request, 1000000));
    call_run(&c);
    assert_int_equal(output(&c), 3);
    close_model(*state, "checks", &c);
}

/* ---- kinds of memory ---- */

/* Submits a request whose input is said to be in `in`, and whose output in `out`. */
static void run_in(call *c, TRITONSERVER_MemoryType in, TRITONSERVER_MemoryType out) {
    ok(TRITONSERVER_InferenceRequestRemoveAllInputData(c->request, "INPUT0"));
    ok(TRITONSERVER_InferenceRequestAppendInputData(c->request, "INPUT0", &value, sizeof value, in,
                                                    in == TRITONSERVER_MEMORY_GPU ? 5 : 0));
    c->memory = out;
    c->memory_id = out == TRITONSERVER_MEMORY_GPU ? 3 : 0;
    call_run(c);
}

static void tensors_name_the_device_of_their_memory(void **state) {
    static const struct {
        TRITONSERVER_MemoryType type;
        int32_t device;
    } kinds[] = {{TRITONSERVER_MEMORY_CPU, 1},
                 {TRITONSERVER_MEMORY_CPU_PINNED, 3},
                 {TRITONSERVER_MEMORY_GPU, 2}};
    call c;
    open_model(*state, "devices", &c);
    for (int in = 0; in < 3; in++) {
        for (int out = 0; out < 3; out++) {
            run_in(&c, kinds[in].type, kinds[out].type);
            assert_int_equal(output(&c), 10 * kinds[in].device + kinds[out].device);
            call_clear(&c);
        }
    }
    close_model(*state, "devices", &c);
}

static void memory_of_a_gpu_is_never_used_as_host_memory(void **state) {
    call c;
    open_model(*state, "host", &c);
    run_in(&c, TRITONSERVER_MEMORY_CPU_PINNED, TRITONSERVER_MEMORY_CPU_PINNED);
    assert_int_equal(output(&c), value);
    call_clear(&c);
    run_in(&c, TRITONSERVER_MEMORY_GPU, TRITONSERVER_MEMORY_CPU);
    call_fails(&c, TRITONSERVER_ERROR_UNSUPPORTED, "input 'INPUT0' is in the memory of GPU 5");
    call_clear(&c);
    run_in(&c, TRITONSERVER_MEMORY_CPU, TRITONSERVER_MEMORY_GPU);
    call_fails(&c, TRITONSERVER_ERROR_UNSUPPORTED, "output 'OUTPUT0' is in the memory of GPU 3");
    close_model(*state, "host", &c);
}

/* ---- metrics ---- */

static void metrics_share_families_and_values(void **state) {
    world *w = *state;
    call c;
    open_model(w, "metrics", &c);
    for (int i = 0; i < 2; i++) {
        call_run(&c);
        assert_int_equal(output(&c), 4);
        call_clear(&c);
    }
    char *page = metrics_of(w->server);
    assert_null(strstr(page, "sdk_checked_total")); /* destroyed */
    free(page);
    close_model(w, "metrics", &c);
}

/* ---- batching strategies ---- */

enum { REQUESTS = 6 };

#define BUDGET(name, more)                                               \
    "backend: \"" name "\"\nmax_batch_size: 64\ndynamic_batching { }\n"  \
    "input [ { name: \"INPUT\" data_type: TYPE_FP32 dims: [ -1 ] "       \
    "allow_ragged_batch: true } ]\n"                                     \
    "output [ { name: \"OUTPUT\" data_type: TYPE_FP32 dims: [ -1 ] },\n" \
    "         { name: \"BATCH\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n" \
    "instance_group [ { kind: KIND_CPU count: 1 } ]\n"                   \
    "parameters { key: \"execute_delay_ms\" value { string_value: \"50\" } }\n" more
#define LIMIT "parameters { key: \"max_batch_bytes\" value { string_value: \"64\" } }\n"

/* Submits a request that occupies the instance and then others, of 4, 8, 4, 12, 1 and 1 elements.
 * Returns the sizes of their batches. */
static void run_queue(world *w, const char *name, int32_t *out_batches) {
    static const float data[16];
    static const int64_t elements[REQUESTS] = {4, 8, 4, 12, 1, 1};
    call first, calls[REQUESTS];
    size_t size_bytes;
    call_init(&first, w->server, name, -1);
    call_input(&first, "INPUT", TRITONSERVER_TYPE_FP32, (int64_t[]){1, 1}, 2, data, sizeof *data);
    call_start(&first);
    nanosleep(&(struct timespec){.tv_nsec = 15000000}, NULL); /* the first one is executed */
    for (int i = 0; i < REQUESTS; i++) {
        call_init(&calls[i], w->server, name, -1);
        call_input(&calls[i], "INPUT", TRITONSERVER_TYPE_FP32, (int64_t[]){1, elements[i]}, 2, data,
                   (size_t)elements[i] * sizeof *data);
        call_start(&calls[i]);
    }
    for (int i = 0; i < REQUESTS; i++) {
        call_wait(&calls[i]);
        out_batches[i] = *(const int32_t *)call_output(&calls[i], "BATCH", &size_bytes);
        call_output(&calls[i], "OUTPUT", &size_bytes);
        assert_int_equal(size_bytes, (size_t)elements[i] * sizeof *data);
        call_deinit(&calls[i]);
    }
    call_wait(&first);
    call_deinit(&first);
}

/* Asserts the sizes of the batches, in one of several rounds: a slow machine may execute the first
 * requests before the last ones are submitted. */
static void assert_batches(world *w, const char *name, const int32_t *expected) {
    int32_t found[REQUESTS];
    for (int round = 0; round < 10; round++) {
        run_queue(w, name, found);
        if (memcmp(found, expected, sizeof found) == 0)
            return;
    }
    for (int i = 0; i < REQUESTS; i++)
        assert_int_equal(found[i], expected[i]);
}

/* The budget of 64 bytes ends the first batch after 4 + 8 + 4 elements of 4 bytes. */
static void a_backend_decides_which_requests_form_a_batch(void **state) {
    world *w = *state;
    for (int caller = 0; caller < 2; caller++) {
        const char *name = caller ? "budget_on_caller" : "budget";
        char config[2048];
        snprintf(config, sizeof config, "%s%s", BUDGET("budget", LIMIT),
                 caller ? "parameters { key: \"kelp_execute_on\" value { string_value: \"caller\" "
                          "} }\n"
                        : "");
        world_load(w, name, config);
        assert_batches(w, name, (int32_t[]){3, 3, 3, 3, 3, 3});
        world_unload(w, name);
    }
}

static void metrics_appear_on_the_page_of_the_server(void **state) {
    world *w = *state;
    int32_t batches[REQUESTS];
    world_load(w, "metered", BUDGET("budget", LIMIT));
    run_queue(w, "metered", batches);
    char *page = metrics_of(w->server);
    contains(page, "# TYPE budget_requests_total counter\n");
    contains(page, "budget_requests_total{model=\"metered\",version=\"1\"} 7\n");
    contains(page, "budget_max_batch_bytes{model=\"metered\",version=\"1\"} 64\n");
    contains(page, "budget_batch_bytes_bucket{model=\"metered\",version=\"1\",le=\"64\"} ");
    contains(page, "budget_batch_bytes_sum{model=\"metered\",version=\"1\"} 124\n");
    free(page);
    world_unload(w, "metered");
    page = metrics_of(w->server);
    assert_null(strstr(page, "budget_"));
    free(page);
}

static void link_library(const world *w, const char *library, const char *file) {
    char target[1024], path[1024];
    snprintf(target, sizeof target, "%s/%s", KELP_TEST_BACKENDS, library);
    snprintf(path, sizeof path, "%s/%s", w->r.path, file);
    assert_int_equal(symlink(target, path), 0);
}

/* batchstrategy.so replaces the strategy of the backend. */
static void a_library_of_the_model_decides(void **state) {
    world *w = *state;
    repo_model(&w->r, "linked", BUDGET("budget", LIMIT));
    link_library(w, "strategy/strategy.so", "linked/batchstrategy.so");
    ok(TRITONSERVER_ServerLoadModel(w->server, "linked"));
    assert_batches(w, "linked", (int32_t[]){2, 2, 2, 2, 2, 2});
    world_unload(w, "linked");

    repo_model(&w->r, "xlinked", BUDGET("budget", LIMIT));
    link_library(w, "strategy/strategy.so", "xlinked/1/batchstrategy.so");
    fails(TRITONSERVER_ServerLoadModel(w->server, "xlinked"), TRITONSERVER_ERROR_UNAVAILABLE,
          "no strategy for model x");
}

static void the_configuration_names_a_strategy(void **state) {
    world *w = *state;
    char config[2048];
#define STRATEGY \
    "parameters { key: \"TRITON_BATCH_STRATEGY_PATH\" value { string_value: \"%s%s\" } }\n"
    snprintf(config, sizeof config, BUDGET("budget", STRATEGY), KELP_TEST_BACKENDS,
             "/budget/libtriton_budget.so");
    world_load(w, "named", config);
    assert_batches(w, "named", (int32_t[]){6, 6, 6, 6, 6, 6}); /* its default budget is larger */
    world_unload(w, "named");

    snprintf(config, sizeof config, "%s" STRATEGY, SERVICE, KELP_TEST_BACKENDS,
             "/budget/libtriton_budget.so");
    repo_model(&w->r, "foreign", config);
    fails(TRITONSERVER_ServerLoadModel(w->server, "foreign"), TRITONSERVER_ERROR_INVALID_ARG,
          "the batching strategy of backend 'budget' is only for its models");
    snprintf(config, sizeof config, "%s" STRATEGY, SERVICE, "/nowhere", "/strategy.so");
    repo_model(&w->r, "missing", config);
    fails(TRITONSERVER_ServerLoadModel(w->server, "missing"), TRITONSERVER_ERROR_NOT_FOUND,
          "Batching library path not found: /nowhere/strategy.so");
    snprintf(config, sizeof config, "%s" STRATEGY, SERVICE, KELP_TEST_BACKENDS,
             "/sdkservice/libtriton_sdkservice.so");
    repo_model(&w->r, "without", config);
    fails(TRITONSERVER_ServerLoadModel(w->server, "without"), TRITONSERVER_ERROR_NOT_FOUND,
          "is not a batching strategy: it has no TRITONBACKEND_ModelBatcherInitialize");
}

static void incomplete_strategies_are_rejected(void **state) {
    world *w = *state;
    repo_model(&w->r, "part", "backend: \"sdkbadpart\"\n" IO);
    fails(TRITONSERVER_ServerLoadModel(w->server, "part"), TRITONSERVER_ERROR_INVALID_ARG,
          "has 1 of the 5 functions of a batching strategy");
    repo_model(&w->r, "macro", "backend: \"sdkbadmacro\"\n" IO);
    fails(TRITONSERVER_ServerLoadModel(w->server, "macro"), TRITONSERVER_ERROR_INVALID_ARG,
          "KELP_TRITON_BACKEND_WITH_BATCHING and a definition with batch_include must be used "
          "together");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_end_at_their_timeout),
        cmocka_unit_test(a_cancelled_request_cancels_its_calls),
        cmocka_unit_test(a_call_with_a_timeout_can_be_destroyed_in_flight),
        cmocka_unit_test(timeouts_race_with_the_end_of_calls),
        cmocka_unit_test(a_call_has_the_timeout_of_its_request),
        cmocka_unit_test(tensors_name_the_device_of_their_memory),
        cmocka_unit_test(memory_of_a_gpu_is_never_used_as_host_memory),
        cmocka_unit_test(metrics_share_families_and_values),
        cmocka_unit_test(a_backend_decides_which_requests_form_a_batch),
        cmocka_unit_test(metrics_appear_on_the_page_of_the_server),
        cmocka_unit_test(a_library_of_the_model_decides),
        cmocka_unit_test(the_configuration_names_a_strategy),
        cmocka_unit_test(incomplete_strategies_are_rejected),
    };
    return cmocka_run_group_tests(tests, set_up, world_close);
}
