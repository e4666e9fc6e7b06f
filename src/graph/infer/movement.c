/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of operators that move elements. Some read the output shape from the elements of an
 * input. */
#include "graph/infer/infer.h"

#include "base/assert.h"
#include "base/checked.h"

#include <string.h>

/* Marks axes of a tensor of rank `rank`; a repeated axis is a problem. */
static bool mark_axes(kelp_infer_call *call, const int64_t *axes, size_t count, int32_t rank,
                      bool *marked) {
    for (size_t i = 0; i < count; i++) {
        int64_t axis = axes[i];
        if (!kelp_infer_axis(call, &axis, rank))
            return false;
        if (marked[axis])
            return kelp_infer_problem(call, "axis %lld is repeated", (long long)axis);
        marked[axis] = true;
    }
    return true;
}

/* Sets a shape of known rank with dynamic dimensions only. */
static bool dynamic_dims(int64_t rank, kelp_dims *out) {
    if (rank < 0 || rank > KELP_MAX_RANK)
        return false;
    out->rank = (int32_t)rank;
    for (int32_t i = 0; i < out->rank; i++)
        kelp_dims_set(out, i, -1);
    return true;
}

/* Sets the rank of the output to the length of a vector input. */
static bool rank_by_length(const kelp_infer_call *call, size_t input, kelp_dims *out) {
    kelp_dims shape;
    return kelp_dims_load(call->node, input, &shape) && shape.rank == 1 && shape.shape[0] >= 0 &&
           dynamic_dims(shape.shape[0], out);
}

static void content_dim(kelp_dims *to, int32_t at, const kelp_content *content, size_t item) {
    KELP_ASSERT(at >= 0 && at < to->rank && item < content->count);
    to->shape[at] = content->items[item].known ? content->items[item].value : -1;
    to->symbols[at] = content->items[item].known ? NULL : content->items[item].symbol;
}

static bool input_content(const kelp_infer_call *call, size_t input, kelp_content *out) {
    return input < call->node->input_count && call->node->inputs[input] != NULL &&
           kelp_infer_content(call->infer, call->node->inputs[input], out);
}

/* ---- transpose, reshape, squeeze ---- */
static bool transpose(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims in;
    const int64_t *perm = NULL;
    bool marked[KELP_MAX_RANK] = {false};
    size_t count = kelp_node_attr_i64s(call->node, "perm", &perm);
    if (!kelp_dims_load(call->node, 0, &in))
        return false;
    if (count != 0 && (int32_t)count != in.rank)
        return kelp_infer_problem(call, "perm has %zu axes, the input has rank %d", count, in.rank);
    if (!mark_axes(call, perm, count, in.rank, marked))
        return false;
    out->rank = in.rank;
    for (int32_t i = 0; i < in.rank; i++) {
        int64_t axis = count ? perm[i] : in.rank - 1 - i;
        kelp_dims_copy(out, i, &in, (int32_t)(axis < 0 ? axis + in.rank : axis));
    }
    return true;
}

/* Computes the dimension -1 of a Reshape. Dimensions that both shapes contain cancel out; dynamic
 * dimensions are equal when their names are. */
static void fill_dynamic(const kelp_dims *in, kelp_dims *out, int32_t unknown) {
    KELP_ASSERT(unknown >= 0 && unknown < out->rank);
    bool taken[KELP_MAX_RANK] = {false};
    int64_t before = 1, after = 1;
    int32_t left = -1;
    for (int32_t i = 0; i < out->rank; i++) {
        if (i == unknown || out->shape[i] >= 0)
            continue;
        int32_t match = 0;
        while (match < in->rank &&
               (taken[match] || in->shape[match] >= 0 || in->symbols[match] == NULL ||
                out->symbols[i] == NULL || strcmp(in->symbols[match], out->symbols[i]) != 0))
            match++;
        if (match == in->rank)
            return;
        taken[match] = true;
    }
    for (int32_t i = 0; i < in->rank; i++) {
        if (in->shape[i] < 0 && !taken[i]) {
            if (left >= 0)
                return;
            left = i;
        }
        if (in->shape[i] >= 0 && !kelp_i64_mul(before, in->shape[i], &before))
            return;
    }
    for (int32_t i = 0; i < out->rank; i++)
        if (i != unknown && out->shape[i] >= 0 && !kelp_i64_mul(after, out->shape[i], &after))
            return;
    if (left < 0 && after > 0 && before % after == 0)
        kelp_dims_set(out, unknown, before / after);
    else if (left >= 0 && before == after)
        kelp_dims_copy(out, unknown, in, left);
}

