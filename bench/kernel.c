/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time of a call of a kernel: an addition of four floats, called directly, through its signature
 * with all checks, and without a signature. The three are interleaved; the program prints medians
 * and checks the results.
 *
 * usage: bench_kernel FOLDER [ROUNDS]
 * FOLDER contains libtoolbox.so and libcustom_add_backend.so.
 */
#include "base/clock.h"

#include <kelp/kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 5000

static float a[4] = {1, 2, 3, 4}, b[4] = {10, 20, 30, 40}, y[4];
static int64_t four = 4;

static void must(kelp_status *status) {
    if (status == NULL)
        return;
    fprintf(stderr, "%s\n", kelp_status_message(status));
    exit(2);
}

static int by_value(const void *p, const void *q) {
    double d = *(const double *)p - *(const double *)q;
    return (d > 0) - (d < 0);
}

static void check(void) {
    if (y[0] != 11 || y[3] != 44) {
        fprintf(stderr, "wrong answer: %g\n", (double)y[3]);
        exit(1);
    }
    memset(y, 0, sizeof y);
}

typedef void (*bare_fn)(const kelp_kernel_context *, DLTensor *, DLTensor *, DLTensor *, uint32_t);

int main(int argc, char **argv) {
    int rounds = argc > 2 && atoi(argv[2]) > 0 ? atoi(argv[2]) : 1001;
    kelp_kernel_registry_options options = {
        .struct_size = sizeof options, .threads = 1, .search_path = argc > 1 ? argv[1] : "."};
    kelp_kernel_registry *registry = NULL;
    kelp_kernel_session *session = NULL;
    kelp_kernel_library *toolbox = NULL, *custom = NULL;
    const kelp_kernel *typed = NULL, *untyped = NULL;
    must(kelp_kernel_registry_create(&options, &registry));
    must(kelp_kernel_session_create(registry, NULL, &session));
    must(kelp_kernel_registry_open(registry, "toolbox", &toolbox));
    must(kelp_kernel_registry_open(registry, "custom_add", &custom));
    must(kelp_kernel_library_find(toolbox, "add", &typed));
    must(kelp_kernel_library_find(custom, "add", &untyped));
    bare_fn bare;
    void *address = kelp_kernel_library_function(custom, "add");
    memcpy(&bare, &address, sizeof bare);
    const kelp_kernel_context *context = kelp_kernel_session_context(session);
    DLTensor ta = {
        .data = a, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &four};
    DLTensor tb = ta, ty = ta;
    tb.data = b;
    ty.data = y;
    kelp_kernel_arg args[4] = {{.kind = KELP_ARG_TENSOR, .as.tensor = &ty},
                               {.kind = KELP_ARG_TENSOR, .as.tensor = &ta},
                               {.kind = KELP_ARG_TENSOR, .as.tensor = &tb},
                               {.kind = KELP_ARG_INT, .as.i = 4}};
    double *times[3];
    for (int i = 0; i < 3; i++)
        times[i] = calloc((size_t)rounds, sizeof(double));
    for (int round = 0; round < rounds; round++) {
        uint64_t t0 = kelp_now_ns();
        for (int i = 0; i < CALLS; i++)
            bare(context, &ty, &ta, &tb, 4);
        uint64_t t1 = kelp_now_ns();
        check();
        uint64_t t2 = kelp_now_ns();
        for (int i = 0; i < CALLS; i++)
            must(kelp_kernel_call(typed, session, args, 3));
        uint64_t t3 = kelp_now_ns();
        check();
        uint64_t t4 = kelp_now_ns();
        for (int i = 0; i < CALLS; i++)
            must(kelp_kernel_call(untyped, session, args, 4));
        uint64_t t5 = kelp_now_ns();
        check();
        times[0][round] = (double)(t1 - t0) / CALLS;
        times[1][round] = (double)(t3 - t2) / CALLS;
        times[2][round] = (double)(t5 - t4) / CALLS;
    }
    static const char *const names[] = {"the function", "with a signature, checked",
                                        "without a signature"};
    printf("| call | median ns | least | over the bare function |\n|---|---|---|---|\n");
    for (int i = 0; i < 3; i++)
        qsort(times[i], (size_t)rounds, sizeof(double), by_value);
    for (int i = 0; i < 3; i++)
        printf("| %s | %.1f | %.1f | %+.1f |\n", names[i], times[i][rounds / 2], times[i][0],
               times[i][rounds / 2] - times[0][rounds / 2]);
    for (int i = 0; i < 3; i++)
        free(times[i]);
    kelp_kernel_session_destroy(session);
    kelp_kernel_registry_release(registry);
    return 0;
}
