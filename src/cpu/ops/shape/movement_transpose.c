/* SPDX-License-Identifier: Apache-2.0 */
/* Transpose; DepthToSpace and SpaceToDepth, which are transpositions of a reshaped tensor. Source:
 * ONNX operator specification. */
#include "base/assert.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/variant.h"

/* Transposes input 0, as a tensor of `shape`, to output 0. */
static kelp_status *run(const kelp_op_args *args, int32_t rank, const int64_t *shape,
                        const int64_t *perm) {
    int64_t in_strides[KELP_MAX_RANK], from[KELP_MAX_RANK], to[KELP_MAX_RANK], out[KELP_MAX_RANK];
    const kelp_tensor *x = args->inputs[0];
    KELP_ASSERT(kelp_tensor_bytes(x) == kelp_tensor_bytes(args->outputs[0]));
    kelp_ops_strides(rank, shape, in_strides);
    for (int32_t i = 0; i < rank; i++) {
        KELP_ASSERT(perm[i] >= 0 && perm[i] < rank);
        out[i] = shape[perm[i]];
        from[i] = in_strides[perm[i]];
    }
    kelp_ops_strides(rank, out, to);
    kelp_ops_copy(args->env, kelp_ops_element_bytes(x->dtype), rank, out, args->outputs[0]->data,
                  to, x->data, from);
    return NULL;
}

static kelp_status *read_perm(const kelp_op_args *args, int64_t *perm) {
    const kelp_tensor *x = args->inputs[0];
    const int64_t *list = NULL;
    size_t count = kelp_node_attr_i64s(args->node, "perm", &list);
    uint32_t seen = 0;
    for (int32_t i = 0; i < x->rank; i++)
        perm[i] = x->rank - 1 - i;
    if (kelp_node_attr_type(args->node, "perm") == KELP_ATTR_NONE)
        return NULL;
    if (count != (size_t)x->rank)
        return kelp_ops_bad_shapes(args, x, NULL, "attribute 'perm' must contain each axis");
    for (size_t i = 0; i < count; i++) {
        int32_t axis = 0;
        KELP_TRY(kelp_ops_axis(args, list[i], x->rank, &axis));
        seen |= 1u << axis;
        perm[i] = axis;
    }
    if (seen != (1u << count) - 1)
        return kelp_ops_bad_shapes(args, x, NULL, "attribute 'perm' must contain each axis once");
    return NULL;
}

static kelp_status *transpose_reshape(const void *state, kelp_op_args *args) {
    int64_t perm[KELP_MAX_RANK], shape[KELP_MAX_RANK];
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (kelp_ops_element_bytes(x->dtype) == 0)
        return kelp_ops_bad_type(args, x->dtype);
    KELP_TRY(read_perm(args, perm));
    for (int32_t i = 0; i < x->rank; i++)
        shape[i] = x->shape[perm[i]];
    return kelp_ops_set(args, 0, x->dtype, x->rank, shape);
}
static kelp_status *transpose_invoke(const void *state, kelp_op_args *args) {
    int64_t perm[KELP_MAX_RANK];
    (void)state;
    KELP_TRY(read_perm(args, perm));
    return run(args, args->inputs[0]->rank, args->inputs[0]->shape, perm);
}
KELP_CONVERTED_PHASES(transpose, kelp_unpacked, 0, transpose_reshape, transpose_invoke)
KELP_KERNEL(Transpose, 0, KELP_CONVERTED_PLAN(0), 1, transpose_reshape_any, transpose_invoke_any);

static kelp_status *blocks_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    int64_t b = kelp_node_attr_i64(args->node, "blocksize", 0);
    bool to_space = kelp_op_variant_of(args->node) == KELP_VARIANT_DEPTH_TO_SPACE;
    if (kelp_ops_element_bytes(x->dtype) == 0)
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank != 4 || b < 1 || b > 65536)
        return kelp_ops_bad_shapes(args, x, NULL,
                                   "expected rank 4, and 'blocksize' from 1 to 65536");
    if (to_space ? x->shape[1] % (b * b) != 0 : x->shape[2] % b != 0 || x->shape[3] % b != 0)
        return kelp_ops_bad_shapes(args, x, NULL, "'blocksize' does not divide the shape");
    int64_t shape[4] = {x->shape[0], x->shape[1] / (b * b), x->shape[2] / b, x->shape[3] / b};
    bool fits = to_space ? kelp_i64_mul(x->shape[2], b, &shape[2]) &&
                               kelp_i64_mul(x->shape[3], b, &shape[3])
                         : kelp_i64_mul(x->shape[1], b * b, &shape[1]);
    return fits ? kelp_ops_set(args, 0, x->dtype, 4, shape)
                : kelp_ops_bad_shapes(args, x, NULL, "the result is too large");
}
static kelp_status *to_space_invoke(const void *state, kelp_op_args *args) {
    static const int64_t dcr[6] = {0, 3, 4, 1, 5, 2}, crd[6] = {0, 1, 4, 2, 5, 3};
    const int64_t *s = args->inputs[0]->shape;
    int64_t b = kelp_node_attr_i64(args->node, "blocksize", 0);
    bool by_depth = strcmp(kelp_node_attr_string(args->node, "mode", "DCR", NULL), "CRD") != 0;
    int64_t deep[6] = {s[0], b, b, s[1] / (b * b), s[2], s[3]};
    int64_t column[6] = {s[0], s[1] / (b * b), b, b, s[2], s[3]};
    (void)state;
    return run(args, 6, by_depth ? deep : column, by_depth ? dcr : crd);
}
static kelp_status *to_depth_invoke(const void *state, kelp_op_args *args) {
    static const int64_t dcr[6] = {0, 3, 5, 1, 2, 4}, crd[6] = {0, 1, 3, 5, 2, 4};
    const int64_t *s = args->inputs[0]->shape;
    int64_t b = kelp_node_attr_i64(args->node, "blocksize", 0);
    int64_t shape[6] = {s[0], s[1], s[2] / b, b, s[3] / b, b};
    bool by_depth = strcmp(kelp_node_attr_string(args->node, "mode", "DCR", NULL), "CRD") != 0;
    (void)state;
    return run(args, 6, shape, by_depth ? dcr : crd);
}
KELP_KERNEL(DepthToSpace, 0, 0, 1, blocks_reshape, to_space_invoke);
KELP_KERNEL(SpaceToDepth, 0, 0, 1, blocks_reshape, to_depth_invoke);
