/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tile, Expand: a tensor and each part of it repeated. What is repeated is made once in its place,
 * from the innermost axis on, and then copied as a whole; outer parts go to threads.
 * Source: ONNX operator specification.
 */
#include "cpu/ops/kernel.h"

/* Axes; those that are not repeated are one with the axis before. */
typedef struct job {
    const kelp_op_env *env; /* NULL: on a thread of its own */
    int32_t rank, outer;    /* axes before `outer` are shared among threads */
    int64_t extents[KELP_MAX_RANK], repeats[KELP_MAX_RANK];
    /* Behind axis i - 1, that is, of one of its steps. */
    size_t from_bytes[KELP_MAX_RANK + 1], to_bytes[KELP_MAX_RANK + 1];
    char *to;
    const char *from;
} job;

/* What lies at `to`, `count` times. */
static void repeat(const kelp_op_env *env, char *to, size_t bytes, int64_t count) {
    for (int64_t done = 1; done < count;) {
        int64_t more = KELP_MIN(done, count - done);
        if (env != NULL)
            kelp_ops_memcpy(env, to + (size_t)done * bytes, to, (size_t)more * bytes);
        else
            memcpy(to + (size_t)done * bytes, to, (size_t)more * bytes);
        done += more;
    }
}

static void make(const job *j, int32_t axis, char *to, const char *from) {
    if (axis == j->rank) {
        memcpy(to, from, j->from_bytes[axis]);
        return;
    }
    if (axis + 1 == j->rank)
        memcpy(to, from, j->from_bytes[axis]);
    else
        for (int64_t i = 0; i < j->extents[axis]; i++)
            make(j, axis + 1, to + (size_t)i * j->to_bytes[axis + 1],
                 from + (size_t)i * j->from_bytes[axis + 1]);
    repeat(j->env, to, (size_t)j->extents[axis] * j->to_bytes[axis + 1], j->repeats[axis]);
}

/* Parts of the output: what lies in the axes from `outer` on, for each step of those before. */
static void parts(void *userp, int64_t begin, int64_t end, int worker) {
    const job *j = userp;
    (void)worker;
    for (int64_t part = begin; part < end; part++) {
        size_t to = 0, from = 0;
        int64_t rest = part;
        for (int32_t i = j->outer - 1; i >= 0; i--) {
            int64_t steps = j->extents[i] * j->repeats[i], at = rest % steps;
            to += (size_t)at * j->to_bytes[i + 1];
            from += (size_t)(at % j->extents[i]) * j->from_bytes[i + 1];
            rest /= steps;
        }
        make(j, j->outer, j->to + to, j->from + from);
    }
}

/* As few inner axes as make a part worth handing out. */
static int32_t outer_axes(const job *j) {
    enum { PART_BYTES = 1 << 15 };
    int32_t outer = j->rank;
    while (outer > 0 && j->to_bytes[outer] < PART_BYTES)
        outer--;
    return outer;
}

/* The first output out of the first input, taken to have `shape`, of the output's rank. */
static void repeat_all(const kelp_op_args *args, const int64_t *shape) {
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    size_t size = kelp_ops_element_bytes(x->dtype);
    job j = {.to = y->data, .from = x->data};
    if (kelp_tensor_elements(y) == 0)
        return;
    for (int32_t i = 0; i < y->rank; i++) {
        int64_t repeats = y->shape[i] / shape[i];
        if (j.rank > 0 && repeats == 1) {
            j.extents[j.rank - 1] *= shape[i];
        } else if (shape[i] != 1 || repeats != 1) {
            j.extents[j.rank] = shape[i];
            j.repeats[j.rank++] = repeats;
        }
    }
    j.from_bytes[j.rank] = j.to_bytes[j.rank] = size;
    for (int32_t i = j.rank - 1; i >= 0; i--) {
        j.from_bytes[i] = j.from_bytes[i + 1] * (size_t)j.extents[i];
        j.to_bytes[i] = j.to_bytes[i + 1] * (size_t)(j.extents[i] * j.repeats[i]);
    }
    j.outer = outer_axes(&j);
    if (j.outer == 0) {
        j.env = args->env;
        make(&j, 0, j.to, j.from);
        return;
    }
    int64_t count = (int64_t)(j.to_bytes[0] / j.to_bytes[j.outer]);
    int64_t grain = (int64_t)(KELP_GRAIN_COPY_BYTES / j.to_bytes[j.outer]) + 1;
    kelp_op_parallel(args->env, count, grain, parts, &j);
}

