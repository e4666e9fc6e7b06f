/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ai.onnx.ml operators share: state in an arena, attributes as they come, scores made into
 * probabilities. Source: ONNX operator specification, ai.onnx.ml versions 1 to 5; where that is
 * silent, what ONNX Runtime answers.
 */
#ifndef KELP_CPU_OPS_ML_ML_H_
#define KELP_CPU_OPS_ML_ML_H_

#include "base/arena.h"
#include "cpu/ops/kernel.h"

#define KELP_ML_ERROR(node, format, ...)                                               \
    KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (%s): " format, kelp_node_name(node), \
               kelp_node_op_type(node), __VA_ARGS__)

/* The head of a state: everything of it lives in the arena, itself too but for this struct. */
typedef struct kelp_ml_state {
    kelp_arena arena;
} kelp_ml_state;
/* Zeroed; `size_bytes` is that of the whole state, whose first member is a kelp_ml_state. */
kelp_status *kelp_ml_state_create(const kelp_op_env *env, size_t size_bytes,
                                  void *out_state) KELP_MUST_USE;
/* The kernels' destroy. */
void kelp_ml_state_destroy(void *state, kelp_allocator allocator);

typedef enum kelp_ml_transform {
    KELP_ML_NONE = 0,
    KELP_ML_SOFTMAX = 1,
    KELP_ML_LOGISTIC = 2,
    KELP_ML_SOFTMAX_ZERO = 3,
    KELP_ML_PROBIT = 4
} kelp_ml_transform;
/* Attribute "post_transform" by name. */
kelp_status *kelp_ml_transform_read(const kelp_node *node, kelp_ml_transform *out) KELP_MUST_USE;
void kelp_ml_transform_apply(kelp_ml_transform transform, double *inout_scores, size_t count);
double kelp_ml_logistic(double x);
/* Both classes' scores when there is one for the second alone: -score or 1 - score before it; of
 * transforms, only LOGISTIC is made. As ONNX Runtime does. */
void kelp_ml_second_score(kelp_ml_transform transform, bool negate, double score, double *out);

/* Labels of classes: strings or numbers, whichever attribute is there. */
typedef struct kelp_ml_labels {
    const kelp_string *strings; /* NULL: numbers */
    const int64_t *numbers;
    size_t count;
} kelp_ml_labels;
kelp_status *kelp_ml_labels_read(const kelp_node *node, const char *strings, const char *numbers,
                                 kelp_ml_labels *out) KELP_MUST_USE;
/* Writes label `index` as element `at` of a tensor of strings or int64. */
void kelp_ml_label_write(const kelp_ml_labels *labels, size_t index, kelp_tensor *to, int64_t at);

/* Rows and columns of a tensor [N,C] or [C] (one row); INVALID_ARGUMENT otherwise, UNIMPLEMENTED
 * unless its elements are float, double, int32 or int64. */
kelp_status *kelp_ml_rows(const kelp_op_args *args, const kelp_tensor *x, int64_t *out_rows,
                          int64_t *out_columns) KELP_MUST_USE;
/* Row `row` as doubles. */
void kelp_ml_read_row(const kelp_tensor *x, int64_t row, int64_t columns, double *out);
/* One element as double. */
double kelp_ml_read(const kelp_tensor *x, int64_t index);
/* A number of the attribute given as floats, or as a tensor under NAME_as_tensor, as doubles in the
 * arena; count 0 when neither is there. */
kelp_status *kelp_ml_numbers(kelp_arena *arena, const kelp_node *node, const char *floats,
                             const char *tensor, const double **out,
                             size_t *out_count) KELP_MUST_USE;

#endif
