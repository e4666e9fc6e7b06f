/* SPDX-License-Identifier: Apache-2.0 */
/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. Arithmetic is in double. Source: ONNX
 * operator specification. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

#include <math.h>

typedef enum loss_reduction { LOSS_MEAN, LOSS_SUM, LOSS_NONE } loss_reduction;

typedef struct loss_plan {
    int64_t batch, classes, inner;
    loss_reduction reduction;
    bool ignores;
    int64_t ignored;
    size_t row_offset; /* in scratch: the scores of one position */
} loss_plan;

static kelp_status *read_attributes(const kelp_op_args *args, loss_plan *p) {
    const char *name = kelp_node_attr_string(args->node, "reduction", "mean", NULL);
    p->reduction = strcmp(name, "none") == 0  ? LOSS_NONE
                   : strcmp(name, "sum") == 0 ? LOSS_SUM
                                              : LOSS_MEAN;
    if (p->reduction == LOSS_MEAN && strcmp(name, "mean") != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator '%s': attribute 'reduction' has an unknown value: expected "
                          "none, sum or mean, found '%s'",
                          kelp_node_op_type(args->node), name);
    p->ignores = kelp_node_attr_type(args->node, "ignore_index") == KELP_ATTR_INT;
    p->ignored = kelp_node_attr_i64(args->node, "ignore_index", 0);
    return NULL;
}

static kelp_status *loss_reshape(const void *state, kelp_op_args *args) {
    loss_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    (void)state;
    KELP_TRY(kelp_ops_check_inputs(args, 2));
    const kelp_tensor *x = args->inputs[0], *target = args->inputs[1];
    const kelp_tensor *weight = kelp_ops_in(args, 2);
    if (!kelp_ops_is_float(x->dtype))
        return kelp_ops_bad_type(args, x->dtype);
    if (target->dtype != KELP_I64 && target->dtype != KELP_I32)
        return kelp_ops_bad_type(args, target->dtype);
    KELP_TRY(read_attributes(args, p));
    if (x->rank < 2 || target->rank != x->rank - 1)
        return kelp_ops_bad_shapes(args, x, target, "expected [N, C, …] and [N, …]");
    p->batch = x->shape[0];
    p->classes = x->shape[1];
    p->inner = kelp_ops_product(x->shape, 2, x->rank);
    shape[0] = x->shape[0];
    for (int32_t i = 2; i < x->rank; i++)
        shape[i - 1] = x->shape[i];
    for (int32_t i = 0; i < target->rank; i++) {
        if (target->shape[i] != shape[i])
            return kelp_ops_bad_shapes(args, x, target, "expected [N, C, …] and [N, …]");
    }
    if (weight != NULL && (weight->rank != 1 || weight->shape[0] != p->classes))
        return kelp_ops_bad_shapes(args, x, weight, "expected one weight per class");
    if (kelp_ops_out(args, 1) != NULL)
        KELP_TRY(kelp_ops_set_like(args, 1, x));
    KELP_TRY(kelp_ops_scratch(args, p->classes, sizeof(double), &p->row_offset));
    return kelp_ops_set(args, 0, x->dtype, p->reduction == LOSS_NONE ? target->rank : 0, shape);
}

/* Converts scores to logarithms of probabilities. */
static void log_softmax(double *row, int64_t count) {
    double max = -INFINITY, sum = 0;
    for (int64_t c = 0; c < count; c++)
        max = fmax(max, row[c]);
    for (int64_t c = 0; c < count; c++)
        sum += exp(row[c] - max);
    double shift = max + log(sum);
    for (int64_t c = 0; c < count; c++)
        row[c] -= shift;
}

typedef struct loss_sums {
    double loss, weight;
} loss_sums;

/* Adds the loss of position `at`, whose log-probabilities are in `row`. */
static kelp_status *add_loss(const kelp_op_args *args, const loss_plan *p, const double *row,
                             int64_t at, loss_sums *sums) {
    const kelp_tensor *weights = kelp_ops_in(args, 2), *out = kelp_ops_out(args, 0);
    int64_t label = kelp_ops_read_i64(args->inputs[1], at);
    double loss = 0, weight = 0;
    if (!p->ignores || label != p->ignored) {
        if (label < 0 || label >= p->classes)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "operator '%s': label %lld of element %lld is outside [0, %lld)",
                              kelp_node_op_type(args->node), (long long)label, (long long)at,
                              (long long)p->classes);
        weight = weights != NULL ? kelp_ops_read_f64(weights, label) : 1;
        loss = -row[label] * weight;
    }
    sums->loss += loss;
    sums->weight += weight;
    if (p->reduction == LOSS_NONE && out != NULL)
        kelp_real_store_f64(out->dtype, out->data, at, 1, &loss);
    return NULL;
}

static kelp_status *run_loss(const kelp_op_args *args, bool softmax) {
    const loss_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0], *out = kelp_ops_out(args, 0);
    const kelp_tensor *logs = kelp_ops_out(args, 1);
    double *row = kelp_ops_scratch_at(args, p->row_offset);
    loss_sums sums = {0, 0};
    KELP_ASSERT(kelp_tensor_elements(args->inputs[1]) == p->batch * p->inner);
    for (int64_t at = 0; at < p->batch * p->inner; at++) {
        int64_t first = at / p->inner * p->classes * p->inner + at % p->inner;
        for (int64_t c = 0; c < p->classes; c++)
            row[c] = kelp_ops_read_f64(x, first + c * p->inner);
        if (softmax)
            log_softmax(row, p->classes);
        for (int64_t c = 0; logs != NULL && c < p->classes; c++)
            kelp_real_store_f64(logs->dtype, logs->data, first + c * p->inner, 1, &row[c]);
        KELP_TRY(add_loss(args, p, row, at, &sums));
    }
    if (p->reduction == LOSS_NONE || out == NULL)
        return NULL;
    double total = p->reduction == LOSS_MEAN ? sums.loss / sums.weight : sums.loss;
    kelp_real_store_f64(out->dtype, out->data, 0, 1, &total);
    return NULL;
}

static kelp_status *nll_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    return run_loss(args, false);
}
KELP_KERNEL(NegativeLogLikelihoodLoss, KELP_OP_SERIAL, sizeof(loss_plan), 0, loss_reshape,
            nll_invoke);

static kelp_status *cross_entropy_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    return run_loss(args, true);
}
KELP_KERNEL(SoftmaxCrossEntropyLoss, KELP_OP_SERIAL, sizeof(loss_plan), 0, loss_reshape,
            cross_entropy_invoke);
