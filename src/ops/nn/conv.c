/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conv in one to three dimensions, and the fused ConvAct (X, W, bias[, residual]; Conv's attributes
 * and activation).
 *
 * The input is unrolled to a matrix of kernel positions by output positions, a strip of output rows
 * (of the last two axes) at a time, and multiplied by the weights; a kernel of 1 with stride 1
 * needs no unrolling, and a group of one channel is summed directly. Source: Chellapilla, Puri and
 * Simard, "High Performance Convolutional Neural Networks for Document Processing", 2006
 * (unrolling); ONNX operator specification.
 */
#include "ops/linear/gemm.h"
#include "ops/microsoft/fused_act.h"
#include "ops/nn/window.h"
#include "ops/widened.h"

typedef struct conv_plan {
    kelp_window w;
    int64_t batch, groups, in_channels, out_channels; /* channels a group */
    kelp_act act;
    bool pointwise, depthwise;
    int64_t strip;                         /* output rows that are unrolled together */
    size_t matrix_offset, matrix_elements; /* per worker */
    const kelp_op_args *args;
    const kelp_simd *simd;
} conv_plan;

static kelp_status *conv_shapes(kelp_op_args *args) {
    conv_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *weights = args->inputs[1],
                      *bias = kelp_ops_in(args, 2);
    if (x->dtype != KELP_F32 || weights->dtype != KELP_F32)
        return kelp_ops_bad_type(args, x->dtype);
    if (weights->rank != x->rank || x->rank < 3)
        return kelp_ops_bad_shapes(args, x, weights,
                                   "expected as many axes in both, three or more");
    KELP_TRY(kelp_window_init(&p->w, args, x, weights->shape + 2, x->rank - 2));
    p->groups = kelp_node_attr_i64(args->node, "group", 1);
    if (p->groups < 1 || x->shape[1] % p->groups != 0 || weights->shape[0] % p->groups != 0 ||
        weights->shape[1] != x->shape[1] / p->groups)
        return kelp_ops_bad_shapes(args, x, weights, "the channels do not fit the groups");
    if (bias != NULL &&
        (kelp_tensor_elements(bias) != weights->shape[0] || bias->dtype != KELP_F32))
        return kelp_ops_bad_shapes(args, weights, bias, "expected one bias an output channel");
    p->batch = x->shape[0];
    p->in_channels = x->shape[1] / p->groups;
    p->out_channels = weights->shape[0] / p->groups;
    int32_t rank = kelp_window_shape(&p->w, p->batch, weights->shape[0], shape);
    const kelp_tensor *residual = kelp_ops_in(args, 3);
    if (residual != NULL && (residual->dtype != KELP_F32 || residual->rank != rank ||
                             memcmp(residual->shape, shape, (size_t)rank * sizeof *shape) != 0))
        return kelp_ops_bad_shapes(args, x, residual, "the residual is not shaped like the result");
    return kelp_ops_set(args, 0, KELP_F32, rank, shape);
}

static kelp_status *conv_reshape(const void *state, kelp_op_args *args) {
    conv_plan *p = args->plan;
    (void)state;
    KELP_TRY(conv_shapes(args));
    bool fused = strcmp(kelp_node_domain(args->node), "kelp") == 0;
    if (fused &&
        !kelp_act_parse(kelp_node_attr_string(args->node, "activation", "", NULL), &p->act))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "ConvAct knows no activation '%s'",
                          kelp_node_attr_string(args->node, "activation", "", NULL));
    p->pointwise = p->w.kernel_size == 1;
    for (int i = 0; i < KELP_WINDOW_AXES; i++)
        p->pointwise =
            p->pointwise && p->w.stride[i] == 1 && p->w.before[i] == 0 && p->w.after[i] == 0;
    p->depthwise = p->in_channels == 1 && p->out_channels <= 4;
    if (p->pointwise || p->depthwise)
        return NULL;
    /* wide enough to fill the tiles of the product, small enough for the cache */
    int64_t depth = p->in_channels * p->w.kernel_size;
    int64_t wanted = KELP_MAX((int64_t)1, 256 / KELP_MAX((int64_t)1, p->w.out[2]));
    int64_t fitting = KELP_MAX((int64_t)1, 131072 / KELP_MAX((int64_t)1, depth * p->w.out[2]));
    p->strip = KELP_MAX((int64_t)1, KELP_MIN(p->w.out[1], KELP_MIN(wanted, fitting)));
    p->matrix_elements = (size_t)(depth * p->strip * p->w.out[2]);
    return kelp_ops_scratch(args, (int64_t)p->matrix_elements * kelp_op_env_threads(args->env),
                            sizeof(float), &p->matrix_offset);
}

/* ---- unrolled ---- */

