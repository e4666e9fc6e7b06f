/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithms of attention, and the functions that they share. */
#ifndef KELP_CPU_KERNELS_ATTENTION_SDPA_INTERNAL_H_
#define KELP_CPU_KERNELS_ATTENTION_SDPA_INTERNAL_H_

#include "cpu/kernels/attention/sdpa.h"

#include "base/assert.h"
#include "base/checked.h"

#define KELP_SDPA_QUERIES ((int64_t)64) /* of a block */

/* A block of queries of one head of one image. */
typedef struct kelp_sdpa_block {
    int64_t image, head, first, rows; /* queries */
    int64_t begin, end;               /* keys that any of them sees */
} kelp_sdpa_block;

/* ---- steps that differ between algorithms ---- */
/* `packed` is the memory that `pack` filled. Rows of `q` and `y` are `row` elements apart, those of
 * scores `stride` elements (score_rows: s->stride). All rows and keys are those of the block. */
typedef struct kelp_sdpa_f32_steps {
    /* Packs the keys, or keys and values, of the block's head; NULL: they are read in place. */
    void (*pack)(const kelp_sdpa *s, const kelp_sdpa_block *b, float *to);
    /* scores = q · kᵀ */
    void (*score_rows)(const kelp_sdpa *s, const kelp_sdpa_block *b, const float *q, int64_t row,
                       const float *packed, float *scores);
    /* y = scores · v */
    void (*value_rows)(const kelp_sdpa *s, const kelp_sdpa_block *b, const float *scores,
                       int64_t stride, const float *packed, float *y, int64_t row);
    /* x = softmax(x * scale + bias); bias may be NULL */
    void (*softmax_row)(float *x, const float *bias, float scale, int64_t count);
    void (*tanh_row)(float *x, int64_t count);
} kelp_sdpa_f32_steps;

/* The same in double. */
typedef struct kelp_sdpa_f64_steps {
    void (*pack)(const kelp_sdpa *s, const kelp_sdpa_block *b, double *to);
    void (*score_rows)(const kelp_sdpa *s, const kelp_sdpa_block *b, const double *q, int64_t row,
                       const double *packed, double *scores);
    void (*value_rows)(const kelp_sdpa *s, const kelp_sdpa_block *b, const double *scores,
                       int64_t stride, const double *packed, double *y, int64_t row);
    void (*softmax_row)(double *x, const double *bias, double scale, int64_t count);
    void (*tanh_row)(double *x, int64_t count);
} kelp_sdpa_f64_steps;

/* ---- steps that all algorithms of one type share (sdpa.inc) ---- */
/* Runs the blocks [begin, end): those of the first head of the first image first. */
typedef void kelp_sdpa_range(const kelp_sdpa *s, void *scores, int64_t begin, int64_t end,
                             int worker);

typedef struct kelp_sdpa_ranges {
    size_t element_bytes;
    kelp_sdpa_range *run;                                   /* `scores` is NULL */
    kelp_sdpa_range *run_scores, *run_softmax, *run_values; /* kelp_sdpa_run_scores … */
} kelp_sdpa_ranges;

extern const kelp_sdpa_ranges kelp_sdpa_f32_ranges, kelp_sdpa_f64_ranges;

/* ---- algorithms ---- */
struct kelp_sdpa_algorithm {
    const char *name; /* as profiles show it */
    bool (*is_applicable)(const kelp_sdpa *s);
    /* Returns in `*out` the elements of the packed keys and values of one head, for each worker;
     * false on overflow. */
    bool (*packed_elements)(const kelp_sdpa *s, size_t *out);
    /* A block's range of keys begins at a multiple of this; 0: it always has all keys. */
    int64_t (*key_unit)(void);
    const kelp_sdpa_ranges *ranges;
    const kelp_sdpa_f32_steps *steps_f32; /* of algorithms in float */
    const kelp_sdpa_f64_steps *steps_f64; /* of algorithms in double */
};

extern const kelp_sdpa_algorithm kelp_sdpa_f32_packed; /* keys packed once for each head */
extern const kelp_sdpa_algorithm kelp_sdpa_f32_rows;   /* few queries: keys are read in place */
extern const kelp_sdpa_algorithm kelp_sdpa_f64_rows;
extern const kelp_sdpa_algorithm kelp_sdpa_bf16_packed; /* keys and values packed as bfloat16 */

/* ---- shared functions ---- */
/* Packs nothing. */
bool kelp_sdpa_packed_none(const kelp_sdpa *s, size_t *out);
void kelp_sdpa_f32_softmax(float *x, const float *bias, float scale, int64_t count);
void kelp_sdpa_f32_tanh(float *x, int64_t count);

/* Returns the offset of the block's head of keys or values. */
static inline int64_t kelp_sdpa_head_offset(const kelp_sdpa *s, const kelp_sdpa_block *b,
                                            const kelp_sdpa_view *view) {
    return b->image * view->batch + b->head / s->group * view->head;
}

/* Returns block number `unit` of a run, with all keys. */
kelp_sdpa_block kelp_sdpa_block_at(const kelp_sdpa *s, int64_t unit);
/* Computes the range of keys that query `i` sees by its position alone. */
void kelp_sdpa_key_range(const kelp_sdpa *s, int64_t image, int64_t i, int64_t *out_begin,
                         int64_t *out_end);

#endif
