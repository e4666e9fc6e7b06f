/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft SkipLayerNormalization, SkipSimplifiedLayerNormalization and
 * EmbedLayerNormalization. Source: ONNX Runtime, ContribOperators.md.
 */
#include "base/assert.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/kernels/norm/norm_kernels.h"
#include "cpu/ops/converted.h"
#include "tensor/real.h"

typedef struct skip_plan {
    int64_t rows, count, skip_rows;
    float epsilon;
    bool rms;
    int32_t bias_input;
    size_t rows_at, gamma_at, beta_at, bias_at; /* in scratch memory; rows: two for each worker */
    const float *gamma, *beta, *bias;
    const kelp_op_args *args;
} skip_plan;

static kelp_status *check_vector(const kelp_op_args *args, int32_t index, int64_t count) {
    const kelp_tensor *v = kelp_ops_in(args, index);
    if (v != NULL && (kelp_tensor_elements(v) != count || v->dtype != args->inputs[0]->dtype))
        return kelp_ops_bad_shapes(args, args->inputs[0], v,
                                   "gamma, beta and bias must have the size of the last dimension "
                                   "and the type of the input");
    return NULL;
}

static kelp_status *set_outputs(kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0];
    int64_t shape[KELP_MAX_RANK];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->rank - 1] = 1;
    KELP_TRY(kelp_ops_set_like(args, 0, x));
    KELP_TRY(kelp_ops_set(args, 1, KELP_F32, x->rank, shape));
    KELP_TRY(kelp_ops_set(args, 2, KELP_F32, x->rank, shape));
    return kelp_ops_set_like(args, 3, x);
}

/* Returns true if `skip`, without leading dimensions of 1, has the last dimensions of `x`. */
static bool is_trailing(const kelp_tensor *x, const kelp_tensor *skip) {
    int32_t i = skip->rank - 1, at = x->rank - 1;
    while (i >= 0 && at >= 0 && skip->shape[i] == x->shape[at])
        i--, at--;
    for (; i >= 0; i--)
        if (skip->shape[i] != 1)
            return false;
    return true;
}

static kelp_status *skip_reshape(kelp_op_args *args, bool rms) {
    skip_plan *p = args->plan;
    KELP_TRY(kelp_ops_check(args, 3));
    const kelp_tensor *x = args->inputs[0], *skip = args->inputs[1];
    if (x->dtype != KELP_F32 && x->dtype != KELP_F16 && x->dtype != KELP_BF16)
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank < 1 || skip->rank < 1 || skip->dtype != x->dtype || skip->rank > x->rank ||
        skip->shape[skip->rank - 1] != x->shape[x->rank - 1])
        return kelp_ops_bad_shapes(args, x, skip, "the last dimensions of input and skip differ");
    p->rms = rms;
    p->count = x->shape[x->rank - 1];
    p->rows = kelp_ops_product(x->shape, 0, x->rank - 1);
    p->skip_rows = kelp_ops_product(skip->shape, 0, skip->rank - 1);
    if (!is_trailing(x, skip))
        return kelp_ops_bad_shapes(args, x, skip, "skip does not broadcast to the input");
    p->epsilon = kelp_node_attr_f32(args->node, "epsilon", 1e-12f);
    p->bias_input = rms ? 3 : 4;
    for (int32_t i = 2; i <= p->bias_input; i++)
        KELP_TRY(check_vector(args, i, p->count));
    KELP_TRY(kelp_ops_plan_f32(args, args->inputs[2], &p->gamma_at));
    if (!rms)
        KELP_TRY(kelp_ops_plan_f32(args, kelp_ops_in(args, 3), &p->beta_at));
    KELP_TRY(kelp_ops_plan_f32(args, kelp_ops_in(args, p->bias_input), &p->bias_at));
    KELP_TRY(kelp_ops_scratch(args, 2 * kelp_round_up(p->count, 16),
                              sizeof(float) * (size_t)kelp_op_env_threads(args->env), &p->rows_at));
    return set_outputs(args);
}

static void put_statistic(const kelp_op_args *args, int32_t index, int64_t row, float value) {
    kelp_tensor *out = kelp_ops_out(args, index);
    if (out != NULL)
        ((float *)out->data)[row] = value;
}

