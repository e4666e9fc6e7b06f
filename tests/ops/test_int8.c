/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels of 8-bit integers for each instruction set of this CPU: results are equal to plain
 * sums. */
#include "cpu/kernels/int8/int8_kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t seed = 20;

static uint32_t next(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static void fill(void *to, size_t count) {
    for (size_t i = 0; i < count; i++)
        ((uint8_t *)to)[i] = (uint8_t)next();
}

/* Allocates exactly the size of the data, so that sanitizers detect reads after it. */
static void *room(size_t bytes) {
    void *memory = malloc(bytes > 0 ? bytes : 1);
    assert_non_null(memory);
    return memory;
}

static int64_t panels_of(int64_t n) {
    return (n + KELP_INT8_COLUMNS - 1) / KELP_INT8_COLUMNS;
}

static void check_product(const kelp_int8_kernels *loops, int64_t m, int64_t k, int64_t n,
                          int64_t lda) {
    int64_t panels = panels_of(n), depth = (k + 3) / 4 * 4, width = panels * KELP_INT8_COLUMNS;
    uint8_t *a = room((size_t)((m - 1) * lda + k)), *b = room((size_t)(k * n));
    int8_t *packed = room((size_t)(depth * width));
    int32_t *c = room((size_t)(m * width) * 4), *sums = calloc((size_t)width, 4);
    fill(a, (size_t)((m - 1) * lda + k));
    fill(b, (size_t)(k * n));
    /* pairs for which saturating instructions return wrong results */
    memset(a, 255, (size_t)(k < 8 ? k : 8));
    memset(b, 0x80, (size_t)(n < 40 ? n : 40));
    for (int64_t p = 0; p < panels; p++)
        loops->pack(b + p * KELP_INT8_COLUMNS, n, k,
                    n - p * KELP_INT8_COLUMNS < KELP_INT8_COLUMNS ? n - p * KELP_INT8_COLUMNS
                                                                  : KELP_INT8_COLUMNS,
                    0, packed + p * depth * KELP_INT8_COLUMNS, sums + p * KELP_INT8_COLUMNS);
    loops->gemm_block(&(kelp_int8_block){a, packed, c, lda, width, m, panels, k});
    for (int64_t j = 0; j < n; j++) {
        int32_t column = 0;
        for (int64_t p = 0; p < k; p++)
            column += (int8_t)b[p * n + j];
        assert_int_equal(sums[j], column);
        for (int64_t i = 0; i < m; i++) {
            int32_t sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += (int32_t)a[i * lda + p] * (int8_t)b[p * n + j];
            assert_int_equal(c[i * width + j], sum);
        }
    }
    free(a);
    free(b);
    free(packed);
    free(c);
    free(sums);
}

static void gemm_equals_plain_sums(void **state) {
    static const int64_t shapes[][3] = {{1, 1, 1},    {1, 7, 33},   {2, 16, 16},   {3, 5, 47},
                                        {12, 64, 32}, {13, 66, 31}, {25, 129, 50}, {7, 383, 96}};
    (void)state;
    for (int t = 0; kelp_int8_kernels_at(t) != NULL; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            check_product(kelp_int8_kernels_at(t), shapes[s][0], shapes[s][1], shapes[s][2],
                          shapes[s][1]);
            check_product(kelp_int8_kernels_at(t), shapes[s][0], shapes[s][1], shapes[s][2],
                          shapes[s][1] + 5);
        }
}

static void transpose_moves_and_flips_bytes(void **state) {
    (void)state;
    for (int t = 0; kelp_int8_kernels_at(t) != NULL; t++)
        for (int64_t rows = 1; rows < 50; rows += 7)
            for (int64_t columns = 1; columns < 70; columns += 5) {
                uint8_t *from = room((size_t)(rows * columns)),
                        *to = room((size_t)(rows * columns));
                fill(from, (size_t)(rows * columns));
                kelp_int8_kernels_at(t)->transpose(to, rows, from, columns, rows, columns, 0x80);
                for (int64_t i = 0; i < rows * columns; i++)
                    assert_int_equal(to[i % columns * rows + i / columns], from[i] ^ 0x80);
                free(from);
                free(to);
            }
}

#define COUNT 103

static void rows_of_sums_are_scaled_and_saturated(void **state) {
    int32_t sums[COUNT], balance[COUNT], zeros[COUNT], ints[COUNT];
    float scale[COUNT], bias[COUNT], addend[COUNT], first[COUNT], floats[COUNT];
    uint8_t bytes[COUNT];
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        sums[i] = (int32_t)(next() % 200000) - 100000;
        balance[i] = (int32_t)(next() % 2000) - 1000;
        zeros[i] = (int32_t)(next() % 256) - 128;
        scale[i] = (float)(next() % 1000) * 1e-6f;
        bias[i] = (float)(next() % 1000) * 0.01f - 5.0f;
        addend[i] = (float)(next() % 1000) * 0.01f - 5.0f;
    }
    for (int t = 0; kelp_int8_kernels_at(t) != NULL; t++) {
        kelp_int8_row r = {.sums = sums,
                           .count = COUNT,
                           .shift = 5,
                           .row_sum = 11,
                           .offset = balance,
                           .b_zero = zeros,
                           .scale = scale,
                           .bias = bias,
                           .addend = addend,
                           .step = 0.5f,
                           .low = -50.0f,
                           .high = 77.0f};
        kelp_int8_kernels_at(t)->to_ints(&r, ints);
        kelp_int8_kernels_at(t)->to_floats(&r, floats);
        kelp_int8_kernels_at(t)->to_bytes(&r, 50, bytes);
        for (int i = 0; i < COUNT; i++) {
            int32_t whole = sums[i] - 5 - balance[i] - 11 * zeros[i];
            volatile float product = (float)whole * scale[i];
            float y = rintf(product + bias[i]);
            y = y < -50.0f ? -50.0f : y > 77.0f ? 77.0f : y;
            assert_int_equal(ints[i], whole);
            assert_int_equal(bytes[i], (int)y + 50);
            assert_float_equal(floats[i], y * 0.5f + addend[i], 1e-5f);
        }
        if (t == 0)
            memcpy(first, floats, sizeof first);
        assert_memory_equal(first, floats, sizeof first);
    }
}

