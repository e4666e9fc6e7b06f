/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of sliding windows. Source: ONNX operator specification, Conv and MaxPool. */
#include "cpu/ops/conv/window.h"

#include "base/assert.h"
#include "operator/window.h"

/* The largest supported dimension, stride, pad and span of a kernel, so that sums do not overflow.
 */
#define MAX_DIM ((int64_t)1 << 40)

kelp_status *kelp_window_attr(const kelp_op_args *args, const char *name, size_t count,
                              size_t index, kelp_window_range range, int64_t *inout_value) {
    const int64_t *values = NULL;
    KELP_ASSERT(index < count && range.min <= range.max);
    size_t found = kelp_node_attr_i64s(args->node, name, &values);
    if (found == 0)
        return NULL;
    if (found != count)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator '%s': attribute '%s' has %zu values: expected %zu",
                          kelp_node_op_type(args->node), name, found, count);
    if (values[index] < range.min || values[index] > range.max)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator '%s': attribute '%s' is out of range: expected %lld to %lld, "
                          "found %lld as value %zu",
                          kelp_node_op_type(args->node), name, (long long)range.min,
                          (long long)range.max, (long long)values[index], index);
    *inout_value = values[index];
    return NULL;
}

static kelp_status *read_axis(kelp_conv_window *w, const kelp_op_args *args, int32_t at,
                              size_t axis) {
    const kelp_window_range steps = {1, MAX_DIM}, pads = {-MAX_DIM, MAX_DIM};
    size_t axes = (size_t)w->axes;
    w->stride[at] = w->dilation[at] = 1;
    w->before[at] = w->after[at] = 0;
    KELP_TRY(kelp_window_attr(args, "strides", axes, axis, steps, &w->stride[at]));
    KELP_TRY(kelp_window_attr(args, "dilations", axes, axis, steps, &w->dilation[at]));
    KELP_TRY(kelp_window_attr(args, "pads", 2 * axes, axis, pads, &w->before[at]));
    KELP_TRY(kelp_window_attr(args, "pads", 2 * axes, axis + axes, pads, &w->after[at]));
    if (w->kernel[at] < 1 || w->kernel[at] > MAX_DIM / w->dilation[at])
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator '%s': the kernel is out of range along spatial axis %zu: "
                          "expected a size of 1 to %lld with a dilation of %lld, found %lld",
                          kelp_node_op_type(args->node), axis,
                          (long long)(MAX_DIM / w->dilation[at]), (long long)w->dilation[at],
                          (long long)w->kernel[at]);
    return NULL;
}

static kelp_status *init_axis(kelp_conv_window *w, const kelp_op_args *args, int32_t at,
                              size_t axis, int64_t in, int64_t kernel) {
    const char *auto_pad = kelp_node_attr_string(args->node, "auto_pad", "NOTSET", NULL);
    w->in[at] = in;
    w->kernel[at] = kernel;
    KELP_TRY(read_axis(w, args, at, axis));
    if (in > MAX_DIM)
        return kelp_ops_bad_shapes(args, args->inputs[0], NULL, "the image is too large");
    kelp_window_axis a = {in, kernel, w->stride[at], w->dilation[at], w->before[at], w->after[at]};
    bool ceil_mode = kelp_node_attr_i64(args->node, "ceil_mode", 0) != 0, fits;
    int64_t span = 0, rest = 0;
    fits = kelp_window_output(&a, kelp_auto_pad_parse(auto_pad), ceil_mode, &w->out[at]);
    w->before[at] = a.before;
    w->after[at] = a.after;
    if (fits)
        return NULL;
    (void)kelp_window_span(&a, &span, &rest);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "operator '%s': the kernel is larger than the padded input along spatial "
                      "axis %zu: it spans %lld elements of %lld",
                      kelp_node_op_type(args->node), axis, (long long)span,
                      (long long)(rest + span));
}

kelp_status *kelp_window_init(kelp_conv_window *w, const kelp_op_args *args,
                              const kelp_tensor *input, const int64_t *kernel, int32_t axes) {
    if (axes < 1 || axes > KELP_WINDOW_AXES || input->rank != axes + 2)
        return kelp_ops_bad_shapes(args, input, NULL,
                                   "expected [batch, channels] and one to three spatial axes");
    w->axes = axes;
    w->in_size = w->out_size = w->kernel_size = 1;
    for (int32_t i = 0; i < KELP_WINDOW_AXES; i++) {
        int32_t axis = i - (KELP_WINDOW_AXES - axes);
        if (axis < 0) {
            w->in[i] = w->out[i] = w->kernel[i] = w->stride[i] = w->dilation[i] = 1;
            w->before[i] = w->after[i] = 0;
        } else {
            KELP_TRY(init_axis(w, args, i, (size_t)axis, input->shape[axis + 2], kernel[axis]));
        }
        if (!kelp_i64_mul(w->in_size, w->in[i], &w->in_size) ||
            !kelp_i64_mul(w->out_size, w->out[i], &w->out_size) ||
            !kelp_i64_mul(w->kernel_size, w->kernel[i], &w->kernel_size))
            return kelp_ops_bad_shapes(args, input, NULL, "the result is too large");
    }
    return NULL;
}

int32_t kelp_window_shape(const kelp_conv_window *w, int64_t batch, int64_t channels,
                          int64_t *out_shape) {
    out_shape[0] = batch;
    out_shape[1] = channels;
    for (int32_t i = 0; i < w->axes; i++)
        out_shape[i + 2] = w->out[i + KELP_WINDOW_AXES - w->axes];
    return w->axes + 2;
}
