/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithms of attention, and what their instances of sdpa.inc share. */
#ifndef KELP_CPU_KERNELS_ATTENTION_SDPA_INTERNAL_H_
#define KELP_CPU_KERNELS_ATTENTION_SDPA_INTERNAL_H_

#include "cpu/kernels/attention/sdpa.h"

#include "base/assert.h"
#include "base/checked.h"

#define KELP_SDPA_QUERIES ((int64_t)64) /* of a block */

typedef void kelp_sdpa_range(const kelp_sdpa *s, void *scores, int64_t begin, int64_t end,
                             int worker);

/* Ranges are over blocks of queries of each head of each image. */
struct kelp_sdpa_algorithm {
    const char *name;
    bool (*applicable)(const kelp_sdpa *s);
    /* Elements of the packed keys and values of one head, for each worker; false on overflow. */
    bool (*packed_elements)(const kelp_sdpa *s, size_t *out);
    size_t element_bytes;
    kelp_sdpa_range *run;                                   /* `scores` is NULL */
    kelp_sdpa_range *run_scores, *run_softmax, *run_values; /* kelp_sdpa_run_scores … */
};

extern const kelp_sdpa_algorithm kelp_sdpa_f32_packed; /* keys packed once for each head */
extern const kelp_sdpa_algorithm kelp_sdpa_f32_rows;   /* few queries: keys are read in place */
extern const kelp_sdpa_algorithm kelp_sdpa_f64_rows;
extern const kelp_sdpa_algorithm kelp_sdpa_bf16_packed; /* keys and values packed as bfloat16 */

/* The block `unit` of a run. */
typedef struct kelp_sdpa_block {
    int64_t image, head, first, rows; /* queries */
    int64_t begin, end;               /* keys that any of them sees */
} kelp_sdpa_block;

/* Offset of the block's head of keys or values. */
static inline int64_t kelp_sdpa_head_offset(const kelp_sdpa *s, const kelp_sdpa_block *b,
                                            const kelp_sdpa_view *view) {
    return b->image * view->batch + b->head / s->group * view->head;
}

kelp_sdpa_block kelp_sdpa_block_at(const kelp_sdpa *s, int64_t unit);
/* Keys that query `i` sees by its position alone. */
void kelp_sdpa_key_range(const kelp_sdpa *s, int64_t image, int64_t i, int64_t *out_begin,
                         int64_t *out_end);

#endif