static bool check_elements(kelp_infer_call *call, const kelp_dims *in, const kelp_dims *out) {
    int64_t before, after;
    if (!kelp_shape_elements(in->rank, in->shape, &before) ||
        !kelp_shape_elements(out->rank, out->shape, &after) || before == after)
        return true; /* dynamic dimensions cannot be compared */
    char from[96], to[96];
    kelp_shape_format(in->rank, in->shape, from, sizeof from);
    kelp_shape_format(out->rank, out->shape, to, sizeof to);
    return kelp_infer_problem(call, "shape %s cannot be reshaped to %s", from, to);
}

static bool reshape_content(const kelp_infer_call *call, kelp_content *out) {
    const int64_t *shape = NULL;
    size_t count = kelp_node_attr_i64s(call->node, "shape", &shape); /* opset 1 */
    if (count == 0)
        return input_content(call, 1, out) && out->rank == 1;
    if (count > KELP_MAX_RANK)
        return false;
    *out = (kelp_content){.rank = 1, .count = count};
    for (size_t i = 0; i < count; i++) {
        out->items[i].known = true;
        out->items[i].value = shape[i];
    }
    return true;
}

static bool reshape(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims in;
    kelp_content shape;
    if (!reshape_content(call, &shape))
        return rank_by_length(call, 1, out);
    bool known = kelp_dims_load(call->node, 0, &in);
    bool zero_copies = kelp_node_attr_i64(call->node, "allowzero", 0) == 0;
    int32_t unknown = -1;
    dynamic_dims((int64_t)shape.count, out);
    for (int32_t i = 0; i < out->rank; i++) {
        content_dim(out, i, &shape, (size_t)i);
        if (shape.items[i].known && shape.items[i].value == 0 && zero_copies) {
            if (known && i >= in.rank)
                return kelp_infer_problem(call, "shape[%d] is 0: the input has no such axis", i);
            kelp_dims_set(out, i, -1);
            if (known)
                kelp_dims_copy(out, i, &in, i);
        } else if (shape.items[i].known && shape.items[i].value == -1) {
            if (unknown >= 0)
                return kelp_infer_problem(call, "shape has more than one dimension of -1");
            unknown = i;
        } else if (shape.items[i].known && shape.items[i].value < -1) {
            return kelp_infer_problem(call, "shape[%d] is %lld: expected at least -1", i,
                                      (long long)shape.items[i].value);
        }
    }
    if (known && unknown >= 0)
        fill_dynamic(&in, out, unknown);
    return !known || check_elements(call, &in, out);
}

static bool unsqueeze(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims in;
    int64_t axes[KELP_MAX_RANK];
    size_t count = 0;
    bool marked[KELP_MAX_RANK] = {false};
    if (!kelp_dims_load(call->node, 0, &in))
        return false;
    if (!kelp_infer_list(call, "axes", 1, axes, &count)) {
        kelp_dims added;
        return kelp_dims_load(call->node, 1, &added) && added.rank == 1 && added.shape[0] >= 0 &&
               dynamic_dims(in.rank + added.shape[0], out);
    }
    if (in.rank + (int32_t)count > KELP_MAX_RANK ||
        !mark_axes(call, axes, count, in.rank + (int32_t)count, marked))
        return false;
    out->rank = in.rank + (int32_t)count;
    for (int32_t i = 0, from = 0; i < out->rank; i++) {
        if (marked[i])
            kelp_dims_set(out, i, 1);
        else
            kelp_dims_copy(out, i, &in, from++);
    }
    return true;
}

