/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp::AttentionBf16: kelp::Attention (linear/attention.c), both of whose products round their
 * operands to bfloat16: queries, keys, the softmax's result and values; the softmax itself and all
 * sums are floats. Keys and values of a head are laid out once for all blocks of its queries.
 */
#include "ops/bf16/gemm.h"

#define QUERY_BLOCK 64

typedef struct attention_plan {
    int64_t batch, heads, size, width, queries, keys, blocks;
    int64_t mask_batch, mask_row; /* strides; 0 where broadcast */
    float scale;
    int64_t key_pairs, value_pairs, scores, worker_pairs; /* of 4 bytes each */
    size_t offset;
    const kelp_op_args *args;
    const kelp_bf16 *table;
    const kelp_simd *simd;
} attention_plan;

static kelp_status *attention_reshape(const void *state, kelp_op_args *args) {
    attention_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 3));
    const kelp_tensor *q = args->inputs[0], *k = args->inputs[1], *v = args->inputs[2];
    const kelp_tensor *mask = kelp_ops_in(args, 3);
    p->heads = kelp_node_attr_i64(args->node, "num_heads", 1);
    p->scale = kelp_node_attr_f32(args->node, "scale", 1.0f);
    if (q->dtype != KELP_F32 || k->dtype != KELP_F32 || v->dtype != KELP_F32)
        return kelp_ops_bad_type(args, q->dtype);
    if (q->rank != 3 || k->rank != 3 || v->rank != 3 || p->heads < 1 ||
        q->shape[2] % p->heads != 0 || k->shape[2] != q->shape[2] || v->shape[2] != q->shape[2] ||
        k->shape[1] != v->shape[1] || k->shape[0] != q->shape[0] || v->shape[0] != q->shape[0])
        return kelp_ops_bad_shapes(args, q, k, "queries, keys and values do not fit together");
    p->batch = q->shape[0];
    p->width = q->shape[2];
    p->size = p->width / p->heads;
    p->queries = q->shape[1];
    p->keys = k->shape[1];
    p->blocks = (p->queries + QUERY_BLOCK - 1) / QUERY_BLOCK;
    if (mask != NULL) {
        if (mask->rank != 4 || mask->dtype != KELP_F32 || mask->shape[1] != 1 ||
            mask->shape[3] != p->keys || (mask->shape[0] != 1 && mask->shape[0] != p->batch) ||
            (mask->shape[2] != 1 && mask->shape[2] != p->queries))
            return kelp_ops_bad_shapes(args, q, mask, "the mask does not fit the scores");
        p->mask_row = mask->shape[2] == 1 ? 0 : p->keys;
        p->mask_batch = mask->shape[0] == 1 ? 0 : p->keys * mask->shape[2];
    }
    /* of each worker: panels of keys and values, scores of a block, operands of a product */
    size_t keys = 0, values = 0;
    int64_t scores = 0, all = 0;
    if (!kelp_bf16_packed_size(p->size, p->keys, &keys) ||
        !kelp_bf16_packed_size(p->keys, p->size, &values) ||
        !kelp_i64_mul(p->keys, QUERY_BLOCK, &scores) || keys > (size_t)INT64_MAX / 64 ||
        values > (size_t)INT64_MAX / 64)
        return kelp_ops_bad_shapes(args, q, k, "the keys are too many");
    p->key_pairs = (int64_t)keys;
    p->value_pairs = (int64_t)values;
    p->scores = (scores + 15) / 16 * 16;
    p->worker_pairs = p->key_pairs + p->value_pairs + p->scores +
                      kelp_bf16_gemm_scratch(QUERY_BLOCK, KELP_MAX(p->size, p->keys));
    p->worker_pairs = (p->worker_pairs + 15) / 16 * 16;
    if (!kelp_i64_mul(p->worker_pairs, kelp_op_env_threads(args->env), &all))
        return kelp_ops_bad_shapes(args, q, k, "the keys are too many");
    KELP_TRY(kelp_ops_scratch(args, all, sizeof(kelp_bf16_pair), &p->offset));
    return kelp_ops_set_like(args, 0, q);
}

