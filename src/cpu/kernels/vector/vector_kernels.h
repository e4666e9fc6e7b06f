/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels of operations on vectors of floats: dot products, scaled sums, reductions. They
 * read and write nothing outside their operands. */
#ifndef KELP_CPU_KERNELS_VECTOR_VECTOR_KERNELS_H_
#define KELP_CPU_KERNELS_VECTOR_VECTOR_KERNELS_H_

#include <stdint.h>

typedef struct kelp_vector_kernels {
    /* out[j] = Σ a[i] * b[j * stride + i], i < size, j < count. */
    void (*dots)(const float *a, const float *b, int64_t stride, int64_t count, int64_t size,
                 float *out);
    /* y[i] += w * x[i * stride], i < count; stride >= 1. */
    void (*axpy)(float *y, const float *x, float w, int64_t stride, int64_t count);
    /* Returns the sum of `count` elements. */
    float (*sum)(const float *x, int64_t count);
    /* Returns Σ (x[i] - mean)², i < count. */
    float (*squares)(const float *x, float mean, int64_t count);
    /* Returns the maximum of `count` elements, NaN if one of them is; -infinity without elements.
     */
    float (*max)(const float *x, int64_t count);
    /* y[i] += x[i * stride], i < count; stride >= 1. */
    void (*accumulate)(float *y, const float *x, int64_t stride, int64_t count);
    /* y[i] = max(y[i], x[i * stride]), NaN if one of them is; i < count, stride >= 1. */
    void (*accumulate_max)(float *y, const float *x, int64_t stride, int64_t count);
} kelp_vector_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_vector_kernels *kelp_vector_kernels_get(void);

#endif
