/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that move elements and compute shapes. */
#include "base/assert.h"
#include "base/checked.h"
#include "builder/emit.h"

#include <string.h>

/* ---- shuffle ---- */
static kelp_status *transpose(kelp_emit *e, const int32_t *order, int32_t rank,
                              kelp_value **inout) {
    int64_t perm[KELP_MAX_RANK];
    uint32_t seen = 0;
    kelp_node *node = NULL;
    if (rank < 0)
        return kelp_emit_fail(e, "the rank of a transposed tensor must be known");
    KELP_ASSERT(rank <= KELP_MAX_RANK);
    for (int32_t i = 0; i < rank; i++) {
        perm[i] = order[i];
        if (order[i] < 0 || order[i] >= rank || (seen >> order[i] & 1u) != 0)
            return kelp_emit_fail(
                e, "a transpose of %d dimensions must name each axis once: position %d has %d",
                rank, i, order[i]);
        seen |= 1u << order[i];
    }
    KELP_TRY(kelp_emit_node(e, KELP_OP(Transpose), inout, 1, inout, &node));
    return kelp_node_set_i64s(node, "perm", perm, (size_t)rank);
}

kelp_status *kelp_emit_SHUFFLE(kelp_emit *e) {
    const kelp_shuffle *p = &e->layer->params.shuffle;
    kelp_value *y = e->inputs[0], *shape = e->inputs[1];
    int32_t rank = y->rank;
    if (p->first_transpose_given)
        KELP_TRY(transpose(e, p->first_transpose, rank, &y));
    if (shape != NULL || p->reshape_given) {
        kelp_node *node = NULL;
        if (shape != NULL) {
            KELP_TRY(kelp_emit_check_index(e, 1));
            rank = shape->rank == 1 && shape->shape[0] >= 0 ? (int32_t)shape->shape[0] : -1;
            KELP_TRY(kelp_emit_cast(e, shape, KELP_I64, &shape));
        } else {
            KELP_TRY(kelp_emit_check_shape(e, &p->reshape, "reshape"));
            rank = p->reshape.rank;
            KELP_TRY(kelp_emit_i64s(e, p->reshape.d, (size_t)rank, &shape));
        }
        kelp_value *inputs[2] = {y, shape};
        KELP_TRY(kelp_emit_node(e, KELP_OP(Reshape), inputs, 2, &y, &node));
        if (p->zero_is_zero)
            KELP_TRY(kelp_node_set_i64(node, "allowzero", 1));
    }
    if (p->second_transpose_given)
        KELP_TRY(transpose(e, p->second_transpose, rank, &y));
    if (y == e->inputs[0])
        KELP_TRY(kelp_emit_1(e, KELP_OP(Identity), y, &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_shuffle(kelp_network *network, kelp_net_tensor *input,
                                      const kelp_shuffle *options, kelp_layer **out) {
    kelp_layer_params params = {.shuffle = {.struct_size = 0}};
    if (options != NULL)
        memcpy(&params.shuffle, options, KELP_MIN(options->struct_size, sizeof *options));
    kelp_net_tensor *inputs[2] = {input, params.shuffle.shape};
    return kelp_network_append(network, KELP_LAYER_SHUFFLE, inputs, 2, 1, &params, NULL, out);
}

/* ---- concatenation, shape, squeeze ---- */
kelp_status *kelp_emit_CONCATENATION(kelp_emit *e) {
    kelp_value *y = NULL;
    kelp_node *node = NULL;
    for (uint32_t i = 0; i < e->layer->input_count; i++) {
        KELP_TRY(kelp_emit_check_axis(e, i, e->layer->params.axis));
        KELP_TRY(kelp_emit_check_same_dtype(e, 0, i));
    }
    KELP_TRY(kelp_emit_node(e, KELP_OP(Concat), e->inputs, e->layer->input_count, &y, &node));
    KELP_TRY(kelp_node_set_i64(node, "axis", e->layer->params.axis));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_concatenation(kelp_network *network, kelp_net_tensor *const *inputs,
                                            size_t count, int32_t axis, kelp_layer **out) {
    kelp_layer_params params = {.axis = axis};
    if (count == 0)
        return KELP_NETWORK_ERROR(KELP_INVALID_ARGUMENT,
                                  "a concatenation needs at least one tensor");
    return kelp_network_append(network, KELP_LAYER_CONCATENATION, inputs, count, count, &params,
                               NULL, out);
}

kelp_status *kelp_emit_SHAPE(kelp_emit *e) {
    kelp_value *y = NULL;
    KELP_TRY(kelp_emit_1(e, KELP_OP(Shape), e->inputs[0], &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_shape(kelp_network *network, kelp_net_tensor *input,
                                    kelp_layer **out) {
    kelp_layer_params params = {.axis = 0};
    return kelp_network_append(network, KELP_LAYER_SHAPE, &input, 1, 1, &params, NULL, out);
}

static kelp_status *emit_axes(kelp_emit *e, const kelp_operator *op) {
    kelp_value *inputs[2] = {e->inputs[0], e->inputs[1]}, *y = NULL;
    KELP_TRY(kelp_emit_check_index(e, 1));
    if (e->inputs[1]->constant == NULL)
        return kelp_emit_fail(e, "the axes must be a constant");
    KELP_TRY(kelp_emit_cast(e, inputs[1], KELP_I64, &inputs[1]));
    KELP_TRY(kelp_emit_node(e, op, inputs, 2, &y, NULL));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_emit_SQUEEZE(kelp_emit *e) {
    return emit_axes(e, KELP_OP(Squeeze));
}

kelp_status *kelp_emit_UNSQUEEZE(kelp_emit *e) {
    return emit_axes(e, KELP_OP(Unsqueeze));
}

kelp_status *kelp_network_add_squeeze(kelp_network *network, kelp_net_tensor *input,
                                      kelp_net_tensor *axes, kelp_layer **out) {
    kelp_net_tensor *inputs[2] = {input, axes};
    kelp_layer_params params = {.axis = 0};
    return kelp_network_append(network, KELP_LAYER_SQUEEZE, inputs, 2, 2, &params, NULL, out);
}

kelp_status *kelp_network_add_unsqueeze(kelp_network *network, kelp_net_tensor *input,
                                        kelp_net_tensor *axes, kelp_layer **out) {
    kelp_net_tensor *inputs[2] = {input, axes};
    kelp_layer_params params = {.axis = 0};
    return kelp_network_append(network, KELP_LAYER_UNSQUEEZE, inputs, 2, 2, &params, NULL, out);
}

/* ---- slice ---- */
/* The start, size and stride of a slice as tensors, int64 [rank] each. */
typedef struct slice_parts {
    kelp_value *start, *size, *stride;
    int32_t rank;
} slice_parts;

static kelp_status *slice_part(kelp_emit *e, size_t input, const kelp_shape *caller_options,
                               const char *what, slice_parts *parts, kelp_value **out) {
    kelp_value *value = e->inputs[input];
    if (value != NULL) {
        KELP_TRY(kelp_emit_check_index(e, input));
        if (value->rank == 1 && value->shape[0] >= 0 && value->shape[0] != parts->rank)
            return kelp_emit_fail(e, "%s has %lld values, but the input has %d dimensions", what,
                                  (long long)value->shape[0], parts->rank);
        return kelp_emit_cast(e, value, KELP_I64, out);
    }
    if (caller_options->rank != parts->rank)
        return kelp_emit_fail(e, "%s has %d values, but the input has %d dimensions", what,
                              caller_options->rank, parts->rank);
    return kelp_emit_i64s(e, caller_options->d, (size_t)caller_options->rank, out);
}

/* Checks that the slice is within the input, as far as its dimensions are known, so that ONNX's
 * Slice gives the same result. */
static kelp_status *check_inside(const kelp_emit *e, int32_t rank) {
    const kelp_layer_params *p = &e->layer->params;
    KELP_ASSERT(rank == p->slice.start.rank && rank == p->slice.size.rank);
    for (int32_t i = 0; i < rank; i++) {
        int64_t dim = e->inputs[0]->shape[i], start = p->slice.start.d[i],
                size = p->slice.size.d[i], stride = p->slice.stride.d[i], end, last;
        if (size < 0)
            return kelp_emit_fail(e, "axis %d: the size must not be negative, found %lld", i,
                                  (long long)size);
        if (!kelp_i64_mul(size, stride, &end) || !kelp_i64_add(end, start, &end) ||
            !kelp_i64_sub(end, stride, &last))
            return kelp_emit_fail(e, "axis %d: start %lld, size %lld and stride %lld overflow", i,
                                  (long long)start, (long long)size, (long long)stride);
        if (dim < 0 || size == 0)
            continue;
        if (start < 0 || start >= dim || last < 0 || last >= dim)
            return kelp_emit_fail(
                e, "axis %d has %lld elements, but the slice reaches from %lld to %lld", i,
                (long long)dim, (long long)start, (long long)last);
    }
    return NULL;
}

static kelp_status *slice_static(kelp_emit *e, int32_t rank, kelp_value **out) {
    const kelp_layer_params *p = &e->layer->params;
    int64_t ends[KELP_MAX_RANK], axes[KELP_MAX_RANK];
    kelp_value *inputs[5] = {e->inputs[0]};
    KELP_TRY(check_inside(e, rank));
    for (int32_t i = 0; i < rank; i++) {
        axes[i] = i;
        ends[i] = p->slice.start.d[i] + p->slice.size.d[i] * p->slice.stride.d[i];
        if (p->slice.stride.d[i] < 0 && ends[i] < 0)
            ends[i] = INT64_MIN; /* before the first element: -1 would be the last one */
    }
    KELP_TRY(kelp_emit_i64s(e, p->slice.start.d, (size_t)rank, &inputs[1]));
    KELP_TRY(kelp_emit_i64s(e, ends, (size_t)rank, &inputs[2]));
    KELP_TRY(kelp_emit_i64s(e, axes, (size_t)rank, &inputs[3]));
    KELP_TRY(kelp_emit_i64s(e, p->slice.stride.d, (size_t)rank, &inputs[4]));
    return kelp_emit_node(e, KELP_OP(Slice), inputs, 5, out, NULL);
}

/* Gets values[axis] as a scalar. */
static kelp_status *at(kelp_emit *e, kelp_value *values, int32_t axis, kelp_value **out) {
    kelp_value *index = NULL;
    KELP_TRY(kelp_emit_i64(e, axis, &index));
    return kelp_emit_2(e, KELP_OP(Gather), values, index, out);
}

/* Maps indices outside the input according to the mode. With KELP_SAMPLE_FILL, `*out_inside` is the
 * mask of indices inside the input. */
static kelp_status *map_index(kelp_emit *e, kelp_sample_mode mode, kelp_value *dim,
                              kelp_value **inout_index, kelp_value **out_inside) {
    kelp_value *zero = NULL, *one = NULL, *two = NULL, *last = NULL, *index = *inout_index;
    KELP_TRY(kelp_emit_i64(e, 0, &zero));
    KELP_TRY(kelp_emit_i64(e, 1, &one));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Sub), dim, one, &last));
    if (mode == KELP_SAMPLE_WRAP)
        return kelp_emit_2(e, KELP_OP(Mod), index, dim, inout_index);
    if (mode == KELP_SAMPLE_REFLECT) {
        kelp_value *period = NULL, *mirrored = NULL, *is_forward = NULL;
        KELP_TRY(kelp_emit_i64(e, 2, &two));
        KELP_TRY(kelp_emit_2(e, KELP_OP(Mul), last, two, &period));
        KELP_TRY(kelp_emit_2(e, KELP_OP(Max), period, one, &period));
        KELP_TRY(kelp_emit_2(e, KELP_OP(Mod), index, period, &index));
        KELP_TRY(kelp_emit_2(e, KELP_OP(Sub), period, index, &mirrored));
        KELP_TRY(kelp_emit_2(e, KELP_OP(LessOrEqual), index, last, &is_forward));
        return kelp_emit_3(e, KELP_OP(Where), is_forward, index, mirrored, inout_index);
    }
    kelp_value *inside = NULL;
    KELP_TRY(kelp_emit_2(e, KELP_OP(Max), index, zero, &inside));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Min), inside, last, &inside));
    if (mode == KELP_SAMPLE_FILL)
        KELP_TRY(kelp_emit_2(e, KELP_OP(Equal), inside, index, out_inside));
    *inout_index = inside;
    return NULL;
}

/* Slices one axis: maps start + i * stride into the input and gathers. */
static kelp_status *slice_axis(kelp_emit *e, const slice_parts *parts, int32_t axis,
                               kelp_value *dims, kelp_value *fill, kelp_value **inout) {
    kelp_value *start = NULL, *size = NULL, *stride = NULL, *dim = NULL, *zero = NULL, *one = NULL,
               *index = NULL, *inside = NULL;
    kelp_node *node = NULL;
    KELP_TRY(at(e, parts->start, axis, &start));
    KELP_TRY(at(e, parts->size, axis, &size));
    KELP_TRY(at(e, parts->stride, axis, &stride));
    KELP_TRY(at(e, dims, axis, &dim));
    KELP_TRY(kelp_emit_i64(e, 0, &zero));
    KELP_TRY(kelp_emit_i64(e, 1, &one));
    KELP_TRY(kelp_emit_3(e, KELP_OP(Range), zero, size, one, &index));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Mul), index, stride, &index));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Add), index, start, &index));
    if (e->layer->params.slice.mode != KELP_SAMPLE_STRICT)
        KELP_TRY(map_index(e, e->layer->params.slice.mode, dim, &index, &inside));
    kelp_value *inputs[2] = {*inout, index};
    KELP_TRY(kelp_emit_node(e, KELP_OP(Gather), inputs, 2, inout, &node));
    KELP_TRY(kelp_node_set_i64(node, "axis", axis));
    if (inside == NULL)
        return NULL;
    /* [n], broadcast over the axes after it */
    int64_t shape[KELP_MAX_RANK];
    kelp_value *column = NULL;
    shape[0] = -1;
    for (int32_t i = axis + 1; i < parts->rank; i++)
        shape[i - axis] = 1;
    KELP_TRY(kelp_emit_i64s(e, shape, (size_t)(parts->rank - axis), &column));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Reshape), inside, column, &inside));
    return kelp_emit_3(e, KELP_OP(Where), inside, *inout, fill, inout);
}

