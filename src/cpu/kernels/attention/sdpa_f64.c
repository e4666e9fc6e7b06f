/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in double, without optimization. */
#include "cpu/kernels/attention/sdpa_internal.h"

#define REAL double
#define REAL_DTYPE KELP_F64
#define REAL_NAME f64
#define LOAD kelp_real_load_f64
#define STORE kelp_real_store_f64
#include "cpu/kernels/attention/sdpa.inc"

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

static void softmax_row(double *x, const double *bias, double scale, int64_t count) {
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

static bool is_f64(const kelp_sdpa *s) {
    return s->compute == KELP_F64;
}

static int64_t any_key(void) {
    return 1;
}

static const kelp_sdpa_f64_steps steps = {.score_rows = score_rows,
                                          .value_rows = value_rows,
                                          .softmax_row = softmax_row,
                                          .tanh_row = tanh_row};

const kelp_sdpa_algorithm kelp_sdpa_f64_rows = {.name = "f64 rows",
                                                .is_applicable = is_f64,
                                                .packed_elements = kelp_sdpa_packed_none,
                                                .key_unit = any_key,
                                                .ranges = &kelp_sdpa_f64_ranges,
                                                .steps_f64 = &steps};
