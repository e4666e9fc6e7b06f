/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of the operators that most models are made of, with open extents and their names. */
#include "graph/infer.h"
#include "graph/passes/passes.h"

#include <string.h>

static bool load_dims(const kelp_node *node, size_t index, kelp_dims *out) {
    const kelp_value *value = index < node->input_count ? node->inputs[index] : NULL;
    if (value == NULL || value->rank < 0)
        return false;
    out->rank = value->rank;
    memcpy(out->shape, value->shape, sizeof out->shape);
    memcpy(out->symbols, value->symbols, sizeof out->symbols);
    return true;
}

static void copy_dim(kelp_dims *to, int32_t at, const kelp_dims *from, int32_t axis) {
    to->shape[at] = from->shape[axis];
    to->symbols[at] = from->symbols[axis];
}

static void set_dim(kelp_dims *to, int32_t at, int64_t extent) {
    to->shape[at] = extent;
    to->symbols[at] = NULL;
}

static bool fix_axis(int64_t *axis, int32_t rank) {
    if (*axis < 0)
        *axis += rank;
    return *axis >= 0 && *axis < rank;
}

static bool same(const kelp_node *node, kelp_dims *out) {
    return load_dims(node, 0, out);
}

/* NumPy's rules. Of an open extent and a fixed one above 1, the fixed one; of two open ones with one name, that. */
static void broadcast_dim(kelp_dims *to, int32_t at, const kelp_dims *other, int32_t axis) {
    int64_t a = to->shape[at], b = other->shape[axis];
    if (a == 1 || (a < 0 && b > 1))
        copy_dim(to, at, other, axis);
    else if (a < 0 && b < 0 &&
             (to->symbols[at] == NULL || other->symbols[axis] == NULL ||
              strcmp(to->symbols[at], other->symbols[axis]) != 0))
        to->symbols[at] = NULL;
}

static void broadcast(kelp_dims *to, const kelp_dims *other) {
    kelp_dims longer = to->rank >= other->rank ? *to : *other;
    const kelp_dims *shorter = to->rank >= other->rank ? other : to;
    kelp_dims copy = *shorter;
    int32_t shift = longer.rank - copy.rank;
    for (int32_t i = 0; i < copy.rank; i++)
        broadcast_dim(&longer, i + shift, &copy, i);
    *to = longer;
}

static bool broadcast_all(const kelp_node *node, kelp_dims *out) {
    if (!load_dims(node, 0, out))
        return false;
    for (size_t i = 1; i < node->input_count; i++) {
        kelp_dims other;
        if (!load_dims(node, i, &other))
            return false;
        broadcast(out, &other);
    }
    return true;
}

static bool matmul(const kelp_node *node, kelp_dims *out) {
    kelp_dims a, b;
    if (!load_dims(node, 0, &a) || !load_dims(node, 1, &b) || a.rank < 2 || b.rank < 2)
        return false;
    kelp_dims rows = a, columns = b;
    a.rank -= 2;
    b.rank -= 2;
    *out = a;
    broadcast(out, &b);
    copy_dim(out, out->rank++, &rows, rows.rank - 2);
    copy_dim(out, out->rank++, &columns, columns.rank - 1);
    return true;
}

static bool gemm(const kelp_node *node, kelp_dims *out) {
    kelp_dims a, b;
    if (!load_dims(node, 0, &a) || !load_dims(node, 1, &b) || a.rank != 2 || b.rank != 2)
        return false;
    out->rank = 2;
    copy_dim(out, 0, &a, kelp_node_attr_i64(node, "transA", 0) ? 1 : 0);
    copy_dim(out, 1, &b, kelp_node_attr_i64(node, "transB", 0) ? 0 : 1);
    return true;
}

static bool transpose(const kelp_node *node, kelp_dims *out) {
    kelp_dims in;
    const int64_t *perm = NULL;
    size_t count = kelp_node_attr_i64s(node, "perm", &perm);
    if (!load_dims(node, 0, &in) || (count != 0 && (int32_t)count != in.rank))
        return false;
    out->rank = in.rank;
    for (int32_t i = 0; i < in.rank; i++) {
        int64_t axis = count ? perm[i] : in.rank - 1 - i;
        if (!fix_axis(&axis, in.rank))
            return false;
        copy_dim(out, i, &in, (int32_t)axis);
    }
    return true;
}

