/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DeformConv: a convolution in two dimensions whose kernel elements (taps) read at fractional
 * offsets. For a range of output positions, the interpolated values are gathered into a matrix,
 * which a GEMM multiplies by the weights. Source: Dai et al., "Deformable Convolutional Networks",
 * 2017; ONNX operator specification, DeformConv-22.
 */
#include "base/assert.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/ops/conv/window.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/kernel.h"
#include "cpu/kernels/tuning.h"

#include <math.h>

#define RUN KELP_DEFORM_POSITIONS

typedef struct deform_plan {
    kelp_conv_window w;
    int64_t batch, groups, offset_groups, in_channels, out_channels; /* channels a group */
    size_t input_offsets[5]; /* of copies of inputs that are not float32 */
    size_t matrix_offset;    /* of the matrix of each worker */
    const float *inputs[5];
    const kelp_op_args *args;
} deform_plan;

static kelp_status *deform_check(deform_plan *p, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *w = args->inputs[1], *offset = args->inputs[2];
    const kelp_tensor *bias = kelp_ops_in(args, 3), *mask = kelp_ops_in(args, 4);
    for (int32_t i = 0; i < args->input_count; i++)
        if (args->inputs[i] != NULL && !kelp_ops_is_float(args->inputs[i]->dtype))
            return kelp_ops_bad_type(args, args->inputs[i]->dtype);
    if (x->rank != 4 || w->rank != 4 || offset->rank != 4)
        return kelp_ops_bad_shapes(args, x, w, "expected images and kernels of two dimensions");
    KELP_TRY(kelp_window_init(&p->w, args, x, w->shape + 2, 2));
    p->groups = kelp_node_attr_i64(args->node, "group", 1);
    p->offset_groups = kelp_node_attr_i64(args->node, "offset_group", 1);
    if (p->groups < 1 || x->shape[1] % p->groups != 0 || w->shape[0] % p->groups != 0 ||
        w->shape[1] != x->shape[1] / p->groups || p->offset_groups < 1 ||
        x->shape[1] % p->offset_groups != 0)
        return kelp_ops_bad_shapes(args, x, w, "the channels do not match attribute 'group'");
    p->batch = x->shape[0];
    p->in_channels = w->shape[1];
    p->out_channels = w->shape[0] / p->groups;
    int64_t taps = 0, offsets = 0;
    if (!kelp_i64_mul(p->offset_groups, p->w.kernel_size, &taps) ||
        !kelp_i64_mul(2, taps, &offsets))
        return kelp_ops_bad_shapes(args, x, w, "attribute 'offset_group' is too large");
    if (offset->shape[0] != p->batch || offset->shape[1] != offsets ||
        offset->shape[2] != p->w.out[1] || offset->shape[3] != p->w.out[2])
        return kelp_ops_bad_shapes(args, x, offset,
                                   "expected two offsets a tap and output position");
    if (mask != NULL && (mask->rank != 4 || mask->shape[0] != p->batch || mask->shape[1] != taps ||
                         mask->shape[2] != p->w.out[1] || mask->shape[3] != p->w.out[2]))
        return kelp_ops_bad_shapes(args, x, mask, "expected one mask a tap and output position");
    if (bias != NULL && kelp_tensor_elements(bias) != w->shape[0])
        return kelp_ops_bad_shapes(args, w, bias, "expected one bias for each output channel");
    return NULL;
}

static kelp_status *deform_reshape(const void *state, kelp_op_args *args) {
    deform_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 3));
    KELP_TRY(deform_check(p, args));
    const kelp_tensor *x = args->inputs[0];
    int64_t shape[4] = {p->batch, args->inputs[1]->shape[0], p->w.out[1], p->w.out[2]};
    KELP_TRY(kelp_ops_set(args, 0, x->dtype, 4, shape));
    for (int32_t i = 0; i < args->input_count && i < 5; i++)
        if (args->inputs[i] != NULL && args->inputs[i]->dtype != KELP_F32)
            KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(args->inputs[i]), sizeof(float),
                                      &p->input_offsets[i]));
    int64_t floats = 0;
    /* the matrix, and the product before its conversion to the type of the result */
    if (!kelp_i64_mul(p->in_channels, p->w.kernel_size, &floats) ||
        !kelp_i64_add(floats, p->out_channels, &floats) || !kelp_i64_mul(floats, RUN, &floats) ||
        !kelp_i64_mul(floats, kelp_op_env_threads(args->env), &floats))
        return kelp_ops_bad_shapes(args, x, args->inputs[1], "the kernel is too large");
    return kelp_ops_scratch(args, floats, sizeof(float), &p->matrix_offset);
}

