/* SPDX-License-Identifier: Apache-2.0 */
/* ConvTranspose in one to three dimensions: each output gathers the inputs that reach it. Source:
 * ONNX operator specification, ConvTranspose-22. */
#include "ops/linear/gemm.h"
#include "ops/widened.h"

#define AXES 3

typedef struct transposed {
    int64_t in[AXES], out[AXES], kernel[AXES], stride[AXES], dilation[AXES], before[AXES];
    int64_t batch, groups, in_channels, out_channels; /* channels a group */
    int64_t in_size, out_size, kernel_size;
    const kelp_op_args *args;
} transposed;

static int64_t list_at(const kelp_op_args *args, const char *name, size_t count, size_t index,
                       int64_t fallback) {
    const int64_t *values = NULL;
    return kelp_node_attr_i64s(args->node, name, &values) == count ? values[index] : fallback;
}

static kelp_status *init_axis(transposed *p, const kelp_op_args *args, size_t axes, size_t axis) {
    const kelp_tensor *x = args->inputs[0], *w = args->inputs[1];
    const int64_t most = (int64_t)1 << 30;
    const char *auto_pad = kelp_node_attr_string(args->node, "auto_pad", "NOTSET", NULL);
    size_t at = axis + AXES - axes;
    int64_t in = x->shape[axis + 2], kernel = w->shape[axis + 2];
    int64_t stride = list_at(args, "strides", axes, axis, 1);
    int64_t dilation = list_at(args, "dilations", axes, axis, 1);
    int64_t before = list_at(args, "pads", 2 * axes, axis, 0);
    int64_t after = list_at(args, "pads", 2 * axes, axis + axes, 0);
    int64_t extra = list_at(args, "output_padding", axes, axis, 0);
    int64_t wanted = list_at(args, "output_shape", axes, axis, -1);
    if (in < 1 || in > most || kernel < 1 || kernel > most || stride < 1 || stride > most ||
        dilation < 1 || dilation > most || before < 0 || before > most || after < 0 ||
        after > most || extra < 0 || extra > most || wanted > most * most)
        return kelp_ops_bad_shapes(args, x, w,
                                   "extents, strides, dilations or pads are out of range");
    int64_t reach = (kernel - 1) * dilation + 1, full = (in - 1) * stride + reach + extra;
    if (strcmp(auto_pad, "VALID") == 0)
        before = after = 0;
    if (wanted < 0 && strncmp(auto_pad, "SAME", 4) == 0)
        wanted = in * stride;
    if (wanted >= 0) {
        int64_t total = KELP_MAX((int64_t)0, full - wanted);
        before = strcmp(auto_pad, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
        if (strcmp(auto_pad, "NOTSET") == 0)
            before = total / 2;
        after = full - wanted - before;
    }
    p->in[at] = in;
    p->kernel[at] = kernel;
    p->stride[at] = stride;
    p->dilation[at] = dilation;
    p->before[at] = before;
    p->out[at] = full - before - after;
    if (p->out[at] < 1)
        return kelp_ops_bad_shapes(args, x, w, "the pads leave nothing");
    return NULL;
}

static kelp_status *transposed_reshape(const void *state, kelp_op_args *args) {
    transposed *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *w = args->inputs[1], *bias = kelp_ops_in(args, 2);
    if (x->dtype != KELP_F32 || w->dtype != KELP_F32 || (bias != NULL && bias->dtype != KELP_F32))
        return kelp_ops_bad_type(args, x->dtype != KELP_F32 ? x->dtype : w->dtype);
    p->groups = kelp_node_attr_i64(args->node, "group", 1);
    if (x->rank < 3 || x->rank > AXES + 2 || w->rank != x->rank || p->groups < 1 ||
        x->shape[1] % p->groups != 0 || w->shape[0] != x->shape[1])
        return kelp_ops_bad_shapes(args, x, w, "input and weights do not fit");
    p->batch = x->shape[0];
    p->in_channels = x->shape[1] / p->groups;
    p->out_channels = w->shape[1];
    int64_t shape[KELP_MAX_RANK] = {p->batch, 0};
    if (!kelp_i64_mul(p->out_channels, p->groups, &shape[1]) ||
        (bias != NULL && kelp_tensor_elements(bias) != shape[1]))
        return kelp_ops_bad_shapes(args, w, bias, "expected one bias an output channel");
    size_t axes = (size_t)x->rank - 2;
    for (size_t i = 0; i < AXES; i++)
        p->in[i] = p->out[i] = p->kernel[i] = p->stride[i] = p->dilation[i] = 1;
    for (size_t i = 0; i < axes; i++) {
        KELP_TRY(init_axis(p, args, axes, i));
        shape[i + 2] = p->out[i + AXES - axes];
    }
    p->in_size = kelp_ops_product(p->in, 0, AXES);
    p->kernel_size = kelp_ops_product(p->kernel, 0, AXES);
    KELP_TRY(kelp_ops_set(args, 0, KELP_F32, x->rank, shape));
    p->out_size = kelp_ops_product(p->out, 0, AXES);
    return NULL;
}

/* Input coordinate that reaches output `out` through kernel position `tap` along an axis; -1 when
 * none does. */
static int64_t source(const transposed *p, int axis, int64_t out, int64_t tap) {
    int64_t at = out + p->before[axis] - tap * p->dilation[axis];
    if (at < 0 || at % p->stride[axis] != 0 || at / p->stride[axis] >= p->in[axis])
        return -1;
    return at / p->stride[axis];
}

/* One plane of the output, one input channel and one kernel row after another; doubles are not
 * needed: sums are short. */
static void add_channel(const transposed *p, const float *x, const float *w, float *y) {
    for (int64_t a = 0; a < p->out[0]; a++)
        for (int64_t b = 0; b < p->out[1]; b++, y += p->out[2])
            for (int64_t ka = 0; ka < p->kernel[0]; ka++)
                for (int64_t kb = 0; kb < p->kernel[1]; kb++) {
                    int64_t i = source(p, 0, a, ka), j = source(p, 1, b, kb);
                    if (i < 0 || j < 0)
                        continue;
                    const float *row = x + (i * p->in[1] + j) * p->in[2];
                    const float *taps = w + (ka * p->kernel[1] + kb) * p->kernel[2];
                    for (int64_t kc = 0; kc < p->kernel[2]; kc++)
                        for (int64_t k = 0; k < p->in[2]; k++) {
                            int64_t c = k * p->stride[2] + kc * p->dilation[2] - p->before[2];
                            if (c >= 0 && c < p->out[2])
                                y[c] += row[k] * taps[kc];
                        }
                }
}

static void planes(void *userp, int64_t begin, int64_t end, int worker) {
    const transposed *p = userp;
    const kelp_tensor *bias = kelp_ops_in(p->args, 2);
    int64_t channels = p->groups * p->out_channels;
    (void)worker;
    for (int64_t plane = begin; plane < end; plane++) {
        int64_t image = plane / channels, channel = plane % channels;
        int64_t group = channel / p->out_channels, first = group * p->in_channels;
        float *y = (float *)p->args->outputs[0]->data + plane * p->out_size;
        float start = bias != NULL ? ((const float *)bias->data)[channel] : 0.0f;
        for (int64_t i = 0; i < p->out_size; i++)
            y[i] = start;
        for (int64_t c = first; c < first + p->in_channels; c++)
            add_channel(p,
                        (const float *)p->args->inputs[0]->data +
                            (image * p->groups * p->in_channels + c) * p->in_size,
                        (const float *)p->args->inputs[1]->data +
                            (c * p->out_channels + channel % p->out_channels) * p->kernel_size,
                        y);
    }
}

static kelp_status *transposed_invoke(const void *state, kelp_op_args *args) {
    transposed *p = args->plan;
    (void)state;
    p->args = args;
    if (kelp_tensor_elements(args->outputs[0]) > 0)
        kelp_op_parallel(args->env, p->batch * p->groups * p->out_channels, 1, planes, p);
    return NULL;
}
KELP_WIDENED_PHASES(transposed, sizeof(transposed), transposed_reshape, transposed_invoke)
KELP_KERNEL(ConvTranspose, 0, KELP_WIDENED_PLAN(sizeof(transposed)), 0, transposed_reshape_any,
            transposed_invoke_any);