static bool squeeze(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims in;
    int64_t axes[KELP_MAX_RANK], elements;
    size_t count = 0;
    bool marked[KELP_MAX_RANK] = {false};
    if (!kelp_dims_load(call->node, 0, &in) || !kelp_infer_list(call, "axes", 1, axes, &count) ||
        !mark_axes(call, axes, count, in.rank, marked))
        return false;
    if (count == 0 && !kelp_shape_elements(in.rank, in.shape, &elements))
        return false; /* only known dimensions can be compared with 1 */
    out->rank = 0;
    for (int32_t i = 0; i < in.rank; i++) {
        if (marked[i] && in.shape[i] > 1)
            return kelp_infer_problem(call, "axis %d is squeezed, but its dimension is %lld", i,
                                      (long long)in.shape[i]);
        if (count > 0 ? !marked[i] : in.shape[i] != 1)
            kelp_dims_copy(out, out->rank++, &in, i);
    }
    return true;
}

static bool flatten(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims in;
    int64_t axis = kelp_node_attr_i64(call->node, "axis", 1), dimensions[2] = {1, 1};
    if (!kelp_dims_load(call->node, 0, &in))
        return false;
    if (axis < -in.rank || axis > in.rank)
        return kelp_infer_problem(call, "axis %lld does not exist in a tensor of rank %d",
                                  (long long)axis, in.rank);
    axis = axis < 0 ? axis + in.rank : axis;
    for (int32_t i = 0; i < in.rank; i++) {
        int64_t *dimension = &dimensions[i < axis ? 0 : 1];
        if (*dimension < 0 || in.shape[i] < 0 || !kelp_i64_mul(*dimension, in.shape[i], dimension))
            *dimension = -1;
    }
    out->rank = 2;
    kelp_dims_set(out, 0, dimensions[0]);
    kelp_dims_set(out, 1, dimensions[1]);
    if (axis == 1)
        kelp_dims_copy(out, 0, &in, 0);
    return true;
}

/* ---- shapes from the elements of an input ---- */
static bool expand(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims shape;
    kelp_content content;
    if (!kelp_dims_load(call->node, 0, out))
        return false;
    if (!input_content(call, 1, &content) || content.rank != 1)
        return rank_by_length(call, 1, &shape) && out->rank <= shape.rank &&
               dynamic_dims(shape.rank, out);
    dynamic_dims((int64_t)content.count, &shape);
    for (int32_t i = 0; i < shape.rank; i++)
        content_dim(&shape, i, &content, (size_t)i);
    return kelp_dims_broadcast(call, out, &shape);
}

static bool constant_of_shape(kelp_infer_call *call, kelp_dims *out) {
    kelp_content content;
    if (!input_content(call, 0, &content) || content.rank != 1)
        return rank_by_length(call, 0, out);
    dynamic_dims((int64_t)content.count, out);
    for (int32_t i = 0; i < out->rank; i++)
        content_dim(out, i, &content, (size_t)i);
    return true;
}

static bool random_of_shape(kelp_infer_call *call, kelp_dims *out) {
    const int64_t *shape = NULL;
    size_t count = kelp_node_attr_i64s(call->node, "shape", &shape);
    if (!dynamic_dims((int64_t)count, out))
        return false;
    for (size_t i = 0; i < count; i++)
        kelp_dims_set(out, (int32_t)i, shape[i]);
    return true;
}

static bool tile(kelp_infer_call *call, kelp_dims *out) {
    int64_t repeats[KELP_MAX_RANK];
    size_t count = 0;
    if (call->version < 6 || !kelp_dims_load(call->node, 0, out))
        return false;
    if (!kelp_infer_list(call, NULL, 1, repeats, &count))
        return dynamic_dims(out->rank, out);
    if ((int32_t)count != out->rank)
        return kelp_infer_problem(call, "repeats has %zu elements, the input has rank %d", count,
                                  out->rank);
    for (int32_t i = 0; i < out->rank; i++) {
        int64_t dimension = -1;
        if (repeats[i] == 1)
            continue;
        if (out->shape[i] < 0 || !kelp_i64_mul(out->shape[i], repeats[i], &dimension))
            dimension = -1;
        kelp_dims_set(out, i, dimension);
    }
    return true;
}

