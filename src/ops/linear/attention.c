/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp::Attention: q, k, v as [batch, sequence, heads * size], an additive mask [batch or 1, 1,
 * query or 1, key] or none; attributes num_heads and scale; y = softmax(scale * q·kᵀ + mask)·v as
 * [batch, query, heads * size]. Blocks of queries are worked on so that their scores stay in cache.
 * Source: Vaswani et al., "Attention Is All You Need", 2017.
 */
#include "ops/linear/gemm.h"

#define QUERY_BLOCK 64

typedef struct attention_plan {
    int64_t batch, heads, size, width, queries, keys, blocks;
    int64_t mask_batch, mask_row; /* strides; 0 where broadcast */
    float scale;
    size_t offset, worker_elements;
    const kelp_op_args *args;
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
    /* of each worker: keys turned, scores of a block */
    p->worker_elements = (size_t)(p->keys * p->size + QUERY_BLOCK * p->keys + 32);
    KELP_TRY(kelp_ops_scratch(args, (int64_t)p->worker_elements * kelp_op_env_threads(args->env),
                              sizeof(float), &p->offset));
    return kelp_ops_set_like(args, 0, q);
}

static void turn_keys(const attention_plan *p, const float *k, float *to) {
    for (int64_t i = 0; i < p->keys; i++)
        for (int64_t d = 0; d < p->size; d++)
            to[d * p->keys + i] = k[i * p->width + d];
}

static void attend(const attention_plan *p, int64_t image, int64_t head, int64_t block,
                   const float *turned, float *scores) {
    const kelp_op_args *args = p->args;
    const kelp_tensor *mask = kelp_ops_in(args, 3);
    int64_t first = block * QUERY_BLOCK, rows = KELP_MIN((int64_t)QUERY_BLOCK, p->queries - first);
    int64_t at = (image * p->queries + first) * p->width + head * p->size;
    kelp_gemm job = {.a = (const float *)args->inputs[0]->data + at,
                     .b = turned,
                     .c = scores,
                     .m = rows,
                     .n = p->keys,
                     .k = p->size,
                     .lda = p->width,
                     .ldb = p->keys,
                     .ldc = p->keys};
    kelp_gemm_run_serial(p->simd, &job);
    for (int64_t i = 0; i < rows; i++) {
        const float *row = mask != NULL ? (const float *)mask->data + image * p->mask_batch +
                                              (first + i) * p->mask_row
                                        : NULL;
        p->simd->softmax(scores + i * p->keys, row, p->scale, scores + i * p->keys, p->keys, false);
    }
    job = (kelp_gemm){.a = scores,
                      .b = (const float *)args->inputs[2]->data + image * p->keys * p->width +
                           head * p->size,
                      .c = (float *)args->outputs[0]->data + at,
                      .m = rows,
                      .n = p->size,
                      .k = p->keys,
                      .lda = p->keys,
                      .ldb = p->width,
                      .ldc = p->width};
    kelp_gemm_run_serial(p->simd, &job);
}

static void attention_range(void *userp, int64_t begin, int64_t end, int worker) {
    const attention_plan *p = userp;
    const kelp_op_args *args = p->args;
    float *turned =
        (float *)(void *)((char *)args->scratch + p->offset) + (size_t)worker * p->worker_elements;
    float *scores = turned + (p->keys * p->size + 15) / 16 * 16;
    int64_t last = -1;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t pair = unit / p->blocks, image = pair / p->heads, head = pair % p->heads;
        if (pair != last) /* blocks of one head share the turned keys */
            turn_keys(p,
                      (const float *)args->inputs[1]->data + image * p->keys * p->width +
                          head * p->size,
                      turned);
        last = pair;
        attend(p, image, head, unit % p->blocks, turned, scores);
    }
}

static kelp_status *attention_invoke(const void *state, kelp_op_args *args) {
    attention_plan *p = args->plan;
    (void)state;
    p->args = args;
    p->simd = kelp_simd_get();
    int64_t work = KELP_MIN(p->queries, (int64_t)QUERY_BLOCK) * p->keys * p->size * 2;
    int64_t grain = 1000000 / KELP_MAX((int64_t)1, work) + 1;
    if (p->keys > 0)
        kelp_op_parallel(args->env, p->batch * p->heads * p->blocks, grain, attention_range, p);
    return NULL;
}
KELP_KERNEL(Attention, 0, sizeof(attention_plan), 0, attention_reshape, attention_invoke);
