/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emits layers as ONNX nodes. Each type of layer has a function that is called twice: when the
 * layer is added, to emit it into the draft and to check known types and shapes; and when the
 * network is lowered, to emit it into its block.
 */
#ifndef KELP_BUILDER_EMIT_H_
#define KELP_BUILDER_EMIT_H_

#include "base/assert.h"
#include "builder/network.h"

/* Opset version of the ai.onnx nodes that layers emit. */
#define KELP_BUILDER_OPSET 24

/* The state of emitting one layer. Only its inputs have types and shapes; those of other values are
 * inferred afterwards. */
typedef struct kelp_emit {
    kelp_block *block;
    const kelp_layer *layer;
    kelp_value **inputs; /* inputs of the layer; NULL if omitted */
    kelp_value *outputs[3];
    uint32_t output_count; /* set by the layer's function */
} kelp_emit;

typedef kelp_status *(*kelp_emit_fn)(kelp_emit *e);
/* Functions by layer type; NULL for boundaries of regions, which lower.c handles. */
extern const kelp_emit_fn kelp_emit_table[KELP_LAYER_TYPE_COUNT];

/* Adds a node with one output. `inputs` may contain NULL. The caller sets attributes on
 * `*out_node` (may be NULL) afterwards. */
kelp_status *kelp_emit_node(kelp_emit *e, const kelp_operator *op, kelp_value *const *inputs,
                            size_t input_count, kelp_value **out_value,
                            kelp_node **out_node) KELP_MUST_USE;
/* Adds a node with several outputs. */
kelp_status *kelp_emit_nodes(kelp_emit *e, const kelp_operator *op, kelp_value *const *inputs,
                             size_t input_count, kelp_value **out_values, size_t output_count,
                             kelp_node **out_node) KELP_MUST_USE;
static inline kelp_status *kelp_emit_1(kelp_emit *e, const kelp_operator *op, kelp_value *a,
                                       kelp_value **out) {
    return kelp_emit_node(e, op, &a, 1, out, NULL);
}
static inline kelp_status *kelp_emit_2(kelp_emit *e, const kelp_operator *op, kelp_value *a,
                                       kelp_value *b, kelp_value **out) {
    kelp_value *inputs[2] = {a, b};
    return kelp_emit_node(e, op, inputs, 2, out, NULL);
}
static inline kelp_status *kelp_emit_3(kelp_emit *e, const kelp_operator *op, kelp_value *a,
                                       kelp_value *b, kelp_value *c, kelp_value **out) {
    kelp_value *inputs[3] = {a, b, c};
    return kelp_emit_node(e, op, inputs, 3, out, NULL);
}
static inline void kelp_emit_result(kelp_emit *e, kelp_value *value) {
    KELP_ASSERT(value != NULL && e->output_count < sizeof e->outputs / sizeof *e->outputs);
    e->outputs[e->output_count++] = value;
}

/* Add constants. */
kelp_status *kelp_emit_i64s(kelp_emit *e, const int64_t *values, size_t count,
                            kelp_value **out) KELP_MUST_USE; /* [count] */
kelp_status *kelp_emit_i64(kelp_emit *e, int64_t value, kelp_value **out) KELP_MUST_USE; /* [] */
/* Adds a scalar of any numeric type or bool. */
kelp_status *kelp_emit_scalar(kelp_emit *e, kelp_dtype dtype, double value,
                              kelp_value **out) KELP_MUST_USE;
/* Adds weights of the layer under their name, or as "<layer>.<role>". */
kelp_status *kelp_emit_weights(kelp_emit *e, const kelp_weights *weights, const char *role,
                               int32_t rank, const int64_t *shape, kelp_value **out) KELP_MUST_USE;
kelp_status *kelp_emit_cast(kelp_emit *e, kelp_value *value, kelp_dtype to,
                            kelp_value **out) KELP_MUST_USE;

/* Applies an activation to a value of type `dtype`. */
kelp_status *kelp_emit_activate(kelp_emit *e, kelp_activation type, float alpha, float beta,
                                kelp_dtype dtype, kelp_value *x, kelp_value **out) KELP_MUST_USE;
bool kelp_emit_is_float(kelp_dtype dtype);

/* Check an input. Unknown ranks and types are accepted. */
kelp_status *kelp_emit_check_rank(const kelp_emit *e, size_t input, int32_t min_rank,
                                  int32_t max_rank) KELP_MUST_USE;
kelp_status *kelp_emit_check_axis(const kelp_emit *e, size_t input, int32_t axis) KELP_MUST_USE;
kelp_status *kelp_emit_check_float(const kelp_emit *e, size_t input) KELP_MUST_USE;
kelp_status *kelp_emit_check_dtype(const kelp_emit *e, size_t input,
                                   kelp_dtype dtype) KELP_MUST_USE;
kelp_status *kelp_emit_check_index(const kelp_emit *e,
                                   size_t input) KELP_MUST_USE; /* int32 or int64 */
kelp_status *kelp_emit_check_same_dtype(const kelp_emit *e, size_t a, size_t b) KELP_MUST_USE;
/* Checks that ranks are equal, and dimensions equal or 1. */
kelp_status *kelp_emit_check_broadcast(const kelp_emit *e, size_t a, size_t b) KELP_MUST_USE;
/* Checks that a shape of the caller has 0 to KELP_MAX_RANK dimensions. */
kelp_status *kelp_emit_check_shape(const kelp_emit *e, const kelp_shape *shape,
                                   const char *what) KELP_MUST_USE;
/* Creates an error of the layer. */
kelp_status *kelp_emit_fail(const kelp_emit *e, const char *format, ...)
    KELP_PRINTF(2, 3) KELP_MUST_USE;

/* Declares the functions of the layers. */
#define KELP_LAYER(name, text) kelp_status *kelp_emit_##name(kelp_emit *e) KELP_MUST_USE;
#include <kelp/layers.inc>
#undef KELP_LAYER

#endif
