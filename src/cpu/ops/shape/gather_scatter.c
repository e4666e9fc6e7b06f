/* SPDX-License-Identifier: Apache-2.0 */
/* Gather and scatter by element and by tuple of indices. Invoke fails for an index outside
 * [-dimension, dimension). Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

#include <math.h>

static kelp_status *bad_index(const kelp_op_args *args, int64_t index, int64_t dim) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "operator '%s': index %lld is out of range: the dimension is %lld",
                      kelp_node_op_type(args->node), (long long)index, (long long)dim);
}

static int64_t read_index(const kelp_tensor *indices, int64_t i) {
    KELP_ASSERT(indices->dtype == KELP_I32 || indices->dtype == KELP_I64);
    return indices->dtype == KELP_I32 ? ((const int32_t *)indices->data)[i]
                                      : ((const int64_t *)indices->data)[i];
}

static kelp_status *check_types(kelp_op_args *args, int32_t inputs) {
    KELP_TRY(kelp_ops_check(args, inputs));
    if (args->inputs[1]->dtype != KELP_I32 && args->inputs[1]->dtype != KELP_I64)
        return kelp_ops_bad_type(args, args->inputs[1]->dtype);
    if (kelp_ops_element_bytes(args->inputs[0]->dtype) == 0)
        return kelp_ops_bad_type(args, args->inputs[0]->dtype);
    return NULL;
}

/* ---- GatherElements ---- */
static kelp_status *gather_elements_reshape(const void *state, kelp_op_args *args) {
    int32_t axis = 0;
    (void)state;
    KELP_TRY(check_types(args, 2));
    const kelp_tensor *x = args->inputs[0], *indices = args->inputs[1];
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 0), x->rank, &axis));
    if (x->rank != indices->rank)
        return kelp_ops_bad_shapes(args, x, indices, "the ranks differ");
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis && indices->shape[i] > x->shape[i])
            return kelp_ops_bad_shapes(args, x, indices, "the indices are larger than the data");
    return kelp_ops_set(args, 0, x->dtype, indices->rank, indices->shape);
}

/* Computes the offset in `x` of element `k` of `indices`, whose coordinate along `axis` is replaced
 * by the index. */
static kelp_status *element_offset(const kelp_op_args *args, const kelp_tensor *x,
                                   const kelp_tensor *indices, int32_t axis, int64_t k,
                                   int64_t *out) {
    int64_t rest = k, stride = 1, at = 0;
    KELP_ASSERT(x->rank == indices->rank && axis >= 0 && axis < x->rank);
    for (int32_t i = x->rank - 1; i >= 0; i--) {
        int64_t c = rest % indices->shape[i];
        rest /= indices->shape[i];
        if (i == axis) {
            c = read_index(indices, k);
            if (c < -x->shape[i] || c >= x->shape[i])
                return bad_index(args, c, x->shape[i]);
            if (c < 0)
                c += x->shape[i];
        }
        at += c * stride;
        stride *= x->shape[i];
    }
    *out = at;
    return NULL;
}

static kelp_status *gather_elements_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *indices = args->inputs[1];
    size_t size = kelp_ops_element_bytes(x->dtype);
    int64_t count = kelp_tensor_elements(indices), at = 0;
    int32_t axis = 0;
    (void)state;
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 0), x->rank, &axis));
    for (int64_t k = 0; k < count; k++) {
        KELP_TRY(element_offset(args, x, indices, axis, k, &at));
        memcpy((char *)args->outputs[0]->data + (size_t)k * size,
               (const char *)x->data + (size_t)at * size, size);
    }
    return NULL;
}
KELP_KERNEL(GatherElements, 0, 0, 1, gather_elements_reshape, gather_elements_invoke);

/* ---- reductions of scattered values with the elements of the data ---- */
typedef enum join { JOIN_SET, JOIN_ADD, JOIN_MUL, JOIN_MIN, JOIN_MAX } join;

static kelp_status *read_join(const kelp_op_args *args, join *out) {
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    const char *name = kelp_node_attr_string(args->node, "reduction", "none", NULL);
    for (size_t i = 0; i < KELP_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (join)i;
            if (i > 0 && !kelp_real_takes(args->inputs[0]->dtype))
                return kelp_ops_bad_type(args, args->inputs[0]->dtype);
            return NULL;
        }
    return KELP_ERROR(
        KELP_INVALID_ARGUMENT,
        "operator '%s': attribute 'reduction' is '%s': expected 'none', 'add', 'mul', "
        "'min' or 'max'",
        kelp_node_op_type(args->node), name);
}

