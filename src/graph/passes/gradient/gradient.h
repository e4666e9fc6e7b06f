/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse-mode differentiation: the tape that rules emit nodes to. */
#ifndef KELP_GRAPH_PASSES_GRADIENT_GRADIENT_H_
#define KELP_GRAPH_PASSES_GRADIENT_GRADIENT_H_

#include "graph/passes/passes.h"

/* The ai.onnx version of emitted nodes. */
#define KELP_TAPE_OPSET 18

/* The state of the expansion of one Gradient node. */
typedef struct kelp_tape {
    kelp_block *block;
    kelp_node *gradient; /* the Gradient node; nodes are emitted before it */
    kelp_value **grads;  /* by value id; NULL: none yet */
    const bool *active;  /* by value id: true when the value depends on xs */
    size_t value_count;  /* length of `grads` and `active` */
} kelp_tape;

/* The derivative of one operator: adds to the gradients of the inputs of `node`. `g` is the
 * gradient of its output 0. */
typedef kelp_status *(*kelp_gradient_rule)(kelp_tape *tape, const kelp_node *node, kelp_value *g);
/* Returns the rule of the node's operator; NULL if no derivative is known. The rule of a step
 * function, whose derivative is zero, does nothing. */
kelp_gradient_rule kelp_gradient_find_rule(const kelp_node *node);

/* ---- emitting nodes ---- */
/* Emits a node with one output. `out_node` may be NULL; an omitted input is NULL. */
kelp_status *kelp_tape_emit(kelp_tape *tape, const kelp_operator *op, kelp_value *const *inputs,
                            size_t input_count, kelp_value **out,
                            kelp_node **out_node) KELP_MUST_USE;
/* Emits a node with one or two inputs. */
kelp_status *kelp_tape_unary(kelp_tape *tape, const kelp_operator *op, kelp_value *a,
                             kelp_value **out) KELP_MUST_USE;
kelp_status *kelp_tape_binary(kelp_tape *tape, const kelp_operator *op, kelp_value *a,
                              kelp_value *b, kelp_value **out) KELP_MUST_USE;
/* Emits a scalar of the type that `like` has at run time. */
kelp_status *kelp_tape_scalar(kelp_tape *tape, double number, kelp_value *like,
                              kelp_value **out) KELP_MUST_USE;
/* Emits a constant list of int64. */
kelp_status *kelp_tape_list(kelp_tape *tape, const int64_t *items, size_t count,
                            kelp_value **out) KELP_MUST_USE;
/* Emits a tensor filled with `number`, of the shape and type of `like`. */
kelp_status *kelp_tape_full(kelp_tape *tape, double number, kelp_value *like,
                            kelp_value **out) KELP_MUST_USE;
/* Adds `g` to the gradient of `input`, summed over the axes along which `input` was broadcast. */
kelp_status *kelp_tape_add(kelp_tape *tape, kelp_value *input, kelp_value *g) KELP_MUST_USE;
/* Returns true if the gradient of `input` (may be NULL) is needed. */
bool kelp_tape_wants(const kelp_tape *tape, const kelp_value *input);

#endif
