/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that compute elementwise, over windows, and over axes. */
#include "tensorrt/lower.h"

#include "base/assert.h"

#include <string.h>

/* These enumerations have the same values in Kelp and TensorRT, so they are passed unchanged. */
_Static_assert((int)KELP_ACTIVATION_GELU_TANH == (int)TRT_ACTIVATION_TYPE_GELU_TANH, "");
_Static_assert((int)KELP_UNARY_ISNAN == (int)TRT_UNARY_OPERATION_ISNAN, "");
_Static_assert((int)KELP_ELEMENTWISE_LESS == (int)TRT_ELEMENT_WISE_OPERATION_LESS, "");
_Static_assert((int)KELP_SCALE_ELEMENTWISE == (int)TRT_SCALE_MODE_ELEMENTWISE, "");
_Static_assert((int)KELP_PADDING_SAME_LOWER == (int)TRT_PADDING_MODE_SAME_LOWER, "");
_Static_assert((int)KELP_POOLING_BLEND == (int)TRT_POOLING_TYPE_MAX_AVERAGE_BLEND, "");
_Static_assert((int)KELP_INTERPOLATION_CUBIC == (int)TRT_INTERPOLATION_MODE_CUBIC, "");
_Static_assert((int)KELP_COORDINATES_HALF_PIXEL ==
                   (int)TRT_RESIZE_COORDINATE_TRANSFORMATION_HALF_PIXEL,
               "");
_Static_assert((int)KELP_ROUNDING_CEIL == (int)TRT_RESIZE_ROUND_MODE_CEIL, "");
_Static_assert((int)KELP_SAMPLE_REFLECT == (int)TRT_SAMPLE_MODE_REFLECT, "");
_Static_assert((int)KELP_REDUCE_NONE == (int)TRT_REDUCE_OPERATION_NONE, "");
_Static_assert((int)KELP_MATRIX_VECTOR == (int)TRT_MATRIX_OPERATION_VECTOR, "");

#define NET l->m, l->to
#define IN(i) trt_lower_input(l, layer, i)
#define DONE(added) trt_lower_done(l, layer, trt_as_layer(added))

/* ---- elementwise ---- */
static kelp_status *constant(trt_lowering *l, const kelp_layer *layer) {
    trt_dims dims;
    trt_weights weights;
    KELP_TRY(trt_lower_dims(layer, &layer->params.constant.dims, &dims));
    KELP_TRY(trt_lower_weights(l, layer, &layer->params.constant.weights, "weights",
                               TRT_DATA_TYPE_FLOAT, &weights));
    return DONE(trt_network_add_constant(NET, &dims, weights));
}

static kelp_status *activation(trt_lowering *l, const kelp_layer *layer) {
    kelp_activation type = layer->params.activation.type;
    trt_activation_layer *added = trt_network_add_activation(NET, IN(0), (trt_activation_type)type);
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    bool takes_alpha = type >= KELP_ACTIVATION_LEAKY_RELU && type != KELP_ACTIVATION_SOFTSIGN &&
                       type <= KELP_ACTIVATION_THRESHOLDED_RELU;
    if (takes_alpha) {
        trt_activation_layer_set_alpha(l->m, added, layer->params.activation.alpha);
        trt_activation_layer_set_beta(l->m, added, layer->params.activation.beta);
    }
    return DONE(added);
}

/* Computes (x * scale + shift) ^ power with several layers, for ranks that TensorRT's layer does
 * not support. */
static kelp_status *scale_by_parts(trt_lowering *l, const kelp_layer *layer) {
    const struct {
        const kelp_weights *weights;
        const char *role, *done;
        trt_element_wise_operation op;
    } parts[] = {{&layer->params.scale.scale, "scale", "scaled", TRT_ELEMENT_WISE_OPERATION_PROD},
                 {&layer->params.scale.shift, "shift", "shifted", TRT_ELEMENT_WISE_OPERATION_SUM},
                 {&layer->params.scale.power, "power", "raised", TRT_ELEMENT_WISE_OPERATION_POW}};
    kelp_shape shape = kelp_net_tensor_dims(layer->inputs[0]);
    int32_t axis = layer->params.scale.axis;
    trt_tensor *x = IN(0);
    trt_dims dims;
    KELP_TRY(trt_lower_dims(layer, &shape, &dims));
    for (int32_t i = 0; i < dims.rank; i++) {
        bool is_broadcast = layer->params.scale.mode == KELP_SCALE_UNIFORM || i < axis ||
                            (layer->params.scale.mode == KELP_SCALE_CHANNEL && i != axis);
        dims.d[i] = is_broadcast ? 1 : dims.d[i];
    }
    for (size_t i = 0; i < 3; i++) {
        trt_tensor *factor = NULL;
        if (parts[i].weights->count == 0)
            continue;
        KELP_TRY(trt_lower_constant(l, layer, parts[i].weights, parts[i].role, &dims,
                                    trt_lower_input_type(layer, 0), &factor));
        KELP_TRY(trt_lower_between(
            l, layer, trt_as_layer(trt_network_add_element_wise(NET, x, factor, parts[i].op)),
            parts[i].done, &x));
    }
    return DONE(trt_network_add_identity(NET, x));
}

