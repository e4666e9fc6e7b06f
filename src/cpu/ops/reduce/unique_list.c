/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft Unique: the distinct values of a list in the order of their first occurrence, the
 * index of the value of each element, and the number of elements of each value. Source: ONNX
 * Runtime, ContribOperators.md.
 */
#include "base/assert.h"
#include "cpu/ops/kernel.h"

typedef struct unique_plan {
    int64_t found;
    int64_t *firsts, *groups; /* the first element of each value; the value of each element */
} unique_plan;

/* Returns the bits of an element; positive and negative zero are one value. */
static uint64_t key_of(const kelp_tensor *x, int64_t index) {
    size_t size = kelp_ops_element_bytes(x->dtype);
    uint64_t key = 0;
    if (kelp_ops_is_float(x->dtype) && kelp_ops_read_f64(x, index) == 0)
        return 0;
    memcpy(&key, (const char *)x->data + (size_t)index * size, size);
    return key;
}

/* Finds the values with a hash table of open addressing. Its entries are the index of a value plus
 * 1, or 0. */
static void find_all(unique_plan *p, const kelp_tensor *x, int64_t *table, uint64_t mask) {
    KELP_ASSERT((mask & (mask + 1)) == 0 && (uint64_t)kelp_tensor_elements(x) <= mask);
    for (int64_t i = 0; i < kelp_tensor_elements(x); i++) {
        uint64_t key = key_of(x, i), at = key * 0x9e3779b97f4a7c15u;
        for (at = (at ^ at >> 29) & mask; table[at] != 0; at = (at + 1) & mask)
            if (key_of(x, p->firsts[table[at] - 1]) == key)
                break;
        if (table[at] == 0) {
            p->firsts[p->found] = i;
            table[at] = ++p->found;
        }
        p->groups[i] = table[at] - 1;
    }
}

static kelp_status *unique_reshape(const void *state, kelp_op_args *args) {
    unique_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    const kelp_tensor *x = args->inputs[0];
    size_t size = kelp_ops_element_bytes(x->dtype), capacity = 16, bytes;
    if (size == 0 || size > sizeof(uint64_t) || x->dtype == KELP_STRING)
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank != 1)
        return kelp_ops_bad_shapes(args, x, NULL, "expected a list");
    if (kelp_ops_defer(args, 0))
        return NULL;
    int64_t count = x->shape[0];
    while (capacity < 2 * (size_t)count)
        capacity *= 2;
    if (!kelp_size_mul(capacity + 2 * (size_t)count + 1, sizeof(int64_t), &bytes))
        return kelp_status_oom();
    int64_t *table = kelp_op_env_alloc(args->env, bytes);
    if (table == NULL) { /* such memory does not exist during planning */
        args->deferred = true;
        return NULL;
    }
    memset(table, 0, capacity * sizeof *table);
    *p = (unique_plan){0, table + capacity, table + capacity + count};
    find_all(p, x, table, capacity - 1);
    KELP_TRY(kelp_ops_set(args, 0, x->dtype, 1, &p->found));
    KELP_TRY(kelp_ops_set(args, 1, KELP_I64, 1, &count));
    return kelp_ops_set(args, 2, KELP_I64, 1, &p->found);
}

static kelp_status *unique_invoke(const void *state, kelp_op_args *args) {
    const unique_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0], *y = kelp_ops_out(args, 0);
    const kelp_tensor *groups = kelp_ops_out(args, 1), *counts = kelp_ops_out(args, 2);
    size_t size = kelp_ops_element_bytes(x->dtype);
    (void)state;
    for (int64_t i = 0; i < p->found && y != NULL; i++)
        memcpy((char *)y->data + (size_t)i * size,
               (const char *)x->data + (size_t)p->firsts[i] * size, size);
    if (groups != NULL && x->shape[0] > 0)
        memcpy(groups->data, p->groups, (size_t)x->shape[0] * sizeof *p->groups);
    if (counts != NULL && p->found > 0)
        memset(counts->data, 0, (size_t)p->found * sizeof(int64_t));
    for (int64_t i = 0; i < x->shape[0] && counts != NULL; i++)
        ((int64_t *)counts->data)[p->groups[i]]++;
    return NULL;
}
KELP_KERNEL(MsUnique, KELP_OP_SERIAL, sizeof(unique_plan), 0, unique_reshape, unique_invoke);