kelp_status *kelp_emit_SLICE(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    slice_parts parts = {.rank = e->inputs[0]->rank};
    kelp_value *y = e->inputs[0], *dims = NULL, *fill = e->inputs[4];
    if (parts.rank < 0)
        return kelp_emit_fail(e, "the input's rank must be known");
    if ((unsigned)p->slice.mode > KELP_SAMPLE_REFLECT)
        return kelp_emit_fail(e, "invalid mode %d", (int)p->slice.mode);
    KELP_TRY(slice_part(e, 1, &p->slice.start, "start", &parts, &parts.start));
    KELP_TRY(slice_part(e, 2, &p->slice.size, "size", &parts, &parts.size));
    KELP_TRY(slice_part(e, 3, &p->slice.stride, "stride", &parts, &parts.stride));
    bool fixed = e->inputs[1] == NULL && e->inputs[2] == NULL && e->inputs[3] == NULL;
    for (int32_t i = 0; e->inputs[3] == NULL && i < parts.rank; i++)
        if (p->slice.stride.d[i] == 0)
            return kelp_emit_fail(e, "axis %d: the stride is 0", i);
    if (fixed && p->slice.mode == KELP_SAMPLE_STRICT) {
        KELP_TRY(slice_static(e, parts.rank, &y));
        kelp_emit_result(e, y);
        return NULL;
    }
    if (p->slice.mode == KELP_SAMPLE_FILL && fill == NULL)
        KELP_TRY(kelp_emit_scalar(e, e->inputs[0]->dtype, 0, &fill));
    KELP_TRY(kelp_emit_1(e, KELP_OP(Shape), e->inputs[0], &dims));
    for (int32_t i = 0; i < parts.rank; i++)
        KELP_TRY(slice_axis(e, &parts, i, dims, fill, &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_slice(kelp_network *network, kelp_net_tensor *input, kelp_shape start,
                                    kelp_shape size, kelp_shape stride,
                                    const kelp_slice *caller_options, kelp_layer **out) {
    kelp_slice options = {.struct_size = 0};
    if (caller_options != NULL)
        memcpy(&options, caller_options, KELP_MIN(caller_options->struct_size, sizeof options));
    kelp_net_tensor *inputs[5] = {input, options.start, options.size, options.stride, options.fill};
    kelp_layer_params params = {.slice = {start, size, stride, options.mode}};
    return kelp_network_append(network, KELP_LAYER_SLICE, inputs, 5, 1, &params, NULL, out);
}

/* ---- gather, scatter ---- */
static kelp_status *permute(kelp_emit *e, const int64_t *perm, int32_t rank, kelp_value **inout) {
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_node(e, KELP_OP(Transpose), inout, 1, inout, &node));
    return kelp_node_set_i64s(node, "perm", perm, (size_t)rank);
}

/* Gathers slices of `axis` for each batch index: transposes `axis` after the batch axes, applies
 * GatherND and transposes the axes back. */
static kelp_status *gather_batched(kelp_emit *e, int32_t axis, int32_t batch, kelp_value **out) {
    int32_t rank = e->inputs[0]->rank, indices_rank = e->inputs[1]->rank;
    int64_t perm[2 * KELP_MAX_RANK];
    kelp_value *data = e->inputs[0], *indices = e->inputs[1], *last = NULL;
    kelp_node *node = NULL;
    if (rank < 0 || indices_rank < batch || axis < batch)
        return kelp_emit_fail(e, "axis %d must come after the %d batch dimensions of both inputs",
                              axis, batch);
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i <= batch ? (i < batch ? i : axis) : i <= axis ? i - 1 : i;
    KELP_TRY(permute(e, perm, rank, &data));
    int64_t minus_one = -1;
    KELP_TRY(kelp_emit_i64s(e, &minus_one, 1, &last));
    KELP_TRY(kelp_emit_cast(e, indices, KELP_I64, &indices));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Unsqueeze), indices, last, &indices));
    kelp_value *inputs[2] = {data, indices};
    KELP_TRY(kelp_emit_node(e, KELP_OP(GatherND), inputs, 2, out, &node));
    KELP_TRY(kelp_node_set_i64(node, "batch_dims", batch));
    /* the result is [batch, other axes of the indices, axes axes_between, axes after] */
    int32_t index_axes = indices_rank - batch, axes_between = axis - batch, next = 0,
            out_rank = rank - 1 + index_axes;
    for (int32_t i = 0; i < batch; i++)
        perm[next++] = i;
    for (int32_t i = 0; i < axes_between; i++)
        perm[next++] = batch + index_axes + i;
    for (int32_t i = 0; i < index_axes; i++)
        perm[next++] = batch + i;
    for (int32_t i = next; i < out_rank; i++)
        perm[i] = i;
    return permute(e, perm, out_rank, out);
}