static kelp_status *scale(trt_lowering *l, const kelp_layer *layer) {
    const kelp_layer_params *p = &layer->params;
    trt_data_type type = TRT_DATA_TYPE_FLOAT;
    trt_weights shift, factor, power;
    if (trt_lower_input_rank(layer, 0) < 4 || p->scale.axis != 1)
        return scale_by_parts(l, layer);
    KELP_TRY(trt_data_type_from(trt_lower_input_type(layer, 0), &type));
    KELP_TRY(trt_lower_weights(l, layer, &p->scale.shift, "shift", type, &shift));
    KELP_TRY(trt_lower_weights(l, layer, &p->scale.scale, "scale", type, &factor));
    KELP_TRY(trt_lower_weights(l, layer, &p->scale.power, "power", type, &power));
    return DONE(trt_network_add_scale_nd(NET, IN(0), (trt_scale_mode)p->scale.mode, shift, factor,
                                         power, p->scale.axis));
}

static kelp_status *cast(trt_lowering *l, const kelp_layer *layer) {
    trt_data_type type = TRT_DATA_TYPE_FLOAT;
    kelp_status *status = trt_data_type_from(layer->params.cast, &type);
    if (status != NULL)
        return KELP_ANNOTATE(status, "layer %u '%s' (Cast)", layer->index, layer->name);
    return DONE(trt_network_add_cast(NET, IN(0), type));
}

/* ---- windows ---- */
/* Weights of the input's type are passed to the layer; others are added as a constant with a cast.
 */
static kelp_status *window_weights(trt_lowering *l, const kelp_layer *layer, trt_weights *kernel,
                                   trt_weights *bias, trt_tensor **out_kernel,
                                   trt_tensor **out_bias) {
    const kelp_window_params *p = &layer->params.window;
    kelp_dtype type = trt_lower_input_type(layer, 0);
    trt_data_type mapped = TRT_DATA_TYPE_FLOAT;
    KELP_TRY(trt_data_type_from(type, &mapped));
    *kernel = *bias = (trt_weights){.type = mapped};
    *out_kernel = IN(1);
    *out_bias = IN(2);
    if (*out_kernel == NULL && p->kernel.dtype != type) {
        int64_t channels = layer->inputs[0]->draft->shape[1], groups = p->options.groups;
        bool transposed = layer->type == KELP_LAYER_DECONVOLUTION;
        trt_dims dims = {.rank = 2 + p->window.rank};
        dims.d[0] = transposed ? channels : p->maps;
        dims.d[1] = transposed ? p->maps / groups : channels / groups;
        for (int32_t i = 0; i < p->window.rank; i++)
            dims.d[2 + i] = p->window.d[i];
        KELP_TRY(trt_lower_constant(l, layer, &p->kernel, "kernel", &dims, type, out_kernel));
    } else if (*out_kernel == NULL) {
        KELP_TRY(trt_lower_weights(l, layer, &p->kernel, "kernel", mapped, kernel));
    }
    if (*out_bias == NULL && p->bias.count > 0 && p->bias.dtype != type) {
        trt_dims dims = {.rank = 1, .d = {p->maps}};
        return trt_lower_constant(l, layer, &p->bias, "bias", &dims, type, out_bias);
    }
    return *out_bias == NULL ? trt_lower_weights(l, layer, &p->bias, "bias", mapped, bias) : NULL;
}

typedef struct window_dims {
    trt_dims window, stride, dilation, before, after;
} window_dims;

