/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RNN, GRU and LSTM: one description, and the steps over floats and doubles. Source: ONNX operator
 * specification; Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997; Cho et al., "Learning
 * Phrase Representations", 2014.
 */
#ifndef KELP_CPU_OPS_RNN_RNN_H_
#define KELP_CPU_OPS_RNN_RNN_H_

#include "cpu/ops/kernel.h"

typedef enum kelp_rnn_kind { KELP_RNN, KELP_GRU, KELP_LSTM } kelp_rnn_kind;

typedef enum kelp_rnn_function {
    KELP_RNN_TANH,
    KELP_RNN_SIGMOID,
    KELP_RNN_RELU,
    KELP_RNN_AFFINE,
    KELP_RNN_LEAKY_RELU,
    KELP_RNN_THRESHOLDED_RELU,
    KELP_RNN_SCALED_TANH,
    KELP_RNN_HARD_SIGMOID,
    KELP_RNN_ELU,
    KELP_RNN_SOFTSIGN,
    KELP_RNN_SOFTPLUS
} kelp_rnn_function;

typedef struct kelp_rnn_act {
    kelp_rnn_function function;
    float alpha, beta;
} kelp_rnn_act;

typedef struct kelp_rnn {
    kelp_rnn_kind kind;
    int64_t steps, batch, inputs, hidden, directions;
    int64_t gates; /* 1, 3 or 4; weights have gates * hidden rows */
    bool backward; /* the first direction */
    bool linear_before_reset, input_forget;
    bool quantizes; /* inputs, and each step's state, go through 8 bits on their way to the weights
                     */
    float clip;     /* 0: none */
    kelp_rnn_act acts[2][3];
    int64_t y_step, y_direction, y_batch; /* strides */
    int64_t h_direction, h_batch;         /* of states, given and left */
} kelp_rnn;

/* Operands; elements are of the run's type. Weights of floats are packed
 * (kelp_gemm_pack_transposed): of W gates * hidden columns; of R the same, but for GRU first two
 * gates, then the third. Those of doubles lie as the operator has them. R of a run that quantizes:
 * a scale and a zero point for each column, as floats, then bytes in panels (byte_product). What is
 * NULL is left out. */
typedef struct kelp_rnn_data {
    const void *x; /* [steps, batch, inputs] */
    const void *w[2], *r[2];
    bool plain;       /* float weights lie as the operator has them: for a few rows, once */
    const void *bias; /* [directions, 2 * gates * hidden] */
    const int32_t *lengths;
    const void *h, *c;
    const void *peepholes; /* [directions, 3 * hidden] */
    void *y, *y_h, *y_c;
    void *scratch;
} kelp_rnn_data;

/* What `quantizes` does to an array; y may be x. */
void kelp_rnn_quantize(const float *x, float *y, int64_t count);
/* Elements of scratch; false when that overflows. */
bool kelp_rnn_scratch(const kelp_rnn *rnn, size_t *out_elements);
void kelp_rnn_run_f32(const kelp_op_env *env, const kelp_rnn *rnn, const kelp_rnn_data *data);
void kelp_rnn_run_f64(const kelp_op_env *env, const kelp_rnn *rnn, const kelp_rnn_data *data);

#endif