static bool reshape(const kelp_node *node, kelp_dims *out) {
    kelp_dims in;
    int64_t shape[KELP_MAX_RANK];
    size_t count = 0;
    if (node->input_count < 2 || !load_dims(node, 0, &in) ||
        !kelp_match_i64s(node->inputs[1], shape, KELP_MAX_RANK, &count))
        return false;
    out->rank = (int32_t)count;
    int64_t before = 1, after = 1;
    int32_t open = -1;
    for (int32_t i = 0; i < out->rank; i++) {
        if (shape[i] == 0 && i < in.rank)
            copy_dim(out, i, &in, i);
        else
            set_dim(out, i, shape[i]);
        if (shape[i] == -1)
            open = i;
        else if (shape[i] != 0)
            after *= shape[i];
    }
    /* the open extent, when all that is not copied is fixed */
    bool known = true;
    for (int32_t i = 0; i < in.rank; i++) {
        if (i < out->rank && shape[i] == 0)
            continue;
        known = known && in.shape[i] >= 0;
        before *= in.shape[i];
    }
    if (open >= 0 && known && after > 0)
        out->shape[open] = before / after;
    return true;
}

static bool read_axes(const kelp_node *node, int64_t *axes, size_t *count) {
    const int64_t *given = NULL;
    *count = kelp_node_attr_i64s(node, "axes", &given);
    if (*count > KELP_MAX_RANK)
        return false;
    if (*count > 0)
        memcpy(axes, given, *count * sizeof *axes);
    if (*count == 0 && node->input_count > 1 && node->inputs[1] != NULL)
        return kelp_match_i64s(node->inputs[1], axes, KELP_MAX_RANK, count);
    return true;
}

static bool mark_axes(const int64_t *axes, size_t count, int32_t rank, bool *marked) {
    for (size_t i = 0; i < count; i++) {
        int64_t axis = axes[i];
        if (!fix_axis(&axis, rank))
            return false;
        marked[axis] = true;
    }
    return true;
}

static bool unsqueeze(const kelp_node *node, kelp_dims *out) {
    kelp_dims in;
    int64_t axes[KELP_MAX_RANK];
    size_t count = 0;
    bool marked[KELP_MAX_RANK] = {false};
    if (!load_dims(node, 0, &in) || !read_axes(node, axes, &count) ||
        in.rank + (int32_t)count > KELP_MAX_RANK)
        return false;
    out->rank = in.rank + (int32_t)count;
    if (!mark_axes(axes, count, out->rank, marked))
        return false;
    for (int32_t i = 0, from = 0; i < out->rank; i++) {
        if (marked[i])
            set_dim(out, i, 1);
        else if (from < in.rank)
            copy_dim(out, i, &in, from++);
    }
    return true;
}

static bool squeeze(const kelp_node *node, kelp_dims *out) {
    kelp_dims in;
    int64_t axes[KELP_MAX_RANK];
    size_t count = 0;
    bool marked[KELP_MAX_RANK] = {false};
    if (!load_dims(node, 0, &in) || !read_axes(node, axes, &count) || count == 0 ||
        !mark_axes(axes, count, in.rank, marked))
        return false;
    out->rank = 0;
    for (int32_t i = 0; i < in.rank; i++)
        if (!marked[i])
            copy_dim(out, out->rank++, &in, i);
    return true;
}

static bool reduce(const kelp_node *node, kelp_dims *out) {
    kelp_dims in;
    int64_t axes[KELP_MAX_RANK];
    size_t count = 0;
    bool marked[KELP_MAX_RANK] = {false}, keep = kelp_node_attr_i64(node, "keepdims", 1) != 0;
    if (!load_dims(node, 0, &in) || !read_axes(node, axes, &count))
        return false;
    if (count == 0 && kelp_node_attr_i64(node, "noop_with_empty_axes", 0) != 0) {
        *out = in;
        return true;
    }
    for (int32_t i = 0; count == 0 && i < in.rank; i++)
        marked[i] = true;
    if (!mark_axes(axes, count, in.rank, marked))
        return false;
    out->rank = 0;
    for (int32_t i = 0; i < in.rank; i++) {
        if (!marked[i])
            copy_dim(out, out->rank++, &in, i);
        else if (keep)
            set_dim(out, out->rank++, 1);
    }
    return true;
}

