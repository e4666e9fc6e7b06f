/* SPDX-License-Identifier: Apache-2.0 */
/* Pad, by rows along the last padded axis. Source: ONNX operator specification, Pad-25. */
#include "base/assert.h"
#include "tensor/real.h"
#include "cpu/ops/converted.h"

typedef enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_WRAP } pad_mode;

typedef struct pad_plan {
    int64_t before[KELP_MAX_RANK];
    pad_mode mode;
    size_t size;
    int32_t last; /* the last padded axis; -1: no axis is */
    size_t bytes; /* of the axes after it */
    uint64_t value[2];
    int64_t strides[KELP_MAX_RANK]; /* of the input, in units of `bytes` */
    const kelp_op_args *args;
} pad_plan;

static kelp_status *read_pads(kelp_op_args *args, int32_t rank, int64_t *before, int64_t *after) {
    int64_t pads[2 * KELP_MAX_RANK], axes[KELP_MAX_RANK];
    const int64_t *values = NULL;
    size_t axis_count = 0, count = kelp_node_attr_i64s(args->node, "pads", &values);
    if (count == 0) /* the name in version 1 */
        count = kelp_node_attr_i64s(args->node, "paddings", &values);
    if (count > 2 * KELP_MAX_RANK)
        return kelp_ops_bad_shapes(args, args->inputs[0], NULL, "too many pads");
    if (count > 0)
        memcpy(pads, values, count * sizeof *pads);
    if (kelp_ops_in(args, 1) != NULL) {
        if (kelp_ops_defer(args, 1))
            return NULL;
        KELP_TRY(kelp_ops_i64s(args, args->inputs[1], pads, 2 * KELP_MAX_RANK, &count));
    }
    for (int32_t i = 0; i < rank; i++)
        axes[i] = i;
    axis_count = (size_t)rank;
    if (kelp_ops_in(args, 3) != NULL) {
        if (kelp_ops_defer(args, 3))
            return NULL;
        KELP_TRY(kelp_ops_i64s(args, args->inputs[3], axes, KELP_MAX_RANK, &axis_count));
    }
    if (count != 2 * axis_count)
        return kelp_ops_bad_shapes(args, args->inputs[0], NULL, "expected two pads for each axis");
    for (size_t i = 0; i < axis_count; i++) {
        int32_t axis = 0;
        KELP_TRY(kelp_ops_axis(args, axes[i], rank, &axis));
        before[axis] = pads[i];
        after[axis] = pads[i + axis_count];
    }
    return NULL;
}

static kelp_status *pad_reshape(const void *state, kelp_op_args *args) {
    pad_plan *p = args->plan;
    int64_t after[KELP_MAX_RANK] = {0}, shape[KELP_MAX_RANK];
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    p->size = kelp_ops_element_bytes(x->dtype);
    if (p->size == 0)
        return kelp_ops_bad_type(args, x->dtype);
    const char *mode = kelp_node_attr_string(args->node, "mode", "constant", NULL);
    int found = -1;
    for (int i = 0; i < 4; i++)
        if (strcmp(mode, modes[i]) == 0)
            found = i;
    if (found < 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'Pad': attribute 'mode' is '%s': expected 'constant', 'edge', "
                          "'reflect' or 'wrap'",
                          mode);
    p->mode = (pad_mode)found;
    KELP_TRY(read_pads(args, x->rank, p->before, after));
    if (args->deferred)
        return NULL;
    p->last = -1;
    for (int32_t i = 0; i < x->rank; i++) {
        if (!kelp_i64_add(x->shape[i], p->before[i], &shape[i]) ||
            !kelp_i64_add(shape[i], after[i], &shape[i]) || shape[i] < 0)
            return kelp_ops_bad_shapes(args, x, NULL, "the pads result in a negative dimension");
        if (p->mode != PAD_CONSTANT && x->shape[i] == 0 && shape[i] > 0)
            return kelp_ops_bad_shapes(args, x, NULL,
                                       "an empty dimension has no values for the padding");
        if (p->before[i] != 0 || after[i] != 0)
            p->last = i;
    }
    return kelp_ops_set(args, 0, x->dtype, x->rank, shape);
}

/* Returns the position in the input of output position `at`, less the padding, along an axis; -1
 * for constant padding. */
static int64_t pad_source(pad_mode mode, int64_t at, int64_t dim) {
    KELP_ASSERT(dim > 0 || mode == PAD_CONSTANT);
    if (at >= 0 && at < dim)
        return at;
    if (mode == PAD_EDGE)
        return at < 0 ? 0 : dim - 1;
    if (mode == PAD_WRAP)
        return (at % dim + dim) % dim;
    if (mode == PAD_CONSTANT)
        return -1;
    if (dim == 1)
        return 0;
    int64_t period = 2 * (dim - 1), folded = (at % period + period) % period;
    return folded < dim ? folded : period - folded;
}

