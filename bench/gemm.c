/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f32 matrix products of Kelp and of libxsmm on shapes of inference, on one thread, with weights
 * packed beforehand. The libraries are interleaved; the program prints medians and compares the
 * results.
 *
 * usage: bench_gemm [ROUNDS]
 */
#include "base/clock.h"
#include "cpu/kernels/gemm/gemm.h"

#include <libxsmm.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define PANEL 64

typedef struct shape {
    int64_t m, k, n;
} shape;

static const shape shapes[] = {{1, 384, 384},    {4, 384, 1536},    {8, 768, 768},
                               {16, 384, 384},   {16, 1536, 384},   {128, 384, 384},
                               {128, 384, 1536}, {1024, 384, 1536}, {512, 512, 512},
                               {196, 2304, 256}, {49, 4608, 512},   {3136, 576, 64}};

static float *floats(int64_t count, unsigned seed) {
    float *data = aligned_alloc(64, (size_t)(count + 64) / 16 * 64);
    if (data == NULL)
        exit(2);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1103515245u + 12345u;
        data[i] = (float)(seed >> 16 & 0x7fff) / 16384.f - 1.f;
    }
    return data;
}

/* Panels of 64 columns, each row by row. */
static float *pack_for_xsmm(const float *b, int64_t k, int64_t n) {
    float *packed = floats((n + PANEL) * k, 0);
    for (int64_t column = 0; column < n; column += PANEL) {
        int64_t width = n - column < PANEL ? n - column : PANEL;
        for (int64_t row = 0; row < k; row++)
            memcpy(packed + column * k + row * width, b + row * n + column,
                   (size_t)width * sizeof *b);
    }
    return packed;
}

/* Rows in blocks, so that a block of A stays in the second cache while the panels go by. */
static void run_xsmm(const shape *s, const float *a, const float *packed, float *c) {
    int lda = (int)s->k, ldc = (int)s->n, flags = LIBXSMM_GEMM_FLAG_NONE;
    float one = 1, zero = 0;
    for (int64_t row = 0; row < s->m; row += 64) {
        int rows = (int)(s->m - row < 64 ? s->m - row : 64);
        for (int64_t column = 0; column < s->n; column += PANEL) {
            int width = (int)(s->n - column < PANEL ? s->n - column : PANEL);
            libxsmm_smmfunction kernel = libxsmm_smmdispatch(width, rows, (int)s->k, &width, &lda,
                                                             &ldc, &one, &zero, &flags, NULL);
            kernel(packed + column * s->k, a + row * s->k, c + row * s->n + column);
        }
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void compare(const shape *s, int rounds) {
    const kelp_gemm_kernels *kernels = kelp_gemm_kernels_get();
    float *a = floats(s->m * s->k, 1), *b = floats(s->k * s->n, 2),
          *xsmm = pack_for_xsmm(b, s->k, s->n);
    float *ours = floats(s->m * s->n, 3), *theirs = floats(s->m * s->n, 4);
    size_t packed_size = 0;
    if (!kelp_gemm_packed_size(kernels, s->k, s->n, &packed_size))
        exit(2);
    float *packed = floats((int64_t)packed_size, 0);
    kelp_gemm_pack(kernels, b, s->n, s->k, s->n, packed);
    kelp_gemm job = {.a = a,
                     .b = b,
                     .c = ours,
                     .m = s->m,
                     .n = s->n,
                     .k = s->k,
                     .lda = s->k,
                     .ldb = s->n,
                     .ldc = s->n,
                     .packed = packed};
    double *times[2] = {calloc((size_t)rounds, sizeof(double)),
                        calloc((size_t)rounds, sizeof(double))};
    double flop = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    int repeat = (int)(2e8 / flop) + 1;
    for (int round = -1; round < rounds; round++) {
        uint64_t began = kelp_now_ns();
        for (int i = 0; i < repeat; i++)
            kelp_gemm_run_serial(kernels, &job);
        uint64_t middle = kelp_now_ns();
        for (int i = 0; i < repeat; i++)
            run_xsmm(s, a, xsmm, theirs);
        uint64_t end = kelp_now_ns();
        if (round >= 0) {
            times[0][round] = (double)(middle - began) / repeat;
            times[1][round] = (double)(end - middle) / repeat;
        }
    }
    for (int64_t i = 0; i < s->m * s->n; i++) {
        if (fabsf(ours[i] - theirs[i]) > 1e-3f) {
            printf("results differ at %lld: %g, %g\n", (long long)i, (double)ours[i],
                   (double)theirs[i]);
            exit(1);
        }
    }
    for (int i = 0; i < 2; i++)
        qsort(times[i], (size_t)rounds, sizeof(double), by_value);
    double kelp = times[0][rounds / 2], peer = times[1][rounds / 2];
    printf("| %lldx%lldx%lld | %.1f | %.1f | %.1f | %.1f | %.2f |\n", (long long)s->m,
           (long long)s->k, (long long)s->n, kelp / 1e3, flop / kelp, peer / 1e3, flop / peer,
           kelp / peer);
    free(a), free(b), free(xsmm), free(ours), free(theirs), free(packed);
    free(times[0]), free(times[1]);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 21;
    if (rounds < 1)
        rounds = 1;
    libxsmm_init();
    printf("| m x k x n | kelp us | GF/s | libxsmm us | GF/s | kelp / libxsmm |\n"
           "|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < KELP_COUNT(shapes); i++)
        compare(&shapes[i], rounds);
    libxsmm_finalize();
    return 0;
}
