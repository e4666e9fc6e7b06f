/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the kernels share: checks, shapes, broadcasting, copies between strided layouts.
 *
 * Tensors that reach kernels are compact and row-major. Threads: the functions are called from
 * create, reshape or invoke of one context.
 */
#ifndef KELP_CPU_OPS_KERNEL_H_
#define KELP_CPU_OPS_KERNEL_H_

#include "base/checked.h"
#include "cpu/kernels/tuning.h"

#include <kelp/opset.h>
#include <string.h>

/* ---- arguments ---- */
/* Returns input or output `index`; NULL if it is omitted. */
static inline const kelp_tensor *kelp_ops_in(const kelp_op_args *args, int32_t index) {
    return index < args->input_count ? args->inputs[index] : NULL;
}
static inline kelp_tensor *kelp_ops_out(const kelp_op_args *args, int32_t index) {
    return index < args->output_count ? args->outputs[index] : NULL;
}
/* Returns INVALID_ARGUMENT, with the index, if one of the first `count` inputs is omitted. */
kelp_status *kelp_ops_check_inputs(const kelp_op_args *args, int32_t count) KELP_MUST_USE;
/* Checks the same, and that output 0 is not omitted. */
kelp_status *kelp_ops_check(const kelp_op_args *args, int32_t count) KELP_MUST_USE;
/* Sets the type and shape of output `index`, unless it is omitted. */
kelp_status *kelp_ops_set(kelp_op_args *args, int32_t index, kelp_dtype dtype, int32_t rank,
                          const int64_t *shape) KELP_MUST_USE;
kelp_status *kelp_ops_set_like(kelp_op_args *args, int32_t index,
                               const kelp_tensor *like) KELP_MUST_USE;
/* Returns UNIMPLEMENTED: the operator does not support the type. */
kelp_status *kelp_ops_bad_type(const kelp_op_args *args, kelp_dtype dtype) KELP_MUST_USE;
/* Returns INVALID_ARGUMENT with the operator's name and the shapes of `a` and `b`, which may be
 * NULL.
 */
kelp_status *kelp_ops_bad_shapes(const kelp_op_args *args, const kelp_tensor *a,
                                 const kelp_tensor *b, const char *why) KELP_MUST_USE;
/* Returns true, and sets args->deferred, if reshape needs the values of input `index` and they are
 * not known yet. */
bool kelp_ops_defer(kelp_op_args *args, int32_t index);
/* Returns the type whose number is the value of an attribute, or KELP_DTYPE_INVALID. */
kelp_dtype kelp_ops_attr_dtype(const kelp_node *node, const char *name, int64_t fallback);
/* Makes a negative axis positive; INVALID_ARGUMENT outside [-rank, rank). */
kelp_status *kelp_ops_axis(const kelp_op_args *args, int64_t axis, int32_t rank,
                           int32_t *out) KELP_MUST_USE;
/* Reads a list of int64 or int32, whose values must be known; INVALID_ARGUMENT if it is longer than
 * `capacity`. */
kelp_status *kelp_ops_i64s(const kelp_op_args *args, const kelp_tensor *tensor, int64_t *out,
                           size_t capacity, size_t *out_count) KELP_MUST_USE;
/* Reads element `index` of any integer, bool or float type as int64. */
int64_t kelp_ops_read_i64(const kelp_tensor *tensor, int64_t index);
/* Reads element `index` of any number type as double. */
double kelp_ops_read_f64(const kelp_tensor *tensor, int64_t index);
/* Reads axes from input `input` if it is present, else from the attribute "axes". `*out_mask` has a
 * bit for each axis; `*out_found` is false for an empty or missing list. Sets args->deferred if the
 * values of the input are not known yet. INVALID_ARGUMENT: an axis is out of range or occurs twice.
 */
kelp_status *kelp_ops_axes(kelp_op_args *args, int32_t input, int32_t rank, uint32_t *out_mask,
                           bool *out_found) KELP_MUST_USE;
/* Returns the product of dimensions [first, last). */
int64_t kelp_ops_product(const int64_t *shape, int32_t first, int32_t last);
/* Returns the bytes of an element; 0 for packed sub-byte types. */
size_t kelp_ops_element_bytes(kelp_dtype dtype);
bool kelp_ops_is_float(kelp_dtype dtype);
/* Returns the opset version of the node. */
static inline int64_t kelp_ops_version(const kelp_op_args *args) {
    return kelp_node_opset_version(args->node);
}

