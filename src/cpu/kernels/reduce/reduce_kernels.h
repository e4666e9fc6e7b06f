/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels of reductions of floats to doubles. Up to KELP_FOLD_BLOCK floats for each lane are
 * summed as floats, and these sums as doubles, so that the error does not grow with the number of
 * elements. */
#ifndef KELP_CPU_KERNELS_REDUCE_REDUCE_KERNELS_H_
#define KELP_CPU_KERNELS_REDUCE_REDUCE_KERNELS_H_

#include <stdint.h>

#define KELP_FOLD_BLOCK 64

typedef enum kelp_fold {
    KELP_FOLD_SUM = 0,
    KELP_FOLD_SQUARES,    /* Σ x² */
    KELP_FOLD_MAGNITUDES, /* Σ |x| */
    KELP_FOLD_MAX,        /* NaN if an element is */
    KELP_FOLD_MIN,
    KELP_FOLD_COUNT
} kelp_fold;

typedef struct kelp_reduce_kernels {
    /* Returns the reduction of `count` floats; of none: 0, -infinity for the maximum, infinity for
     * the minimum. */
    double (*row[KELP_FOLD_COUNT])(const float *x, int64_t count);
    /* Updates y[i], i < count, with x[row * step + i], row < rows. */
    void (*columns[KELP_FOLD_COUNT])(const float *x, int64_t step, int64_t rows, int64_t count,
                                     double *y);
} kelp_reduce_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_reduce_kernels *kelp_reduce_kernels_get(void);

/* Returns the reduction of two results. */
static inline double kelp_fold_two(kelp_fold fold, double a, double b) {
    if (fold == KELP_FOLD_MAX)
        return b > a || b != b ? b : a;
    if (fold == KELP_FOLD_MIN)
        return b < a || b != b ? b : a;
    return a + b;
}

#endif
