/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element-wise micro-kernels for floats: activations, binary arithmetic, and the last step of a
 * GEMM or convolution (bias, residual, activation). No function reads or writes outside its
 * operands, which need the alignment of a float.
 */
#ifndef KELP_CPU_KERNELS_ELEMENTWISE_ELEMENTWISE_KERNELS_H_
#define KELP_CPU_KERNELS_ELEMENTWISE_ELEMENTWISE_KERNELS_H_

#include <stdbool.h>
#include <stdint.h>

/* Functions of one float. KELP_ACT_NONE copies. */
typedef enum kelp_act {
    KELP_ACT_NONE = 0,
    KELP_ACT_RELU,
    KELP_ACT_GELU,      /* x/2 (1 + erf(x/√2)) */
    KELP_ACT_GELU_TANH, /* its approximation by tanh */
    KELP_ACT_TANH,
    KELP_ACT_SIGMOID,
    KELP_ACT_SILU,
    KELP_ACT_HARD_SWISH, /* x min(max(x / 6 + 1/2, 0), 1) */
    KELP_ACT_RELU6,
    KELP_ACT_EXP,
    KELP_ACT_ERF,
    KELP_ACT_SQRT,
    KELP_ACT_COUNT
} kelp_act;

/* Returns true for activations of so few instructions that other kernels apply them to the vectors
 * that they have in registers. */
static inline bool kelp_act_is_light(kelp_act act) {
    return act == KELP_ACT_NONE || act == KELP_ACT_RELU || act == KELP_ACT_RELU6 ||
           act == KELP_ACT_HARD_SWISH;
}

/* Returns true for activations that `finish` and `finish_rows` can apply. */
static inline bool kelp_act_is_fusable(kelp_act act) {
    return act <= KELP_ACT_RELU6;
}

/* Functions of two floats. */
typedef enum kelp_bin {
    KELP_BIN_ADD = 0,
    KELP_BIN_SUB,
    KELP_BIN_MUL,
    KELP_BIN_DIV,
    KELP_BIN_PRELU, /* a < 0 ? a * b : a */
    KELP_BIN_MIN,   /* of a NaN and a number: the NaN */
    KELP_BIN_MAX,
    KELP_BIN_COUNT
} kelp_bin;

/* Copies rows of `width` floats from the result of a GEMM to the output, and adds bias and residual
 * (NULL: none). Rows of `from` are from_step floats apart and padded to whole vectors: up to 15
 * floats after a row are read. Rows of `to` and `residual` are to_step floats apart. */
typedef struct kelp_finish {
    const float *from, *residual;
    float *to;
    int64_t from_step, to_step, rows, width;
    float bias;
} kelp_finish;

typedef struct kelp_elementwise_kernels {
    /* y[i] = act(x[i]), i < count. y may be x. */
    void (*act[KELP_ACT_COUNT])(const float *x, float *y, int64_t count);
    /* y[i] = bin(a[i * a_stride], b[i * b_stride]), i < count. Strides are 0 or 1; y may be a or b.
     */
    void (*bin[KELP_BIN_COUNT])(float *y, const float *a, const float *b, int64_t count,
                                int a_stride, int b_stride);
    /* y[i] = x[i] * factor[i * stride] + summand[i * stride], i < count. `stride` is 0 or 1; y may
     * be x. */
    void (*scale)(float *y, const float *x, const float *factor, const float *summand,
                  int64_t count, int stride);
    /* y[i] = act(y[i] + bias[i] + row_bias + residual[i]), i < count. `bias` and `residual` may be
     * NULL; the activation must be fusable. */
    void (*finish)(float *y, const float *bias, float row_bias, const float *residual,
                   int64_t count, kelp_act act);
    /* to = act(from + bias + residual) over several rows; the activation must be fusable. */
    void (*finish_rows)(const kelp_finish *finish, kelp_act act);
} kelp_elementwise_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_elementwise_kernels *kelp_elementwise_kernels_get(void);

#endif
