/* SPDX-License-Identifier: Apache-2.0 */
/* Code that the attention operators share: scratch memory, gathering of heads with their biases and
 * caches, and the masks of com.microsoft. Source: ONNX Runtime, ContribOperators.md. */
#ifndef KELP_CPU_OPS_ATTENTION_HEADS_H_
#define KELP_CPU_OPS_ATTENTION_HEADS_H_

#include "cpu/kernels/attention/sdpa.h"
#include "cpu/ops/kernel.h"

/* Selects the algorithm of `s` and reserves scratch memory for it. */
kelp_status *kelp_sdpa_reserve(kelp_op_args *args, kelp_sdpa *s, size_t *out_offset) KELP_MUST_USE;

/* Keys, values or queries to copy as floats to [batch, heads, rows, size]: `past` rows, then
 * `fresh` new ones, then zeros. */
typedef struct kelp_heads {
    int64_t batch, heads, fresh, size, past, rows;
    kelp_sdpa_view from; /* the new rows, of type from_dtype */
    kelp_dtype from_dtype;
    const float *bias;      /* [heads * size], or NULL */
    const kelp_tensor *old; /* past rows of any float type, from element `old_first`, `old_rows` per
                               head; or NULL */
    int64_t old_first, old_rows;
    const int64_t *past_counts; /* for each image, instead of `past`; or NULL */
    float *to;
} kelp_heads;
/* Copies the rows on all threads; `*out` is a view of the result. If `old` is float32 and has the
 * memory and the rows of the result, only the new rows are written. */
void kelp_heads_gather(const kelp_op_env *env, const kelp_heads *heads, kelp_sdpa_view *out);

/* A mask_index or key_padding_mask: lengths (or ends and starts), [batch, keys] or [batch, queries,
 * keys]. */
typedef struct kelp_heads_mask {
    int32_t input; /* of the node; -1: none */
    size_t flags;  /* offset of the flags of keys in scratch memory, for lengths */
    bool lengths;
} kelp_heads_mask;
/* Checks the mask; for reshape. */
kelp_status *kelp_heads_mask_plan(kelp_op_args *args, int32_t input, const kelp_sdpa *s,
                                  kelp_heads_mask *out) KELP_MUST_USE;
/* Makes it the first mask of `s`; for invoke. `filter` is the score of masked keys. */
void kelp_heads_mask_set(const kelp_op_args *args, const kelp_heads_mask *mask, float filter,
                         kelp_sdpa *s);

/* Checks the additive bias, [batch or 1, heads or 1, queries, keys], in reshape, and makes it the
 * second mask of `s` in invoke. */
kelp_status *kelp_heads_bias_check(const kelp_op_args *args, int32_t input,
                                   const kelp_sdpa *s) KELP_MUST_USE;
void kelp_heads_bias_set(const kelp_op_args *args, int32_t input, kelp_sdpa *s);

#endif
