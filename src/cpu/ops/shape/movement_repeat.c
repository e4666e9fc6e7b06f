/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tile, Expand. From the innermost axis on, each block is written once and then copied as a whole
 * to its repetitions. Threads process blocks of the outer axes. Source: ONNX operator
 * specification.
 */
#include "base/assert.h"
#include "cpu/ops/kernel.h"

/* The repetition of a tensor. An axis that is not repeated is merged with the previous axis. */
typedef struct job {
    const kelp_op_env *env; /* NULL: already runs in parallel */
    int32_t rank, outer;    /* axes before `outer` are divided among threads */
    int64_t dims[KELP_MAX_RANK], repeats[KELP_MAX_RANK];
    /* of axes from i on: one step of axis i - 1 */
    size_t from_bytes[KELP_MAX_RANK + 1], to_bytes[KELP_MAX_RANK + 1];
    char *to;
    const char *from;
} job;

/* Copies the block at `to` after itself, so that it is there `count` times. */
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

/* Writes axes from `axis` on. */
static void fill(const job *j, int32_t axis, char *to, const char *from) {
    KELP_ASSERT(axis >= 0 && axis <= j->rank);
    if (axis == j->rank) {
        memcpy(to, from, j->from_bytes[axis]);
        return;
    }
    if (axis + 1 == j->rank)
        memcpy(to, from, j->from_bytes[axis]);
    else
        for (int64_t i = 0; i < j->dims[axis]; i++)
            fill(j, axis + 1, to + (size_t)i * j->to_bytes[axis + 1],
                 from + (size_t)i * j->from_bytes[axis + 1]);
    repeat(j->env, to, (size_t)j->dims[axis] * j->to_bytes[axis + 1], j->repeats[axis]);
}

/* Writes parts of the output. A part has the axes from `outer` on, for one step of the others. */
static void fill_range(void *userp, int64_t begin, int64_t end, int worker) {
    const job *j = userp;
    (void)worker;
    for (int64_t part = begin; part < end; part++) {
        size_t to = 0, from = 0;
        int64_t rest = part;
        for (int32_t i = j->outer - 1; i >= 0; i--) {
            int64_t steps = j->dims[i] * j->repeats[i], at = rest % steps;
            to += (size_t)at * j->to_bytes[i + 1];
            from += (size_t)(at % j->dims[i]) * j->from_bytes[i + 1];
            rest /= steps;
        }
        fill(j, j->outer, j->to + to, j->from + from);
    }
}

/* Returns the number of outer axes: parts have the fewest axes that reach the minimum size. */
static int32_t outer_axes(const job *j) {
    enum { PART_BYTES = 1 << 15 };
    int32_t outer = j->rank;
    while (outer > 0 && j->to_bytes[outer] < PART_BYTES)
        outer--;
    return outer;
}

/* Repeats input 0, with `shape` of the rank of output 0, to output 0. */
static void repeat_all(const kelp_op_args *args, const int64_t *shape) {
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    size_t size = kelp_ops_element_bytes(x->dtype);
    job j = {.to = y->data, .from = x->data};
    if (kelp_tensor_elements(y) == 0)
        return;
    for (int32_t i = 0; i < y->rank; i++) {
        KELP_ASSERT(shape[i] > 0 && y->shape[i] % shape[i] == 0);
        int64_t repeats = y->shape[i] / shape[i];
        if (j.rank > 0 && repeats == 1) {
            j.dims[j.rank - 1] *= shape[i];
        } else if (shape[i] != 1 || repeats != 1) {
            j.dims[j.rank] = shape[i];
            j.repeats[j.rank++] = repeats;
        }
    }
    j.from_bytes[j.rank] = j.to_bytes[j.rank] = size;
    for (int32_t i = j.rank - 1; i >= 0; i--) {
        j.from_bytes[i] = j.from_bytes[i + 1] * (size_t)j.dims[i];
        j.to_bytes[i] = j.to_bytes[i + 1] * (size_t)(j.dims[i] * j.repeats[i]);
    }
    j.outer = outer_axes(&j);
    if (j.outer == 0) {
        j.env = args->env;
        fill(&j, 0, j.to, j.from);
        return;
    }
    int64_t count = (int64_t)(j.to_bytes[0] / j.to_bytes[j.outer]);
    int64_t grain = (int64_t)(KELP_GRAIN_COPY_BYTES / j.to_bytes[j.outer]) + 1;
    kelp_op_parallel(args->env, count, grain, fill_range, &j);
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
/* Reads inputs "tiles" and "axis", used before opset 6: one number each, of the type of the tensor.
 */
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
    if (count != (size_t)x->rank)
        return kelp_ops_bad_shapes(args, x, NULL, "expected one repeat count for each axis");
    for (int32_t i = 0; i < x->rank; i++)
        if (repeats[i] < 0 || !kelp_i64_mul(x->shape[i], repeats[i], &shape[i]))
            return kelp_ops_bad_shapes(args, x, NULL, "a repeat count is negative or too large");
    return kelp_ops_set(args, 0, x->dtype, x->rank, shape);
}
static kelp_status *tile_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    repeat_all(args, args->inputs[0]->shape);
    return NULL;
}
KELP_KERNEL(Tile, 0, 0, 1, tile_reshape, tile_invoke);
