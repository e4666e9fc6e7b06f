/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation of the examples and the SDK fails once, while a model is loaded and while a
 * request is executed: loading returns an error, or the client gets a final response and the next
 * request succeeds.
 */
#include "server/support.h"

#include <dlfcn.h>
#include <stdatomic.h>

#define PAIR                                                           \
    "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ 4 ] },\n" \
    "        { name: \"INPUT1\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n"

typedef struct example {
    const char *backend, *config;
} example;

static const example examples[] = {
    {"oom_identity", "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n"
                     "output [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n"
                     "parameters { key: \"execute_delay_ms\" value { string_value: \"0\" } }\n"},
    {"oom_addsub", PAIR "output [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 4 ] },\n"
                        "         { name: \"OUTPUT1\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n"},
    {"oom_repeat", "model_transaction_policy { decoupled: true }\n"
                   "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n"
                   "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ 1 ] },\n"
                   "         { name: \"IDX\" data_type: TYPE_UINT32 dims: [ 1 ] } ]\n"},
    {"oom_accumulator", "input [ { name: \"INPUT\" data_type: TYPE_FP32 dims: [ 1 ] } ]\n"
                        "output [ { name: \"OUTPUT\" data_type: TYPE_FP32 dims: [ 1 ] } ]\n"},
    {"oom_budget", "max_batch_size: 8\ndynamic_batching { }\n"
                   "input [ { name: \"INPUT\" data_type: TYPE_FP32 dims: [ 1 ] } ]\n"
                   "output [ { name: \"OUTPUT\" data_type: TYPE_FP32 dims: [ 1 ] },\n"
                   "         { name: \"BATCH\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n"},
    {"oom_pipeline",
     PAIR "output [ { name: \"OUTPUT\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n"
          "parameters { key: \"sum_model\" value { string_value: \"plain\" } }\n"
          "parameters { key: \"difference_model\" value { string_value: \"plain\" } }\n"},
};
enum { EXAMPLES = sizeof examples / sizeof examples[0] };

/* Returns the counter of a loaded library. */
static atomic_long *counter_of(const example *e) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s/libtriton_%s.so", KELP_TEST_BACKENDS, e->backend,
             e->backend);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    atomic_long *counter = dlsym(library, "sdk_test_allocations_left");
    assert_non_null(counter);
    return counter; /* the server keeps the library loaded */
}

static void fill_request(call *c, const char *backend) {
    static const float values[4] = {4, 3, 2, 1};
    static const int32_t numbers[2] = {1, 2};
    if (strstr(backend, "repeat")) {
        call_input(c, "IN", TRITONSERVER_TYPE_INT32, (int64_t[]){2}, 1, numbers, sizeof numbers);
    } else if (strstr(backend, "accumulator")) {
        ok(TRITONSERVER_InferenceRequestSetCorrelationId(c->request, 1));
        ok(TRITONSERVER_InferenceRequestSetFlags(c->request,
                                                 TRITONSERVER_REQUEST_FLAG_SEQUENCE_END));
        call_input(c, "INPUT", TRITONSERVER_TYPE_FP32, (int64_t[]){1}, 1, values, 4);
    } else if (strstr(backend, "budget")) {
        call_input(c, "INPUT", TRITONSERVER_TYPE_FP32, (int64_t[]){1, 1}, 2, values, 4);
    } else {
        for (int i = 0; i < (strstr(backend, "identity") ? 1 : 2); i++) {
            const char *name = i ? "INPUT1" : "INPUT0";
            ok(TRITONSERVER_InferenceRequestAddInput(c->request, name, TRITONSERVER_TYPE_FP32,
                                                     (int64_t[]){4}, 1));
            /* Two pieces, so that they must be joined. */
            for (int half = 0; half < 2; half++)
                ok(TRITONSERVER_InferenceRequestAppendInputData(c->request, name, values + 2 * half,
                                                                8, TRITONSERVER_MEMORY_CPU, 0));
        }
    }
}

/* Runs the request until all of its allocations have failed once. */
static void fail_each_of_a_request(TRITONSERVER_Server *server, const example *e,
                                   atomic_long *counter) {
    for (long n = 0; n < 1000; n++) {
        call c;
        call_init(&c, server, e->backend, -1);
        fill_request(&c, e->backend);
        atomic_store(counter, n);
        call_run(&c);
        bool failed = atomic_exchange(counter, -1) < 0;
        if (!failed)
            ok(c.response ? TRITONSERVER_InferenceResponseError(c.response) : NULL);
        call_deinit(&c);
        if (!failed)
            return;
    }
    fail_msg("%s: no end of allocations", e->backend);
}

static void every_allocation_may_fail(void **state) {
    repo r;
    (void)state;
    repo_make(&r);
    TRITONSERVER_Server *server =
        server_start(&r, &(server_setup){.mode = TRITONSERVER_MODEL_CONTROL_EXPLICIT,
                                         .backends = KELP_TEST_BACKENDS});
    repo_model(&r, "plain",
               "backend: \"oom_plain\"\n" PAIR
               "output [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 4 ] },\n"
               "         { name: \"OUTPUT1\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n");
    ok(TRITONSERVER_ServerLoadModel(server, "plain"));
    for (int i = 0; i < EXAMPLES; i++) {
        const example *e = &examples[i];
        char config[2048];
        atomic_long *counter = counter_of(e);
        snprintf(config, sizeof config,
                 "backend: \"%s\"\n%sinstance_group [ { kind: KIND_CPU count: 1 } ]\n", e->backend,
                 e->config);
        repo_model(&r, e->backend, config);
        long n = 0;
        for (bool failed = true; failed && n < 1000; n++) {
            atomic_store(counter, n);
            TRITONSERVER_Error *error = TRITONSERVER_ServerLoadModel(server, e->backend);
            failed = atomic_exchange(counter, -1) < 0;
            if (error)
                contains(TRITONSERVER_ErrorMessage(error), "out of memory");
            assert_true(failed || !error);
            TRITONSERVER_ErrorDelete(error);
        }
        assert_in_range(n, 4, 999);
        fail_each_of_a_request(server, e, counter);
    }
    server_end(server);
    repo_remove(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
