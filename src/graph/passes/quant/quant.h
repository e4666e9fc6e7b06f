/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the passes over quantized operators. */
#ifndef KELP_GRAPH_PASSES_QUANT_QUANT_H_
#define KELP_GRAPH_PASSES_QUANT_QUANT_H_

#include "graph/passes/passes.h"

/* Inputs of kelp::QMatMul and kelp::QConv. */
enum {
    KELP_Q_X,
    KELP_Q_X_SCALE,
    KELP_Q_X_ZERO,
    KELP_Q_W,
    KELP_Q_W_SCALE,
    KELP_Q_W_ZERO,
    KELP_Q_BIAS,
    KELP_Q_STEP,
    KELP_Q_STEP_ZERO,
    KELP_Q_ADDEND,
    KELP_Q_Y,
    KELP_Q_Y_ZERO,
    KELP_Q_INPUTS
};

/* A sequence of nodes that one kernel replaces. */
typedef struct kelp_quant_chain {
    kelp_value *inputs[KELP_Q_INPUTS];
    kelp_node *last;
    const char *activation;
    kelp_node *nodes[12];
    size_t count;
} kelp_quant_chain;

/* Returns true if `node` is not NULL, has the operator and is not removed. */
bool kelp_quant_is_op(const kelp_node *node, const kelp_operator *op);
/* Returns input `index`, or NULL when it is omitted. */
kelp_value *kelp_quant_input(const kelp_node *node, size_t index);
/* Appends a node to the chain. */
void kelp_quant_take(kelp_quant_chain *chain, kelp_node *node);
/* Returns the only reader of the chain's result, or NULL when there are several. */
kelp_node *kelp_quant_next(const kelp_quant_chain *chain);
/* Appends the nodes that may follow: rounding, an Add of `columns` constants (0: none), an
 * activation, quantization. */
void kelp_quant_follow(kelp_quant_chain *chain, int64_t columns);
/* Appends an Add of `columns` constants, which becomes the addend, and an activation only. */
void kelp_quant_follow_floats(kelp_quant_chain *chain, int64_t columns);
/* Replaces the chain by a node of `op`; a convolution keeps `attributes`. */
kelp_status *kelp_quant_replace(kelp_block *block, kelp_quant_chain *chain, const kelp_operator *op,
                                kelp_attr *attributes) KELP_MUST_USE;
/* Replaces the chain by a node of `op` with other inputs. */
kelp_status *kelp_quant_replace_by(kelp_block *block, kelp_quant_chain *chain,
                                   const kelp_operator *op, kelp_value *const *inputs, size_t count,
                                   kelp_attr *attributes) KELP_MUST_USE;

#endif
