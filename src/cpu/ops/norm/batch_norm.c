/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BatchNormalization. Training uses the mean and variance (divided by the count) of the batch and
 * updates the running ones. Before version 9, attribute spatial = 0 treats each position of a
 * channel as a channel. Source: ONNX operator specification, BatchNormalization-1 to -15.
 */
#include "base/assert.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

#include <math.h>

typedef struct batch_norm_plan {
    int64_t channels, inner, batch;
    double epsilon, momentum;
    bool training, plain;  /* plain: inference, and all tensors are float32 */
    size_t means, squares; /* in training: offsets of the statistics of channels, in double */
    size_t factors;        /* if plain: offset of the factors of channels, then of the summands */
    const kelp_op_args *args;
} batch_norm_plan;

/* Returns true in training: attribute is_test before version 7, more than one output before version
 * 14, attribute training_mode since. */
static bool is_training(const kelp_op_args *args) {
    int64_t version = kelp_ops_version(args);
    if (version >= 14)
        return kelp_node_attr_i64(args->node, "training_mode", 0) != 0;
    if (version < 7)
        return kelp_node_attr_i64(args->node, "is_test", 0) == 0;
    for (int32_t i = 1; i < args->output_count; i++)
        if (args->outputs[i] != NULL)
            return true;
    return false;
}

static kelp_status *check_types(const kelp_op_args *args, batch_norm_plan *p) {
    const kelp_tensor *x = args->inputs[0];
    p->plain = !p->training;
    for (int32_t i = 0; i < 5; i++) {
        const kelp_tensor *input = args->inputs[i];
        if (!kelp_ops_is_float(input->dtype))
            return kelp_ops_bad_type(args, input->dtype);
        p->plain = p->plain && input->dtype == KELP_F32;
        if (i > 0 && kelp_tensor_elements(input) != p->channels)
            return kelp_ops_bad_shapes(args, x, input, "expected one value for each channel");
    }
    return NULL;
}

static kelp_status *batch_norm_reshape(const void *state, kelp_op_args *args) {
    batch_norm_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 5));
    const kelp_tensor *x = args->inputs[0], *mean = args->inputs[3];
    bool spatial = kelp_ops_version(args) >= 9 || kelp_node_attr_i64(args->node, "spatial", 1) != 0;
    p->training = is_training(args);
    p->batch = x->rank > 0 ? x->shape[0] : 1;
    p->channels = x->rank > 1 ? x->shape[1] : 1;
    p->inner = x->rank > 1 ? kelp_ops_product(x->shape, 2, x->rank) : 1;
    if (!spatial) {
        p->channels *= p->inner;
        p->inner = 1;
    }
    p->epsilon = (double)kelp_node_attr_f32(args->node, "epsilon", 1e-5f);
    p->momentum = (double)kelp_node_attr_f32(args->node, "momentum", 0.9f);
    KELP_TRY(check_types(args, p));
    if (p->training) {
        KELP_TRY(kelp_ops_scratch(args, p->channels, sizeof(double), &p->means));
        KELP_TRY(kelp_ops_scratch(args, p->channels, sizeof(double), &p->squares));
    }
    if (p->plain)
        KELP_TRY(kelp_ops_scratch(args, p->channels, 2 * sizeof(float), &p->factors));
    for (int32_t i = 1; i < args->output_count; i++)
        KELP_TRY(
            kelp_ops_set(args, i, args->inputs[i == 2 ? 4 : 3]->dtype, mean->rank, mean->shape));
    return kelp_ops_set_like(args, 0, x);
}

/* Computes the factor and the summand of each channel. */
static void plain_factors(const batch_norm_plan *p) {
    const kelp_tensor *const *in = p->args->inputs;
    const float *scale = in[1]->data, *bias = in[2]->data, *mean = in[3]->data, *var = in[4]->data;
    float *factors = kelp_ops_scratch_at(p->args, p->factors), *summands = factors + p->channels;
    for (int64_t c = 0; c < p->channels; c++) {
        factors[c] = scale[c] / sqrtf(var[c] + (float)p->epsilon);
        summands[c] = bias[c] - mean[c] * factors[c];
    }
}

