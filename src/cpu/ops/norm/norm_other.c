/* SPDX-License-Identifier: Apache-2.0 */
/* LpNormalization, MeanVarianceNormalization, LRN. Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/kernels/vector/vector_kernels.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

#include <math.h>

static kelp_status *float_like(kelp_op_args *args) {
    KELP_TRY(kelp_ops_check(args, 1));
    if (!kelp_ops_is_float(args->inputs[0]->dtype))
        return kelp_ops_bad_type(args, args->inputs[0]->dtype);
    return kelp_ops_set_like(args, 0, args->inputs[0]);
}

/* ---- LpNormalization ---- */
typedef struct lp_plan {
    int64_t length, inner, p;
    const kelp_op_args *args;
} lp_plan;

static kelp_status *lp_reshape(const void *state, kelp_op_args *args) {
    lp_plan *p = args->plan;
    int32_t axis = 0;
    (void)state;
    KELP_TRY(float_like(args));
    const kelp_tensor *x = args->inputs[0];
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", -1), x->rank, &axis));
    p->length = x->shape[axis];
    p->inner = kelp_ops_product(x->shape, axis + 1, x->rank);
    p->p = kelp_node_attr_i64(args->node, "p", 2);
    if (p->p != 1 && p->p != 2)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'LpNormalization': p must be 1 or 2: found %lld",
                          (long long)p->p);
    return NULL;
}

static void lp_range(void *userp, int64_t begin, int64_t end, int worker) {
    const lp_plan *p = userp;
    const kelp_tensor *x = p->args->inputs[0];
    kelp_tensor *y = p->args->outputs[0];
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t first = at / p->inner * p->length * p->inner + at % p->inner;
        double norm = 0;
        for (int64_t k = 0; k < p->length; k++) {
            double value = kelp_ops_read_f64(x, first + k * p->inner);
            norm += p->p == 1 ? fabs(value) : value * value;
        }
        norm = p->p == 1 ? norm : sqrt(norm);
        for (int64_t k = 0; k < p->length; k++) {
            int64_t i = first + k * p->inner;
            kelp_tensor_set_f64(y, i, norm == 0 ? 0 : kelp_ops_read_f64(x, i) / norm);
        }
    }
}

static kelp_status *lp_invoke(const void *state, kelp_op_args *args) {
    lp_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->p == 1 || p->p == 2);
    p->args = args;
    int64_t lines = kelp_tensor_elements(args->inputs[0]) / KELP_MAX((int64_t)1, p->length);
    kelp_op_parallel(args->env, lines, kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 4, p->length), lp_range,
                     p);
    return NULL;
}
KELP_KERNEL(LpNormalization, KELP_OP_INPLACE_0, sizeof(lp_plan), 0, lp_reshape, lp_invoke);

/* ---- MeanVarianceNormalization ---- */
typedef struct mvn_plan {
    int64_t strides[KELP_MAX_RANK]; /* of the axes of the means; 0 for reduced axes */
    int64_t groups;
    size_t offset;
    bool rows; /* groups are rows: [outer, groups, inner], of which only the groups are kept */
    int64_t outer, inner;
    const kelp_op_args *args;
} mvn_plan;

/* Length of rows from which on groups are computed row by row. */
#define MVN_MIN_ROW 8

/* Finds out whether the axes that are kept are adjacent, between reduced ones. */
static void split_rows(mvn_plan *p, const kelp_tensor *x, uint32_t mask) {
    int32_t first = 0, last = x->rank;
    while (first < last && mask >> first & 1u)
        first++;
    while (last > first && mask >> (last - 1) & 1u)
        last--;
    uint32_t kept = ((1u << last) - 1) & ~((1u << first) - 1);
    bool none = first == last; /* one group of all elements */
    p->outer = none ? 1 : kelp_ops_product(x->shape, 0, first);
    p->inner = kelp_ops_product(x->shape, none ? 0 : last, x->rank);
    p->rows = x->dtype == KELP_F32 && (mask & kept) == 0 && p->inner >= MVN_MIN_ROW;
}

