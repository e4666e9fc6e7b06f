/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scaled dot-product attention: y = softmax(scale * q·kᵀ + masks)·v for each image and head, in
 * blocks of queries whose scores stay in cache. Scratch memory grows with the number of keys, never
 * with queries times keys.
 * Source: Vaswani et al., "Attention Is All You Need", 2017; ONNX operator specification.
 */
#ifndef KELP_CPU_KERNELS_ATTENTION_SDPA_H_
#define KELP_CPU_KERNELS_ATTENTION_SDPA_H_

#include <kelp/op_env.h>
#include <kelp/tensor.h>

/* [batch, heads, rows, size] with unit stride along `size`. Strides in elements. */
typedef struct kelp_sdpa_view {
    const void *data;
    int64_t batch, head, row;
} kelp_sdpa_view;

/* Values that are added to the scores, of any type that kelp_real_takes, or flags: `dropped` is
 * added where an element is zero. Strides in elements, 0 where broadcast. */
typedef struct kelp_sdpa_mask {
    const void *data; /* NULL: no mask */
    kelp_dtype dtype;
    int64_t batch, head, row, column;
    int64_t keys; /* from this key on `dropped` is added */
    bool is_flags;
    float dropped;
} kelp_sdpa_mask;

#define KELP_SDPA_MASKS 2

typedef struct kelp_sdpa_algorithm kelp_sdpa_algorithm;

typedef struct kelp_sdpa {
    /* KELP_F32; KELP_F64; or KELP_BF16: operands of both GEMMs are rounded to bfloat16,
     * sums and the softmax are floats. k and v hold doubles for KELP_F64, else floats. */
    kelp_dtype compute;
    int64_t batch, heads, group; /* `group` query heads share one head of k and v */
    int64_t queries, keys, size, v_size;
    kelp_sdpa_view q, k, v, y;   /* y.data is written */
    kelp_dtype q_dtype, y_dtype; /* floating-point types, converted block by block */
    float q_scale; /* q is multiplied by this and rounded to `round` when loaded; 1: unchanged */
    double scale, softcap;    /* softcap 0: none */
    kelp_dtype round;         /* type to which every step before the softmax is rounded */
    kelp_dtype softmax_round; /* the same for the softmax */
    kelp_sdpa_mask masks[KELP_SDPA_MASKS];
    bool empty_is_nan; /* a query whose keys are all masked gives NaN; else zeros */
    /* Query i has position p = i + offset and sees keys p - left to p + right; negative: all. */
    int64_t offset, left, right;
    const int64_t *offsets;    /* for each image, instead of `offset`; or NULL */
    const int64_t *key_counts; /* for each image; NULL: all keys */
    bool from_end;             /* the last query has the position of the last of key_counts */
    const float *sinks; /* for each head, the score of a sink: a key without value; or NULL */
    bool sink_zero;     /* the same with score 0 for every head */
    /* Output of the scores as [batch, heads, queries, keys], of any float type: after 0 scaling, 1
     * softcap, 2 masks, 3 softmax. NULL: not requested. */
    void *scores;
    kelp_dtype scores_dtype;
    int32_t scores_stage;
    /* Set by kelp_sdpa_plan. */
    const kelp_sdpa_algorithm *algorithm;
    int64_t blocks, stride; /* of queries; of rows of scores */
    int64_t key_unit;       /* ranges of keys begin at multiples; 0: always all keys */
    size_t packed_elements, worker_elements;
    void *scratch; /* set by the caller before a run */
} kelp_sdpa;

/* Selects the algorithm. `*out_bytes` is the scratch memory of a run on `threads`. Returns false if
 * that overflows. Reads everything but pointers. */
bool kelp_sdpa_plan(kelp_sdpa *s, int threads, size_t *out_bytes);
/* Runs the whole operation on the threads of `env`. */
void kelp_sdpa_run(const kelp_op_env *env, const kelp_sdpa *s);

/* Run the three steps separately, for callers that modify the scores between them. `scores` is
 * [batch, heads, queries, keys] of floats, or doubles for KELP_F64. Masks, windows, sinks and
 * `scale` are not applied; scores are rounded to `round`, the softmax to `softmax_round`. */
void kelp_sdpa_run_scores(const kelp_op_env *env, const kelp_sdpa *s, void *scores);
void kelp_sdpa_run_softmax(const kelp_op_env *env, const kelp_sdpa *s, void *scores);
void kelp_sdpa_run_values(const kelp_op_env *env, const kelp_sdpa *s, const void *scores);

/* Returns the name of the selected algorithm. */
const char *kelp_sdpa_algorithm_name(const kelp_sdpa *s);

#endif