/* Rows are the positions of a channel, or all channels of an image without positions. */
static void plain_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    const batch_norm_plan *p = userp;
    const kelp_op_args *args = p->args;
    const float *factors = kelp_ops_scratch_at(args, p->factors), *summands = factors + p->channels;
    bool flat = p->inner == 1;
    int64_t count = flat ? p->channels : p->inner;
    (void)worker;
    KELP_ASSERT(p->plain && args->inputs[0]->dtype == KELP_F32);
    for (int64_t at = begin; at < end; at++) {
        int64_t c = flat ? 0 : at % p->channels;
        const float *x = (const float *)args->inputs[0]->data + at * count;
        float *y = (float *)args->outputs[0]->data + at * count;
        elementwise->scale(y, x, factors + c, summands + c, count, flat ? 1 : 0);
    }
}

static double *statistics(const batch_norm_plan *p, size_t offset) {
    return kelp_ops_scratch_at(p->args, offset);
}

/* Normalizes rows of other types, and in training, in double. */
static void typed_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const batch_norm_plan *p = userp;
    const kelp_op_args *args = p->args;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t c = at % p->channels;
        double mean =
            p->training ? statistics(p, p->means)[c] : kelp_ops_read_f64(args->inputs[3], c);
        double variance =
            p->training ? statistics(p, p->squares)[c] : kelp_ops_read_f64(args->inputs[4], c);
        double scale = kelp_ops_read_f64(args->inputs[1], c) / sqrt(variance + p->epsilon);
        double shift = kelp_ops_read_f64(args->inputs[2], c);
        for (int64_t i = at * p->inner; i < (at + 1) * p->inner; i++)
            kelp_tensor_set_f64(args->outputs[0], i,
                                (kelp_ops_read_f64(args->inputs[0], i) - mean) * scale + shift);
    }
}

/* ---- training ---- */
static void measure_channels(void *userp, int64_t begin, int64_t end, int worker) {
    const batch_norm_plan *p = userp;
    const kelp_tensor *x = p->args->inputs[0];
    double count = (double)p->batch * (double)p->inner;
    (void)worker;
    for (int64_t c = begin; c < end; c++) {
        double mean = 0, squares = 0;
        for (int pass = 0; pass < 2; pass++) {
            double sum = 0;
            for (int64_t n = 0; n < p->batch; n++)
                for (int64_t i = 0; i < p->inner; i++) {
                    double v = kelp_ops_read_f64(x, (n * p->channels + c) * p->inner + i);
                    sum += pass == 0 ? v : (v - mean) * (v - mean);
                }
            *(pass == 0 ? &mean : &squares) = sum / count;
        }
        statistics(p, p->means)[c] = mean;
        statistics(p, p->squares)[c] = squares;
    }
}

/* Writes outputs 1 and 2, the running mean and variance, and 3 and 4, those of the batch, which old
 * versions have. */
static void write_statistics(const batch_norm_plan *p) {
    const kelp_op_args *args = p->args;
    for (int32_t i = 1; i < args->output_count && i < 5; i++) {
        const double *own = statistics(p, i % 2 == 1 ? p->means : p->squares);
        for (int64_t c = 0; c < p->channels && args->outputs[i] != NULL; c++) {
            double old = kelp_ops_read_f64(args->inputs[i % 2 == 1 ? 3 : 4], c);
            kelp_tensor_set_f64(args->outputs[i], c,
                                i > 2 ? own[c] : old * p->momentum + own[c] * (1 - p->momentum));
        }
    }
}

static kelp_status *batch_norm_invoke(const void *state, kelp_op_args *args) {
    batch_norm_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->batch * p->channels * p->inner == kelp_tensor_elements(args->inputs[0]));
    p->args = args;
    int64_t count = p->plain && p->inner == 1 ? p->channels : p->inner;
    int64_t rows = count > 0 ? kelp_tensor_elements(args->inputs[0]) / count : 0;
    int64_t grain = kelp_cpu_grain(KELP_GRAIN_ELEMENTS, count);
    if (p->plain)
        plain_factors(p);
    if (p->training)
        kelp_op_parallel(args->env, p->channels,
                         kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->inner * p->batch), measure_channels,
                         p);
    kelp_op_parallel(args->env, rows, grain, p->plain ? plain_rows : typed_rows, p);
    if (p->training)
        write_statistics(p);
    return NULL;
}
KELP_KERNEL(BatchNormalization, KELP_OP_INPLACE_0, sizeof(batch_norm_plan), 0, batch_norm_reshape,
            batch_norm_invoke);
