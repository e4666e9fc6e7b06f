/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ScatterElements and ScatterND. Invoke fails for an index outside [-dimension, dimension).
 * Source: ONNX operator specification.
 *
 * Elements that several indices select are joined in the order of the indices. The threads
 * therefore divide the targets: independent parts of the data, columns of long rows, or else
 * ranges of the axis, for which each thread reads all indices.
 */
#include "base/assert.h"
#include "cpu/ops/shape/indices.h"
#include "cpu/ops/shape/scatter_join.h"

#include <stdatomic.h>

/* Elements from which a row is long: its indices are tested for being equal, and threads divide it
 * by columns. */
#define LONG_ROW 16
#define COLUMNS_FOR_THREAD 32
/* Units of independent parts for each thread. */
#define UNITS_FOR_THREAD 8

typedef struct scatter_plan {
    kelp_join join;
    kelp_index_walk walk; /* of ScatterElements */
} scatter_plan;

/* Divides the work. A part computes the updates of units [0, units) in columns [columns * part /
 * parts, …) and targets in the same fraction of `targets`, or a range of independent units. */
typedef struct scatter_job {
    const scatter_plan *plan;
    const kelp_tensor *indices;
    const char *updates;
    char *out;
    int64_t parts;
    bool by_columns, by_targets;
    int64_t targets;     /* offsets are below; of the axis or of slices */
    int64_t slice;       /* ScatterND: elements of a slice */
    int32_t depth;       /* ScatterND: indices of a tuple */
    const int64_t *dims; /* ScatterND: that tuples select from */
    /* tuples of ScatterND; ScatterElements: independent parts of the data, and indices of one */
    int64_t groups, group;
    _Atomic bool has_bad_index;
} scatter_job;

/* Keeps the offsets whose target, (offset / stride) % targets, is in [first, last). Returns their
 * number. */
static int64_t keep_targets(int64_t *offsets, int32_t *sources, int64_t count, int64_t stride,
                            int64_t targets, int64_t first, int64_t last) {
    int64_t kept = 0, below = first * stride, above = last * stride, all = targets * stride;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = offsets[i] < all ? offsets[i] : offsets[i] % all;
        offsets[kept] = offsets[i];
        sources[kept] = (int32_t)i;
        kept += at >= below && at < above;
    }
    return kept;
}

static void fail(scatter_job *job) {
    atomic_store_explicit(&job->has_bad_index, true, memory_order_relaxed);
}

/* ---- ScatterElements ---- */
/* Joins `count` updates from index `at` on; [first, last) are the targets along the axis. */
static bool join_elements(const scatter_job *job, int64_t at, int64_t count, int64_t first,
                          int64_t last) {
    const scatter_plan *p = job->plan;
    int64_t offsets[KELP_INDEX_BLOCK];
    int32_t sources[KELP_INDEX_BLOCK];
    const char *updates = job->updates + (size_t)at * p->join.size;
    if (!kelp_index_walk_offsets(&p->walk, job->indices, at, count, offsets))
        return false;
    if (job->by_targets) {
        count = keep_targets(offsets, sources, count, p->walk.stride, p->walk.dim, first, last);
        p->join.scatter(&p->join, job->out, offsets, updates, sources, count);
    } else if (count >= LONG_ROW && p->walk.step == 1 && kelp_index_is_run(offsets, count)) {
        p->join.row(&p->join, job->out + (size_t)offsets[0] * p->join.size, updates, count);
    } else {
        p->join.scatter(&p->join, job->out, offsets, updates, NULL, count);
    }
    return true;
}

static void elements_range(void *userp, int64_t begin, int64_t end, int worker) {
    scatter_job *job = userp;
    const kelp_index_walk *walk = &job->plan->walk;
    int64_t total = kelp_tensor_elements(job->indices), row = walk->row;
    bool has_long_rows = row >= LONG_ROW && walk->step == 1;
    (void)worker;
    for (int64_t part = begin; part < end; part++) {
        int64_t first = walk->dim * part / job->parts, last = walk->dim * (part + 1) / job->parts;
        int64_t column = job->by_columns ? row * part / job->parts : 0;
        int64_t width = job->by_columns ? row * (part + 1) / job->parts - column : row;
        bool is_whole = job->by_columns || job->by_targets;
        int64_t at = is_whole ? column : job->groups * part / job->parts * job->group;
        int64_t stop = is_whole ? total : job->groups * (part + 1) / job->parts * job->group;
        while (at < stop) {
            int64_t count = KELP_MIN((int64_t)KELP_INDEX_BLOCK, stop - at);
            int64_t done = at % row - column;
            if (has_long_rows || job->by_columns)
                count = KELP_MIN(count, width - done);
            if (!join_elements(job, at, count, first, last)) {
                fail(job);
                return;
            }
            at += count;
            if (job->by_columns && done + count == width)
                at += row - width;
        }
    }
}