static window_dims dims_of(const kelp_window_params *p) {
    KELP_ASSERT(p->window.rank >= 0 && p->window.rank <= TRT_MAX_DIMS);
    window_dims w = {{.rank = p->window.rank},
                     {.rank = p->window.rank},
                     {.rank = p->window.rank},
                     {.rank = p->window.rank},
                     {.rank = p->window.rank}};
    for (int32_t i = 0; i < p->window.rank; i++) {
        w.window.d[i] = p->window.d[i];
        w.stride.d[i] = p->options.stride[i];
        w.dilation.d[i] = p->options.dilation[i];
        w.before.d[i] = p->options.pre_padding[i];
        w.after.d[i] = p->options.post_padding[i];
    }
    return w;
}

static void set_tensors(trt_lowering *l, trt_layer *added, trt_tensor *kernel, trt_tensor *bias) {
    if (kernel != NULL)
        trt_layer_set_input(l->m, added, 1, kernel);
    if (bias != NULL)
        trt_layer_set_input(l->m, added, 2, bias);
}

static kelp_status *convolution(trt_lowering *l, const kelp_layer *layer) {
    const kelp_window_params *p = &layer->params.window;
    const window_dims w = dims_of(p);
    trt_weights kernel, bias;
    trt_tensor *computed = NULL, *computed_bias = NULL;
    KELP_TRY(window_weights(l, layer, &kernel, &bias, &computed, &computed_bias));
    trt_convolution_layer *added =
        trt_network_add_convolution_nd(NET, IN(0), p->maps, &w.window, kernel, bias);
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    trt_convolution_layer_set_stride_nd(l->m, added, &w.stride);
    trt_convolution_layer_set_dilation_nd(l->m, added, &w.dilation);
    trt_convolution_layer_set_pre_padding(l->m, added, &w.before);
    trt_convolution_layer_set_post_padding(l->m, added, &w.after);
    trt_convolution_layer_set_padding_mode(l->m, added, (trt_padding_mode)p->options.padding_mode);
    trt_convolution_layer_set_nb_groups(l->m, added, p->options.groups);
    set_tensors(l, trt_as_layer(added), computed, computed_bias);
    return DONE(added);
}

static kelp_status *deconvolution(trt_lowering *l, const kelp_layer *layer) {
    const kelp_window_params *p = &layer->params.window;
    const window_dims w = dims_of(p);
    trt_weights kernel, bias;
    trt_tensor *computed = NULL, *computed_bias = NULL;
    KELP_TRY(window_weights(l, layer, &kernel, &bias, &computed, &computed_bias));
    trt_deconvolution_layer *added =
        trt_network_add_deconvolution_nd(NET, IN(0), p->maps, &w.window, kernel, bias);
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    trt_deconvolution_layer_set_stride_nd(l->m, added, &w.stride);
    trt_deconvolution_layer_set_dilation_nd(l->m, added, &w.dilation);
    trt_deconvolution_layer_set_pre_padding(l->m, added, &w.before);
    trt_deconvolution_layer_set_post_padding(l->m, added, &w.after);
    trt_deconvolution_layer_set_padding_mode(l->m, added,
                                             (trt_padding_mode)p->options.padding_mode);
    trt_deconvolution_layer_set_nb_groups(l->m, added, p->options.groups);
    set_tensors(l, trt_as_layer(added), computed, computed_bias);
    return DONE(added);
}

static kelp_status *pooling(trt_lowering *l, const kelp_layer *layer) {
    const kelp_window_params *p = &layer->params.window;
    const window_dims w = dims_of(p);
    for (int32_t i = 0; i < p->window.rank; i++)
        if (p->options.dilation[i] != 1)
            return trt_lower_unsupported(layer, "pooling does not support dilation: found %lld",
                                         (long long)p->options.dilation[i]);
    trt_pooling_layer *added =
        trt_network_add_pooling_nd(NET, IN(0), (trt_pooling_type)p->pooling, &w.window);
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    trt_pooling_layer_set_stride_nd(l->m, added, &w.stride);
    trt_pooling_layer_set_pre_padding(l->m, added, &w.before);
    trt_pooling_layer_set_post_padding(l->m, added, &w.after);
    trt_pooling_layer_set_padding_mode(l->m, added, (trt_padding_mode)p->options.padding_mode);
    if (p->pooling != KELP_POOLING_MAX)
        trt_pooling_layer_set_average_count_excludes_padding(l->m, added,
                                                             !p->options.include_padding);
    if (p->pooling == KELP_POOLING_BLEND)
        trt_pooling_layer_set_blend_factor(l->m, added, p->options.blend);
    return DONE(added);
}

static kelp_status *lrn(trt_lowering *l, const kelp_layer *layer) {
    const kelp_layer_params *p = &layer->params;
    return DONE(
        trt_network_add_lrn(NET, IN(0), p->lrn.window, p->lrn.alpha, p->lrn.beta, p->lrn.k));
}

