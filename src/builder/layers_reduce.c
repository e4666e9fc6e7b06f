/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, softmax, top k, cumulative sums and normalization. */
#include "base/assert.h"
#include "base/checked.h"
#include "builder/emit.h"

#include <math.h>
#include <string.h>

/* Converts a mask of axes to a list. Fails with INVALID_ARGUMENT if the mask is empty or exceeds
 * the input's rank. */
static kelp_status *axes_of(const kelp_emit *e, uint32_t mask, int64_t *out, size_t *out_count) {
    *out_count = 0;
    for (int32_t i = 0; i < 32; i++)
        if ((mask >> i & 1u) != 0) {
            KELP_TRY(kelp_emit_check_axis(e, 0, i));
            out[(*out_count)++] = i;
        }
    return *out_count > 0 ? NULL : kelp_emit_fail(e, "the mask of axes is empty");
}

static kelp_status *one_axis(const kelp_emit *e, uint32_t mask, int64_t *out) {
    int64_t axes[32];
    size_t count = 0;
    KELP_TRY(axes_of(e, mask, axes, &count));
    if (count != 1)
        return kelp_emit_fail(e, "the mask of axes 0x%x must have exactly one bit, found %zu", mask,
                              count);
    *out = axes[0];
    return NULL;
}

static kelp_status *reduce(kelp_emit *e, const kelp_operator *op, kelp_value *x, kelp_value *axes,
                           bool keep_dims, kelp_value **out) {
    kelp_value *inputs[2] = {x, axes};
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_node(e, op, inputs, 2, out, &node));
    return kelp_node_set_i64(node, "keepdims", keep_dims);
}

/* ---- reduce ---- */
kelp_status *kelp_emit_REDUCE(kelp_emit *e) {
    static const kelp_operator *const ops[] = {KELP_OP(ReduceSum), KELP_OP(ReduceProd),
                                               KELP_OP(ReduceMax), KELP_OP(ReduceMin),
                                               KELP_OP(ReduceMean)};
    const kelp_layer_params *p = &e->layer->params;
    int64_t axes[32];
    size_t count = 0;
    kelp_value *list = NULL, *y = NULL;
    if ((unsigned)p->reduce.op > KELP_REDUCE_AVERAGE)
        return kelp_emit_fail(e, "invalid reduction %d", (int)p->reduce.op);
    KELP_TRY(axes_of(e, p->reduce.axes, axes, &count));
    KELP_TRY(kelp_emit_i64s(e, axes, count, &list));
    KELP_TRY(reduce(e, ops[p->reduce.op], e->inputs[0], list, p->reduce.keep_dims, &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_reduce(kelp_network *network, kelp_net_tensor *input, kelp_reduce op,
                                     uint32_t axes, bool keep_dims, kelp_layer **out) {
    kelp_layer_params params = {.reduce = {op, axes, keep_dims}};
    return kelp_network_append(network, KELP_LAYER_REDUCE, &input, 1, 1, &params, NULL, out);
}

/* ---- softmax ---- */
static kelp_status *softmax(kelp_emit *e, kelp_value *x, int64_t axis, kelp_value **out) {
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_node(e, KELP_OP(Softmax), &x, 1, out, &node));
    return kelp_node_set_i64(node, "axis", axis);
}

kelp_status *kelp_emit_SOFTMAX(kelp_emit *e) {
    int64_t axis = 0;
    kelp_value *y = NULL;
    KELP_TRY(kelp_emit_check_float(e, 0));
    KELP_TRY(one_axis(e, e->layer->params.axes_mask, &axis));
    KELP_TRY(softmax(e, e->inputs[0], axis, &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_softmax(kelp_network *network, kelp_net_tensor *input, uint32_t axes,
                                      kelp_layer **out) {
    kelp_layer_params params = {.axes_mask = axes};
    return kelp_network_append(network, KELP_LAYER_SOFTMAX, &input, 1, 1, &params, NULL, out);
}

/* Masks elements beyond a row's bound before the softmax and sets them to 0 after it. */
kelp_status *kelp_emit_RAGGED_SOFTMAX(kelp_emit *e) {
    kelp_value *dims = NULL, *last = NULL, *width = NULL, *zero = NULL, *one = NULL,
               *positions = NULL, *inside = NULL, *excluded = NULL, *zeros = NULL, *y = NULL,
               *bounds = NULL;
    kelp_dtype dtype = e->inputs[0]->dtype;
    KELP_TRY(kelp_emit_check_rank(e, 0, 2, 3));
    KELP_TRY(kelp_emit_check_float(e, 0));
    KELP_TRY(kelp_emit_check_index(e, 1));
    if (e->inputs[0]->rank >= 0 && e->inputs[1]->rank >= 0 &&
        e->inputs[0]->rank != e->inputs[1]->rank)
        return kelp_emit_fail(e, "bounds have %d dimensions, but the input has %d",
                              e->inputs[1]->rank, e->inputs[0]->rank);
    KELP_TRY(kelp_emit_1(e, KELP_OP(Shape), e->inputs[0], &dims));
    KELP_TRY(kelp_emit_i64(e, -1, &last));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Gather), dims, last, &width));
    KELP_TRY(kelp_emit_i64(e, 0, &zero));
    KELP_TRY(kelp_emit_i64(e, 1, &one));
    KELP_TRY(kelp_emit_3(e, KELP_OP(Range), zero, width, one, &positions));
    KELP_TRY(kelp_emit_cast(e, e->inputs[1], KELP_I64, &bounds));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Less), positions, bounds, &inside));
    KELP_TRY(kelp_emit_scalar(e, dtype, dtype == KELP_F16 ? -65504.0 : -3.0e38, &excluded));
    KELP_TRY(kelp_emit_scalar(e, dtype, 0, &zeros));
    KELP_TRY(kelp_emit_3(e, KELP_OP(Where), inside, e->inputs[0], excluded, &y));
    KELP_TRY(softmax(e, y, -1, &y));
    KELP_TRY(kelp_emit_3(e, KELP_OP(Where), inside, y, zeros, &y));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_ragged_softmax(kelp_network *network, kelp_net_tensor *input,
                                             kelp_net_tensor *bounds, kelp_layer **out) {
    kelp_net_tensor *inputs[2] = {input, bounds};
    kelp_layer_params params = {.axis = 0};
    return kelp_network_append(network, KELP_LAYER_RAGGED_SOFTMAX, inputs, 2, 2, &params, NULL,
                               out);
}