static bool range(kelp_infer_call *call, kelp_dims *out) {
    int64_t v[3][KELP_MAX_RANK];
    size_t count = 0;
    out->rank = 1;
    kelp_dims_set(out, 0, -1);
    for (size_t i = 0; i < 3; i++)
        if (i >= call->node->input_count || call->node->inputs[i] == NULL ||
            !kelp_infer_i64s(call->infer, call->node->inputs[i], v[i], &count) || count != 1)
            return true;
    int64_t span, step = v[2][0];
    if (step == 0)
        return kelp_infer_problem(call, "delta is 0");
    if (__builtin_sub_overflow(v[1][0], v[0][0], &span) || span == INT64_MIN)
        return true;
    int64_t whole = span / step + (span % step != 0 && (span < 0) == (step < 0));
    kelp_dims_set(out, 0, whole > 0 ? whole : 0);
    return true;
}

/* ---- split, slice, concatenate ---- */
static bool concat(kelp_infer_call *call, kelp_dims *out) {
    const kelp_node *node = call->node;
    int64_t axis = kelp_node_attr_i64(node, "axis", call->version < 4 ? 1 : 0), sum = 0;
    if (!kelp_dims_load(node, 0, out) || !kelp_infer_axis(call, &axis, out->rank))
        return false;
    for (size_t i = 0; i < node->input_count; i++) {
        kelp_dims in;
        if (!kelp_dims_load(node, i, &in))
            return dynamic_dims(out->rank, out);
        if (in.rank != out->rank)
            return kelp_infer_problem(call, "input %zu has rank %d, input 0 has rank %d", i,
                                      in.rank, out->rank);
        if (sum < 0 || in.shape[axis] < 0 || !kelp_i64_add(sum, in.shape[axis], &sum))
            sum = -1;
        for (int32_t k = 0; k < out->rank; k++) {
            if (k != axis && out->shape[k] >= 0 && in.shape[k] >= 0 && out->shape[k] != in.shape[k])
                return kelp_infer_problem(call,
                                          "input %zu has dimension %lld on axis %d: expected %lld",
                                          i, (long long)in.shape[k], k, (long long)out->shape[k]);
            if (out->shape[k] < 0 && in.shape[k] >= 0)
                kelp_dims_copy(out, k, &in, k);
        }
    }
    if (node->input_count > 1)
        kelp_dims_set(out, (int32_t)axis, sum);
    return true;
}

