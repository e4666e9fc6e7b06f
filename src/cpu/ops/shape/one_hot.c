/* SPDX-License-Identifier: Apache-2.0 */
/* OneHot, Compress, ReverseSequence. Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"

/* ---- OneHot ---- */
typedef struct one_hot_plan {
    int64_t outer, depth, inner;
    size_t size;
} one_hot_plan;

static kelp_status *one_hot_reshape(const void *state, kelp_op_args *args) {
    one_hot_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    int32_t axis;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 3));
    const kelp_tensor *indices = args->inputs[0], *values = args->inputs[2];
    if (kelp_ops_defer(args, 1))
        return NULL;
    if (kelp_tensor_elements(args->inputs[1]) != 1 || kelp_tensor_elements(values) != 2)
        return kelp_ops_bad_shapes(args, args->inputs[1], values,
                                   "expected one depth and two values");
    p->depth = kelp_ops_read_i64(args->inputs[1], 0);
    p->size = kelp_ops_element_bytes(values->dtype);
    if (p->size == 0)
        return kelp_ops_bad_type(args, values->dtype);
    if (p->depth < 0 || indices->rank + 1 > KELP_MAX_RANK)
        return kelp_ops_bad_shapes(args, indices, NULL,
                                   "the depth is negative, or the rank too high");
    KELP_TRY(
        kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", -1), indices->rank + 1, &axis));
    p->outer = kelp_ops_product(indices->shape, 0, axis);
    p->inner = kelp_ops_product(indices->shape, axis, indices->rank);
    for (int32_t i = 0; i <= indices->rank; i++)
        shape[i] = i == axis ? p->depth : indices->shape[i - (i > axis)];
    return kelp_ops_set(args, 0, values->dtype, indices->rank + 1, shape);
}

/* Reads an index; INT64_MIN for a float that is out of range or NaN. */
static int64_t read_index(const kelp_tensor *indices, int64_t i) {
    if (!kelp_ops_is_float(indices->dtype))
        return kelp_ops_read_i64(indices, i);
    double value = kelp_ops_read_f64(indices, i);
    return value >= -0x1p62 && value < 0x1p62 ? (int64_t)value : INT64_MIN;
}

static kelp_status *one_hot_invoke(const void *state, kelp_op_args *args) {
    const one_hot_plan *p = args->plan;
    const char *values = args->inputs[2]->data;
    char *y = args->outputs[0]->data;
    (void)state;
    KELP_ASSERT(p->outer * p->inner == kelp_tensor_elements(args->inputs[0]));
    kelp_ops_fill(y, p->size, kelp_tensor_elements(args->outputs[0]), values);
    for (int64_t i = 0; i < p->outer * p->inner; i++) {
        int64_t index = read_index(args->inputs[0], i);
        if (index < 0)
            index += p->depth;
        if (index < 0 || index >= p->depth)
            continue; /* the row has only the off value */
        int64_t at = (i / p->inner * p->depth + index) * p->inner + i % p->inner;
        memcpy(y + (size_t)at * p->size, values + p->size, p->size);
    }
    return NULL;
}
KELP_KERNEL(OneHot, KELP_OP_SERIAL, sizeof(one_hot_plan), 0, one_hot_reshape, one_hot_invoke);

/* ---- Compress: the size of the output depends on the condition ---- */
typedef struct compress_plan {
    int64_t outer, length, inner, kept;
    size_t size;
} compress_plan;

