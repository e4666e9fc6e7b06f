/* SPDX-License-Identifier: Apache-2.0 */
/* Quantization, non-maximum suppression and collectives. */
#include "base/assert.h"
#include "base/checked.h"
#include "builder/emit.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- quantize, dequantize ---- */
static bool is_quantized(kelp_dtype dtype) {
    switch (dtype) {
    case KELP_I8:
    case KELP_U8:
    case KELP_I16:
    case KELP_U16:
    case KELP_I4:
    case KELP_U4:
    case KELP_F8E4M3FN:
    case KELP_F8E5M2:
    case KELP_F4E2M1:
        return true;
    default:
        return false;
    }
}

static kelp_status *check_scale(const kelp_emit *e, size_t input, int32_t axis) {
    KELP_TRY(kelp_emit_check_float(e, 1));
    KELP_TRY(kelp_emit_check_rank(e, 1, 0, 1));
    if (e->inputs[1]->rank == 1)
        KELP_TRY(kelp_emit_check_axis(e, input, axis));
    return NULL;
}

kelp_status *kelp_emit_QUANTIZE(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    kelp_value *y = NULL;
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_check_float(e, 0));
    KELP_TRY(check_scale(e, 0, p->quantize.axis));
    if (!is_quantized(p->quantize.to))
        return kelp_emit_fail(e, "%s is not a quantized type", kelp_dtype_name(p->quantize.to));
    KELP_TRY(kelp_emit_node(e, KELP_OP(QuantizeLinear), e->inputs, 3, &y, &node));
    KELP_TRY(kelp_node_set_i64(node, "axis", p->quantize.axis));
    KELP_TRY(kelp_node_set_i64(node, "output_dtype", p->quantize.to));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_quantize(kelp_network *network, kelp_net_tensor *input,
                                       kelp_net_tensor *scale, kelp_net_tensor *zero_point,
                                       int32_t axis, kelp_dtype to, kelp_layer **out) {
    kelp_net_tensor *inputs[3] = {input, scale, zero_point};
    kelp_layer_params params = {.quantize = {axis, to}};
    return kelp_network_append(network, KELP_LAYER_QUANTIZE, inputs, 3, 2, &params, NULL, out);
}

