/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels of bfloat16 for each instruction set of this CPU, compared with sums of rounded
 * operands in double precision, for sizes that are not multiples of a vector. */
#include "cpu/kernels/gemm/gemm_bf16.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t seed = 16;

static float next(void) {
    seed = seed * 1664525u + 1013904223u;
    return (float)(int32_t)seed * 0x1p-31f;
}

static float *floats(int64_t count) {
    float *x = malloc((size_t)count * sizeof *x + 1);
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = next();
    return x;
}

/* Rounds to nearest, ties to even, by definition. */
static uint32_t rounded(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x)
        return bits >> 16 | 0x40;
    if (fabsf(x) < 0x1p-126f)
        return bits >> 16 & 0x8000;
    uint32_t rest = bits & 0xffff, down = bits >> 16;
    return rest > 0x8000 || (rest == 0x8000 && (down & 1) != 0) ? down + 1 : down;
}

static double value(uint32_t half) {
    uint32_t bits = half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

static void operands_are_rounded_to_nearest_even(void **state) {
    (void)state;
    static const uint32_t edges[] = {0x00000000, 0x80000000, 0x3f808000, 0x3f818000, 0x3f808001,
                                     0x3f807fff, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
                                     0x7fc00000, 0x7f800001, 0xffc12345, 0x00000001, 0x80012345,
                                     0x007fffff, 0x00800000, 0x00ffffff, 0xbf80ffff, 0x42f6e979};
    float x[67], odd[67];
    for (int i = 0; i < 67; i++) {
        memcpy(&x[i], &edges[(size_t)i % (sizeof edges / sizeof edges[0])], sizeof *x);
        odd[i] = next() * 1e20f;
    }
    for (int t = 0; kelp_bf16_kernels_at(t) != NULL; t++) {
        const kelp_bf16_kernels *table = kelp_bf16_kernels_at(t);
        for (int64_t count = 0; count <= 67; count++) {
            kelp_bf16_pair to[68];
            memset(to, 0xaa, sizeof to);
            table->narrow(x, count, to);
            for (int64_t i = 0; i < count; i++)
                assert_int_equal(to[i / 2] >> (i % 2 * 16) & 0xffff, rounded(x[i]));
            if (count % 2 == 1)
                assert_int_equal(to[count / 2] >> 16, 0);
            assert_int_equal(to[(count + 1) / 2], 0xaaaaaaaa);
            memset(to, 0xaa, sizeof to);
            table->pairs(x, odd, 0, 1, 1, count, to, 0);
            for (int64_t i = 0; i < count; i++)
                assert_int_equal(to[i], rounded(x[i]) | rounded(odd[i]) << 16);
            assert_int_equal(to[count], 0xaaaaaaaa);
        }
    }
}

/* Rows at the end of their memory: the address sanitizer detects accesses after it. */
static void pairs_support_all_strides(void **state) {
    (void)state;
    for (int t = 0; kelp_bf16_kernels_at(t) != NULL; t++)
        for (int64_t stride = 1; stride <= 3; stride++)
            for (int64_t count = 1; count <= 40; count += 3) {
                int64_t rows = 3, step = count * stride + 5;
                int64_t length = 2 * step + (count - 1) * stride + 1, to_step = count + 2;
                float *even = floats(length), *odd = floats(length);
                kelp_bf16_pair *to = malloc((size_t)(rows * to_step) * sizeof *to);
                memset(to, 0xaa, (size_t)(rows * to_step) * sizeof *to);
                kelp_bf16_kernels_at(t)->pairs(even, count % 2 == 0 ? odd : NULL, step, stride,
                                               rows, count, to, to_step);
                for (int64_t r = 0; r < rows; r++) {
                    for (int64_t i = 0; i < count; i++) {
                        int64_t at = r * step + i * stride;
                        assert_int_equal(to[r * to_step + i],
                                         rounded(even[at]) |
                                             (count % 2 == 0 ? rounded(odd[at]) << 16 : 0));
                    }
                    assert_int_equal(to[r * to_step + count], 0xaaaaaaaa);
                }
                free(to);
                free(odd);
                free(even);
            }
}

static kelp_bf16_pair *some_pairs(int64_t count) {
    kelp_bf16_pair *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = rounded(next()) | rounded(next()) << 16;
    return x;
}

static void close_to(double found, double expected, double size) {
    if (!(fabs(found - expected) <= 1e-6 * size + 1e-30))
        fail_msg("expected %.9g, found %.9g, of terms that sum to %.3g", expected, found, size);
}

static void check_product(const kelp_bf16_kernels *table, const kelp_bf16_block *g,
                          const float *before) {
    table->gemm_block(g);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = g->accumulate ? (double)before[i * g->ldc + j] : 0, size = fabs(sum);
            for (int64_t s = 0; s < g->steps; s++)
                for (int64_t k = 0; k < g->taps; k++) {
                    kelp_bf16_pair a = g->a[i * g->lda + s * g->taps + k];
                    kelp_bf16_pair b = g->b[j / 32 * g->panel + j % 32 + s * g->step +
                                            (g->taps > 1 ? g->tap[k] : 0)];
                    double low = value(a & 0xffff) * value(b & 0xffff);
                    double high = value(a >> 16) * value(b >> 16);
                    sum += low + high;
                    size += fabs(low) + fabs(high);
                }
            close_to((double)g->c[i * g->ldc + j], sum, size);
        }
    for (int64_t i = 0; i < g->m; i++) /* memory between the rows must not change */
        assert_true(g->c[i * g->ldc + g->n] == before[i * g->ldc + g->n]);
}