/* Checks the rank of the output, as far as it is known. */
static kelp_status *check_gathered(const kelp_emit *e, int32_t batch) {
    int32_t data = e->inputs[0]->rank, indices = e->inputs[1]->rank;
    int32_t rank = data + indices - 1 - batch;
    if (data < 0 || indices < 0 || rank <= KELP_MAX_RANK)
        return NULL;
    return kelp_emit_fail(e, "the output would have %d dimensions: at most %d are supported", rank,
                          KELP_MAX_RANK);
}

kelp_status *kelp_emit_GATHER(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    kelp_value *y = NULL, *indices = e->inputs[1];
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_check_index(e, 1));
    if (p->gather.batch_dims < 0)
        return kelp_emit_fail(e, "invalid number of batch dimensions %d", p->gather.batch_dims);
    if (p->gather.mode != KELP_GATHER_ND)
        KELP_TRY(kelp_emit_check_axis(e, 0, p->gather.axis));
    kelp_value *inputs[2] = {e->inputs[0], indices};
    switch (p->gather.mode) {
    case KELP_GATHER_DEFAULT:
        KELP_TRY(check_gathered(e, p->gather.batch_dims));
        if (p->gather.batch_dims > 0) {
            KELP_TRY(gather_batched(e, p->gather.axis, p->gather.batch_dims, &y));
            break;
        }
        KELP_TRY(kelp_emit_node(e, KELP_OP(Gather), inputs, 2, &y, &node));
        KELP_TRY(kelp_node_set_i64(node, "axis", p->gather.axis));
        break;
    case KELP_GATHER_ELEMENT:
        KELP_TRY(kelp_emit_node(e, KELP_OP(GatherElements), inputs, 2, &y, &node));
        KELP_TRY(kelp_node_set_i64(node, "axis", p->gather.axis));
        break;
    case KELP_GATHER_ND:
        KELP_TRY(kelp_emit_cast(e, indices, KELP_I64, &inputs[1]));
        KELP_TRY(kelp_emit_node(e, KELP_OP(GatherND), inputs, 2, &y, &node));
        KELP_TRY(kelp_node_set_i64(node, "batch_dims", p->gather.batch_dims));
        break;
    default:
        return kelp_emit_fail(e, "invalid mode %d", (int)p->gather.mode);
    }
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_gather(kelp_network *network, kelp_net_tensor *data,
                                     kelp_net_tensor *indices, kelp_gather_mode mode, int32_t axis,
                                     int32_t batch_dims, kelp_layer **out) {
    kelp_net_tensor *inputs[2] = {data, indices};
    kelp_layer_params params = {.gather = {mode, axis, batch_dims}};
    return kelp_network_append(network, KELP_LAYER_GATHER, inputs, 2, 2, &params, NULL, out);
}

