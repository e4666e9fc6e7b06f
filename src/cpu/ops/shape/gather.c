/* SPDX-License-Identifier: Apache-2.0 */
/* Gather, GatherElements, GatherND. Invoke fails for an index outside [-dimension, dimension).
 * Source: ONNX operator specification. */
#include "base/assert.h"
#include "cpu/ops/shape/indices.h"

#include <stdatomic.h>

/* One of the operators as units, which copy elements or slices of `size` bytes. */
typedef struct gather_job {
    const kelp_tensor *indices;
    const char *from;
    char *to;
    size_t size;          /* bytes that an index selects */
    int64_t batches;      /* parts of the data, each with `count` units */
    int64_t count, span;  /* units of a batch, and slices of the data in a batch */
    int64_t repeat;       /* the indices of a batch are those of batch (batch % repeat) */
    int32_t depth;        /* of a tuple */
    const int64_t *dims;  /* that a tuple selects from */
    kelp_index_walk walk; /* of GatherElements */
    _Atomic bool has_bad_index;
} gather_job;

static void gather_range(void *userp, int64_t begin, int64_t end, int worker) {
    gather_job *job = userp;
    int64_t offsets[KELP_INDEX_BLOCK];
    (void)worker;
    for (int64_t at = begin; at < end;) {
        int64_t batch = at / job->count, first = at % job->count;
        int64_t count = KELP_MIN(KELP_MIN((int64_t)KELP_INDEX_BLOCK, job->count - first), end - at);
        int64_t tuple = batch % job->repeat * job->count + first;
        if (!kelp_index_tuples(job->indices, tuple, count, job->depth, job->dims, offsets)) {
            atomic_store_explicit(&job->has_bad_index, true, memory_order_relaxed);
            return;
        }
        kelp_index_gather(job->size, job->to + (size_t)at * job->size,
                          job->from + (size_t)(batch * job->span) * job->size, offsets, count);
        at += count;
    }
}

/* Runs a job; returns false if an index is out of range. */
static bool run(gather_job *job, const kelp_op_env *env) {
    int64_t grain = kelp_cpu_grain(KELP_GRAIN_COPY_BYTES, (int64_t)job->size + 32);
    atomic_init(&job->has_bad_index, false);
    if (job->count > 0)
        kelp_op_parallel(env, job->batches * job->count, grain, gather_range, job);
    return !atomic_load_explicit(&job->has_bad_index, memory_order_relaxed);
}

/* ---- Gather ---- */
typedef struct gather_plan {
    int64_t outer, dim, inner_bytes; /* before, of and after the axis */
    int64_t count;                   /* of indices */
} gather_plan;

static kelp_status *gather_reshape(const void *state, kelp_op_args *args) {
    gather_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    int32_t axis = 0, rank = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *data = args->inputs[0], *indices = args->inputs[1];
    size_t size = kelp_ops_element_bytes(data->dtype);
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 0), data->rank, &axis));
    if (size == 0 || (indices->dtype != KELP_I64 && indices->dtype != KELP_I32))
        return kelp_ops_bad_type(args, size == 0 ? data->dtype : indices->dtype);
    if (data->rank + indices->rank - 1 > KELP_MAX_RANK)
        return kelp_ops_bad_shapes(args, data, indices, "the result has too many axes");
    for (int32_t i = 0; i < data->rank; i++) {
        if (i != axis) {
            shape[rank++] = data->shape[i];
            continue;
        }
        for (int32_t k = 0; k < indices->rank; k++)
            shape[rank++] = indices->shape[k];
    }
    p->outer = kelp_ops_product(data->shape, 0, axis);
    p->dim = data->shape[axis];
    p->inner_bytes = kelp_ops_product(data->shape, axis + 1, data->rank) * (int64_t)size;
    p->count = kelp_tensor_elements(indices);
    return kelp_ops_set(args, 0, data->dtype, rank, shape);
}

static kelp_status *gather_error(const gather_plan *p, const kelp_tensor *indices) {
    for (int64_t i = 0; i < p->count; i++) {
        int64_t index = kelp_ops_read_i64(indices, i);
        if (index < -p->dim || index >= p->dim)
            return KELP_ERROR(KELP_OUT_OF_RANGE,
                              "index %lld at position %lld is out of range: the dimension is "
                              "%lld",
                              (long long)index, (long long)i, (long long)p->dim);
    }
    return NULL; /* the indices changed while the operator ran */
}

static kelp_status *gather_invoke(const void *state, kelp_op_args *args) {
    const gather_plan *p = args->plan;
    gather_job job = {.indices = args->inputs[1],
                      .from = args->inputs[0]->data,
                      .to = args->outputs[0]->data,
                      .size = (size_t)p->inner_bytes,
                      .batches = p->outer,
                      .count = p->count,
                      .span = p->dim,
                      .repeat = 1,
                      .depth = 1,
                      .dims = &p->dim};
    (void)state;
    KELP_ASSERT(p->count == kelp_tensor_elements(args->inputs[1]));
    KELP_ASSERT((size_t)(p->outer * p->count * p->inner_bytes) ==
                kelp_tensor_bytes(args->outputs[0]));
    if (p->inner_bytes == 0 || p->outer == 0) /* only the indices are checked */
        return gather_error(p, args->inputs[1]);
    return run(&job, args->env) ? NULL : gather_error(p, args->inputs[1]);
}
KELP_KERNEL(Gather, 0, sizeof(gather_plan), 1, gather_reshape, gather_invoke);

