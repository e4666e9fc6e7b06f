/* SPDX-License-Identifier: Apache-2.0 */
/* SplitToSequence, ConcatFromSequence: conversion between a tensor and a sequence of its slices. */
#include "base/assert.h"
#include "cpu/ops/sequence/sequence.h"

static kelp_status *read_axis(const kelp_list_call *call, int32_t rank, int32_t *out) {
    int64_t axis = kelp_node_attr_i64(call->node, "axis", 0);
    if (axis < -rank || axis >= rank)
        return KELP_LIST_ERROR(call, "axis %lld is outside [-%d, %d)", (long long)axis, rank, rank);
    *out = (int32_t)(axis < 0 ? axis + rank : axis);
    return NULL;
}

/* Copies `count` slices along an axis of length `from_length`, from slice `first`, to an axis of
 * length `to_length`, to slice `to_first`. The other dimensions are equal. */
static void copy_slices(const kelp_tensor *from, int64_t first, kelp_tensor *to, int64_t to_first,
                        int64_t count, int64_t from_length, int64_t to_length, int64_t outer,
                        size_t slice_bytes) {
    size_t bytes = (size_t)count * slice_bytes;
    KELP_ASSERT(first + count <= from_length && to_first + count <= to_length);
    for (int64_t i = 0; i < outer && bytes > 0; i++)
        memcpy((char *)to->data + (size_t)(i * to_length + to_first) * slice_bytes,
               (const char *)from->data + (size_t)(i * from_length + first) * slice_bytes, bytes);
}

/* ---- SplitToSequence ---- */
/* Computes the lengths of the slices of an axis of `length`. */
static kelp_status *read_sizes(const kelp_list_call *call, int64_t length, int64_t **out,
                               int64_t *out_count) {
    const kelp_tensor *split = kelp_list_in(call, 1);
    int64_t each = 1, sum = 0;
    if (split != NULL &&
        ((split->dtype != KELP_I32 && split->dtype != KELP_I64) || split->rank > 1))
        return KELP_LIST_ERROR(call,
                               "split is invalid: expected int32 or int64 of rank 0 or 1, found %s "
                               "of rank %d",
                               kelp_dtype_name(split->dtype), split->rank);
    if (split != NULL && split->rank == 1) {
        *out_count = split->shape[0];
        KELP_TRY(kelp_list_alloc(call, *out_count, sizeof **out, out));
        for (int64_t i = 0; i < *out_count; i++) {
            (*out)[i] = kelp_ops_read_i64(split, i);
            if ((*out)[i] < 0 || (*out)[i] > length - sum)
                return KELP_LIST_ERROR(call,
                                       "split[%lld] is out of range: expected 0 to %lld, found "
                                       "%lld",
                                       (long long)i, (long long)(length - sum),
                                       (long long)(*out)[i]);
            sum += (*out)[i];
        }
        if (sum != length)
            return KELP_LIST_ERROR(call, "split has the wrong sum: expected %lld, found %lld",
                                   (long long)length, (long long)sum);
        return NULL;
    }
    if (split != NULL)
        each = kelp_ops_read_i64(split, 0);
    if (each < 1)
        return KELP_LIST_ERROR(call, "split: expected 1 or more, found %lld", (long long)each);
    *out_count = length / each + (length % each != 0);
    KELP_TRY(kelp_list_alloc(call, *out_count, sizeof **out, out));
    for (int64_t i = 0; i < *out_count; i++)
        (*out)[i] = KELP_MIN(each, length - i * each);
    return NULL;
}

