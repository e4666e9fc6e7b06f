/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elementary functions of each instruction set, compared with the C library in double
 * precision, for floats of all signs, exponents and mantissas. The error bounds are those that
 * math_kernels.h documents.
 *
 * usage: test_ops_math [STEP]   tests every STEP-th float (2053); 1 tests all and takes an hour
 */
#include "cpu/kernels/cpu_features.h"
#include "cpu/kernels/math/math_kernels.h"
#include "base/checked.h"
#include "base/float16.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BLOCK 1024
static uint32_t step = 2053;

static const float first = 1.3f, second = 0.7f; /* parameters */
static double a_of(void) {
    return (double)first;
}
static double b_of(void) {
    return (double)second;
}

static double f_log(double x) {
    return log(x);
}
static double f_softplus(double x) {
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}
static double f_mish(double x) {
    return x * tanh(f_softplus(x));
}
static double f_softsign(double x) {
    return x / (1 + fabs(x));
}
static double f_reciprocal(double x) {
    return 1 / x;
}
static double f_neg(double x) {
    return -x;
}
static double f_elu(double x) {
    return x < 0 ? a_of() * expm1(x) : x;
}
static double f_celu(double x) {
    return x > 0 ? x : a_of() * expm1(x / a_of());
}
static double f_selu(double x) {
    return x > 0 ? b_of() * x : b_of() * a_of() * expm1(x);
}
static double f_swish(double x) {
    return x / (1 + exp(-a_of() * x));
}
static double f_leaky(double x) {
    return x < 0 ? a_of() * x : x;
}
static double f_threshold(double x) {
    return x > a_of() ? x : 0;
}
static double f_hard_sigmoid(double x) {
    double y = a_of() * x + b_of();
    return y < 0 ? 0 : y > 1 ? 1 : y;
}

static const struct {
    const char *name;
    double ulp;
} functions[KELP_MATH_COUNT] = {
#define ROW(name, ulp) [KELP_MATH_##name] = {#name, ulp},
    KELP_MATH_FUNCTIONS(ROW)};

static double (*const exact[KELP_MATH_COUNT])(double x) = {
    [KELP_MATH_LOG] = f_log,
    [KELP_MATH_SIN] = sin,
    [KELP_MATH_COS] = cos,
    [KELP_MATH_TAN] = tan,
    [KELP_MATH_ASIN] = asin,
    [KELP_MATH_ACOS] = acos,
    [KELP_MATH_ATAN] = atan,
    [KELP_MATH_SINH] = sinh,
    [KELP_MATH_COSH] = cosh,
    [KELP_MATH_ASINH] = asinh,
    [KELP_MATH_ACOSH] = acosh,
    [KELP_MATH_ATANH] = atanh,
    [KELP_MATH_SOFTPLUS] = f_softplus,
    [KELP_MATH_MISH] = f_mish,
    [KELP_MATH_SOFTSIGN] = f_softsign,
    [KELP_MATH_RECIPROCAL] = f_reciprocal,
    [KELP_MATH_FLOOR] = floor,
    [KELP_MATH_CEIL] = ceil,
    [KELP_MATH_ROUND] = rint,
    [KELP_MATH_ABS] = fabs,
    [KELP_MATH_NEG] = f_neg,
    [KELP_MATH_ELU] = f_elu,
    [KELP_MATH_CELU] = f_celu,
    [KELP_MATH_SELU] = f_selu,
    [KELP_MATH_SWISH] = f_swish,
    [KELP_MATH_LEAKY_RELU] = f_leaky,
    [KELP_MATH_THRESHOLD] = f_threshold,
    [KELP_MATH_HARD_SIGMOID] = f_hard_sigmoid};

/* Returns the error of y in ulp of the exact result; `least` is the smallest unit. */
static double error_of(float y, double wanted, double least) {
    if (isnan(wanted) || isnan(y))
        return isnan(wanted) && isnan(y) ? 0 : INFINITY;
    if (isinf(y) || fabs(wanted) > (double)FLT_MAX) {
        float rounded = (float)wanted; /* the last float before infinity is one unit away */
        double limit = isinf(rounded) ? copysign(0x1p128, wanted) : (double)rounded;
        double found = isinf(y) ? copysign(0x1p128, (double)y) : (double)y;
        return fabs(found - limit) / 0x1p104;
    }
    int exponent;
    frexp(wanted, &exponent);
    double unit = wanted == 0 ? 0x1p-149 : ldexp(1, exponent - 24);
    return fabs((double)y - wanted) / fmax(unit, fmax(least, 0x1p-149));
}

/* Fills a block with the floats whose bits are at, at + step, …; returns the number. */
static int64_t fill(uint64_t *at, float *x) {
    int64_t count = 0;
    for (; count < BLOCK && *at <= UINT32_MAX; *at += step) {
        uint32_t bits = (uint32_t)*at;
        if ((bits & 0x7fffffff) > 0x7f800000)
            bits |= 0x400000; /* a quiet NaN */
        memcpy(&x[count++], &bits, sizeof bits);
    }
    return count;
}

