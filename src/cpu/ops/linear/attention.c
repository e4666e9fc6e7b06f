/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp::Attention: q, k, v as [batch, sequence, heads * size], an additive mask [batch or 1, 1,
 * query or 1, key or 1] or none; attributes num_heads and scale; y = softmax(scale * q·kᵀ + mask)·v
 * as [batch, query, heads * size]. Blocks of queries are worked on so that their scores stay in
 * cache. Source: Vaswani et al., "Attention Is All You Need", 2017.
 */
#include "cpu/ops/linear/attention.h"

#include "cpu/ops/kernel.h"

typedef struct attention_plan {
    kelp_attention a;
    size_t offset, worker_elements;
} attention_plan;

kelp_status *kelp_attention_read(kelp_op_args *args, kelp_attention *out) {
    KELP_TRY(kelp_ops_check(args, 3));
    const kelp_tensor *q = args->inputs[0], *k = args->inputs[1], *v = args->inputs[2];
    const kelp_tensor *mask = kelp_ops_in(args, 3);
    out->heads = kelp_node_attr_i64(args->node, "num_heads", 1);
    out->scale = kelp_node_attr_f32(args->node, "scale", 1.0f);
    if (q->dtype != KELP_F32 || k->dtype != KELP_F32 || v->dtype != KELP_F32)
        return kelp_ops_bad_type(args, q->dtype);
    if (q->rank != 3 || k->rank != 3 || v->rank != 3 || out->heads < 1 ||
        q->shape[2] % out->heads != 0 || k->shape[2] != q->shape[2] || v->shape[2] != q->shape[2] ||
        k->shape[1] != v->shape[1] || k->shape[0] != q->shape[0] || v->shape[0] != q->shape[0])
        return kelp_ops_bad_shapes(args, q, k, "queries, keys and values do not fit together");
    out->batch = q->shape[0];
    out->width = q->shape[2];
    out->size = out->width / out->heads;
    out->queries = q->shape[1];
    out->keys = k->shape[1];
    out->blocks = (out->queries + KELP_ATTENTION_BLOCK - 1) / KELP_ATTENTION_BLOCK;
    if (mask != NULL) {
        if (mask->rank != 4 || mask->dtype != KELP_F32 || mask->shape[1] != 1 ||
            (mask->shape[3] != 1 && mask->shape[3] != out->keys) ||
            (mask->shape[0] != 1 && mask->shape[0] != out->batch) ||
            (mask->shape[2] != 1 && mask->shape[2] != out->queries))
            return kelp_ops_bad_shapes(args, q, mask, "the mask does not fit the scores");
        out->mask_one = mask->shape[3] != out->keys;
        out->mask_row = mask->shape[2] == 1 ? 0 : mask->shape[3];
        out->mask_batch = mask->shape[0] == 1 ? 0 : mask->shape[3] * mask->shape[2];
    }
    return kelp_ops_set_like(args, 0, q);
}

void kelp_attention_shares(const kelp_attention *a, int64_t image, int64_t first, int64_t rows,
                           float *inout_scores) {
    const kelp_tensor *mask = kelp_ops_in(a->args, 3);
    for (int64_t i = 0; i < rows; i++) {
        const float *row = mask != NULL ? (const float *)mask->data + image * a->mask_batch +
                                              (first + i) * a->mask_row
                                        : NULL;
        float *scores = inout_scores + i * a->keys;
        if (a->mask_one) {
            for (int64_t key = 0; key < a->keys; key++)
                scores[key] = scores[key] * a->scale + row[0];
            a->simd->softmax(scores, NULL, 1.0f, scores, a->keys, false);
        } else {
            a->simd->softmax(scores, row, a->scale, scores, a->keys, false);
        }
    }
}

void kelp_attention_run(kelp_attention *a, kelp_op_args *args,
                        void (*range)(void *plan, int64_t begin, int64_t end, int worker),
                        void *plan) {
    a->args = args;
    a->simd = kelp_simd_get();
    int64_t work = KELP_MIN(a->queries, (int64_t)KELP_ATTENTION_BLOCK) * a->keys * a->size * 2;
    int64_t grain = 1000000 / KELP_MAX((int64_t)1, work) + 1;
    if (a->keys > 0)
        kelp_op_parallel(args->env, a->batch * a->heads * a->blocks, grain, range, plan);
}

static kelp_status *attention_reshape(const void *state, kelp_op_args *args) {
    attention_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_attention_read(args, &p->a));
    /* of each worker: keys turned, scores of a block */
    p->worker_elements = (size_t)(p->a.keys * p->a.size + KELP_ATTENTION_BLOCK * p->a.keys + 32);
    return kelp_ops_scratch(args, (int64_t)p->worker_elements * kelp_op_env_threads(args->env),
                            sizeof(float), &p->offset);
}

static void turn_keys(const kelp_attention *p, const float *k, float *to) {
    for (int64_t i = 0; i < p->keys; i++)
        for (int64_t d = 0; d < p->size; d++)
            to[d * p->keys + i] = k[i * p->width + d];
}

static void attend(const kelp_attention *p, int64_t image, int64_t head, int64_t block,
                   const float *turned, float *scores) {
    const kelp_op_args *args = p->args;
    int64_t first = block * KELP_ATTENTION_BLOCK,
            rows = KELP_MIN((int64_t)KELP_ATTENTION_BLOCK, p->queries - first);
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
    kelp_attention_shares(p, image, first, rows, scores);
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
    const attention_plan *plan = userp;
    const kelp_attention *p = &plan->a;
    float *turned = (float *)(void *)((char *)p->args->scratch + plan->offset) +
                    (size_t)worker * plan->worker_elements;
    float *scores = turned + (p->keys * p->size + 15) / 16 * 16;
    int64_t last = -1;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t pair = unit / p->blocks, image = pair / p->heads, head = pair % p->heads;
        if (pair != last) /* blocks of one head share the turned keys */
            turn_keys(p,
                      (const float *)p->args->inputs[1]->data + image * p->keys * p->width +
                          head * p->size,
                      turned);
        last = pair;
        attend(p, image, head, unit % p->blocks, turned, scores);
    }
}

static kelp_status *attention_invoke(const void *state, kelp_op_args *args) {
    attention_plan *p = args->plan;
    (void)state;
    kelp_attention_run(&p->a, args, attention_range, p);
    return NULL;
}
KELP_KERNEL(Attention, 0, sizeof(attention_plan), 0, attention_reshape, attention_invoke);
