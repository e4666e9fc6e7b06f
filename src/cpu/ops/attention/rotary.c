/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RotaryEmbedding of ai.onnx and of com.microsoft. Source: ONNX operator specification; ONNX
 * Runtime, ContribOperators.md.
 */
#include "cpu/ops/attention/rotary.h"

#include "base/assert.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/kernel.h"

void kelp_rotary_row(const float *x, float *y, int64_t size, const float *cosines,
                     const float *sines, int64_t half, bool interleaved) {
    int64_t step = interleaved ? 2 : 1, apart = interleaved ? 1 : half;
    KELP_ASSERT(half >= 0 && 2 * half <= size);
    for (int64_t i = 0; i < half; i++) {
        float a = x[i * step], b = x[i * step + apart];
        y[i * step] = cosines[i] * a - sines[i] * b;
        y[i * step + apart] = sines[i] * a + cosines[i] * b;
    }
    if (y != x && size > 2 * half)
        memcpy(y + 2 * half, x + 2 * half, (size_t)(size - 2 * half) * sizeof *y);
}

typedef struct rotary_plan {
    int64_t batch, heads, tokens, size, half, cache_rows;
    int64_t batch_stride, head_stride, token_stride;
    bool interleaved, shared_position;
    int32_t positions; /* index of input position_ids; -1: the cache has a row for each token */
    int32_t tables;    /* index of the input with the cosines; the sines follow */
    size_t rows;       /* scratch memory of each worker: one row of x, two of angles */
    const kelp_op_args *args;
} rotary_plan;

static kelp_status *read_layout(kelp_op_args *args, rotary_plan *p, const kelp_tensor *cosines) {
    const kelp_tensor *x = args->inputs[0];
    int64_t rotated = kelp_node_attr_i64(args->node, "rotary_embedding_dim", 0);
    int64_t heads = kelp_node_attr_i64(args->node, "num_heads", 0);
    int64_t cached = cosines->rank > 0 ? cosines->shape[cosines->rank - 1] : 0;
    if ((x->rank != 3 && x->rank != 4) || cosines->rank < 2)
        return kelp_ops_bad_shapes(args, x, cosines, "expected rank 3 or 4, and a table of angles");
    p->batch = x->shape[0];
    if (x->rank == 4) {
        p->heads = x->shape[1];
        p->tokens = x->shape[2];
        p->size = x->shape[3];
        p->head_stride = p->tokens * p->size;
        p->token_stride = p->size;
    } else {
        p->tokens = x->shape[1];
        p->size = heads > 0 ? x->shape[2] / heads : 2 * cached;
        p->heads = p->size > 0 ? x->shape[2] / p->size : 0;
        p->head_stride = p->size;
        p->token_stride = x->shape[2];
        if (p->heads * p->size != x->shape[2])
            return kelp_ops_bad_shapes(args, x, NULL,
                                       "the last dimension must be a multiple of the heads");
    }
    p->batch_stride = p->heads * p->tokens * p->size;
    p->half = (rotated > 0 ? rotated : p->size) / 2;
    if (cached != p->half || 2 * p->half > p->size)
        return kelp_ops_bad_shapes(args, x, cosines, "the table must have half the rotated size");
    return NULL;
}

static kelp_status *rotary_reshape(kelp_op_args *args, int32_t cosines, int32_t positions) {
    rotary_plan *p = args->plan;
    KELP_TRY(kelp_ops_check(args, cosines + 2));
    const kelp_tensor *x = args->inputs[0], *c = args->inputs[cosines];
    const kelp_tensor *s = args->inputs[cosines + 1], *at = kelp_ops_in(args, positions);
    if (x->dtype != KELP_F32 && x->dtype != KELP_F16 && x->dtype != KELP_BF16)
        return kelp_ops_bad_type(args, x->dtype);
    if (c->dtype != x->dtype || s->dtype != x->dtype)
        return kelp_ops_bad_type(args, c->dtype);
    KELP_TRY(read_layout(args, p, c));
    if (c->rank != s->rank || kelp_tensor_elements(c) != kelp_tensor_elements(s))
        return kelp_ops_bad_shapes(args, c, s, "cosines and sines must have the same shape");
    p->interleaved = kelp_node_attr_i64(args->node, "interleaved", 0) != 0;
    p->positions = at != NULL ? positions : -1;
    p->cache_rows = kelp_tensor_elements(c) / KELP_MAX((int64_t)1, p->half);
    if (at != NULL) {
        int64_t count = kelp_tensor_elements(at);
        p->shared_position = count == 1 && p->batch * p->tokens != 1;
        if (at->dtype != KELP_I64 || (count != 1 && count != p->batch * p->tokens))
            return kelp_ops_bad_shapes(args, x, at, "expected a position for each token");
    } else if (p->cache_rows != p->batch * p->tokens) {
        return kelp_ops_bad_shapes(args, x, c, "expected a row of angles for each token");
    }
    p->tables = cosines;
    if (x->dtype != KELP_F32)
        KELP_TRY(kelp_ops_scratch(
            args, 2 * p->size, sizeof(float) * (size_t)kelp_op_env_threads(args->env), &p->rows));
    return kelp_ops_set_like(args, 0, x);
}

