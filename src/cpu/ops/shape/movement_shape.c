/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that only change the shape of a tensor. Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"

static kelp_status *copy_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *out = args->outputs[0];
    (void)state;
    KELP_ASSERT(out == NULL || kelp_tensor_bytes(out) == kelp_tensor_bytes(args->inputs[0]));
    if (out != NULL && out->data != args->inputs[0]->data)
        kelp_ops_memcpy(args->env, out->data, args->inputs[0]->data, kelp_tensor_bytes(out));
    return NULL;
}

static kelp_status *set_view(kelp_op_args *args, int32_t rank, const int64_t *shape) {
    const kelp_tensor *x = args->inputs[0];
    int64_t count = 0;
    KELP_ASSERT(rank >= 0 && rank <= KELP_MAX_RANK);
    if (!kelp_shape_elements(rank, shape, &count) || count != kelp_tensor_elements(x)) {
        kelp_tensor requested = {.rank = rank};
        memcpy(requested.shape, shape, (size_t)rank * sizeof *shape);
        return kelp_ops_bad_shapes(args, x, &requested,
                                   "the new shape has another number of elements");
    }
    return kelp_ops_set(args, 0, x->dtype, rank, shape);
}

/* ---- Reshape ---- */
static kelp_status *reshape_Reshape(const void *state, kelp_op_args *args) {
    int64_t shape[KELP_MAX_RANK], known = 1;
    size_t rank = 0, inferred = KELP_MAX_RANK;
    const int64_t *list = NULL;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (kelp_ops_in(args, 1) != NULL) {
        if (kelp_ops_defer(args, 1))
            return NULL;
        KELP_TRY(kelp_ops_i64s(args, args->inputs[1], shape, KELP_MAX_RANK, &rank));
    } else {
        rank = kelp_node_attr_i64s(args->node, "shape", &list);
        if (rank > KELP_MAX_RANK)
            return kelp_ops_bad_shapes(args, x, NULL, "attribute 'shape' is too long");
        if (rank > 0)
            memcpy(shape, list, rank * sizeof *shape);
    }
    bool keep_zero = kelp_node_attr_i64(args->node, "allowzero", 0) != 0;
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] == 0 && !keep_zero) {
            if (i >= (size_t)x->rank)
                return kelp_ops_bad_shapes(args, x, NULL,
                                           "a 0 copies a dimension that the input lacks");
            shape[i] = x->shape[i];
        }
        if (shape[i] < -1 || (shape[i] == -1 && inferred != KELP_MAX_RANK))
            return kelp_ops_bad_shapes(args, x, NULL,
                                       "the new shape has more than one -1, or less than -1");
        if (shape[i] == -1)
            inferred = i;
        else if (!kelp_i64_mul(known, shape[i], &known))
            return kelp_ops_bad_shapes(args, x, NULL, "the new shape is too large");
    }
    if (inferred != KELP_MAX_RANK) {
        int64_t count = kelp_tensor_elements(x);
        if (known == 0 ? count != 0 : count % known != 0)
            return kelp_ops_bad_shapes(args, x, NULL, "the new shape does not divide the elements");
        shape[inferred] = known == 0 ? 0 : count / known;
    }
    return set_view(args, (int32_t)rank, shape);
}
KELP_KERNEL(Reshape, KELP_OP_VIEW, 0, 1, reshape_Reshape, copy_invoke);

/* ---- Squeeze, Unsqueeze ---- */
static kelp_status *reshape_Squeeze(const void *state, kelp_op_args *args) {
    uint32_t mask = 0;
    bool found = false;
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    KELP_TRY(kelp_ops_axes(args, 1, x->rank, &mask, &found));
    if (args->deferred)
        return NULL;
    for (int32_t i = 0; i < x->rank; i++) {
        bool drop = found ? (mask >> i & 1) != 0 : x->shape[i] == 1;
        if (drop && x->shape[i] != 1)
            return kelp_ops_bad_shapes(args, x, NULL, "only dimensions of 1 can be removed");
        if (!drop)
            shape[rank++] = x->shape[i];
    }
    return set_view(args, rank, shape);
}
KELP_KERNEL(Squeeze, KELP_OP_VIEW, 0, 1, reshape_Squeeze, copy_invoke);

static kelp_status *reshape_Unsqueeze(const void *state, kelp_op_args *args) {
    const int64_t *list = NULL;
    int64_t shape[KELP_MAX_RANK];
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    int64_t added = (int64_t)kelp_node_attr_i64s(args->node, "axes", &list);
    if (kelp_ops_in(args, 1) != NULL)
        added = kelp_tensor_elements(args->inputs[1]);
    if (x->rank + added > KELP_MAX_RANK)
        return kelp_ops_bad_shapes(args, x, NULL, "the result has too many dimensions");
    int32_t rank = x->rank + (int32_t)added, from = 0;
    uint32_t mask = 0;
    bool found = false;
    KELP_TRY(kelp_ops_axes(args, 1, rank, &mask, &found));
    if (args->deferred)
        return NULL;
    for (int32_t i = 0; i < rank; i++)
        shape[i] = (mask >> i & 1) != 0 ? 1 : x->shape[from++];
    return set_view(args, rank, shape);
}
KELP_KERNEL(Unsqueeze, KELP_OP_VIEW, 0, 1, reshape_Unsqueeze, copy_invoke);

/* ---- Flatten ---- */
static kelp_status *reshape_Flatten(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    int64_t axis = kelp_node_attr_i64(args->node, "axis", 1);
    if (axis < -x->rank || axis > x->rank)
        return kelp_ops_bad_shapes(args, x, NULL, "the axis is outside the tensor");
    if (axis < 0)
        axis += x->rank;
    int64_t shape[2] = {kelp_ops_product(x->shape, 0, (int32_t)axis),
                        kelp_ops_product(x->shape, (int32_t)axis, x->rank)};
    return set_view(args, 2, shape);
}
KELP_KERNEL(Flatten, KELP_OP_VIEW, 0, 1, reshape_Flatten, copy_invoke);

/* ---- Identity ---- */
static kelp_status *reshape_Identity(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    return kelp_ops_set_like(args, 0, args->inputs[0]);
}
KELP_KERNEL(Identity, KELP_OP_VIEW | KELP_OP_LISTS, 0, 1, reshape_Identity, copy_invoke);