/* ---- top k ---- */
kelp_status *kelp_emit_TOPK(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    int64_t axis = 0, dim = -1, one = 1;
    kelp_value *k = e->inputs[1], *y[2] = {NULL, NULL};
    kelp_node *node = NULL;
    KELP_TRY(one_axis(e, p->topk.axes, &axis));
    if (e->inputs[0]->rank > axis)
        dim = e->inputs[0]->shape[axis];
    if (p->topk.indices != KELP_I32 && p->topk.indices != KELP_I64)
        return kelp_emit_fail(e, "indices must be int32 or int64, found %s",
                              kelp_dtype_name(p->topk.indices));
    if (k == NULL) {
        if (p->topk.k < 0 || (dim >= 0 && p->topk.k > dim))
            return kelp_emit_fail(e, "k is %lld, but axis %lld has %lld elements",
                                  (long long)p->topk.k, (long long)axis, (long long)dim);
        KELP_TRY(kelp_emit_i64s(e, &p->topk.k, 1, &k));
    } else {
        kelp_value *shape = NULL;
        KELP_TRY(kelp_emit_check_index(e, 1));
        KELP_TRY(kelp_emit_cast(e, k, KELP_I64, &k));
        KELP_TRY(kelp_emit_i64s(e, &one, 1, &shape));
        KELP_TRY(kelp_emit_2(e, KELP_OP(Reshape), k, shape, &k));
    }
    kelp_value *inputs[2] = {e->inputs[0], k};
    KELP_TRY(kelp_emit_nodes(e, KELP_OP(TopK), inputs, 2, y, 2, &node));
    KELP_TRY(kelp_node_set_i64(node, "axis", axis));
    KELP_TRY(kelp_node_set_i64(node, "largest", p->topk.largest));
    if (p->topk.indices == KELP_I32)
        KELP_TRY(kelp_emit_cast(e, y[1], KELP_I32, &y[1]));
    kelp_emit_result(e, y[0]);
    kelp_emit_result(e, y[1]);
    return NULL;
}

kelp_status *kelp_network_add_topk(kelp_network *network, kelp_net_tensor *input, bool largest,
                                   int64_t k, kelp_net_tensor *k_tensor, uint32_t axes,
                                   kelp_dtype indices, kelp_layer **out) {
    kelp_net_tensor *inputs[2] = {input, k_tensor};
    kelp_layer_params params = {.topk = {largest, k, axes, indices}};
    return kelp_network_append(network, KELP_LAYER_TOPK, inputs, 2, 1, &params, NULL, out);
}

