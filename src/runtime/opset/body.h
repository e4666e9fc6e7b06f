/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of a node (branches, bodies), prepared by the engine: scheduled once for each set of
 * shapes, with kernels that all contexts share. Operators that own blocks find theirs in their env.
 * One thread at a time, as everything of a context.
 */
#ifndef KELP_RUNTIME_OPSET_BODY_H_
#define KELP_RUNTIME_OPSET_BODY_H_

#include "runtime/opset/env.h"

typedef struct kelp_body kelp_body;
struct kelp_body {
    const kelp_block *block;
    /* Outputs [first_output, first_output + carried) become inputs from first_input on in the next
     * run: what a run gives there stays where it is until the run after the next, and one that is
     * its input unchanged is not copied. */
    size_t carried, first_output, first_input;
    kelp_status *(*shape)(kelp_body *body, const kelp_tensor *const *inputs, kelp_tensor *outputs,
                          bool *out_known);
    /* After `shape`: output `output` is input `input`, unchanged. */
    bool (*output_is_input)(const kelp_body *body, size_t output, size_t input);
    kelp_status *(*run)(kelp_body *body, const kelp_tensor *const *inputs, kelp_tensor *outputs);
    kelp_body *next; /* of the node */
};

/* Finds the body of an attribute's block. Fails with UNIMPLEMENTED outside of an engine, and with
 * INVALID_ARGUMENT if the node has no such block. */
kelp_status *kelp_env_body(const kelp_op_env *env, const kelp_node *node, const char *attribute,
                           kelp_body **out) KELP_MUST_USE;

/* Infers the outputs for inputs of these types and shapes: `outputs` receive type and shape, and
 * data where it does not depend on the inputs' data (valid until the body is used again);
 * out_known is false if shapes depend on data. Inputs, the block's own and then the node's
 * captures, may lack data. */
static inline kelp_status *kelp_body_shape(kelp_body *body, const kelp_tensor *const *inputs,
                                           kelp_tensor *outputs, bool *out_known) {
    return body->shape(body, inputs, outputs, out_known);
}

/* Runs the body. An output with data is written there (its type and shape say how large it is); the
 * others are in the body's memory until its next run. Errors name the node inside. */
static inline kelp_status *kelp_body_run(kelp_body *body, const kelp_tensor *const *inputs,
                                         kelp_tensor *outputs) {
    return body->run(body, inputs, outputs);
}

/* Returns the number of the node's own inputs, without captures of its blocks
 * (kelp_pass_captures). */
size_t kelp_node_own_inputs(const kelp_node *node);

#endif
