/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the outputs of a model with those of ONNX Runtime. */
#ifndef KELP_CLI_COMPARE_COMPARE_H_
#define KELP_CLI_COMPARE_COMPARE_H_

#include "base/arena.h"
#include "base/text/json.h"
#include "cli/model.h"

/* Difference of two tensors. Elements a and b are equal if |a - b| <= atol + rtol * |b|, or if both
 * are NaN. Integers, booleans and strings must be identical. */
typedef struct kelp_difference {
    const char *name; /* of the output */
    kelp_dtype dtype;
    char found[64], expected[64]; /* types and shapes, if they differ; else "" */
    int64_t elements, differing;
    double max_abs, max_rel;
} kelp_difference;

typedef struct kelp_compare_options {
    const char *path;
    const kelp_model_options *model;
    double rtol, atol;
} kelp_compare_options;

typedef struct kelp_comparison {
    kelp_difference *outputs;
    size_t count, differing; /* outputs that differ */
    /* The first node in the order of the model whose output differs when all intermediate values
     * are outputs; `node_op` is NULL if there is none. */
    kelp_arena strings;
    const char *node_op, *node_name;
    kelp_difference node;
    size_t compared_values;    /* 0: the values were not compared */
    kelp_status *not_compared; /* the reason */
} kelp_comparison;

/* Compares two tensors. */
kelp_difference kelp_difference_of(const char *name, const kelp_tensor *found,
                                   const kelp_tensor *expected, double rtol, double atol);
static inline bool kelp_difference_is(const kelp_difference *d) {
    return d->differing > 0 || d->found[0] != '\0';
}

/* Runs the model on ONNX Runtime with the inputs of the context, which has run, and compares the
 * outputs. If they differ, finds the first node that differs. Fails if ONNX Runtime is not
 * installed or cannot run the model. The caller calls deinit, also after a failure. */
kelp_status *kelp_compare(const kelp_compare_options *options, const kelp_cli_model *model,
                          const kelp_inputs *inputs, kelp_comparison *out) KELP_MUST_USE;
void kelp_comparison_deinit(kelp_comparison *comparison);
void kelp_comparison_put_text(const kelp_comparison *comparison, kelp_buf *out);
void kelp_comparison_put_json(const kelp_comparison *comparison, kelp_json_writer *writer);

/* expose.c: a model file with further outputs. */
typedef struct kelp_exposed_value {
    const char *name, *op_type, *node;
} kelp_exposed_value;
/* Appends the ModelProto `model` with all tensors that nodes of the main graph compute as outputs,
 * after its own outputs. `graph` is the loaded model. The values are listed in the order of the
 * nodes; their strings and the list live in the arena. */
kelp_status *kelp_expose_values(kelp_str model, const kelp_graph *graph, kelp_arena *arena,
                                kelp_exposed_value **out_values, size_t *out_count,
                                kelp_buf *out) KELP_MUST_USE;

#endif