kelp_status *kelp_emit_DEQUANTIZE(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    kelp_value *y = NULL;
    kelp_node *node = NULL;
    if (!is_quantized(e->inputs[0]->dtype) && e->inputs[0]->dtype != KELP_I32)
        return kelp_emit_fail(e, "%s is not a quantized type",
                              kelp_dtype_name(e->inputs[0]->dtype));
    if (!kelp_emit_is_float(p->quantize.to))
        return kelp_emit_fail(e, "the result type must be floating-point, found %s",
                              kelp_dtype_name(p->quantize.to));
    KELP_TRY(check_scale(e, 0, p->quantize.axis));
    KELP_TRY(kelp_emit_node(e, KELP_OP(DequantizeLinear), e->inputs, 3, &y, &node));
    KELP_TRY(kelp_node_set_i64(node, "axis", p->quantize.axis));
    if (e->inputs[1]->dtype != p->quantize.to)
        KELP_TRY(kelp_emit_cast(e, y, p->quantize.to, &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_dequantize(kelp_network *network, kelp_net_tensor *input,
                                         kelp_net_tensor *scale, kelp_net_tensor *zero_point,
                                         int32_t axis, kelp_dtype to, kelp_layer **out) {
    kelp_net_tensor *inputs[3] = {input, scale, zero_point};
    kelp_layer_params params = {.quantize = {axis, to}};
    return kelp_network_append(network, KELP_LAYER_DEQUANTIZE, inputs, 3, 2, &params, NULL, out);
}

/* ---- dynamic quantize ---- */
/* Computes the shape that splits [… n …] into [… n/block, block …]. */
static void split_shape(const kelp_value *x, int32_t axis, int64_t block, int64_t *out) {
    KELP_ASSERT(axis >= 0 && axis < x->rank && x->rank < KELP_MAX_RANK && block > 0);
    for (int32_t i = 0; i <= x->rank; i++)
        out[i] = i < axis        ? 0
                 : i == axis     ? x->shape[axis] / block
                 : i == axis + 1 ? block
                                 : x->shape[i - 1];
}

kelp_status *kelp_emit_DYNAMIC_QUANTIZE(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    const kelp_value *x = e->inputs[0];
    int32_t axis = p->dynamic_quantize.axis;
    int64_t block = p->dynamic_quantize.block, shape[KELP_MAX_RANK + 1], inner = axis + 1;
    double largest = p->dynamic_quantize.to == KELP_F4E2M1 ? 6.0 : 448.0;
    kelp_value *y = NULL, *split = NULL, *axes = NULL, *scale = NULL, *limit = NULL,
               *wide_scale = NULL, *full_shape = NULL, *blocks = NULL, *min = NULL, *max = NULL,
               *flat = NULL, *tiny = NULL;
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_check_float(e, 0));
    KELP_TRY(kelp_emit_check_axis(e, 0, axis));
    if (p->dynamic_quantize.to != KELP_F4E2M1 && p->dynamic_quantize.to != KELP_F8E4M3FN)
        return kelp_emit_fail(e, "the data type must be float4e2m1 or float8e4m3fn, found %s",
                              kelp_dtype_name(p->dynamic_quantize.to));
    for (int32_t i = axis; i < x->rank; i++)
        if (x->shape[i] < 1) /* a dimension of 0 would be copied by Reshape */
            return kelp_emit_fail(e, "axis %d must be fixed and not empty, found %lld", i,
                                  (long long)x->shape[i]);
    if (x->rank < 1 || x->rank >= KELP_MAX_RANK || block < 1 || x->shape[axis] % block != 0)
        return kelp_emit_fail(e, "%lld elements of axis %d cannot be split into blocks of %lld",
                              x->rank > axis ? (long long)x->shape[axis] : -1, axis,
                              (long long)block);
    split_shape(x, axis, block, shape);
    KELP_TRY(kelp_emit_1(e, KELP_OP(Shape), e->inputs[0], &full_shape));
    KELP_TRY(kelp_emit_i64s(e, shape, (size_t)x->rank + 1, &split));
    KELP_TRY(kelp_emit_cast(e, e->inputs[0], KELP_F32, &y));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Reshape), y, split, &blocks));
    KELP_TRY(kelp_emit_1(e, KELP_OP(Abs), blocks, &y));
    KELP_TRY(kelp_emit_i64s(e, &inner, 1, &axes));
    kelp_value *inputs[2] = {y, axes};
    KELP_TRY(kelp_emit_node(e, KELP_OP(ReduceMax), inputs, 2, &scale, &node));
    KELP_TRY(kelp_emit_scalar(e, KELP_F32, largest, &limit));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Div), scale, limit, &scale));
    KELP_TRY(kelp_emit_cast(e, scale, p->dynamic_quantize.scale_dtype, &scale));
    /* divide by the stored scale; the scale of a block of zeros is 0 */
    KELP_TRY(kelp_emit_cast(e, scale, KELP_F32, &wide_scale));
    KELP_TRY(kelp_emit_scalar(e, KELP_F32, 1e-30, &tiny));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Max), wide_scale, tiny, &wide_scale));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Div), blocks, wide_scale, &y));
    KELP_TRY(kelp_emit_scalar(e, KELP_F32, -largest, &min));
    KELP_TRY(kelp_emit_scalar(e, KELP_F32, largest, &max));
    KELP_TRY(kelp_emit_3(e, KELP_OP(Clip), y, min, max, &y));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Reshape), y, full_shape, &y));
    KELP_TRY(kelp_emit_cast(e, y, p->dynamic_quantize.to, &y));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Squeeze), scale, axes, &flat));
    kelp_emit_result(e, y);
    kelp_emit_result(e, flat);
    return NULL;
}

kelp_status *kelp_network_add_dynamic_quantize(kelp_network *network, kelp_net_tensor *input,
                                               int32_t axis, int64_t block, kelp_dtype to,
                                               kelp_dtype scale_dtype, kelp_layer **out) {
    kelp_layer_params params = {.dynamic_quantize = {axis, block, to, scale_dtype}};
    return kelp_network_append(network, KELP_LAYER_DYNAMIC_QUANTIZE, &input, 1, 1, &params, NULL,
                               out);
}

/* ---- non-maximum suppression ---- */
/* Sets all scores except the `max_count` highest of each class to -infinity, which is below all
 * thresholds, and adds a threshold if there is none. */
