/* SPDX-License-Identifier: Apache-2.0 */
/* TopK. Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/ops/reduce/ordered.h"

/* An element that was chosen. Keys are integers in the order of the results; among equal values,
 * earlier elements come first. */
typedef struct ranked {
    int64_t key, index;
} ranked;

typedef struct topk_plan {
    int64_t outer, length, inner, k; /* sizes before, of and after the axis; results of a line */
    bool largest;
    kelp_ordered_type type;
    size_t offset; /* k elements for each thread, in scratch memory */
    const kelp_op_args *args;
} topk_plan;

/* ---- reshape ---- */
static kelp_status *find_k(topk_plan *p, const kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *k = kelp_ops_in(args, 1);
    if (k != NULL && (kelp_tensor_elements(k) != 1 || k->dtype != KELP_I64))
        return kelp_ops_bad_shapes(args, x, k, "K must be one int64");
    p->k = k != NULL ? kelp_ops_read_i64(k, 0) : kelp_node_attr_i64(args->node, "k", -1);
    if (p->k < 0 || p->k > p->length)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'TopK': K is %lld, but the dimension is %lld", (long long)p->k,
                          (long long)p->length);
    return NULL;
}

static kelp_status *topk_reshape(const void *state, kelp_op_args *args) {
    topk_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    int32_t axis = 0;
    (void)state;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    const kelp_tensor *x = args->inputs[0];
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", -1), x->rank, &axis));
    if (x->dtype == KELP_BOOL || !kelp_ordered_find_type(x->dtype, &p->type))
        return kelp_ops_bad_type(args, x->dtype);
    if (kelp_ops_in(args, 1) != NULL && kelp_ops_defer(args, 1))
        return NULL;
    p->outer = kelp_ops_product(x->shape, 0, axis);
    p->length = x->shape[axis];
    p->inner = kelp_ops_product(x->shape, axis + 1, x->rank);
    p->largest = kelp_node_attr_i64(args->node, "largest", 1) != 0;
    KELP_TRY(find_k(p, args));
    KELP_TRY(kelp_ops_scratch(args, kelp_op_env_threads(args->env), sizeof(ranked) * (size_t)p->k,
                              &p->offset));
    memcpy(shape, x->shape, sizeof shape);
    shape[axis] = p->k;
    KELP_TRY(kelp_ops_set(args, 0, x->dtype, x->rank, shape));
    return kelp_ops_set(args, 1, KELP_I64, x->rank, shape);
}

/* ---- keys ---- */
/* Maps the order of floats to that of integers: NaN is the largest, and -0 equals 0. */
static int64_t key_of_f32(float value) {
    float positive = value + 0.0f;
    int32_t bits;
    memcpy(&bits, &positive, sizeof bits);
    return value != value ? INT64_MAX : bits >= 0 ? bits : (int64_t)INT32_MIN - bits;
}

static int64_t key_of_f64(double value) {
    double positive = value + 0.0;
    int64_t bits;
    memcpy(&bits, &positive, sizeof bits);
    return value != value ? INT64_MAX : bits >= 0 ? bits : INT64_MIN - bits;
}

static void find_keys(const topk_plan *p, const void *x, int64_t count, int64_t *keys) {
    if (p->type.dtype == KELP_F32)
        for (int64_t i = 0; i < count; i++)
            keys[i] = key_of_f32(((const float *)x)[i]);
    else if (p->type.dtype == KELP_F64)
        for (int64_t i = 0; i < count; i++)
            keys[i] = key_of_f64(((const double *)x)[i]);
    else
        memcpy(keys, x, (size_t)count * sizeof *keys);
    if (p->largest)
        for (int64_t i = 0; i < count; i++)
            keys[i] = ~keys[i]; /* reverses the order without an overflow */
}

/* ---- selection ---- */
static bool is_before(const ranked *a, const ranked *b) {
    return a->key != b->key ? a->key < b->key : a->index < b->index;
}