kelp_status *kelp_emit_SCATTER(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    kelp_value *inputs[3] = {e->inputs[0], e->inputs[1], e->inputs[2]}, *y = NULL;
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_check_index(e, 1));
    KELP_TRY(kelp_emit_check_same_dtype(e, 0, 2));
    if (p->scatter.mode == KELP_SCATTER_ND) {
        KELP_TRY(kelp_emit_cast(e, inputs[1], KELP_I64, &inputs[1]));
        KELP_TRY(kelp_emit_node(e, KELP_OP(ScatterND), inputs, 3, &y, NULL));
    } else {
        KELP_TRY(kelp_emit_check_axis(e, 0, p->scatter.axis));
        KELP_TRY(kelp_emit_node(e, KELP_OP(ScatterElements), inputs, 3, &y, &node));
        KELP_TRY(kelp_node_set_i64(node, "axis", p->scatter.axis));
    }
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_scatter(kelp_network *network, kelp_net_tensor *data,
                                      kelp_net_tensor *indices, kelp_net_tensor *updates,
                                      kelp_scatter_mode mode, int32_t axis, kelp_layer **out) {
    kelp_net_tensor *inputs[3] = {data, indices, updates};
    kelp_layer_params params = {.scatter = {mode, axis}};
    return kelp_network_append(network, KELP_LAYER_SCATTER, inputs, 3, 3, &params, NULL, out);
}

