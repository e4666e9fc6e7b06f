/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers over doubles, by plain loops. */
#include "base/assert.h"
#include "cpu/ops/rnn/rnn.h"

#include <math.h>

#define REAL double
#define RNN_RUN kelp_rnn_run_f64

struct rnn_pass;

static void matrix(const struct rnn_pass *pass, const double *a, int64_t lda, const void *w,
                   int64_t m, int64_t n, int64_t k, const double *bias, const double *residual,
                   double *c, int64_t ldc) {
    (void)pass;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = bias != NULL ? bias[j] : 0.0;
            for (int64_t p = 0; p < k; p++)
                sum += a[i * lda + p] * ((const double *)w)[j * k + p];
            c[i * ldc + j] = sum + (residual != NULL ? residual[i * ldc + j] : 0.0);
        }
}

static void byte_matrix(const struct rnn_pass *pass, const double *residual, double *c) {
    (void)pass, (void)residual, (void)c;
    KELP_ASSERT(false); /* no operator quantizes doubles */
}

static double one(const kelp_rnn_act *act, double x) {
    double alpha = (double)act->alpha, beta = (double)act->beta;
    switch (act->function) {
    case KELP_RNN_TANH:
        return tanh(x);
    case KELP_RNN_SIGMOID:
        return 1.0 / (1.0 + exp(-x));
    case KELP_RNN_RELU:
        return x < 0 ? 0.0 : x; /* here and below, NaN is preserved */
    case KELP_RNN_AFFINE:
        return alpha * x + beta;
    case KELP_RNN_LEAKY_RELU:
        return x >= 0 ? x : alpha * x;
    case KELP_RNN_THRESHOLDED_RELU:
        return x >= alpha ? x : 0.0;
    case KELP_RNN_SCALED_TANH:
        return alpha * tanh(beta * x);
    case KELP_RNN_HARD_SIGMOID:
        x = alpha * x + beta;
        return x < 0 ? 0.0 : x > 1 ? 1.0 : x;
    case KELP_RNN_ELU:
        return x >= 0 ? x : alpha * expm1(x);
    case KELP_RNN_SOFTSIGN:
        return x / (1.0 + fabs(x));
    case KELP_RNN_SOFTPLUS:
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    }
    return x;
}

static void act_vector(const kelp_rnn_act *act, double *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = one(act, x[i]);
}

static const void *r_part(const struct rnn_pass *pass, const void *r);
static void project(const kelp_op_env *env, const struct rnn_pass *passes, int64_t count);

#include "cpu/ops/rnn/rnn.inc"

static const void *r_part(const struct rnn_pass *pass, const void *r) {
    return (const double *)r + 2 * pass->rnn->hidden * pass->rnn->hidden;
}

static void project(const kelp_op_env *env, const struct rnn_pass *passes, int64_t count) {
    (void)env;
    for (int64_t d = 0; d < count; d++) {
        const kelp_rnn *rnn = passes[d].rnn;
        int64_t width = rnn->gates * rnn->hidden;
        matrix(&passes[d], passes[d].data->x, rnn->inputs, passes[d].data->w[d],
               rnn->steps * rnn->batch, width, rnn->inputs, passes[d].bias, NULL,
               passes[d].projected, width);
    }
}
