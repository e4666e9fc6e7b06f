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
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/ops/elementwise/activation.h"
#include "cpu/kernels/conv/direct.h"
#include "cpu/kernels/conv/interleaved.h"
#include "cpu/kernels/conv/im2row.h"
#include "cpu/kernels/conv/reference.h"
#include "cpu/kernels/conv/winograd.h"
#include "cpu/kernels/conv/padded.h"
#include "cpu/kernels/conv/unroll.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/variant.h"

typedef struct conv_plan {
    kelp_window w;
    int64_t batch, groups, in_channels, out_channels; /* channels a group */
    kelp_act act;
    bool pointwise, depthwise, framed; /* framed: depthwise, over two axes at most */
    bool same;                         /* framed, but the image needs no frame */
    bool lanes, direct;
    kelp_conv_frames frames; /* of direct */
    const float *panels;     /* not NULL: few output positions, see conv_narrow.h */
    const float *parts;      /* not NULL: see conv_winograd.h */
    kelp_conv_tiles tiles;

    int64_t strip, images; /* output rows, and images, that are unrolled together */
    int64_t matrix_elements, plane_elements, product_elements; /* per worker */
    size_t matrix_offset;
    const kelp_op_args *args;
    const kelp_simd *simd;
} conv_plan;

static kelp_status *conv_shapes(kelp_op_args *args) {
    conv_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *weights = args->inputs[1],
                      *bias = kelp_ops_in(args, 2);
    kelp_dtype dtype = x->dtype;
    bool wide = dtype == KELP_F64 && kelp_node_domain(args->node)[0] == '\0';
    if ((dtype != KELP_F32 && !wide) || weights->dtype != dtype)
        return kelp_ops_bad_type(args, dtype);
    if (weights->rank != x->rank || x->rank < 3)
        return kelp_ops_bad_shapes(args, x, weights,
                                   "expected as many axes in both, three or more");
    KELP_TRY(kelp_window_init(&p->w, args, x, weights->shape + 2, x->rank - 2));
    p->groups = kelp_node_attr_i64(args->node, "group", 1);
    if (p->groups < 1 || x->shape[1] % p->groups != 0 || weights->shape[0] % p->groups != 0 ||
        weights->shape[1] != x->shape[1] / p->groups)
        return kelp_ops_bad_shapes(args, x, weights, "the channels do not fit the groups");
    if (bias != NULL && (kelp_tensor_elements(bias) != weights->shape[0] || bias->dtype != dtype))
        return kelp_ops_bad_shapes(args, weights, bias, "expected one bias an output channel");
    p->batch = x->shape[0];
    p->in_channels = x->shape[1] / p->groups;
    p->out_channels = weights->shape[0] / p->groups;
    int32_t rank = kelp_window_shape(&p->w, p->batch, weights->shape[0], shape);
    const kelp_tensor *residual = kelp_ops_in(args, 3);
    if (residual != NULL && (residual->dtype != KELP_F32 || residual->rank != rank ||
                             memcmp(residual->shape, shape, (size_t)rank * sizeof *shape) != 0))
        return kelp_ops_bad_shapes(args, x, residual, "the residual is not shaped like the result");
    kelp_window_lay_down(&p->w);
    return kelp_ops_set(args, 0, dtype, rank, shape);
}

/* Wide enough to fill the tiles of the product, small enough for the cache: some rows of a large
 * image, or several small images side by side. */
static kelp_status *conv_reserve(conv_plan *p, kelp_op_args *args) {
    const kelp_window *w = &p->w;
    int64_t depth = p->in_channels * w->kernel_size, width = KELP_MAX((int64_t)1, w->out[2]);
    int64_t wanted = KELP_MAX((int64_t)1, 256 / width);
    int64_t fitting = KELP_MAX((int64_t)1, 131072 / KELP_MAX((int64_t)1, depth * width));
    p->strip = KELP_MAX((int64_t)1, KELP_MIN(w->out[1], KELP_MIN(wanted, fitting)));
    if (p->strip < w->out[1]) { /* strips that fill tiles, when rows allow it */
        int64_t tile = kelp_simd_get()->tile_columns, columns = p->strip * width;
        int64_t up = (columns + tile - 1) / tile * tile, down = columns / tile * tile;
        int64_t wanted_columns = up <= columns + columns / 3 ? up : down;
        if (wanted_columns > 0 && wanted_columns % width == 0)
            p->strip = KELP_MIN(w->out[1], wanted_columns / width);
    }
    p->images = 1;
    if (p->strip == w->out[1] && w->out[0] == 1) {
        int64_t size = KELP_MAX((int64_t)1, w->out_size), threads = kelp_op_env_threads(args->env);
        p->images = KELP_MIN(192 / size, 131072 / KELP_MAX((int64_t)1, depth * size));
        p->images = KELP_MIN(p->images, (p->batch + threads - 1) / threads);
        p->images = KELP_MAX((int64_t)1, p->images);
    }
    int64_t columns = p->images * p->strip * w->out[2], all = 0;
    p->product_elements = p->images > 1 ? p->out_channels * columns : 0;
    p->plane_elements = kelp_unroll_plane(w, p->strip, p->images);
    if (!kelp_i64_mul(depth, columns + KELP_UNROLL_SLACK, &p->matrix_elements) ||
        !kelp_i64_add(p->matrix_elements, p->product_elements + p->plane_elements, &all) ||
        !kelp_i64_mul(all, kelp_op_env_threads(args->env), &all))
        return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[1],
                                   "the kernel is too large");
    return kelp_ops_scratch(args, all, sizeof(float), &p->matrix_offset);
}