/* ---- cumulative sums ---- */
kelp_status *kelp_emit_CUMULATIVE(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    kelp_value *axis = NULL, *y = NULL;
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_check_axis(e, 0, p->cumulative.axis));
    KELP_TRY(kelp_emit_i64(e, p->cumulative.axis, &axis));
    kelp_value *inputs[2] = {e->inputs[0], axis};
    KELP_TRY(kelp_emit_node(e, KELP_OP(CumSum), inputs, 2, &y, &node));
    KELP_TRY(kelp_node_set_i64(node, "exclusive", p->cumulative.exclusive));
    KELP_TRY(kelp_node_set_i64(node, "reverse", p->cumulative.reverse));
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_cumulative(kelp_network *network, kelp_net_tensor *input,
                                         int32_t axis, bool exclusive, bool reverse,
                                         kelp_layer **out) {
    kelp_layer_params params = {.cumulative = {axis, exclusive, reverse}};
    return kelp_network_append(network, KELP_LAYER_CUMULATIVE, &input, 1, 1, &params, NULL, out);
}

/* ---- normalization ---- */
/* Returns true if `axes` are all of the last axes, so that ONNX's LayerNormalization and its kernel
 * apply. */
static bool is_layer_norm(const kelp_emit *e, const int64_t *axes, size_t count) {
    const kelp_value *x = e->inputs[0];
    if (x->rank < 0 || axes[0] + (int64_t)count != x->rank)
        return false;
    /* scale and bias must be 1 along axes that are not normalized */
    for (size_t k = 1; k < 3; k++)
        for (int32_t i = 0; i < x->rank; i++) {
            const kelp_value *value = e->inputs[k];
            if (value->rank < 0 || value->shape[i] < 0 ||
                value->shape[i] != (i < axes[0] ? 1 : x->shape[i]))
                return false;
        }
    return true;
}

static kelp_status *layer_norm(kelp_emit *e, int64_t axis, kelp_value **out) {
    int32_t rank = e->inputs[0]->rank;
    KELP_ASSERT(axis >= 0 && axis < rank); /* is_layer_norm returned it */
    kelp_value *inputs[3] = {e->inputs[0], NULL, NULL}, *shape = NULL;
    kelp_node *node = NULL;
    KELP_TRY(kelp_emit_i64s(e, e->inputs[0]->shape + axis, (size_t)(rank - axis), &shape));
    for (int k = 1; k < 3; k++)
        KELP_TRY(kelp_emit_2(e, KELP_OP(Reshape), e->inputs[k], shape, &inputs[k]));
    KELP_TRY(kelp_emit_node(e, KELP_OP(LayerNormalization), inputs, 3, out, &node));
    KELP_TRY(kelp_node_set_i64(node, "axis", axis));
    return kelp_node_set_f32(node, "epsilon", e->layer->params.normalization.epsilon);
}

/* Computes (x - mean) / sqrt(variance + epsilon) over `axes`. */
static kelp_status *standardize(kelp_emit *e, kelp_value *x, kelp_value *axes, kelp_value **out) {
    kelp_value *mean = NULL, *difference = NULL, *square = NULL, *variance = NULL, *epsilon = NULL,
               *deviation = NULL;
    KELP_TRY(reduce(e, KELP_OP(ReduceMean), x, axes, true, &mean));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Sub), x, mean, &difference));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Mul), difference, difference, &square));
    KELP_TRY(reduce(e, KELP_OP(ReduceMean), square, axes, true, &variance));
    KELP_TRY(
        kelp_emit_scalar(e, e->inputs[0]->dtype, e->layer->params.normalization.epsilon, &epsilon));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Add), variance, epsilon, &deviation));
    KELP_TRY(kelp_emit_1(e, KELP_OP(Sqrt), deviation, &deviation));
    return kelp_emit_2(e, KELP_OP(Div), difference, deviation, out);
}

/* Normalizes groups of channels. Scale and bias are per channel [1,c,1,…] or per group
 * [1,groups,1,…]. */
