/* SPDX-License-Identifier: Apache-2.0 */
/* A warm request allocates nothing, also after many requests existed at once. The program
 * replaces the C library's realloc, which the server's allocator uses, and counts the calls. */
#include "server/support.h"

#include <dlfcn.h>
#include <stdatomic.h>

enum { BURST = 200, ROUNDS = 300 };

static atomic_uint allocations;

__attribute__((visibility("default"))) void *realloc(void *pointer, size_t size) {
    typedef void *realloc_fn(void *, size_t);
    static _Atomic(realloc_fn *) real;
    realloc_fn *fn = atomic_load(&real);
    if (!fn) {
        *(void **)&fn = dlsym(RTLD_NEXT, "realloc");
        atomic_store(&real, fn);
    }
    atomic_fetch_add(&allocations, 1);
    return fn(pointer, size);
}

/* A request with all members that keep memory. */
static void fill(call *c, float *a, float *b) {
    call_addsub(c, a, b, 1);
    ok(TRITONSERVER_InferenceRequestSetId(c->request, "a name of its own"));
    ok(TRITONSERVER_InferenceRequestSetStringParameter(c->request, "some", "text"));
    ok(TRITONSERVER_InferenceRequestAddRequestedOutput(c->request, "OUTPUT0"));
}

/* Returns the allocations of consecutive requests. */
static unsigned one_by_one(TRITONSERVER_Server *server, const char *model) {
    static float a[16], b[16];
    unsigned before = atomic_load(&allocations);
    for (int i = 0; i < ROUNDS; i++) {
        call c;
        call_init(&c, server, model, -1);
        fill(&c, a, b);
        call_run(&c);
        call_deinit(&c);
    }
    return atomic_load(&allocations) - before;
}

static void test_no_allocation_after_a_burst(void **state) {
    static call calls[BURST];
    static float a[16], b[16];
    repo r;
    char config[2048];
    (void)state;
    repo_make(&r);
    snprintf(config, sizeof config,
             "%sparameters { key: \"kelp_execute_on\" value { string_value: \"caller\" } }\n",
             addsub_config);
    repo_model(&r, "addsub", config);
    TRITONSERVER_Server *server = server_start(&r, &(server_setup){0});
    one_by_one(server, "addsub");
    /* The response allocator of the test allocates once for each request. */
    assert_int_equal(one_by_one(server, "addsub"), ROUNDS);
    for (int i = 0; i < BURST; i++) {
        call_init(&calls[i], server, "addsub", -1);
        fill(&calls[i], a, b);
        call_run(&calls[i]);
    }
    for (int i = 0; i < BURST; i++)
        call_deinit(&calls[i]);
    assert_int_equal(one_by_one(server, "addsub"), ROUNDS);
    server_end(server);
    repo_remove(&r);
}

/* Two steps, in an ensemble of an ensemble. */
static void test_no_allocation_in_a_warm_ensemble(void **state) {
#define IO                                                               \
    "max_batch_size: 8\n"                                                \
    "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ 16 ] },\n"  \
    "        { name: \"INPUT1\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n" \
    "output [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 16 ] } ]\n"
#define STEP(model, first, out)                                                      \
    "step [ { model_name: \"" model "\" input_map { key: \"INPUT0\" value: \"" first \
    "\" } input_map { key: \"INPUT1\" value: \"INPUT1\" }\n"                         \
    "output_map { key: \"OUTPUT0\" value: \"" out "\" } } ]\n"
    repo r;
    (void)state;
    repo_make(&r);
    repo_model(&r, "addsub", addsub_config);
    repo_model(&r, "inner",
               IO "ensemble_scheduling { " STEP("addsub", "INPUT0", "x")
                   STEP("addsub", "x", "OUTPUT0") " }\n");
    repo_model(&r, "outer", IO "ensemble_scheduling { " STEP("inner", "INPUT0", "OUTPUT0") " }\n");
    TRITONSERVER_Server *server = server_start(&r, &(server_setup){0});
    one_by_one(server, "outer");
    assert_int_equal(one_by_one(server, "outer"), ROUNDS); /* the test's response allocator */
    server_end(server);
    repo_remove(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_allocation_after_a_burst),
        cmocka_unit_test(test_no_allocation_in_a_warm_ensemble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
