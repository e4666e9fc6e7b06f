/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overhead of a session: a model of one Add of four floats, run by Kelp and by ONNX Runtime through
 * their C APIs on one thread. Everything that can be created once is created before the
 * measurement. The two are interleaved; the program prints medians and compares the results.
 *
 * usage: bench_session MODEL.onnx [ROUNDS]
 * tools/make_add.py writes the model: inputs a and b and output c, f32 of shape [4], c = a + b.
 * KELP_ONNXRUNTIME_LIBRARY names ONNX Runtime's library.
 */
#include "base/clock.h"
#include "onnxruntime/ort_api.h"

#include <dlfcn.h>
#include <kelp/engine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 20000

static const int64_t four = 4;
static float a[4] = {1, 2, 3, 4}, b[4] = {10, 20, 30, 40}, c[4];

static void must(kelp_status *status) {
    if (status == NULL)
        return;
    fprintf(stderr, "%s\n", kelp_status_message(status));
    exit(2);
}

/* ---- Kelp ---- */
typedef struct ours {
    kelp_context *context;
    size_t a, b, c;
    kelp_tensor ta, tb;
} ours;

static void open_ours(const char *path, ours *o) {
    kelp_runtime_options options = {.struct_size = sizeof options, .threads = 1};
    kelp_runtime *runtime = NULL;
    kelp_graph *graph = NULL;
    kelp_engine *engine = NULL;
    must(kelp_runtime_create(&options, &runtime));
    must(kelp_graph_load_file(kelp_allocator_system(), path, NULL, &graph));
    must(kelp_engine_create(runtime, graph, NULL, &engine));
    must(kelp_context_create(engine, &o->context));
    o->a = kelp_engine_find_input(engine, "a");
    o->b = kelp_engine_find_input(engine, "b");
    o->c = kelp_engine_find_output(engine, "c");
    must(kelp_tensor_init(&o->ta, KELP_F32, 1, &four, a));
    must(kelp_tensor_init(&o->tb, KELP_F32, 1, &four, b));
}

static double run_ours(ours *o) {
    uint64_t began = kelp_now_ns();
    for (int i = 0; i < CALLS; i++) {
        must(kelp_context_set_input(o->context, o->a, &o->ta));
        must(kelp_context_set_input(o->context, o->b, &o->tb));
        must(kelp_context_set_output(o->context, o->c, c, sizeof c));
        must(kelp_context_invoke(o->context));
    }
    return (double)(kelp_now_ns() - began) / CALLS;
}

/* ---- ONNX Runtime ---- */
typedef struct theirs {
    ort_api api;
    ort_object *session;
    ort_object *values[3];
} theirs;

static void ort_must(const ort_api *api, ort_object *status) {
    if (status == NULL)
        return;
    fprintf(stderr, "ONNX Runtime: %s\n", api->error_message(status));
    exit(2);
}

static void open_theirs(const char *path, theirs *t) {
    const char *file = getenv("KELP_ONNXRUNTIME_LIBRARY");
    void *library = dlopen(file ? file : "libonnxruntime.so.1", RTLD_NOW);
    void *symbol = library ? dlsym(library, "OrtGetApiBase") : NULL;
    if (symbol == NULL) {
        fprintf(stderr, "no ONNX Runtime: set KELP_ONNXRUNTIME_LIBRARY (%s)\n", dlerror());
        exit(2);
    }
    const ort_api_base *(*base)(void);
    memcpy(&base, &symbol, sizeof base);
    ort_api_copy(base()->get_api(ORT_API_VERSION_REQUIRED), &t->api);
    const ort_api *api = &t->api;
    ort_object *env = NULL, *options = NULL, *memory = NULL;
    ort_must(api, api->create_env(3, "bench", &env));
    ort_must(api, api->create_session_options(&options));
    ort_must(api, api->set_intra_op_threads(options, 1));
    ort_must(api, api->set_inter_op_threads(options, 1));
    ort_must(api, api->create_session(env, path, options, &t->session));
    ort_must(api, api->create_cpu_memory(0, 0, &memory));
    float *data[3] = {a, b, c};
    for (int i = 0; i < 3; i++)
        ort_must(api, api->create_tensor_over(memory, data[i], sizeof a, &four, 1, KELP_F32,
                                              &t->values[i]));
    printf("Kelp %s beside ONNX Runtime %s\n", kelp_version(), base()->version_string());
}

static double run_theirs(theirs *t) {
    static const char *const inputs[] = {"a", "b"}, *const outputs[] = {"c"};
    const ort_api *api = &t->api;
    uint64_t began = kelp_now_ns();
    for (int i = 0; i < CALLS; i++)
        ort_must(api, api->run(t->session, NULL, inputs, (const ort_object *const *)t->values, 2,
                               outputs, 1, &t->values[2]));
    return (double)(kelp_now_ns() - began) / CALLS;
}

static int by_value(const void *x, const void *y) {
    double d = *(const double *)x - *(const double *)y;
    return (d > 0) - (d < 0);
}

static void check(const char *who) {
    for (int i = 0; i < 4; i++) {
        if (c[i] != a[i] + b[i]) {
            fprintf(stderr, "%s returns %g instead of %g\n", who, (double)c[i],
                    (double)(a[i] + b[i]));
            exit(1);
        }
    }
    memset(c, 0, sizeof c);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: bench_session MODEL.onnx [ROUNDS]\n");
        return 2;
    }
    int rounds = argc > 2 && atoi(argv[2]) > 0 ? atoi(argv[2]) : 51;
    double *times[2] = {calloc((size_t)rounds, sizeof(double)),
                        calloc((size_t)rounds, sizeof(double))};
    ours kelp;
    theirs ort;
    open_ours(argv[1], &kelp);
    open_theirs(argv[1], &ort);
    for (int round = -1; round < rounds; round++) {
        double first = run_ours(&kelp);
        check("Kelp");
        double second = run_theirs(&ort);
        check("ONNX Runtime");
        if (round >= 0) {
            times[0][round] = first;
            times[1][round] = second;
        }
    }
    for (int i = 0; i < 2; i++)
        qsort(times[i], (size_t)rounds, sizeof(double), by_value);
    printf("| | median ns | least | most |\n|---|---|---|---|\n");
    static const char *const names[] = {"Kelp", "ONNX Runtime"};
    for (int i = 0; i < 2; i++)
        printf("| %s | %.0f | %.0f | %.0f |\n", names[i], times[i][rounds / 2], times[i][0],
               times[i][rounds - 1]);
    printf("ratio %.3f\n", times[0][rounds / 2] / times[1][rounds / 2]);
    free(times[0]);
    free(times[1]);
    return 0;
}
