/* SPDX-License-Identifier: Apache-2.0 */
/* HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix. Source: ONNX operator specification,
 * version 17. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

#include <math.h>

#define PI 3.14159265358979323846

/* Stores a value; integers are truncated, as in Cast. */
static void put(const kelp_tensor *t, int64_t at, double value) {
    if (!kelp_ops_is_float(t->dtype))
        value = trunc(value);
    kelp_real_store_f64(t->dtype, t->data, at, 1, &value);
}

static kelp_status *output_type(const kelp_op_args *args, kelp_dtype *out) {
    *out = kelp_ops_attr_dtype(args->node, "output_datatype", KELP_F32);
    return kelp_real_takes(*out) && *out != KELP_BOOL ? NULL : kelp_ops_bad_type(args, *out);
}

static kelp_status *window_reshape(const void *state, kelp_op_args *args) {
    kelp_dtype dtype;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    KELP_TRY(output_type(args, &dtype));
    if (kelp_ops_defer(args, 0))
        return NULL;
    const kelp_tensor *size = args->inputs[0];
    if (kelp_tensor_elements(size) != 1)
        return kelp_ops_bad_shapes(args, size, NULL, "expected one size");
    int64_t count = kelp_ops_read_i64(size, 0);
    return kelp_ops_set(args, 0, dtype, 1, &count);
}

static kelp_status *window(const kelp_op_args *args, double a, double b, double c) {
    const kelp_tensor *y = args->outputs[0];
    bool periodic = kelp_node_attr_i64(args->node, "periodic", 1) != 0;
    int64_t count = y->shape[0];
    double length = (double)(periodic ? count : count - 1);
    for (int64_t i = 0; i < count; i++) {
        double angle = length > 0 ? 2 * PI * (double)i / length : PI;
        put(y, i, a - b * cos(angle) + c * cos(2 * angle));
    }
    return NULL;
}

#define WINDOW(name, a, b, c)                                                  \
    static kelp_status *invoke_##name(const void *state, kelp_op_args *args) { \
        (void)state;                                                           \
        return window(args, a, b, c);                                          \
    }                                                                          \
    KELP_KERNEL(name, 0, 0, 0, window_reshape, invoke_##name);
WINDOW(HannWindow, 0.5, 0.5, 0)
WINDOW(HammingWindow, 25.0 / 46, 21.0 / 46, 0)
WINDOW(BlackmanWindow, 0.42, 0.5, 0.08)

/* ---- MelWeightMatrix ---- */
static kelp_status *mel_reshape(const void *state, kelp_op_args *args) {
    kelp_dtype dtype;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 5));
    KELP_TRY(output_type(args, &dtype));
    for (int32_t i = 0; i < 5; i++) {
        if (kelp_tensor_elements(args->inputs[i]) != 1)
            return kelp_ops_bad_shapes(args, args->inputs[i], NULL, "expected one number each");
        if (kelp_ops_defer(args, i))
            return NULL;
    }
    int64_t bins = kelp_ops_read_i64(args->inputs[0], 0);
    int64_t length = kelp_ops_read_i64(args->inputs[1], 0);
    if (bins < 0 || bins > INT32_MAX || length < 1 || length > INT32_MAX ||
        kelp_ops_read_i64(args->inputs[2], 0) < 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "MelWeightMatrix: num_mel_bins, dft_length or sample_rate is out of "
                          "range: found %lld, %lld and %lld",
                          (long long)bins, (long long)length,
                          (long long)kelp_ops_read_i64(args->inputs[2], 0));
    int64_t shape[2] = {length / 2 + 1, bins};
    return kelp_ops_set(args, 0, dtype, 2, shape);
}

/* Returns the bin of the transform at band edge `index`; -1 outside the transform. */
static int64_t edge(const kelp_op_args *args, int64_t index) {
    double bands = kelp_ops_read_f64(args->inputs[0], 0);
    double length = kelp_ops_read_f64(args->inputs[1], 0);
    double rate = kelp_ops_read_f64(args->inputs[2], 0);
    double low = 2595 * log10(1 + kelp_ops_read_f64(args->inputs[3], 0) / 700);
    double high = 2595 * log10(1 + kelp_ops_read_f64(args->inputs[4], 0) / 700);
    double mel = low + (double)index * (high - low) / (bands + 2);
    double at = floor((length + 1) * 700 * (pow(10, mel / 2595) - 1) / rate);
    return at >= 0 && at <= floor(length / 2) ? (int64_t)at : -1;
}

static kelp_status *mel_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *y = args->outputs[0];
    int64_t bands = y->shape[1];
    (void)state;
    if (kelp_tensor_bytes(y) > 0)
        memset(y->data, 0, kelp_tensor_bytes(y));
    for (int64_t band = 0; band < bands; band++) {
        int64_t left = edge(args, band), top = edge(args, band + 1), right = edge(args, band + 2);
        if (left < 0 || top < left || right < top)
            return KELP_ERROR(KELP_OUT_OF_RANGE,
                              "MelWeightMatrix: band %lld is outside the bins of the transform",
                              (long long)band);
        KELP_ASSERT(right < y->shape[0]);
        if (left == top)
            put(y, top * bands + band, 1);
        for (int64_t i = left; i <= top && left < top; i++)
            put(y, i * bands + band, (double)(i - left) / (double)(top - left));
        for (int64_t i = top; i < right; i++)
            put(y, i * bands + band, (double)(right - i) / (double)(right - top));
    }
    return NULL;
}
KELP_KERNEL(MelWeightMatrix, 0, 0, 0, mel_reshape, mel_invoke);