/* ---- GatherElements ---- */
static kelp_status *check_types(kelp_op_args *args) {
    KELP_TRY(kelp_ops_check(args, 2));
    if (args->inputs[1]->dtype != KELP_I32 && args->inputs[1]->dtype != KELP_I64)
        return kelp_ops_bad_type(args, args->inputs[1]->dtype);
    if (kelp_ops_element_bytes(args->inputs[0]->dtype) == 0)
        return kelp_ops_bad_type(args, args->inputs[0]->dtype);
    return NULL;
}

static kelp_status *gather_elements_reshape(const void *state, kelp_op_args *args) {
    int32_t axis = 0;
    (void)state;
    KELP_TRY(check_types(args));
    const kelp_tensor *x = args->inputs[0], *indices = args->inputs[1];
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 0), x->rank, &axis));
    if (x->rank != indices->rank)
        return kelp_ops_bad_shapes(args, x, indices, "the ranks differ");
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis && indices->shape[i] > x->shape[i])
            return kelp_ops_bad_shapes(args, x, indices, "the indices are larger than the data");
    kelp_index_walk_init(args->plan, x, indices, axis);
    return kelp_ops_set(args, 0, x->dtype, indices->rank, indices->shape);
}

/* Rows from this length on are tested for equal indices, whose elements are contiguous. */
#define LONG_ROW 16

static void gather_elements_range(void *userp, int64_t begin, int64_t end, int worker) {
    gather_job *job = userp;
    int64_t offsets[KELP_INDEX_BLOCK], row = job->walk.row;
    bool has_long_rows = row >= LONG_ROW && job->walk.step == 1;
    (void)worker;
    for (int64_t at = begin; at < end;) {
        int64_t count = KELP_MIN((int64_t)KELP_INDEX_BLOCK, end - at);
        if (has_long_rows)
            count = KELP_MIN(count, row - at % row);
        if (!kelp_index_walk_offsets(&job->walk, job->indices, at, count, offsets)) {
            atomic_store_explicit(&job->has_bad_index, true, memory_order_relaxed);
            return;
        }
        char *to = job->to + (size_t)at * job->size;
        if (has_long_rows && kelp_index_is_run(offsets, count))
            memcpy(to, job->from + (size_t)offsets[0] * job->size, (size_t)count * job->size);
        else
            kelp_index_gather(job->size, to, job->from, offsets, count);
        at += count;
    }
}

static kelp_status *gather_elements_invoke(const void *state, kelp_op_args *args) {
    gather_job job = {.indices = args->inputs[1],
                      .from = args->inputs[0]->data,
                      .to = args->outputs[0]->data,
                      .size = kelp_ops_element_bytes(args->inputs[0]->dtype),
                      .walk = *(const kelp_index_walk *)args->plan};
    (void)state;
    atomic_init(&job.has_bad_index, false);
    kelp_op_parallel(args->env, kelp_tensor_elements(args->inputs[1]), KELP_GRAIN_ELEMENTS,
                     gather_elements_range, &job);
    if (!atomic_load_explicit(&job.has_bad_index, memory_order_relaxed))
        return NULL;
    return kelp_index_error(args, args->inputs[1], 1, &job.walk.dim);
}
KELP_KERNEL(GatherElements, 0, sizeof(kelp_index_walk), 1, gather_elements_reshape,
            gather_elements_invoke);

/* ---- GatherND ---- */
static kelp_status *gather_nd_reshape(const void *state, kelp_op_args *args) {
    int64_t shape[KELP_MAX_RANK], batch = kelp_node_attr_i64(args->node, "batch_dims", 0);
    int32_t rank = 0;
    (void)state;
    KELP_TRY(check_types(args));
    const kelp_tensor *x = args->inputs[0], *indices = args->inputs[1];
    int64_t depth = indices->rank > 0 ? indices->shape[indices->rank - 1] : 0;
    if (indices->rank < 1 || batch < 0 || batch >= indices->rank || depth < 1 ||
        depth > x->rank - batch || indices->rank - 1 + x->rank - depth - batch > KELP_MAX_RANK)
        return kelp_ops_bad_shapes(args, x, indices, "the indices do not match the data");
    for (int64_t i = 0; i < batch; i++)
        if (x->shape[i] != indices->shape[i])
            return kelp_ops_bad_shapes(args, x, indices, "the batch dimensions differ");
    for (int32_t i = 0; i < indices->rank - 1; i++)
        shape[rank++] = indices->shape[i];
    for (int64_t i = batch + depth; i < x->rank; i++)
        shape[rank++] = x->shape[i];
    return kelp_ops_set(args, 0, x->dtype, rank, shape);
}

static kelp_status *gather_nd_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *indices = args->inputs[1];
    int32_t batch = (int32_t)kelp_node_attr_i64(args->node, "batch_dims", 0);
    int32_t depth = (int32_t)indices->shape[indices->rank - 1];
    gather_job job = {.indices = indices,
                      .from = x->data,
                      .to = args->outputs[0]->data,
                      .size = (size_t)kelp_ops_product(x->shape, batch + depth, x->rank) *
                              kelp_ops_element_bytes(x->dtype),
                      .batches = kelp_ops_product(x->shape, 0, batch),
                      .count = kelp_ops_product(indices->shape, batch, indices->rank - 1),
                      .span = kelp_ops_product(x->shape, batch, batch + depth),
                      .depth = depth,
                      .dims = x->shape + batch};
    (void)state;
    job.repeat = KELP_MAX((int64_t)1, job.batches);
    if (job.size == 0)
        return kelp_index_error(args, indices, depth, job.dims);
    return run(&job, args->env) ? NULL : kelp_index_error(args, indices, depth, job.dims);
}
KELP_KERNEL(GatherND, 0, 0, 1, gather_nd_reshape, gather_nd_invoke);
