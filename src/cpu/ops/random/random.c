/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RandomUniform, RandomNormal, RandomUniformLike, RandomNormalLike, Bernoulli, Multinomial. One
 * thread draws the values in row-major order, so that they depend on the seed only. Without a seed,
 * every run has other values. Source: ONNX operator specification, RandomUniform-22,
 * RandomNormal-22, Bernoulli-22, Multinomial-22.
 */
#include "base/assert.h"
#include "cpu/ops/random/draw.h"
#include "tensor/real.h"
#include "cpu/ops/kernel.h"

#include <math.h>

/* ---- RandomUniform, RandomNormal ---- */
static kelp_status *random_reshape(const void *state, kelp_op_args *args) {
    const int64_t *listed = NULL;
    (void)state;
    size_t rank = kelp_node_attr_i64s(args->node, "shape", &listed);
    kelp_dtype dtype = kelp_ops_attr_dtype(args->node, "dtype", KELP_F32);
    KELP_TRY(kelp_ops_check(args, 0));
    if (!kelp_ops_is_float(dtype))
        return kelp_ops_bad_type(args, dtype);
    if (rank > KELP_MAX_RANK)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator '%s': attribute 'shape' has too many axes: expected at most "
                          "%d, found %zu",
                          kelp_node_op_type(args->node), KELP_MAX_RANK, rank);
    return kelp_ops_set(args, 0, dtype, (int32_t)rank, listed);
}

static kelp_status *random_like_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    kelp_dtype dtype = kelp_ops_attr_dtype(args->node, "dtype", (int64_t)x->dtype);
    if (!kelp_ops_is_float(dtype))
        return kelp_ops_bad_type(args, dtype);
    return kelp_ops_set(args, 0, dtype, x->rank, x->shape);
}

/* Numbers that are drawn at a time. */
#define BLOCK 256

/* Stores values * scale + shift from element `at` on, with each operation rounded to the type of
 * the output. */
static void put_scaled(kelp_tensor *y, int64_t at, const double *values, int64_t count,
                       double scale, double shift) {
    kelp_dtype t = y->dtype;
    float factor = kelp_real_round(t, (float)scale), summand = kelp_real_round(t, (float)shift);
    for (int64_t i = 0; i < count && t == KELP_F64; i++)
        ((double *)y->data)[at + i] = values[i] * scale + shift;
    for (int64_t i = 0; i < count && t == KELP_F32; i++)
        ((float *)y->data)[at + i] = (float)values[i] * factor + summand;
    for (int64_t i = 0; i < count && (t == KELP_F16 || t == KELP_BF16); i++) {
        float first = kelp_real_round(t, kelp_f64_to_f32_odd(values[i]));
        float sum = kelp_real_round(t, first * factor) + summand;
        kelp_tensor_store_f32(y, at + i, 1, &sum);
    }
}

static kelp_status *fill(kelp_op_args *args, bool normal) {
    kelp_draw draw;
    kelp_tensor *y = args->outputs[0];
    double low = (double)kelp_node_attr_f32(args->node, normal ? "mean" : "low", 0);
    double scale = (double)kelp_node_attr_f32(args->node, normal ? "scale" : "high", 1);
    int64_t count = kelp_tensor_elements(y);
    KELP_TRY(kelp_draw_begin(&draw, args->node));
    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t n = KELP_MIN((int64_t)BLOCK, count - i);
        double values[BLOCK];
        for (int64_t k = 0; k < n && normal; k++)
            values[k] = kelp_draw_normal(&draw);
        if (!normal)
            kelp_draw_uniforms(&draw, values, n);
        put_scaled(y, i, values, n, normal ? scale : scale - low, low);
    }
    return NULL;
}

static kelp_status *uniform_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    return fill(args, false);
}
static kelp_status *normal_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    return fill(args, true);
}
#define RANDOM_FLAGS (KELP_OP_IMPURE | KELP_OP_SERIAL)
KELP_KERNEL(RandomUniform, RANDOM_FLAGS, 0, 0, random_reshape, uniform_invoke);
KELP_KERNEL(RandomNormal, RANDOM_FLAGS, 0, 0, random_reshape, normal_invoke);
KELP_KERNEL(RandomUniformLike, RANDOM_FLAGS, 0, 1, random_like_reshape, uniform_invoke);
KELP_KERNEL(RandomNormalLike, RANDOM_FLAGS, 0, 1, random_like_reshape, normal_invoke);

