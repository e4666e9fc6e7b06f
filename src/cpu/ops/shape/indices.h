/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets of the elements that tensors of int32 or int64 indices select, in blocks. An index is in
 * [-dimension, dimension). Thread-safe. */
#ifndef KELP_CPU_OPS_SHAPE_INDICES_H_
#define KELP_CPU_OPS_SHAPE_INDICES_H_

#include "cpu/ops/kernel.h"

/* Offsets that are computed at a time. */
#define KELP_INDEX_BLOCK 512

/* The elements of `data` that indices of the same rank select: the coordinates of an index are
 * those of the element, except that the index itself is the coordinate along one axis. Dimensions
 * of size 1 are left out, and adjacent ones merged where data and indices permit it. */
typedef struct kelp_index_walk {
    int32_t rank;                   /* dimensions around the rows */
    int32_t axis;                   /* position of the axis; rank: the rows; -1: left out */
    int64_t shape[KELP_MAX_RANK];   /* of the indices */
    int64_t strides[KELP_MAX_RANK]; /* in elements of the data; 0 for the axis */
    int64_t row, step;              /* indices of a row, and the distance of their elements */
    int64_t dim, stride;            /* of the data along the axis */
} kelp_index_walk;

void kelp_index_walk_init(kelp_index_walk *walk, const kelp_tensor *data,
                          const kelp_tensor *indices, int32_t axis);
/* Computes the offsets of `count` indices from index `first` on. Returns false if one of them is
 * out of range. */
bool kelp_index_walk_offsets(const kelp_index_walk *walk, const kelp_tensor *indices, int64_t first,
                             int64_t count, int64_t *out);

/* Computes the offsets of `count` tuples from tuple `first` on, where a tuple has `depth` indices
 * along dimensions of the sizes `dims`. Returns false if an index is out of range. */
bool kelp_index_tuples(const kelp_tensor *indices, int64_t first, int64_t count, int32_t depth,
                       const int64_t *dims, int64_t *out);

/* Returns true if the offsets follow each other. */
bool kelp_index_is_run(const int64_t *offsets, int64_t count);

/* Copies to[i] = from[offsets[i]], i < count, for elements of any size in bytes. */
void kelp_index_gather(size_t size, char *to, const char *from, const int64_t *offsets,
                       int64_t count);

/* Returns INVALID_ARGUMENT for the first index that is out of range; index i is along a dimension
 * of the size dims[i % depth]. */
kelp_status *kelp_index_error(const kelp_op_args *args, const kelp_tensor *indices, int32_t depth,
                              const int64_t *dims) KELP_MUST_USE;

#endif