static bool arg_reduce(const kelp_node *node, kelp_dims *out) {
    kelp_dims in;
    int64_t axis = kelp_node_attr_i64(node, "axis", 0);
    if (!load_dims(node, 0, &in) || !fix_axis(&axis, in.rank))
        return false;
    out->rank = 0;
    for (int32_t i = 0; i < in.rank; i++) {
        if (i != axis)
            copy_dim(out, out->rank++, &in, i);
        else if (kelp_node_attr_i64(node, "keepdims", 1) != 0)
            set_dim(out, out->rank++, 1);
    }
    return true;
}

static bool gather(const kelp_node *node, kelp_dims *out) {
    kelp_dims data, indices;
    int64_t axis = kelp_node_attr_i64(node, "axis", 0);
    if (!load_dims(node, 0, &data) || !load_dims(node, 1, &indices) ||
        !fix_axis(&axis, data.rank) || data.rank + indices.rank - 1 > KELP_MAX_RANK)
        return false;
    out->rank = 0;
    for (int32_t i = 0; i < data.rank; i++) {
        if (i != axis) {
            copy_dim(out, out->rank++, &data, i);
            continue;
        }
        for (int32_t k = 0; k < indices.rank; k++)
            copy_dim(out, out->rank++, &indices, k);
    }
    return true;
}

static bool concat(const kelp_node *node, kelp_dims *out) {
    int64_t axis = kelp_node_attr_i64(node, "axis", 0), sum = 0;
    if (!load_dims(node, 0, out) || !fix_axis(&axis, out->rank))
        return false;
    for (size_t i = 0; i < node->input_count; i++) {
        kelp_dims in;
        if (!load_dims(node, i, &in) || in.rank != out->rank)
            return false;
        sum = sum < 0 || in.shape[axis] < 0 ? -1 : sum + in.shape[axis];
        for (int32_t k = 0; k < out->rank; k++)
            if (out->shape[k] < 0 && in.shape[k] >= 0)
                copy_dim(out, k, &in, k);
    }
    set_dim(out, (int32_t)axis, sum);
    return true;
}

static bool flatten(const kelp_node *node, kelp_dims *out) {
    kelp_dims in;
    int64_t axis = kelp_node_attr_i64(node, "axis", 1), extents[2] = {1, 1};
    if (!load_dims(node, 0, &in))
        return false;
    if (axis < 0)
        axis += in.rank;
    for (int32_t i = 0; i < in.rank; i++) {
        int64_t *extent = &extents[i < axis ? 0 : 1];
        *extent = *extent < 0 || in.shape[i] < 0 ? -1 : *extent * in.shape[i];
    }
    out->rank = 2;
    set_dim(out, 0, extents[0]);
    set_dim(out, 1, extents[1]);
    if (axis == 1)
        copy_dim(out, 0, &in, 0);
    return true;
}

static bool shape_of(const kelp_node *node, kelp_dims *out) {
    kelp_dims in;
    if (!load_dims(node, 0, &in))
        return false;
    int64_t start = kelp_node_attr_i64(node, "start", 0);
    int64_t end = kelp_node_attr_i64(node, "end", in.rank);
    start = start < 0 ? start + in.rank : start;
    end = end < 0 ? end + in.rank : end > in.rank ? in.rank : end;
    out->rank = 1;
    set_dim(out, 0, end > start ? end - (start < 0 ? 0 : start) : 0);
    return true;
}

/* ---- windows ---- */
static int64_t window_extent(const kelp_node *node, int64_t in, int64_t kernel, size_t axis,
                             size_t axes) {
    const int64_t *strides = NULL, *dilations = NULL, *pads = NULL;
    int64_t stride = kelp_node_attr_i64s(node, "strides", &strides) > axis ? strides[axis] : 1;
    int64_t dilation =
        kelp_node_attr_i64s(node, "dilations", &dilations) > axis ? dilations[axis] : 1;
    bool has_pads = kelp_node_attr_i64s(node, "pads", &pads) == 2 * axes;
    int64_t padding = has_pads ? pads[axis] + pads[axis + axes] : 0;
    const char *auto_pad = kelp_node_attr_string(node, "auto_pad", "NOTSET", NULL);
    if (in < 0 || kernel < 0 || stride <= 0)
        return -1;
    if (strncmp(auto_pad, "SAME", 4) == 0)
        return (in + stride - 1) / stride;
    int64_t room = in + (strcmp(auto_pad, "VALID") == 0 ? 0 : padding) - ((kernel - 1) * dilation + 1);
    if (room < 0)
        return -1;
    bool ceil_mode = kelp_node_attr_i64(node, "ceil_mode", 0) != 0;
    return ceil_mode ? -1 : room / stride + 1;
}

