/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of operators on spatial axes: convolution, pooling, resizing, DepthToSpace. */
#include "graph/infer/infer.h"

#include "base/assert.h"
#include "base/checked.h"
#include "operator/window.h"

#include <math.h>
#include <string.h>

typedef struct window {
    size_t axes;
    const int64_t *strides, *dilations, *pads; /* NULL: 1, 1, 0 */
    kelp_auto_pad auto_pad;
    bool ceil_mode;
} window;

static const int64_t *list_of(const kelp_node *node, const char *name, size_t count) {
    const int64_t *items = NULL;
    return kelp_node_attr_i64s(node, name, &items) == count ? items : NULL;
}

static window window_of(const kelp_node *node, size_t axes) {
    return (window){
        .axes = axes,
        .strides = list_of(node, "strides", axes),
        .dilations = list_of(node, "dilations", axes),
        .pads = list_of(node, "pads", 2 * axes),
        .auto_pad = kelp_auto_pad_parse(kelp_node_attr_string(node, "auto_pad", "NOTSET", NULL)),
        .ceil_mode = kelp_node_attr_i64(node, "ceil_mode", 0) != 0};
}

static kelp_window_axis axis_of(const window *w, int64_t in, int64_t kernel, size_t axis) {
    KELP_ASSERT(axis < w->axes);
    return (kelp_window_axis){.in = in,
                              .kernel = kernel,
                              .stride = w->strides != NULL ? w->strides[axis] : 1,
                              .dilation = w->dilations != NULL ? w->dilations[axis] : 1,
                              .before = w->pads != NULL ? w->pads[axis] : 0,
                              .after = w->pads != NULL ? w->pads[axis + w->axes] : 0};
}

/* Returns the output size; -1 if it is not known or out of range. */
static int64_t window_size(const window *w, int64_t in, int64_t kernel, size_t axis) {
    kelp_window_axis a = axis_of(w, in, kernel, axis);
    int64_t size;
    return kelp_window_output(&a, w->auto_pad, w->ceil_mode, &size) ? size : -1;
}

static bool convolve(kelp_infer_call *call, size_t weight, kelp_dims *out) {
    kelp_dims x, w;
    if (!kelp_dims_load(call->node, 0, &x) || !kelp_dims_load(call->node, weight, &w))
        return false;
    if (x.rank < 3 || w.rank != x.rank)
        return kelp_infer_problem(
            call,
            "the input has rank %d and the weight rank %d: expected equal ranks of at least 3",
            x.rank, w.rank);
    int64_t groups = kelp_node_attr_i64(call->node, "group", 1), channels;
    if (x.shape[1] >= 0 && w.shape[1] >= 0 && kelp_i64_mul(w.shape[1], groups, &channels) &&
        channels != x.shape[1])
        return kelp_infer_problem(
            call, "the input has %lld channels: the weight expects %lld in %lld groups",
            (long long)x.shape[1], (long long)channels, (long long)groups);
    window win = window_of(call->node, (size_t)x.rank - 2);
    out->rank = x.rank;
    kelp_dims_copy(out, 0, &x, 0);
    kelp_dims_copy(out, 1, &w, 0);
    for (int32_t i = 2; i < x.rank; i++)
        kelp_dims_set(out, i, window_size(&win, x.shape[i], w.shape[i], (size_t)i - 2));
    return true;
}

static bool conv(kelp_infer_call *call, kelp_dims *out) {
    return convolve(call, 1, out);
}

static bool qlinear_conv(kelp_infer_call *call, kelp_dims *out) {
    return convolve(call, 3, out);
}

static int64_t transposed_size(const window *w, int64_t in, int64_t kernel, size_t axis,
                               int64_t output_padding) {
    kelp_window_axis a = axis_of(w, in, kernel, axis);
    kelp_window_transposed transposed = {output_padding, -1};
    int64_t size;
    return kelp_window_transposed_output(&a, w->auto_pad, transposed, &size) ? size : -1;
}

static bool conv_transpose(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims x, w;
    int64_t channels = -1, groups = kelp_node_attr_i64(call->node, "group", 1);
    if (!kelp_dims_load(call->node, 0, &x) || !kelp_dims_load(call->node, 1, &w) || x.rank < 3 ||
        w.rank != x.rank)
        return false;
    size_t axes = (size_t)x.rank - 2;
    window win = window_of(call->node, axes);
    const int64_t *fixed = list_of(call->node, "output_shape", axes);
    const int64_t *extra = list_of(call->node, "output_padding", axes);
    if (w.shape[1] >= 0 && !kelp_i64_mul(w.shape[1], groups, &channels))
        channels = -1;
    out->rank = x.rank;
    kelp_dims_copy(out, 0, &x, 0);
    kelp_dims_set(out, 1, channels);
    for (size_t i = 0; i < axes; i++) {
        int64_t more = extra != NULL ? extra[i] : 0;
        kelp_dims_set(out, (int32_t)i + 2,
                      fixed != NULL
                          ? fixed[i]
                          : transposed_size(&win, x.shape[i + 2], w.shape[i + 2], i, more));
    }
    return true;
}