static kelp_status *mvn_reshape(const void *state, kelp_op_args *args) {
    static const int64_t defaults[3] = {0, 2, 3};
    mvn_plan *p = args->plan;
    const int64_t *axes = NULL;
    uint32_t mask = 0;
    (void)state;
    KELP_TRY(float_like(args));
    const kelp_tensor *x = args->inputs[0];
    size_t count = kelp_node_attr_i64s(args->node, "axes", &axes);
    if (kelp_node_attr_type(args->node, "axes") == KELP_ATTR_NONE) {
        axes = defaults;
        count = KELP_COUNT(defaults);
    }
    for (size_t i = 0; i < count; i++) {
        int32_t axis = 0;
        KELP_TRY(kelp_ops_axis(args, axes[i], x->rank, &axis));
        mask |= 1u << axis;
    }
    p->groups = 1;
    for (int32_t i = x->rank - 1; i >= 0; i--) {
        p->strides[i] = mask >> i & 1u ? 0 : p->groups;
        p->groups *= mask >> i & 1u ? 1 : x->shape[i];
    }
    split_rows(p, x, mask);
    return p->rows ? NULL : kelp_ops_scratch(args, p->groups, 2 * sizeof(double), &p->offset);
}

static void mvn_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_vector_kernels *vector = kelp_vector_kernels_get();
    const mvn_plan *p = userp;
    const float *x = p->args->inputs[0]->data;
    float *y = p->args->outputs[0]->data;
    double count = (double)p->outer * (double)p->inner;
    (void)worker;
    for (int64_t group = begin; group < end; group++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < p->outer; i++)
            sum += (double)vector->sum(x + (i * p->groups + group) * p->inner, p->inner);
        float mean = (float)(sum / count);
        for (int64_t i = 0; i < p->outer; i++)
            squares +=
                (double)vector->squares(x + (i * p->groups + group) * p->inner, mean, p->inner);
        float factor = (float)(1.0 / (sqrt(squares / count) + 1e-9)), summand = -mean * factor;
        for (int64_t i = 0; i < p->outer; i++) {
            int64_t at = (i * p->groups + group) * p->inner;
            elementwise->scale(y + at, x + at, &factor, &summand, p->inner, 0);
        }
    }
}

/* Advances the indices `at` to the next element and returns its group. */
static int64_t step(const mvn_plan *p, const kelp_tensor *x, int64_t *at, int64_t group) {
    for (int32_t i = x->rank - 1; i >= 0; i--) {
        group += p->strides[i];
        if (++at[i] < x->shape[i])
            break;
        group -= p->strides[i] * x->shape[i];
        at[i] = 0;
    }
    return group;
}

static kelp_status *mvn_invoke(const void *state, kelp_op_args *args) {
    mvn_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0];
    int64_t count = kelp_tensor_elements(x), at[KELP_MAX_RANK] = {0}, group = 0;
    if (p->rows) {
        p->args = args;
        kelp_op_parallel(args->env, p->groups,
                         kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->outer * p->inner), mvn_rows, p);
        return NULL;
    }
    double each = (double)count / (double)KELP_MAX((int64_t)1, p->groups);
    double *mean = (double *)kelp_ops_scratch_at(args, p->offset), *factor = mean + p->groups;
    (void)state;
    KELP_ASSERT(p->groups >= 0 && args->scratch != NULL);
    memset(mean, 0, 2 * (size_t)p->groups * sizeof *mean);
    for (int64_t i = 0; i < count; i++, group = step(p, x, at, group))
        mean[group] += kelp_ops_read_f64(x, i) / each;
    for (int64_t i = 0; i < count; i++, group = step(p, x, at, group)) {
        double d = kelp_ops_read_f64(x, i) - mean[group];
        factor[group] += d * d / each;
    }
    for (int64_t i = 0; i < p->groups; i++)
        factor[i] = 1.0 / (sqrt(factor[i]) + 1e-9);
    for (int64_t i = 0; i < count; i++, group = step(p, x, at, group))
        kelp_tensor_set_f64(args->outputs[0], i,
                            (kelp_ops_read_f64(x, i) - mean[group]) * factor[group]);
    return NULL;
}
KELP_KERNEL(MeanVarianceNormalization, KELP_OP_INPLACE_0, sizeof(mvn_plan), 0, mvn_reshape,
            mvn_invoke);

