/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp::SumTo(x, like): sums x over the axes along which `like` was broadcast to the shape of x, as
 * in the derivative of a broadcast operator. Sums are in double.
 */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

typedef struct sum_to_plan {
    int64_t count;                  /* elements of the result */
    int64_t terms;                  /* elements of x in each sum */
    int32_t kept_rank, summed_rank; /* numbers of axes of x */
    int64_t kept[KELP_MAX_RANK], kept_strides[KELP_MAX_RANK];
    int64_t summed[KELP_MAX_RANK], summed_strides[KELP_MAX_RANK];
    const kelp_op_args *args;
} sum_to_plan;

static kelp_status *sum_to_reshape(const void *state, kelp_op_args *args) {
    sum_to_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *like = args->inputs[1];
    int64_t strides[KELP_MAX_RANK];
    if (!kelp_ops_is_float(x->dtype))
        return kelp_ops_bad_type(args, x->dtype);
    if (like->rank > x->rank)
        return kelp_ops_bad_shapes(args, x, like, "the second does not broadcast to the first");
    kelp_ops_strides(x->rank, x->shape, strides);
    p->kept_rank = p->summed_rank = 0;
    for (int32_t i = 0; i < x->rank; i++) {
        int32_t axis = i - (x->rank - like->rank);
        int64_t dim = axis >= 0 ? like->shape[axis] : 1;
        if (dim != x->shape[i] && dim != 1)
            return kelp_ops_bad_shapes(args, x, like, "the second does not broadcast to the first");
        bool keep = axis >= 0 && dim == x->shape[i];
        int32_t at = keep ? p->kept_rank++ : p->summed_rank++;
        (keep ? p->kept : p->summed)[at] = x->shape[i];
        (keep ? p->kept_strides : p->summed_strides)[at] = strides[i];
    }
    p->count = kelp_ops_product(p->kept, 0, p->kept_rank);
    p->terms = kelp_ops_product(p->summed, 0, p->summed_rank);
    return kelp_ops_set(args, 0, x->dtype, like->rank, like->shape);
}

/* Returns the offset of element `index` of a strided array. */
static int64_t offset_of(int64_t index, int32_t rank, const int64_t *shape,
                         const int64_t *strides) {
    int64_t at = 0;
    KELP_ASSERT(index >= 0);
    for (int32_t i = rank - 1; i >= 0; i--) {
        at += index % shape[i] * strides[i];
        index /= shape[i];
    }
    return at;
}

static void sum_range(void *userp, int64_t begin, int64_t end, int worker) {
    const sum_to_plan *p = userp;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = offset_of(i, p->kept_rank, p->kept, p->kept_strides);
        double sum = 0;
        for (int64_t k = 0; k < p->terms; k++)
            sum += kelp_ops_read_f64(
                p->args->inputs[0],
                first + offset_of(k, p->summed_rank, p->summed, p->summed_strides));
        kelp_tensor_set_f64(p->args->outputs[0], i, sum);
    }
}

static kelp_status *sum_to_invoke(const void *state, kelp_op_args *args) {
    sum_to_plan *p = args->plan;
    (void)state;
    p->args = args;
    KELP_ASSERT(p->kept_rank + p->summed_rank == args->inputs[0]->rank);
    if (p->summed_rank == 0)
        kelp_ops_memcpy(args->env, args->outputs[0]->data, args->inputs[0]->data,
                        kelp_tensor_bytes(args->inputs[0]));
    else
        kelp_op_parallel(args->env, p->count, kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 4, p->terms),
                         sum_range, p);
    return NULL;
}
KELP_KERNEL(SumTo, 0, sizeof(sum_to_plan), 0, sum_to_reshape, sum_to_invoke);
