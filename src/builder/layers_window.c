/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution, pooling, local response normalization, padding, resizing and sampling. */
#include "base/assert.h"
#include "base/checked.h"
#include "builder/emit.h"

#include "operator/window.h"

#include <string.h>

/* ---- options ---- */
static void copy_options(kelp_window *to, const kelp_window *from, const kelp_shape *stride) {
    if (from != NULL)
        memcpy(to, from, KELP_MIN(from->struct_size, sizeof *to));
    for (int i = 0; i < 3; i++) {
        if (to->stride[i] == 0)
            to->stride[i] = stride != NULL && i < stride->rank ? stride->d[i] : 1;
        if (to->dilation[i] == 0)
            to->dilation[i] = 1;
    }
    if (to->groups == 0)
        to->groups = 1;
}

static kelp_status *check_window(const kelp_emit *e) {
    const kelp_window_params *p = &e->layer->params.window;
    int32_t spatial = p->window.rank;
    char shape[160];
    if (spatial < 2 || spatial > 3)
        return kelp_emit_fail(e, "the window must have 2 or 3 dimensions, found %d", spatial);
    kelp_shape_format(e->inputs[0]->rank, e->inputs[0]->shape, shape, sizeof shape);
    if (e->inputs[0]->rank != spatial + 2)
        return kelp_emit_fail(e,
                              "a window of %d dimensions needs an input of %d dimensions, found %s",
                              spatial, spatial + 2, shape);
    for (int32_t i = 0; i < spatial; i++)
        if (p->window.d[i] < 1 || p->options.stride[i] < 1 || p->options.dilation[i] < 1 ||
            p->options.pre_padding[i] < 0 || p->options.post_padding[i] < 0)
            return kelp_emit_fail(e,
                                  "window, stride and dilation must be at least 1 and padding at "
                                  "least 0: axis %d has %lld, %lld, %lld, %lld and %lld",
                                  i, (long long)p->window.d[i], (long long)p->options.stride[i],
                                  (long long)p->options.dilation[i],
                                  (long long)p->options.pre_padding[i],
                                  (long long)p->options.post_padding[i]);
    return NULL;
}

/* Sets padding in ONNX order. With `round_up_as_padding`, rounding up adds padding at the end. */
static kelp_status *set_padding(kelp_emit *e, kelp_node *node, bool round_up_as_padding) {
    const kelp_window_params *p = &e->layer->params.window;
    int32_t spatial = p->window.rank;
    KELP_ASSERT(spatial >= 2 && spatial <= 3); /* check_window checked it */
    int64_t pads[6];
    if (p->options.padding_mode == KELP_PADDING_SAME_UPPER)
        return kelp_node_set_string(node, "auto_pad", "SAME_UPPER");
    if (p->options.padding_mode == KELP_PADDING_SAME_LOWER)
        return kelp_node_set_string(node, "auto_pad", "SAME_LOWER");
    for (int32_t i = 0; i < spatial; i++) {
        pads[i] = p->options.pre_padding[i];
        pads[spatial + i] = p->options.post_padding[i];
        if (p->options.padding_mode != KELP_PADDING_EXPLICIT_ROUND_UP || !round_up_as_padding)
            continue;
        kelp_window_axis axis = {e->inputs[0]->shape[2 + i], p->window.d[i], p->options.stride[i],
                                 p->options.dilation[i],     pads[i],        pads[spatial + i]};
        int64_t more;
        if (axis.in < 0)
            return kelp_emit_fail(e, "rounding up needs fixed dimensions, but axis %d is dynamic",
                                  2 + i);
        if (!kelp_window_round_up(&axis, &more) ||
            !kelp_i64_add(pads[spatial + i], more, &pads[spatial + i]))
            return kelp_emit_fail(
                e, "window, stride, dilation or padding of axis %d is out of range", 2 + i);
    }
    return kelp_node_set_i64s(node, "pads", pads, 2 * (size_t)spatial);
}

