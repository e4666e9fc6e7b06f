/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Micro-kernels of elementary functions of floats, and conversions of 16-bit floats.
 *
 * Errors are in units in the last place of the exact result (ulp), for all floats, on all
 * instruction sets; tests/ops/test_math.c measures them. Infinities, NaN and zeros follow C's
 * Annex F. Subnormal results have an absolute error of 2^-149 times the bound.
 */
#ifndef KELP_CPU_KERNELS_MATH_MATH_KERNELS_H_
#define KELP_CPU_KERNELS_MATH_MATH_KERNELS_H_

#include <stdbool.h>
#include <stdint.h>

/* X(NAME, error in ulp) for each function. */
#define KELP_MATH_FUNCTIONS(X)                                                  \
    X(LOG, 2)                                                                   \
    X(SIN, 2)                                                                   \
    X(COS, 2)                                                                   \
    X(TAN, 4)                                                                   \
    X(ASIN, 4)                                                                  \
    X(ACOS, 4)                                                                  \
    X(ATAN, 3)                                                                  \
    X(SINH, 4)                                                                  \
    X(COSH, 4)                                                                  \
    X(ASINH, 4)                                                                 \
    X(ACOSH, 4)                                                                 \
    X(ATANH, 4)                                                                 \
    X(SOFTPLUS, 4)                                                              \
    X(MISH, 6)                                                                  \
    X(SOFTSIGN, 2)                                                              \
    X(RECIPROCAL, 1)                                                            \
    X(FLOOR, 0)                                                                 \
    X(CEIL, 0)                                                                  \
    X(ROUND, 0) /* ties to even */                                              \
    X(ABS, 0)                                                                   \
    X(NEG, 0)                                                                   \
    X(ELU, 4)          /* x < 0 ? a (e^x - 1) : x */                            \
    X(CELU, 6)         /* x > 0 ? x : a (e^(x / a) - 1), a > 0 */               \
    X(SELU, 5)         /* x > 0 ? b x : b a (e^x - 1) */                        \
    X(SWISH, 6)        /* x / (1 + e^(-a x)); times |a x| if that is above 1 */ \
    X(LEAKY_RELU, 1)   /* x < 0 ? a x : x */                                    \
    X(THRESHOLD, 0)    /* x > a ? x : 0 */                                      \
    X(HARD_SIGMOID, 2) /* a x + b, between 0 and 1; in ulp of 1 */

typedef enum kelp_math {
#define KELP_MATH_NAME(name, ulp) KELP_MATH_##name,
    KELP_MATH_FUNCTIONS(KELP_MATH_NAME)
#undef KELP_MATH_NAME
        KELP_MATH_COUNT
} kelp_math;

typedef struct kelp_math_kernels {
    /* y[i] = function(x[i]), i < count; a and b are its parameters. y may be x. */
    void (*fn[KELP_MATH_COUNT])(const float *x, float *y, int64_t count, float a, float b);
    /* y[i] = a[i * a_stride] ^ b[i * b_stride], i < count, with an error below 1 ulp. Strides are 0
     * or 1; y may be a or b. */
    void (*pow)(float *y, const float *a, const float *b, int64_t count, int a_stride,
                int b_stride);
    /* Truncates `count` floats to integers modulo 2^32. What int64 cannot hold becomes 0. */
    void (*to_i32)(const float *x, int32_t *y, int64_t count);
    /* y[i] = fmod(a[i * a_stride], b[i * b_stride]), i < count, without an error; with `floored`
     * the remainder has the sign of b, also a zero, and is NaN if b is 0. Strides are 0 or 1; y may
     * be a or b. */
    void (*fmod)(float *y, const float *a, const float *b, int64_t count, int a_stride,
                 int b_stride, bool floored);
    /* The same for integers: quotients rounded towards zero, and remainders. Both are 0 if b is 0;
     * the minimum divided by -1 is itself. */
    void (*divide_i32)(int32_t *y, const int32_t *a, const int32_t *b, int64_t count, int a_stride,
                       int b_stride);
    void (*remainder_i32)(int32_t *y, const int32_t *a, const int32_t *b, int64_t count,
                          int a_stride, int b_stride, bool floored);
    /* Convert `count` elements; rounded to nearest, ties to even. 16-bit data may have any address.
     */
    void (*from_f16)(const void *x, float *y, int64_t count);
    void (*to_f16)(const float *x, void *y, int64_t count);
    void (*from_bf16)(const void *x, float *y, int64_t count);
    void (*to_bf16)(const float *x, void *y, int64_t count);
} kelp_math_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_math_kernels *kelp_math_kernels_get(void);
/* Returns the table of instruction set `index` of kelp_cpu_features.f32; NULL if the CPU lacks it.
 * For tests. */
const kelp_math_kernels *kelp_math_kernels_at(int index);

#endif
