/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparison of the elements of all number types, for operators that look for the largest or
 * smallest: blocks of elements are converted to float, double or int64_t without a loss, and
 * compared there. A NaN is chosen before any number, as in NumPy. Thread-safe.
 */
#ifndef KELP_CPU_OPS_REDUCE_ORDERED_H_
#define KELP_CPU_OPS_REDUCE_ORDERED_H_

#include "cpu/kernels/reduce/reduce_kernels.h"
#include "cpu/ops/kernel.h"

#define KELP_ORDERED_BLOCK 512 /* elements of a block */

/* The type that elements are compared in: KELP_F32, KELP_F64 or KELP_I64. */
typedef struct kelp_ordered_type {
    kelp_dtype dtype;
    kelp_fold_type fold;
    size_t bytes;
} kelp_ordered_type;

typedef union kelp_ordered_value {
    float f32;
    double f64;
    int64_t i64;
} kelp_ordered_value;

typedef union kelp_ordered_block {
    float f32[KELP_ORDERED_BLOCK];
    double f64[KELP_ORDERED_BLOCK];
    int64_t i64[KELP_ORDERED_BLOCK];
} kelp_ordered_block;

/* Finds the type in which elements of `dtype` are compared; returns false if they have no order. */
bool kelp_ordered_find_type(kelp_dtype dtype, kelp_ordered_type *out);
/* Returns `count` elements from index `first` on, at most KELP_ORDERED_BLOCK: in place, or
 * converted to `block`. The order of uint64 is that of the int64 that are returned. */
const void *kelp_ordered_load(const kelp_ordered_type *type, const kelp_tensor *x, int64_t first,
                              int64_t count, kelp_ordered_block *block);
/* The same for elements that are `step` apart; always copies to `block`. */
const void *kelp_ordered_gather(const kelp_ordered_type *type, const kelp_tensor *x, int64_t first,
                                int64_t step, int64_t count, kelp_ordered_block *block);
/* Returns the maximum or minimum of `count` elements, which is NaN if one of them is. */
kelp_ordered_value kelp_ordered_best(const kelp_ordered_type *type, const void *x, int64_t count,
                                     bool min);
/* Returns true if `next` is chosen before `best`: it is greater, or less with `min`, or NaN while
 * `best` is a number. With `ties`, also if they are equal or both NaN. */
bool kelp_ordered_wins(const kelp_ordered_type *type, const kelp_ordered_value *next,
                       const kelp_ordered_value *best, bool min, bool ties);
/* Returns the first or last position of a value, or of any NaN, in an array that contains it. */
int64_t kelp_ordered_position(const kelp_ordered_type *type, const void *x, int64_t count,
                              const kelp_ordered_value *value, bool last);

#endif