static kelp_status *padding(trt_lowering *l, const kelp_layer *layer) {
    trt_dims before, after;
    KELP_TRY(trt_lower_dims(layer, &layer->params.padding.pre, &before));
    KELP_TRY(trt_lower_dims(layer, &layer->params.padding.post, &after));
    return DONE(trt_network_add_padding_nd(NET, IN(0), &before, &after));
}

static kelp_status *resize(trt_lowering *l, const kelp_layer *layer) {
    const kelp_resize *p = &layer->params.resize;
    trt_resize_layer *added = trt_network_add_resize(NET, IN(0));
    trt_dims dims;
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    trt_resize_layer_set_resize_mode(l->m, added, (trt_interpolation_mode)p->mode);
    trt_resize_layer_set_coordinate_transformation(
        l->m, added, (trt_resize_coordinate_transformation)p->coordinates);
    trt_resize_layer_set_nearest_rounding(l->m, added, (trt_resize_round_mode)p->rounding);
    if (p->mode == KELP_INTERPOLATION_CUBIC) {
        trt_resize_layer_set_cubic_coeff(
            l->m, added, p->cubic_coefficient != 0.0f ? p->cubic_coefficient : -0.75f);
        trt_resize_layer_set_exclude_outside(l->m, added, p->exclude_outside);
    }
    if (IN(1) != NULL) {
        trt_layer_set_input(l->m, trt_as_layer(added), 1, IN(1));
    } else if (p->dims.rank > 0) {
        KELP_TRY(trt_lower_dims(layer, &p->dims, &dims));
        trt_resize_layer_set_output_dimensions(l->m, added, &dims);
    } else {
        trt_resize_layer_set_scales(l->m, added, p->scales, (int32_t)p->scale_count);
    }
    return DONE(added);
}

static kelp_status *grid_sample(trt_lowering *l, const kelp_layer *layer) {
    const kelp_layer_params *p = &layer->params;
    trt_grid_sample_layer *added = trt_network_add_grid_sample(NET, IN(0), IN(1));
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    trt_grid_sample_layer_set_interpolation_mode(l->m, added,
                                                 (trt_interpolation_mode)p->grid_sample.mode);
    trt_grid_sample_layer_set_align_corners(l->m, added, p->grid_sample.align_corners);
    trt_grid_sample_layer_set_sample_mode(l->m, added, (trt_sample_mode)p->grid_sample.outside);
    return DONE(added);
}

/* ---- over axes ---- */
static kelp_status *softmax(trt_lowering *l, const kelp_layer *layer) {
    trt_soft_max_layer *added = trt_network_add_soft_max(NET, IN(0));
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    trt_soft_max_layer_set_axes(l->m, added, layer->params.axes_mask);
    return DONE(added);
}

static kelp_status *topk(trt_lowering *l, const kelp_layer *layer) {
    const kelp_layer_params *p = &layer->params;
    trt_data_type type = TRT_DATA_TYPE_INT32;
    KELP_TRY(trt_data_type_from(p->topk.indices, &type));
    if (p->topk.k < 0 || p->topk.k > INT32_MAX)
        return trt_lower_unsupported(layer, "k is out of range: %lld", (long long)p->topk.k);
    trt_topk_layer *added = trt_network_add_topk_v2(
        NET, IN(0), p->topk.largest ? TRT_TOPK_OPERATION_MAX : TRT_TOPK_OPERATION_MIN,
        (int32_t)p->topk.k, p->topk.axes, type);
    if (added != NULL && IN(1) != NULL)
        trt_layer_set_input(l->m, trt_as_layer(added), 1, IN(1));
    return DONE(added);
}

static kelp_status *cumulative(trt_lowering *l, const kelp_layer *layer) {
    int32_t *axis = KELP_ARENA_NEW(&l->arena, int32_t);
    trt_dims scalar = {0};
    trt_tensor *tensor = NULL;
    if (axis == NULL)
        return kelp_status_oom();
    *axis = layer->params.cumulative.axis;
    trt_weights value = {TRT_DATA_TYPE_INT32, axis, 1};
    KELP_TRY(trt_lower_between(
        l, layer, trt_as_layer(trt_network_add_constant(NET, &scalar, value)), "axis", &tensor));
    return DONE(trt_network_add_cumulative(NET, IN(0), tensor, TRT_CUMULATIVE_OPERATION_SUM,
                                           layer->params.cumulative.exclusive,
                                           layer->params.cumulative.reverse));
}