static kelp_status *check(kelp_op_args *args, kelp_join *out) {
    KELP_TRY(kelp_ops_check(args, 3));
    if (args->inputs[1]->dtype != KELP_I32 && args->inputs[1]->dtype != KELP_I64)
        return kelp_ops_bad_type(args, args->inputs[1]->dtype);
    if (kelp_ops_element_bytes(args->inputs[0]->dtype) == 0)
        return kelp_ops_bad_type(args, args->inputs[0]->dtype);
    return kelp_join_read(args, out);
}

static kelp_status *scatter_elements_reshape(const void *state, kelp_op_args *args) {
    scatter_plan *p = args->plan;
    int32_t axis = 0;
    (void)state;
    KELP_TRY(check(args, &p->join));
    const kelp_tensor *x = args->inputs[0], *indices = args->inputs[1], *updates = args->inputs[2];
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 0), x->rank, &axis));
    if (x->rank != indices->rank || updates->rank != indices->rank || updates->dtype != x->dtype ||
        memcmp(updates->shape, indices->shape, (size_t)x->rank * sizeof *x->shape) != 0)
        return kelp_ops_bad_shapes(args, indices, updates,
                                   "indices and updates must have the same shape");
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis && indices->shape[i] > x->shape[i])
            return kelp_ops_bad_shapes(args, x, indices, "the indices are larger than the data");
    kelp_index_walk_init(&p->walk, x, indices, axis);
    return kelp_ops_set_like(args, 0, x);
}

static kelp_status *scatter_elements_invoke(const void *state, kelp_op_args *args) {
    const scatter_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0];
    scatter_job job = {.plan = p,
                       .indices = args->inputs[1],
                       .updates = args->inputs[2]->data,
                       .out = args->outputs[0]->data,
                       .targets = p->walk.dim};
    int64_t total = kelp_tensor_elements(job.indices), threads = kelp_op_env_threads(args->env);
    (void)state;
    atomic_init(&job.has_bad_index, false);
    if (job.out != x->data)
        kelp_ops_memcpy(args->env, job.out, x->data, kelp_tensor_bytes(x));
    if (total == 0)
        return NULL;
    /* indices with different coordinates before the axis select different elements */
    job.groups = kelp_ops_product(p->walk.shape, 0, p->walk.axis < 0 ? p->walk.rank : p->walk.axis);
    job.group = total / job.groups;
    if (total < KELP_GRAIN_ELEMENTS || threads == 1) {
        job.parts = 1;
    } else if (job.groups >= threads) {
        job.parts = KELP_MIN(job.groups, UNITS_FOR_THREAD * threads);
    } else {
        job.by_columns =
            p->walk.axis != p->walk.rank && p->walk.row >= COLUMNS_FOR_THREAD * threads;
        job.by_targets = !job.by_columns;
        job.parts = threads;
    }
    kelp_op_parallel(args->env, job.parts, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, total / job.parts),
                     elements_range, &job);
    if (!atomic_load_explicit(&job.has_bad_index, memory_order_relaxed))
        return NULL;
    return kelp_index_error(args, job.indices, 1, &p->walk.dim);
}
KELP_KERNEL(ScatterElements, KELP_OP_INPLACE_0, sizeof(scatter_plan), 0, scatter_elements_reshape,
            scatter_elements_invoke);