static bool pool(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims x;
    const int64_t *kernel = NULL;
    size_t axes = kelp_node_attr_i64s(call->node, "kernel_shape", &kernel);
    if (!kelp_dims_load(call->node, 0, &x))
        return false;
    if (x.rank != (int32_t)axes + 2)
        return kelp_infer_problem(call, "the kernel has %zu axes, the input has rank %d", axes,
                                  x.rank);
    window win = window_of(call->node, axes);
    *out = x;
    for (size_t i = 0; i < axes; i++)
        kelp_dims_set(out, (int32_t)i + 2, window_size(&win, x.shape[i + 2], kernel[i], i));
    return true;
}

static bool global_pool(kelp_infer_call *call, kelp_dims *out) {
    if (!kelp_dims_load(call->node, 0, out))
        return false;
    for (int32_t i = 2; i < out->rank; i++)
        kelp_dims_set(out, i, 1);
    return true;
}

/* ---- resizing ---- */
static bool read_scales(const kelp_node *node, size_t input, float *scales, int32_t rank) {
    const kelp_value *value = input < node->input_count ? node->inputs[input] : NULL;
    const kelp_tensor *tensor = value != NULL ? value->constant : NULL;
    if (tensor == NULL || tensor->dtype != KELP_F32 || kelp_tensor_elements(tensor) != rank)
        return false;
    if (rank > 0)
        memcpy(scales, tensor->data, (size_t)rank * sizeof *scales);
    return true;
}

static bool resize(kelp_infer_call *call, kelp_dims *out) {
    int64_t sizes[KELP_MAX_RANK], axes[KELP_MAX_RANK];
    float scales[KELP_MAX_RANK];
    size_t size_count = 0, axis_count = 0;
    if (!kelp_dims_load(call->node, 0, out))
        return false;
    bool plain =
        kelp_infer_list(call, "axes", SIZE_MAX, axes, &axis_count) && axis_count == 0 &&
        strcmp(kelp_node_attr_string(call->node, "keep_aspect_ratio_policy", "stretch", NULL),
               "stretch") == 0;
    bool has_sizes = call->version >= 11 && kelp_infer_list(call, NULL, 3, sizes, &size_count) &&
                     (int32_t)size_count == out->rank;
    bool has_scales = read_scales(call->node, call->version >= 11 ? 2 : 1, scales, out->rank);
    for (int32_t i = 0; i < out->rank; i++) {
        int64_t dimension = -1;
        if (plain && has_sizes)
            dimension = sizes[i];
        else if (plain && has_scales && scales[i] == 1.0f)
            continue;
        else if (plain && has_scales && out->shape[i] >= 0 && scales[i] > 0 && scales[i] < 1e6f &&
                 out->shape[i] < INT32_MAX)
            dimension = (int64_t)floorf((float)out->shape[i] * scales[i]);
        kelp_dims_set(out, i, dimension);
    }
    return true;
}

/* ---- blocks of pixels ---- */
static bool depth_to_space(kelp_infer_call *call, kelp_dims *out) {
    int64_t block = kelp_node_attr_i64(call->node, "blocksize", 0), area;
    if (!kelp_dims_load(call->node, 0, out) || out->rank != 4 || block < 1 ||
        !kelp_i64_mul(block, block, &area))
        return false;
    kelp_dims_set(out, 1, out->shape[1] < 0 ? -1 : out->shape[1] / area);
    for (int32_t i = 2; i < 4; i++) {
        int64_t dimension = -1;
        if (out->shape[i] < 0 || !kelp_i64_mul(out->shape[i], block, &dimension))
            dimension = -1;
        kelp_dims_set(out, i, dimension);
    }
    return true;
}

static bool space_to_depth(kelp_infer_call *call, kelp_dims *out) {
    int64_t block = kelp_node_attr_i64(call->node, "blocksize", 0), area, channels = -1;
    if (!kelp_dims_load(call->node, 0, out) || out->rank != 4 || block < 1 ||
        !kelp_i64_mul(block, block, &area))
        return false;
    if (out->shape[1] < 0 || !kelp_i64_mul(out->shape[1], area, &channels))
        channels = -1;
    kelp_dims_set(out, 1, channels);
    for (int32_t i = 2; i < 4; i++)
        kelp_dims_set(out, i, out->shape[i] < 0 ? -1 : out->shape[i] / block);
    return true;
}

/* ---- rules ---- */
const kelp_infer_rule kelp_rule_conv = {.shape = conv};
const kelp_infer_rule kelp_rule_qlinear_conv = {.shape = qlinear_conv};
const kelp_infer_rule kelp_rule_conv_transpose = {.shape = conv_transpose};
const kelp_infer_rule kelp_rule_pool = {.shape = pool, .each_output = true};
const kelp_infer_rule kelp_rule_global_pool = {.shape = global_pool};
const kelp_infer_rule kelp_rule_resize = {.shape = resize};
const kelp_infer_rule kelp_rule_depth_to_space = {.shape = depth_to_space};
const kelp_infer_rule kelp_rule_space_to_depth = {.shape = space_to_depth};