static kelp_status *set_window(kelp_emit *e, kelp_node *node, bool has_dilation) {
    const kelp_window_params *p = &e->layer->params.window;
    size_t spatial = (size_t)p->window.rank;
    KELP_TRY(kelp_node_set_i64s(node, "kernel_shape", p->window.d, spatial));
    KELP_TRY(kelp_node_set_i64s(node, "strides", p->options.stride, spatial));
    return has_dilation ? kelp_node_set_i64s(node, "dilations", p->options.dilation, spatial)
                        : NULL;
}

/* ---- convolution ---- */
static kelp_status *emit_convolution(kelp_emit *e, bool transposed) {
    const kelp_window_params *p = &e->layer->params.window;
    kelp_value *inputs[3] = {e->inputs[0], e->inputs[1], e->inputs[2]}, *y = NULL;
    kelp_node *node = NULL;
    int64_t shape[5] = {0};
    KELP_TRY(check_window(e));
    KELP_TRY(kelp_emit_check_float(e, 0));
    int64_t channels = e->inputs[0]->shape[1], groups = p->options.groups;
    if (p->maps < 1 || groups < 1 || p->maps % groups != 0 ||
        (channels >= 0 && channels % groups != 0))
        return kelp_emit_fail(e,
                              "%lld output maps and %lld channels cannot be split into %lld "
                              "groups",
                              (long long)p->maps, (long long)channels, (long long)groups);
    if (inputs[1] == NULL) {
        if (channels < 0)
            return kelp_emit_fail(e, "the input's channels must be fixed");
        shape[0] = transposed ? channels : p->maps;
        shape[1] = transposed ? p->maps / groups : channels / groups;
        for (int32_t i = 0; i < p->window.rank; i++)
            shape[2 + i] = p->window.d[i];
        KELP_TRY(kelp_emit_weights(e, &p->kernel, "kernel", p->window.rank + 2, shape, &inputs[1]));
        KELP_TRY(kelp_emit_cast(e, inputs[1], inputs[0]->dtype, &inputs[1]));
    }
    if (inputs[2] == NULL && p->bias.count > 0) {
        KELP_TRY(kelp_emit_weights(e, &p->bias, "bias", 1, &p->maps, &inputs[2]));
        KELP_TRY(kelp_emit_cast(e, inputs[2], inputs[0]->dtype, &inputs[2]));
    }
    KELP_TRY(kelp_emit_node(e, transposed ? KELP_OP(ConvTranspose) : KELP_OP(Conv), inputs, 3, &y,
                            &node));
    KELP_TRY(set_window(e, node, true));
    KELP_TRY(set_padding(e, node, !transposed));
    KELP_TRY(kelp_node_set_i64(node, "group", groups));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_emit_CONVOLUTION(kelp_emit *e) {
    return emit_convolution(e, false);
}

kelp_status *kelp_emit_DECONVOLUTION(kelp_emit *e) {
    if (e->layer->params.window.options.padding_mode == KELP_PADDING_EXPLICIT_ROUND_UP)
        return kelp_emit_fail(e, "a deconvolution does not support rounding up");
    return emit_convolution(e, true);
}

static kelp_status *add_convolution(kelp_network *network, kelp_layer_type type,
                                    kelp_net_tensor *input, int64_t output_maps,
                                    kelp_shape kernel_dims, kelp_weights kernel, kelp_weights bias,
                                    const kelp_window *options, kelp_layer **out) {
    kelp_layer_params params = {
        .window = {.window = kernel_dims, .maps = output_maps, .kernel = kernel, .bias = bias}};
    copy_options(&params.window.options, options, NULL);
    kelp_net_tensor *inputs[3] = {input, params.window.options.kernel, params.window.options.bias};
    return kelp_network_append(network, type, inputs, 3, 1, &params, NULL, out);
}

kelp_status *kelp_network_add_convolution(kelp_network *network, kelp_net_tensor *input,
                                          int64_t output_maps, kelp_shape kernel_dims,
                                          kelp_weights kernel, kelp_weights bias,
                                          const kelp_window *options, kelp_layer **out) {
    return add_convolution(network, KELP_LAYER_CONVOLUTION, input, output_maps, kernel_dims, kernel,
                           bias, options, out);
}

kelp_status *kelp_network_add_deconvolution(kelp_network *network, kelp_net_tensor *input,
                                            int64_t output_maps, kelp_shape kernel_dims,
                                            kelp_weights kernel, kelp_weights bias,
                                            const kelp_window *options, kelp_layer **out) {
    return add_convolution(network, KELP_LAYER_DECONVOLUTION, input, output_maps, kernel_dims,
                           kernel, bias, options, out);
}

/* ---- pooling ---- */
static kelp_status *pool(kelp_emit *e, const kelp_operator *op, kelp_value **out) {
    const kelp_window *options = &e->layer->params.window.options;
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_node(e, op, e->inputs, 1, out, &node));
    KELP_TRY(set_window(e, node, true));
    KELP_TRY(set_padding(e, node, false));
    if (options->padding_mode == KELP_PADDING_EXPLICIT_ROUND_UP)
        KELP_TRY(kelp_node_set_i64(node, "ceil_mode", 1));
    if (op == KELP_OP(AveragePool) && options->include_padding)
        return kelp_node_set_i64(node, "count_include_pad", 1);
    return NULL;
}