static kelp_status *lanes_reserve(conv_plan *p, kelp_op_args *args, const kelp_simd *simd) {
    int64_t all = 0;
    p->simd = simd;
    p->matrix_elements = kelp_conv_lanes_floats(&p->w, simd, p->in_channels, p->out_channels);
    if (p->matrix_elements < 0 ||
        !kelp_i64_mul(p->matrix_elements, kelp_op_env_threads(args->env), &all))
        return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[1],
                                   "the kernel is too large");
    return kelp_ops_scratch(args, all, sizeof(float), &p->matrix_offset);
}

static kelp_status *narrow_reserve(conv_plan *p, kelp_op_args *args, const kelp_simd *simd) {
    p->simd = simd;
    p->matrix_elements = kelp_conv_narrow_floats(&p->w, p->batch, p->in_channels, p->out_channels);
    if (p->matrix_elements < 0)
        return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[1],
                                   "the kernel is too large");
    return kelp_ops_scratch(args, p->matrix_elements, sizeof(float), &p->matrix_offset);
}

static kelp_status *direct_reserve(conv_plan *p, kelp_op_args *args, const kelp_simd *simd) {
    int64_t all = 0;
    p->simd = simd;
    if (!kelp_i64_mul(p->frames.frame_floats + p->frames.product_floats,
                      kelp_op_env_threads(args->env), &all) ||
        !kelp_i64_add(all, p->frames.offset_floats, &all))
        return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[1],
                                   "the kernel is too large");
    return kelp_ops_scratch(args, all, sizeof(float), &p->matrix_offset);
}

static kelp_status *winograd_reserve(conv_plan *p, kelp_op_args *args, const kelp_simd *simd) {
    int64_t all = 0;
    p->simd = simd;
    if (!kelp_i64_mul(p->tiles.worker_floats, kelp_op_env_threads(args->env), &all))
        return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[1],
                                   "the kernel is too large");
    return kelp_ops_scratch(args, all, sizeof(float), &p->matrix_offset);
}

static kelp_status *depthwise_reserve(conv_plan *p, kelp_op_args *args, const kelp_simd *simd) {
    int64_t all = 0;
    p->simd = simd;
    p->strip = kelp_frame_strip(&p->w);
    p->same = kelp_frame_is_same(&p->w, simd);
    if (p->same)
        return NULL;
    p->plane_elements = kelp_frame_floats(&p->w, p->strip);
    if (p->plane_elements < 0 ||
        !kelp_i64_mul(p->plane_elements, kelp_op_env_threads(args->env), &all))
        return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[1],
                                   "the kernel is too large");
    return kelp_ops_scratch(args, all, sizeof(float), &p->matrix_offset);
}

/* What is larger is refused where memory is asked for; what a way costs is counted below. */
static bool is_countable(const conv_plan *p) {
    return p->batch <= INT32_MAX && p->w.in_size <= INT32_MAX && p->w.out_size <= INT32_MAX &&
           p->w.kernel_size <= INT32_MAX && p->in_channels <= INT32_MAX &&
           p->out_channels <= INT32_MAX;
}

/* Whether one of the ways pays that keep weights in a layout of their own, or images side by side.
 */