static void check_quantize(const kelp_int8_kernels *loops, kelp_dtype dtype, int stride,
                           int32_t low, int32_t high) {
    float x[COUNT], scale[COUNT], back[COUNT];
    int32_t zero[COUNT];
    uint8_t y[2 * COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = ((float)(next() % 20000) - 10000) * 0.05f;
        scale[i] = 0.1f + (float)(next() % 16) * 0.25f;
        zero[i] = low + (int32_t)(next() % (uint32_t)(high - low));
    }
    /* ties are rounded to even; values out of range are clamped */
    float edges[] = {0.5f, 1.5f, -0.5f, -2.5f, 1e30f, -1e30f, INFINITY, -INFINITY};
    memcpy(x, edges, sizeof edges);
    for (int i = 0; i < 4; i++)
        scale[i] = 1.0f;
    loops->quantize(&(kelp_quantize_run){x, y, COUNT, dtype, scale, zero, stride});
    loops->dequantize(&(kelp_dequantize_run){y, back, COUNT, dtype, scale, zero, stride});
    for (int i = 0; i < COUNT; i++) {
        int at = stride * i;
        double wanted = rint((double)(x[i] / scale[at])) + zero[at];
        wanted = wanted < low ? low : wanted > high ? high : wanted;
        int32_t found = dtype == KELP_U8    ? y[i]
                        : dtype == KELP_I8  ? ((int8_t *)y)[i]
                        : dtype == KELP_U16 ? ((uint16_t *)(void *)y)[i]
                                            : ((int16_t *)(void *)y)[i];
        assert_int_equal(found, (int)wanted);
        assert_true(back[i] == (float)(found - zero[at]) * scale[at]);
    }
}