static void fill(const pad_plan *p, char *to, int64_t count) {
    if (p->bytes == sizeof(uint32_t) && count < 16) { /* the common case of images */
        uint32_t value;
        memcpy(&value, p->value, sizeof value);
        for (int64_t i = 0; i < count; i++)
            ((uint32_t *)(void *)to)[i] = value;
        return;
    }
    if (count > 0)
        kelp_ops_fill(to, p->size, count * (int64_t)(p->bytes / p->size), p->value);
}

/* Writes positions [begin, end) of a row, which are outside of the input. */
static void pad_side(const pad_plan *p, const char *x, char *y, int64_t begin, int64_t end) {
    int64_t dim = p->args->inputs[0]->shape[p->last];
    if (p->mode == PAD_CONSTANT) {
        fill(p, y + (size_t)begin * p->bytes, end - begin);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        memcpy(y + (size_t)i * p->bytes,
               x + (size_t)pad_source(p->mode, i - p->before[p->last], dim) * p->bytes, p->bytes);
}

static void pad_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const pad_plan *p = userp;
    const kelp_tensor *x = p->args->inputs[0], *y = p->args->outputs[0];
    int64_t out = y->shape[p->last], in = x->shape[p->last], before = p->before[p->last];
    int64_t first = KELP_MIN(out, KELP_MAX((int64_t)0, before));
    int64_t last = KELP_MAX(first, KELP_MIN(out, before + in));
    (void)worker;
    int64_t index[KELP_MAX_RANK], rest = begin;
    for (int32_t i = p->last - 1; i >= 0; rest /= y->shape[i--])
        index[i] = rest % y->shape[i];
    for (int64_t row = begin; row < end; row++) {
        int64_t from = 0;
        bool inside = true;
        for (int32_t i = 0; i < p->last; i++) {
            int64_t at = pad_source(p->mode, index[i] - p->before[i], x->shape[i]);
            inside = inside && at >= 0;
            from += at * p->strides[i];
        }
        for (int32_t i = p->last; i-- > 0 && ++index[i] == y->shape[i];)
            index[i] = 0;
        char *to = (char *)y->data + (size_t)(row * out) * p->bytes;
        if (!inside) {
            fill(p, to, out);
            continue;
        }
        const char *source = (const char *)x->data + (size_t)from * p->bytes;
        pad_side(p, source, to, 0, first);
        if (last > first)
            memcpy(to + (size_t)first * p->bytes, source + (size_t)(first - before) * p->bytes,
                   (size_t)(last - first) * p->bytes);
        pad_side(p, source, to, last, out);
    }
}

static kelp_status *pad_invoke(const void *state, kelp_op_args *args) {
    pad_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0], *value = kelp_ops_in(args, 2);
    (void)state;
    if (kelp_tensor_elements(y) == 0)
        return NULL;
    if (p->last < 0) {
        kelp_ops_memcpy(args->env, y->data, x->data, kelp_tensor_bytes(x));
        return NULL;
    }
    KELP_ASSERT(p->last < x->rank && p->size == kelp_ops_element_bytes(y->dtype));
    p->args = args;
    memset(p->value, 0, sizeof p->value);
    if (value != NULL && value->dtype == x->dtype && kelp_tensor_elements(value) > 0)
        memcpy(p->value, value->data, p->size);
    else if (kelp_node_attr_type(args->node, "value") == KELP_ATTR_FLOAT &&
             kelp_real_takes(x->dtype))
        kelp_real_store_f32(x->dtype, p->value, 0, 1,
                            &(float){kelp_node_attr_f32(args->node, "value", 0.0f)});
    p->bytes = p->size * (size_t)kelp_ops_product(x->shape, p->last + 1, x->rank);
    for (int32_t i = 0; i < p->last; i++)
        p->strides[i] = kelp_ops_product(x->shape, i + 1, p->last + 1);
    int64_t row = KELP_MAX((int64_t)1, y->shape[p->last] * (int64_t)(p->bytes / p->size));
    kelp_op_parallel(args->env, kelp_ops_product(y->shape, 0, p->last),
                     kelp_cpu_grain(2 * KELP_GRAIN_ELEMENTS, row), pad_rows, p);
    return NULL;
}
KELP_CONVERTED_PHASES(pad, kelp_unpacked, sizeof(pad_plan), pad_reshape, pad_invoke)
KELP_KERNEL(Pad, 0, KELP_CONVERTED_PLAN(sizeof(pad_plan)), 1, pad_reshape_any, pad_invoke_any);
