/* SPDX-License-Identifier: Apache-2.0 */
/* Concat, Split, Tile, Expand. Source: ONNX operator specification. */
#include "ops/kernel.h"

/* ---- Concat ---- */
static kelp_status *concat_reshape(const void *state, kelp_op_args *args) {
    int64_t shape[KELP_MAX_RANK];
    int32_t axis = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, KELP_MAX(1, args->input_count)));
    const kelp_tensor *first = args->inputs[0];
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 1), first->rank, &axis));
    if (kelp_ops_element_bytes(first->dtype) == 0)
        return kelp_ops_bad_type(args, first->dtype);
    memcpy(shape, first->shape, sizeof shape);
    for (int32_t i = 1; i < args->input_count; i++) {
        const kelp_tensor *next = args->inputs[i];
        if (next->rank != first->rank || next->dtype != first->dtype)
            return kelp_ops_bad_shapes(args, first, next, "ranks or types differ");
        for (int32_t k = 0; k < first->rank; k++)
            if (k != axis && next->shape[k] != first->shape[k])
                return kelp_ops_bad_shapes(args, first, next, "extents off the axis differ");
        if (!kelp_i64_add(shape[axis], next->shape[axis], &shape[axis]))
            return kelp_ops_bad_shapes(args, first, next, "the result is too large");
    }
    return kelp_ops_set(args, 0, first->dtype, first->rank, shape);
}

static kelp_status *concat_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *out = args->outputs[0];
    int64_t to[KELP_MAX_RANK], from[KELP_MAX_RANK];
    size_t size = kelp_ops_element_bytes(out->dtype);
    int32_t axis = 0;
    (void)state;
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 1), out->rank, &axis));
    kelp_ops_strides(out->rank, out->shape, to);
    int64_t at = 0;
    for (int32_t i = 0; i < args->input_count; i++) {
        const kelp_tensor *x = args->inputs[i];
        kelp_ops_strides(x->rank, x->shape, from);
        kelp_ops_copy(args->env, size, x->rank, x->shape,
                      (char *)out->data + (size_t)(at * to[axis]) * size, to, x->data, from);
        at += x->shape[axis];
    }
    return NULL;
}
KELP_KERNEL(Concat, 0, 0, UINT32_MAX, concat_reshape, concat_invoke);

/* ---- Split ---- */
typedef struct split_plan {
    int32_t axis;
} split_plan;

/* Extent of part `index` along the axis. */
static kelp_status *part_extent(kelp_op_args *args, int64_t total, int32_t index, int64_t *out) {
    const kelp_tensor *sizes = kelp_ops_in(args, 1);
    const int64_t *list = NULL;
    size_t count = kelp_node_attr_i64s(args->node, "split", &list);
    if (sizes != NULL || count > 0) {
        int64_t given = sizes != NULL ? kelp_tensor_elements(sizes) : (int64_t)count, sum = 0;
        for (int64_t i = 0; i < given; i++) {
            int64_t part = sizes != NULL ? kelp_ops_read_i64(sizes, i) : list[i];
            if (part < 0 || !kelp_i64_add(sum, part, &sum))
                sum = -1;
        }
        if (given != args->output_count || sum != total)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "Split: %lld sizes must add up to %lld for %d outputs",
                              (long long)given, (long long)total, args->output_count);
        *out = sizes != NULL ? kelp_ops_read_i64(sizes, index) : list[index];
        return NULL;
    }
    int64_t parts = kelp_node_attr_i64(args->node, "num_outputs", args->output_count);
    if (parts < args->output_count || parts < 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "Split: num_outputs is %lld, but there are %d outputs", (long long)parts,
                          args->output_count);
    int64_t each = (total + parts - 1) / parts;
    *out = KELP_MAX(0, KELP_MIN(each, total - index * each));
    return NULL;
}

static kelp_status *split_reshape(const void *state, kelp_op_args *args) {
    split_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    (void)state;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (kelp_ops_element_bytes(x->dtype) == 0)
        return kelp_ops_bad_type(args, x->dtype);
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 0), x->rank, &p->axis));
    if (kelp_ops_in(args, 1) != NULL && kelp_ops_defer(args, 1))
        return NULL;
    if (kelp_ops_in(args, 1) != NULL && args->inputs[1]->dtype != KELP_I64)
        return kelp_ops_bad_type(args, args->inputs[1]->dtype);
    memcpy(shape, x->shape, sizeof shape);
    for (int32_t i = 0; i < args->output_count; i++) {
        KELP_TRY(part_extent(args, x->shape[p->axis], i, &shape[p->axis]));
        KELP_TRY(kelp_ops_set(args, i, x->dtype, x->rank, shape));
    }
    return NULL;
}

static kelp_status *split_invoke(const void *state, kelp_op_args *args) {
    const split_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0];
    int64_t from[KELP_MAX_RANK], to[KELP_MAX_RANK], shape[KELP_MAX_RANK], at = 0;
    size_t size = kelp_ops_element_bytes(x->dtype);
    (void)state;
    kelp_ops_strides(x->rank, x->shape, from);
    memcpy(shape, x->shape, sizeof shape);
    for (int32_t i = 0; i < args->output_count; i++) {
        KELP_TRY(part_extent(args, x->shape[p->axis], i, &shape[p->axis]));
        kelp_ops_strides(x->rank, shape, to);
        if (args->outputs[i] != NULL)
            kelp_ops_copy(args->env, size, x->rank, shape, args->outputs[i]->data, to,
                          (const char *)x->data + (size_t)(at * from[p->axis]) * size, from);
        at += shape[p->axis];
    }
    return NULL;
}
KELP_KERNEL(Split, 0, sizeof(split_plan), 1, split_reshape, split_invoke);