static kelp_status *choose_layout(const kelp_conv_state *state, const kelp_simd *simd, conv_plan *p,
                                  const kelp_op_args *args) {
    if (p->groups != 1)
        return NULL;
    bool narrow = kelp_conv_narrow_pays(&p->w, simd, p->batch, p->in_channels, p->out_channels);
    bool few = p->batch * p->w.out_size <= KELP_CONV_NARROW_FEW;
    if (narrow && few)
        KELP_TRY(kelp_conv_panels(state, simd, KELP_CONV_TURNED, &p->panels));
    if (p->panels != NULL)
        return NULL;
    p->lanes = !p->pointwise && kelp_ops_in(args, 3) == NULL &&
               kelp_conv_lanes_pays(&p->w, simd, p->batch, p->in_channels, p->out_channels);
    if (p->lanes)
        return NULL;
    if (kelp_conv_winograd_pays(&p->w, simd, p->batch, p->in_channels, p->out_channels,
                                kelp_op_env_threads(args->env), &p->tiles))
        KELP_TRY(kelp_conv_panels(state, simd,
                                  p->tiles.points == 4 ? KELP_CONV_WINOGRAD_4 : KELP_CONV_WINOGRAD,
                                  &p->parts));
    return p->parts == NULL && narrow && !few
               ? kelp_conv_panels(state, simd, KELP_CONV_TURNED, &p->panels)
               : NULL;
}

static kelp_status *conv_reshape(const void *state, kelp_op_args *args) {
    conv_plan *p = args->plan;
    KELP_TRY(conv_shapes(args));
    if (args->inputs[0]->dtype == KELP_F64)
        return NULL;
    bool fused = kelp_op_variant_of(args->node) == KELP_VARIANT_FUSED_ACT;
    if (fused &&
        !kelp_act_parse(kelp_node_attr_string(args->node, "activation", "", NULL), &p->act))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "ConvAct knows no activation '%s'",
                          kelp_node_attr_string(args->node, "activation", "", NULL));
    p->pointwise = p->w.kernel_size == 1;
    for (int i = 0; i < KELP_WINDOW_AXES; i++)
        p->pointwise =
            p->pointwise && p->w.stride[i] == 1 && p->w.before[i] == 0 && p->w.after[i] == 0;
    p->depthwise = p->in_channels == 1 && p->out_channels <= 4;
    p->framed = p->depthwise && kelp_frame_fits(&p->w);
    const kelp_simd *simd = kelp_simd_get();
    if (p->framed)
        return depthwise_reserve(p, args, simd);
    if (is_countable(p))
        KELP_TRY(choose_layout(state, simd, p, args));
    if (p->panels != NULL)
        return narrow_reserve(p, args, simd);
    if (p->lanes)
        return lanes_reserve(p, args, simd);
    if (p->parts != NULL)
        return winograd_reserve(p, args, simd);
    p->direct = !p->pointwise && !p->depthwise && is_countable(p) &&
                kelp_conv_direct_pays(&p->w, p->batch * p->groups, p->in_channels, p->out_channels,
                                      kelp_op_env_threads(args->env), &p->frames);
    if (p->direct)
        return direct_reserve(p, args, simd);
    return p->pointwise || p->depthwise ? NULL : conv_reserve(p, args);
}

/* ---- unrolled ---- */
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

/* From a product of several images to where they lie, with what follows it. */
static void scatter(const conv_plan *p, const float *product, int64_t to, int64_t group,
                    int64_t images) {
    const kelp_op_args *args = p->args;
    const float *bias = bias_of(args), *residual = residual_of(args);
    int64_t size = p->w.out_size, step = p->groups * p->out_channels * size;
    float *y = (float *)args->outputs[0]->data + to;
    for (int64_t c = 0; c < p->out_channels; c++) {
        p->simd->copy_rows(y + c * size, step, product + c * images * size, size, images, size);
        for (int64_t i = 0; i < images && residual != NULL; i++) {
            int64_t at = i * step + c * size;
            p->simd->finish(y + at, NULL, bias != NULL ? bias[group * p->out_channels + c] : 0.0f,
                            residual + to + at, size, p->act);
        }
    }
}