/* ---- Bernoulli ---- */
static kelp_status *bernoulli_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    kelp_dtype dtype = kelp_ops_attr_dtype(args->node, "dtype", (int64_t)x->dtype);
    if (!kelp_ops_is_float(x->dtype) || !kelp_real_takes(dtype))
        return kelp_ops_bad_type(args, kelp_ops_is_float(x->dtype) ? dtype : x->dtype);
    return kelp_ops_set(args, 0, dtype, x->rank, x->shape);
}

static kelp_status *bernoulli_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    kelp_draw draw;
    (void)state;
    KELP_TRY(kelp_draw_begin(&draw, args->node));
    for (int64_t i = 0, count = kelp_tensor_elements(x); i < count; i += BLOCK) {
        int64_t n = KELP_MIN((int64_t)BLOCK, count - i);
        double values[BLOCK];
        kelp_real_load_f64(x->dtype, x->data, i, n, values);
        for (int64_t k = 0; k < n; k++)
            values[k] = kelp_draw_event(&draw, values[k]) ? 1 : 0;
        kelp_real_store_f64(y->dtype, y->data, i, n, values);
    }
    return NULL;
}
KELP_KERNEL(Bernoulli, RANDOM_FLAGS, 0, 0, bernoulli_reshape, bernoulli_invoke);

/* ---- Multinomial ---- */
typedef struct multinomial_plan {
    int64_t samples;
    size_t sums;
} multinomial_plan;

static kelp_status *multinomial_reshape(const void *state, kelp_op_args *args) {
    multinomial_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    kelp_dtype dtype = kelp_ops_attr_dtype(args->node, "dtype", KELP_I32);
    p->samples = kelp_node_attr_i64(args->node, "sample_size", 1);
    if (!kelp_ops_is_float(x->dtype) || (dtype != KELP_I32 && dtype != KELP_I64))
        return kelp_ops_bad_type(args, kelp_ops_is_float(x->dtype) ? dtype : x->dtype);
    if (x->rank != 2 || x->shape[1] < 1 || p->samples < 1)
        return kelp_ops_bad_shapes(args, x, NULL,
                                   "expected [batch, classes], and a sample_size of 1 or more");
    KELP_TRY(kelp_ops_scratch(args, x->shape[1], sizeof(double), &p->sums));
    int64_t shape[2] = {x->shape[0], p->samples};
    return kelp_ops_set(args, 0, dtype, 2, shape);
}

/* Computes the running sums of exp(x - max) and returns the total; 0 if no class has a positive
 * probability. */
static double accumulate(const kelp_tensor *x, int64_t first, int64_t classes, double *sums) {
    double max = -INFINITY, sum = 0;
    for (int64_t c = 0; c < classes; c++)
        max = fmax(max, kelp_ops_read_f64(x, first + c));
    for (int64_t c = 0; c < classes; c++) {
        double value = kelp_ops_read_f64(x, first + c);
        sum += value == max ? 1 : value < max ? exp(value - max) : 0; /* NaN: 0 */
        sums[c] = sum;
    }
    return max == -INFINITY ? 0 : sum;
}

static kelp_status *multinomial_invoke(const void *state, kelp_op_args *args) {
    const multinomial_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    double *sums = kelp_ops_scratch_at(args, p->sums);
    int64_t classes = x->shape[1];
    kelp_draw draw;
    (void)state;
    KELP_ASSERT(classes > 0 && p->samples > 0);
    KELP_TRY(kelp_draw_begin(&draw, args->node));
    for (int64_t i = 0; i < x->shape[0]; i++) {
        double total = accumulate(x, i * classes, classes, sums);
        if (!(total > 0))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "operator 'Multinomial': all classes of row %lld are -infinity or "
                              "NaN",
                              (long long)i);
        for (int64_t k = 0; k < p->samples; k++) {
            double target = kelp_draw_uniform(&draw) * total;
            int64_t low = 0, high = classes - 1;
            while (low < high) { /* the first sum beyond the target */
                int64_t middle = low + (high - low) / 2;
                if (sums[middle] > target)
                    high = middle;
                else
                    low = middle + 1;
            }
            if (y->dtype == KELP_I32)
                ((int32_t *)y->data)[i * p->samples + k] = (int32_t)low;
            else
                ((int64_t *)y->data)[i * p->samples + k] = low;
        }
    }
    return NULL;
}
KELP_KERNEL(Multinomial, RANDOM_FLAGS, sizeof(multinomial_plan), 0, multinomial_reshape,
            multinomial_invoke);