/* ---- one hot, non zero, reverse sequence ---- */
kelp_status *kelp_emit_ONE_HOT(kelp_emit *e) {
    kelp_value *inputs[3] = {e->inputs[0], e->inputs[2], e->inputs[1]}, *y = NULL;
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_check_index(e, 0));
    KELP_TRY(kelp_emit_check_rank(e, 1, 1, 1));
    KELP_TRY(kelp_emit_check_index(e, 2));
    KELP_TRY(kelp_emit_node(e, KELP_OP(OneHot), inputs, 3, &y, &node));
    KELP_TRY(kelp_node_set_i64(node, "axis", e->layer->params.axis));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_one_hot(kelp_network *network, kelp_net_tensor *indices,
                                      kelp_net_tensor *values, kelp_net_tensor *depth, int32_t axis,
                                      kelp_layer **out) {
    kelp_net_tensor *inputs[3] = {indices, values, depth};
    kelp_layer_params params = {.axis = axis};
    return kelp_network_append(network, KELP_LAYER_ONE_HOT, inputs, 3, 3, &params, NULL, out);
}

static kelp_status *check_index_type(const kelp_emit *e, kelp_dtype dtype) {
    if (dtype == KELP_I32 || dtype == KELP_I64)
        return NULL;
    return kelp_emit_fail(e, "indices must be int32 or int64, found %s", kelp_dtype_name(dtype));
}

