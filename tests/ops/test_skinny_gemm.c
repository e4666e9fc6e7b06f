/* SPDX-License-Identifier: Apache-2.0 */
/* Skinny GEMMs of each instruction set, compared with sums in double precision. Results are
 * bitwise the same for packed and plain matrices, for any alignment and any number of threads. */
#include "base/alloc.h"
#include "runtime/opset/env.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/kernels/cpu_features.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t seed = 6;

static float *floats(int64_t count) {
    float *x = malloc((size_t)count * sizeof *x + 1);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)seed * 0x1p-31f;
    }
    return x;
}

static void close_to_sums(const kelp_gemm *g, const float *b) {
    const float *a = g->a;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j += j % 7 + 1) {
            double sum = (double)g->bias[j] + (double)g->residual[i * g->ldc + j], size = 2;
            for (int64_t p = 0; p < g->k; p++) {
                double term = (double)a[i * g->lda + p] * (double)b[p * g->n + j];
                sum += term;
                size += fabs(term);
            }
            assert_true(fabs((double)g->c[i * g->ldc + j] - (sum > 0 ? sum : 0)) <= size * 1e-6);
        }
}

static void check(kelp_pool *const *pools, int64_t m, int64_t k, int64_t n) {
    const kelp_gemm_kernels *kernels = kelp_gemm_kernels_get();
    float *a = floats(m * k), *b = floats(k * n), *bias = floats(n), *residual = floats(m * n);
    float *c = floats(m * n), *truth = floats(m * n), *scratch;
    size_t size = (size_t)(k * n) * sizeof *b, packed;
    const kelp_gemm_shape shape = {.m = m, .n = n, .k = k, .count = 1};
    const kelp_gemm_algorithm *skinny = kelp_gemm_choose(&shape);
    assert_string_equal(skinny->name, "skinny_gemm");
    scratch = floats(skinny->scratch_floats(&shape));
    assert_true(kelp_gemm_packed_size(kernels, k, n, &packed));
    float *panels = malloc(packed * sizeof *panels);
    char *shifted = malloc(size + 1);
    assert_true(panels != NULL && shifted != NULL);
    kelp_gemm_pack(kernels, b, n, k, n, panels);
    memcpy(shifted + 1, b, size);
    kelp_gemm job = {.a = a,
                     .m = m,
                     .n = n,
                     .k = k,
                     .lda = k,
                     .ldb = n,
                     .ldc = n,
                     .bias = bias,
                     .residual = residual,
                     .act = KELP_ACT_RELU,
                     .scratch = scratch};
    for (int way = 0; way < 6; way++) {
        kelp_op_env env = {.allocator = kelp_allocator_system(), .pool = pools[way % 3]};
        job.b = way == 2 ? (const void *)(shifted + 1) : b;
        job.packed = way >= 3 ? panels : NULL;
        job.c = way == 0 ? truth : c;
        skinny->run(&env, &job, 1);
        if (way == 0)
            close_to_sums(&job, b);
        else
            assert_memory_equal(c, truth, (size_t)(m * n) * sizeof *c);
    }
    free(shifted);
    free(panels);
    free(scratch);
    free(truth);
    free(c);
    free(residual);
    free(bias);
    free(b);
    free(a);
}

static void skinny_gemms_add_in_one_order(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {
        {1, 576, 192}, {1, 576, 1536}, {2, 1536, 577}, {3, 71, 1031},  {4, 1030, 65},
        {1, 64, 1024}, {1, 67, 20001}, {4, 133, 8193}, {2, 999, 1000}, {3, 129, 8191}};
    kelp_pool *pools[3] = {NULL, NULL, NULL};
    assert_null(kelp_pool_create(kelp_allocator_system(), 2, &pools[1]));
    assert_null(kelp_pool_create(kelp_allocator_system(), 5, &pools[2]));
    for (int isa = KELP_ISA_PORTABLE; isa <= KELP_ISA_BEST; isa++) {
        kelp_cpu_isa_limit((kelp_cpu_isa)isa);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            check(pools, sizes[i][0], sizes[i][1], sizes[i][2]);
    }
    kelp_cpu_isa_limit(KELP_ISA_BEST);
    kelp_pool_destroy(pools[1]);
    kelp_pool_destroy(pools[2]);
}

static void small_and_tall_gemms_are_not_skinny(void **state) {
    (void)state;
    assert_false(kelp_gemm_is_skinny(0, 576, 1536));
    assert_false(kelp_gemm_is_skinny(5, 576, 1536));
    assert_false(kelp_gemm_is_skinny(1, 63, 100000));
    assert_false(kelp_gemm_is_skinny(1, 100000, 63));
    assert_false(kelp_gemm_is_skinny(1, 128, 128));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skinny_gemms_add_in_one_order),
        cmocka_unit_test(small_and_tall_gemms_are_not_skinny),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