static kelp_status *keep_candidates(kelp_emit *e, int64_t max_count, kelp_value **inout_scores,
                                    kelp_value **inout_threshold) {
    kelp_value *scores = *inout_scores, *shape = NULL, *axis = NULL, *count[2] = {NULL},
               *sorted[2] = {scores}, *top[2] = {NULL}, *lowest = NULL, *keep = NULL;
    int64_t last = 2;
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_1(e, KELP_OP(Shape), scores, &shape));
    KELP_TRY(kelp_emit_i64s(e, &last, 1, &axis));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Gather), shape, axis, &count[0]));
    KELP_TRY(kelp_emit_i64s(e, &max_count, 1, &count[1]));
    KELP_TRY(kelp_emit_node(e, KELP_OP(Min), count, 2, &sorted[1], NULL));
    KELP_TRY(kelp_emit_nodes(e, KELP_OP(TopK), sorted, 2, top, 2, &node));
    KELP_TRY(kelp_node_set_i64(node, "axis", last));
    KELP_TRY(kelp_emit_2(e, KELP_OP(ReduceMin), top[0], axis, &lowest));
    KELP_TRY(kelp_emit_2(e, KELP_OP(GreaterOrEqual), scores, lowest, &keep));
    kelp_value *choice[3] = {keep, scores};
    KELP_TRY(kelp_emit_scalar(e, KELP_F32, -INFINITY, &choice[2]));
    KELP_TRY(kelp_emit_node(e, KELP_OP(Where), choice, 3, inout_scores, NULL));
    return *inout_threshold == NULL ? kelp_emit_scalar(e, KELP_F32, -FLT_MAX, inout_threshold)
                                    : NULL;
}

kelp_status *kelp_emit_NMS(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    kelp_value *inputs[5] = {e->inputs[0], e->inputs[1], e->inputs[2], e->inputs[3], e->inputs[4]};
    kelp_value *y = NULL, *shape = NULL, *zero = NULL, *count = NULL;
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_check_rank(e, 0, 3, 3));
    KELP_TRY(kelp_emit_check_rank(e, 1, 3, 3));
    KELP_TRY(kelp_emit_check_index(e, 2));
    for (int i = 0; i < 5; i++) /* the ONNX operator supports float32 only */
        if (inputs[i] != NULL && (inputs[i]->dtype == KELP_F16 || inputs[i]->dtype == KELP_BF16))
            KELP_TRY(kelp_emit_cast(e, inputs[i], KELP_F32, &inputs[i]));
    if (p->nms.topk < 0)
        return kelp_emit_fail(e, "topk must be at least 0 (all candidates), found %lld",
                              (long long)p->nms.topk);
    if (p->nms.topk > 0)
        KELP_TRY(keep_candidates(e, p->nms.topk, &inputs[1], &inputs[4]));
    KELP_TRY(kelp_emit_cast(e, inputs[2], KELP_I64, &inputs[2]));
    KELP_TRY(kelp_emit_node(e, KELP_OP(NonMaxSuppression), inputs, 5, &y, &node));
    KELP_TRY(kelp_node_set_i64(node, "center_point_box", p->nms.centers));
    KELP_TRY(kelp_emit_1(e, KELP_OP(Shape), y, &shape));
    KELP_TRY(kelp_emit_i64(e, 0, &zero));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Gather), shape, zero, &count));
    KELP_TRY(kelp_emit_cast(e, y, KELP_I32, &y));
    KELP_TRY(kelp_emit_cast(e, count, KELP_I32, &count));
    kelp_emit_result(e, y);
    kelp_emit_result(e, count);
    return NULL;
}

kelp_status *kelp_network_add_nms(kelp_network *network, kelp_net_tensor *boxes,
                                  kelp_net_tensor *scores, kelp_net_tensor *max_per_class,
                                  const kelp_nms *caller_options, kelp_layer **out) {
    kelp_nms options = {.struct_size = 0};
    if (caller_options != NULL)
        memcpy(&options, caller_options, KELP_MIN(caller_options->struct_size, sizeof options));
    kelp_net_tensor *inputs[5] = {boxes, scores, max_per_class, options.iou_threshold,
                                  options.score_threshold};
    kelp_layer_params params = {.nms = {options.centers, options.topk}};
    return kelp_network_append(network, KELP_LAYER_NMS, inputs, 5, 3, &params, NULL, out);
}

/* ---- collectives: with one rank, each returns its input ---- */
kelp_status *kelp_emit_COLLECTIVE(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    kelp_value *y = NULL;
    if ((unsigned)p->collective.op > KELP_COLLECTIVE_REDUCE_SCATTER || p->collective.ranks < 1 ||
        p->collective.root < 0 || p->collective.root >= p->collective.ranks)
        return kelp_emit_fail(e, "invalid collective: operation %d with root %d of %d ranks",
                              (int)p->collective.op, p->collective.root, p->collective.ranks);
    if (p->collective.ranks != 1)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "layer '%s' (DistCollective): the provider supports 1 rank, found %d",
                          e->layer->name, p->collective.ranks);
    KELP_TRY(kelp_emit_1(e, KELP_OP(Identity), e->inputs[0], &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_collective(kelp_network *network, kelp_net_tensor *input,
                                         kelp_collective op, kelp_reduce reduce, int32_t root,
                                         int32_t ranks, kelp_layer **out) {
    kelp_layer_params params = {.collective = {op, reduce, root, ranks}};
    return kelp_network_append(network, KELP_LAYER_COLLECTIVE, &input, 1, 1, &params, NULL, out);
}