/* What a worker has, one behind the other. */
typedef struct room {
    kelp_bf16_pair *keys, *values;
    float *scores;
    kelp_bf16_pair *rows;
} room;

static room room_of(const attention_plan *p, int worker) {
    kelp_bf16_pair *at =
        (kelp_bf16_pair *)(void *)((char *)p->args->scratch + p->offset) + worker * p->worker_pairs;
    room r = {.keys = at, .values = at + p->key_pairs};
    r.scores = (float *)(void *)(r.values + p->value_pairs);
    r.rows = (kelp_bf16_pair *)(void *)(r.scores + p->scores);
    return r;
}

static void lay_out(const attention_plan *p, int64_t image, int64_t head, const room *r) {
    int64_t at = image * p->keys * p->width + head * p->size;
    kelp_bf16_pack_turned(p->table, (const float *)p->args->inputs[1]->data + at, p->width, p->size,
                          p->keys, r->keys);
    kelp_bf16_pack(p->table, (const float *)p->args->inputs[2]->data + at, p->width, p->keys,
                   p->size, r->values);
}

static void attend(const attention_plan *p, int64_t image, int64_t head, int64_t block,
                   const room *r) {
    const kelp_op_args *args = p->args;
    const kelp_tensor *mask = kelp_ops_in(args, 3);
    int64_t first = block * QUERY_BLOCK, rows = KELP_MIN((int64_t)QUERY_BLOCK, p->queries - first);
    int64_t at = (image * p->queries + first) * p->width + head * p->size;
    kelp_bf16_gemm_run_serial(&(kelp_bf16_gemm){.a = (const float *)args->inputs[0]->data + at,
                                                .panels = r->keys,
                                                .c = r->scores,
                                                .m = rows,
                                                .n = p->keys,
                                                .k = p->size,
                                                .lda = p->width,
                                                .ldc = p->keys,
                                                .scratch = r->rows});
    for (int64_t i = 0; i < rows; i++) {
        const float *row = mask != NULL ? (const float *)mask->data + image * p->mask_batch +
                                              (first + i) * p->mask_row
                                        : NULL;
        float *scores = r->scores + i * p->keys;
        p->simd->softmax(scores, row, p->scale, scores, p->keys, false);
    }
    kelp_bf16_gemm_run_serial(&(kelp_bf16_gemm){.a = r->scores,
                                                .panels = r->values,
                                                .c = (float *)args->outputs[0]->data + at,
                                                .m = rows,
                                                .n = p->size,
                                                .k = p->keys,
                                                .lda = p->keys,
                                                .ldc = p->width,
                                                .scratch = r->rows});
}

static void attention_range(void *userp, int64_t begin, int64_t end, int worker) {
    const attention_plan *p = userp;
    room r = room_of(p, worker);
    int64_t last = -1;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t pair = unit / p->blocks;
        if (pair != last)
            lay_out(p, pair / p->heads, pair % p->heads, &r);
        last = pair;
        attend(p, pair / p->heads, pair % p->heads, unit % p->blocks, &r);
    }
}

static kelp_status *attention_invoke(const void *state, kelp_op_args *args) {
    attention_plan *p = args->plan;
    (void)state;
    p->args = args;
    p->table = kelp_bf16_get();
    p->simd = kelp_simd_get();
    int64_t work = KELP_MIN(p->queries, (int64_t)QUERY_BLOCK) * p->keys * p->size * 2;
    int64_t grain = 1000000 / KELP_MAX((int64_t)1, work) + 1;
    if (p->keys > 0)
        kelp_op_parallel(args->env, p->batch * p->heads * p->blocks, grain, attention_range, p);
    return NULL;
}
KELP_KERNEL(AttentionBf16, 0, sizeof(attention_plan), 0, attention_reshape, attention_invoke);
