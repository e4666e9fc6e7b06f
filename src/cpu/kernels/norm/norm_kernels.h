/* SPDX-License-Identifier: Apache-2.0 */
/* Micro-kernels that normalize rows or columns of floats. They read and write nothing else. */
#ifndef KELP_CPU_KERNELS_NORM_NORM_KERNELS_H_
#define KELP_CPU_KERNELS_NORM_NORM_KERNELS_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct kelp_norm_kernels {
    /* y = softmax(scale * x + mask), or with `log` its logarithm. `mask` may be NULL; y may be x.
     * A row of which every element is -infinity gives NaN. */
    void (*softmax)(const float *x, const float *mask, float scale, float *y, int64_t count,
                    bool log);
    /* The same of `count` columns of `length` floats that are `stride` floats apart, without scale
     * and mask; y has the strides of x. */
    void (*softmax_columns)(const float *x, float *y, int64_t stride, int64_t length, int64_t count,
                            bool log);
    /* y = (v - mean(v)) / sqrt(var(v) + epsilon) * gamma + beta with v = x + skip. With `rms` the
     * mean is not subtracted. v is written to `sum`. skip, gamma, beta and sum may be NULL; y may
     * be x. Sets the mean and 1 / sqrt(var(v) + epsilon). */
    void (*layer_norm)(const float *x, const float *skip, const float *gamma, const float *beta,
                       float epsilon, bool rms, float *sum, float *y, int64_t count,
                       float *out_mean, float *out_inverse);
} kelp_norm_kernels;

/* Returns the table of the instruction set in use. Thread-safe. */
const kelp_norm_kernels *kelp_norm_kernels_get(void);

#endif