static bool split(kelp_infer_call *call, kelp_dims *out) {
    int64_t axis = kelp_node_attr_i64(call->node, "axis", 0), pieces[KELP_MAX_RANK];
    size_t count = 0;
    if (!kelp_dims_load(call->node, 0, out) || !kelp_infer_axis(call, &axis, out->rank))
        return false;
    bool known = kelp_infer_list(call, "split", 1, pieces, &count);
    int64_t whole = out->shape[axis], dimension = -1;
    if (known && count > call->output) {
        dimension = pieces[call->output];
    } else if (known && count == 0 && whole >= 0) {
        /* equal parts; the last one may be smaller */
        int64_t outputs = (int64_t)call->node->output_count;
        int64_t each = whole / outputs + (whole % outputs != 0);
        int64_t from = each * (int64_t)call->output;
        KELP_ASSERT(call->output < call->node->output_count);
        dimension = from >= whole ? 0 : KELP_MIN(each, whole - from);
    }
    kelp_dims_set(out, (int32_t)axis, dimension);
    return true;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

/* Returns the length of a slice along one axis, as in NumPy. */
static int64_t sliced(int64_t dimension, int64_t start, int64_t end, int64_t step) {
    KELP_ASSERT(dimension >= 0 && step != 0);
    if (dimension == 0)
        return 0;
    start = start < 0 && start > INT64_MIN ? start + dimension : start;
    end = end < 0 && end > INT64_MIN ? end + dimension : end;
    start = clamp(start, 0, step > 0 ? dimension : dimension - 1);
    end = clamp(end, step > 0 ? 0 : -1, dimension);
    int64_t span = step > 0 ? end - start : start - end;
    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    return span <= 0 ? 0 : (int64_t)(((uint64_t)span - 1) / stride + 1);
}

static bool slice(kelp_infer_call *call, kelp_dims *out) {
    int64_t starts[KELP_MAX_RANK], ends[KELP_MAX_RANK], axes[KELP_MAX_RANK], steps[KELP_MAX_RANK];
    size_t count = 0, other = 0, axis_count = 0, step_count = 0;
    bool marked[KELP_MAX_RANK] = {false};
    if (!kelp_dims_load(call->node, 0, out))
        return false;
    bool has_starts = kelp_infer_list(call, "starts", 1, starts, &count);
    bool has_ends = kelp_infer_list(call, "ends", 2, ends, &other);
    if (!kelp_infer_list(call, "axes", 3, axes, &axis_count) ||
        !kelp_infer_list(call, NULL, 4, steps, &step_count))
        return dynamic_dims(out->rank, out);
    if (!has_starts || !has_ends) {
        /* the bounds are not known, but the other axes keep their dimensions */
        if (axis_count == 0)
            return dynamic_dims(out->rank, out);
        if (!mark_axes(call, axes, axis_count, out->rank, marked))
            return false;
        for (int32_t i = 0; i < out->rank; i++)
            if (marked[i])
                kelp_dims_set(out, i, -1);
        return true;
    }
    if (count != other || (axis_count != 0 && axis_count != count) ||
        (step_count != 0 && step_count != count))
        return kelp_infer_problem(call,
                                  "expected equal numbers of elements: found %zu starts, %zu ends, "
                                  "%zu axes and %zu steps",
                                  count, other, axis_count, step_count);
    for (size_t i = 0; axis_count == 0 && i < count; i++)
        axes[i] = (int64_t)i;
    if (!mark_axes(call, axes, count, out->rank, marked))
        return false;
    for (size_t i = 0; i < count; i++) {
        int32_t axis = (int32_t)(axes[i] < 0 ? axes[i] + out->rank : axes[i]);
        int64_t step = step_count > 0 ? steps[i] : 1, dimension = out->shape[axis];
        if (step == 0)
            return kelp_infer_problem(call, "steps[%zu] is 0", i);
        if (dimension < 0 && starts[i] == 0 && step == 1 && ends[i] >= INT32_MAX)
            continue;
        kelp_dims_set(out, axis, dimension < 0 ? -1 : sliced(dimension, starts[i], ends[i], step));
    }
    return true;
}

static bool pad(kelp_infer_call *call, kelp_dims *out) {
    int64_t axes[KELP_MAX_RANK];
    size_t axis_count = 0;
    kelp_content pads = {.rank = 1};
    const int64_t *attribute = NULL;
    size_t attribute_count =
        kelp_node_attr_i64s(call->node, call->version < 2 ? "paddings" : "pads", &attribute);
    if (!kelp_dims_load(call->node, 0, out))
        return false;
    if (!kelp_infer_list(call, NULL, 3, axes, &axis_count))
        return dynamic_dims(out->rank, out);
    for (size_t i = 0; axis_count == 0 && i < (size_t)out->rank; i++)
        axes[i] = (int64_t)i;
    if (axis_count == 0)
        axis_count = (size_t)out->rank;
    /* two per axis may exceed the capacity of contents: then each is read separately */
    const kelp_tensor *constant =
        attribute_count == 0 && call->node->input_count > 1 && call->node->inputs[1] != NULL
            ? call->node->inputs[1]->constant
            : NULL;
    bool known = attribute_count > 0 || constant != NULL || input_content(call, 1, &pads);
    size_t count = attribute_count > 0 ? attribute_count
                   : constant != NULL  ? (size_t)kelp_tensor_elements(constant)
                                       : pads.count;
    if (!known || (constant != NULL && constant->dtype != KELP_I64))
        return dynamic_dims(out->rank, out);
    if (count != 2 * axis_count)
        return kelp_infer_problem(call, "found %zu pads: expected two for each of %zu axes", count,
                                  axis_count);
    for (size_t i = 0; i < axis_count; i++) {
        int64_t both[2], dimension;
        for (size_t side = 0; side < 2; side++) {
            size_t at = i + side * axis_count;
            both[side] = pads.items[at < KELP_MAX_RANK ? at : 0].value;
            if (attribute_count > 0)
                both[side] = attribute[at];
            else if (constant != NULL)
                memcpy(&both[side], (const char *)constant->data + 8 * at, 8);
            else if (!pads.items[at].known)
                return dynamic_dims(out->rank, out);
        }
        if (!kelp_infer_axis(call, &axes[i], out->rank))
            return false;
        if (both[0] == 0 && both[1] == 0)
            continue;
        int64_t old = out->shape[axes[i]];
        if (old < 0 || !kelp_i64_add(old, both[0], &dimension) ||
            !kelp_i64_add(dimension, both[1], &dimension) || dimension < 0)
            dimension = -1;
        kelp_dims_set(out, (int32_t)axes[i], dimension);
    }
    return true;
}

/* ---- gather and select ---- */
static bool gather(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims data, indices;
    int64_t axis = kelp_node_attr_i64(call->node, "axis", 0);
    if (!kelp_dims_load(call->node, 0, &data) || !kelp_dims_load(call->node, 1, &indices) ||
        !kelp_infer_axis(call, &axis, data.rank) || data.rank + indices.rank - 1 > KELP_MAX_RANK)
        return false;
    out->rank = 0;
    for (int32_t i = 0; i < data.rank; i++) {
        if (i != axis) {
            kelp_dims_copy(out, out->rank++, &data, i);
            continue;
        }
        for (int32_t k = 0; k < indices.rank; k++)
            kelp_dims_copy(out, out->rank++, &indices, k);
    }
    return true;
}

static bool gather_elements(kelp_infer_call *call, kelp_dims *out) {
    return kelp_dims_load(call->node, 1, out);
}

static bool gather_nd(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims data, indices;
    int64_t batch = kelp_node_attr_i64(call->node, "batch_dims", 0);
    if (!kelp_dims_load(call->node, 0, &data) || !kelp_dims_load(call->node, 1, &indices) ||
        indices.rank < 1 || batch < 0 || batch >= KELP_MAX_RANK)
        return false;
    int64_t depth = indices.shape[indices.rank - 1];
    if (depth < 0 || depth > data.rank - batch ||
        indices.rank - 1 + data.rank - batch - depth > KELP_MAX_RANK)
        return false;
    out->rank = 0;
    for (int32_t i = 0; i + 1 < indices.rank; i++)
        kelp_dims_copy(out, out->rank++, &indices, i);
    for (int32_t i = (int32_t)(batch + depth); i < data.rank; i++)
        kelp_dims_copy(out, out->rank++, &data, i);
    return true;
}

static bool top_k(kelp_infer_call *call, kelp_dims *out) {
    int64_t axis = kelp_node_attr_i64(call->node, "axis", -1), k[KELP_MAX_RANK];
    size_t count = 0;
    if (!kelp_dims_load(call->node, 0, out) || !kelp_infer_axis(call, &axis, out->rank))
        return false;
    bool known = kelp_infer_list(call, NULL, 1, k, &count) && count == 1;
    kelp_dims_set(out, (int32_t)axis, known ? k[0] : kelp_node_attr_i64(call->node, "k", -1));
    return true;
}

static bool one_hot(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims in;
    int64_t depth[KELP_MAX_RANK], axis = kelp_node_attr_i64(call->node, "axis", -1);
    size_t count = 0;
    if (!kelp_dims_load(call->node, 0, &in) || in.rank == KELP_MAX_RANK ||
        !kelp_infer_axis(call, &axis, in.rank + 1))
        return false;
    bool known = kelp_infer_list(call, NULL, 1, depth, &count) && count == 1 && depth[0] >= 0;
    out->rank = in.rank + 1;
    for (int32_t i = 0, from = 0; i < out->rank; i++) {
        if (i == axis)
            kelp_dims_set(out, i, known ? depth[0] : -1);
        else
            kelp_dims_copy(out, i, &in, from++);
    }
    return true;
}

static bool non_zero(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims in;
    if (!dynamic_dims(2, out))
        return false;
    if (kelp_dims_load(call->node, 0, &in))
        kelp_dims_set(out, 0, in.rank > 0 ? in.rank : 1);
    return true;
}

static bool non_max_suppression(kelp_infer_call *call, kelp_dims *out) {
    (void)call;
    out->rank = 2;
    kelp_dims_set(out, 0, -1);
    kelp_dims_set(out, 1, 3);
    return true;
}

static bool shape_of(kelp_infer_call *call, kelp_dims *out) {
    kelp_dims in;
    out->rank = 1;
    kelp_dims_set(out, 0, -1);
    if (!kelp_dims_load(call->node, 0, &in))
        return true;
    int64_t start = kelp_node_attr_i64(call->node, "start", 0);
    int64_t end = kelp_node_attr_i64(call->node, "end", in.rank);
    start = clamp(start < 0 ? start + in.rank : start, 0, in.rank);
    end = clamp(end < 0 ? end + in.rank : end, 0, in.rank);
    kelp_dims_set(out, 0, end > start ? end - start : 0);
    return true;
}

/* ---- rules ---- */
const kelp_infer_rule kelp_rule_transpose = {.shape = transpose};
const kelp_infer_rule kelp_rule_reshape = {.shape = reshape, .content = kelp_content_reshape};
const kelp_infer_rule kelp_rule_unsqueeze = {.shape = unsqueeze, .content = kelp_content_unsqueeze};
const kelp_infer_rule kelp_rule_squeeze = {.shape = squeeze, .content = kelp_content_squeeze};
const kelp_infer_rule kelp_rule_flatten = {.shape = flatten};
const kelp_infer_rule kelp_rule_expand = {.shape = expand};
const kelp_infer_rule kelp_rule_constant_of_shape = {.shape = constant_of_shape,
                                                     .type = {KELP_TYPE_VALUE, NULL, KELP_F32}};
const kelp_infer_rule kelp_rule_random = {.shape = random_of_shape,
                                          .type = {KELP_TYPE_ATTRIBUTE, "dtype", KELP_F32}};
const kelp_infer_rule kelp_rule_tile = {.shape = tile};
const kelp_infer_rule kelp_rule_range = {.shape = range};
const kelp_infer_rule kelp_rule_concat = {.shape = concat, .content = kelp_content_concat};
const kelp_infer_rule kelp_rule_split = {.shape = split, .each_output = true};
const kelp_infer_rule kelp_rule_slice = {.shape = slice, .content = kelp_content_slice};
const kelp_infer_rule kelp_rule_pad = {.shape = pad};
const kelp_infer_rule kelp_rule_gather = {.shape = gather, .content = kelp_content_gather};
const kelp_infer_rule kelp_rule_gather_elements = {.shape = gather_elements};
const kelp_infer_rule kelp_rule_gather_nd = {.shape = gather_nd};
const kelp_infer_rule kelp_rule_top_k = {.shape = top_k, .each_output = true};
const kelp_infer_rule kelp_rule_one_hot = {.shape = one_hot};
const kelp_infer_rule kelp_rule_non_zero = {.shape = non_zero};
const kelp_infer_rule kelp_rule_non_max_suppression = {.shape = non_max_suppression};
const kelp_infer_rule kelp_rule_shape = {.shape = shape_of, .content = kelp_content_shape};
