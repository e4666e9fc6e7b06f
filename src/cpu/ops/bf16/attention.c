/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp::AttentionBf16: kelp::Attention (linear/attention.c), both of whose products round their
 * operands to bfloat16: queries, keys, the softmax's result and values; the softmax itself and all
 * sums are floats. Keys and values of a head are laid out once for all blocks of its queries.
 */
#include "cpu/kernels/gemm/gemm_bf16.h"
#include "cpu/ops/kernel.h"
#include "cpu/ops/linear/attention.h"

typedef struct attention_plan {
    kelp_attention a;
    int64_t key_pairs, value_pairs, scores, worker_pairs; /* of 4 bytes each */
    size_t offset;
    const kelp_bf16 *table;
} attention_plan;

static kelp_status *attention_reshape(const void *state, kelp_op_args *args) {
    attention_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_attention_read(args, &p->a));
    const kelp_tensor *q = args->inputs[0], *k = args->inputs[1];
    /* of each worker: panels of keys and values, scores of a block, operands of a product */
    size_t keys = 0, values = 0;
    int64_t scores = 0, all = 0;
    if (!kelp_bf16_packed_size(p->a.size, p->a.keys, &keys) ||
        !kelp_bf16_packed_size(p->a.keys, p->a.size, &values) ||
        !kelp_i64_mul(p->a.keys, KELP_ATTENTION_BLOCK, &scores) || keys > (size_t)INT64_MAX / 64 ||
        values > (size_t)INT64_MAX / 64)
        return kelp_ops_bad_shapes(args, q, k, "the keys are too many");
    p->key_pairs = (int64_t)keys;
    p->value_pairs = (int64_t)values;
    p->scores = (scores + 15) / 16 * 16;
    p->worker_pairs = p->key_pairs + p->value_pairs + p->scores +
                      kelp_bf16_gemm_scratch(KELP_ATTENTION_BLOCK, KELP_MAX(p->a.size, p->a.keys));
    p->worker_pairs = (p->worker_pairs + 15) / 16 * 16;
    if (!kelp_i64_mul(p->worker_pairs, kelp_op_env_threads(args->env), &all))
        return kelp_ops_bad_shapes(args, q, k, "the keys are too many");
    return kelp_ops_scratch(args, all, sizeof(kelp_bf16_pair), &p->offset);
}

/* What a worker has, one behind the other. */
typedef struct room {
    kelp_bf16_pair *keys, *values;
    float *scores;
    kelp_bf16_pair *rows;
} room;

static room room_of(const attention_plan *p, int worker) {
    kelp_bf16_pair *at = (kelp_bf16_pair *)(void *)((char *)p->a.args->scratch + p->offset) +
                         worker * p->worker_pairs;
    room r = {.keys = at, .values = at + p->key_pairs};
    r.scores = (float *)(void *)(r.values + p->value_pairs);
    r.rows = (kelp_bf16_pair *)(void *)(r.scores + p->scores);
    return r;
}

static void lay_out(const attention_plan *p, int64_t image, int64_t head, const room *r) {
    int64_t at = image * p->a.keys * p->a.width + head * p->a.size;
    kelp_bf16_pack_turned(p->table, (const float *)p->a.args->inputs[1]->data + at, p->a.width,
                          p->a.size, p->a.keys, r->keys);
    kelp_bf16_pack(p->table, (const float *)p->a.args->inputs[2]->data + at, p->a.width, p->a.keys,
                   p->a.size, r->values);
}

static void attend(const attention_plan *p, int64_t image, int64_t head, int64_t block,
                   const room *r) {
    const kelp_op_args *args = p->a.args;
    int64_t first = block * KELP_ATTENTION_BLOCK,
            rows = KELP_MIN((int64_t)KELP_ATTENTION_BLOCK, p->a.queries - first);
    int64_t at = (image * p->a.queries + first) * p->a.width + head * p->a.size;
    kelp_bf16_gemm_run_serial(&(kelp_bf16_gemm){.a = (const float *)args->inputs[0]->data + at,
                                                .panels = r->keys,
                                                .c = r->scores,
                                                .m = rows,
                                                .n = p->a.keys,
                                                .k = p->a.size,
                                                .lda = p->a.width,
                                                .ldc = p->a.keys,
                                                .scratch = r->rows});
    kelp_attention_shares(&p->a, image, first, rows, r->scores);
    kelp_bf16_gemm_run_serial(&(kelp_bf16_gemm){.a = r->scores,
                                                .panels = r->values,
                                                .c = (float *)args->outputs[0]->data + at,
                                                .m = rows,
                                                .n = p->a.size,
                                                .k = p->a.keys,
                                                .lda = p->a.keys,
                                                .ldc = p->a.width,
                                                .scratch = r->rows});
}

static void attention_range(void *userp, int64_t begin, int64_t end, int worker) {
    const attention_plan *p = userp;
    room r = room_of(p, worker);
    int64_t last = -1;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t pair = unit / p->a.blocks;
        if (pair != last)
            lay_out(p, pair / p->a.heads, pair % p->a.heads, &r);
        last = pair;
        attend(p, pair / p->a.heads, pair % p->a.heads, unit % p->a.blocks, &r);
    }
}

static kelp_status *attention_invoke(const void *state, kelp_op_args *args) {
    attention_plan *p = args->plan;
    (void)state;
    p->table = kelp_bf16_get();
    kelp_attention_run(&p->a, args, attention_range, p);
    return NULL;
}
KELP_KERNEL(AttentionBf16, 0, sizeof(attention_plan), 0, attention_reshape, attention_invoke);