/* ---- ScatterND ---- */
static kelp_status *scatter_nd_reshape(const void *state, kelp_op_args *args) {
    scatter_plan *p = args->plan;
    (void)state;
    KELP_TRY(check(args, &p->join));
    const kelp_tensor *x = args->inputs[0], *indices = args->inputs[1], *updates = args->inputs[2];
    int64_t depth = indices->rank > 0 ? indices->shape[indices->rank - 1] : 0;
    if (indices->rank < 1 || depth < 1 || depth > x->rank || updates->dtype != x->dtype ||
        updates->rank != indices->rank - 1 + x->rank - depth)
        return kelp_ops_bad_shapes(args, indices, updates,
                                   "indices and updates do not match the data");
    for (int32_t i = 0; i < updates->rank; i++) {
        int64_t dim =
            i < indices->rank - 1 ? indices->shape[i] : x->shape[i - (indices->rank - 1) + depth];
        if (updates->shape[i] != dim)
            return kelp_ops_bad_shapes(args, indices, updates, "the updates do not match the data");
    }
    return kelp_ops_set_like(args, 0, x);
}

/* Joins `count` slices from tuple `at` on: columns [column, column + width) of those whose targets
 * are in [first, last). */
static bool join_slices(const scatter_job *job, int64_t at, int64_t count, int64_t column,
                        int64_t width, int64_t first, int64_t last) {
    const kelp_join *join = &job->plan->join;
    int64_t offsets[KELP_INDEX_BLOCK];
    int32_t sources[KELP_INDEX_BLOCK];
    const char *updates = job->updates + (size_t)(at * job->slice + column) * join->size;
    if (!kelp_index_tuples(job->indices, at, count, job->depth, job->dims, offsets))
        return false;
    if (job->by_targets)
        count = keep_targets(offsets, sources, count, 1, job->targets, first, last);
    if (job->slice == 1) {
        join->scatter(join, job->out, offsets, updates, job->by_targets ? sources : NULL, count);
        return true;
    }
    for (int64_t i = 0; i < count; i++)
        join->row(join, job->out + (size_t)(offsets[i] * job->slice + column) * join->size,
                  updates + (size_t)((job->by_targets ? sources[i] : i) * job->slice) * join->size,
                  width);
    return true;
}

static void slices_range(void *userp, int64_t begin, int64_t end, int worker) {
    scatter_job *job = userp;
    (void)worker;
    for (int64_t part = begin; part < end; part++) {
        int64_t first = job->targets * part / job->parts;
        int64_t last = job->targets * (part + 1) / job->parts;
        int64_t column = job->by_columns ? job->slice * part / job->parts : 0;
        int64_t width =
            job->by_columns ? job->slice * (part + 1) / job->parts - column : job->slice;
        for (int64_t at = 0; at < job->groups; at += KELP_INDEX_BLOCK) {
            int64_t count = KELP_MIN((int64_t)KELP_INDEX_BLOCK, job->groups - at);
            if (!join_slices(job, at, count, column, width, first, last)) {
                fail(job);
                return;
            }
        }
    }
}

static kelp_status *scatter_nd_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *indices = args->inputs[1];
    int32_t depth = (int32_t)indices->shape[indices->rank - 1];
    scatter_job job = {.plan = args->plan,
                       .indices = indices,
                       .updates = args->inputs[2]->data,
                       .out = args->outputs[0]->data,
                       .parts = 1,
                       .targets = kelp_ops_product(x->shape, 0, depth),
                       .slice = kelp_ops_product(x->shape, depth, x->rank),
                       .depth = depth,
                       .dims = x->shape,
                       .groups = kelp_ops_product(indices->shape, 0, indices->rank - 1)};
    int64_t threads = kelp_op_env_threads(args->env), work = job.groups * (job.slice + 2);
    (void)state;
    atomic_init(&job.has_bad_index, false);
    if (job.out != x->data)
        kelp_ops_memcpy(args->env, job.out, x->data, kelp_tensor_bytes(x));
    if (work >= KELP_GRAIN_ELEMENTS && threads > 1) {
        job.by_columns = job.slice >= COLUMNS_FOR_THREAD * threads;
        job.by_targets = !job.by_columns;
        job.parts = threads;
    }
    kelp_op_parallel(args->env, job.parts, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, work / job.parts),
                     slices_range, &job);
    if (!atomic_load_explicit(&job.has_bad_index, memory_order_relaxed))
        return NULL;
    return kelp_index_error(args, indices, depth, x->shape);
}
KELP_KERNEL(ScatterND, KELP_OP_INPLACE_0, sizeof(scatter_plan), 0, scatter_nd_reshape,
            scatter_nd_invoke);
