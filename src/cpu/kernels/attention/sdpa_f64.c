/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over doubles, which no model hurries. */
#include "cpu/kernels/attention/sdpa.h"
#include "cpu/ops/wide.h"

#include <math.h>

#define REAL double
#define SDPA_RUN kelp_sdpa_run_f64
#define SDPA_QUERIES 64
#define SDPA_FEW INT64_MAX

static void dots(const double *q, const double *k, int64_t stride, int64_t count, int64_t size,
                 double *out) {
    for (int64_t j = 0; j < count; j++) {
        double sum = 0;
        for (int64_t d = 0; d < size; d++)
            sum += q[d] * k[j * stride + d];
        out[j] = sum;
    }
}

static int64_t turned_elements(const kelp_sdpa *s) {
    (void)s;
    return 0;
}

static void turn(const kelp_sdpa *s, const double *k, double *to) {
    (void)s, (void)k, (void)to; /* keys are read as they lie */
}

static int64_t aligned(int64_t key) {
    return key;
}

static void scores_of(const kelp_sdpa *s, const double *q, const double *turned, int64_t begin,
                      int64_t count, int64_t rows, double *scores) {
    (void)s, (void)q, (void)turned, (void)begin, (void)count, (void)rows, (void)scores;
}

static void product(const double *a, int64_t lda, const double *b, int64_t ldb, double *c,
                    int64_t ldc, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; i++) {
        memset(c + i * ldc, 0, (size_t)n * sizeof *c);
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++)
                c[i * ldc + j] += a[i * lda + p] * b[p * ldb + j];
    }
}

static double round_to(kelp_dtype dtype, double x) {
    return dtype == KELP_F16 || dtype == KELP_BF16 ? (double)kelp_ops_round(dtype, (float)x) : x;
}

static double exponent(double x) {
    return exp(x);
}

static void softmax_plain(double *x, const double *bias, double scale, int64_t count) {
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < count; j++) {
        x[j] = x[j] * scale + (bias != NULL ? bias[j] : 0.0);
        most = x[j] > most || isnan(x[j]) ? x[j] : most;
    }
    for (int64_t j = 0; j < count; j++)
        sum += x[j] = exp(x[j] - most);
    for (int64_t j = 0; j < count; j++)
        x[j] /= sum;
}

static void cap(double *x, int64_t count) {
    for (int64_t j = 0; j < count; j++)
        x[j] = tanh(x[j]);
}

#include "cpu/kernels/attention/sdpa.inc"