kelp_status *kelp_emit_NON_ZERO(kelp_emit *e) {
    kelp_value *y = NULL;
    KELP_TRY(check_index_type(e, e->layer->params.indices));
    KELP_TRY(kelp_emit_1(e, KELP_OP(NonZero), e->inputs[0], &y));
    if (e->layer->params.indices == KELP_I32)
        KELP_TRY(kelp_emit_cast(e, y, KELP_I32, &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_non_zero(kelp_network *network, kelp_net_tensor *input,
                                       kelp_dtype indices, kelp_layer **out) {
    kelp_layer_params params = {.indices = indices};
    return kelp_network_append(network, KELP_LAYER_NON_ZERO, &input, 1, 1, &params, NULL, out);
}

/* Transposes batch and time to the first two axes, which ONNX requires, and mirrored. */
kelp_status *kelp_emit_REVERSE_SEQUENCE(kelp_emit *e) {
    int32_t batch = e->layer->params.reverse_sequence.batch,
            sequence = e->layer->params.reverse_sequence.sequence, rank = e->inputs[0]->rank;
    kelp_value *inputs[2] = {e->inputs[0], e->inputs[1]}, *y = NULL;
    int64_t forward[KELP_MAX_RANK], mirrored[KELP_MAX_RANK];
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_check_rank(e, 0, 2, KELP_MAX_RANK));
    KELP_TRY(kelp_emit_check_axis(e, 0, batch));
    KELP_TRY(kelp_emit_check_axis(e, 0, sequence));
    KELP_TRY(kelp_emit_check_index(e, 1));
    if (batch == sequence)
        return kelp_emit_fail(e, "batch and sequence are the same axis, %d", batch);
    KELP_TRY(kelp_emit_cast(e, inputs[1], KELP_I64, &inputs[1]));
    bool moves = batch > 1 || sequence > 1;
    if (moves && rank < 0)
        return kelp_emit_fail(e, "the input's rank must be known");
    forward[0] = batch;
    forward[1] = sequence;
    for (int32_t i = 0, to = 2; moves && i < rank; i++)
        if (i != batch && i != sequence)
            forward[to++] = i;
    for (int32_t i = 0; moves && i < rank; i++)
        mirrored[forward[i]] = i;
    if (moves)
        KELP_TRY(permute(e, forward, rank, &inputs[0]));
    KELP_TRY(kelp_emit_node(e, KELP_OP(ReverseSequence), inputs, 2, &y, &node));
    KELP_TRY(kelp_node_set_i64(node, "batch_axis", moves ? 0 : batch));
    KELP_TRY(kelp_node_set_i64(node, "time_axis", moves ? 1 : sequence));
    if (moves)
        KELP_TRY(permute(e, mirrored, rank, &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_reverse_sequence(kelp_network *network, kelp_net_tensor *input,
                                               kelp_net_tensor *lengths, int32_t batch_axis,
                                               int32_t sequence_axis, kelp_layer **out) {
    kelp_net_tensor *inputs[2] = {input, lengths};
    kelp_layer_params params = {.reverse_sequence = {batch_axis, sequence_axis}};
    return kelp_network_append(network, KELP_LAYER_REVERSE_SEQUENCE, inputs, 2, 2, &params, NULL,
                               out);
}

/* ---- fill ---- */
/* Multiplies 0 … n-1 along `axis` by the step, broadcast over the axes after it. */
static kelp_status *add_ramp(kelp_emit *e, kelp_value *shape, int32_t axis, int32_t rank,
                             kelp_dtype dtype, kelp_value *step, kelp_value **inout_sum) {
    kelp_value *dim = NULL, *zero = NULL, *one = NULL, *values = NULL, *column = NULL;
    int64_t dims[KELP_MAX_RANK];
    KELP_TRY(at(e, shape, axis, &dim));
    KELP_TRY(kelp_emit_i64(e, 0, &zero));
    KELP_TRY(kelp_emit_i64(e, 1, &one));
    KELP_TRY(kelp_emit_3(e, KELP_OP(Range), zero, dim, one, &values));
    KELP_TRY(kelp_emit_cast(e, values, dtype, &values));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Mul), values, step, &values));
    dims[0] = -1;
    for (int32_t i = axis + 1; i < rank; i++)
        dims[i - axis] = 1;
    KELP_TRY(kelp_emit_i64s(e, dims, (size_t)(rank - axis), &column));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Reshape), values, column, &values));
    return kelp_emit_2(e, KELP_OP(Add), *inout_sum, values, inout_sum);
}

