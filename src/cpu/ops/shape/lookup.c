/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fused Lookup (indices, table[rows + 1, width]): a row of the table for each index; its last
 * row for an index that is out of range. Attributes: wrap, negative indices count from the end;
 * last_axis, the row replaces the last axis of the indices, whose size is 1. kelp_pass_lookup
 * creates it.
 */
#include "base/assert.h"
#include "cpu/ops/kernel.h"

typedef struct lookup_plan {
    int64_t rows, width; /* rows except the last */
    bool wrap;
    const kelp_op_args *args;
} lookup_plan;

static kelp_status *lookup_reshape(const void *state, kelp_op_args *args) {
    lookup_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *indices = args->inputs[0], *table = args->inputs[1];
    bool last = kelp_node_attr_i64(args->node, "last_axis", 0) != 0;
    int32_t rank = indices->rank + !last;
    if ((indices->dtype != KELP_I32 && indices->dtype != KELP_I64) || table->dtype != KELP_F32)
        return kelp_ops_bad_type(args, table->dtype != KELP_F32 ? table->dtype : indices->dtype);
    if (table->rank != 2 || table->shape[0] < 1 || rank < 1 || rank > KELP_MAX_RANK ||
        (last && indices->shape[rank - 1] != 1))
        return kelp_ops_bad_shapes(
            args, indices, table,
            "expected a table of rows, and indices whose last dimension is 1");
    memcpy(shape, indices->shape, sizeof shape);
    shape[rank - 1] = table->shape[1];
    p->rows = table->shape[0] - 1;
    p->width = table->shape[1];
    p->wrap = kelp_node_attr_i64(args->node, "wrap", 0) != 0;
    return kelp_ops_set(args, 0, KELP_F32, rank, shape);
}

static void lookup_range(void *userp, int64_t begin, int64_t end, int worker) {
    const lookup_plan *p = userp;
    const kelp_tensor *indices = p->args->inputs[0];
    const float *table = p->args->inputs[1]->data;
    float *y = p->args->outputs[0]->data;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t index = indices->dtype == KELP_I32 ? ((const int32_t *)indices->data)[i]
                                                   : ((const int64_t *)indices->data)[i];
        if (p->wrap && index < 0 && index >= -p->rows)
            index += p->rows;
        if (index < 0 || index >= p->rows)
            index = p->rows;
        memcpy(y + i * p->width, table + index * p->width, (size_t)p->width * sizeof *y);
    }
}

static kelp_status *lookup_invoke(const void *state, kelp_op_args *args) {
    lookup_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->rows >= 0 && p->rows == args->inputs[1]->shape[0] - 1);
    p->args = args;
    if (p->width > 0)
        kelp_op_parallel(args->env, kelp_tensor_elements(args->inputs[0]),
                         kelp_cpu_grain(2 * KELP_GRAIN_ELEMENTS, p->width), lookup_range, p);
    return NULL;
}
KELP_KERNEL(Lookup, 0, sizeof(lookup_plan), 0, lookup_reshape, lookup_invoke);