static void quantization_rounds_and_clamps(void **state) {
    (void)state;
    for (int t = 0; kelp_int8_kernels_at(t) != NULL; t++)
        for (int stride = 0; stride < 2; stride++) {
            check_quantize(kelp_int8_kernels_at(t), KELP_U8, stride, 0, 255);
            check_quantize(kelp_int8_kernels_at(t), KELP_I8, stride, -128, 127);
            check_quantize(kelp_int8_kernels_at(t), KELP_U16, stride, 0, 65535);
            check_quantize(kelp_int8_kernels_at(t), KELP_I16, stride, -32768, 32767);
        }
}

static void ranges_sums_and_dots_equal_plain_loops(void **state) {
    float x[COUNT];
    int32_t sums[COUNT];
    uint8_t a[COUNT];
    int16_t w[COUNT];
    (void)state;
    for (int t = 0; kelp_int8_kernels_at(t) != NULL; t++) {
        float least = 0, most = 0;
        for (int i = 0; i < COUNT; i++)
            x[i] = (float)(next() % 1000) - 500;
        x[3] = NAN;
        x[17] = 501.5f;
        x[102] = -777.0f;
        kelp_int8_kernels_at(t)->range(x, COUNT, &least, &most);
        assert_true(least == -777.0f && most == 501.5f);
        fill(a, COUNT);
        for (int i = 0; i < COUNT; i++)
            w[i] = (int16_t)((int)(next() % 511) - 255);
        int64_t at[2] = {1, 0};
        kelp_int8_kernels_at(t)->taps(sums, a, at, 2, w, 1, COUNT - 1);
        for (int i = 0; i < COUNT - 1; i++)
            assert_int_equal(sums[i], a[i + 1] * w[i] + a[i] * w[i + 1]);
        int64_t nine[9] = {0, 1, 2, 10, 11, 12, 20, 21, 22};
        kelp_int8_kernels_at(t)->taps(sums, a, nine, 9, w, 2, COUNT - 22);
        for (int i = 0; i < COUNT - 22; i++) {
            int32_t wanted = 0;
            for (int k = 0; k < 9; k++)
                wanted += a[i + nine[k]] * w[i + 2 * k];
            assert_int_equal(sums[i], wanted);
        }
        int32_t total = 0, found;
        for (int i = 0; i < COUNT; i++)
            total += a[i];
        kelp_int8_kernels_at(t)->row_sums(a, COUNT, 1, COUNT, &found);
        assert_int_equal(found, total);
    }
}

/* Quotients at, just below and just above ties, which approximations must not round differently. */
static void ties_are_rounded_to_even(void **state) {
    static const float scales[] = {1.0f, 0.1f, 0.0234375f, 3.7e-5f, 12345.678f};
    float x[512];
    uint8_t y[512];
    (void)state;
    for (int t = 0; kelp_int8_kernels_at(t) != NULL; t++)
        for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
            int32_t zero = 100;
            for (int i = 0; i < 512; i++) {
                float tie = ((float)(i / 3) - 100.5f) * scales[s];
                x[i] = i % 3 == 0   ? tie
                       : i % 3 == 1 ? nextafterf(tie, INFINITY)
                                    : nextafterf(tie, -INFINITY);
            }
            kelp_int8_kernels_at(t)->quantize(
                &(kelp_quantize_run){x, y, 512, KELP_U8, &scales[s], &zero, 0});
            for (int i = 0; i < 512; i++) {
                float quotient = x[i] / scales[s];
                double wanted = rint((double)quotient) + zero;
                assert_int_equal(y[i], (int)(wanted < 0 ? 0 : wanted > 255 ? 255 : wanted));
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm_equals_plain_sums),
        cmocka_unit_test(transpose_moves_and_flips_bytes),
        cmocka_unit_test(rows_of_sums_are_scaled_and_saturated),
        cmocka_unit_test(quantization_rounds_and_clamps),
        cmocka_unit_test(ranges_sums_and_dots_equal_plain_loops),
        cmocka_unit_test(ties_are_rounded_to_even),
    };
    return cmocka_run_group_tests_name("int8", tests, NULL, NULL);
}
