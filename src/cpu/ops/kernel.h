/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernels share: checks, shapes, broadcasting, copies between strided layouts.
 *
 * Tensors that reach kernels are compact and row-major. Threads: everything here is called from
 * reshape or invoke of one context.
 */
#ifndef KELP_CPU_OPS_KERNEL_H_
#define KELP_CPU_OPS_KERNEL_H_

#include "base/checked.h"
#include "cpu/kernels/tuning.h"

#include <kelp/opset.h>
#include <string.h>

/* ---- arguments ---- */
static inline const kelp_tensor *kelp_ops_in(const kelp_op_args *args, int32_t index) {
    return index < args->input_count ? args->inputs[index] : NULL;
}
static inline kelp_tensor *kelp_ops_out(const kelp_op_args *args, int32_t index) {
    return index < args->output_count ? args->outputs[index] : NULL;
}
/* The first `count` inputs must be there; KELP_INVALID_ARGUMENT names the one that is not. */
kelp_status *kelp_ops_check_inputs(const kelp_op_args *args, int32_t count) KELP_MUST_USE;
/* The same, and output 0 must be wanted. */
kelp_status *kelp_ops_check(const kelp_op_args *args, int32_t count) KELP_MUST_USE;
/* Describes output `index`, when somebody wants it. */
kelp_status *kelp_ops_set(kelp_op_args *args, int32_t index, kelp_dtype dtype, int32_t rank,
                          const int64_t *shape) KELP_MUST_USE;
kelp_status *kelp_ops_set_like(kelp_op_args *args, int32_t index,
                               const kelp_tensor *like) KELP_MUST_USE;
/* UNIMPLEMENTED: the operator does not take this type. */
kelp_status *kelp_ops_bad_type(const kelp_op_args *args, kelp_dtype dtype) KELP_MUST_USE;
/* INVALID_ARGUMENT with the operator's name and shapes of inputs `a` and `b` (NULL: left out). */
kelp_status *kelp_ops_bad_shapes(const kelp_op_args *args, const kelp_tensor *a,
                                 const kelp_tensor *b, const char *why) KELP_MUST_USE;
/* true when the values of input `index` are needed by reshape and not there yet; then
 * args->deferred is set. */
bool kelp_ops_defer(kelp_op_args *args, int32_t index);
/* The type that an attribute of integers names; KELP_DTYPE_INVALID when there is none of that
 * number. */
kelp_dtype kelp_ops_attr_dtype(const kelp_node *node, const char *name, int64_t fallback);
/* Makes a negative axis positive; INVALID_ARGUMENT outside [-rank, rank). */
kelp_status *kelp_ops_axis(const kelp_op_args *args, int64_t axis, int32_t rank,
                           int32_t *out) KELP_MUST_USE;
/* Reads a list of int64 or int32 with data; INVALID_ARGUMENT when longer than `capacity`. */
kelp_status *kelp_ops_i64s(const kelp_op_args *args, const kelp_tensor *tensor, int64_t *out,
                           size_t capacity, size_t *out_count) KELP_MUST_USE;
/* One element of any integer, bool or float type as int64 (read at `index`). */
int64_t kelp_ops_read_i64(const kelp_tensor *tensor, int64_t index);
/* One element of any number type as double. */
double kelp_ops_read_f64(const kelp_tensor *tensor, int64_t index);
/* Axes from input `input` (when there) or attribute "axes", made positive, each at most once.
 * `out_mask` has a bit for each axis; `out_given` is false when there are none. Sets args->deferred
 * when the input's data is not known. */
kelp_status *kelp_ops_axes(kelp_op_args *args, int32_t input, int32_t rank, uint32_t *out_mask,
                           bool *out_given) KELP_MUST_USE;
/* Product of extents [first, last). */
int64_t kelp_ops_product(const int64_t *shape, int32_t first, int32_t last);
/* Bytes of an element; 0 for packed sub-byte types. */
size_t kelp_ops_element_bytes(kelp_dtype dtype);
bool kelp_ops_is_float(kelp_dtype dtype);
/* The opset version under which the node stands. */
static inline int64_t kelp_ops_version(const kelp_op_args *args) {
    return kelp_node_opset_version(args->node);
}

/* Adds `bytes`, rounded to 64, to args->scratch_bytes and gives where they begin. */
kelp_status *kelp_ops_scratch(kelp_op_args *args, int64_t count, size_t element_bytes,
                              size_t *out_offset) KELP_MUST_USE;

/* Returns where the bytes reserved at `offset` lie; for invoke. */
static inline void *kelp_ops_scratch_at(const kelp_op_args *args, size_t offset) {
    return (char *)args->scratch + offset;
}

/* ---- broadcasting ---- */
#define KELP_BCAST_MAX 3
/* A walk over the output of a broadcast operator, extents merged where all operands allow it. The
 * innermost stride of each operand is 0 or 1. */
typedef struct kelp_bcast {
    int32_t rank, operands;
    int64_t shape[KELP_MAX_RANK];
    int64_t strides[KELP_BCAST_MAX][KELP_MAX_RANK];
    int64_t inner; /* extent of the innermost dimension */
    int64_t outer; /* product of the others */
} kelp_bcast;
/* numpy's rule over two shapes; false when they do not fit. `out` may be one of them. */
bool kelp_ops_broadcast_shape(int32_t *inout_rank, int64_t *inout_shape, int32_t rank,
                              const int64_t *shape);
/* `shape` is the output's; each operand must broadcast to it. */
void kelp_bcast_init(kelp_bcast *bcast, int32_t rank, const int64_t *shape,
                     const kelp_tensor *const *operands, int32_t count);
/* Element offsets of row `row` (of bcast->outer) in each operand. */
void kelp_bcast_row(const kelp_bcast *bcast, int64_t row, int64_t *out_offsets);

/* ---- copies ---- */
/* Copies an array of `rank` extents between two strided layouts (strides in elements, may be 0 or
 * negative on the source side). Element size 1, 2, 4, 8 or 16. Large ones are shared among threads.
 */
void kelp_ops_copy(const kelp_op_env *env, size_t element_bytes, int32_t rank, const int64_t *shape,
                   void *to, const int64_t *to_strides, const void *from,
                   const int64_t *from_strides);
void kelp_ops_strides(int32_t rank, const int64_t *shape, int64_t *out_strides);
/* Fills `count` elements with the value at `value`. */
void kelp_ops_fill(void *to, size_t element_bytes, int64_t count, const void *value);
/* true for types of less than a byte, of which some lie in one; the first in its low bits. */
bool kelp_ops_is_packed(kelp_dtype dtype);
/* Copies `count` elements of any type from one place of a row of them to another of a second. What
 * else lies in a byte with packed ones stays. */
void kelp_ops_copy_elements(kelp_dtype dtype, void *to, int64_t to_first, const void *from,
                            int64_t from_first, int64_t count);
/* What of the last byte of a packed tensor belongs to no element becomes zero, with the others. */
void kelp_ops_clear_end(const kelp_tensor *tensor);
/* memcpy on all threads. */
void kelp_ops_memcpy(const kelp_op_env *env, void *to, const void *from, size_t size_bytes);

#define KELP_KERNEL(name, kernel_flags, plan, unaligned, reshape_fn, invoke_fn)   \
    const kelp_op_kernel kelp_op_##name = {.struct_size = sizeof(kelp_op_kernel), \
                                           .flags = (kernel_flags),               \
                                           .plan_bytes = (plan),                  \
                                           .unaligned_inputs = (unaligned),       \
                                           .reshape = (reshape_fn),               \
                                           .invoke = (invoke_fn)}

#endif
