/* SPDX-License-Identifier: Apache-2.0 */
/* CenterCropPad and Col2Im. Source: ONNX operator specification, CenterCropPad-18 and Col2Im-18. */
#include "base/assert.h"
#include "cpu/kernels/vector/vector_kernels.h"
#include "cpu/ops/conv/window.h"
#include "cpu/ops/kernel.h"
#include "operator/window.h"
#include "tensor/real.h"

/* ---- CenterCropPad ---- */
static kelp_status *center_reshape(const void *state, kelp_op_args *args) {
    int64_t shape[KELP_MAX_RANK], requested[KELP_MAX_RANK];
    const int64_t *axes = NULL;
    size_t count = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0];
    if (kelp_ops_element_bytes(x->dtype) == 0)
        return kelp_ops_bad_type(args, x->dtype);
    if (kelp_ops_defer(args, 1))
        return NULL;
    KELP_TRY(kelp_ops_i64s(args, args->inputs[1], requested, KELP_MAX_RANK, &count));
    size_t axis_count = kelp_node_attr_i64s(args->node, "axes", &axes);
    if (count != (axis_count > 0 ? axis_count : (size_t)x->rank))
        return kelp_ops_bad_shapes(args, x, args->inputs[1], "expected one size for each axis");
    memcpy(shape, x->shape, sizeof shape);
    for (size_t i = 0; i < count; i++) {
        int32_t axis = 0;
        KELP_TRY(kelp_ops_axis(args, axis_count > 0 ? axes[i] : (int64_t)i, x->rank, &axis));
        shape[axis] = requested[i];
    }
    return kelp_ops_set(args, 0, x->dtype, x->rank, shape);
}

static kelp_status *center_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    size_t size = kelp_ops_element_bytes(x->dtype);
    int64_t from[KELP_MAX_RANK], to[KELP_MAX_RANK], shape[KELP_MAX_RANK];
    int64_t source = 0, target = 0, count = 1;
    bool padded = false;
    (void)state;
    KELP_ASSERT(x->rank == y->rank && x->dtype == y->dtype);
    kelp_ops_strides(x->rank, x->shape, from);
    kelp_ops_strides(y->rank, y->shape, to);
    for (int32_t i = 0; i < x->rank; i++) {
        shape[i] = KELP_MIN(x->shape[i], y->shape[i]);
        padded = padded || shape[i] < y->shape[i];
        source += (x->shape[i] - shape[i]) / 2 * from[i];
        target += (y->shape[i] - shape[i]) / 2 * to[i];
        count *= shape[i];
    }
    if (padded && kelp_tensor_bytes(y) > 0)
        memset(y->data, 0, kelp_tensor_bytes(y));
    if (count > 0)
        kelp_ops_copy(args->env, size, x->rank, shape, (char *)y->data + (size_t)target * size, to,
                      (const char *)x->data + (size_t)source * size, from);
    return NULL;
}
KELP_KERNEL(CenterCropPad, 0, 0, 1, center_reshape, center_invoke);

/* ---- Col2Im ---- */
#define MAX_AXES 6 /* spatial axes */

typedef struct col2im_plan {
    int32_t axes;
    int64_t image[MAX_AXES], block[MAX_AXES], stride[MAX_AXES], dilation[MAX_AXES];
    int64_t before[MAX_AXES], blocks[MAX_AXES];
    int64_t image_size, block_size, block_count;
    size_t sums_offset;
    const kelp_op_args *args;
} col2im_plan;

static kelp_status *col2im_axis(col2im_plan *p, const kelp_op_args *args, int32_t i) {
    const int64_t max = (int64_t)1 << 40;
    const kelp_window_range steps = {1, max}, pads = {0, max};
    size_t axes = (size_t)p->axes, axis_index = (size_t)i;
    int64_t after = 0;
    p->stride[i] = p->dilation[i] = 1;
    KELP_TRY(kelp_window_attr(args, "strides", axes, axis_index, steps, &p->stride[i]));
    KELP_TRY(kelp_window_attr(args, "dilations", axes, axis_index, steps, &p->dilation[i]));
    KELP_TRY(kelp_window_attr(args, "pads", 2 * axes, axis_index, pads, &p->before[i]));
    KELP_TRY(kelp_window_attr(args, "pads", 2 * axes, axis_index + axes, pads, &after));
    if (p->image[i] < 1 || p->image[i] > max || p->block[i] < 1 ||
        p->block[i] > max / p->dilation[i])
        return kelp_ops_bad_shapes(args, args->inputs[1], args->inputs[2],
                                   "a size of the image or of the block is out of range");
    kelp_window_axis axis = {p->image[i],    p->block[i],  p->stride[i],
                             p->dilation[i], p->before[i], after};
    if (!kelp_window_output(&axis, KELP_AUTO_PAD_NOTSET, false, &p->blocks[i]))
        return kelp_ops_bad_shapes(args, args->inputs[0], NULL,
                                   "the block is larger than the padded image");
    if (!kelp_i64_mul(p->image_size, p->image[i], &p->image_size) ||
        !kelp_i64_mul(p->block_size, p->block[i], &p->block_size) ||
        !kelp_i64_mul(p->block_count, p->blocks[i], &p->block_count))
        return kelp_ops_bad_shapes(args, args->inputs[0], NULL, "the image is too large");
    return NULL;
}

