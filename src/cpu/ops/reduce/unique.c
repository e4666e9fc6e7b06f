/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unique: the distinct elements of a tensor, or slices of an axis, in ascending order or in the
 * order of their first occurrence. All NaNs are one value, the largest. Complex numbers are ordered
 * by real, then imaginary part; strings by their bytes, which is the order of code points. Source:
 * ONNX operator specification, Unique-28; numpy.unique.
 */
#include "base/assert.h"
#include "cpu/ops/kernel.h"

#include "tensor/convert.h"

typedef int (*compare_fn)(const void *a, const void *b);

typedef struct unique_plan {
    int64_t count;        /* elements or slices */
    int64_t outer, inner; /* element (o, i) of slice s has index (o * count + s) * inner + i */
    size_t size;
    const char *data;
    compare_fn compare;
    int64_t found;            /* distinct values */
    int64_t *firsts, *counts; /* of each value: its first slice, and its number of slices */
    int64_t *groups;          /* the value of each slice */
} unique_plan;

#define COMPARE(name, type, read)                                             \
    static int compare_##name(const void *left, const void *right) {          \
        type a = read(left), b = read(right);                                 \
        return (a > b || (a != a && b == b)) - (a < b || (b != b && a == a)); \
    }
#define PLAIN_u8(p) *(const uint8_t *)(p)
#define PLAIN_i8(p) *(const int8_t *)(p)
#define PLAIN_u16(p) *(const uint16_t *)(p)
#define PLAIN_i16(p) *(const int16_t *)(p)
#define PLAIN_u32(p) *(const uint32_t *)(p)
#define PLAIN_i32(p) *(const int32_t *)(p)
#define PLAIN_u64(p) *(const uint64_t *)(p)
#define PLAIN_i64(p) *(const int64_t *)(p)
#define PLAIN_f32(p) *(const float *)(p)
#define PLAIN_f64(p) *(const double *)(p)
#define WIDE_f16(p) kelp_f16_to_f32(*(const uint16_t *)(p))
#define WIDE_bf16(p) kelp_bf16_to_f32(*(const uint16_t *)(p))
#define AS_BOOL(p) (uint8_t)(*(const uint8_t *)(p) != 0)
COMPARE(u8, uint8_t, PLAIN_u8)
COMPARE(i8, int8_t, PLAIN_i8)
COMPARE(u16, uint16_t, PLAIN_u16)
COMPARE(i16, int16_t, PLAIN_i16)
COMPARE(u32, uint32_t, PLAIN_u32)
COMPARE(i32, int32_t, PLAIN_i32)
COMPARE(u64, uint64_t, PLAIN_u64)
COMPARE(i64, int64_t, PLAIN_i64)
COMPARE(f32, float, PLAIN_f32)
COMPARE(f64, double, PLAIN_f64)
COMPARE(f16, float, WIDE_f16)
COMPARE(bf16, float, WIDE_bf16)
COMPARE(bool, uint8_t, AS_BOOL)

