/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers over floats, with packed weights. */
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/kernels/vector/vector_kernels.h"
#include "cpu/ops/rnn/rnn.h"

#include <math.h>

#define REAL float
#define RNN_RUN kelp_rnn_run_f32

bool kelp_rnn_scratch(const kelp_rnn *rnn, size_t *out_elements) {
    size_t rows, width, big, rest;
    return kelp_size_mul((size_t)rnn->steps + 1, (size_t)rnn->batch, &rows) &&
           kelp_size_mul((size_t)rnn->gates, (size_t)rnn->hidden, &width) &&
           kelp_size_mul(rows, width, &big) &&
           kelp_size_mul(3 * (size_t)rnn->batch, (size_t)rnn->hidden, &rest) &&
           kelp_size_add(big, rest, &big) && kelp_size_add(big, width, &big) &&
           (!rnn->quantizes || kelp_size_add(big, width, &big)) &&
           kelp_size_mul(big, (size_t)rnn->directions, out_elements);
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
static void byte_matrix(const struct rnn_pass *pass, const float *residual, float *c);

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

/* ---- 8-bit weights ---- */
/* Returns the multiplication of rows of bytes by weights; the scales of the result are written to
 * `scales`. */
static kelp_int8_gemm byte_gemm(const kelp_rnn_bytes *a, const kelp_rnn_bytes *b, int64_t m,
                                float *scales, float *y) {
    const kelp_int8_weights *w = &b->weights;
    for (int64_t j = 0; j < w->n; j++)
        scales[j] = b->scales[j] * a->scale;
    return (kelp_int8_gemm){.a = a->data,
                            .m = m,
                            .lda = w->k,
                            .a_zero = a->zero,
                            .b = *w,
                            .finish = {.dtype = KELP_F32, .scale = scales},
                            .y = y,
                            .ldy = w->n};
}

static void run_bytes(const kelp_op_env *env, const kelp_int8_gemm *jobs, int64_t count) {
    const kelp_int8_gemm *g = &jobs[0];
    if (env != NULL) {
        kelp_gemm_shape shape = {.m = g->m, .n = g->b.n, .k = g->b.k, .count = count};
        kelp_int8_gemm_choose(&shape)->run(env, jobs, count);
        return;
    }
    KELP_ASSERT(count == 1 && g->m == 1);
    for (int64_t j = 0; j < g->b.n; j += KELP_INT8_BLOCK_COLUMNS)
        kelp_int8_gemm_block(kelp_int8_kernels_get(), g, 0, j, 1,
                             KELP_MIN((int64_t)KELP_INT8_BLOCK_COLUMNS, g->b.n - j));
}

/* Quantizes a row to 256 values from the minimum to the maximum, 0 included. */
static void quantize_row(const float *x, int64_t count, uint8_t *y, kelp_rnn_bytes *out) {
    const kelp_int8_kernels *kernels = kelp_int8_kernels_get();
    float min = 0, max = 0;
    kernels->range(x, count, &min, &max);
    out->scale = max == min ? 1.0f : (max - min) / 255.0f;
    int32_t zero = (int32_t)rintf(-min / out->scale);
    zero = zero < 0 ? 0 : zero > 255 ? 255 : zero;
    kernels->quantize(&(kelp_quantize_run){
        .x = x, .y = y, .count = count, .dtype = KELP_U8, .scale = &out->scale, .zero = &zero});
    out->zero = (uint8_t)zero;
    out->data = y;
}

/* Multiplies all rows of states by R, and adds the projected inputs. */
static void byte_matrix(const struct rnn_pass *pass, const float *residual, float *c) {
    int64_t k = pass->rnn->hidden, n = pass->rnn->gates * k;
    for (int64_t i = 0; i < pass->rnn->batch; i++, residual += n, c += n) {
        kelp_rnn_bytes row;
        /* `rest` is unused until the gates are computed */
        quantize_row(pass->h + i * k, k, (uint8_t *)pass->rest, &row);
        kelp_int8_gemm job =
            byte_gemm(&row, &pass->data->r_bytes[pass->direction], 1, pass->scales, c);
        job.finish.addend = residual;
        run_bytes(pass->env, &job, 1);
    }
}

static void project_bytes(const kelp_op_env *env, const struct rnn_pass *passes, int64_t count) {
    kelp_int8_gemm jobs[2];
    for (int64_t d = 0; d < count; d++) {
        const kelp_rnn *rnn = passes[d].rnn;
        jobs[d] = byte_gemm(&passes[d].data->x_bytes, &passes[d].data->w_bytes[d],
                            rnn->steps * rnn->batch, passes[d].scales, passes[d].projected);
        jobs[d].finish.bias = passes[d].bias;
    }
    if (jobs[0].m > 0)
        run_bytes(env, jobs, count);
}

/* Multiplies the inputs of all steps by W. */
static void project(const kelp_op_env *env, const struct rnn_pass *passes, int64_t count) {
    kelp_gemm jobs[2];
    if (passes[0].rnn->quantizes) {
        project_bytes(env, passes, count);
        return;
    }
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