static void skip_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_norm_kernels *norm = kelp_norm_kernels_get();
    const skip_plan *p = userp;
    const kelp_op_args *args = p->args;
    kelp_tensor *y = args->outputs[0], *sum = kelp_ops_out(args, 3);
    int64_t n = p->count, stride = kelp_round_up(n, 16);
    float *v = (float *)kelp_ops_scratch_at(args, p->rows_at) + worker * 2 * stride,
          *s = v + stride;
    for (int64_t i = begin; i < end; i++) {
        float mean, inverse;
        kelp_math_load_tensor(args->inputs[0], i * n, n, v);
        kelp_math_load_tensor(args->inputs[1], i % p->skip_rows * n, n, s);
        elementwise->bin[KELP_BIN_ADD](v, v, s, n, 1, 1);
        if (p->bias != NULL)
            elementwise->bin[KELP_BIN_ADD](v, v, p->bias, n, 1, 1);
        if (sum != NULL)
            kelp_math_store_tensor(sum, i * n, n, v);
        norm->layer_norm(v, NULL, p->gamma, p->beta, p->epsilon, p->rms, NULL, s, n, &mean,
                         &inverse);
        kelp_math_store_tensor(y, i * n, n, s);
        put_statistic(args, 1, i, mean);
        put_statistic(args, 2, i, inverse);
    }
}

static kelp_status *skip_invoke(const void *state, kelp_op_args *args) {
    skip_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->rows == 0 || (p->skip_rows > 0 && p->rows % p->skip_rows == 0));
    p->args = args;
    p->gamma = kelp_ops_get_f32(args, args->inputs[2], p->gamma_at);
    p->beta = p->rms ? NULL : kelp_ops_get_f32(args, kelp_ops_in(args, 3), p->beta_at);
    p->bias = kelp_ops_get_f32(args, kelp_ops_in(args, p->bias_input), p->bias_at);
    kelp_op_parallel(args->env, p->rows, kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 4, p->count),
                     skip_range, p);
    return NULL;
}

static kelp_status *skip_layer_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return skip_reshape(args, false);
}
static kelp_status *skip_simplified_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return skip_reshape(args, true);
}
KELP_KERNEL(MsSkipLayerNorm, 0, sizeof(skip_plan), 0, skip_layer_reshape, skip_invoke);
KELP_KERNEL(MsSkipSimplifiedLayerNorm, 0, sizeof(skip_plan), 0, skip_simplified_reshape,
            skip_invoke);

/* ---- EmbedLayerNormalization ---- */
enum { IDS, SEGMENTS, WORDS, POSITIONS, SEGMENT_TABLE, GAMMA, BETA, MASK, POSITION_IDS };

typedef struct embed_plan {
    int64_t batch, tokens, width;
    size_t rows_at, gamma_at, beta_at;
    const float *gamma, *beta;
    const kelp_op_args *args;
} embed_plan;

static kelp_status *check_table(const kelp_op_args *args, int32_t index, int64_t width) {
    const kelp_tensor *t = kelp_ops_in(args, index);
    if (t != NULL &&
        (t->rank != 2 || t->shape[1] != width || t->dtype != args->inputs[WORDS]->dtype))
        return kelp_ops_bad_shapes(args, args->inputs[WORDS], t,
                                   "the tables differ in width or type");
    return NULL;
}

static kelp_status *check_ids(const kelp_op_args *args, int32_t index, int64_t count) {
    const kelp_tensor *t = kelp_ops_in(args, index);
    if (t != NULL &&
        (t->dtype != KELP_I32 || (kelp_tensor_elements(t) != count && index != POSITION_IDS)))
        return kelp_ops_bad_shapes(args, args->inputs[IDS], t, "expected one int32 for each token");
    return NULL;
}

static kelp_status *embed_reshape(const void *state, kelp_op_args *args) {
    embed_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    const kelp_tensor *ids = args->inputs[IDS], *words = kelp_ops_in(args, WORDS);
    const kelp_tensor *gamma = kelp_ops_in(args, GAMMA), *beta = kelp_ops_in(args, BETA);
    const kelp_tensor *at = kelp_ops_in(args, POSITION_IDS);
    if (words == NULL || gamma == NULL || beta == NULL || kelp_ops_in(args, POSITIONS) == NULL ||
        ids->rank != 2 || words->rank != 2)
        return kelp_ops_bad_shapes(args, ids, words, "expected ids and tables of rank 2");
    if (words->dtype != KELP_F32 && words->dtype != KELP_F16 && words->dtype != KELP_BF16)
        return kelp_ops_bad_type(args, words->dtype);
    p->batch = ids->shape[0];
    p->tokens = ids->shape[1];
    p->width = words->shape[1];
    int64_t count = p->batch * p->tokens, shape[3] = {p->batch, p->tokens, p->width};
    KELP_TRY(check_table(args, POSITIONS, p->width));
    KELP_TRY(check_table(args, SEGMENT_TABLE, p->width));
    KELP_TRY(check_ids(args, IDS, count));
    KELP_TRY(check_ids(args, SEGMENTS, count));
    KELP_TRY(check_ids(args, MASK, count));
    KELP_TRY(check_ids(args, POSITION_IDS, count));
    if ((at != NULL && kelp_tensor_elements(at) != count &&
         kelp_tensor_elements(at) != p->tokens) ||
        kelp_tensor_elements(gamma) != p->width || kelp_tensor_elements(beta) != p->width ||
        (kelp_ops_in(args, SEGMENTS) != NULL && kelp_ops_in(args, SEGMENT_TABLE) == NULL))
        return kelp_ops_bad_shapes(args, words, gamma,
                                   "the positions, gamma, beta or segments do not match");
    if (!kelp_ops_is_float(gamma->dtype) || !kelp_ops_is_float(beta->dtype))
        return kelp_ops_bad_type(args, gamma->dtype);
    KELP_TRY(kelp_ops_plan_f32(args, gamma, &p->gamma_at));
    KELP_TRY(kelp_ops_plan_f32(args, beta, &p->beta_at));
    KELP_TRY(kelp_ops_scratch(args, 2 * kelp_round_up(p->width, 16),
                              sizeof(float) * (size_t)kelp_op_env_threads(args->env), &p->rows_at));
    KELP_TRY(kelp_ops_set(args, 0, words->dtype, 3, shape));
    KELP_TRY(kelp_ops_set(args, 1, KELP_I32, 1, shape));
    return kelp_ops_set(args, 2, words->dtype, 3, shape);
}

