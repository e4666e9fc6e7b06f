/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of all shape rules, and the rules of elementwise operators, matmul, reductions
 * and recurrent layers. */
#include "graph/infer/infer.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool kelp_infer_problem(kelp_infer_call *call, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(call->problem, sizeof call->problem, format, args);
    va_end(args);
    return false;
}

bool kelp_dims_load(const kelp_node *node, size_t input, kelp_dims *out) {
    const kelp_value *value = input < node->input_count ? node->inputs[input] : NULL;
    if (value == NULL || value->rank < 0 || value->kind != KELP_VALUE_TENSOR)
        return false;
    out->rank = value->rank;
    memcpy(out->shape, value->shape, sizeof out->shape);
    memcpy(out->symbols, value->symbols, sizeof out->symbols);
    return true;
}

void kelp_dims_copy(kelp_dims *to, int32_t at, const kelp_dims *from, int32_t axis) {
    KELP_ASSERT(at >= 0 && at < KELP_MAX_RANK && axis >= 0 && axis < KELP_MAX_RANK);
    to->shape[at] = from->shape[axis];
    to->symbols[at] = from->symbols[axis];
}

void kelp_dims_set(kelp_dims *to, int32_t at, int64_t dimension) {
    KELP_ASSERT(at >= 0 && at < KELP_MAX_RANK);
    to->shape[at] = dimension;
    to->symbols[at] = NULL;
}

bool kelp_infer_axis(kelp_infer_call *call, int64_t *inout_axis, int32_t rank) {
    int64_t axis = *inout_axis < 0 ? *inout_axis + rank : *inout_axis;
    if (axis < 0 || axis >= rank)
        return kelp_infer_problem(call, "axis %lld does not exist in a tensor of rank %d",
                                  (long long)*inout_axis, rank);
    *inout_axis = axis;
    return true;
}

bool kelp_infer_list(const kelp_infer_call *call, const char *name, size_t input, int64_t *out,
                     size_t *out_count) {
    const int64_t *items = NULL;
    size_t count = name != NULL ? kelp_node_attr_i64s(call->node, name, &items) : 0;
    *out_count = 0;
    if (count > KELP_MAX_RANK)
        return false;
    if (count > 0) {
        memcpy(out, items, count * sizeof *out);
        *out_count = count;
        return true;
    }
    if (input >= call->node->input_count || call->node->inputs[input] == NULL)
        return true;
    return kelp_infer_i64s(call->infer, call->node->inputs[input], out, out_count);
}

/* ---- elementwise ---- */
static bool same(kelp_infer_call *call, kelp_dims *out) {
    return kelp_dims_load(call->node, 0, out);
}

static bool scalar(kelp_infer_call *call, kelp_dims *out) {
    (void)call;
    out->rank = 0;
    return true;
}

/* Broadcasts as NumPy does. A dynamic dimension and a fixed one above 1 give the fixed one; two
 * dynamic dimensions of the same name give that name. */
static bool broadcast_dim(kelp_dims *to, int32_t at, const kelp_dims *other, int32_t axis) {
    int64_t a = to->shape[at], b = other->shape[axis];
    if (a == 1 || (a < 0 && b >= 0 && b != 1))
        kelp_dims_copy(to, at, other, axis);
    else if (a < 0 && b < 0 &&
             (to->symbols[at] == NULL || other->symbols[axis] == NULL ||
              strcmp(to->symbols[at], other->symbols[axis]) != 0))
        to->symbols[at] = NULL;
    return a < 0 || b < 0 || a == b || a == 1 || b == 1;
}

bool kelp_dims_broadcast(kelp_infer_call *call, kelp_dims *to, const kelp_dims *other) {
    kelp_dims longer = to->rank >= other->rank ? *to : *other;
    kelp_dims shorter = to->rank >= other->rank ? *other : *to;
    int32_t shift = longer.rank - shorter.rank;
    for (int32_t i = 0; i < shorter.rank; i++)
        if (!broadcast_dim(&longer, i + shift, &shorter, i)) {
            char a[96], b[96];
            kelp_shape_format(to->rank, to->shape, a, sizeof a);
            kelp_shape_format(other->rank, other->shape, b, sizeof b);
            return kelp_infer_problem(call, "shapes %s and %s cannot be broadcast", a, b);
        }
    *to = longer;
    return true;
}

static bool broadcast_all(kelp_infer_call *call, kelp_dims *out) {
    if (!kelp_dims_load(call->node, 0, out))
        return false;
    /* before opset 7 (variadic operators: 8) the second input was broadcast to the first */
    if (call->version < 7)
        return true;
    for (size_t i = 1; i < call->node->input_count; i++) {
        kelp_dims other;
        if (!kelp_dims_load(call->node, i, &other) || !kelp_dims_broadcast(call, out, &other))
            return false;
    }
    return true;
}

