/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax, ArgMin. Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/ops/reduce/ordered.h"

typedef struct arg_plan {
    int64_t outer, length, inner;
    bool min, last;
    kelp_ordered_type type;
    const kelp_tensor *x;
    int64_t *y;
} arg_plan;

static kelp_status *arg_reshape(const void *state, kelp_op_args *args) {
    arg_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    int32_t axis = 0, rank = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 0), x->rank, &axis));
    if (!kelp_ordered_find_type(x->dtype, &p->type))
        return kelp_ops_bad_type(args, x->dtype);
    if (x->shape[axis] == 0)
        return kelp_ops_bad_shapes(args, x, NULL, "the dimension of the axis is 0");
    p->outer = kelp_ops_product(x->shape, 0, axis);
    p->length = x->shape[axis];
    p->inner = kelp_ops_product(x->shape, axis + 1, x->rank);
    p->last = kelp_node_attr_i64(args->node, "select_last_index", 0) != 0;
    for (int32_t i = 0; i < x->rank; i++) {
        if (i != axis)
            shape[rank++] = x->shape[i];
        else if (kelp_node_attr_i64(args->node, "keepdims", 1) != 0)
            shape[rank++] = 1;
    }
    return kelp_ops_set(args, 0, KELP_I64, rank, shape);
}

/* Finds the position in one line of adjacent elements: first the block of elements with the best
 * value, then the position in it. */
static int64_t find_in_line(const arg_plan *p, int64_t first) {
    kelp_ordered_block block;
    kelp_ordered_value best, value;
    int64_t start = 0;
    for (int64_t i = 0; i < p->length; i += KELP_ORDERED_BLOCK) {
        int64_t count = KELP_MIN(p->length - i, (int64_t)KELP_ORDERED_BLOCK);
        const void *x = kelp_ordered_load(&p->type, p->x, first + i, count, &block);
        value = kelp_ordered_best(&p->type, x, count, p->min);
        if (i > 0 && !kelp_ordered_wins(&p->type, &value, &best, p->min, p->last))
            continue;
        best = value;
        start = i;
    }
    int64_t count = KELP_MIN(p->length - start, (int64_t)KELP_ORDERED_BLOCK);
    const void *x = kelp_ordered_load(&p->type, p->x, first + start, count, &block);
    return start + kelp_ordered_position(&p->type, x, count, &best, p->last);
}

/* Finds the positions of `count` adjacent lines, at most KELP_ORDERED_BLOCK. */
static void find_in_columns(const arg_plan *p, int64_t first, int64_t count, int64_t *y) {
    kelp_ordered_block values, block;
    const kelp_reduce_kernels *kernels = kelp_reduce_kernels_get();
    bool direct = p->type.dtype == p->x->dtype;
    int64_t rows = direct ? p->length - 1 : 1;
    const void *x = kelp_ordered_load(&p->type, p->x, first, count, &block);
    memcpy(&values, x, (size_t)count * p->type.bytes);
    memset(y, 0, (size_t)count * sizeof *y);
    for (int64_t row = 1; row < p->length; row += rows) {
        rows = KELP_MIN(rows, (int64_t)INT32_MAX);
        rows = KELP_MIN(rows, p->length - row);
        int64_t at = first + row * p->inner;
        x = direct ? (const char *)p->x->data + (size_t)at * p->type.bytes
                   : kelp_ordered_load(&p->type, p->x, at, count, &block);
        kernels->find[p->type.fold](x, rows, p->inner, count, p->min, p->last, row, &values, y);
    }
}

static void find_range(void *userp, int64_t begin, int64_t end, int worker) {
    const arg_plan *p = userp;
    (void)worker;
    for (int64_t i = begin, count = 1; i < end; i += count) {
        int64_t column = i % p->inner, first = i / p->inner * p->length * p->inner + column;
        if (p->inner == 1) {
            p->y[i] = find_in_line(p, first);
            continue;
        }
        count = KELP_MIN(KELP_MIN(p->inner - column, end - i), (int64_t)KELP_ORDERED_BLOCK);
        find_in_columns(p, first, count, p->y + i);
    }
}

static kelp_status *find(kelp_op_args *args, bool min) {
    arg_plan *p = args->plan;
    KELP_ASSERT(p->length > 0);
    p->min = min;
    p->x = args->inputs[0];
    p->y = args->outputs[0]->data;
    kelp_op_parallel(args->env, p->outer * p->inner,
                     kelp_cpu_grain(2 * KELP_GRAIN_ELEMENTS, p->length), find_range, p);
    return NULL;
}

static kelp_status *argmax_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    return find(args, false);
}

static kelp_status *argmin_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    return find(args, true);
}
KELP_KERNEL(ArgMax, 0, sizeof(arg_plan), 0, arg_reshape, argmax_invoke);
KELP_KERNEL(ArgMin, 0, sizeof(arg_plan), 0, arg_reshape, argmin_invoke);