static void results_equal_sums_in_double(void **state) {
    (void)state;
    static const int64_t taps_of[] = {1, 2, 9}, tap[9] = {0, 3, 1, 70, 71, 72, 100, 9, 5};
    int round = 0;
    for (int t = 0; kelp_bf16_kernels_at(t) != NULL; t++)
        for (int64_t m = 1; m <= 27; m += m < 14 ? 1 : 12)
            for (int64_t n = 1; n <= 300; n = n * 3 / 2 + 7, round++) {
                int64_t taps = taps_of[round % 3], steps = round % 11, lda = steps * taps + 3;
                int64_t columns = (n + 31) / 32 * 32, ldc = n + 1 + round % 4;
                kelp_bf16_block g = {.lda = lda, .ldc = ldc, .m = m, .n = n, .steps = steps};
                g.taps = taps;
                g.tap = tap;
                g.panel = taps > 1 ? 32 : steps * 32 + 16;
                g.step = taps > 1 ? columns + 7 : 32;
                g.accumulate = round % 2 == 1;
                kelp_bf16_pair *a = some_pairs(m * lda);
                kelp_bf16_pair *b = some_pairs(columns / 32 * g.panel + (steps + 1) * g.step + 132);
                float *c = floats((m + 1) * ldc), *before = malloc((size_t)((m + 1) * ldc) * 4);
                memcpy(before, c, (size_t)((m + 1) * ldc) * sizeof *c);
                g.a = a;
                g.b = b;
                g.c = c;
                check_product(kelp_bf16_kernels_at(t), &g, before);
                free(before);
                free(c);
                free(b);
                free(a);
            }
}