static kelp_status *group_norm(kelp_emit *e, kelp_value **out) {
    const kelp_value *x = e->inputs[0];
    KELP_ASSERT(e->layer->params.normalization.groups > 1);
    int64_t groups = e->layer->params.normalization.groups, grouped_shape[3] = {0, groups, -1},
            axis = 2;
    kelp_value *shape = NULL, *grouped = NULL, *axes = NULL, *y = NULL, *column = NULL;
    KELP_TRY(kelp_emit_check_rank(e, 0, 3, KELP_MAX_RANK));
    if (x->rank < 0 || x->shape[1] < 0)
        return kelp_emit_fail(e, "the input's channels must be fixed");
    if (x->shape[1] % groups != 0)
        return kelp_emit_fail(e, "%lld channels cannot be split into %lld groups",
                              (long long)x->shape[1], (long long)groups);
    KELP_TRY(kelp_emit_1(e, KELP_OP(Shape), e->inputs[0], &shape));
    KELP_TRY(kelp_emit_i64s(e, grouped_shape, 3, &grouped));
    KELP_TRY(kelp_emit_2(e, KELP_OP(Reshape), e->inputs[0], grouped, &y));
    KELP_TRY(kelp_emit_i64s(e, &axis, 1, &axes));
    KELP_TRY(standardize(e, y, axes, &y));
    bool per_channel = e->inputs[1]->rank == x->rank && e->inputs[1]->shape[1] == x->shape[1];
    if (per_channel)
        KELP_TRY(kelp_emit_2(e, KELP_OP(Reshape), y, shape, &y));
    for (int k = 1; k < 3; k++) {
        kelp_value *factor = e->inputs[k];
        if (!per_channel) {
            int64_t dims[3] = {1, groups, 1};
            KELP_TRY(kelp_emit_i64s(e, dims, 3, &column));
            KELP_TRY(kelp_emit_2(e, KELP_OP(Reshape), factor, column, &factor));
        }
        KELP_TRY(kelp_emit_2(e, k == 1 ? KELP_OP(Mul) : KELP_OP(Add), y, factor, &y));
    }
    if (!per_channel)
        KELP_TRY(kelp_emit_2(e, KELP_OP(Reshape), y, shape, &y));
    *out = y;
    return NULL;
}

kelp_status *kelp_emit_NORMALIZATION(kelp_emit *e) {
    const kelp_layer_params *p = &e->layer->params;
    int64_t axes[32];
    size_t count = 0;
    kelp_value *list = NULL, *y = NULL;
    KELP_TRY(kelp_emit_check_float(e, 0));
    KELP_TRY(kelp_emit_check_same_dtype(e, 0, 1));
    KELP_TRY(kelp_emit_check_same_dtype(e, 0, 2));
    KELP_TRY(axes_of(e, p->normalization.axes, axes, &count));
    if (p->normalization.groups > 1) {
        KELP_TRY(group_norm(e, &y));
        kelp_emit_result(e, y);
        return NULL;
    }
    KELP_TRY(kelp_emit_check_broadcast(e, 0, 1));
    KELP_TRY(kelp_emit_check_broadcast(e, 0, 2));
    if (is_layer_norm(e, axes, count)) {
        KELP_TRY(layer_norm(e, axes[0], &y));
    } else {
        KELP_TRY(kelp_emit_i64s(e, axes, count, &list));
        KELP_TRY(standardize(e, e->inputs[0], list, &y));
        KELP_TRY(kelp_emit_2(e, KELP_OP(Mul), y, e->inputs[1], &y));
        KELP_TRY(kelp_emit_2(e, KELP_OP(Add), y, e->inputs[2], &y));
    }
    kelp_emit_result(e, y);
    return NULL;
}

kelp_status *kelp_network_add_normalization(kelp_network *network, kelp_net_tensor *input,
                                            kelp_net_tensor *scale, kelp_net_tensor *bias,
                                            uint32_t axes, const kelp_normalization *caller_options,
                                            kelp_layer **out) {
    kelp_normalization options = {.struct_size = 0};
    if (caller_options != NULL)
        memcpy(&options, caller_options, KELP_MIN(caller_options->struct_size, sizeof options));
    kelp_net_tensor *inputs[3] = {input, scale, bias};
    kelp_layer_params params = {.normalization = {axes,
                                                  options.epsilon != 0.0f ? options.epsilon : 1e-5f,
                                                  options.groups > 0 ? options.groups : 1}};
    return kelp_network_append(network, KELP_LAYER_NORMALIZATION, inputs, 3, 3, &params, NULL, out);
}