static kelp_status *linspace(kelp_emit *e, kelp_value *shape, int32_t rank, kelp_value **out) {
    const kelp_fill_options *options = &e->layer->params.fill.options;
    kelp_value *sum = e->inputs[1], *step = NULL;
    if (sum == NULL)
        KELP_TRY(kelp_emit_scalar(e, options->dtype, options->alpha, &sum));
    if (e->inputs[2] == NULL && rank != 1)
        return kelp_emit_fail(
            e, "a fill of %d dimensions needs a delta tensor with one value per dimension", rank);
    if (e->inputs[2] != NULL && e->inputs[2]->rank == 1 && e->inputs[2]->shape[0] >= 0 &&
        e->inputs[2]->shape[0] != rank)
        return kelp_emit_fail(e, "delta has %lld values, but the fill has %d dimensions",
                              (long long)e->inputs[2]->shape[0], rank);
    for (int32_t i = 0; i < rank; i++) {
        if (e->inputs[2] == NULL)
            KELP_TRY(kelp_emit_scalar(e, options->dtype, options->beta, &step));
        else if (e->inputs[2]->rank == 0)
            step = e->inputs[2];
        else
            KELP_TRY(at(e, e->inputs[2], i, &step));
        KELP_TRY(add_ramp(e, shape, i, rank, options->dtype, step, &sum));
    }
    return kelp_emit_2(e, KELP_OP(Expand), sum, shape, out);
}