/* One row of output positions under one kernel position. */
static void unroll_row(const kelp_window *w, const float *x, const int64_t *at, const int64_t *tap,
                       float *to) {
    int64_t z = at[0] * w->stride[0] - w->before[0] + tap[0] * w->dilation[0];
    int64_t y = at[1] * w->stride[1] - w->before[1] + tap[1] * w->dilation[1];
    int64_t shift = tap[2] * w->dilation[2] - w->before[2], count = w->out[2];
    if (z < 0 || z >= w->in[0] || y < 0 || y >= w->in[1]) {
        memset(to, 0, (size_t)count * sizeof *to);
        return;
    }
    const float *row = x + (z * w->in[1] + y) * w->in[2];
    if (w->stride[2] == 1) {
        int64_t first = KELP_MIN(count, KELP_MAX((int64_t)0, -shift));
        int64_t last = KELP_MAX(first, KELP_MIN(count, w->in[2] - shift));
        memset(to, 0, (size_t)first * sizeof *to);
        memcpy(to + first, row + first + shift, (size_t)(last - first) * sizeof *to);
        memset(to + last, 0, (size_t)(count - last) * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t source = i * w->stride[2] + shift;
        to[i] = source >= 0 && source < w->in[2] ? row[source] : 0.0f;
    }
}

/* `rows` output rows from `at`, side by side. */
static void unroll(const conv_plan *p, const float *x, const int64_t *at, int64_t rows,
                   float *matrix) {
    const kelp_window *w = &p->w;
    int64_t tap[3], row[2] = {at[0], 0};
    for (int64_t c = 0; c < p->in_channels; c++)
        for (tap[0] = 0; tap[0] < w->kernel[0]; tap[0]++)
            for (tap[1] = 0; tap[1] < w->kernel[1]; tap[1]++)
                for (tap[2] = 0; tap[2] < w->kernel[2]; tap[2]++)
                    for (row[1] = at[1]; row[1] < at[1] + rows; row[1]++) {
                        unroll_row(w, x + c * w->in_size, row, tap, matrix);
                        matrix += w->out[2];
                    }
}

static const float *residual_of(const kelp_op_args *args) {
    const kelp_tensor *residual = kelp_ops_in(args, 3);
    return residual != NULL ? residual->data : NULL;
}

static const float *bias_of(const kelp_op_args *args) {
    const kelp_tensor *bias = kelp_ops_in(args, 2);
    return bias != NULL ? bias->data : NULL;
}

static int64_t strips_of(const conv_plan *p) {
    return (p->w.out[1] + p->strip - 1) / p->strip;
}

/* A unit is one strip of one group of one image. */
static void conv_strips(void *userp, int64_t begin, int64_t end, int worker) {
    const conv_plan *p = userp;
    const kelp_op_args *args = p->args;
    const kelp_window *w = &p->w;
    float *matrix = (float *)(void *)((char *)args->scratch + p->matrix_offset) +
                    (size_t)worker * p->matrix_elements;
    int64_t strips = strips_of(p), depth = p->in_channels * w->kernel_size;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t image = unit / strips / w->out[0], group = image % p->groups;
        int64_t at[2] = {unit / strips % w->out[0], unit % strips * p->strip};
        int64_t rows = KELP_MIN(p->strip, w->out[1] - at[1]);
        const float *x = (const float *)args->inputs[0]->data + image * p->in_channels * w->in_size;
        int64_t to =
            image * p->out_channels * w->out_size + (at[0] * w->out[1] + at[1]) * w->out[2];
        unroll(p, x, at, rows, matrix);
        kelp_gemm job = {
            .a = (const kelp_float_u *)args->inputs[1]->data + group * p->out_channels * depth,
            .b = matrix,
            .c = (float *)args->outputs[0]->data + to,
            .m = p->out_channels,
            .n = rows * w->out[2],
            .k = depth,
            .lda = depth,
            .ldb = rows * w->out[2],
            .ldc = w->out_size,
            .row_bias = bias_of(args) != NULL ? bias_of(args) + group * p->out_channels : NULL,
            .residual = residual_of(args) != NULL ? residual_of(args) + to : NULL,
            .act = p->act};
        kelp_gemm_run_serial(p->simd, &job);
    }
}

/* ---- one channel a group ---- */
static void depthwise_row(const conv_plan *p, const float *x, const kelp_float_u *weights,
                          const int64_t *at, float *y) {
    const kelp_window *w = &p->w;
    memset(y, 0, (size_t)w->out[2] * sizeof *y);
    for (int64_t a = 0; a < w->kernel[0]; a++)
        for (int64_t b = 0; b < w->kernel[1]; b++) {
            int64_t z = at[0] * w->stride[0] - w->before[0] + a * w->dilation[0];
            int64_t r = at[1] * w->stride[1] - w->before[1] + b * w->dilation[1];
            if (z < 0 || z >= w->in[0] || r < 0 || r >= w->in[1])
                continue;
            const float *row = x + (z * w->in[1] + r) * w->in[2];
            for (int64_t c = 0; c < w->kernel[2]; c++) {
                int64_t shift = c * w->dilation[2] - w->before[2], stride = w->stride[2];
                int64_t first = shift < 0 ? (-shift + stride - 1) / stride : 0;
                int64_t last = w->in[2] - shift <= 0 ? 0 : (w->in[2] - shift - 1) / stride + 1;
                last = KELP_MIN(last, w->out[2]);
                if (first < last)
                    p->simd->axpy(y + first, row + first * stride + shift,
                                  weights[(a * w->kernel[1] + b) * w->kernel[2] + c], stride,
                                  last - first);
            }
        }
}

