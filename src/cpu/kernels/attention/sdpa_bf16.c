/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention whose GEMMs have operands rounded to bfloat16: queries, keys, attention
 * weights and values. Sums and the softmax are floats. Keys and values of a head are packed once
 * for all blocks of its queries.
 */
#include "cpu/kernels/attention/sdpa_internal.h"

#include "cpu/kernels/gemm/gemm_bf16.h"

/* Packed keys, packed values and the rounded rows of a GEMM; a pair has the size of a float. */
typedef struct bf16_parts {
    size_t keys, values, rows;
} bf16_parts;
_Static_assert(sizeof(kelp_bf16_pair) == sizeof(float), "parts are counted in floats");

static bool parts_of(const kelp_sdpa *s, bf16_parts *out) {
    out->rows = (size_t)kelp_bf16_gemm_scratch(KELP_SDPA_QUERIES, KELP_MAX(s->size, s->keys));
    return kelp_bf16_packed_size(s->size, s->keys, &out->keys) &&
           kelp_bf16_packed_size(s->keys, s->v_size, &out->values);
}

static kelp_bf16_pair *part(const float *packed, size_t offset) {
    uintptr_t address = (uintptr_t)(packed + offset);
    return (kelp_bf16_pair *)address;
}

static void pack(const kelp_sdpa *s, const kelp_sdpa_block *b, float *to) {
    const kelp_bf16_kernels *kernels = kelp_bf16_kernels_get();
    bf16_parts parts = {0};
    (void)parts_of(s, &parts);
    kelp_bf16_pack_transposed(kernels,
                              (const float *)s->k.data + kelp_sdpa_head_offset(s, b, &s->k),
                              s->k.row, s->size, s->keys, part(to, 0));
    kelp_bf16_pack(kernels, (const float *)s->v.data + kelp_sdpa_head_offset(s, b, &s->v), s->v.row,
                   s->keys, s->v_size, part(to, parts.keys));
}

static void score_rows(const kelp_sdpa *s, const kelp_sdpa_block *b, const float *q, int64_t row,
                       const float *packed, float *out) {
    bf16_parts parts = {0};
    KELP_ASSERT(b->begin == 0 && b->end == s->keys); /* panels hold all keys */
    (void)parts_of(s, &parts);
    kelp_bf16_gemm_run_serial(
        &(kelp_bf16_gemm){.a = q,
                          .panels = part(packed, 0),
                          .c = out,
                          .m = b->rows,
                          .n = s->keys,
                          .k = s->size,
                          .lda = row,
                          .ldc = s->stride,
                          .scratch = part(packed, parts.keys + parts.values)});
}

static void value_rows(const kelp_sdpa *s, const kelp_sdpa_block *b, const float *x, int64_t stride,
                       const float *packed, float *y, int64_t row) {
    bf16_parts parts = {0};
    (void)parts_of(s, &parts);
    kelp_bf16_gemm_run_serial(
        &(kelp_bf16_gemm){.a = x,
                          .panels = part(packed, parts.keys),
                          .c = y,
                          .m = b->rows,
                          .n = s->v_size,
                          .k = s->keys,
                          .lda = stride,
                          .ldc = row,
                          .scratch = part(packed, parts.keys + parts.values)});
}

static bool is_bf16(const kelp_sdpa *s) {
    return s->compute == KELP_BF16;
}

static bool packed_all(const kelp_sdpa *s, size_t *out) {
    bf16_parts parts;
    return parts_of(s, &parts) && kelp_size_add(parts.keys, parts.values, out) &&
           kelp_size_add(*out, parts.rows, out);
}

/* The panels of values hold all keys. */
static int64_t all_keys(void) {
    return 0;
}

static const kelp_sdpa_f32_steps steps = {.pack = pack,
                                          .score_rows = score_rows,
                                          .value_rows = value_rows,
                                          .softmax_row = kelp_sdpa_f32_softmax,
                                          .tanh_row = kelp_sdpa_f32_tanh};

const kelp_sdpa_algorithm kelp_sdpa_bf16_packed = {.name = "bf16 packed keys and values",
                                                   .is_applicable = is_bf16,
                                                   .packed_elements = packed_all,
                                                   .key_unit = all_keys,
                                                   .ranges = &kelp_sdpa_f32_ranges,
                                                   .steps_f32 = &steps};