/* ---- Expand ---- */
static kelp_status *expand_reshape(const void *state, kelp_op_args *args) {
    int64_t shape[KELP_MAX_RANK];
    size_t rank = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0];
    if (kelp_ops_defer(args, 1))
        return NULL;
    KELP_TRY(kelp_ops_i64s(args, args->inputs[1], shape, KELP_MAX_RANK, &rank));
    int32_t out_rank = (int32_t)rank;
    if (kelp_ops_element_bytes(x->dtype) == 0)
        return kelp_ops_bad_type(args, x->dtype);
    if (!kelp_ops_broadcast_shape(&out_rank, shape, x->rank, x->shape))
        return kelp_ops_bad_shapes(args, x, NULL, "the input does not broadcast to the shape");
    return kelp_ops_set(args, 0, x->dtype, out_rank, shape);
}
static kelp_status *expand_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    int32_t missing = y->rank - x->rank;
    int64_t shape[KELP_MAX_RANK];
    (void)state;
    for (int32_t i = 0; i < y->rank; i++)
        shape[i] = i < missing ? 1 : x->shape[i - missing];
    repeat_all(args, shape);
    return NULL;
}
KELP_KERNEL(Expand, 0, 0, 1, expand_reshape, expand_invoke);

/* ---- Tile ---- */
/* Before opset 6: inputs "tiles" and "axis", one number each, of the tensor's own type. */
static kelp_status *read_tiles(kelp_op_args *args, int64_t *repeats, size_t *out_count) {
    const kelp_tensor *x = args->inputs[0];
    int32_t axis;
    KELP_TRY(kelp_ops_check(args, 3));
    if (kelp_ops_defer(args, 1) || kelp_ops_defer(args, 2))
        return NULL;
    if (kelp_tensor_elements(args->inputs[1]) != 1 || kelp_tensor_elements(args->inputs[2]) != 1)
        return kelp_ops_bad_shapes(args, args->inputs[1], args->inputs[2], "expected two numbers");
    KELP_TRY(kelp_ops_axis(args, kelp_ops_read_i64(args->inputs[2], 0), x->rank, &axis));
    for (int32_t i = 0; i < x->rank; i++)
        repeats[i] = i == axis ? kelp_ops_read_i64(args->inputs[1], 0) : 1;
    *out_count = (size_t)x->rank;
    return NULL;
}

static kelp_status *tile_reshape(const void *state, kelp_op_args *args) {
    int64_t repeats[KELP_MAX_RANK], shape[KELP_MAX_RANK];
    size_t count = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0];
    if (kelp_ops_version(args) < 6)
        KELP_TRY(read_tiles(args, repeats, &count));
    else if (!kelp_ops_defer(args, 1))
        KELP_TRY(kelp_ops_i64s(args, args->inputs[1], repeats, KELP_MAX_RANK, &count));
    if (args->deferred)
        return NULL;
    if (kelp_ops_element_bytes(x->dtype) == 0)
        return kelp_ops_bad_type(args, x->dtype);
    if (count != (size_t)x->rank || x->rank > KELP_MAX_RANK)
        return kelp_ops_bad_shapes(args, x, NULL, "needs one repeat for each of at most 8 axes");
    for (int32_t i = 0; i < x->rank; i++)
        if (repeats[i] < 0 || !kelp_i64_mul(x->shape[i], repeats[i], &shape[i]))
            return kelp_ops_bad_shapes(args, x, NULL, "a repeat is negative or too large");
    return kelp_ops_set(args, 0, x->dtype, x->rank, shape);
}
static kelp_status *tile_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    repeat_all(args, args->inputs[0]->shape);
    return NULL;
}
KELP_KERNEL(Tile, 0, 0, 1, tile_reshape, tile_invoke);