/* ---- LRN ---- */
typedef struct lrn_plan {
    int64_t channels, inner, before, after;
    double alpha, beta, bias;
    const kelp_op_args *args;
} lrn_plan;

static kelp_status *lrn_reshape(const void *state, kelp_op_args *args) {
    lrn_plan *p = args->plan;
    (void)state;
    KELP_TRY(float_like(args));
    const kelp_tensor *x = args->inputs[0];
    int64_t size = kelp_node_attr_i64(args->node, "size", 0);
    if (x->rank < 2 || size < 1)
        return kelp_ops_bad_shapes(args, x, NULL, "expected channels, and 'size' of at least 1");
    p->channels = x->shape[1];
    p->inner = kelp_ops_product(x->shape, 2, x->rank);
    p->before = (size - 1) / 2;
    p->after = size - 1 - p->before;
    p->alpha = (double)kelp_node_attr_f32(args->node, "alpha", 1e-4f) / (double)size;
    p->beta = (double)kelp_node_attr_f32(args->node, "beta", 0.75f);
    p->bias = (double)kelp_node_attr_f32(args->node, "bias", 1.0f);
    return NULL;
}

/* Returns 1 / x^beta; for the default of 0.75, by square roots. */
static float inverse_power(float x, float beta) {
    if (beta == 0.75f) {
        float root = sqrtf(x);
        return 1.0f / (root * sqrtf(root));
    }
    return powf(x, -beta);
}

static void lrn_floats(const lrn_plan *p, int64_t image, int64_t c, int64_t begin, int64_t end) {
    const float *x = (const float *)p->args->inputs[0]->data + image * p->channels * p->inner;
    float *y = (float *)p->args->outputs[0]->data + (image * p->channels + c) * p->inner;
    KELP_ASSERT(begin >= 0 && begin <= c && c < end && end <= p->channels);
    enum { CHUNK = 256 };
    float sum[CHUNK];
    for (int64_t first = 0; first < p->inner; first += CHUNK) {
        int64_t count = KELP_MIN((int64_t)CHUNK, p->inner - first);
        memset(sum, 0, sizeof sum);
        for (int64_t k = begin; k < end; k++) {
            const float *row = x + k * p->inner + first;
            for (int64_t i = 0; i < count; i++)
                sum[i] += row[i] * row[i];
        }
        const float *row = x + c * p->inner + first;
        for (int64_t i = 0; i < count; i++)
            y[first + i] =
                row[i] * inverse_power((float)p->bias + (float)p->alpha * sum[i], (float)p->beta);
    }
}

static void lrn_range(void *userp, int64_t from, int64_t to, int worker) {
    const lrn_plan *p = userp;
    const kelp_tensor *x = p->args->inputs[0];
    (void)worker;
    for (int64_t at = from; at < to; at++) {
        int64_t image = at / p->channels, c = at % p->channels;
        int64_t begin = KELP_MAX((int64_t)0, c - p->before);
        int64_t end = KELP_MIN(p->channels, c + p->after + 1);
        if (x->dtype == KELP_F32) {
            lrn_floats(p, image, c, begin, end);
            continue;
        }
        for (int64_t i = 0; i < p->inner; i++) {
            double sum = 0;
            for (int64_t k = begin; k < end; k++) {
                double v = kelp_ops_read_f64(x, (image * p->channels + k) * p->inner + i);
                sum += v * v;
            }
            kelp_tensor_set_f64(p->args->outputs[0], at * p->inner + i,
                                kelp_ops_read_f64(x, at * p->inner + i) /
                                    pow(p->bias + p->alpha * sum, p->beta));
        }
    }
}

static kelp_status *lrn_invoke(const void *state, kelp_op_args *args) {
    lrn_plan *p = args->plan;
    (void)state;
    p->args = args;
    int64_t grain = kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 4, p->inner);
    kelp_op_parallel(args->env, args->inputs[0]->shape[0] * p->channels, grain, lrn_range, p);
    return NULL;
}
KELP_KERNEL(LRN, 0, sizeof(lrn_plan), 0, lrn_reshape, lrn_invoke);
