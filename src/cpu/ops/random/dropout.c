/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dropout: copies the input in inference; in training, sets random elements to zero and scales the
 * others. The seed has the same meaning as for the random operators. The training mode is the input
 * `training_mode` since version 12 and the attribute is_test = 0 before version 7; the versions
 * between have none. Source: ONNX operator specification, Dropout-1 to Dropout-22.
 */
#include "base/assert.h"
#include "cpu/ops/random/draw.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

typedef struct dropout_plan {
    bool training;
    double ratio;
} dropout_plan;

static bool is_small_float(kelp_dtype dtype) {
    return dtype >= KELP_F8E4M3FN && dtype <= KELP_F8E5M2FNUZ;
}

static double read_value(const kelp_tensor *x, int64_t index) {
    return is_small_float(x->dtype)
               ? (double)kelp_narrow_to_f32(x->dtype, ((const uint8_t *)x->data)[index])
               : kelp_ops_read_f64(x, index);
}

static void write_value(kelp_tensor *y, int64_t index, double value) {
    if (is_small_float(y->dtype))
        ((uint8_t *)y->data)[index] =
            kelp_f32_to_narrow(y->dtype, kelp_f64_to_f32_odd(value), true);
    else
        kelp_tensor_set_f64(y, index, value);
}

static kelp_status *read_training(kelp_op_args *args, dropout_plan *p) {
    const kelp_tensor *ratio = kelp_ops_in(args, 1), *training = kelp_ops_in(args, 2);
    int64_t version = kelp_ops_version(args);
    p->ratio = (double)kelp_node_attr_f32(args->node, "ratio", 0.5f);
    p->training = version < 7 && kelp_node_attr_i64(args->node, "is_test", 0) == 0;
    if (version < 12 || training == NULL)
        return NULL;
    if (kelp_tensor_elements(training) != 1 || (ratio != NULL && kelp_tensor_elements(ratio) != 1))
        return kelp_ops_bad_shapes(args, training, ratio,
                                   "training_mode and ratio must be one value each");
    p->training = kelp_ops_read_i64(training, 0) != 0;
    if (ratio != NULL)
        p->ratio = read_value(ratio, 0);
    return NULL;
}

static kelp_status *reshape_Dropout(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (!kelp_ops_is_float(x->dtype) && !is_small_float(x->dtype))
        return kelp_ops_bad_type(args, x->dtype);
    KELP_TRY(kelp_ops_set_like(args, 0, x));
    return kelp_ops_set(args, 1, kelp_ops_version(args) < 10 ? x->dtype : KELP_BOOL, x->rank,
                        x->shape);
}

static void put_mask(kelp_tensor *mask, int64_t index, bool kept) {
    if (mask == NULL)
        return;
    if (mask->dtype == KELP_BOOL)
        ((uint8_t *)mask->data)[index] = kept;
    else
        kelp_tensor_set_f64(mask, index, kept ? 1 : 0);
}

static kelp_status *dropout_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0];
    kelp_tensor *y = kelp_ops_out(args, 0), *mask = kelp_ops_out(args, 1);
    int64_t count = kelp_tensor_elements(x);
    dropout_plan p;
    kelp_draw draw;
    (void)state;
    KELP_TRY(read_training(args, &p));
    KELP_ASSERT(mask == NULL || kelp_tensor_elements(mask) == count);
    if (p.training && !(p.ratio >= 0 && p.ratio < 1))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'Dropout': the ratio is out of range: expected at least 0 and "
                          "less than 1, found %g",
                          p.ratio);
    if (!p.training || p.ratio == 0) {
        if (y != NULL && y->data != x->data)
            kelp_ops_memcpy(args->env, y->data, x->data, kelp_tensor_bytes(x));
        for (int64_t i = 0; i < count && mask != NULL; i++)
            put_mask(mask, i, true);
        return NULL;
    }
    KELP_TRY(kelp_draw_begin(&draw, args->node));
    double scale = 1 / (1 - p.ratio);
    for (int64_t i = 0; i < count; i++) {
        bool kept = kelp_draw_uniform(&draw) >= p.ratio;
        if (y != NULL)
            write_value(y, i, kept ? read_value(x, i) * scale : 0);
        put_mask(mask, i, kept);
    }
    return NULL;
}
KELP_KERNEL(Dropout, KELP_OP_INPLACE_0 | KELP_OP_IMPURE, 0, 1, reshape_Dropout, dropout_invoke);