/* One row of pixels; its memory and that of the results end with the last element. */
static void check_pixels(const kelp_bf16_kernels *table, kelp_bf16_pixels *g, bool half,
                         bool added) {
    int64_t length = (g->m - 1) * g->pixel + g->tap[g->taps - 1] + 2 * g->steps;
    int64_t room = (g->m - 1) * g->c_step + g->n;
    kelp_bf16_pair *b = some_pairs(g->taps * g->steps * 32);
    uint16_t *a = malloc((size_t)length * 2), *residual = malloc((size_t)room * 2);
    uint16_t *narrow = malloc((size_t)room * 2);
    float *c = floats(room), *bias = floats(g->n);
    for (int64_t i = 0; i < length; i++)
        a[i] = (uint16_t)rounded(next());
    for (int64_t i = 0; i < room; i++) {
        residual[i] = (uint16_t)rounded(next());
        narrow[i] = 0xaaaa;
        c[i] = -7;
    }
    g->a = a;
    g->b = b;
    g->bias = added ? bias : NULL;
    g->residual = added ? residual : NULL;
    g->residual_step = g->c_step;
    g->c = c;
    table->pixels(g);
    g->c = NULL;
    g->half = narrow;
    if (half)
        table->pixels(g);
    for (int64_t i = 0; i < room; i++) {
        int64_t row = i / g->c_step, j = i % g->c_step;
        if (j >= g->n) {
            assert_true(c[i] == -7);
            assert_int_equal(narrow[i], 0xaaaa);
            continue;
        }
        double sum = added ? (double)bias[j] + value(residual[i]) : 0, size = fabs(sum);
        for (int64_t t = 0; t < g->taps; t++)
            for (int64_t s = 0; s < 2 * g->steps; s++) {
                kelp_bf16_pair pair = b[(t * g->steps + s / 2) * 32 + j];
                double term = value(a[row * g->pixel + g->tap[t] + s]) *
                              value(s % 2 == 0 ? pair & 0xffff : pair >> 16);
                sum += term;
                size += fabs(term);
            }
        close_to((double)c[i], g->relu && sum < 0 ? 0 : sum, size + 1);
        if (half)
            assert_int_equal(narrow[i], rounded(c[i]));
    }
    free(bias);
    free(c);
    free(narrow);
    free(residual);
    free(a);
    free(b);
}

static void nhwc_pixels_are_multiplied_in_place(void **state) {
    (void)state;
    static const int64_t tap[4] = {0, 6, 22, 50};
    int round = 0;
    for (int t = 0; kelp_bf16_kernels_at(t) != NULL; t++)
        for (int64_t m = 1; m <= 27; m += m < 14 ? 1 : 12)
            for (int64_t n = 1; n <= 32; n += n % 3 + 1, round++) {
                kelp_bf16_pixels g = {.m = m, .n = n, .pixel = 2 * (1 + round % 9), .tap = tap};
                g.taps = 1 + round % 4;
                g.steps = 1 + round % 7;
                g.c_step = n + round % 3 * 2;
                g.relu = round % 2 == 0;
                check_pixels(kelp_bf16_kernels_at(t), &g, n % 2 == 0, round % 5 < 3);
            }
}

static void max_pool_finds_the_maximum_of_each_channel(void **state) {
    (void)state;
    static const int64_t tap[5] = {100, 0, 213, 50, 301};
    uint16_t x[301 + 150], to[151];
    for (int i = 0; i < 301 + 150; i++)
        x[i] = (uint16_t)rounded(next() * 8);
    for (int t = 0; kelp_bf16_kernels_at(t) != NULL; t++)
        for (int64_t n = 2; n <= 150; n += n % 3 * 2 + 2)
            for (int64_t taps = 0; taps <= 5; taps++) {
                uint16_t *from = malloc((size_t)(301 + n) * sizeof *from);
                memcpy(from, x, (size_t)(301 + n) * sizeof *from);
                to[n] = 0xaaaa;
                kelp_bf16_kernels_at(t)->max_pool(from, tap, taps, n, to);
                for (int64_t j = 0; j < n; j++) {
                    double expected = -INFINITY;
                    for (int64_t k = 0; k < taps; k++)
                        expected = fmax(expected, value(x[tap[k] + j]));
                    assert_true(value(to[j]) == expected);
                }
                assert_int_equal(to[n], 0xaaaa);
                free(from);
            }
}