static int64_t id_at(const kelp_op_args *args, int32_t index, int64_t at) {
    KELP_ASSERT(args->inputs[index]->dtype == KELP_I32);
    return ((const int32_t *)args->inputs[index]->data)[at];
}

static int64_t position_at(const embed_plan *p, int64_t token) {
    const kelp_tensor *at = kelp_ops_in(p->args, POSITION_IDS);
    if (at == NULL)
        return token % p->tokens;
    return id_at(p->args, POSITION_IDS, token % kelp_tensor_elements(at));
}

static void embed_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const kelp_norm_kernels *norm = kelp_norm_kernels_get();
    const embed_plan *p = userp;
    const kelp_op_args *args = p->args;
    int64_t n = p->width, stride = kelp_round_up(n, 16);
    float *v = (float *)kelp_ops_scratch_at(args, p->rows_at) + worker * 2 * stride,
          *s = v + stride;
    float mean, inverse;
    for (int64_t i = begin; i < end; i++) {
        kelp_math_load_tensor(args->inputs[WORDS], id_at(args, IDS, i) * n, n, v);
        kelp_math_load_tensor(args->inputs[POSITIONS], position_at(p, i) * n, n, s);
        elementwise->bin[KELP_BIN_ADD](v, v, s, n, 1, 1);
        if (kelp_ops_in(args, SEGMENTS) != NULL) {
            kelp_math_load_tensor(args->inputs[SEGMENT_TABLE], id_at(args, SEGMENTS, i) * n, n, s);
            elementwise->bin[KELP_BIN_ADD](v, v, s, n, 1, 1);
        }
        if (kelp_ops_out(args, 2) != NULL)
            kelp_math_store_tensor(args->outputs[2], i * n, n, v);
        norm->layer_norm(v, NULL, p->gamma, p->beta,
                         kelp_node_attr_f32(args->node, "epsilon", 1e-12f), false, NULL, s, n,
                         &mean, &inverse);
        if (kelp_ops_out(args, 0) != NULL)
            kelp_math_store_tensor(args->outputs[0], i * n, n, s);
    }
}

static bool inside(const kelp_op_args *args, int32_t table, int64_t id) {
    return id >= 0 && id < args->inputs[table]->shape[0];
}

static kelp_status *embed_invoke(const void *state, kelp_op_args *args) {
    embed_plan *p = args->plan;
    kelp_tensor *lengths = kelp_ops_out(args, 1);
    bool segments = kelp_ops_in(args, SEGMENTS) != NULL;
    (void)state;
    p->args = args;
    for (int64_t i = 0; i < p->batch * p->tokens; i++)
        if (!inside(args, WORDS, id_at(args, IDS, i)) ||
            !inside(args, POSITIONS, position_at(p, i)) ||
            (segments && !inside(args, SEGMENT_TABLE, id_at(args, SEGMENTS, i))))
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "operator 'EmbedLayerNormalization': an id of token %lld is outside its table",
                (long long)i);
    p->gamma = kelp_ops_get_f32(args, args->inputs[GAMMA], p->gamma_at);
    p->beta = kelp_ops_get_f32(args, args->inputs[BETA], p->beta_at);
    kelp_op_parallel(args->env, p->batch * p->tokens,
                     kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 4, p->width), embed_range, p);
    for (int64_t b = 0; b < p->batch && lengths != NULL; b++) {
        int32_t length = 0;
        for (int64_t i = 0; i < p->tokens && kelp_ops_in(args, MASK) != NULL; i++)
            length += id_at(args, MASK, b * p->tokens + i) == 1;
        ((int32_t *)lengths->data)[b] = length;
    }
    return NULL;
}
KELP_KERNEL(MsEmbedLayerNorm, 0, sizeof(embed_plan), 0, embed_reshape, embed_invoke);
