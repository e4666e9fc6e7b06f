/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in floats. */
#include "cpu/kernels/attention/sdpa_float.h"

#include "cpu/kernels/gemm/gemm.h"
#include "cpu/kernels/vector/vector_kernels.h"

#define KEY_UNIT ((int64_t)kelp_gemm_kernels_get()->tile_columns) /* panels of keys */
#define FEW_QUERIES 8 /* packing the keys for so few would cost more than it saves */

static void pack(const kelp_sdpa *s, const kelp_sdpa_block *b, float *to) {
    kelp_gemm_pack_transposed(kelp_gemm_kernels_get(),
                              (const float *)s->k.data + kelp_sdpa_head_offset(s, b, &s->k),
                              s->k.row, s->size, s->keys, to);
}

static void score_rows(const kelp_sdpa *s, const kelp_sdpa_block *b, const float *q, int64_t row,
                       const float *packed, float *out) {
    const kelp_vector_kernels *vector = kelp_vector_kernels_get();
    int64_t count = b->end - b->begin;
    if (s->packed_elements == 0) {
        const float *k =
            (const float *)s->k.data + kelp_sdpa_head_offset(s, b, &s->k) + b->begin * s->k.row;
        for (int64_t i = 0; i < b->rows; i++)
            vector->dots(q + i * row, k, s->k.row, count, s->size, out + i * s->stride);
        return;
    }
    kelp_gemm job = {.a = q,
                     .packed = packed + b->begin * s->size,
                     .c = out,
                     .m = b->rows,
                     .n = count,
                     .k = s->size,
                     .lda = row,
                     .ldb = count,
                     .ldc = s->stride};
    kelp_gemm_run_serial(kelp_gemm_kernels_get(), &job);
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

#include "cpu/kernels/attention/sdpa.inc"

static bool is_f32(const kelp_sdpa *s) {
    return s->compute == KELP_F32;
}

static bool is_f32_of_few(const kelp_sdpa *s) {
    return s->compute == KELP_F32 && s->queries <= FEW_QUERIES;
}

static bool packed_keys(const kelp_sdpa *s, size_t *out) {
    return kelp_gemm_packed_size(kelp_gemm_kernels_get(), s->size, s->keys, out);
}

static bool packed_none(const kelp_sdpa *s, size_t *out) {
    (void)s;
    *out = 0;
    return true;
}

const kelp_sdpa_algorithm kelp_sdpa_f32_packed = {.name = "f32 packed keys",
                                                  .applicable = is_f32,
                                                  .packed_elements = packed_keys,
                                                  .element_bytes = sizeof(float),
                                                  .run = run_range,
                                                  .run_scores = scores_range,
                                                  .run_softmax = softmax_rows,
                                                  .run_values = values_range};
const kelp_sdpa_algorithm kelp_sdpa_f32_rows = {.name = "f32 rows",
                                                .applicable = is_f32_of_few,
                                                .packed_elements = packed_none,
                                                .element_bytes = sizeof(float),
                                                .run = run_range,
                                                .run_scores = scores_range,
                                                .run_softmax = softmax_rows,
                                                .run_values = values_range};