static int64_t row_of(const rotary_plan *p, int64_t token) {
    if (p->positions < 0)
        return token;
    const int64_t *at = p->args->inputs[p->positions]->data;
    int64_t row = p->shared_position ? at[0] : at[token];
    if (p->shared_position && row < p->cache_rows) /* else out of range, and might overflow */
        row += token % p->tokens;
    return row < 0 ? row + p->cache_rows : row;
}

/* Rotates all heads of one token of float32. */
static void rotate_floats(const rotary_plan *p, int64_t base, int64_t angles) {
    const kelp_op_args *args = p->args;
    const float *x = (const float *)args->inputs[0]->data + base;
    float *y = (float *)args->outputs[0]->data + base;
    const float *cosines = (const float *)args->inputs[p->tables]->data + angles;
    const float *sines = (const float *)args->inputs[p->tables + 1]->data + angles;
    for (int64_t h = 0; h < p->heads; h++, x += p->head_stride, y += p->head_stride)
        kelp_rotary_row(x, y, p->size, cosines, sines, p->half, p->interleaved);
}

/* Rotates all heads of one token of another type, in scratch memory. */
static void rotate_loaded(const rotary_plan *p, int64_t base, int64_t angles, int worker) {
    const kelp_op_args *args = p->args;
    float *row = (float *)kelp_ops_scratch_at(args, p->rows) + worker * 2 * p->size;
    float *cosines = row + p->size, *sines = cosines + p->half;
    kelp_math_load_tensor(args->inputs[p->tables], angles, p->half, cosines);
    kelp_math_load_tensor(args->inputs[p->tables + 1], angles, p->half, sines);
    for (int64_t h = 0; h < p->heads; h++, base += p->head_stride) {
        kelp_math_load_tensor(args->inputs[0], base, p->size, row);
        kelp_rotary_row(row, row, p->size, cosines, sines, p->half, p->interleaved);
        kelp_math_store_tensor(args->outputs[0], base, p->size, row);
    }
}

static void rotary_range(void *userp, int64_t begin, int64_t end, int worker) {
    const rotary_plan *p = userp;
    for (int64_t token = begin; token < end; token++) {
        int64_t angles = row_of(p, token) * p->half;
        int64_t base = token / p->tokens * p->batch_stride + token % p->tokens * p->token_stride;
        if (p->args->inputs[0]->dtype == KELP_F32)
            rotate_floats(p, base, angles);
        else
            rotate_loaded(p, base, angles, worker);
    }
}

static kelp_status *rotary_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    rotary_plan *p = args->plan;
    KELP_ASSERT(p->heads * p->tokens * p->size == p->batch_stride);
    p->args = args;
    for (int64_t i = 0; i < p->batch * p->tokens; i++)
        if (row_of(p, i) < 0 || row_of(p, i) >= p->cache_rows)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "operator '%s': the position of token %lld is outside the %lld rows "
                              "of angles",
                              kelp_node_op_type(args->node), (long long)i,
                              (long long)p->cache_rows);
    int64_t grain = kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->heads * p->size);
    kelp_op_parallel(args->env, p->batch * p->tokens, grain, rotary_range, p);
    return NULL;
}

static kelp_status *onnx_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return rotary_reshape(args, 1, 3);
}
static kelp_status *ms_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return rotary_reshape(args, 2, 1);
}
KELP_KERNEL(RotaryEmbedding, 0, sizeof(rotary_plan), 0, onnx_reshape, rotary_invoke);
KELP_KERNEL(MsRotaryEmbedding, 0, sizeof(rotary_plan), 0, ms_reshape, rotary_invoke);