static void check_function(int isa, int function) {
    const kelp_math_kernels *kernels = kelp_math_kernels_at(isa);
    /* a sum of a product and a constant: the error is one of the constant */
    double least = function == KELP_MATH_HARD_SIGMOID ? 0x1p-24 : 0, worst = 0;
    float x[BLOCK], y[BLOCK], at_worst = 0;
    uint64_t at = 0;
    for (int64_t count; (count = fill(&at, x)) > 0;) {
        kernels->fn[function](x, y, count, first, second);
        for (int64_t i = 0; i < count; i++) {
            double error = error_of(y[i], exact[function]((double)x[i]), least);
            if (function == KELP_MATH_SWISH) /* the product a x is rounded before e^(a x) */
                error /= fmax(1, fabs(a_of() * (double)x[i]));
            if (error > worst) {
                worst = error;
                at_worst = x[i];
            }
        }
    }
    printf("isa %d %-12s %6.3f ulp at %a\n", isa, functions[function].name, worst,
           (double)at_worst);
    if (worst > functions[function].ulp + 0.5) /* of the last rounding */
        fail_msg("%s: the error is %g ulp at %a, the bound %g", functions[function].name, worst,
                 (double)at_worst, functions[function].ulp);
}

static void functions_are_within_their_bounds(void **state) {
    (void)state;
    for (int isa = 0; kelp_math_kernels_at(isa) != NULL; isa++)
        for (int function = 0; function < KELP_MATH_COUNT; function++)
            check_function(isa, function);
}

static void special_values_follow_annex_f(void **state) {
    static const float values[] = {0.0f,      -0.0f,      1,         -1,         INFINITY,
                                   -INFINITY, NAN,        0x1p-149f, -0x1p-149f, FLT_MAX,
                                   -FLT_MAX,  1.5707964f, 1e30f,     0.5f,       2.5f};
    (void)state;
    for (int isa = 0; kelp_math_kernels_at(isa) != NULL; isa++)
        for (int function = 0; function < KELP_MATH_COUNT; function++)
            for (size_t i = 0; i < KELP_COUNT(values); i++) {
                float y;
                double wanted = exact[function]((double)values[i]);
                kelp_math_kernels_at(isa)->fn[function](&values[i], &y, 1, first, second);
                if (!(error_of(y, wanted, 0) <= functions[function].ulp + 0.5))
                    fail_msg("isa %d %s(%a) is %a: expected %a", isa, functions[function].name,
                             (double)values[i], (double)y, wanted);
            }
}

static void powers_are_within_one_ulp(void **state) {
    static const float exponents[] = {0,        1,        -1,        2,   3,      0.5f,  -0.5f,
                                      1.0f / 3, 2.7f,     -7,        64,  127.5f, 1e-3f, 1e6f,
                                      -1e30f,   INFINITY, -INFINITY, NAN, 5,      -2.5f};
    (void)state;
    for (int isa = 0; kelp_math_kernels_at(isa) != NULL; isa++) {
        double worst = 0;
        for (size_t e = 0; e < KELP_COUNT(exponents); e++) {
            float x[BLOCK], y[BLOCK];
            uint64_t at = e;
            for (int64_t count; (count = fill(&at, x)) > 0; at += 19 * step) {
                kelp_math_kernels_at(isa)->pow(y, x, &exponents[e], count, 1, 0);
                for (int64_t i = 0; i < count; i++) {
                    double wanted = pow((double)x[i], (double)exponents[e]);
                    double error = error_of(y[i], wanted, 0);
                    worst = fmax(worst, error);
                    if (!(error <= 1))
                        fail_msg("isa %d: %a ^ %g is %a: expected %a", isa, (double)x[i],
                                 (double)exponents[e], (double)y[i], wanted);
                }
            }
        }
        printf("isa %d POW %6.3f ulp\n", isa, worst);
    }
}

static void halves_convert_as_base_does(void **state) {
    (void)state;
    for (int isa = 0; kelp_math_kernels_at(isa) != NULL; isa++) {
        const kelp_math_kernels *kernels = kelp_math_kernels_at(isa);
        static uint16_t halves[65536], back[65536];
        static float floats[65536];
        for (uint32_t i = 0; i < 65536; i++)
            halves[i] = (uint16_t)i;
        kernels->from_f16(halves, floats, 65536);
        kernels->to_f16(floats, back, 65536);
        for (uint32_t i = 0; i < 65536; i++) {
            float wanted = kelp_f16_to_f32((uint16_t)i);
            assert_true(isnan(wanted) ? isnan(floats[i]) : floats[i] == wanted);
            assert_true(isnan(wanted) ? (back[i] & 0x7fff) > 0x7c00 : back[i] == i);
        }
        kernels->from_bf16(halves, floats, 65536);
        for (uint32_t i = 0; i < 65536; i++)
            assert_true(isnan(kelp_bf16_to_f32((uint16_t)i)) ||
                        floats[i] == kelp_bf16_to_f32((uint16_t)i));
        float x[BLOCK];
        uint64_t at = 0;
        for (int64_t count; (count = fill(&at, x)) > 0;) {
            kernels->to_f16(x, back, count);
            kernels->to_bf16(x, back + BLOCK, count);
            for (int64_t i = 0; i < count; i++) {
                assert_true(isnan(x[i]) ? isnan(kelp_f16_to_f32(back[i]))
                                        : back[i] == kelp_f32_to_f16(x[i]));
                assert_true(isnan(x[i]) ? isnan(kelp_bf16_to_f32(back[BLOCK + i]))
                                        : back[BLOCK + i] == kelp_f32_to_bf16(x[i]));
            }
        }
    }
}

int main(int argc, char **argv) {
    if (argc > 1)
        step = (uint32_t)strtoul(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_within_their_bounds),
        cmocka_unit_test(special_values_follow_annex_f),
        cmocka_unit_test(powers_are_within_one_ulp),
        cmocka_unit_test(halves_convert_as_base_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