/* Reserves `count` elements of scratch memory, aligned to 64 bytes, and sets their offset.
 * RESOURCE_EXHAUSTED: the size overflows. */
kelp_status *kelp_ops_scratch(kelp_op_args *args, int64_t count, size_t element_bytes,
                              size_t *out_offset) KELP_MUST_USE;

/* Returns the scratch memory that was reserved at `offset`; for invoke. */
static inline void *kelp_ops_scratch_at(const kelp_op_args *args, size_t offset) {
    return (char *)args->scratch + offset;
}

/* ---- broadcasting ---- */
#define KELP_BCAST_MAX 3
/* The iteration over the output of a broadcast operator. Adjacent dimensions are merged where all
 * operands permit it. The innermost stride of each operand is 0 or 1. */
typedef struct kelp_bcast {
    int32_t rank, operands;
    int64_t shape[KELP_MAX_RANK];
    int64_t strides[KELP_BCAST_MAX][KELP_MAX_RANK];
    int64_t inner; /* size of the innermost dimension */
    int64_t outer; /* product of the others: number of rows */
} kelp_bcast;
/* Broadcasts `*inout_shape` with `shape` as NumPy does; returns false if they are incompatible. */
bool kelp_ops_broadcast_shape(int32_t *inout_rank, int64_t *inout_shape, int32_t rank,
                              const int64_t *shape);
/* Initializes the iteration over `shape`, to which each operand must broadcast. */
void kelp_bcast_init(kelp_bcast *bcast, int32_t rank, const int64_t *shape,
                     const kelp_tensor *const *operands, int32_t count);
/* Computes the element offset of row `row`, less than bcast->outer, in each operand. */
void kelp_bcast_row(const kelp_bcast *bcast, int64_t row, int64_t *out_offsets);
/* A part of a row of a broadcast operator: `count` elements from index `to` of the output on.
 * `from` and `steps` are the offset and the stride, 0 or 1, of each operand. */
typedef struct kelp_bcast_part {
    int64_t to, count, from[KELP_BCAST_MAX];
    int steps[KELP_BCAST_MAX];
} kelp_bcast_part;
typedef void kelp_bcast_fn(void *userp, const kelp_bcast_part *part);
/* Calls `fn` for all elements, part by part, on all threads; `grain` is the number of elements that
 * justify another thread. */
void kelp_bcast_run(const kelp_op_env *env, const kelp_bcast *bcast, int64_t grain,
                    kelp_bcast_fn *fn, void *userp);

/* ---- copies ---- */
/* Copies an array between two strided layouts. Strides are in elements; those of the source may be
 * 0 or negative. Elements have 1, 2, 4, 8 or 16 bytes. Uses all threads for large arrays. */
void kelp_ops_copy(const kelp_op_env *env, size_t element_bytes, int32_t rank, const int64_t *shape,
                   void *to, const int64_t *to_strides, const void *from,
                   const int64_t *from_strides);
/* Computes the strides, in elements, of a compact row-major array. */
void kelp_ops_strides(int32_t rank, const int64_t *shape, int64_t *out_strides);
/* Fills `count` elements with the value at `value`. */
void kelp_ops_fill(void *to, size_t element_bytes, int64_t count, const void *value);
/* Returns true for types of 1, 2 or 4 bits, which are packed into bytes from the low bits up. */
bool kelp_ops_is_packed(kelp_dtype dtype);
/* Copies `count` elements of any type from index `from_first` to index `to_first`. Other elements
 * that are packed into the same byte are preserved. */
void kelp_ops_copy_elements(kelp_dtype dtype, void *to, int64_t to_first, const void *from,
                            int64_t from_first, int64_t count);
/* Zeroes the last byte of a packed tensor, before elements are copied to it one by one, so that its
 * unused bits are 0. */
void kelp_ops_clear_end(const kelp_tensor *tensor);
/* Copies bytes, on all threads. */
void kelp_ops_memcpy(const kelp_op_env *env, void *to, const void *from, size_t size_bytes);

/* Defines kelp_op_<name>, a kernel without state. */
#define KELP_KERNEL(name, kernel_flags, plan, unaligned, reshape_fn, invoke_fn)   \
    const kelp_op_kernel kelp_op_##name = {.struct_size = sizeof(kelp_op_kernel), \
                                           .flags = (kernel_flags),               \
                                           .plan_bytes = (plan),                  \
                                           .unaligned_inputs = (unaligned),       \
                                           .reshape = (reshape_fn),               \
                                           .invoke = (invoke_fn)}

#endif