static kelp_status *random_fill(kelp_emit *e, kelp_value *shape, bool normal, kelp_value **out) {
    const kelp_fill_options *options = &e->layer->params.fill.options;
    kelp_node *node = NULL;
    if (e->inputs[1] != NULL || e->inputs[2] != NULL)
        return kelp_emit_fail(e, "random fills need alpha and beta as numbers, not as tensors");
    KELP_TRY(kelp_emit_1(e, KELP_OP(ConstantOfShape), shape, &shape));
    KELP_TRY(kelp_emit_node(e, normal ? KELP_OP(RandomNormalLike) : KELP_OP(RandomUniformLike),
                            &shape, 1, out, &node));
    KELP_TRY(kelp_node_set_i64(node, "dtype", options->dtype));
    KELP_TRY(kelp_node_set_f32(node, normal ? "mean" : "low", (float)options->alpha));
    return kelp_node_set_f32(node, normal ? "scale" : "high", (float)options->beta);
}

kelp_status *kelp_emit_FILL(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    kelp_value *shape = e->inputs[0], *y = NULL;
    int32_t rank = p->fill.dims.rank;
    if (shape != NULL) {
        KELP_TRY(kelp_emit_check_index(e, 0));
        if (shape->rank != 1 || shape->shape[0] < 0 || shape->shape[0] > KELP_MAX_RANK)
            return kelp_emit_fail(e, "the shape must be a vector of known length, at most %d",
                                  KELP_MAX_RANK);
        rank = (int32_t)shape->shape[0];
        KELP_TRY(kelp_emit_cast(e, shape, KELP_I64, &shape));
    } else {
        KELP_TRY(kelp_emit_check_shape(e, &p->fill.dims, "dims"));
        for (int32_t i = 0; i < rank; i++)
            if (p->fill.dims.d[i] < 0)
                return kelp_emit_fail(e, "axis %d must not be negative, found %lld", i,
                                      (long long)p->fill.dims.d[i]);
        KELP_TRY(kelp_emit_i64s(e, p->fill.dims.d, (size_t)rank, &shape));
    }
    if ((unsigned)p->fill.op > KELP_FILL_RANDOM_NORMAL)
        return kelp_emit_fail(e, "invalid fill %d", (int)p->fill.op);
    if (p->fill.op == KELP_FILL_LINSPACE)
        KELP_TRY(linspace(e, shape, rank, &y));
    else
        KELP_TRY(random_fill(e, shape, p->fill.op == KELP_FILL_RANDOM_NORMAL, &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_fill(kelp_network *network, kelp_shape dims, kelp_fill op,
                                   const kelp_fill_options *caller_options, kelp_layer **out) {
    kelp_layer_params params = {.fill = {.dims = dims, .op = op}};
    kelp_fill_options *options = &params.fill.options;
    if (caller_options != NULL)
        memcpy(options, caller_options, KELP_MIN(caller_options->struct_size, sizeof *options));
    if (options->alpha == 0.0 && options->beta == 0.0)
        options->beta = 1.0;
    if (options->dtype == KELP_DTYPE_INVALID)
        options->dtype = options->start != NULL ? kelp_net_tensor_dtype(options->start) : KELP_F32;
    kelp_net_tensor *inputs[3] = {options->shape, options->start, options->delta};
    return kelp_network_append(network, KELP_LAYER_FILL, inputs, 3, 0, &params, NULL, out);
}

/* ---- assertion ---- */
kelp_status *kelp_emit_ASSERTION(kelp_emit *e) {
    const kelp_tensor *constant = e->inputs[0]->constant;
    KELP_TRY(kelp_emit_check_dtype(e, 0, KELP_BOOL));
    int64_t count = constant != NULL ? kelp_tensor_elements(constant) : 0;
    for (int64_t i = 0; i < count; i++)
        if (((const uint8_t *)constant->data)[i] == 0)
            return kelp_emit_fail(e, "the assertion is false: %s", e->layer->params.message);
    return NULL; /* lowering adds the run-time check at the outputs of the network */
}

kelp_status *kelp_network_add_assertion(kelp_network *network, kelp_net_tensor *condition,
                                        const char *message, kelp_layer **out) {
    const char *text = message != NULL ? message : "";
    kelp_layer_params params = {.message = kelp_arena_strndup(&network->arena, text, strlen(text))};
    if (params.message == NULL)
        return kelp_status_oom();
    return kelp_network_append(network, KELP_LAYER_ASSERTION, &condition, 1, 1, &params, NULL, out);
}
