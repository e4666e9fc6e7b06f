/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that move elements (shuffle, slice, gather, scatter) or generate them. */
#include "tensorrt/lower.h"

#include <string.h>

_Static_assert((int)KELP_GATHER_ND == (int)TRT_GATHER_MODE_ND, "");
_Static_assert((int)KELP_SCATTER_ND == (int)TRT_SCATTER_MODE_ND, "");
_Static_assert((int)KELP_FILL_RANDOM_NORMAL == (int)TRT_FILL_OPERATION_RANDOM_NORMAL, "");
_Static_assert((int)KELP_LOOP_REVERSE == (int)TRT_LOOP_OUTPUT_REVERSE, "");

#define NET l->m, l->to
#define IN(i) trt_lower_input(l, layer, i)
#define DONE(added) trt_lower_done(l, layer, trt_as_layer(added))

static void set_if(trt_lowering *l, const kelp_layer *layer, void *added, int32_t to,
                   uint32_t from) {
    trt_tensor *input = IN(from);
    if (added != NULL && input != NULL)
        trt_layer_set_input(l->m, trt_as_layer(added), to, input);
}

static trt_permutation permutation_of(const int32_t *order) {
    trt_permutation permutation;
    memcpy(permutation.order, order, sizeof permutation.order);
    return permutation;
}

static kelp_status *shuffle(trt_lowering *l, const kelp_layer *layer) {
    const kelp_shuffle *p = &layer->params.shuffle;
    trt_shuffle_layer *added = trt_network_add_shuffle(NET, IN(0));
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    if (p->first_transpose_given) {
        const trt_permutation permutation = permutation_of(p->first_transpose);
        trt_shuffle_layer_set_first_transpose(l->m, added, &permutation);
    }
    if (p->reshape_given && IN(1) == NULL) {
        trt_dims dims;
        KELP_TRY(trt_lower_dims(layer, &p->reshape, &dims));
        trt_shuffle_layer_set_reshape_dimensions(l->m, added, &dims);
    }
    trt_shuffle_layer_set_zero_is_placeholder(l->m, added, !p->zero_is_zero);
    set_if(l, layer, added, 1, 1);
    if (p->second_transpose_given) {
        const trt_permutation permutation = permutation_of(p->second_transpose);
        trt_shuffle_layer_set_second_transpose(l->m, added, &permutation);
    }
    return DONE(added);
}

static kelp_status *concatenation(trt_lowering *l, const kelp_layer *layer) {
    trt_tensor **inputs = KELP_ARENA_ARRAY(&l->arena, layer->input_count + 1u, trt_tensor *);
    if (inputs == NULL)
        return kelp_status_oom();
    for (uint32_t i = 0; i < layer->input_count; i++)
        inputs[i] = IN(i);
    trt_concatenation_layer *added =
        trt_network_add_concatenation(NET, inputs, (int32_t)layer->input_count);
    if (added != NULL)
        trt_concatenation_layer_set_axis(l->m, added, layer->params.axis);
    return DONE(added);
}

/* Returns zeros if a tensor replaces the parameter: TensorRT still requires the rank. */
static kelp_status *slice_dims(const kelp_layer *layer, const kelp_shape *shape, uint32_t input,
                               trt_dims *out) {
    if (layer->inputs[input] == NULL)
        return trt_lower_dims(layer, shape, out);
    *out = (trt_dims){.rank = trt_lower_input_rank(layer, 0)};
    return out->rank >= 0 && out->rank <= TRT_MAX_DIMS
               ? NULL
               : trt_lower_unsupported(layer, "unsupported number of dimensions of the input: %d",
                                       out->rank);
}

static kelp_status *slice(trt_lowering *l, const kelp_layer *layer) {
    const kelp_layer_params *p = &layer->params;
    trt_dims start, size, stride;
    KELP_TRY(slice_dims(layer, &p->slice.start, 1, &start));
    KELP_TRY(slice_dims(layer, &p->slice.size, 2, &size));
    KELP_TRY(slice_dims(layer, &p->slice.stride, 3, &stride));
    trt_slice_layer *added = trt_network_add_slice(NET, IN(0), &start, &size, &stride);
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    trt_slice_layer_set_mode(l->m, added, (trt_sample_mode)p->slice.mode);
    for (uint32_t i = 1; i < 5; i++)
        set_if(l, layer, added, (int32_t)i, i);
    return DONE(added);
}

static kelp_status *gather(trt_lowering *l, const kelp_layer *layer) {
    const kelp_layer_params *p = &layer->params;
    trt_gather_layer *added =
        trt_network_add_gather_v2(NET, IN(0), IN(1), (trt_gather_mode)p->gather.mode);
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    if (p->gather.mode != KELP_GATHER_ND)
        trt_gather_layer_set_gather_axis(l->m, added, p->gather.axis);
    if (p->gather.batch_dims != 0)
        trt_gather_layer_set_nb_element_wise_dims(l->m, added, p->gather.batch_dims);
    return DONE(added);
}

