/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in floats. */
#include "cpu/kernels/attention/sdpa_internal.h"

#include "cpu/kernels/gemm/gemm.h"
#include "cpu/kernels/math/load.h"
#include "cpu/kernels/norm/norm_kernels.h"
#include "cpu/kernels/vector/vector_kernels.h"

#define REAL float
#define REAL_DTYPE KELP_F32
#define REAL_NAME f32
#define LOAD kelp_math_load
#define STORE kelp_math_store
#include "cpu/kernels/attention/sdpa.inc"

#define FEW_QUERIES 8 /* for so few, packing the keys takes longer than it saves */

static void pack(const kelp_sdpa *s, const kelp_sdpa_block *b, float *to) {
    kelp_gemm_pack_transposed(kelp_gemm_kernels_get(),
                              (const float *)s->k.data + kelp_sdpa_head_offset(s, b, &s->k),
                              s->k.row, s->size, s->keys, to);
}

static void score_packed(const kelp_sdpa *s, const kelp_sdpa_block *b, const float *q, int64_t row,
                         const float *packed, float *scores) {
    int64_t count = b->end - b->begin;
    KELP_ASSERT(b->begin % kelp_gemm_kernels_get()->tile_columns == 0);
    kelp_gemm job = {.a = q,
                     .packed = packed + b->begin * s->size,
                     .c = scores,
                     .m = b->rows,
                     .n = count,
                     .k = s->size,
                     .lda = row,
                     .ldb = count,
                     .ldc = s->stride};
    kelp_gemm_run_serial(kelp_gemm_kernels_get(), &job);
}

static void score_rows(const kelp_sdpa *s, const kelp_sdpa_block *b, const float *q, int64_t row,
                       const float *packed, float *scores) {
    const kelp_vector_kernels *vector = kelp_vector_kernels_get();
    const float *k =
        (const float *)s->k.data + kelp_sdpa_head_offset(s, b, &s->k) + b->begin * s->k.row;
    (void)packed;
    for (int64_t i = 0; i < b->rows; i++)
        vector->dots(q + i * row, k, s->k.row, b->end - b->begin, s->size, scores + i * s->stride);
}

static void value_rows(const kelp_sdpa *s, const kelp_sdpa_block *b, const float *x, int64_t stride,
                       const float *packed, float *y, int64_t row) {
    kelp_gemm job = {.a = x,
                     .b = (const float *)s->v.data + kelp_sdpa_head_offset(s, b, &s->v) +
                          b->begin * s->v.row,
                     .c = y,
                     .m = b->rows,
                     .n = s->v_size,
                     .k = b->end - b->begin,
                     .lda = stride,
                     .ldb = s->v.row,
                     .ldc = row};
    (void)packed;
    kelp_gemm_run_serial(kelp_gemm_kernels_get(), &job);
}

void kelp_sdpa_f32_softmax(float *x, const float *bias, float scale, int64_t count) {
    kelp_norm_kernels_get()->softmax(x, bias, scale, x, count, false);
}

void kelp_sdpa_f32_tanh(float *x, int64_t count) {
    kelp_elementwise_kernels_get()->act[KELP_ACT_TANH](x, x, count);
}

static bool is_f32(const kelp_sdpa *s) {
    return s->compute == KELP_F32;
}

static bool is_f32_of_few(const kelp_sdpa *s) {
    return s->compute == KELP_F32 && s->queries <= FEW_QUERIES;
}

static bool packed_keys(const kelp_sdpa *s, size_t *out) {
    return kelp_gemm_packed_size(kelp_gemm_kernels_get(), s->size, s->keys, out);
}

/* A range of keys begins with a panel. */
static int64_t panel_columns(void) {
    return kelp_gemm_kernels_get()->tile_columns;
}

static const kelp_sdpa_f32_steps packed_steps = {.pack = pack,
                                                 .score_rows = score_packed,
                                                 .value_rows = value_rows,
                                                 .softmax_row = kelp_sdpa_f32_softmax,
                                                 .tanh_row = kelp_sdpa_f32_tanh};
static const kelp_sdpa_f32_steps row_steps = {.score_rows = score_rows,
                                              .value_rows = value_rows,
                                              .softmax_row = kelp_sdpa_f32_softmax,
                                              .tanh_row = kelp_sdpa_f32_tanh};

const kelp_sdpa_algorithm kelp_sdpa_f32_packed = {.name = "f32 packed keys",
                                                  .is_applicable = is_f32,
                                                  .packed_elements = packed_keys,
                                                  .key_unit = panel_columns,
                                                  .ranges = &kelp_sdpa_f32_ranges,
                                                  .steps_f32 = &packed_steps};
const kelp_sdpa_algorithm kelp_sdpa_f32_rows = {.name = "f32 rows",
                                                .is_applicable = is_f32_of_few,
                                                .packed_elements = kelp_sdpa_packed_none,
                                                .key_unit = panel_columns,
                                                .ranges = &kelp_sdpa_f32_ranges,
                                                .steps_f32 = &row_steps};
