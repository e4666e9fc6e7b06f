/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of a node (branches and bodies) that the engine has prepared. They are scheduled once for
 * each set of shapes, with kernels that all contexts share. Operators find their blocks in their
 * kelp_op_env. A body belongs to a context: one thread at a time.
 */
#ifndef KELP_RUNTIME_OPSET_BODY_H_
#define KELP_RUNTIME_OPSET_BODY_H_

#include "runtime/opset/env.h"

typedef struct kelp_body kelp_body;
struct kelp_body {
    const kelp_block *block;
    /* Outputs [first_output, first_output + carried) are the inputs from first_input on in the next
     * run. Such an output stays valid until the run after the next. It is not copied if it is its
     * own input, unchanged. */
    size_t carried, first_output, first_input;
    kelp_status *(*shape)(kelp_body *body, const kelp_tensor *const *inputs, kelp_tensor *outputs,
                          bool *out_known);
    /* Returns true if output `output` is input `input`, unchanged. Valid after `shape`. */
    bool (*output_is_input)(const kelp_body *body, size_t output, size_t input);
    kelp_status *(*run)(kelp_body *body, const kelp_tensor *const *inputs, kelp_tensor *outputs);
    kelp_body *next; /* of the same node */
};

/* Finds the body of an attribute's block. Fails with UNIMPLEMENTED outside of an engine, and with
 * INVALID_ARGUMENT if the node has no such block. */
kelp_status *kelp_env_body(const kelp_op_env *env, const kelp_node *node, const char *attribute,
                           kelp_body **out) KELP_MUST_USE;

/* Infers the outputs for inputs of these types and shapes. `inputs` are the block's own inputs and
 * then the node's captures; they may lack data. `outputs` receive type and shape, and data if it
 * does not depend on the inputs' data (valid until the next use of the body). `*out_known` is false
 * if shapes depend on data. */
static inline kelp_status *kelp_body_shape(kelp_body *body, const kelp_tensor *const *inputs,
                                           kelp_tensor *outputs, bool *out_known) {
    return body->shape(body, inputs, outputs, out_known);
}

/* Runs the body. An output with data is written there; its type and shape give the size. The other
 * outputs are in the body's memory until its next run. Errors name the node inside the body. */
static inline kelp_status *kelp_body_run(kelp_body *body, const kelp_tensor *const *inputs,
                                         kelp_tensor *outputs) {
    return body->run(body, inputs, outputs);
}

/* Returns the number of the node's inputs without the captures of its blocks (kelp_pass_captures).
 */
size_t kelp_node_own_inputs(const kelp_node *node);

#endif