/* A unit is one strip of one group of one image, or of some images that are small. */
static void conv_strips(void *userp, int64_t begin, int64_t end, int worker) {
    const conv_plan *p = userp;
    const kelp_op_args *args = p->args;
    const kelp_window *w = &p->w;
    const float *bias = bias_of(args), *residual = residual_of(args);
    float *matrix = (float *)(void *)((char *)args->scratch + p->matrix_offset) +
                    worker * (p->matrix_elements + p->product_elements + p->plane_elements);
    float *product = matrix + p->matrix_elements, *plane = product + p->product_elements;
    int64_t strips = strips_of(p), depth = p->in_channels * w->kernel_size;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t group = unit / strips / w->out[0] % p->groups;
        int64_t image = unit / strips / w->out[0] / p->groups * p->images;
        int64_t images = KELP_MIN(p->images, p->batch - image);
        kelp_unroll u = {.w = w, .simd = p->simd, .channels = p->in_channels, .images = images};
        u.x = (const float *)args->inputs[0]->data +
              (image * p->groups + group) * p->in_channels * w->in_size;
        u.image_step = p->groups * p->in_channels * w->in_size;
        u.depth = unit / strips % w->out[0];
        u.row = unit % strips * p->strip;
        u.rows = KELP_MIN(p->strip, w->out[1] - u.row);
        u.matrix = matrix;
        u.plane = plane;
        int64_t columns = images * u.rows * w->out[2];
        int64_t to = (image * p->groups + group) * p->out_channels * w->out_size +
                     (u.depth * w->out[1] + u.row) * w->out[2];
        u.ld = columns + KELP_UNROLL_SLACK;
        kelp_unroll_run(&u);
        kelp_gemm job = {.a = (const kelp_float_u *)args->inputs[1]->data +
                              group * p->out_channels * depth,
                         .b = matrix,
                         .c = images > 1 ? product : (float *)args->outputs[0]->data + to,
                         .m = p->out_channels,
                         .n = columns,
                         .k = depth,
                         .lda = depth,
                         .ldb = u.ld,
                         .ldc = images > 1 ? columns : w->out_size};
        if (images == 1 || residual == NULL) {
            job.row_bias = bias != NULL ? bias + group * p->out_channels : NULL;
            job.residual = residual != NULL ? residual + to : NULL;
            job.act = p->act;
        }
        kelp_gemm_run_serial(p->simd, &job);
        if (images > 1)
            scatter(p, product, to, group, images);
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

/* A unit is a strip of rows of one output channel. */
static void depthwise_strips(void *userp, int64_t begin, int64_t end, int worker) {
    const conv_plan *p = userp;
    const kelp_op_args *args = p->args;
    const kelp_window *w = &p->w;
    const float *bias = bias_of(args), *residual = residual_of(args);
    float *frame = p->same ? NULL
                           : (float *)(void *)((char *)args->scratch + p->matrix_offset) +
                                 worker * p->plane_elements;
    int64_t strips = strips_of(p), channels = p->groups * p->out_channels;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t plane = unit / strips, channel = plane % channels;
        int64_t first = unit % strips * p->strip, rows = KELP_MIN(p->strip, w->out[1] - first);
        int64_t input = plane / channels * p->groups + channel / p->out_channels;
        int64_t to = plane * w->out_size + first * w->out[2];
        const float *x = (const float *)args->inputs[0]->data + input * w->in_size;
        kelp_slide s = {.op = KELP_SLIDE_WEIGHTED, .y = (float *)args->outputs[0]->data + to};
        s.w = (const kelp_float_u *)args->inputs[1]->data + channel * w->kernel_size;
        float shift = bias != NULL ? bias[channel] : 0.0f;
        bool finishes = p->same && residual == NULL && kelp_act_is_light(p->act);
        if (p->same)
            kelp_frame_image(w, x, first, rows, &s);
        else
            kelp_frame_fill(w, p->simd, x, first, rows, 0.0f, frame, &s);
        if (finishes) {
            s.bias = shift;
            s.act = p->act;
        }
        p->simd->slide(&s);
        if (!finishes && (bias != NULL || residual != NULL || p->act != KELP_ACT_NONE))
            p->simd->finish(s.y, NULL, shift, residual != NULL ? residual + to : NULL,
                            rows * w->out[2], p->act);
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

static void conv_lanes(const conv_plan *p) {
    const kelp_op_args *args = p->args;
    kelp_conv_lanes job = {.w = &p->w,
                           .simd = p->simd,
                           .batch = p->batch,
                           .in_channels = p->in_channels,
                           .out_channels = p->out_channels,
                           .x = args->inputs[0]->data,
                           .weights = args->inputs[1]->data,
                           .bias = bias_of(args),
                           .act = p->act,
                           .y = args->outputs[0]->data,
                           .buffer = (float *)(void *)((char *)args->scratch + p->matrix_offset),
                           .buffer_floats = p->matrix_elements};
    kelp_conv_lanes_run(args->env, &job);
}

static void conv_direct(const conv_plan *p) {
    const kelp_op_args *args = p->args;
    kelp_conv_direct job = {.w = &p->w,
                            .frames = &p->frames,
                            .simd = p->simd,
                            .batch = p->batch,
                            .groups = p->groups,
                            .in_channels = p->in_channels,
                            .out_channels = p->out_channels,
                            .x = args->inputs[0]->data,
                            .weights = args->inputs[1]->data,
                            .bias = bias_of(args),
                            .residual = residual_of(args),
                            .act = p->act,
                            .y = args->outputs[0]->data,
                            .buffer = (float *)(void *)((char *)args->scratch + p->matrix_offset)};
    kelp_conv_direct_run(args->env, &job);
}

static void conv_winograd(const conv_plan *p) {
    const kelp_op_args *args = p->args;
    kelp_conv_winograd job = {.w = &p->w,
                              .tiles = &p->tiles,
                              .simd = p->simd,
                              .batch = p->batch,
                              .in_channels = p->in_channels,
                              .out_channels = p->out_channels,
                              .x = args->inputs[0]->data,
                              .panels = p->parts,
                              .bias = bias_of(args),
                              .residual = residual_of(args),
                              .act = p->act,
                              .y = args->outputs[0]->data,
                              .buffer =
                                  (float *)(void *)((char *)args->scratch + p->matrix_offset)};
    kelp_conv_winograd_run(args->env, &job);
}

static void conv_narrow(const conv_plan *p) {
    const kelp_op_args *args = p->args;
    kelp_conv_narrow job = {.w = &p->w,
                            .simd = p->simd,
                            .batch = p->batch,
                            .in_channels = p->in_channels,
                            .out_channels = p->out_channels,
                            .x = args->inputs[0]->data,
                            .panels = p->panels,
                            .bias = bias_of(args),
                            .residual = residual_of(args),
                            .act = p->act,
                            .y = args->outputs[0]->data,
                            .buffer = (float *)(void *)((char *)args->scratch + p->matrix_offset)};
    kelp_conv_narrow_run(args->env, &job);
}

/* Rows that are worth a thread: windows take a third of the speed that products have. */
static int64_t depthwise_grain(const conv_plan *p) {
    return 330000 / KELP_MAX((int64_t)1, p->w.kernel_size * p->w.out[2]) + 1;
}

static kelp_status *conv_invoke(const void *state, kelp_op_args *args) {
    conv_plan *p = args->plan;
    (void)state;
    p->args = args;
    if (args->inputs[0]->dtype == KELP_F64) {
        kelp_conv_wide_run(
            &(kelp_conv_wide){&p->w, args, p->batch, p->groups, p->in_channels, p->out_channels});
        return NULL;
    }
    if (p->lanes) { /* with the instruction set that memory was counted for */
        conv_lanes(p);
        return NULL;
    }
    if (p->panels != NULL) {
        conv_narrow(p);
        return NULL;
    }
    if (p->parts != NULL) {
        conv_winograd(p);
        return NULL;
    }
    if (p->direct && kelp_tensor_elements(args->outputs[0]) > 0) {
        conv_direct(p);
        return NULL;
    }
    if (!p->framed)
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
    if (p->framed)
        kelp_op_parallel(args->env, p->batch * p->groups * p->out_channels * strips_of(p),
                         depthwise_grain(p) / p->strip + 1, depthwise_strips, p);
    else if (p->depthwise)
        kelp_op_parallel(args->env, rows * p->out_channels, depthwise_grain(p), depthwise_rows, p);
    else
        kelp_op_parallel(args->env,
                         (p->batch + p->images - 1) / p->images * p->groups * p->w.out[0] *
                             strips_of(p),
                         grain / p->strip / p->images + 1, conv_strips, p);
    return NULL;
}
KELP_CONVERTED_PHASES(conv, kelp_widened, sizeof(conv_plan), conv_reshape, conv_invoke)
#define CONV_KERNEL(name)                                                                        \
    const kelp_op_kernel kelp_op_##name = {.struct_size = sizeof(kelp_op_kernel),                \
                                           .flags = KELP_OP_STATE_OPTIONAL,                      \
                                           .plan_bytes = KELP_CONVERTED_PLAN(sizeof(conv_plan)), \
                                           .unaligned_inputs = 2,                                \
                                           .create = kelp_conv_state_create,                     \
                                           .destroy = kelp_conv_state_destroy,                   \
                                           .reshape = conv_reshape_any,                          \
                                           .invoke = conv_invoke_any}
CONV_KERNEL(Conv);
CONV_KERNEL(ConvAct);

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
KELP_CONVERTED_PHASES(fused, kelp_widened, sizeof(conv_plan), fused_reshape, fused_invoke)
KELP_KERNEL(MsFusedConv, 0, KELP_CONVERTED_PLAN(sizeof(conv_plan)), 2, fused_reshape_any,
            fused_invoke_any);
