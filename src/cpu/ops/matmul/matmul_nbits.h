/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft MatMulNBits with activations of 8 bits: nodes whose accuracy_level is 4 and whose
 * weights are constant. The weights are packed on creation.
 */
#ifndef KELP_CPU_OPS_MATMUL_MATMUL_NBITS_H_
#define KELP_CPU_OPS_MATMUL_MATMUL_NBITS_H_

#include "cpu/ops/kernel.h"

enum {
    KELP_NBITS_A,
    KELP_NBITS_B,
    KELP_NBITS_SCALES,
    KELP_NBITS_ZEROS,
    KELP_NBITS_GROUPS,
    KELP_NBITS_BIAS
};

/* Attributes of a node. */
typedef struct kelp_nbits {
    int64_t n, k, bits, block, blocks; /* blocks: of a row of K */
} kelp_nbits;

/* Reads and checks the attributes. */
kelp_status *kelp_nbits_read(const kelp_node *node, kelp_nbits *out) KELP_MUST_USE;

/* Plan of a node with a state. */
typedef struct kelp_nbits_int8_plan {
    int64_t m, rows;                                  /* rows of A, and of a unit of work */
    size_t bytes, scales, sums, floats, result, bias; /* offsets in scratch memory */
    const kelp_op_args *args;
    const void *state;
    const float *a, *row_bias;
    float *c;
} kelp_nbits_int8_plan;

/* Packs the weights. The state stays NULL if 8-bit activations are not permitted or the weights
 * are unsuitable. */
kelp_status *kelp_nbits_int8_create(const kelp_node *node, const kelp_op_env *env,
                                    void **out_state) KELP_MUST_USE;
void kelp_nbits_int8_destroy(void *state, kelp_allocator allocator);
/* The other phases of a node whose state is not NULL. */
kelp_status *kelp_nbits_int8_reshape(const void *state, kelp_op_args *args) KELP_MUST_USE;
kelp_status *kelp_nbits_int8_invoke(const void *state, kelp_op_args *args) KELP_MUST_USE;

#endif