#define JOIN(type, wide)                                            \
    do {                                                            \
        type a = *(type *)to, b = *(const type *)from;              \
        *(type *)to = how == JOIN_ADD   ? (type)((wide)a + (wide)b) \
                      : how == JOIN_MUL ? (type)((wide)a * (wide)b) \
                      : how == JOIN_MIN ? KELP_MIN(a, b)            \
                                        : KELP_MAX(a, b);           \
    } while (0)
/* Joins elements of 16-bit floats and bool; the sum of bool is "or". */
static void join_rare(join how, kelp_dtype dtype, void *to, const void *from) {
    float a, b;
    kelp_real_load_f32(dtype, to, 0, 1, &a);
    kelp_real_load_f32(dtype, from, 0, 1, &b);
    a = how == JOIN_ADD   ? a + b
        : how == JOIN_MUL ? a * b
        : how == JOIN_MIN ? fminf(a, b)
                          : fmaxf(a, b);
    kelp_real_store_f32(dtype, to, 0, 1, &a);
}

/* Joins one element; integers wrap. */
static void join_one(join how, kelp_dtype dtype, size_t size, void *to, const void *from) {
    if (how == JOIN_SET) {
        memcpy(to, from, size);
        return;
    }
    switch (dtype) {
    case KELP_F32:
        JOIN(float, float);
        break;
    case KELP_F64:
        JOIN(double, double);
        break;
    case KELP_I8:
        JOIN(int8_t, uint32_t);
        break;
    case KELP_I16:
        JOIN(int16_t, uint32_t);
        break;
    case KELP_I32:
        JOIN(int32_t, uint32_t);
        break;
    case KELP_I64:
        JOIN(int64_t, uint64_t);
        break;
    case KELP_U8:
        JOIN(uint8_t, uint32_t);
        break;
    case KELP_U16:
        JOIN(uint16_t, uint32_t);
        break;
    case KELP_U32:
        JOIN(uint32_t, uint32_t);
        break;
    case KELP_U64:
        JOIN(uint64_t, uint64_t);
        break;
    default:
        join_rare(how, dtype, to, from);
        break;
    }
}

/* ---- ScatterElements ---- */
static kelp_status *scatter_elements_reshape(const void *state, kelp_op_args *args) {
    join how;
    int32_t axis = 0;
    (void)state;
    KELP_TRY(check_types(args, 3));
    const kelp_tensor *x = args->inputs[0], *indices = args->inputs[1], *updates = args->inputs[2];
    KELP_TRY(read_join(args, &how));
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 0), x->rank, &axis));
    if (x->rank != indices->rank || updates->rank != indices->rank || updates->dtype != x->dtype ||
        memcmp(updates->shape, indices->shape, (size_t)x->rank * sizeof *x->shape) != 0)
        return kelp_ops_bad_shapes(args, indices, updates,
                                   "indices and updates must have the same shape");
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis && indices->shape[i] > x->shape[i])
            return kelp_ops_bad_shapes(args, x, indices, "the indices are larger than the data");
    return kelp_ops_set_like(args, 0, x);
}
static kelp_status *scatter_elements_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *indices = args->inputs[1], *updates = args->inputs[2];
    size_t size = kelp_ops_element_bytes(x->dtype);
    int64_t count = kelp_tensor_elements(indices), at = 0;
    join how;
    int32_t axis = 0;
    char *out = args->outputs[0]->data;
    (void)state;
    KELP_TRY(read_join(args, &how));
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 0), x->rank, &axis));
    if (out != x->data)
        kelp_ops_memcpy(args->env, out, x->data, kelp_tensor_bytes(x));
    for (int64_t k = 0; k < count; k++) {
        KELP_TRY(element_offset(args, x, indices, axis, k, &at));
        join_one(how, x->dtype, size, out + (size_t)at * size,
                 (const char *)updates->data + (size_t)k * size);
    }
    return NULL;
}
KELP_KERNEL(ScatterElements, KELP_OP_INPLACE_0, 0, 0, scatter_elements_reshape,
            scatter_elements_invoke);

/* ---- GatherND, ScatterND ---- */
/* Computes the offset, in slices, of tuple `tuple` over axes [first, first + depth) of x, without
 * the offset of the batch. */
static kelp_status *tuple_offset(const kelp_op_args *args, const kelp_tensor *x, int32_t first,
                                 const kelp_tensor *indices, int64_t tuple, int64_t depth,
                                 int64_t *out) {
    int64_t at = 0;
    KELP_ASSERT(first >= 0 && first + depth <= x->rank);
    for (int64_t i = 0; i < depth; i++) {
        int64_t dim = x->shape[first + i], index = read_index(indices, tuple * depth + i);
        if (index < -dim || index >= dim)
            return bad_index(args, index, dim);
        at = at * dim + (index < 0 ? index + dim : index);
    }
    *out = at;
    return NULL;
}