static bool conv(const kelp_node *node, kelp_dims *out) {
    kelp_dims x, w;
    if (!load_dims(node, 0, &x) || !load_dims(node, 1, &w) || x.rank < 3 || w.rank != x.rank)
        return false;
    out->rank = x.rank;
    copy_dim(out, 0, &x, 0);
    copy_dim(out, 1, &w, 0);
    for (int32_t i = 2; i < x.rank; i++)
        set_dim(out, i, window_extent(node, x.shape[i], w.shape[i], (size_t)i - 2,
                                      (size_t)x.rank - 2));
    return true;
}

static bool pool(const kelp_node *node, kelp_dims *out) {
    kelp_dims x;
    const int64_t *kernel = NULL;
    size_t axes = kelp_node_attr_i64s(node, "kernel_shape", &kernel);
    if (!load_dims(node, 0, &x) || x.rank != (int32_t)axes + 2)
        return false;
    *out = x;
    for (size_t i = 0; i < axes; i++)
        set_dim(out, (int32_t)i + 2, window_extent(node, x.shape[i + 2], kernel[i], i, axes));
    return true;
}

static bool global_pool(const kelp_node *node, kelp_dims *out) {
    if (!load_dims(node, 0, out))
        return false;
    for (int32_t i = 2; i < out->rank; i++)
        set_dim(out, i, 1);
    return true;
}

/* ---- the list ---- */
static const struct {
    const char *op_type;
    kelp_infer_fn fn;
} known[] = {
    {"Abs", same}, {"Cast", same}, {"Ceil", same}, {"Clip", same}, {"Cos", same}, {"Elu", same},
    {"Erf", same}, {"Exp", same}, {"Floor", same}, {"Gelu", same}, {"HardSigmoid", same},
    {"HardSwish", same}, {"Identity", same}, {"LeakyRelu", same}, {"Log", same},
    {"LogSoftmax", same}, {"Neg", same}, {"Not", same}, {"Reciprocal", same}, {"Relu", same},
    {"Round", same}, {"Sigmoid", same}, {"Sign", same}, {"Sin", same}, {"Softmax", same},
    {"Softplus", same}, {"Sqrt", same}, {"Tanh", same}, {"LayerNormalization", same},
    {"RMSNormalization", same}, {"BatchNormalization", same}, {"InstanceNormalization", same},
    {"Dropout", same}, {"CumSum", same}, {"Mish", same}, {"Selu", same}, {"Softsign", same},
    {"Add", broadcast_all}, {"Sub", broadcast_all}, {"Mul", broadcast_all},
    {"Div", broadcast_all}, {"Pow", broadcast_all}, {"Mod", broadcast_all},
    {"Equal", broadcast_all}, {"Greater", broadcast_all}, {"Less", broadcast_all},
    {"GreaterOrEqual", broadcast_all}, {"LessOrEqual", broadcast_all}, {"And", broadcast_all},
    {"Or", broadcast_all}, {"Xor", broadcast_all}, {"Where", broadcast_all},
    {"Min", broadcast_all}, {"Max", broadcast_all}, {"Mean", broadcast_all},
    {"Sum", broadcast_all}, {"PRelu", same}, {"MatMul", matmul}, {"Gemm", gemm},
    {"Transpose", transpose}, {"Reshape", reshape}, {"Unsqueeze", unsqueeze},
    {"Squeeze", squeeze}, {"Gather", gather}, {"Concat", concat}, {"Flatten", flatten},
    {"Shape", shape_of}, {"ReduceSum", reduce}, {"ReduceMean", reduce}, {"ReduceMax", reduce},
    {"ReduceMin", reduce}, {"ReduceProd", reduce}, {"ReduceL2", reduce},
    {"ReduceSumSquare", reduce}, {"ArgMax", arg_reduce}, {"ArgMin", arg_reduce}, {"Conv", conv},
    {"MaxPool", pool}, {"AveragePool", pool}, {"GlobalAveragePool", global_pool},
    {"GlobalMaxPool", global_pool},
};

kelp_infer_fn kelp_infer_find(const char *op_type) {
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].op_type, op_type) == 0)
            return known[i].fn;
    return NULL;
}
