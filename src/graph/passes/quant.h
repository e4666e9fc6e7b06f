/* SPDX-License-Identifier: Apache-2.0 */
/* What the passes over quantized operators share. */
#ifndef KELP_GRAPH_PASSES_QUANT_H_
#define KELP_GRAPH_PASSES_QUANT_H_

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

/* A node and those after it that one kernel does. */
typedef struct kelp_quant_chain {
    kelp_value *inputs[KELP_Q_INPUTS];
    kelp_node *last;
    const char *activation;
    kelp_node *swallowed[12];
    size_t count;
} kelp_quant_chain;

/* True when `node` has the operator and is not removed. NULL has none. */
bool kelp_quant_is_op(const kelp_node *node, const kelp_operator *op);
/* Input `index`; NULL when it is left out. */
kelp_value *kelp_quant_input(const kelp_node *node, size_t index);
/* The chain gets longer by a node. */
void kelp_quant_take(kelp_quant_chain *chain, kelp_node *node);
/* The only reader of what the chain gives so far; NULL when there are others. */
kelp_node *kelp_quant_next(const kelp_quant_chain *chain);
/* Takes what may follow: rounding, an Add of `columns` constants (0: none), activation, bytes. */
void kelp_quant_follow(kelp_quant_chain *chain, int64_t columns);
/* An Add of `columns` constants, which becomes the addend, and an activation alone. */
void kelp_quant_follow_floats(kelp_quant_chain *chain, int64_t columns);
/* Puts `op` in the chain's place; a convolution keeps `attributes`. */
kelp_status *kelp_quant_replace(kelp_block *block, kelp_quant_chain *chain, const kelp_operator *op,
                                kelp_attr *attributes) KELP_MUST_USE;
/* The same with `count` inputs of its own. */
kelp_status *kelp_quant_replace_by(kelp_block *block, kelp_quant_chain *chain,
                                   const kelp_operator *op, kelp_value *const *inputs, size_t count,
                                   kelp_attr *attributes) KELP_MUST_USE;

#endif
