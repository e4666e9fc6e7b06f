/* SPDX-License-Identifier: Apache-2.0 */
/* MaxUnpool: writes maxima to their indices, and zeros elsewhere. Source: ONNX operator
 * specification, MaxUnpool-22. */
#include "base/assert.h"
#include "cpu/ops/conv/window.h"

typedef struct unpool_plan {
    int64_t inner[KELP_MAX_RANK]; /* shape to which the indices refer */
} unpool_plan;

static kelp_status *unpool_reshape(const void *state, kelp_op_args *args) {
    unpool_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK], total = 0;
    const int64_t max = (int64_t)1 << 30, *kernel = NULL;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *indices = args->inputs[1];
    if (kelp_ops_element_bytes(x->dtype) == 0 || indices->dtype != KELP_I64)
        return kelp_ops_bad_type(args, indices->dtype != KELP_I64 ? indices->dtype : x->dtype);
    int32_t axes = x->rank - 2;
    if (axes < 1 || kelp_tensor_elements(indices) != kelp_tensor_elements(x) ||
        kelp_node_attr_i64s(args->node, "kernel_shape", &kernel) != (size_t)axes)
        return kelp_ops_bad_shapes(args, x, indices,
                                   "expected one index for each element, and kernel_shape with one "
                                   "size for each spatial axis");
    memcpy(p->inner, x->shape, sizeof p->inner);
    for (int32_t i = 0; i < axes; i++) {
        const kelp_window_range steps = {1, max}, pads = {0, max};
        int64_t kernel_dim = 0, stride = 1, before = 0, after = 0;
        size_t count = (size_t)axes, at = (size_t)i;
        KELP_TRY(kelp_window_attr(args, "kernel_shape", count, at, steps, &kernel_dim));
        KELP_TRY(kelp_window_attr(args, "strides", count, at, steps, &stride));
        KELP_TRY(kelp_window_attr(args, "pads", 2 * count, at, pads, &before));
        KELP_TRY(kelp_window_attr(args, "pads", 2 * count, at + count, pads, &after));
        if (x->shape[i + 2] > max)
            return kelp_ops_bad_shapes(args, x, NULL, "the image is too large");
        p->inner[i + 2] = (x->shape[i + 2] - 1) * stride - before - after + kernel_dim;
        if (p->inner[i + 2] < 0)
            return kelp_ops_bad_shapes(args, x, NULL, "the pads are larger than the result");
    }
    if (!kelp_shape_elements(x->rank, p->inner, &total))
        return kelp_ops_bad_shapes(args, x, NULL, "the result is too large");
    memcpy(shape, p->inner, sizeof shape);
    if (kelp_ops_in(args, 2) != NULL) {
        size_t count = 0;
        if (kelp_ops_defer(args, 2))
            return NULL;
        KELP_TRY(kelp_ops_i64s(args, args->inputs[2], shape, KELP_MAX_RANK, &count));
        if (count != (size_t)x->rank)
            return kelp_ops_bad_shapes(args, x, args->inputs[2],
                                       "expected output_shape with one size for each axis");
    }
    return kelp_ops_set(args, 0, x->dtype, x->rank, shape);
}

static kelp_status *unpool_invoke(const void *state, kelp_op_args *args) {
    const unpool_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    const int64_t *indices = args->inputs[1]->data;
    size_t size = kelp_ops_element_bytes(x->dtype);
    int64_t count = kelp_tensor_elements(x), total = kelp_ops_product(p->inner, 0, x->rank);
    (void)state;
    KELP_ASSERT(y->rank == x->rank && kelp_tensor_elements(args->inputs[1]) == count);
    if (kelp_tensor_bytes(y) > 0)
        memset(y->data, 0, kelp_tensor_bytes(y));
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = indices[i], to = 0, scale = 1;
        bool inside = true;
        if (rest < 0 || rest >= total)
            return KELP_ERROR(
                KELP_OUT_OF_RANGE,
                "operator 'MaxUnpool': index %lld at position %lld is out of range: the result "
                "has %lld elements",
                (long long)rest, (long long)i, (long long)total);
        for (int32_t k = x->rank - 1; k >= 0; k--) {
            int64_t at = rest % p->inner[k];
            rest /= p->inner[k];
            inside = inside && at < y->shape[k];
            to += at * scale;
            scale *= y->shape[k];
        }
        if (inside)
            memcpy((char *)y->data + (size_t)to * size, (const char *)x->data + (size_t)i * size,
                   size);
    }
    return NULL;
}
KELP_KERNEL(MaxUnpool, 0, sizeof(unpool_plan), 0, unpool_reshape, unpool_invoke);