/* Moves an element down in a heap whose root is the last element in the order. */
static void sift(ranked *heap, int64_t count, int64_t at) {
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(&heap[child], &heap[child + 1]))
            child++;
        if (!is_before(&heap[at], &heap[child]))
            return;
        ranked moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

/* Sorts a heap. */
static void sort(ranked *heap, int64_t count) {
    for (int64_t last = count; last-- > 1;) {
        ranked moved = heap[0];
        heap[0] = heap[last];
        heap[last] = moved;
        sift(heap, last, 0);
    }
}

static const void *load(const topk_plan *p, int64_t first, int64_t count,
                        kelp_ordered_block *block) {
    const kelp_tensor *x = p->args->inputs[0];
    return p->inner == 1 ? kelp_ordered_load(&p->type, x, first, count, block)
                         : kelp_ordered_gather(&p->type, x, first, p->inner, count, block);
}

/* Returns true if an element of a block may precede the root of the heap. A NaN hides the minimum.
 */
static bool may_precede(const topk_plan *p, const ranked *root, const void *x, int64_t count) {
    kelp_ordered_value best = kelp_ordered_best(&p->type, x, count, !p->largest);
    int64_t key;
    find_keys(p, &best, 1, &key);
    return key < root->key || (!p->largest && key == INT64_MAX && p->type.dtype != KELP_I64);
}

/* Selects the first k elements of a line. */
static void select_first(const topk_plan *p, int64_t from, ranked *heap) {
    int64_t filled = 0, keys[KELP_ORDERED_BLOCK];
    for (int64_t i = 0; i < p->length; i += KELP_ORDERED_BLOCK) {
        int64_t count = KELP_MIN(p->length - i, (int64_t)KELP_ORDERED_BLOCK), at = 0;
        kelp_ordered_block block;
        const void *x = load(p, from + i * p->inner, count, &block);
        if (filled == p->k && !may_precede(p, heap, x, count))
            continue;
        find_keys(p, x, count, keys);
        for (; at < count && filled < p->k; at++) {
            heap[filled++] = (ranked){keys[at], i + at};
            for (int64_t root = p->k / 2; filled == p->k && root-- > 0;)
                sift(heap, p->k, root);
        }
        for (; at < count; at++)
            if (keys[at] < heap[0].key) {
                heap[0] = (ranked){keys[at], i + at};
                sift(heap, p->k, 0);
            }
    }
    KELP_ASSERT(filled == p->k);
    sort(heap, p->k);
}

/* ---- invoke ---- */
static void topk_range(void *userp, int64_t begin, int64_t end, int worker) {
    const topk_plan *p = userp;
    const kelp_tensor *x = p->args->inputs[0], *values = kelp_ops_out(p->args, 0);
    const kelp_tensor *indices = kelp_ops_out(p->args, 1);
    ranked *heap = (ranked *)kelp_ops_scratch_at(p->args, p->offset) + worker * p->k;
    size_t size = kelp_ops_element_bytes(x->dtype);
    for (int64_t line = begin; line < end; line++) {
        int64_t outer = line / p->inner, inner = line % p->inner;
        int64_t from = outer * p->length * p->inner + inner, to = outer * p->k * p->inner + inner;
        select_first(p, from, heap);
        for (int64_t i = 0; i < p->k; i++) {
            int64_t at = to + i * p->inner;
            if (values != NULL)
                memcpy((char *)values->data + (size_t)at * size,
                       (const char *)x->data + (size_t)(from + heap[i].index * p->inner) * size,
                       size);
            if (indices != NULL)
                ((int64_t *)indices->data)[at] = heap[i].index;
        }
    }
}

static kelp_status *topk_invoke(const void *state, kelp_op_args *args) {
    topk_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->outer * p->length * p->inner == kelp_tensor_elements(args->inputs[0]));
    p->args = args;
    if (p->k > 0)
        kelp_op_parallel(args->env, p->outer * p->inner,
                         kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->length + 8 * p->k), topk_range, p);
    return NULL;
}
KELP_KERNEL(TopK, 0, sizeof(topk_plan), 0, topk_reshape, topk_invoke);
