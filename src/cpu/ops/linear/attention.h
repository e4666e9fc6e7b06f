/* SPDX-License-Identifier: Apache-2.0 */
/* What kelp::Attention and kelp::AttentionBf16 share: all but the two products. Blocks of queries
 * are worked on so that their scores stay in cache. */
#ifndef KELP_CPU_OPS_LINEAR_ATTENTION_H_
#define KELP_CPU_OPS_LINEAR_ATTENTION_H_

#include "cpu/kernels/gemm/gemm.h"

#define KELP_ATTENTION_BLOCK 64 /* queries */

typedef struct kelp_attention {
    int64_t batch, heads, size, width, queries, keys, blocks;
    int64_t mask_batch, mask_row; /* strides; 0 where broadcast */
    bool mask_one;                /* the mask has one number for all keys of a query */
    float scale;
    const kelp_op_args *args; /* of the run under way */
    const kelp_simd *simd;
} kelp_attention;

/* Attributes and shapes, checked; sets the shape of the output. */
kelp_status *kelp_attention_read(kelp_op_args *args, kelp_attention *out) KELP_MUST_USE;
/* Scores of `rows` queries from `first` on, [rows, keys], become shares. */
void kelp_attention_shares(const kelp_attention *a, int64_t image, int64_t first, int64_t rows,
                           float *inout_scores);
/* Runs `range` with `plan` over units, one for each block of each head of each image. */
void kelp_attention_run(kelp_attention *a, kelp_op_args *args,
                        void (*range)(void *plan, int64_t begin, int64_t end, int worker),
                        void *plan);

#endif