/* Interpolates `plane` at (y, x); 0 outside. */
static float interpolate(const kelp_conv_window *w, const float *plane, float y, float x) {
    if (!(y > -1 && x > -1 && y < (float)w->in[1] && x < (float)w->in[2]))
        return 0.0f;
    float top = floorf(y), left = floorf(x), ly = y - top, lx = x - left, sum = 0.0f;
    int64_t i = (int64_t)top, j = (int64_t)left;
    const float *at = plane + i * w->in[2] + j;
    bool above = i >= 0, below = i + 1 < w->in[1], before = j >= 0, after = j + 1 < w->in[2];
    if (above && before)
        sum += (1 - ly) * (1 - lx) * at[0];
    if (above && after)
        sum += (1 - ly) * lx * at[1];
    if (below && before)
        sum += ly * (1 - lx) * at[w->in[2]];
    if (below && after)
        sum += ly * lx * at[w->in[2] + 1];
    return sum;
}

/* Gathers the values that tap `tap` of channel `channel` of the image reads at output positions
 * [first, first + count). */
static void gather_tap(const deform_plan *p, int64_t image, int64_t channel, int64_t tap,
                       int64_t first, int64_t count, float *to) {
    const kelp_conv_window *w = &p->w;
    int64_t channels = p->in_channels * p->groups;
    int64_t group = channel / (channels / p->offset_groups);
    int64_t at = (image * p->offset_groups + group) * w->kernel_size + tap;
    const float *plane = p->inputs[0] + (image * channels + channel) * w->in_size;
    const float *down = p->inputs[2] + 2 * at * w->out_size, *across = down + w->out_size;
    const float *mask = p->inputs[4] != NULL ? p->inputs[4] + at * w->out_size : NULL;
    for (int64_t o = first; o < first + count; o++) {
        int64_t y =
            o / w->out[2] * w->stride[1] - w->before[1] + tap / w->kernel[2] * w->dilation[1];
        int64_t x =
            o % w->out[2] * w->stride[2] - w->before[2] + tap % w->kernel[2] * w->dilation[2];
        float value = interpolate(w, plane, (float)y + down[o], (float)x + across[o]);
        *to++ = mask != NULL ? value * mask[o] : value;
    }
}

static void deform_range(void *userp, int64_t begin, int64_t end, int worker) {
    const deform_plan *p = userp;
    const kelp_conv_window *w = &p->w;
    const kelp_tensor *y = p->args->outputs[0];
    int64_t runs = (w->out_size + RUN - 1) / RUN, depth = p->in_channels * w->kernel_size;
    float *matrix = (float *)kelp_ops_scratch_at(p->args, p->matrix_offset) +
                    (int64_t)worker * (depth + p->out_channels) * RUN;
    float *product = matrix + depth * RUN;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t image = unit / runs / p->groups, group = unit / runs % p->groups;
        int64_t first = unit % runs * RUN, count = KELP_MIN((int64_t)RUN, w->out_size - first);
        for (int64_t row = 0; row < depth; row++)
            gather_tap(p, image, group * p->in_channels + row / w->kernel_size,
                       row % w->kernel_size, first, count, matrix + row * count);
        int64_t channel = group * p->out_channels;
        int64_t to = (image * p->groups * p->out_channels + channel) * w->out_size + first;
        bool direct = y->dtype == KELP_F32;
        kelp_gemm job = {.a = p->inputs[1] + channel * depth,
                         .b = matrix,
                         .c = direct ? (float *)y->data + to : product,
                         .m = p->out_channels,
                         .n = count,
                         .k = depth,
                         .lda = depth,
                         .ldb = count,
                         .ldc = direct ? w->out_size : count,
                         .row_bias = p->inputs[3] != NULL ? p->inputs[3] + channel : NULL};
        kelp_gemm_run_serial(kelp_gemm_kernels_get(), &job);
        for (int64_t i = 0; !direct && i < p->out_channels; i++)
            kelp_math_store_tensor(y, to + i * w->out_size, count, product + i * count);
    }
}

static kelp_status *deform_invoke(const void *state, kelp_op_args *args) {
    deform_plan *p = args->plan;
    (void)state;
    p->args = args;
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL;
    KELP_ASSERT(p->w.axes == 2 && p->groups > 0 && p->offset_groups > 0);
    for (int32_t i = 0; i < 5; i++) {
        const kelp_tensor *input = kelp_ops_in(args, i);
        p->inputs[i] = input != NULL ? input->data : NULL;
        if (input == NULL || input->dtype == KELP_F32)
            continue;
        float *to = kelp_ops_scratch_at(args, p->input_offsets[i]);
        kelp_math_load_tensor(input, 0, kelp_tensor_elements(input), to);
        p->inputs[i] = to;
    }
    int64_t runs = (p->w.out_size + RUN - 1) / RUN;
    kelp_op_parallel(args->env, p->batch * p->groups * runs, 1, deform_range, p);
    return NULL;
}
KELP_KERNEL(DeformConv, 0, sizeof(deform_plan), 0, deform_reshape, deform_invoke);
