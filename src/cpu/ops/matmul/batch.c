/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of batched matrix multiplications. */
#include "cpu/ops/matmul/batch.h"

#include "base/assert.h"

/* Computes the strides over the batch, in matrices. */
static void batch_strides(const kelp_tensor *tensor, int32_t matrix_axes, const kelp_batch *p,
                          int64_t *out) {
    int32_t rank = tensor->rank - matrix_axes, shift = p->batch_rank - rank;
    int64_t stride = 1;
    for (int32_t i = p->batch_rank; i-- > 0;) {
        int64_t dim = i >= shift ? tensor->shape[i - shift] : 1;
        out[i] = dim == 1 ? 0 : stride;
        stride *= dim;
    }
}

/* One-dimensional operands are a row or a column, and the result lacks that dimension. */
kelp_status *kelp_batch_init(kelp_batch *p, const kelp_op_args *args, const kelp_tensor *a,
                             const kelp_tensor *b, int32_t *out_rank, int64_t *out_shape) {
    if (a->rank == 0 || b->rank == 0)
        return kelp_ops_bad_shapes(args, a, b, "an operand is a scalar");
    int32_t a_axes = KELP_MIN(a->rank, 2), b_axes = KELP_MIN(b->rank, 2);
    p->m = a->rank > 1 ? a->shape[a->rank - 2] : 1;
    p->k = a->shape[a->rank - 1];
    p->n = b->rank > 1 ? b->shape[b->rank - 1] : 1;
    if (p->k != b->shape[b->rank > 1 ? b->rank - 2 : 0])
        return kelp_ops_bad_shapes(args, a, b, "the inner dimensions differ");
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = a->rank - a_axes;
    memcpy(shape, a->shape, sizeof shape);
    if (!kelp_ops_broadcast_shape(&rank, shape, b->rank - b_axes, b->shape))
        return kelp_ops_bad_shapes(args, a, b, "the batch dimensions do not broadcast");
    if (b->rank <= 2 && a->rank > 1) { /* one B for all rows of A: one large GEMM */
        p->m = kelp_ops_product(a->shape, 0, a->rank - 1);
        p->batch_rank = 0;
        p->batch = 1;
    } else {
        p->batch_rank = rank;
        memcpy(p->batch_shape, shape, sizeof shape);
        p->batch = kelp_ops_product(shape, 0, rank);
        batch_strides(a, a_axes, p, p->a_strides);
        batch_strides(b, b_axes, p, p->b_strides);
    }
    if (a->rank > 1)
        shape[rank++] = a->shape[a->rank - 2];
    if (b->rank > 1)
        shape[rank++] = p->n;
    int64_t elements = 0;
    if (!kelp_shape_elements(rank, shape, &elements))
        return kelp_ops_bad_shapes(args, a, b, "the result is too large");
    *out_rank = rank;
    memcpy(out_shape, shape, (size_t)rank * sizeof *shape);
    return NULL;
}

int64_t kelp_batch_offset(const kelp_batch *p, const int64_t *strides, int64_t index) {
    int64_t offset = 0;
    KELP_ASSERT(index >= 0 && index < p->batch);
    for (int32_t i = p->batch_rank; i-- > 0;) {
        offset += index % p->batch_shape[i] * strides[i];
        index /= p->batch_shape[i];
    }
    return offset;
}
