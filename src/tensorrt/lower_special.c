/* SPDX-License-Identifier: Apache-2.0 */
/* Layers for attention, experts, quantization, detection and collective operations. */
#include "tensorrt/lower.h"

_Static_assert((int)KELP_COLLECTIVE_REDUCE_SCATTER == (int)TRT_COLLECTIVE_OPERATION_REDUCE_SCATTER,
               "");

#define NET l->m, l->to
#define IN(i) trt_lower_input(l, layer, i)
#define DONE(added) trt_lower_done(l, layer, trt_as_layer(added))

/* TensorRT adds two layers; the second one has the output. */
static kelp_status *attention(trt_lowering *l, const kelp_layer *layer) {
    const kelp_layer_params *p = &layer->params;
    trt_attention_normalization_op op = p->attention.no_softmax
                                            ? TRT_ATTENTION_NORMALIZATION_OP_NONE
                                            : TRT_ATTENTION_NORMALIZATION_OP_SOFTMAX;
    trt_attention *added =
        trt_has(l->m, TRT_M_network_add_attention_v2)
            ? trt_network_add_attention_v2(NET, IN(0), IN(1), IN(2), op,
                                           p->attention.causal ? TRT_CAUSAL_MASK_KIND_UPPER_LEFT
                                                               : TRT_CAUSAL_MASK_KIND_NONE)
            : trt_network_add_attention(NET, IN(0), IN(1), IN(2), op, p->attention.causal);
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    if (IN(3) != NULL)
        KELP_TRY(
            trt_lower_check(l, layer, trt_attention_set_mask(l->m, added, IN(3)), "set its mask"));
    /* Allows several kernels if there is no fused kernel. */
    trt_attention_set_decomposable(l->m, added, true);
    trt_attention_set_name(l->m, added, layer->name);
    trt_tensor *output = trt_attention_get_output(l->m, added, 0);
    KELP_TRY(trt_lower_check(l, layer, output != NULL, "get its output"));
    trt_tensor_set_name(l->m, output, layer->outputs[0]->name);
    l->tensors[layer->outputs[0]->id] = output;
    return NULL;
}

static kelp_status *rotary_embedding(trt_lowering *l, const kelp_layer *layer) {
    const kelp_layer_params *p = &layer->params;
    trt_rotary_embedding_layer *added = trt_network_add_rotary_embedding(
        NET, IN(0), IN(1), IN(2), p->rotary.interleaved, (int32_t)p->rotary.rotary_dims);
    if (added != NULL && IN(3) != NULL)
        trt_rotary_embedding_layer_set_input(l->m, added, 3, IN(3));
    return DONE(added);
}

static kelp_status *moe(trt_lowering *l, const kelp_layer *layer) {
    if (IN(3) == NULL)
        return trt_lower_unsupported(layer, "experts without gates are not supported");
    if (!layer->params.moe.swish)
        return trt_lower_unsupported(layer, "the activation of the gate must be SiLU: set swish");
    trt_moe_layer *added = trt_network_add_moe(NET, IN(0), IN(1), IN(2));
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    trt_moe_layer_set_gated_weights(l->m, added, IN(3), IN(4), IN(5), TRT_MOE_ACT_TYPE_SILU);
    if (IN(6) != NULL || IN(7) != NULL || IN(8) != NULL)
        trt_moe_layer_set_gated_biases(l->m, added, IN(6), IN(7), IN(8));
    return DONE(added);
}

/* ---- quantization ---- */
static kelp_status *quantize(trt_lowering *l, const kelp_layer *layer) {
    const kelp_layer_params *p = &layer->params;
    bool along_axis = trt_lower_input_rank(layer, 1) == 1;
    trt_data_type type = TRT_DATA_TYPE_INT8;
    trt_layer *added = NULL;
    kelp_status *status = trt_data_type_from(p->quantize.to, &type);
    if (status != NULL)
        return KELP_ANNOTATE(status, "layer %u '%s' (%s)", layer->index, layer->name,
                             kelp_layer_type_name(layer->type));
    if (layer->type == KELP_LAYER_QUANTIZE) {
        trt_quantize_layer *q = trt_network_add_quantize_v2(NET, IN(0), IN(1), type);
        if (q != NULL && along_axis)
            trt_quantize_layer_set_axis(l->m, q, p->quantize.axis);
        added = trt_as_layer(q);
    } else {
        trt_dequantize_layer *d = trt_network_add_dequantize_v2(NET, IN(0), IN(1), type);
        if (d != NULL && along_axis)
            trt_dequantize_layer_set_axis(l->m, d, p->quantize.axis);
        added = trt_as_layer(d);
    }
    if (added != NULL && IN(2) != NULL)
        trt_layer_set_input(l->m, added, 2, IN(2));
    return DONE(added);
}

/* For float4, the scales are quantized too, with a scale of 1. For float8, blocks can have any
 * shape. */
