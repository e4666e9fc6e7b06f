/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Micro-kernels that reduce lines of elements to one value each, and that find the position of a
 * maximum or minimum. They read and write nothing outside their operands, which need the alignment
 * of their type.
 *
 * The accumulator of a maximum or minimum has the type of the elements. The other accumulators are
 * double for floats and uint64_t for integers, whose sums wrap. A NaN makes the maximum and the
 * minimum NaN.
 */
#ifndef KELP_CPU_KERNELS_REDUCE_REDUCE_KERNELS_H_
#define KELP_CPU_KERNELS_REDUCE_REDUCE_KERNELS_H_

#include <stdbool.h>
#include <stdint.h>

typedef enum kelp_fold {
    KELP_FOLD_SUM,
    KELP_FOLD_MAGNITUDES, /* the sum of absolute values */
    KELP_FOLD_SQUARES,    /* the sum of squares */
    KELP_FOLD_PRODUCT,
    KELP_FOLD_MAX,
    KELP_FOLD_MIN,
    KELP_FOLD_COUNT
} kelp_fold;

/* Element types. Those of one byte have KELP_FOLD_MAX and KELP_FOLD_MIN only. */
typedef enum kelp_fold_type {
    KELP_FOLD_F32,
    KELP_FOLD_F64,
    KELP_FOLD_I32,
    KELP_FOLD_I64,
    KELP_FOLD_U32,
    KELP_FOLD_U64,
    KELP_FOLD_I8,
    KELP_FOLD_U8,
    KELP_FOLD_TYPES
} kelp_fold_type;

/* Lines of elements and their accumulators. Steps are in elements. */
typedef struct kelp_fold_job {
    const void *x;
    void *sums;    /* accumulators, which contain initial values */
    int64_t lines; /* line i begins at x + i * line_step */
    int64_t line_step;
    int64_t rows; /* row j of a line begins row_step elements after the row before */
    int64_t row_step;
    int64_t count; /* adjacent elements of a row */
} kelp_fold_job;

typedef struct kelp_fold_kernels {
    /* Adds all elements of line i to sums[i]. */
    void (*rows)(const kelp_fold_job *job);
    /* Adds element k of each row of line i to sums[i * count + k]. */
    void (*columns)(const kelp_fold_job *job);
} kelp_fold_kernels;

typedef struct kelp_reduce_kernels {
    kelp_fold_kernels fold[KELP_FOLD_TYPES][KELP_FOLD_COUNT];
    /* For each k < count: if element k of a row is greater than values[k] (with `min` less, with
     * `last` also if equal), it replaces values[k], and the number of its row plus `first` replaces
     * positions[k]. A NaN replaces numbers. For KELP_FOLD_F32, _F64 and _I64. */
    void (*find[KELP_FOLD_TYPES])(const void *x, int64_t rows, int64_t row_step, int64_t count,
                                  bool min, bool last, int64_t first, void *values,
                                  int64_t *positions);
} kelp_reduce_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_reduce_kernels *kelp_reduce_kernels_get(void);

#endif