/* ---- Expand ---- */
static kelp_status *expand_reshape(const void *state, kelp_op_args *args) {
    int64_t shape[KELP_MAX_RANK];
    size_t rank = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0];
    if (kelp_ops_defer(args, 1))
        return NULL;
    KELP_TRY(kelp_ops_i64s(args, args->inputs[1], shape, KELP_MAX_RANK, &rank));
    int32_t out_rank = (int32_t)rank;
    if (kelp_ops_element_bytes(x->dtype) == 0)
        return kelp_ops_bad_type(args, x->dtype);
    if (!kelp_ops_broadcast_shape(&out_rank, shape, x->rank, x->shape))
        return kelp_ops_bad_shapes(args, x, NULL, "the input does not broadcast to the shape");
    return kelp_ops_set(args, 0, x->dtype, out_rank, shape);
}
static kelp_status *expand_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    int64_t own[KELP_MAX_RANK], from[KELP_MAX_RANK], to[KELP_MAX_RANK];
    int32_t missing = y->rank - x->rank;
    (void)state;
    kelp_ops_strides(x->rank, x->shape, own);
    kelp_ops_strides(y->rank, y->shape, to);
    for (int32_t i = 0; i < y->rank; i++)
        from[i] = i < missing || x->shape[i - missing] == 1 ? 0 : own[i - missing];
    kelp_ops_copy(args->env, kelp_ops_element_bytes(x->dtype), y->rank, y->shape, y->data, to,
                  x->data, from);
    return NULL;
}
KELP_KERNEL(Expand, 0, 0, 1, expand_reshape, expand_invoke);

/* ---- Tile: each axis in two, repeats before extent ---- */
/* Before opset 6: inputs "tiles" and "axis", one number each, of the tensor's own type. */
static kelp_status *read_tiles(kelp_op_args *args, int64_t *repeats, size_t *out_count) {
    const kelp_tensor *x = args->inputs[0];
    int32_t axis;
    KELP_TRY(kelp_ops_check(args, 3));
    if (kelp_ops_defer(args, 1) || kelp_ops_defer(args, 2))
        return NULL;
    if (kelp_tensor_elements(args->inputs[1]) != 1 || kelp_tensor_elements(args->inputs[2]) != 1)
        return kelp_ops_bad_shapes(args, args->inputs[1], args->inputs[2], "expected two numbers");
    KELP_TRY(kelp_ops_axis(args, kelp_ops_read_i64(args->inputs[2], 0), x->rank, &axis));
    for (int32_t i = 0; i < x->rank; i++)
        repeats[i] = i == axis ? kelp_ops_read_i64(args->inputs[1], 0) : 1;
    *out_count = (size_t)x->rank;
    return NULL;
}

static kelp_status *tile_reshape(const void *state, kelp_op_args *args) {
    int64_t repeats[KELP_MAX_RANK], shape[KELP_MAX_RANK];
    size_t count = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0];
    if (kelp_ops_version(args) < 6)
        KELP_TRY(read_tiles(args, repeats, &count));
    else if (!kelp_ops_defer(args, 1))
        KELP_TRY(kelp_ops_i64s(args, args->inputs[1], repeats, KELP_MAX_RANK, &count));
    KELP_OPS_TRY_DEFER(args);
    if (kelp_ops_element_bytes(x->dtype) == 0)
        return kelp_ops_bad_type(args, x->dtype);
    if (count != (size_t)x->rank || x->rank * 2 > KELP_MAX_RANK)
        return kelp_ops_bad_shapes(args, x, NULL, "needs one repeat for each of at most 8 axes");
    for (int32_t i = 0; i < x->rank; i++)
        if (repeats[i] < 0 || !kelp_i64_mul(x->shape[i], repeats[i], &shape[i]))
            return kelp_ops_bad_shapes(args, x, NULL, "a repeat is negative or too large");
    return kelp_ops_set(args, 0, x->dtype, x->rank, shape);
}
static kelp_status *tile_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    int64_t own[KELP_MAX_RANK], shape[KELP_MAX_RANK], from[KELP_MAX_RANK], to[KELP_MAX_RANK];
    (void)state;
    if (kelp_tensor_elements(y) == 0)
        return NULL;
    kelp_ops_strides(x->rank, x->shape, own);
    for (int32_t i = 0; i < x->rank; i++) {
        shape[2 * i] = y->shape[i] / x->shape[i];
        shape[2 * i + 1] = x->shape[i];
        from[2 * i] = 0;
        from[2 * i + 1] = own[i];
    }
    kelp_ops_strides(2 * x->rank, shape, to);
    kelp_ops_copy(args->env, kelp_ops_element_bytes(x->dtype), 2 * x->rank, shape, y->data, to,
                  x->data, from);
    return NULL;
}
KELP_KERNEL(Tile, 0, 0, 1, tile_reshape, tile_invoke);