static void depthwise_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const conv_plan *p = userp;
    const kelp_op_args *args = p->args;
    const kelp_window *w = &p->w;
    int64_t rows = w->out[0] * w->out[1], channels = p->groups * p->out_channels;
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t row = unit % rows, plane = unit / rows, channel = plane % channels;
        int64_t image = plane / channels, at[2] = {row / w->out[1], row % w->out[1]};
        int64_t input = image * p->groups + channel / p->out_channels;
        int64_t to = plane * w->out_size + row * w->out[2];
        float *y = (float *)args->outputs[0]->data + to;
        depthwise_row(p, (const float *)args->inputs[0]->data + input * w->in_size,
                      (const kelp_float_u *)args->inputs[1]->data + channel * w->kernel_size, at,
                      y);
        p->simd->finish(y, NULL, bias_of(args) != NULL ? bias_of(args)[channel] : 0.0f,
                        residual_of(args) != NULL ? residual_of(args) + to : NULL, w->out[2],
                        p->act);
    }
}

/* ---- kernels of one ---- */
static void pointwise(const conv_plan *p) {
    const kelp_op_args *args = p->args;
    const kelp_window *w = &p->w;
    for (int64_t image = 0; image < p->batch * p->groups; image++) {
        int64_t group = image % p->groups, to = image * p->out_channels * w->out_size;
        kelp_gemm job = {
            .a = (const kelp_float_u *)args->inputs[1]->data +
                 group * p->out_channels * p->in_channels,
            .b = (const float *)args->inputs[0]->data + image * p->in_channels * w->in_size,
            .c = (float *)args->outputs[0]->data + to,
            .m = p->out_channels,
            .n = w->out_size,
            .k = p->in_channels,
            .lda = p->in_channels,
            .ldb = w->in_size,
            .ldc = w->out_size,
            .row_bias = bias_of(args) != NULL ? bias_of(args) + group * p->out_channels : NULL,
            .residual = residual_of(args) != NULL ? residual_of(args) + to : NULL,
            .act = p->act};
        kelp_gemm_run(args->env, &job, 1);
    }
}

static kelp_status *conv_invoke(const void *state, kelp_op_args *args) {
    conv_plan *p = args->plan;
    (void)state;
    p->args = args;
    p->simd = kelp_simd_get();
    int64_t rows = p->w.out[0] * p->w.out[1] * p->batch * p->groups;
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL;
    if (p->pointwise) {
        pointwise(p);
        return NULL;
    }
    int64_t work = p->in_channels * p->w.kernel_size * p->w.out[2] * p->out_channels;
    int64_t grain = 1000000 / KELP_MAX((int64_t)1, work) + 1;
    if (p->depthwise)
        kelp_op_parallel(args->env, rows * p->out_channels, grain * 4, depthwise_rows, p);
    else
        kelp_op_parallel(args->env, p->batch * p->groups * p->w.out[0] * strips_of(p),
                         grain / p->strip + 1, conv_strips, p);
    return NULL;
}
KELP_WIDENED_PHASES(conv, sizeof(conv_plan), conv_reshape, conv_invoke)
KELP_KERNEL(Conv, 0, KELP_WIDENED_PLAN(sizeof(conv_plan)), 2, conv_reshape_any, conv_invoke_any);
KELP_KERNEL(ConvAct, 0, KELP_WIDENED_PLAN(sizeof(conv_plan)), 2, conv_reshape_any, conv_invoke_any);

/* com.microsoft FusedConv: its own names of activations, and a residual Z before them. */
static kelp_status *fused_reshape(const void *state, kelp_op_args *args) {
    kelp_fused_act act;
    KELP_TRY(kelp_fused_act_read(args->node, &act));
    return conv_reshape(state, args);
}
static kelp_status *fused_invoke(const void *state, kelp_op_args *args) {
    kelp_fused_act act;
    KELP_TRY(kelp_fused_act_read(args->node, &act));
    KELP_TRY(conv_invoke(state, args));
    kelp_fused_act_run(args->env, act, args->outputs[0]->data,
                       kelp_tensor_elements(args->outputs[0]));
    return NULL;
}
KELP_WIDENED_PHASES(fused, sizeof(conv_plan), fused_reshape, fused_invoke)
KELP_KERNEL(MsFusedConv, 0, KELP_WIDENED_PLAN(sizeof(conv_plan)), 2, fused_reshape_any,
            fused_invoke_any);