/* ---- matmul ---- */
static bool check_inner(kelp_infer_call *call, const kelp_dims *a, int32_t a_axis,
                        const kelp_dims *b, int32_t b_axis) {
    if (a->shape[a_axis] < 0 || b->shape[b_axis] < 0 || a->shape[a_axis] == b->shape[b_axis])
        return true;
    char left[96], right[96];
    kelp_shape_format(a->rank, a->shape, left, sizeof left);
    kelp_shape_format(b->rank, b->shape, right, sizeof right);
    return kelp_infer_problem(call, "shapes %s and %s cannot be multiplied: %lld is not %lld", left,
                              right, (long long)a->shape[a_axis], (long long)b->shape[b_axis]);
}

static bool multiply(kelp_infer_call *call, size_t left, size_t right, kelp_dims *out) {
    kelp_dims a, b;
    if (!kelp_dims_load(call->node, left, &a) || !kelp_dims_load(call->node, right, &b))
        return false;
    if (a.rank < 1 || b.rank < 1)
        return kelp_infer_problem(call, "a scalar cannot be multiplied as a matrix");
    int32_t a_rank = a.rank, b_rank = b.rank;
    if (!check_inner(call, &a, a_rank - 1, &b, b_rank > 1 ? b_rank - 2 : 0))
        return false;
    kelp_dims rows = a, columns = b;
    a.rank = a_rank > 2 ? a_rank - 2 : 0;
    b.rank = b_rank > 2 ? b_rank - 2 : 0;
    *out = a;
    if (!kelp_dims_broadcast(call, out, &b))
        return false;
    if (a_rank > 1)
        kelp_dims_copy(out, out->rank++, &rows, a_rank - 2);
    if (b_rank > 1)
        kelp_dims_copy(out, out->rank++, &columns, b_rank - 1);
    return true;
}

static bool matmul(kelp_infer_call *call, kelp_dims *out) {
    return multiply(call, 0, 1, out);
}

static bool qlinear_matmul(kelp_infer_call *call, kelp_dims *out) {
    return multiply(call, 0, 3, out);
}

static bool gemm(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims a, b;
    int32_t rows = kelp_node_attr_i64(call->node, "transA", 0) ? 1 : 0;
    int32_t columns = kelp_node_attr_i64(call->node, "transB", 0) ? 0 : 1;
    if (!kelp_dims_load(call->node, 0, &a) || !kelp_dims_load(call->node, 1, &b))
        return false;
    if (a.rank != 2 || b.rank != 2)
        return kelp_infer_problem(call, "expected two matrices, found ranks %d and %d", a.rank,
                                  b.rank);
    if (!check_inner(call, &a, 1 - rows, &b, 1 - columns))
        return false;
    out->rank = 2;
    kelp_dims_copy(out, 0, &a, rows);
    kelp_dims_copy(out, 1, &b, columns);
    return true;
}

/* ---- normalizations ---- */
/* Y has the shape of X. The mean and the inverse standard deviation have dimension 1 from `axis`
 * on. */
static bool layer_norm(kelp_infer_call *call, kelp_dims *out) {
    int64_t axis = kelp_node_attr_i64(call->node, "axis", -1);
    if (!kelp_dims_load(call->node, 0, out) || !kelp_infer_axis(call, &axis, out->rank))
        return false;
    for (int32_t i = (int32_t)axis; call->output > 0 && i < out->rank; i++)
        kelp_dims_set(out, i, 1);
    return true;
}

static bool dynamic_quantize(kelp_infer_call *call, kelp_dims *out) {
    return call->output == 0 ? same(call, out) : scalar(call, out);
}

/* ---- reductions ---- */
static bool reduce_marked(kelp_infer_call *call, const int64_t *axes, size_t count, bool keep,
                          kelp_dims *out) {
    kelp_dims in;
    bool marked[KELP_MAX_RANK] = {false};
    if (!kelp_dims_load(call->node, 0, &in))
        return false;
    for (size_t i = 0; i < count; i++) {
        int64_t axis = axes[i];
        if (!kelp_infer_axis(call, &axis, in.rank))
            return false;
        marked[axis] = true;
    }
    out->rank = 0;
    for (int32_t i = 0; i < in.rank; i++) {
        if (count > 0 && !marked[i])
            kelp_dims_copy(out, out->rank++, &in, i);
        else if (keep)
            kelp_dims_set(out, out->rank++, 1);
    }
    return true;
}