static kelp_status *gather_nd_reshape(const void *state, kelp_op_args *args) {
    int64_t shape[KELP_MAX_RANK], batch = kelp_node_attr_i64(args->node, "batch_dims", 0);
    int32_t rank = 0;
    (void)state;
    KELP_TRY(check_types(args, 2));
    const kelp_tensor *x = args->inputs[0], *indices = args->inputs[1];
    int64_t depth = indices->rank > 0 ? indices->shape[indices->rank - 1] : 0;
    if (indices->rank < 1 || batch < 0 || batch >= indices->rank || depth < 1 ||
        depth > x->rank - batch || indices->rank - 1 + x->rank - depth - batch > KELP_MAX_RANK)
        return kelp_ops_bad_shapes(args, x, indices, "the indices do not match the data");
    for (int64_t i = 0; i < batch; i++)
        if (x->shape[i] != indices->shape[i])
            return kelp_ops_bad_shapes(args, x, indices, "the batch dimensions differ");
    for (int32_t i = 0; i < indices->rank - 1; i++)
        shape[rank++] = indices->shape[i];
    for (int64_t i = batch + depth; i < x->rank; i++)
        shape[rank++] = x->shape[i];
    return kelp_ops_set(args, 0, x->dtype, rank, shape);
}
static kelp_status *gather_nd_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *indices = args->inputs[1];
    int32_t batch = (int32_t)kelp_node_attr_i64(args->node, "batch_dims", 0);
    int64_t depth = indices->shape[indices->rank - 1], at = 0;
    int64_t batches = kelp_ops_product(x->shape, 0, batch);
    int64_t tuples = kelp_ops_product(indices->shape, batch, indices->rank - 1);
    int64_t span = kelp_ops_product(x->shape, batch, batch + (int32_t)depth);
    size_t bytes = (size_t)kelp_ops_product(x->shape, batch + (int32_t)depth, x->rank) *
                   kelp_ops_element_bytes(x->dtype);
    char *to = args->outputs[0]->data;
    (void)state;
    for (int64_t b = 0; b < batches; b++)
        for (int64_t t = 0; t < tuples; t++, to += bytes) {
            KELP_TRY(tuple_offset(args, x, batch, indices, b * tuples + t, depth, &at));
            if (bytes > 0)
                memcpy(to, (const char *)x->data + (size_t)(b * span + at) * bytes, bytes);
        }
    return NULL;
}
KELP_KERNEL(GatherND, 0, 0, 1, gather_nd_reshape, gather_nd_invoke);

static kelp_status *scatter_nd_reshape(const void *state, kelp_op_args *args) {
    join how;
    (void)state;
    KELP_TRY(check_types(args, 3));
    const kelp_tensor *x = args->inputs[0], *indices = args->inputs[1], *updates = args->inputs[2];
    KELP_TRY(read_join(args, &how));
    int64_t depth = indices->rank > 0 ? indices->shape[indices->rank - 1] : 0;
    if (indices->rank < 1 || depth < 1 || depth > x->rank || updates->dtype != x->dtype ||
        updates->rank != indices->rank - 1 + x->rank - depth)
        return kelp_ops_bad_shapes(args, indices, updates,
                                   "indices and updates do not match the data");
    for (int32_t i = 0; i < updates->rank; i++) {
        int64_t dim =
            i < indices->rank - 1 ? indices->shape[i] : x->shape[i - (indices->rank - 1) + depth];
        if (updates->shape[i] != dim)
            return kelp_ops_bad_shapes(args, indices, updates, "the updates do not match the data");
    }
    return kelp_ops_set_like(args, 0, x);
}
static kelp_status *scatter_nd_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *indices = args->inputs[1], *updates = args->inputs[2];
    int64_t depth = indices->shape[indices->rank - 1], at = 0;
    int64_t tuples = kelp_ops_product(indices->shape, 0, indices->rank - 1);
    int64_t slice = kelp_ops_product(x->shape, (int32_t)depth, x->rank);
    size_t size = kelp_ops_element_bytes(x->dtype);
    char *out = args->outputs[0]->data;
    join how;
    (void)state;
    KELP_TRY(read_join(args, &how));
    if (out != x->data)
        kelp_ops_memcpy(args->env, out, x->data, kelp_tensor_bytes(x));
    for (int64_t t = 0; t < tuples; t++) {
        KELP_TRY(tuple_offset(args, x, 0, indices, t, depth, &at));
        for (int64_t i = 0; i < slice; i++)
            join_one(how, x->dtype, size, out + (size_t)(at * slice + i) * size,
                     (const char *)updates->data + (size_t)(t * slice + i) * size);
    }
    return NULL;
}
KELP_KERNEL(ScatterND, KELP_OP_INPLACE_0, 0, 0, scatter_nd_reshape, scatter_nd_invoke);
