/* SPDX-License-Identifier: Apache-2.0 */
/* Shape, Size, ConstantOfShape, Range, Constant. Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

#include <math.h>

/* ---- Shape, Size ---- */
static void shape_window(const kelp_op_args *args, int32_t rank, int64_t *start, int64_t *end) {
    *start = kelp_node_attr_i64(args->node, "start", 0);
    *end = kelp_node_attr_i64(args->node, "end", rank);
    int64_t *const both[2] = {start, end};
    for (int i = 0; i < 2; i++) {
        if (*both[i] < 0)
            *both[i] += rank;
        *both[i] = KELP_MAX((int64_t)0, KELP_MIN(*both[i], (int64_t)rank));
    }
}

static kelp_status *shape_reshape(const void *state, kelp_op_args *args) {
    int64_t start, end;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    shape_window(args, args->inputs[0]->rank, &start, &end);
    int64_t count = KELP_MAX((int64_t)0, end - start);
    return kelp_ops_set(args, 0, KELP_I64, 1, &count);
}

static kelp_status *shape_invoke(const void *state, kelp_op_args *args) {
    int64_t start, end, *out = args->outputs[0]->data;
    (void)state;
    shape_window(args, args->inputs[0]->rank, &start, &end);
    KELP_ASSERT(args->outputs[0]->shape[0] == KELP_MAX((int64_t)0, end - start));
    for (int64_t i = start; i < end; i++)
        *out++ = args->inputs[0]->shape[i];
    return NULL;
}
KELP_KERNEL(Shape, KELP_OP_SHAPE_ONLY, 0, 1, shape_reshape, shape_invoke);

static kelp_status *size_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    return kelp_ops_set(args, 0, KELP_I64, 0, NULL);
}

static kelp_status *size_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    *(int64_t *)args->outputs[0]->data = kelp_tensor_elements(args->inputs[0]);
    return NULL;
}
KELP_KERNEL(Size, KELP_OP_SHAPE_ONLY, 0, 1, size_reshape, size_invoke);

/* ---- ConstantOfShape ---- */
static kelp_status *constant_reshape(const void *state, kelp_op_args *args) {
    int64_t shape[KELP_MAX_RANK];
    size_t rank = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    if (kelp_ops_defer(args, 0))
        return NULL;
    KELP_TRY(kelp_ops_i64s(args, args->inputs[0], shape, KELP_MAX_RANK, &rank));
    const kelp_tensor *value = kelp_node_attr_tensor(args->node, "value");
    if (value != NULL &&
        (kelp_tensor_elements(value) != 1 || kelp_ops_element_bytes(value->dtype) == 0))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'ConstantOfShape': attribute 'value' must have one element");
    return kelp_ops_set(args, 0, value != NULL ? value->dtype : KELP_F32, (int32_t)rank, shape);
}

static kelp_status *constant_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *value = kelp_node_attr_tensor(args->node, "value"), *y = args->outputs[0];
    uint64_t element[2] = {0, 0};
    size_t size = kelp_ops_element_bytes(y->dtype);
    (void)state;
    KELP_ASSERT(size > 0 && size <= sizeof element);
    if (value != NULL)
        memcpy(element, value->data, size);
    kelp_ops_fill(y->data, size, kelp_tensor_elements(y), element);
    return NULL;
}
KELP_KERNEL(ConstantOfShape, 0, 0, 0, constant_reshape, constant_invoke);

