/* SPDX-License-Identifier: Apache-2.0 */
/* Slice, Where. Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"

/* ---- Slice ---- */
typedef struct slice_plan {
    int64_t starts[KELP_MAX_RANK], steps[KELP_MAX_RANK];
} slice_plan;

typedef struct slice_lists {
    int64_t starts[KELP_MAX_RANK], ends[KELP_MAX_RANK], axes[KELP_MAX_RANK], steps[KELP_MAX_RANK];
    size_t count;
} slice_lists;

/* Reads attributes, used before version 10, and inputs, used since. */
static kelp_status *read_slices(kelp_op_args *args, slice_lists *out) {
    int64_t *const lists[4] = {out->starts, out->ends, out->axes, out->steps};
    static const char *const names[4] = {"starts", "ends", "axes", "steps"};
    size_t counts[4] = {0, 0, 0, 0};
    for (int32_t i = 0; i < 4; i++) {
        const int64_t *values = NULL;
        counts[i] = kelp_node_attr_i64s(args->node, names[i], &values);
        if (counts[i] > KELP_MAX_RANK)
            return kelp_ops_bad_shapes(args, args->inputs[0], NULL, "too many axes are sliced");
        if (counts[i] > 0)
            memcpy(lists[i], values, counts[i] * sizeof *values);
        if (kelp_ops_in(args, i + 1) == NULL)
            continue;
        if (kelp_ops_defer(args, i + 1))
            return NULL;
        KELP_TRY(kelp_ops_i64s(args, args->inputs[i + 1], lists[i], KELP_MAX_RANK, &counts[i]));
    }
    out->count = counts[0];
    if (counts[1] != counts[0] || (counts[2] != 0 && counts[2] != counts[0]) ||
        (counts[3] != 0 && counts[3] != counts[0]))
        return kelp_ops_bad_shapes(args, args->inputs[0], NULL,
                                   "starts, ends, axes and steps differ in length");
    for (size_t i = 0; i < out->count; i++) {
        if (counts[2] == 0)
            out->axes[i] = (int64_t)i;
        if (counts[3] == 0)
            out->steps[i] = 1;
    }
    return NULL;
}

static int64_t clamp(int64_t value, int64_t min, int64_t max) {
    return value < min ? min : value > max ? max : value;
}

static kelp_status *slice_reshape(const void *state, kelp_op_args *args) {
    slice_plan *p = args->plan;
    slice_lists lists;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (kelp_ops_element_bytes(x->dtype) == 0)
        return kelp_ops_bad_type(args, x->dtype);
    KELP_TRY(read_slices(args, &lists));
    if (args->deferred)
        return NULL;
    int64_t shape[KELP_MAX_RANK];
    memcpy(shape, x->shape, sizeof shape);
    for (int32_t i = 0; i < x->rank; i++) {
        p->starts[i] = 0;
        p->steps[i] = 1;
    }
    for (size_t i = 0; i < lists.count; i++) {
        int32_t axis = 0;
        KELP_TRY(kelp_ops_axis(args, lists.axes[i], x->rank, &axis));
        int64_t dim = x->shape[axis], step = lists.steps[i];
        if (step == 0)
            return kelp_ops_bad_shapes(args, x, NULL, "a step is 0");
        step = KELP_MAX(step, -INT64_MAX); /* equivalent to INT64_MIN, and can be negated */
        int64_t start = lists.starts[i], end = lists.ends[i];
        if (start < 0)
            start = start < -dim ? -1 : start + dim;
        if (end < 0)
            end = end < -dim ? -1 : end + dim;
        if (step > 0) {
            start = clamp(start, 0, dim);
            end = clamp(end, 0, dim);
            shape[axis] = end > start ? (end - start - 1) / step + 1 : 0;
        } else {
            start = clamp(start, lists.starts[i] < -dim ? -1 : 0, dim - 1);
            end = clamp(end, -1, dim - 1);
            shape[axis] = start > end ? (start - end - 1) / -step + 1 : 0;
        }
        p->starts[axis] = start;
        p->steps[axis] = step;
    }
    return kelp_ops_set(args, 0, x->dtype, x->rank, shape);
}

static kelp_status *slice_invoke(const void *state, kelp_op_args *args) {
    const slice_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    size_t size = kelp_ops_element_bytes(x->dtype);
    int64_t from[KELP_MAX_RANK], to[KELP_MAX_RANK], offset = 0;
    (void)state;
    if (kelp_tensor_elements(y) == 0)
        return NULL;
    kelp_ops_strides(x->rank, x->shape, from);
    kelp_ops_strides(y->rank, y->shape, to);
    for (int32_t i = 0; i < x->rank; i++) {
        KELP_ASSERT(p->starts[i] >= 0 && p->starts[i] < x->shape[i]);
        offset += p->starts[i] * from[i];
        /* the step of a single element may overflow */
        from[i] = y->shape[i] == 1 ? 0 : from[i] * p->steps[i];
    }
    kelp_ops_copy(args->env, size, y->rank, y->shape, y->data, to,
                  (const char *)x->data + offset * (int64_t)size, from);
    return NULL;
}
KELP_KERNEL(Slice, 0, sizeof(slice_plan), 1, slice_reshape, slice_invoke);