static void columns_are_sums_along_the_depth(void **state) {
    (void)state;
    for (int t = 0; kelp_bf16_kernels_at(t) != NULL; t++)
        for (int64_t count = 0; count <= 70; count += 7)
            for (int64_t m = 1; m <= 9; m++) {
                int64_t lda = count + 3, ldc = 5;
                kelp_bf16_pair *a = some_pairs(m * lda), *b = some_pairs(count + 1);
                float *c = floats(m * ldc);
                kelp_bf16_kernels_at(t)->dots(a, lda, m, b, count, c, ldc);
                for (int64_t i = 0; i < m; i++) {
                    double sum = 0, size = 0;
                    for (int64_t p = 0; p < count; p++) {
                        double low = value(a[i * lda + p] & 0xffff) * value(b[p] & 0xffff);
                        double high = value(a[i * lda + p] >> 16) * value(b[p] >> 16);
                        sum += low + high;
                        size += fabs(low) + fabs(high);
                    }
                    close_to((double)c[i * ldc], sum, size);
                }
                free(c);
                free(b);
                free(a);
            }
}

/* A · B with bias, residual and activation; B plain, and transposed without residual. */
static void check_gemm(const kelp_bf16_kernels *table, int64_t m, int64_t n, int64_t k,
                       bool transposed) {
    float *a = floats(m * k), *b = floats(k * n), *bias = floats(n), *residual = floats(m * n);
    float *c = floats(m * n);
    size_t pairs = 0;
    assert_true(kelp_bf16_packed_size(k, n, &pairs));
    kelp_bf16_pair *panels = malloc(pairs * sizeof *panels + 1);
    kelp_bf16_pair *scratch = malloc((size_t)kelp_bf16_gemm_scratch(m, k) * sizeof *scratch + 1);
    if (transposed)
        kelp_bf16_pack_transposed(table, b, k, k, n, panels);
    else
        kelp_bf16_pack(table, b, n, k, n, panels);
    kelp_bf16_gemm_run_serial(&(kelp_bf16_gemm){.a = a,
                                                .panels = panels,
                                                .c = c,
                                                .m = m,
                                                .n = n,
                                                .k = k,
                                                .lda = k,
                                                .ldc = n,
                                                .bias = bias,
                                                .residual = transposed ? NULL : residual,
                                                .act = KELP_ACT_RELU,
                                                .scratch = scratch});
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = (double)bias[j] + (transposed ? 0 : (double)residual[i * n + j]), size = 2;
            for (int64_t p = 0; p < k; p++) {
                double term = value(rounded(a[i * k + p])) *
                              value(rounded(transposed ? b[j * k + p] : b[p * n + j]));
                sum += term;
                size += fabs(term);
            }
            close_to((double)c[i * n + j], sum > 0 ? sum : 0, size);
        }
    free(scratch);
    free(panels);
    free(c);
    free(residual);
    free(bias);
    free(b);
    free(a);
}

static void matrices_of_any_size_are_multiplied(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1},     {1, 600, 7},   {2, 33, 513},  {3, 200, 64},
                                       {13, 31, 17},  {97, 65, 9},   {100, 300, 4}, {5, 257, 1030},
                                       {200, 12, 33}, {24, 64, 512}, {7, 8, 0}};
    for (int t = 0; kelp_bf16_kernels_at(t) != NULL; t++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (int transposed = 0; transposed < 2; transposed++)
                check_gemm(kelp_bf16_kernels_at(t), sizes[i][0], sizes[i][1], sizes[i][2],
                           transposed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_are_rounded_to_nearest_even),
        cmocka_unit_test(pairs_support_all_strides),
        cmocka_unit_test(results_equal_sums_in_double),
        cmocka_unit_test(nhwc_pixels_are_multiplied_in_place),
        cmocka_unit_test(max_pool_finds_the_maximum_of_each_channel),
        cmocka_unit_test(columns_are_sums_along_the_depth),
        cmocka_unit_test(matrices_of_any_size_are_multiplied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
