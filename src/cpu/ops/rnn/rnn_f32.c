/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers over floats, with packed weights. */
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/kernels/nbits/nbits_kernels.h"
#include "cpu/kernels/vector/vector_kernels.h"
#include "cpu/ops/rnn/rnn.h"

#include <math.h>

/* Rounds to nearest, ties to even, for magnitudes below 2^22; faster than rintf. */
#define KELP_ROUND(x) (((x) + 0x1.8p23f) - 0x1.8p23f)

#define REAL float
#define RNN_RUN kelp_rnn_run_f32

bool kelp_rnn_scratch(const kelp_rnn *rnn, size_t *out_elements) {
    size_t rows, width, big, rest;
    return kelp_size_mul((size_t)rnn->steps + 1, (size_t)rnn->batch, &rows) &&
           kelp_size_mul((size_t)rnn->gates, (size_t)rnn->hidden, &width) &&
           kelp_size_mul(rows, width, &big) &&
           kelp_size_mul(3 * (size_t)rnn->batch, (size_t)rnn->hidden, &rest) &&
           kelp_size_add(big, rest, &big) && kelp_size_add(big, width, &big) &&
           kelp_size_mul(big, (size_t)rnn->directions, out_elements);
}

/* Rounds to the nearest of 256 values from the minimum to the maximum, 0 included. */
void kelp_rnn_quantize(const float *x, float *y, int64_t count) {
    float min = 0, max = 0;
    for (int64_t i = 0; i < count; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
    }
    float scale = max == min ? 1.0f : (max - min) / 255.0f;
    float zero = KELP_ROUND(-min / scale);
    zero = zero > 255.0f ? 255.0f : zero;
    for (int64_t i = 0; i < count; i++) {
        float v = KELP_ROUND(x[i] / scale) + zero;
        v = v < 0.0f ? 0.0f : v;
        y[i] = ((v > 255.0f ? 255.0f : v) - zero) * scale;
    }
}

static void quantize(const float *x, float *y, int64_t count) {
    kelp_rnn_quantize(x, y, count);
}

/* Multiplies all rows of states by R of bytes, and adds the projected inputs. */
static void byte_matrix(const kelp_rnn *rnn, const float *a, const void *r, const float *residual,
                        float *c) {
    const kelp_nbits_kernels *nbits = kelp_nbits_kernels_get();
    int64_t k = rnn->hidden, n = rnn->gates * k;
    const float *scales = r, *zeros = scales + n;
    for (int64_t i = 0; i < rnn->batch; i++, a += k, residual += n, c += n) {
        float sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum += a[p];
        nbits->byte_gemv(a, (const uint8_t *)(zeros + n), k, n, c);
        for (int64_t j = 0; j < n; j++)
            c[j] = (c[j] - zeros[j] * sum) * scales[j] + residual[j];
    }
}

static float one(const kelp_rnn_act *act, float x) {
    switch (act->function) {
    case KELP_RNN_AFFINE:
        return act->alpha * x + act->beta;
    case KELP_RNN_LEAKY_RELU:
        return x >= 0 ? x : act->alpha * x;
    case KELP_RNN_THRESHOLDED_RELU:
        return x >= act->alpha ? x : 0.0f;
    case KELP_RNN_SCALED_TANH:
        return act->alpha * tanhf(act->beta * x);
    case KELP_RNN_HARD_SIGMOID:
        x = act->alpha * x + act->beta;
        return x < 0 ? 0.0f : x > 1 ? 1.0f : x; /* preserves NaN */
    case KELP_RNN_ELU:
        return x >= 0 ? x : act->alpha * expm1f(x);
    case KELP_RNN_SOFTSIGN:
        return x / (1.0f + fabsf(x));
    case KELP_RNN_SOFTPLUS:
        return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x));
    case KELP_RNN_TANH:
    case KELP_RNN_SIGMOID:
    case KELP_RNN_RELU:
        break;
    }
    return x;
}