kelp_status *kelp_list_split(const kelp_list_call *call) {
    const kelp_tensor *x = kelp_list_in(call, 0);
    int32_t axis = 0;
    int64_t *sizes = NULL, count = 0, first = 0, shape[KELP_MAX_RANK];
    if (x == NULL || x->dtype == KELP_LIST || kelp_ops_element_bytes(x->dtype) == 0)
        return KELP_LIST_ERROR(call, "%s",
                               "input 0 is invalid: expected a tensor of elements of whole bytes");
    KELP_TRY(read_axis(call, x->rank, &axis));
    KELP_TRY(read_sizes(call, x->shape[axis], &sizes, &count));
    KELP_TRY(kelp_list_make(call, 1, count, &call->outputs[0]));
    bool drop = kelp_list_in(call, 1) == NULL && kelp_node_attr_i64(call->node, "keepdims", 1) == 0;
    int64_t outer = kelp_ops_product(x->shape, 0, axis);
    size_t slice =
        (size_t)kelp_ops_product(x->shape, axis + 1, x->rank) * kelp_ops_element_bytes(x->dtype);
    for (int64_t i = 0; i < count; i++) {
        kelp_tensor *to = kelp_list_items(&call->outputs[0]) + i;
        int32_t rank = 0;
        for (int32_t k = 0; k < x->rank; k++)
            if (k != axis || !drop)
                shape[rank++] = k == axis ? sizes[i] : x->shape[k];
        KELP_TRY(kelp_list_tensor(call, x->dtype, rank, shape, to));
        copy_slices(x, first, to, 0, sizes[i], x->shape[axis], sizes[i], outer, slice);
        first += sizes[i];
    }
    KELP_ASSERT(first == x->shape[axis]);
    return NULL;
}

/* ---- ConcatFromSequence ---- */
static bool same_but(const kelp_tensor *a, const kelp_tensor *b, int32_t axis, bool new_axis) {
    bool same = a->rank == b->rank && a->dtype == b->dtype;
    for (int32_t i = 0; same && i < a->rank; i++)
        same = a->shape[i] == b->shape[i] || (i == axis && !new_axis);
    return same;
}

kelp_status *kelp_list_concat(const kelp_list_call *call) {
    const kelp_tensor *list = NULL;
    int32_t axis = 0;
    int64_t total = 0, shape[KELP_MAX_RANK + 1] = {0};
    KELP_TRY(kelp_list_expect(call, 0, 1, &list));
    const kelp_tensor *items = kelp_list_items(list);
    bool new_axis = kelp_node_attr_i64(call->node, "new_axis", 0) != 0;
    if (list->shape[0] == 0)
        return KELP_LIST_ERROR(call, "%s", "the sequence is empty");
    if (items[0].dtype == KELP_LIST || kelp_ops_element_bytes(items[0].dtype) == 0 ||
        items[0].rank + new_axis > KELP_MAX_RANK)
        return KELP_LIST_ERROR(call, "elements of type %s and rank %d cannot be concatenated",
                               kelp_dtype_name(items[0].dtype), items[0].rank);
    KELP_TRY(read_axis(call, items[0].rank + new_axis, &axis));
    for (int64_t i = 0; i < list->shape[0]; i++) {
        if (!same_but(&items[0], &items[i], axis, new_axis))
            return KELP_LIST_ERROR(call, "the type or shape of element %lld differs from element 0",
                                   (long long)i);
        if (!kelp_i64_add(total, new_axis ? 1 : items[i].shape[axis], &total))
            return kelp_status_oom();
    }
    for (int32_t i = 0, from = 0; i < items[0].rank + new_axis; i++) {
        bool joined = i == axis;
        shape[i] = joined ? total : items[0].shape[from];
        from += !(joined && new_axis);
    }
    kelp_tensor *y = &call->outputs[0];
    KELP_TRY(kelp_list_tensor(call, items[0].dtype, items[0].rank + new_axis, shape, y));
    int64_t outer = kelp_ops_product(shape, 0, axis), at = 0;
    size_t slice =
        (size_t)kelp_ops_product(shape, axis + 1, y->rank) * kelp_ops_element_bytes(y->dtype);
    for (int64_t i = 0; i < list->shape[0]; i++) {
        int64_t count = new_axis ? 1 : items[i].shape[axis];
        copy_slices(&items[i], 0, y, at, count, count, total, outer, slice);
        at += count;
    }
    return NULL;
}
