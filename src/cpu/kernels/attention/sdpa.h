/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scaled dot-product attention, once for all operators that carry it: y = softmax(scale * q·kᵀ +
 * masks)·v for each image and head, in blocks of queries whose scores stay in cache.
 * Source: Vaswani et al., "Attention Is All You Need", 2017; ONNX operator specification.
 */
#ifndef KELP_CPU_KERNELS_ATTENTION_SDPA_H_
#define KELP_CPU_KERNELS_ATTENTION_SDPA_H_

#include "cpu/ops/kernel.h"

/* Rows of `size` elements side by side; the other strides in elements. */
typedef struct kelp_sdpa_view {
    const void *data;
    int64_t batch, head, row;
} kelp_sdpa_view;

/* Added to the scores, of any number type; or `flags`: a score is dropped where it is zero. Keys
 * from `keys` on are dropped. Strides in elements, 0 where broadcast. */
typedef struct kelp_sdpa_mask {
    const kelp_tensor *tensor; /* NULL: none */
    int64_t batch, head, row, keys;
    bool flags;
    float dropped; /* what is added where a flag is zero, and to keys from `keys` on */
} kelp_sdpa_mask;

#define KELP_SDPA_MASKS 2

typedef struct kelp_sdpa {
    int64_t batch, heads, group; /* `group` heads share one of keys and values */
    int64_t queries, keys, size, v_size;
    kelp_sdpa_view q, k, v, y; /* y.data is written */
    double scale, softcap;     /* softcap 0: none */
    kelp_dtype round;          /* of every step before the softmax; KELP_F32: none */
    kelp_dtype softmax_round;
    kelp_sdpa_mask masks[KELP_SDPA_MASKS];
    /* Query i stands at p = i + offset, and sees keys from p - left to p + right; negative: all. */
    int64_t offset, left, right;
    const int64_t *offsets;    /* for each image, instead of `offset`; or NULL */
    const int64_t *key_counts; /* for each image, or NULL: all keys */
    bool from_end;             /* the last query stands at the last of key_counts */
    const float *sinks;        /* one score for each head that takes part and has no value */
    bool sink_zero;            /* the same with score 0 for every head */
    /* The scores as [batch, heads, queries, keys]: 0 scaled, 1 after softcap, 2 after masks, 3
     * after softmax. NULL tensor: not wanted. */
    kelp_tensor *scores;
    int32_t scores_stage;
    /* set by plan */
    int64_t blocks, stride; /* of rows of scores */
    size_t worker_elements;
    void *scratch; /* set before run */
} kelp_sdpa;

/* Bytes of scratch that a run on `threads` needs; false when that overflows. */
bool kelp_sdpa_plan(kelp_sdpa *s, int threads, size_t element_bytes, size_t *out_bytes);
/* Elements are float, or double; `scores` of any float type. */
void kelp_sdpa_run_f32(const kelp_op_env *env, const kelp_sdpa *s);
void kelp_sdpa_run_f64(const kelp_op_env *env, const kelp_sdpa *s);

#endif