static void act_vector(const kelp_rnn_act *act, float *x, int64_t count) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    if (act->function == KELP_RNN_TANH)
        elementwise->act[KELP_ACT_TANH](x, x, count);
    else if (act->function == KELP_RNN_SIGMOID)
        elementwise->act[KELP_ACT_SIGMOID](x, x, count);
    else if (act->function == KELP_RNN_RELU)
        elementwise->act[KELP_ACT_RELU](x, x, count);
    else
        for (int64_t i = 0; i < count; i++)
            x[i] = one(act, x[i]);
}

struct rnn_pass;
static void matrix(const struct rnn_pass *pass, const float *a, int64_t lda, const void *w,
                   int64_t m, int64_t n, int64_t k, const float *bias, const float *residual,
                   float *c, int64_t ldc);
static const void *r_part(const struct rnn_pass *pass, const void *r);
static void project(const kelp_op_env *env, const struct rnn_pass *passes, int64_t count);

#include "cpu/ops/rnn/rnn.inc"

/* Computes the same for weights in the layout of the operator, by dot products. */
static void plain_matrix(const float *a, int64_t lda, const void *w, int64_t m, int64_t n,
                         int64_t k, const float *bias, const float *residual, float *c,
                         int64_t ldc) {
    const kelp_vector_kernels *vector = kelp_vector_kernels_get();
    for (int64_t i = 0; i < m; i++) {
        float *y = c + i * ldc;
        vector->dots(a + i * lda, w, k, n, k, y);
        for (int64_t j = 0; j < n && bias != NULL; j++)
            y[j] += bias[j];
        for (int64_t j = 0; j < n && residual != NULL; j++)
            y[j] += residual[i * ldc + j];
    }
}

/* Computes C = A · W (+ bias, + residual); `residual` has C's stride. */
static void matrix(const struct rnn_pass *pass, const float *a, int64_t lda, const void *w,
                   int64_t m, int64_t n, int64_t k, const float *bias, const float *residual,
                   float *c, int64_t ldc) {
    if (pass->data->plain) {
        plain_matrix(a, lda, w, m, n, k, bias, residual, c, ldc);
        return;
    }
    kelp_gemm job = {.a = a,
                     .packed = w,
                     .c = c,
                     .m = m,
                     .n = n,
                     .k = k,
                     .lda = lda,
                     .ldb = n,
                     .ldc = ldc,
                     .bias = bias,
                     .residual = residual};
    if (pass->env != NULL)
        kelp_gemm_run(pass->env, &job, 1);
    else
        kelp_gemm_run_serial(kelp_gemm_kernels_get(), &job);
}

static const void *r_part(const struct rnn_pass *pass, const void *r) {
    int64_t n = pass->rnn->hidden;
    size_t floats = (size_t)(2 * n * n);
    if (!pass->data->plain)
        (void)kelp_gemm_packed_size(kelp_gemm_kernels_get(), n, 2 * n, &floats);
    return (const float *)r + floats;
}

/* Multiplies the inputs of all steps by W. */
static void project(const kelp_op_env *env, const struct rnn_pass *passes, int64_t count) {
    kelp_gemm jobs[2];
    for (int64_t d = 0; d < count; d++) {
        const kelp_rnn *rnn = passes[d].rnn;
        int64_t width = rnn->gates * rnn->hidden;
        if (passes[d].data->plain) {
            plain_matrix(passes[d].data->x, rnn->inputs, passes[d].data->w[d],
                         rnn->steps * rnn->batch, width, rnn->inputs, passes[d].bias, NULL,
                         passes[d].projected, width);
            continue;
        }
        jobs[d] = (kelp_gemm){.a = passes[d].data->x,
                              .packed = passes[d].data->w[d],
                              .c = passes[d].projected,
                              .m = rnn->steps * rnn->batch,
                              .n = width,
                              .k = rnn->inputs,
                              .lda = rnn->inputs,
                              .ldb = width,
                              .ldc = width,
                              .bias = passes[d].bias};
    }
    if (!passes[0].data->plain)
        kelp_gemm_run(env, jobs, count);
}