static kelp_status *dynamic_quantize(trt_lowering *l, const kelp_layer *layer) {
    static const float one = 1.0f;
    const kelp_layer_params *p = &layer->params;
    int32_t rank = trt_lower_input_rank(layer, 0), axis = p->dynamic_quantize.axis;
    trt_data_type to = TRT_DATA_TYPE_FP4, scale_type = TRT_DATA_TYPE_FP8;
    trt_dims block = {.rank = rank}, scalar = {0};
    trt_tensor *scale = NULL;
    KELP_TRY(trt_data_type_from(p->dynamic_quantize.to, &to));
    KELP_TRY(trt_data_type_from(p->dynamic_quantize.scale_dtype, &scale_type));
    if (rank < 0 || rank > TRT_MAX_DIMS || p->dynamic_quantize.block > INT32_MAX)
        return trt_lower_unsupported(layer,
                                     "unsupported input with %d dimensions and blocks of %lld",
                                     rank, (long long)p->dynamic_quantize.block);
    if (p->dynamic_quantize.to != KELP_F4E2M1) {
        KELP_TRY(trt_require(l->library, TRT_M_network_add_dynamic_quantize_v2));
        for (int32_t i = 0; i < rank; i++)
            block.d[i] = i == axis ? p->dynamic_quantize.block : 1;
        return DONE(trt_network_add_dynamic_quantize_v2(NET, IN(0), &block, to, scale_type));
    }
    trt_layer *added = trt_as_layer(trt_network_add_dynamic_quantize(
        NET, IN(0), axis, (int32_t)p->dynamic_quantize.block, to, scale_type));
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    trt_weights value = {TRT_DATA_TYPE_FLOAT, &one, 1};
    KELP_TRY(trt_lower_between(
        l, layer, trt_as_layer(trt_network_add_constant(NET, &scalar, value)), "scale", &scale));
    trt_layer_set_input(l->m, added, 1, scale);
    return trt_lower_done(l, layer, added);
}

/* ---- detection ---- */
/* Transposes the scores from [b,classes,n] to TensorRT's [b,n,classes]. */
static kelp_status *nms(trt_lowering *l, const kelp_layer *layer) {
    const kelp_layer_params *p = &layer->params;
    const trt_permutation permutation = {{0, 2, 1, 3, 4, 5, 6, 7}};
    trt_tensor *scores = NULL;
    trt_shuffle_layer *transposed = trt_network_add_shuffle(NET, IN(1));
    if (transposed != NULL)
        trt_shuffle_layer_set_first_transpose(l->m, transposed, &permutation);
    KELP_TRY(trt_lower_between(l, layer, trt_as_layer(transposed), "scores", &scores));
    trt_nms_layer *added = trt_network_add_nms_v2(NET, IN(0), scores, IN(2), TRT_DATA_TYPE_INT32);
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    trt_nms_layer_set_bounding_box_format(l->m, added,
                                          p->nms.centers ? TRT_BOUNDING_BOX_FORMAT_CENTER_SIZES
                                                         : TRT_BOUNDING_BOX_FORMAT_CORNER_PAIRS);
    if (p->nms.topk > 0 && p->nms.topk <= INT32_MAX)
        trt_nms_layer_set_topk_box_limit(l->m, added, (int32_t)p->nms.topk);
    for (uint32_t i = 3; i < 5; i++)
        if (IN(i) != NULL)
            trt_layer_set_input(l->m, trt_as_layer(added), (int32_t)i, IN(i));
    return DONE(added);
}

/* ---- several devices ---- */
static kelp_status *collective(trt_lowering *l, const kelp_layer *layer) {
    const kelp_layer_params *p = &layer->params;
    kelp_collective op = p->collective.op;
    bool has_root = op == KELP_COLLECTIVE_BROADCAST || op == KELP_COLLECTIVE_REDUCE;
    bool reduces = op != KELP_COLLECTIVE_BROADCAST && op != KELP_COLLECTIVE_ALL_GATHER;
    KELP_TRY(trt_require(l->library, TRT_M_network_add_dist_collective));
    trt_layer *added = trt_as_layer(trt_network_add_dist_collective(
        NET, IN(0), (trt_collective_operation)op,
        reduces ? (trt_reduce_operation)p->collective.reduce : TRT_REDUCE_OPERATION_NONE,
        has_root ? p->collective.root : -1, NULL, 0));
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    if (p->collective.ranks > 1)
        trt_layer_set_nb_ranks(l->m, added, p->collective.ranks);
    return trt_lower_done(l, layer, added);
}

kelp_status *trt_lower_special(trt_lowering *l, const kelp_layer *layer, bool *out_known) {
    *out_known = true;
    switch (layer->type) {
    case KELP_LAYER_ATTENTION:
        return attention(l, layer);
    case KELP_LAYER_ROTARY_EMBEDDING:
        return rotary_embedding(l, layer);
    case KELP_LAYER_KV_CACHE_UPDATE:
        return DONE(
            trt_network_add_kvcache_update(NET, IN(0), IN(1), IN(2), TRT_KVCACHE_MODE_LINEAR));
    case KELP_LAYER_MOE:
        return moe(l, layer);
    case KELP_LAYER_QUANTIZE:
    case KELP_LAYER_DEQUANTIZE:
        return quantize(l, layer);
    case KELP_LAYER_DYNAMIC_QUANTIZE:
        return dynamic_quantize(l, layer);
    case KELP_LAYER_NMS:
        return nms(l, layer);
    case KELP_LAYER_COLLECTIVE:
        return collective(l, layer);
    default:
        *out_known = false;
        return NULL;
    }
}
