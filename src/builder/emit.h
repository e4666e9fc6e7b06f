/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a layer to nodes of ONNX. Each type of layer has one function, which is called twice: when
 * the layer is added, into the draft, where it also checks what can be checked; and when the
 * network is lowered, into the block that the layer belongs to.
 */
#ifndef KELP_BUILDER_EMIT_H_
#define KELP_BUILDER_EMIT_H_

#include "builder/network.h"

/* The opset version of the ai.onnx nodes that layers emit. */
#define KELP_BUILDER_OPSET 24

/* Only the layer's inputs have types and shapes; values that a function makes on the way get theirs
 * afterwards. */
typedef struct kelp_emit {
    kelp_block *block;
    const kelp_layer *layer;
    kelp_value **inputs; /* of the layer, NULL where left out */
    kelp_value *outputs[3];
    uint32_t output_count; /* set by the layer's function */
} kelp_emit;

typedef kelp_status *(*kelp_emit_fn)(kelp_emit *e);
/* By type; NULL for boundaries of regions, which lower.c knows. */
extern const kelp_emit_fn kelp_emit_table[KELP_LAYER_TYPE_COUNT];

/* A node with one output. `inputs` may hold NULL. Attributes are set on `*out_node` (may be NULL)
 * afterwards. */
kelp_status *kelp_emit_node(kelp_emit *e, const kelp_operator *op, kelp_value *const *inputs,
                            size_t input_count, kelp_value **out_value,
                            kelp_node **out_node) KELP_MUST_USE;
/* The same with several outputs. */
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
    e->outputs[e->output_count++] = value;
}

/* Constants. */
kelp_status *kelp_emit_i64s(kelp_emit *e, const int64_t *values, size_t count,
                            kelp_value **out) KELP_MUST_USE; /* [count] */
kelp_status *kelp_emit_i64(kelp_emit *e, int64_t value, kelp_value **out) KELP_MUST_USE; /* [] */
/* A scalar of any numeric type or bool. */
kelp_status *kelp_emit_scalar(kelp_emit *e, kelp_dtype dtype, double value,
                              kelp_value **out) KELP_MUST_USE;
/* Weights of the layer under their name, or "<layer>.<role>". */
kelp_status *kelp_emit_weights(kelp_emit *e, const kelp_weights *weights, const char *role,
                               int32_t rank, const int64_t *shape, kelp_value **out) KELP_MUST_USE;
kelp_status *kelp_emit_cast(kelp_emit *e, kelp_value *value, kelp_dtype to,
                            kelp_value **out) KELP_MUST_USE;

/* One of the activations, of a value of type `dtype`. */
kelp_status *kelp_emit_activate(kelp_emit *e, kelp_activation type, float alpha, float beta,
                                kelp_dtype dtype, kelp_value *x, kelp_value **out) KELP_MUST_USE;
bool kelp_emit_is_float(kelp_dtype dtype);

/* Checks, with what is known; unknown ranks and types pass. */
kelp_status *kelp_emit_check_rank(const kelp_emit *e, size_t input, int32_t least,
                                  int32_t most) KELP_MUST_USE;
kelp_status *kelp_emit_check_axis(const kelp_emit *e, size_t input, int32_t axis) KELP_MUST_USE;
kelp_status *kelp_emit_check_float(const kelp_emit *e, size_t input) KELP_MUST_USE;
kelp_status *kelp_emit_check_dtype(const kelp_emit *e, size_t input,
                                   kelp_dtype dtype) KELP_MUST_USE;
kelp_status *kelp_emit_check_index(const kelp_emit *e, size_t input) KELP_MUST_USE; /* i32, i64 */
kelp_status *kelp_emit_check_same_dtype(const kelp_emit *e, size_t a, size_t b) KELP_MUST_USE;
/* Extents equal or 1, equal ranks. */
kelp_status *kelp_emit_check_broadcast(const kelp_emit *e, size_t a, size_t b) KELP_MUST_USE;
kelp_status *kelp_emit_fail(const kelp_emit *e, const char *format, ...)
    KELP_PRINTF(2, 3) KELP_MUST_USE;

/* The layers' functions. */
#define KELP_LAYER(name, text) kelp_status *kelp_emit_##name(kelp_emit *e) KELP_MUST_USE;
#include <kelp/layers.inc>
#undef KELP_LAYER

#endif
