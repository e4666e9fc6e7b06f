/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the ai.onnx.ml operators: state in an arena, attributes, post-transforms of scores.
 * Source: ONNX operator specification, ai.onnx.ml versions 1 to 5; where it is silent, the results
 * of ONNX Runtime.
 */
#ifndef KELP_CPU_OPS_ML_ML_H_
#define KELP_CPU_OPS_ML_ML_H_

#include "base/arena.h"
#include "cpu/ops/kernel.h"

/* Creates INVALID_ARGUMENT with the name and the operator of the node. */
#define KELP_ML_ERROR(node, format, ...)                                               \
    KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (%s): " format, kelp_node_name(node), \
               kelp_node_op_type(node), __VA_ARGS__)

/* The first member of a kernel's state. The state and everything it points to are in the arena. */
typedef struct kelp_ml_state {
    kelp_arena arena;
} kelp_ml_state;
/* Creates a zeroed state of `size_bytes`, whose first member is a kelp_ml_state. */
kelp_status *kelp_ml_state_create(const kelp_op_env *env, size_t size_bytes,
                                  void *out_state) KELP_MUST_USE;
/* Destroys a state or NULL; the `destroy` of the kernels. */
void kelp_ml_state_destroy(void *state, kelp_allocator allocator);

/* The attribute 'post_transform'. */
typedef enum kelp_ml_transform {
    KELP_ML_NONE = 0,
    KELP_ML_SOFTMAX = 1,
    KELP_ML_LOGISTIC = 2,
    KELP_ML_SOFTMAX_ZERO = 3,
    KELP_ML_PROBIT = 4
} kelp_ml_transform;
/* Reads the attribute "post_transform". */
kelp_status *kelp_ml_transform_read(const kelp_node *node, kelp_ml_transform *out) KELP_MUST_USE;
/* Transforms the scores of one row. */
void kelp_ml_transform_apply(kelp_ml_transform transform, double *inout_scores, size_t count);
/* Returns 1 / (1 + exp(-x)). */
double kelp_ml_logistic(double x);
/* Computes the scores of both classes of a binary classifier from the score of the second: the
 * first is -score or 1 - score. Applies LOGISTIC only, as ONNX Runtime does. */
void kelp_ml_second_score(kelp_ml_transform transform, bool negate, double score, double *out);

/* Labels of classes: strings or integers. */
typedef struct kelp_ml_labels {
    const kelp_string *strings; /* NULL: numbers */
    const int64_t *numbers;
    size_t count;
} kelp_ml_labels;
/* Reads the labels from the attribute `strings` or `numbers`. Returns INVALID_ARGUMENT unless
 * exactly one of them is set. */
kelp_status *kelp_ml_labels_read(const kelp_node *node, const char *strings, const char *numbers,
                                 kelp_ml_labels *out) KELP_MUST_USE;
/* Writes label `index` as element `at` of a tensor of strings or int64. */
void kelp_ml_label_write(const kelp_ml_labels *labels, size_t index, kelp_tensor *to, int64_t at);

/* Returns the rows and columns of a tensor [N,C] or [C] (one row). Returns INVALID_ARGUMENT for
 * another rank and UNIMPLEMENTED unless the elements are float, double, int32 or int64. */
kelp_status *kelp_ml_rows(const kelp_op_args *args, const kelp_tensor *x, int64_t *out_rows,
                          int64_t *out_columns) KELP_MUST_USE;
/* Reads row `row` as doubles. */
void kelp_ml_read_row(const kelp_tensor *x, int64_t row, int64_t columns, double *out);
/* Returns one element as double. */
double kelp_ml_read(const kelp_tensor *x, int64_t index);
/* Reads an attribute of floats, or its variant of type tensor (NULL: none), as doubles in the
 * arena. The count is 0 if neither is set. */
kelp_status *kelp_ml_numbers(kelp_arena *arena, const kelp_node *node, const char *floats,
                             const char *tensor, const double **out,
                             size_t *out_count) KELP_MUST_USE;

#endif