/* ---- Where ---- */
#define WHERE_PIECE 16384 /* maximum number of elements of one row in a unit of work */

typedef struct where_plan {
    kelp_bcast walk;
    int64_t pieces; /* of a row */
    size_t size;
    const kelp_op_args *args;
} where_plan;

static kelp_status *where_reshape(const void *state, kelp_op_args *args) {
    where_plan *p = args->plan;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 3));
    const kelp_tensor *c = args->inputs[0], *x = args->inputs[1], *y = args->inputs[2];
    if (c->dtype != KELP_BOOL)
        return kelp_ops_bad_type(args, c->dtype);
    if (x->dtype != y->dtype)
        return kelp_ops_bad_shapes(args, x, y, "the types differ");
    p->size = kelp_ops_element_bytes(x->dtype);
    if (p->size == 0)
        return kelp_ops_bad_type(args, x->dtype);
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = x->rank;
    memcpy(shape, x->shape, sizeof shape);
    if (!kelp_ops_broadcast_shape(&rank, shape, y->rank, y->shape) ||
        !kelp_ops_broadcast_shape(&rank, shape, c->rank, c->shape))
        return kelp_ops_bad_shapes(args, x, y, "the shapes do not broadcast");
    KELP_TRY(kelp_ops_set(args, 0, x->dtype, rank, shape));
    kelp_bcast_init(&p->walk, rank, shape, args->inputs, 3);
    return NULL;
}

/* Reads both sides, so that the compiler can vectorize the selection. */
#define CHOOSE(type)                                              \
    do {                                                          \
        const type *a = (const type *)(const void *)x;            \
        const type *b = (const type *)(const void *)y;            \
        type *out = (type *)(void *)to;                           \
        type first = *a, second = *b;                             \
        if (steps[0] != 0 && steps[1] != 0 && steps[2] != 0) {    \
            for (int64_t i = 0; i < count; i++) {                 \
                type one = a[i], other = b[i];                    \
                out[i] = c[i] ? one : other;                      \
            }                                                     \
        } else if (steps[0] != 0 && steps[1] != 0) {              \
            for (int64_t i = 0; i < count; i++) {                 \
                type one = a[i];                                  \
                out[i] = c[i] ? one : second;                     \
            }                                                     \
        } else if (steps[0] != 0 && steps[2] != 0) {              \
            for (int64_t i = 0; i < count; i++) {                 \
                type other = b[i];                                \
                out[i] = c[i] ? first : other;                    \
            }                                                     \
        } else if (steps[0] != 0) {                               \
            for (int64_t i = 0; i < count; i++)                   \
                out[i] = c[i] ? first : second;                   \
        } else if ((*c ? steps[1] : steps[2]) != 0) {             \
            memcpy(out, *c ? a : b, (size_t)count * sizeof *out); \
        } else {                                                  \
            for (int64_t i = 0; i < count; i++)                   \
                out[i] = *c ? first : second;                     \
        }                                                         \
    } while (0)

static void choose(size_t size, const uint8_t *c, const char *x, const char *y, char *to,
                   const int64_t *steps, int64_t count) {
    switch (size) {
    case 1:
        CHOOSE(uint8_t);
        return;
    case 2:
        CHOOSE(uint16_t);
        return;
    case 4:
        CHOOSE(uint32_t);
        return;
    case 8:
        CHOOSE(uint64_t);
        return;
    default:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * size,
                   c[i * steps[0]] ? x + (size_t)(i * steps[1]) * size
                                   : y + (size_t)(i * steps[2]) * size,
                   size);
    }
}

static void where_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const where_plan *p = userp;
    const kelp_op_args *args = p->args;
    int64_t offsets[KELP_BCAST_MAX], steps[KELP_BCAST_MAX];
    (void)worker;
    for (int k = 0; k < 3; k++)
        steps[k] = p->walk.strides[k][p->walk.rank - 1];
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t row = unit / p->pieces, at = unit % p->pieces * WHERE_PIECE;
        kelp_bcast_row(&p->walk, row, offsets);
        for (int k = 0; k < 3; k++)
            offsets[k] += at * steps[k];
        choose(p->size, (const uint8_t *)args->inputs[0]->data + offsets[0],
               (const char *)args->inputs[1]->data + (size_t)offsets[1] * p->size,
               (const char *)args->inputs[2]->data + (size_t)offsets[2] * p->size,
               (char *)args->outputs[0]->data + (size_t)(row * p->walk.inner + at) * p->size, steps,
               KELP_MIN((int64_t)WHERE_PIECE, p->walk.inner - at));
    }
}

static kelp_status *where_invoke(const void *state, kelp_op_args *args) {
    where_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->size > 0 && p->walk.operands == 3);
    p->args = args;
    if (p->walk.inner == 0)
        return NULL;
    p->pieces = (p->walk.inner + WHERE_PIECE - 1) / WHERE_PIECE;
    int64_t piece = KELP_MIN((int64_t)WHERE_PIECE, p->walk.inner);
    kelp_op_parallel(args->env, p->walk.outer * p->pieces,
                     kelp_cpu_grain(2 * KELP_GRAIN_ELEMENTS, piece), where_rows, p);
    return NULL;
}
KELP_KERNEL(Where, 0, sizeof(where_plan), 0, where_reshape, where_invoke);