static kelp_status *col2im_reshape(const void *state, kelp_op_args *args) {
    col2im_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    size_t count = 0, block_count = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 3));
    const kelp_tensor *x = args->inputs[0];
    if (!kelp_real_takes(x->dtype))
        return kelp_ops_bad_type(args, x->dtype);
    if (kelp_ops_defer(args, 1) || kelp_ops_defer(args, 2))
        return NULL;
    KELP_TRY(kelp_ops_i64s(args, args->inputs[1], p->image, MAX_AXES, &count));
    KELP_TRY(kelp_ops_i64s(args, args->inputs[2], p->block, MAX_AXES, &block_count));
    p->axes = (int32_t)count;
    p->image_size = p->block_size = p->block_count = 1;
    if (count == 0 || count != block_count || x->rank != 3)
        return kelp_ops_bad_shapes(args, x, args->inputs[1],
                                   "expected [N, channels x block, blocks] and the same number of "
                                   "sizes of the image and of the block");
    for (int32_t i = 0; i < p->axes; i++) {
        KELP_TRY(col2im_axis(p, args, i));
        shape[i + 2] = p->image[i];
    }
    if (x->shape[1] % p->block_size != 0 || x->shape[2] != p->block_count)
        return kelp_ops_bad_shapes(args, x, NULL, "the columns do not match the blocks");
    shape[0] = x->shape[0];
    shape[1] = x->shape[1] / p->block_size;
    KELP_TRY(kelp_ops_set(args, 0, x->dtype, p->axes + 2, shape));
    int64_t sums = 0;
    if (!kelp_i64_mul(p->image_size, kelp_op_env_threads(args->env), &sums))
        return kelp_ops_bad_shapes(args, x, NULL, "the image is too large");
    return x->dtype == KELP_F32 ? NULL
                                : kelp_ops_scratch(args, sums, sizeof(double), &p->sums_offset);
}

/* Adds `count` values of adjacent blocks to elements that are `stride` apart. */
static void add_blocks(const col2im_plan *p, int64_t from, int64_t count, int64_t stride,
                       int64_t to, void *sums) {
    const kelp_tensor *x = p->args->inputs[0];
    if (x->dtype == KELP_F32) {
        const float *values = (const float *)x->data + from;
        float *y = (float *)sums + to;
        if (stride == 1)
            kelp_vector_kernels_get()->accumulate(y, values, 1, count);
        else
            for (int64_t b = 0; b < count; b++)
                y[b * stride] += values[b];
        return;
    }
    for (int64_t b = 0; b < count; b++) {
        double value;
        kelp_real_load_f64(x->dtype, x->data, from + b, 1, &value);
        ((double *)sums)[to + b * stride] += value;
    }
}

/* Adds the row of one position in the block, for all blocks, to the image. */
static void add_row(const col2im_plan *p, int64_t tap, int64_t from, void *sums) {
    int64_t offset[MAX_AXES], last = p->axes - 1, stride = p->stride[last];
    for (int32_t i = p->axes - 1; i >= 0; i--) {
        offset[i] = tap % p->block[i] * p->dilation[i] - p->before[i];
        tap /= p->block[i];
    }
    /* the blocks of a row that are inside the image */
    int64_t first = offset[last] < 0 ? (-offset[last] + stride - 1) / stride : 0;
    int64_t end = kelp_divide_up(KELP_MAX((int64_t)0, p->image[last] - offset[last]), stride);
    int64_t count = KELP_MIN(end, p->blocks[last]) - first;
    for (int64_t row = 0; row < p->block_count; row += p->blocks[last]) {
        int64_t rest = row / p->blocks[last], to = 0, scale = p->image[last];
        bool inside = count > 0;
        for (int64_t i = last - 1; i >= 0; i--) {
            int64_t at = rest % p->blocks[i] * p->stride[i] + offset[i];
            rest /= p->blocks[i];
            inside = inside && at >= 0 && at < p->image[i];
            to += at * scale;
            scale *= p->image[i];
        }
        if (inside)
            add_blocks(p, from + row + first, count, stride, to + first * stride + offset[last],
                       sums);
    }
}

/* Sums of float32 are in place, those of other types in double. */
static void col2im_planes(void *userp, int64_t begin, int64_t end, int worker) {
    const col2im_plan *p = userp;
    const kelp_tensor *y = p->args->outputs[0];
    bool floats = y->dtype == KELP_F32;
    double *wide =
        (double *)kelp_ops_scratch_at(p->args, p->sums_offset) + (int64_t)worker * p->image_size;
    for (int64_t plane = begin; plane < end; plane++) {
        void *sums = floats ? (void *)((float *)y->data + plane * p->image_size) : wide;
        memset(sums, 0, (size_t)p->image_size * (floats ? sizeof(float) : sizeof(double)));
        for (int64_t tap = 0; tap < p->block_size; tap++)
            add_row(p, tap, (plane * p->block_size + tap) * p->block_count, sums);
        if (!floats)
            kelp_real_store_f64(y->dtype, y->data, plane * p->image_size, p->image_size, wide);
    }
}

static kelp_status *col2im_invoke(const void *state, kelp_op_args *args) {
    col2im_plan *p = args->plan;
    const kelp_tensor *y = args->outputs[0];
    (void)state;
    KELP_ASSERT(args->inputs[0]->shape[2] == p->block_count);
    KELP_ASSERT(y->shape[1] * p->block_size == args->inputs[0]->shape[1]);
    p->args = args;
    if (kelp_tensor_elements(y) > 0)
        kelp_op_parallel(args->env, y->shape[0] * y->shape[1],
                         kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->block_size * p->block_count),
                         col2im_planes, p);
    return NULL;
}
KELP_KERNEL(Col2Im, 0, sizeof(col2im_plan), 0, col2im_reshape, col2im_invoke);