static kelp_status *scatter(trt_lowering *l, const kelp_layer *layer) {
    const kelp_layer_params *p = &layer->params;
    trt_scatter_layer *added =
        trt_network_add_scatter(NET, IN(0), IN(1), IN(2), (trt_scatter_mode)p->scatter.mode);
    if (added != NULL && p->scatter.mode == KELP_SCATTER_ELEMENT)
        trt_scatter_layer_set_axis(l->m, added, p->scatter.axis);
    return DONE(added);
}

static kelp_status *non_zero(trt_lowering *l, const kelp_layer *layer) {
    trt_data_type type = TRT_DATA_TYPE_INT32;
    KELP_TRY(trt_data_type_from(layer->params.indices, &type));
    return DONE(trt_network_add_non_zero_v2(NET, IN(0), type));
}

static kelp_status *reverse_sequence(trt_lowering *l, const kelp_layer *layer) {
    trt_reverse_sequence_layer *added = trt_network_add_reverse_sequence(NET, IN(0), IN(1));
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    trt_reverse_sequence_layer_set_batch_axis(l->m, added, layer->params.reverse_sequence.batch);
    trt_reverse_sequence_layer_set_sequence_axis(l->m, added,
                                                 layer->params.reverse_sequence.sequence);
    return DONE(added);
}

static kelp_status *fill(trt_lowering *l, const kelp_layer *layer) {
    const kelp_fill_options *options = &layer->params.fill.options;
    trt_data_type type = TRT_DATA_TYPE_FLOAT;
    trt_dims dims = {0};
    KELP_TRY(trt_data_type_from(options->dtype, &type));
    if (layer->inputs[0] == NULL)
        KELP_TRY(trt_lower_dims(layer, &layer->params.fill.dims, &dims));
    else
        dims.rank = (int32_t)layer->inputs[0]->draft->shape[0]; /* the length of the vector */
    if (dims.rank < 0 || dims.rank > TRT_MAX_DIMS)
        return trt_lower_unsupported(layer, "expected 0 to %d dimensions, found %d", TRT_MAX_DIMS,
                                     dims.rank);
    trt_fill_layer *added =
        trt_network_add_fill_v2(NET, &dims, (trt_fill_operation)layer->params.fill.op, type);
    KELP_TRY(trt_lower_check(l, layer, added != NULL, "add it"));
    if (options->dtype == KELP_I64 || options->dtype == KELP_I32) {
        trt_fill_layer_set_alpha_int64(l->m, added, (int64_t)options->alpha);
        trt_fill_layer_set_beta_int64(l->m, added, (int64_t)options->beta);
    } else {
        trt_fill_layer_set_alpha(l->m, added, options->alpha);
        trt_fill_layer_set_beta(l->m, added, options->beta);
    }
    for (uint32_t i = 0; i < 3; i++)
        set_if(l, layer, added, (int32_t)i, i);
    return DONE(added);
}

kelp_status *trt_lower_shaping(trt_lowering *l, const kelp_layer *layer, bool *out_known) {
    *out_known = true;
    switch (layer->type) {
    case KELP_LAYER_SHUFFLE:
        return shuffle(l, layer);
    case KELP_LAYER_CONCATENATION:
        return concatenation(l, layer);
    case KELP_LAYER_SLICE:
        return slice(l, layer);
    case KELP_LAYER_SHAPE:
        return DONE(trt_network_add_shape(NET, IN(0)));
    case KELP_LAYER_SQUEEZE:
        return DONE(trt_network_add_squeeze(NET, IN(0), IN(1)));
    case KELP_LAYER_UNSQUEEZE:
        return DONE(trt_network_add_unsqueeze(NET, IN(0), IN(1)));
    case KELP_LAYER_GATHER:
        return gather(l, layer);
    case KELP_LAYER_SCATTER:
        return scatter(l, layer);
    case KELP_LAYER_ONE_HOT:
        return DONE(trt_network_add_one_hot(NET, IN(0), IN(1), IN(2), layer->params.axis));
    case KELP_LAYER_NON_ZERO:
        return non_zero(l, layer);
    case KELP_LAYER_REVERSE_SEQUENCE:
        return reverse_sequence(l, layer);
    case KELP_LAYER_FILL:
        return fill(l, layer);
    case KELP_LAYER_ASSERTION:
        return DONE(trt_network_add_assertion(NET, IN(0), layer->params.message));
    default:
        *out_known = false;
        return NULL;
    }
}
