/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over floats. */
#include "cpu/ops/attention/sdpa.h"

#include "cpu/kernels/gemm/gemm.h"
#include "cpu/ops/kernel.h"
#include "cpu/ops/wide.h"

#include <math.h>

#define REAL float
#define SDPA_RUN kelp_sdpa_run_f32
#define SDPA_QUERIES 64
#define SDPA_FEW 8 /* so few queries read the keys as they lie */

bool kelp_sdpa_plan(kelp_sdpa *s, int threads, size_t element_bytes, size_t *out_bytes) {
    size_t keys = (size_t)s->keys, rows = (size_t)KELP_MIN((int64_t)SDPA_QUERIES, s->queries);
    size_t turned = 0, scores, total;
    /* rows of a power of two would fall on the same places of the cache */
    s->stride = (s->keys + 31) / 16 * 16;
    s->blocks = (s->queries + SDPA_QUERIES - 1) / SDPA_QUERIES;
    if (s->queries > SDPA_FEW && !kelp_gemm_packed_size(kelp_simd_get(), s->size, s->keys, &turned))
        return false;
    if (!kelp_size_add(keys, 32, &keys) || !kelp_size_mul(keys, rows + 1, &scores) ||
        !kelp_size_add(turned, scores, &total) || !kelp_size_add(total, 64, &total))
        return false;
    s->worker_elements = total;
    return kelp_size_mul(total, element_bytes, &total) &&
           kelp_size_mul(total, (size_t)threads, out_bytes);
}

static void product(const float *a, int64_t lda, const float *b, int64_t ldb, float *c, int64_t ldc,
                    int64_t m, int64_t n, int64_t k) {
    kelp_gemm job = {
        .a = a, .b = b, .c = c, .m = m, .n = n, .k = k, .lda = lda, .ldb = ldb, .ldc = ldc};
    kelp_gemm_run_serial(kelp_simd_get(), &job);
}

static int64_t turned_elements(const kelp_sdpa *s) {
    size_t floats = 0;
    (void)kelp_gemm_packed_size(kelp_simd_get(), s->size, s->keys, &floats);
    return (int64_t)floats;
}

static void turn(const kelp_sdpa *s, const float *k, float *to) {
    kelp_gemm_pack_turned(kelp_simd_get(), k, s->k.row, s->size, s->keys, to);
}

/* Panels begin at multiples of their width. */
static int64_t aligned(int64_t key) {
    return key / kelp_simd_get()->tile_columns * kelp_simd_get()->tile_columns;
}

static void scores_of(const kelp_sdpa *s, const float *q, const float *turned, int64_t begin,
                      int64_t count, int64_t rows, float *scores) {
    kelp_gemm job = {.a = q,
                     .packed = turned + begin * s->size,
                     .c = scores,
                     .m = rows,
                     .n = count,
                     .k = s->size,
                     .lda = s->q.row,
                     .ldb = count,
                     .ldc = s->stride};
    kelp_gemm_run_serial(kelp_simd_get(), &job);
}

static void dots(const float *q, const float *k, int64_t stride, int64_t count, int64_t size,
                 float *out) {
    kelp_simd_get()->dots(q, k, stride, count, size, out);
}

static void softmax_plain(float *x, const float *bias, float scale, int64_t count) {
    kelp_simd_get()->softmax(x, bias, scale, x, count, false);
}

static void cap(float *x, int64_t count) {
    kelp_simd_get()->act[KELP_ACT_TANH](x, x, count);
}

static float round_to(kelp_dtype dtype, float x) {
    return kelp_ops_round(dtype, x);
}

static float exponent(float x) {
    return expf(x);
}

#include "cpu/ops/attention/sdpa.inc"