static int compare_c64(const void *a, const void *b) {
    int order = compare_f32(a, b);
    return order != 0 ? order : compare_f32((const float *)a + 1, (const float *)b + 1);
}
static int compare_c128(const void *a, const void *b) {
    int order = compare_f64(a, b);
    return order != 0 ? order : compare_f64((const double *)a + 1, (const double *)b + 1);
}
static int compare_string(const void *left, const void *right) {
    const kelp_string *a = left, *b = right;
    size_t shared = KELP_MIN(a->length, b->length);
    int order = shared > 0 ? memcmp(a->data, b->data, shared) : 0;
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static compare_fn find_compare(kelp_dtype dtype) {
    switch (dtype) {
#define CASE(dtype_name, name) \
    case dtype_name:           \
        return compare_##name;
        CASE(KELP_U8, u8)
        CASE(KELP_I8, i8)
        CASE(KELP_U16, u16)
        CASE(KELP_I16, i16)
        CASE(KELP_U32, u32)
        CASE(KELP_I32, i32)
        CASE(KELP_U64, u64)
        CASE(KELP_I64, i64)
        CASE(KELP_F32, f32)
        CASE(KELP_F64, f64)
        CASE(KELP_F16, f16)
        CASE(KELP_BF16, bf16)
        CASE(KELP_BOOL, bool)
        CASE(KELP_C64, c64)
        CASE(KELP_C128, c128)
        CASE(KELP_STRING, string)
#undef CASE
    default:
        return NULL;
    }
}

static int compare_slices(const unique_plan *p, int64_t a, int64_t b) {
    for (int64_t o = 0; o < p->outer; o++) {
        const char *left = p->data + (size_t)((o * p->count + a) * p->inner) * p->size;
        const char *right = p->data + (size_t)((o * p->count + b) * p->inner) * p->size;
        for (int64_t i = 0; i < p->inner; i++) {
            int order = p->compare(left + (size_t)i * p->size, right + (size_t)i * p->size);
            if (order != 0)
                return order;
        }
    }
    return 0;
}

/* Sorts the indices of slices, stably, by a bottom-up merge sort. Returns one of the two arrays of
 * p->count indices. */
static int64_t *sort_slices(const unique_plan *p, int64_t *from, int64_t *to) {
    for (int64_t i = 0; i < p->count; i++)
        from[i] = i;
    for (int64_t run = 1; run < p->count; run *= 2) {
        for (int64_t first = 0; first < p->count; first += 2 * run) {
            int64_t middle = KELP_MIN(first + run, p->count);
            int64_t end = KELP_MIN(first + 2 * run, p->count);
            for (int64_t a = first, b = middle, at = first; at < end; at++)
                to[at] = b >= end || (a < middle && compare_slices(p, from[a], from[b]) <= 0)
                             ? from[a++]
                             : from[b++];
        }
        int64_t *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

/* Numbers the values, in the order of their first occurrence unless `sorted`. `spare` has 2 *
 * p->count elements; `order` may be its second half. */
static void find_values(unique_plan *p, const int64_t *order, bool sorted, int64_t *spare) {
    p->found = 0;
    for (int64_t i = 0; i < p->count; i++) {
        if (i == 0 || compare_slices(p, order[i - 1], order[i]) != 0) {
            p->firsts[p->found] = order[i];
            p->counts[p->found++] = 0;
        }
        p->groups[order[i]] = p->found - 1;
        p->counts[p->found - 1]++;
    }
    if (sorted)
        return;
    int64_t *old_counts = spare, seen = 0;
    memcpy(old_counts, p->counts, (size_t)p->found * sizeof *spare);
    for (int64_t i = 0; i < p->count; i++) {
        int64_t group = p->groups[i];
        if (p->firsts[group] == i)
            p->counts[group] = seen++; /* temporarily the new number of the value */
    }
    KELP_ASSERT(seen == p->found);
    for (int64_t i = 0; i < p->count; i++)
        p->groups[i] = p->counts[p->groups[i]];
    int64_t *new_counts = spare + p->count;
    for (int64_t g = 0; g < p->found; g++)
        new_counts[p->counts[g]] = old_counts[g];
    memcpy(p->counts, new_counts, (size_t)p->found * sizeof *spare);
    seen = 0;
    for (int64_t i = 0; i < p->count; i++)
        if (p->groups[i] == seen)
            p->firsts[seen++] = i;
}

static kelp_status *read_layout(kelp_op_args *args, unique_plan *p, int32_t *out_axis) {
    const kelp_tensor *x = args->inputs[0];
    *out_axis = -1;
    p->size = kelp_ops_element_bytes(x->dtype);
    p->compare = find_compare(x->dtype);
    p->count = kelp_tensor_elements(x);
    p->outer = p->inner = 1;
    if (p->compare == NULL)
        return kelp_ops_bad_type(args, x->dtype);
    if (kelp_node_attr_type(args->node, "axis") != KELP_ATTR_INT)
        return NULL;
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 0), x->rank, out_axis));
    p->count = x->shape[*out_axis];
    p->outer = kelp_ops_product(x->shape, 0, *out_axis);
    p->inner = kelp_ops_product(x->shape, *out_axis + 1, x->rank);
    return NULL;
}

static kelp_status *unique_reshape(const void *state, kelp_op_args *args) {
    unique_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    int32_t axis, rank = 1;
    size_t bytes;
    (void)state;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    const kelp_tensor *x = args->inputs[0];
    KELP_TRY(read_layout(args, p, &axis));
    if (kelp_ops_defer(args, 0))
        return NULL;
    if (!kelp_size_mul((size_t)p->count, 6 * sizeof(int64_t), &bytes))
        return kelp_status_oom();
    int64_t *memory = kelp_op_env_alloc(args->env, bytes + 64);
    if (memory == NULL) { /* such memory does not exist during planning */
        args->deferred = true;
        return NULL;
    }
    p->data = x->data;
    p->firsts = memory;
    p->groups = memory + p->count;
    p->counts = memory + 2 * p->count;
    int64_t *a = memory + 3 * p->count;
    const int64_t *order = sort_slices(p, a + p->count, a + 2 * p->count);
    find_values(p, order, kelp_node_attr_i64(args->node, "sorted", 1) != 0, a);
    shape[0] = p->found;
    if (axis >= 0) {
        memcpy(shape, x->shape, sizeof shape);
        shape[axis] = p->found;
        rank = x->rank;
    }
    KELP_TRY(kelp_ops_set(args, 0, x->dtype, rank, shape));
    KELP_TRY(kelp_ops_set(args, 1, KELP_I64, 1, &p->found));
    KELP_TRY(kelp_ops_set(args, 2, KELP_I64, 1, &p->count));
    return kelp_ops_set(args, 3, KELP_I64, 1, &p->found);
}

static void put_list(const kelp_tensor *to, const int64_t *from, int64_t count) {
    if (to != NULL && count > 0)
        memcpy(to->data, from, (size_t)count * sizeof *from);
}

static kelp_status *unique_invoke(const void *state, kelp_op_args *args) {
    const unique_plan *p = args->plan;
    const kelp_tensor *y = kelp_ops_out(args, 0);
    KELP_ASSERT(p->found <= p->count && p->data == args->inputs[0]->data);
    size_t slice = (size_t)p->inner * p->size;
    (void)state;
    for (int64_t o = 0; o < p->outer && y != NULL && slice > 0; o++)
        for (int64_t g = 0; g < p->found; g++)
            memcpy((char *)y->data + (size_t)(o * p->found + g) * slice,
                   (const char *)args->inputs[0]->data +
                       (size_t)(o * p->count + p->firsts[g]) * slice,
                   slice);
    put_list(kelp_ops_out(args, 1), p->firsts, p->found);
    put_list(kelp_ops_out(args, 2), p->groups, p->count);
    put_list(kelp_ops_out(args, 3), p->counts, p->found);
    return NULL;
}
KELP_KERNEL(Unique, KELP_OP_SERIAL, sizeof(unique_plan), 0, unique_reshape, unique_invoke);
