/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recurrent layers RNN, GRU and LSTM over floats and doubles. Source: ONNX operator specification;
 * Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997; Cho et al., "Learning Phrase
 * Representations", 2014.
 */
#ifndef KELP_CPU_OPS_RNN_RNN_H_
#define KELP_CPU_OPS_RNN_RNN_H_

#include "cpu/kernels/gemm/gemm_int8.h"
#include "cpu/ops/kernel.h"

/* The type of layer. */
typedef enum kelp_rnn_kind { KELP_RNN, KELP_GRU, KELP_LSTM } kelp_rnn_kind;

/* An activation function. */
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

/* An activation with its parameters. */
typedef struct kelp_rnn_act {
    kelp_rnn_function function;
    float alpha, beta;
} kelp_rnn_act;

/* The configuration and shapes of a layer. */
typedef struct kelp_rnn {
    kelp_rnn_kind kind;
    int64_t steps, batch, inputs, hidden, directions;
    int64_t gates; /* 1, 3 or 4; weights have gates * hidden rows */
    bool backward; /* the first direction runs backward */
    bool linear_before_reset, input_forget;
    bool quantizes; /* inputs and states are quantized to 8 bits and multiplied by 8-bit weights */
    float clip;     /* 0: no clipping */
    kelp_rnn_act acts[2][3];
    int64_t y_step, y_direction, y_batch; /* strides */
    int64_t h_direction, h_batch;         /* strides of initial and final states */
} kelp_rnn;

/* A matrix of 8 bits: quantized inputs, or packed weights with a scale for each column. */
typedef struct kelp_rnn_bytes {
    const uint8_t *data; /* of inputs */
    float scale;
    uint8_t zero;
    kelp_int8_weights weights;
    const float *scales;
} kelp_rnn_bytes;

/* Operands, with elements of the type of the run; NULL for omitted ones. Float weights are packed
 * (kelp_gemm_pack_transposed): W with gates * hidden columns; R likewise, but of GRU the first two
 * gates, then the third. Weights of doubles have the layout of the operator. */
typedef struct kelp_rnn_data {
    const void *x;                                  /* [steps, batch, inputs] */
    kelp_rnn_bytes x_bytes, w_bytes[2], r_bytes[2]; /* instead of x, w, r of a run that quantizes */
    const void *w[2], *r[2];
    bool plain;       /* float weights have the layout of the operator; for few rows */
    const void *bias; /* [directions, 2 * gates * hidden] */
    const int32_t *lengths;
    const void *h, *c;
    const void *peepholes; /* [directions, 3 * hidden] */
    void *y, *y_h, *y_c;
    void *scratch;
} kelp_rnn_data;

/* Computes the elements of scratch memory; returns false on overflow. */
bool kelp_rnn_scratch(const kelp_rnn *rnn, size_t *out_elements);
/* Runs all steps of all directions. */
void kelp_rnn_run_f32(const kelp_op_env *env, const kelp_rnn *rnn, const kelp_rnn_data *data);
void kelp_rnn_run_f64(const kelp_op_env *env, const kelp_rnn *rnn, const kelp_rnn_data *data);

#endif
