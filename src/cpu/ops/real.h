/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of elements of any number type as float or double and back, for kernels whose arithmetic is
 * in those whatever the tensor holds. Any thread.
 */
#ifndef KELP_CPU_OPS_REAL_H_
#define KELP_CPU_OPS_REAL_H_

#include "cpu/ops/kernel.h"

/* Whether the functions below take the type: integers, bool and floats of 16 bits or more. */
bool kelp_real_takes(kelp_dtype dtype);
/* Whether float holds every value of the type, so that arithmetic need not be in double. */
bool kelp_real_fits_f32(kelp_dtype dtype);
/* Elements [begin, begin + count) of the array at `data`. */
void kelp_real_load_f32(kelp_dtype dtype, const void *data, int64_t begin, int64_t count,
                        float *out);
void kelp_real_load_f64(kelp_dtype dtype, const void *data, int64_t begin, int64_t count,
                        double *out);
/* The reverse. Integers are rounded, ties to even, and held within their range; NaN becomes 0. */
void kelp_real_store_f32(kelp_dtype dtype, void *data, int64_t begin, int64_t count,
                         const float *from);
void kelp_real_store_f64(kelp_dtype dtype, void *data, int64_t begin, int64_t count,
                         const double *from);

#endif
