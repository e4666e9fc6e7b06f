/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels of resizing: weighted sums of neighbouring rows, or of neighbours in a row. */
#ifndef KELP_CPU_KERNELS_RESIZE_RESIZE_KERNELS_H_
#define KELP_CPU_KERNELS_RESIZE_RESIZE_KERNELS_H_

#include <stdint.h>

typedef struct kelp_resize_kernels {
    /* y[i] = Σ w[t * w_stride] * x[t * stride + i], t < taps, i < count; taps >= 1. */
    void (*blend)(float *y, const float *x, int64_t stride, const float *w, int64_t w_stride,
                  int64_t taps, int64_t count);
    /* y[i] = Σ w[t * w_stride + i] * x[first[i] + t], t < taps, i < count; taps >= 1. */
    void (*gather_blend)(float *y, const float *x, const int32_t *first, const float *w,
                         int64_t w_stride, int64_t taps, int64_t count);
} kelp_resize_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_resize_kernels *kelp_resize_kernels_get(void);

#endif
