/* SPDX-License-Identifier: Apache-2.0 */
/* TensorScatter: writes new rows to a cache, at the end of each sequence. Source: ONNX operator
 * specification. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"

typedef struct scatter_plan {
    int64_t prefix, inner;  /* product of the dimensions before and after the axis */
    int64_t rows, new_rows; /* along the axis, of the cache and of the update */
    bool circular;
} scatter_plan;

static kelp_status *scatter_reshape(const void *state, kelp_op_args *args) {
    scatter_plan *p = args->plan;
    int32_t axis = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *cache = args->inputs[0], *update = args->inputs[1];
    const kelp_tensor *at = kelp_ops_in(args, 2);
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", -2), cache->rank, &axis));
    bool fits = update->rank == cache->rank && update->dtype == cache->dtype && axis > 0;
    for (int32_t i = 0; fits && i < cache->rank; i++)
        fits =
            i == axis ? update->shape[i] <= cache->shape[i] : update->shape[i] == cache->shape[i];
    if (!fits)
        return kelp_ops_bad_shapes(args, cache, update, "the update does not match the cache");
    if (at != NULL && (at->dtype != KELP_I64 || kelp_tensor_elements(at) != cache->shape[0]))
        return kelp_ops_bad_shapes(args, cache, at, "expected an index for each image");
    p->prefix = kelp_ops_product(cache->shape, 0, axis);
    p->rows = cache->shape[axis];
    p->new_rows = update->shape[axis];
    p->inner = kelp_ops_product(cache->shape, axis + 1, cache->rank);
    const char *mode = kelp_node_attr_string(args->node, "mode", "linear", NULL);
    p->circular = strcmp(mode, "circular") == 0;
    if (!p->circular && strcmp(mode, "linear") != 0)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "operator 'TensorScatter': attribute 'mode' is '%s': expected 'linear' or "
            "'circular'",
            mode);
    return kelp_ops_set_like(args, 0, cache);
}

static kelp_status *scatter_invoke(const void *state, kelp_op_args *args) {
    const scatter_plan *p = args->plan;
    const kelp_tensor *cache = args->inputs[0], *update = args->inputs[1];
    const int64_t *at = kelp_ops_in(args, 2) != NULL ? args->inputs[2]->data : NULL;
    const kelp_tensor *out = args->outputs[0];
    (void)state;
    KELP_ASSERT(p->new_rows <= p->rows);
    if (out->data != cache->data)
        kelp_ops_memcpy(args->env, out->data, cache->data, kelp_tensor_bytes(cache));
    int64_t each = p->prefix / KELP_MAX((int64_t)1, cache->shape[0]);
    for (int64_t i = 0; i < p->prefix; i++) {
        int64_t first = at != NULL ? at[i / each] : 0;
        if (first < 0 || (!p->circular && first > p->rows - p->new_rows))
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "operator 'TensorScatter': %lld rows from index %lld on exceed a cache "
                "of %lld",
                (long long)p->new_rows, (long long)first, (long long)p->rows);
        for (int64_t j = 0; j < p->new_rows; j++)
            kelp_ops_copy_elements(out->dtype, out->data,
                                   (i * p->rows + (first % p->rows + j) % p->rows) * p->inner,
                                   update->data, (i * p->new_rows + j) * p->inner, p->inner);
    }
    return NULL;
}
KELP_KERNEL(TensorScatter, KELP_OP_INPLACE_0, sizeof(scatter_plan), 0, scatter_reshape,
            scatter_invoke);