kelp_status *kelp_emit_POOLING(kelp_emit *e) {
    const kelp_window_params *p = &e->layer->params.window;
    kelp_value *largest = NULL, *average = NULL, *factor = NULL, *y = NULL;
    KELP_TRY(check_window(e));
    KELP_TRY(kelp_emit_check_float(e, 0));
    if ((unsigned)p->pooling > KELP_POOLING_BLEND)
        return kelp_emit_fail(e, "invalid pooling %d", (int)p->pooling);
    if (p->pooling != KELP_POOLING_AVERAGE)
        KELP_TRY(pool(e, KELP_OP(MaxPool), &largest));
    if (p->pooling != KELP_POOLING_MAX)
        KELP_TRY(pool(e, KELP_OP(AveragePool), &average));
    y = largest != NULL ? largest : average;
    if (p->pooling == KELP_POOLING_BLEND) {
        KELP_TRY(kelp_emit_scalar(e, e->inputs[0]->dtype, 1.0 - p->options.blend, &factor));
        KELP_TRY(kelp_emit_2(e, KELP_OP(Mul), largest, factor, &largest));
        KELP_TRY(kelp_emit_scalar(e, e->inputs[0]->dtype, p->options.blend, &factor));
        KELP_TRY(kelp_emit_2(e, KELP_OP(Mul), average, factor, &average));
        KELP_TRY(kelp_emit_2(e, KELP_OP(Add), largest, average, &y));
    }
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_pooling(kelp_network *network, kelp_net_tensor *input,
                                      kelp_pooling type, kelp_shape window_dims,
                                      const kelp_window *options, kelp_layer **out) {
    kelp_layer_params params = {.window = {.window = window_dims, .pooling = type}};
    copy_options(&params.window.options, options, &window_dims);
    return kelp_network_append(network, KELP_LAYER_POOLING, &input, 1, 1, &params, NULL, out);
}

/* ---- local response normalization, padding ---- */
kelp_status *kelp_emit_LRN(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    kelp_value *y = NULL;
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_check_rank(e, 0, 3, KELP_MAX_RANK));
    KELP_TRY(kelp_emit_check_float(e, 0));
    if (p->lrn.window < 1 || p->lrn.window % 2 == 0)
        return kelp_emit_fail(e, "the window must be odd and at least 1, found %lld",
                              (long long)p->lrn.window);
    KELP_TRY(kelp_emit_node(e, KELP_OP(LRN), e->inputs, 1, &y, &node));
    KELP_TRY(kelp_node_set_i64(node, "size", p->lrn.window));
    KELP_TRY(kelp_node_set_f32(node, "alpha", p->lrn.alpha));
    KELP_TRY(kelp_node_set_f32(node, "beta", p->lrn.beta));
    KELP_TRY(kelp_node_set_f32(node, "bias", p->lrn.k));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_lrn(kelp_network *network, kelp_net_tensor *input, int64_t window,
                                  float alpha, float beta, float k, kelp_layer **out) {
    kelp_layer_params params = {.lrn = {window, alpha, beta, k}};
    return kelp_network_append(network, KELP_LAYER_LRN, &input, 1, 1, &params, NULL, out);
}

kelp_status *kelp_emit_PADDING(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    int64_t pads[2 * KELP_MAX_RANK] = {0};
    kelp_value *y = NULL, *amounts = NULL;
    int32_t rank = e->inputs[0]->rank;
    KELP_TRY(kelp_emit_check_rank(e, 0, 2, KELP_MAX_RANK));
    if (rank < 0)
        return kelp_emit_fail(e, "the input's rank must be known");
    if (p->padding.pre.rank != 2 || p->padding.post.rank != 2)
        return kelp_emit_fail(e, "padding needs two values before and two after, found %d and %d",
                              p->padding.pre.rank, p->padding.post.rank);
    for (int32_t i = 0; i < 2; i++) {
        int64_t dim = e->inputs[0]->shape[rank - 2 + i];
        pads[rank - 2 + i] = p->padding.pre.d[i];
        pads[2 * rank - 2 + i] = p->padding.post.d[i];
        int64_t padded;
        if (!kelp_i64_add(p->padding.pre.d[i], p->padding.post.d[i], &padded) ||
            !kelp_i64_add(padded, KELP_MAX(dim, 0), &padded) || (dim >= 0 && padded < 0))
            return kelp_emit_fail(e, "axis %d has %lld elements: cannot pad by %lld and %lld",
                                  rank - 2 + i, (long long)dim, (long long)p->padding.pre.d[i],
                                  (long long)p->padding.post.d[i]);
    }
    KELP_TRY(kelp_emit_i64s(e, pads, 2 * (size_t)rank, &amounts));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Pad), e->inputs[0], amounts, &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_padding(kelp_network *network, kelp_net_tensor *input, kelp_shape pre,
                                      kelp_shape post, kelp_layer **out) {
    kelp_layer_params params = {.padding = {pre, post}};
    return kelp_network_append(network, KELP_LAYER_PADDING, &input, 1, 1, &params, NULL, out);
}

/* ---- resize ---- */
static kelp_status *resize_target(kelp_emit *e, const kelp_resize *options, kelp_value **out_scales,
                                  kelp_value **out_sizes) {
    const kelp_value *x = e->inputs[0];
    int set_count = (options->dims.rank > 0) + (options->scale_count > 0) + (e->inputs[1] != NULL);
    if (set_count != 1)
        return kelp_emit_fail(e, "expected exactly one of dims, scales and shape, found %d",
                              set_count);
    if (e->inputs[1] != NULL) {
        *out_sizes = e->inputs[1];
        return kelp_emit_check_dtype(e, 1, KELP_I64);
    }
    if (options->scale_count > KELP_MAX_RANK)
        return kelp_emit_fail(e, "expected at most %d scales, found %u", KELP_MAX_RANK,
                              options->scale_count);
    int32_t count = options->dims.rank != 0 ? options->dims.rank : (int32_t)options->scale_count;
    KELP_TRY(kelp_emit_check_shape(e, &options->dims, "dims"));
    if (x->rank >= 0 && x->rank != count)
        return kelp_emit_fail(e, "the input has %d dimensions, but the options have %d values",
                              x->rank, count);
    if (options->dims.rank > 0)
        return kelp_emit_i64s(e, options->dims.d, (size_t)count, out_sizes);
    kelp_weights scales = {KELP_F32, options->scales, count, NULL};
    int64_t shape = count;
    return kelp_emit_weights(e, &scales, "scales", 1, &shape, out_scales);
}

kelp_status *kelp_emit_RESIZE(kelp_emit *e) {
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coordinates[] = {"align_corners", "asymmetric", "half_pixel"};
    static const char *const roundings[] = {"round_prefer_ceil", "round_prefer_floor", "floor",
                                            "ceil"};
    const kelp_resize *options = &e->layer->params.resize;
    kelp_value *inputs[4] = {e->inputs[0], NULL, NULL, NULL}, *y = NULL;
    kelp_node *node = NULL;
    if ((unsigned)options->mode > 2 || (unsigned)options->coordinates > 2 ||
        (unsigned)options->rounding > 3)
        return kelp_emit_fail(e, "invalid mode %d, coordinates %d or rounding %d",
                              (int)options->mode, (int)options->coordinates,
                              (int)options->rounding);
    KELP_TRY(resize_target(e, options, &inputs[2], &inputs[3]));
    KELP_TRY(kelp_emit_node(e, KELP_OP(Resize), inputs, 4, &y, &node));
    KELP_TRY(kelp_node_set_string(node, "mode", modes[options->mode]));
    KELP_TRY(kelp_node_set_string(node, "coordinate_transformation_mode",
                                  coordinates[options->coordinates]));
    KELP_TRY(kelp_node_set_string(node, "nearest_mode", roundings[options->rounding]));
    if (options->cubic_coefficient != 0.0f)
        KELP_TRY(kelp_node_set_f32(node, "cubic_coeff_a", options->cubic_coefficient));
    if (options->exclude_outside)
        KELP_TRY(kelp_node_set_i64(node, "exclude_outside", 1));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_resize(kelp_network *network, kelp_net_tensor *input,
                                     const kelp_resize *options, kelp_layer **out) {
    kelp_layer_params params = {.resize = {.struct_size = 0}};
    if (options != NULL)
        memcpy(&params.resize, options, KELP_MIN(options->struct_size, sizeof *options));
    kelp_net_tensor *inputs[2] = {input, params.resize.shape};
    return kelp_network_append(network, KELP_LAYER_RESIZE, inputs, 2, 1, &params, NULL, out);
}

/* ---- grid sample ---- */
kelp_status *kelp_emit_GRID_SAMPLE(kelp_emit *e) {
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    const kelp_layer_params *p = &e->layer->params;
    const char *outside = p->grid_sample.outside == KELP_SAMPLE_FILL      ? "zeros"
                          : p->grid_sample.outside == KELP_SAMPLE_CLAMP   ? "border"
                          : p->grid_sample.outside == KELP_SAMPLE_REFLECT ? "reflection"
                                                                          : NULL;
    kelp_value *y = NULL;
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_check_rank(e, 0, 4, 4));
    KELP_TRY(kelp_emit_check_rank(e, 1, 4, 4));
    if ((unsigned)p->grid_sample.mode > KELP_INTERPOLATION_CUBIC)
        return kelp_emit_fail(e, "invalid interpolation %d", (int)p->grid_sample.mode);
    if (outside == NULL)
        return kelp_emit_fail(e, "outside must be FILL, CLAMP or REFLECT, found %d",
                              (int)p->grid_sample.outside);
    KELP_TRY(kelp_emit_node(e, KELP_OP(GridSample), e->inputs, 2, &y, &node));
    KELP_TRY(kelp_node_set_string(node, "mode", modes[p->grid_sample.mode]));
    KELP_TRY(kelp_node_set_string(node, "padding_mode", outside));
    KELP_TRY(kelp_node_set_i64(node, "align_corners", p->grid_sample.align_corners));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_grid_sample(kelp_network *network, kelp_net_tensor *input,
                                          kelp_net_tensor *grid, kelp_interpolation mode,
                                          bool align_corners, kelp_sample_mode outside,
                                          kelp_layer **out) {
    kelp_net_tensor *inputs[2] = {input, grid};
    kelp_layer_params params = {.grid_sample = {mode, align_corners, outside}};
    return kelp_network_append(network, KELP_LAYER_GRID_SAMPLE, inputs, 2, 2, &params, NULL, out);
}