static kelp_status *normalization(trt_lowering *l, const kelp_layer *layer) {
    const kelp_layer_params *p = &layer->params;
    const kelp_value *x = layer->inputs[0]->draft, *scale_value = layer->inputs[1]->draft;
    /* The second version has a scale for each channel, the first one for each group. */
    bool of_groups = p->normalization.groups > 1 && scale_value->rank >= 2 &&
                     scale_value->shape[1] == p->normalization.groups &&
                     x->shape[1] != p->normalization.groups;
    bool newer = trt_has(l->m, TRT_M_network_add_normalization_v2) && !of_groups;
    trt_normalization_layer *added =
        newer ? trt_network_add_normalization_v2(NET, IN(0), IN(1), IN(2), p->normalization.axes)
              : trt_network_add_normalization(NET, IN(0), IN(1), IN(2), p->normalization.axes);
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    trt_normalization_layer_set_epsilon(l->m, added, p->normalization.epsilon);
    if (p->normalization.groups > 1)
        trt_normalization_layer_set_nb_groups(l->m, added, p->normalization.groups);
    return DONE(added);
}

static kelp_status *einsum(trt_lowering *l, const kelp_layer *layer) {
    trt_tensor **inputs = KELP_ARENA_ARRAY(&l->arena, layer->input_count + 1u, trt_tensor *);
    if (inputs == NULL)
        return kelp_status_oom();
    for (uint32_t i = 0; i < layer->input_count; i++)
        inputs[i] = IN(i);
    return DONE(
        trt_network_add_einsum(NET, inputs, (int32_t)layer->input_count, layer->params.equation));
}

kelp_status *trt_lower_basic(trt_lowering *l, const kelp_layer *layer, bool *out_known) {
    const kelp_layer_params *p = &layer->params;
    *out_known = true;
    switch (layer->type) {
    case KELP_LAYER_CONSTANT:
        return constant(l, layer);
    case KELP_LAYER_ACTIVATION:
        return activation(l, layer);
    case KELP_LAYER_UNARY:
        return DONE(trt_network_add_unary(NET, IN(0), (trt_unary_operation)p->unary));
    case KELP_LAYER_ELEMENTWISE:
        return DONE(trt_network_add_element_wise(NET, IN(0), IN(1),
                                                 (trt_element_wise_operation)p->elementwise));
    case KELP_LAYER_SCALE:
        return scale(l, layer);
    case KELP_LAYER_PARAMETRIC_RELU:
        return DONE(trt_network_add_parametric_relu(NET, IN(0), IN(1)));
    case KELP_LAYER_SELECT:
        return DONE(trt_network_add_select(NET, IN(0), IN(1), IN(2)));
    case KELP_LAYER_IDENTITY:
        return DONE(trt_network_add_identity(NET, IN(0)));
    case KELP_LAYER_CAST:
        return cast(l, layer);
    case KELP_LAYER_CONVOLUTION:
        return convolution(l, layer);
    case KELP_LAYER_DECONVOLUTION:
        return deconvolution(l, layer);
    case KELP_LAYER_POOLING:
        return pooling(l, layer);
    case KELP_LAYER_LRN:
        return lrn(l, layer);
    case KELP_LAYER_PADDING:
        return padding(l, layer);
    case KELP_LAYER_RESIZE:
        return resize(l, layer);
    case KELP_LAYER_GRID_SAMPLE:
        return grid_sample(l, layer);
    case KELP_LAYER_REDUCE:
        return DONE(trt_network_add_reduce(NET, IN(0), (trt_reduce_operation)p->reduce.op,
                                           p->reduce.axes, p->reduce.keep_dims));
    case KELP_LAYER_SOFTMAX:
        return softmax(l, layer);
    case KELP_LAYER_RAGGED_SOFTMAX:
        return DONE(trt_network_add_ragged_soft_max(NET, IN(0), IN(1)));
    case KELP_LAYER_TOPK:
        return topk(l, layer);
    case KELP_LAYER_CUMULATIVE:
        return cumulative(l, layer);
    case KELP_LAYER_NORMALIZATION:
        return normalization(l, layer);
    case KELP_LAYER_MATRIX_MULTIPLY:
        return DONE(trt_network_add_matrix_multiply(NET, IN(0), (trt_matrix_operation)p->matrix.a,
                                                    IN(1), (trt_matrix_operation)p->matrix.b));
    case KELP_LAYER_EINSUM:
        return einsum(l, layer);
    default:
        *out_known = false;
        return NULL;
    }
}
