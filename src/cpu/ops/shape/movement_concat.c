/* SPDX-License-Identifier: Apache-2.0 */
/* Concat, Split. Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"

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
            return kelp_ops_bad_shapes(args, first, next, "the ranks or types differ");
        for (int32_t k = 0; k < first->rank; k++)
            if (k != axis && next->shape[k] != first->shape[k])
                return kelp_ops_bad_shapes(args, first, next,
                                           "dimensions other than the axis differ");
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
    KELP_ASSERT(at == out->shape[axis]);
    return NULL;
}
KELP_KERNEL(Concat, 0, 0, UINT32_MAX, concat_reshape, concat_invoke);

/* ---- Split ---- */
typedef struct split_plan {
    int32_t axis;
} split_plan;

/* Computes the size of part `index` along the axis. */
static kelp_status *part_size(kelp_op_args *args, int64_t total, int32_t index, int64_t *out) {
    const kelp_tensor *sizes = kelp_ops_in(args, 1);
    const int64_t *list = NULL;
    size_t count = kelp_node_attr_i64s(args->node, "split", &list);
    if (sizes != NULL || count > 0) {
        int64_t listed = sizes != NULL ? kelp_tensor_elements(sizes) : (int64_t)count, sum = 0;
        for (int64_t i = 0; i < listed; i++) {
            int64_t part = sizes != NULL ? kelp_ops_read_i64(sizes, i) : list[i];
            if (part < 0 || !kelp_i64_add(sum, part, &sum))
                sum = -1;
        }
        if (listed != args->output_count || sum != total)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "operator 'Split': %lld sizes must add up to %lld for %d outputs",
                              (long long)listed, (long long)total, args->output_count);
        *out = sizes != NULL ? kelp_ops_read_i64(sizes, index) : list[index];
        return NULL;
    }
    int64_t parts = kelp_node_attr_i64(args->node, "num_outputs", args->output_count);
    if (parts < args->output_count || parts < 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'Split': num_outputs is %lld, but there are %d outputs",
                          (long long)parts, args->output_count);
    int64_t each = total / parts + (total % parts != 0);
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
        KELP_TRY(part_size(args, x->shape[p->axis], i, &shape[p->axis]));
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
        KELP_TRY(part_size(args, x->shape[p->axis], i, &shape[p->axis]));
        kelp_ops_strides(x->rank, shape, to);
        if (args->outputs[i] != NULL)
            kelp_ops_copy(args->env, size, x->rank, shape, args->outputs[i]->data, to,
                          (const char *)x->data + (size_t)(at * from[p->axis]) * size, from);
        at += shape[p->axis];
        KELP_ASSERT(at <= x->shape[p->axis]);
    }
    return NULL;
}
KELP_KERNEL(Split, 0, sizeof(split_plan), 1, split_reshape, split_invoke);
