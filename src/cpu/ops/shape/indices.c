/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets of elements that indices select. */
#include "cpu/ops/shape/indices.h"

#include "base/assert.h"

/* Appends a dimension of the indices, or merges it with the last one. */
static void add_dim(kelp_index_walk *walk, int64_t size, int64_t stride, bool is_axis) {
    int32_t last = walk->rank - 1;
    if (size == 1)
        return;
    if (last >= 0 && !is_axis && walk->axis != last && walk->strides[last] == stride * size) {
        walk->shape[last] *= size;
        walk->strides[last] = stride;
        return;
    }
    if (is_axis)
        walk->axis = walk->rank;
    walk->shape[walk->rank] = size;
    walk->strides[walk->rank++] = is_axis ? 0 : stride;
}

void kelp_index_walk_init(kelp_index_walk *walk, const kelp_tensor *data,
                          const kelp_tensor *indices, int32_t axis) {
    int64_t strides[KELP_MAX_RANK];
    KELP_ASSERT(data->rank == indices->rank && axis >= 0 && axis < data->rank);
    kelp_ops_strides(data->rank, data->shape, strides);
    *walk = (kelp_index_walk){.axis = -1, .dim = data->shape[axis], .stride = strides[axis]};
    for (int32_t i = 0; i < data->rank; i++)
        add_dim(walk, indices->shape[i], strides[i], i == axis);
    walk->row = 1;
    if (walk->rank > 0) {
        walk->row = walk->shape[--walk->rank];
        walk->step = walk->strides[walk->rank];
    }
}

/* The position of a row: its coordinates and its offset in the data. */
typedef struct place {
    int64_t at[KELP_MAX_RANK];
    int64_t offset;
} place;

static void start(const kelp_index_walk *walk, int64_t row, place *out) {
    out->offset = 0;
    for (int32_t i = walk->rank; i-- > 0;) {
        out->at[i] = row % walk->shape[i];
        row /= walk->shape[i];
        out->offset += out->at[i] * walk->strides[i];
    }
}

static void next(const kelp_index_walk *walk, place *inout) {
    for (int32_t i = walk->rank; i-- > 0;) {
        inout->offset += walk->strides[i];
        if (++inout->at[i] < walk->shape[i])
            return;
        inout->offset -= walk->strides[i] * walk->shape[i];
        inout->at[i] = 0;
    }
}

#define OFFSETS(suffix, type)                                                                   \
    static bool offsets_##suffix(const kelp_index_walk *walk, const type *index, int64_t first, \
                                 int64_t count, int64_t *out) {                                 \
        int64_t column = first % walk->row, dim = walk->dim, stride = walk->stride;             \
        uint64_t bad = 0;                                                                       \
        place row;                                                                              \
        index += first;                                                                         \
        start(walk, first / walk->row, &row);                                                   \
        for (int64_t at = 0; at < count;) {                                                     \
            int64_t n = KELP_MIN(walk->row - column, count - at);                               \
            int64_t offset = row.offset + column * walk->step;                                  \
            for (int64_t i = 0; i < n; i++, offset += walk->step) {                             \
                int64_t x = index[at + i];                                                      \
                x += x < 0 ? dim : 0;                                                           \
                bad |= (uint64_t)x >= (uint64_t)dim;                                            \
                out[at + i] = (int64_t)((uint64_t)offset + (uint64_t)x * (uint64_t)stride);     \
            }                                                                                   \
            at += n;                                                                            \
            column = 0;                                                                         \
            next(walk, &row);                                                                   \
        }                                                                                       \
        return bad == 0;                                                                        \
    }                                                                                           \
    static bool tuples_##suffix(const type *index, int64_t count, int32_t depth,                \
                                const int64_t *dims, int64_t *out) {                            \
        uint64_t bad = 0;                                                                       \
        for (int64_t t = 0; t < count; t++, index += depth) {                                   \
            uint64_t at = 0;                                                                    \
            for (int32_t i = 0; i < depth; i++) {                                               \
                int64_t x = index[i];                                                           \
                x += x < 0 ? dims[i] : 0;                                                       \
                bad |= (uint64_t)x >= (uint64_t)dims[i];                                        \
                at = at * (uint64_t)dims[i] + (uint64_t)x;                                      \
            }                                                                                   \
            out[t] = (int64_t)at;                                                               \
        }                                                                                       \
        return bad == 0;                                                                        \
    }
OFFSETS(i32, int32_t)
OFFSETS(i64, int64_t)

bool kelp_index_walk_offsets(const kelp_index_walk *walk, const kelp_tensor *indices, int64_t first,
                             int64_t count, int64_t *out) {
    KELP_ASSERT(first >= 0 && first + count <= kelp_tensor_elements(indices));
    return indices->dtype == KELP_I32 ? offsets_i32(walk, indices->data, first, count, out)
                                      : offsets_i64(walk, indices->data, first, count, out);
}

bool kelp_index_tuples(const kelp_tensor *indices, int64_t first, int64_t count, int32_t depth,
                       const int64_t *dims, int64_t *out) {
    KELP_ASSERT(first >= 0 && (first + count) * depth <= kelp_tensor_elements(indices));
    return indices->dtype == KELP_I32
               ? tuples_i32((const int32_t *)indices->data + first * depth, count, depth, dims, out)
               : tuples_i64((const int64_t *)indices->data + first * depth, count, depth, dims,
                            out);
}

bool kelp_index_is_run(const int64_t *offsets, int64_t count) {
    if (offsets[count - 1] - offsets[0] != count - 1)
        return false;
    for (int64_t i = 1; i < count; i++)
        if (offsets[i] - offsets[i - 1] != 1)
            return false;
    return true;
}

void kelp_index_gather(size_t size, char *to, const char *from, const int64_t *offsets,
                       int64_t count) {
    switch (size) {
#define CASE(bytes)                                                         \
    case bytes:                                                             \
        for (int64_t i = 0; i < count; i++)                                 \
            memcpy(to + i * (bytes), from + offsets[i] * (bytes), (bytes)); \
        break;
        CASE(1)
        CASE(2)
        CASE(4)
        CASE(8)
        CASE(16)
#undef CASE
    default:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * size, from + (size_t)offsets[i] * size, size);
        break;
    }
}

kelp_status *kelp_index_error(const kelp_op_args *args, const kelp_tensor *indices, int32_t depth,
                              const int64_t *dims) {
    int64_t count = kelp_tensor_elements(indices);
    for (int64_t i = 0; i < count; i++) {
        int64_t index = kelp_ops_read_i64(indices, i), dim = dims[i % depth];
        if (index < -dim || index >= dim)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "operator '%s': index %lld is out of range: the dimension is %lld",
                              kelp_node_op_type(args->node), (long long)index, (long long)dim);
    }
    return NULL; /* the indices changed while the operator ran */
}
