/* SPDX-License-Identifier: Apache-2.0 */
/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. Sums are in double, as is the softmax of
 * other types than float32. Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "cpu/ops/norm/softmax.h"
#include "tensor/real.h"

#include <math.h>

typedef enum loss_reduction { LOSS_MEAN, LOSS_SUM, LOSS_NONE } loss_reduction;

typedef struct loss_plan {
    int64_t batch, classes, inner;
    loss_reduction reduction;
    bool ignores;
    int64_t ignored;
    bool softmax;
    size_t scores_offset; /* in scratch: the scores of one position, or of all of float32 */
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

static kelp_status *loss_reshape(kelp_op_args *args, bool softmax) {
    loss_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    p->softmax = softmax;
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
    if (x->dtype != KELP_F32)
        KELP_TRY(kelp_ops_scratch(args, p->classes, sizeof(double), &p->scores_offset));
    else if (softmax && kelp_ops_out(args, 1) == NULL)
        KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(x), sizeof(float), &p->scores_offset));
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

/* Reads the label of position `at`. `*out_counts` is false if it is ignored. */
static kelp_status *read_label(const kelp_op_args *args, int64_t at, int64_t *out_label,
                               bool *out_counts) {
    const loss_plan *p = args->plan;
    int64_t label = kelp_ops_read_i64(args->inputs[1], at);
    *out_label = label;
    *out_counts = !p->ignores || label != p->ignored;
    if (*out_counts && (label < 0 || label >= p->classes))
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT, "operator '%s': label %lld of element %lld is outside [0, %lld)",
            kelp_node_op_type(args->node), (long long)label, (long long)at, (long long)p->classes);
    return NULL;
}

/* Adds the loss of position `at`; `score` is the log-probability of its label. */
static void add_loss(const kelp_op_args *args, int64_t at, int64_t label, bool counts, double score,
                     loss_sums *sums) {
    const loss_plan *p = args->plan;
    const kelp_tensor *weights = kelp_ops_in(args, 2), *out = kelp_ops_out(args, 0);
    double weight = counts ? 1 : 0;
    if (counts && weights != NULL)
        weight = kelp_ops_read_f64(weights, label);
    double loss = counts ? -score * weight : 0;
    sums->loss += loss;
    sums->weight += weight;
    if (p->reduction == LOSS_NONE && out != NULL)
        kelp_real_store_f64(out->dtype, out->data, at, 1, &loss);
}

static kelp_status *float_losses(const kelp_op_args *args, loss_sums *sums) {
    const loss_plan *p = args->plan;
    const kelp_tensor *logs = kelp_ops_out(args, 1);
    const float *scores = args->inputs[0]->data;
    if (p->softmax) {
        float *to = logs != NULL ? logs->data : kelp_ops_scratch_at(args, p->scores_offset);
        kelp_softmax_run(args->env, &(kelp_softmax){.outer = p->batch,
                                                    .length = p->classes,
                                                    .inner = p->inner,
                                                    .log = true,
                                                    .x = scores,
                                                    .y = to});
        scores = to;
    }
    for (int64_t at = 0; at < p->batch * p->inner; at++) {
        int64_t label = 0, first = at / p->inner * p->classes * p->inner + at % p->inner;
        bool counts = false;
        KELP_TRY(read_label(args, at, &label, &counts));
        add_loss(args, at, label, counts, counts ? (double)scores[first + label * p->inner] : 0,
                 sums);
    }
    return NULL;
}

static kelp_status *other_losses(const kelp_op_args *args, loss_sums *sums) {
    const loss_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0], *logs = kelp_ops_out(args, 1);
    double *row = kelp_ops_scratch_at(args, p->scores_offset);
    for (int64_t at = 0; at < p->batch * p->inner; at++) {
        int64_t label = 0, first = at / p->inner * p->classes * p->inner + at % p->inner;
        bool counts = false;
        for (int64_t c = 0; c < p->classes; c++)
            row[c] = kelp_ops_read_f64(x, first + c * p->inner);
        if (p->softmax)
            log_softmax(row, p->classes);
        for (int64_t c = 0; logs != NULL && c < p->classes; c++)
            kelp_real_store_f64(logs->dtype, logs->data, first + c * p->inner, 1, &row[c]);
        KELP_TRY(read_label(args, at, &label, &counts));
        add_loss(args, at, label, counts, counts ? row[label] : 0, sums);
    }
    return NULL;
}

static kelp_status *loss_invoke(const void *state, kelp_op_args *args) {
    const loss_plan *p = args->plan;
    const kelp_tensor *out = kelp_ops_out(args, 0);
    loss_sums sums = {0, 0};
    (void)state;
    KELP_ASSERT(kelp_tensor_elements(args->inputs[1]) == p->batch * p->inner);
    KELP_TRY((args->inputs[0]->dtype == KELP_F32 ? float_losses : other_losses)(args, &sums));
    if (p->reduction == LOSS_NONE || out == NULL)
        return NULL;
    double total = p->reduction == LOSS_MEAN ? sums.loss / sums.weight : sums.loss;
    kelp_real_store_f64(out->dtype, out->data, 0, 1, &total);
    return NULL;
}

static kelp_status *nll_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return loss_reshape(args, false);
}
KELP_KERNEL(NegativeLogLikelihoodLoss, KELP_OP_SERIAL, sizeof(loss_plan), 0, nll_reshape,
            loss_invoke);

static kelp_status *cross_entropy_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    return loss_reshape(args, true);
}
KELP_KERNEL(SoftmaxCrossEntropyLoss, 0, sizeof(loss_plan), 0, cross_entropy_reshape, loss_invoke);
