/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in doubles: for correctness, not for speed. */
#include "cpu/kernels/attention/sdpa_internal.h"

#include "tensor/real.h"

#include <math.h>
#include <string.h>

#define REAL double
#define REAL_DTYPE KELP_F64
#define LOAD kelp_real_load_f64
#define STORE kelp_real_store_f64
#define KEY_UNIT ((int64_t)1)

static void pack(const kelp_sdpa *s, const kelp_sdpa_block *b, double *to) {
    (void)s, (void)b, (void)to; /* keys are read in place */
}

static void score_rows(const kelp_sdpa *s, const kelp_sdpa_block *b, const double *q, int64_t row,
                       const double *packed, double *out) {
    (void)packed;
    for (int64_t i = 0; i < b->rows; i++) {
        const double *k =
            (const double *)s->k.data + kelp_sdpa_head_offset(s, b, &s->k) + b->begin * s->k.row;
        for (int64_t j = 0; j < b->end - b->begin; j++, k += s->k.row) {
            double sum = 0;
            for (int64_t d = 0; d < s->size; d++)
                sum += q[i * row + d] * k[d];
            out[i * s->stride + j] = sum;
        }
    }
}

static void value_rows(const kelp_sdpa *s, const kelp_sdpa_block *b, const double *x,
                       int64_t stride, const double *packed, double *y, int64_t row) {
    (void)packed;
    for (int64_t i = 0; i < b->rows; i++) {
        const double *v =
            (const double *)s->v.data + kelp_sdpa_head_offset(s, b, &s->v) + b->begin * s->v.row;
        memset(y + i * row, 0, (size_t)s->v_size * sizeof *y);
        for (int64_t p = 0; p < b->end - b->begin; p++, v += s->v.row)
            for (int64_t j = 0; j < s->v_size; j++)
                y[i * row + j] += x[i * stride + p] * v[j];
    }
}

static double round_to(kelp_dtype dtype, double x) {
    return dtype == KELP_F64 ? x : (double)kelp_real_round(dtype, (float)x);
}

static double exponent(double x) {
    return exp(x);
}

static void softmax_plain(double *x, const double *bias, double scale, int64_t count) {
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < count; j++) {
        x[j] = x[j] * scale + (bias != NULL ? bias[j] : 0.0);
        largest = x[j] > largest || isnan(x[j]) ? x[j] : largest;
    }
    for (int64_t j = 0; j < count; j++)
        sum += x[j] = exp(x[j] - largest);
    for (int64_t j = 0; j < count; j++)
        x[j] /= sum;
}

static void tanh_row(double *x, int64_t count) {
    for (int64_t j = 0; j < count; j++)
        x[j] = tanh(x[j]);
}

#include "cpu/kernels/attention/sdpa.inc"

static bool is_f64(const kelp_sdpa *s) {
    return s->compute == KELP_F64;
}

static bool packed_none(const kelp_sdpa *s, size_t *out) {
    (void)s;
    *out = 0;
    return true;
}

const kelp_sdpa_algorithm kelp_sdpa_f64_rows = {.name = "f64 rows",
                                                .applicable = is_f64,
                                                .packed_elements = packed_none,
                                                .element_bytes = sizeof(double),
                                                .run = run_range,
                                                .run_scores = scores_range,
                                                .run_softmax = softmax_rows,
                                                .run_values = values_range};
