/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse-mode differentiation of a stretch of a graph: what its rules build with. */
#ifndef KELP_GRAPH_GRADIENT_H_
#define KELP_GRAPH_GRADIENT_H_

#include "graph/passes/passes.h"

/* The ai.onnx version of the operators that are written. */
#define KELP_TAPE_OPSET 18

typedef struct kelp_tape {
    kelp_block *block;
    kelp_node *gradient; /* the Gradient node; what is written stands before it */
    kelp_value **grads;  /* by value id; NULL: none yet */
    const bool *active;  /* by value id: depends on what is differentiated by */
    size_t value_count;  /* of the two */
} kelp_tape;

/* One derivative: adds to the gradients of `node`'s inputs, given `g`, that of its output 0. */
typedef kelp_status *(*kelp_gradient_rule)(kelp_tape *tape, const kelp_node *node, kelp_value *g);
/* NULL when no derivative is known. A rule that does nothing is that of a step: zero. */
kelp_gradient_rule kelp_gradient_find_rule(const kelp_node *node);

/* ---- writing ---- `out_node` may be NULL; inputs are NULL when left out. */
kelp_status *kelp_tape_emit(kelp_tape *tape, const kelp_operator *op, kelp_value *const *inputs,
                            size_t input_count, kelp_value **out,
                            kelp_node **out_node) KELP_MUST_USE;
kelp_status *kelp_tape_unary(kelp_tape *tape, const kelp_operator *op, kelp_value *a,
                             kelp_value **out) KELP_MUST_USE;
kelp_status *kelp_tape_binary(kelp_tape *tape, const kelp_operator *op, kelp_value *a,
                              kelp_value *b, kelp_value **out) KELP_MUST_USE;
/* A scalar of the type that `like` has when the graph runs. */
kelp_status *kelp_tape_scalar(kelp_tape *tape, double number, kelp_value *like,
                              kelp_value **out) KELP_MUST_USE;
/* A constant list of int64. */
kelp_status *kelp_tape_list(kelp_tape *tape, const int64_t *items, size_t count,
                            kelp_value **out) KELP_MUST_USE;
/* `number` in the shape and type of `like`. */
kelp_status *kelp_tape_full(kelp_tape *tape, double number, kelp_value *like,
                            kelp_value **out) KELP_MUST_USE;
/* Adds `g`, summed over the axes along which `input` was broadcast, to the gradient of `input`. */
kelp_status *kelp_tape_add(kelp_tape *tape, kelp_value *input, kelp_value *g) KELP_MUST_USE;
bool kelp_tape_wants(const kelp_tape *tape, const kelp_value *input);

#endif