static kelp_status *compress_reshape(const void *state, kelp_op_args *args) {
    compress_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    int32_t axis = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *condition = args->inputs[1];
    if (kelp_ops_defer(args, 1))
        return NULL;
    p->size = kelp_ops_element_bytes(x->dtype);
    if (p->size == 0)
        return kelp_ops_bad_type(args, x->dtype);
    if (condition->dtype != KELP_BOOL || condition->rank != 1)
        return kelp_ops_bad_shapes(args, x, condition, "the condition must be a list of bool");
    bool whole = kelp_node_attr_type(args->node, "axis") != KELP_ATTR_INT;
    if (!whole)
        KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 0), x->rank, &axis));
    p->outer = whole ? 1 : kelp_ops_product(x->shape, 0, axis);
    p->length = whole ? kelp_tensor_elements(x) : x->shape[axis];
    p->inner = whole ? 1 : kelp_ops_product(x->shape, axis + 1, x->rank);
    if (condition->shape[0] > p->length)
        return kelp_ops_bad_shapes(args, x, condition, "the condition is longer than the axis");
    p->kept = 0;
    for (int64_t i = 0; i < condition->shape[0]; i++)
        p->kept += ((const uint8_t *)condition->data)[i] != 0;
    memcpy(shape, x->shape, sizeof shape);
    shape[whole ? 0 : axis] = p->kept;
    return kelp_ops_set(args, 0, x->dtype, whole ? 1 : x->rank, shape);
}

static kelp_status *compress_invoke(const void *state, kelp_op_args *args) {
    const compress_plan *p = args->plan;
    const uint8_t *condition = args->inputs[1]->data;
    const char *x = args->inputs[0]->data;
    char *y = args->outputs[0]->data;
    size_t bytes = (size_t)p->inner * p->size;
    (void)state;
    KELP_ASSERT(args->inputs[1]->shape[0] <= p->length && p->kept <= p->length);
    for (int64_t o = 0; o < p->outer; o++) {
        for (int64_t i = 0; i < args->inputs[1]->shape[0]; i++) {
            if (condition[i] == 0 || bytes == 0)
                continue;
            memcpy(y, x + (size_t)(o * p->length + i) * bytes, bytes);
            y += bytes;
        }
    }
    return NULL;
}
KELP_KERNEL(Compress, KELP_OP_SERIAL, sizeof(compress_plan), 0, compress_reshape, compress_invoke);

/* ---- ReverseSequence ---- */
static kelp_status *reverse_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *lengths = args->inputs[1];
    int64_t batch = kelp_node_attr_i64(args->node, "batch_axis", 1);
    int64_t time = kelp_node_attr_i64(args->node, "time_axis", 0);
    if (kelp_ops_element_bytes(x->dtype) == 0)
        return kelp_ops_bad_type(args, x->dtype);
    bool axes_fit = (batch == 0 && time == 1) || (batch == 1 && time == 0);
    if (x->rank < 2 || !axes_fit || lengths->rank != 1 || lengths->dtype != KELP_I64 ||
        lengths->shape[0] != x->shape[batch])
        return kelp_ops_bad_shapes(args, x, lengths,
                                   "batch_axis and time_axis must be 0 and 1 or 1 and 0, with one "
                                   "length for each sequence");
    return kelp_ops_set_like(args, 0, x);
}

static kelp_status *reverse_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *lengths = args->inputs[1];
    bool time_first = kelp_node_attr_i64(args->node, "time_axis", 0) == 0;
    size_t bytes =
        (size_t)kelp_ops_product(x->shape, 2, x->rank) * kelp_ops_element_bytes(x->dtype);
    (void)state;
    for (int64_t i = 0; i < x->shape[0]; i++) {
        for (int64_t j = 0; j < x->shape[1]; j++) {
            int64_t batch = time_first ? j : i, time = time_first ? i : j, from = time;
            int64_t length = ((const int64_t *)lengths->data)[batch];
            int64_t max = time_first ? x->shape[0] : x->shape[1];
            if (length < 0 || length > max)
                return KELP_ERROR(
                    KELP_INVALID_ARGUMENT,
                    "operator 'ReverseSequence': length %lld of batch %lld is outside [0, %lld]",
                    (long long)length, (long long)batch, (long long)max);
            if (time < length)
                from = length - 1 - time;
            int64_t at = time_first ? from * x->shape[1] + j : i * x->shape[1] + from;
            if (bytes > 0)
                memcpy((char *)args->outputs[0]->data + (size_t)(i * x->shape[1] + j) * bytes,
                       (const char *)x->data + (size_t)at * bytes, bytes);
        }
    }
    return NULL;
}
KELP_KERNEL(ReverseSequence, KELP_OP_SERIAL, 0, 0, reverse_reshape, reverse_invoke);