/* ---- Range ---- */
static kelp_status *range_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 3));
    for (int32_t i = 0; i < 3; i++) {
        if (kelp_tensor_elements(args->inputs[i]) != 1)
            return kelp_ops_bad_shapes(args, args->inputs[i], NULL, "expected a scalar");
        if (args->inputs[i]->dtype != args->inputs[0]->dtype)
            return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[i], "the types differ");
        if (kelp_ops_defer(args, i))
            return NULL;
    }
    kelp_dtype dtype = args->inputs[0]->dtype;
    int64_t count = 0;
    if (kelp_ops_is_float(dtype)) {
        double start = kelp_ops_read_f64(args->inputs[0], 0);
        double limit = kelp_ops_read_f64(args->inputs[1], 0);
        double delta = kelp_ops_read_f64(args->inputs[2], 0);
        double steps = ceil((limit - start) / delta);
        if (!(steps <= 0x1p40))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "operator 'Range': from %g to %g by %g has no end", start, limit,
                              delta);
        count = steps > 0 ? (int64_t)steps : 0;
    } else if (dtype == KELP_I64 || dtype == KELP_I32 || dtype == KELP_I16) {
        int64_t start = kelp_ops_read_i64(args->inputs[0], 0);
        int64_t limit = kelp_ops_read_i64(args->inputs[1], 0);
        int64_t delta = kelp_ops_read_i64(args->inputs[2], 0), distance;
        if (delta == 0 || __builtin_sub_overflow(limit, start, &distance) || distance == INT64_MIN)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "operator 'Range': from %lld to %lld by %lld has no end",
                              (long long)start, (long long)limit, (long long)delta);
        if (delta > 0 && distance > 0)
            count = (distance - 1) / delta + 1;
        else if (delta < 0 && distance < 0)
            count = (distance + 1) / delta + 1;
    } else {
        return kelp_ops_bad_type(args, dtype);
    }
    return kelp_ops_set(args, 0, dtype, 1, &count);
}

/* Computes 16-bit floats in the type of attribute stash_type (float or double) and rounds them
 * once.
 */
static void range_halves(const kelp_op_args *args) {
    kelp_tensor *y = args->outputs[0];
    double start = kelp_ops_read_f64(args->inputs[0], 0);
    double delta = kelp_ops_read_f64(args->inputs[2], 0);
    bool wide = kelp_node_attr_i64(args->node, "stash_type", KELP_F32) == KELP_F64;
    for (int64_t i = 0; i < y->shape[0]; i++) {
        double value = start + (double)i * delta;
        kelp_tensor_set_f64(y, i, wide ? value : (double)((float)start + (float)i * (float)delta));
    }
}

#define RANGE_REALS(type)               \
    for (int64_t i = 0; i < count; i++) \
    ((type *)y->data)[i] = (type)(start + (double)i * delta)
#define RANGE_WHOLE(type)                              \
    for (int64_t i = 0; i < count; i++, first += step) \
    ((type *)y->data)[i] = (type)first

static kelp_status *range_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *y = args->outputs[0];
    int64_t count = y->shape[0];
    (void)state;
    KELP_ASSERT(y->dtype == args->inputs[0]->dtype);
    if (y->dtype == KELP_F16 || y->dtype == KELP_BF16) {
        range_halves(args);
        return NULL;
    }
    double start = kelp_ops_read_f64(args->inputs[0], 0);
    double delta = kelp_ops_read_f64(args->inputs[2], 0);
    if (y->dtype == KELP_F32) {
        RANGE_REALS(float);
        return NULL;
    }
    if (y->dtype == KELP_F64) {
        RANGE_REALS(double);
        return NULL;
    }
    uint64_t first = (uint64_t)kelp_ops_read_i64(args->inputs[0], 0);
    uint64_t step = (uint64_t)kelp_ops_read_i64(args->inputs[2], 0);
    if (y->dtype == KELP_I64)
        RANGE_WHOLE(int64_t);
    else if (y->dtype == KELP_I32)
        RANGE_WHOLE(int32_t);
    else
        RANGE_WHOLE(int16_t);
    return NULL;
}
KELP_KERNEL(Range, 0, 0, 0, range_reshape, range_invoke);

/* ---- Constant: loading replaces it by a constant; only graphs that are dispatched node by node
 * have it ---- */
static kelp_status *literal_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    const kelp_tensor *value = kelp_node_attr_tensor(args->node, "value");
    if (value == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "operator 'Constant': only attribute 'value' is supported");
    return kelp_ops_set_like(args, 0, value);
}

static kelp_status *literal_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    const kelp_tensor *value = kelp_node_attr_tensor(args->node, "value");
    if (kelp_tensor_bytes(value) > 0)
        memcpy(args->outputs[0]->data, value->data, kelp_tensor_bytes(value));
    return NULL;
}
KELP_KERNEL(Constant, 0, 0, 0, literal_reshape, literal_invoke);