static bool reduce(kelp_infer_call *call, kelp_dims *out) {
    int64_t axes[KELP_MAX_RANK];
    size_t count = 0;
    bool keep = kelp_node_attr_i64(call->node, "keepdims", 1) != 0;
    if (!kelp_infer_list(call, "axes", 1, axes, &count)) {
        /* the axes are not known, but keepdims preserves the rank */
        if (!keep || !kelp_dims_load(call->node, 0, out))
            return false;
        for (int32_t i = 0; i < out->rank; i++)
            kelp_dims_set(out, i, -1);
        return true;
    }
    if (count == 0 && kelp_node_attr_i64(call->node, "noop_with_empty_axes", 0) != 0)
        return same(call, out);
    return reduce_marked(call, axes, count, keep, out);
}

static bool arg_reduce(kelp_infer_call *call, kelp_dims *out) {
    int64_t axis = kelp_node_attr_i64(call->node, "axis", 0);
    return reduce_marked(call, &axis, 1, kelp_node_attr_i64(call->node, "keepdims", 1) != 0, out);
}

/* ---- recurrent layers ---- X [steps, batch, inputs] (layout 1: [batch, steps, inputs]); Y [steps,
 * directions, batch, hidden]. */
static bool recurrent(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims x, r;
    if (!kelp_dims_load(call->node, 0, &x) || x.rank != 3)
        return false;
    const char *direction = kelp_node_attr_string(call->node, "direction", "forward", NULL);
    int64_t hidden = kelp_node_attr_i64(call->node, "hidden_size", -1);
    if (hidden < 0 && kelp_dims_load(call->node, 2, &r) && r.rank == 3)
        hidden = r.shape[2];
    bool batch_first = kelp_node_attr_i64(call->node, "layout", 0) != 0;
    int64_t directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    int32_t steps_axis = batch_first ? 1 : 0, batch_axis = batch_first ? 0 : 1;
    out->rank = 0;
    if (batch_first)
        kelp_dims_copy(out, out->rank++, &x, batch_axis);
    if (call->output == 0)
        kelp_dims_copy(out, out->rank++, &x, steps_axis);
    kelp_dims_set(out, out->rank++, directions);
    if (!batch_first)
        kelp_dims_copy(out, out->rank++, &x, batch_axis);
    kelp_dims_set(out, out->rank++, hidden);
    return true;
}

/* ---- rules ---- */
const kelp_infer_rule kelp_rule_NONE = {};
const kelp_infer_rule kelp_rule_same = {.shape = same};
const kelp_infer_rule kelp_rule_same_each = {.shape = same, .each_output = true};
const kelp_infer_rule kelp_rule_identity = {.shape = same, .content = kelp_content_same};
const kelp_infer_rule kelp_rule_cast = {
    .shape = same, .content = kelp_content_cast, .type = {KELP_TYPE_ATTRIBUTE, "to", 0}};
const kelp_infer_rule kelp_rule_typed_like = {.shape = same,
                                              .type = {KELP_TYPE_ATTRIBUTE_OR_INPUT, "dtype", 0}};
const kelp_infer_rule kelp_rule_quantize = {.shape = same,
                                            .type = {KELP_TYPE_ZERO_POINT, "output_dtype", 0}};
const kelp_infer_rule kelp_rule_dequantize = {
    .shape = same, .type = {KELP_TYPE_ATTRIBUTE_OR_INPUT, "output_dtype", 1}};
const kelp_infer_rule kelp_rule_dynamic_quantize = {.shape = dynamic_quantize, .each_output = true};
const kelp_infer_rule kelp_rule_layer_norm = {
    .shape = layer_norm,
    .each_output = true,
    .type = {KELP_TYPE_ATTRIBUTE, "stash_type", KELP_F32}};
const kelp_infer_rule kelp_rule_scalar = {.shape = scalar};
const kelp_infer_rule kelp_rule_broadcast = {.shape = broadcast_all};
const kelp_infer_rule kelp_rule_add = {.shape = broadcast_all, .content = kelp_content_add};
const kelp_infer_rule kelp_rule_subtract = {.shape = broadcast_all,
                                            .content = kelp_content_subtract};
const kelp_infer_rule kelp_rule_multiply = {.shape = broadcast_all,
                                            .content = kelp_content_multiply};
const kelp_infer_rule kelp_rule_divide = {.shape = broadcast_all, .content = kelp_content_divide};
const kelp_infer_rule kelp_rule_matmul = {.shape = matmul};
const kelp_infer_rule kelp_rule_qlinear_matmul = {.shape = qlinear_matmul};
const kelp_infer_rule kelp_rule_gemm = {.shape = gemm};
const kelp_infer_rule kelp_rule_arg_reduce = {.shape = arg_reduce};
const kelp_infer_rule kelp_rule_reduce = {.shape = reduce};
const kelp_infer_rule kelp_rule_recurrent = {.shape = recurrent, .each_output = true};
