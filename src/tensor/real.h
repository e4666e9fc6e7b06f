/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Typed loads and stores: runs of elements of any number type as float or double and back, for
 * kernels that compute in float or double for all types of tensors. Addresses need no alignment.
 * Thread-safe.
 */
#ifndef KELP_TENSOR_REAL_H_
#define KELP_TENSOR_REAL_H_

#include "tensor/convert.h"

/* Returns true if the functions below support the type: integers, bool, floats of 16 bits or more.
 */
bool kelp_real_takes(kelp_dtype dtype);
/* Returns true if float represents every value of the type exactly. */
bool kelp_real_fits_f32(kelp_dtype dtype);
/* Loads elements [begin, begin + count) of the array at `data`. */
void kelp_real_load_f32(kelp_dtype dtype, const void *data, int64_t begin, int64_t count,
                        float *out);
void kelp_real_load_f64(kelp_dtype dtype, const void *data, int64_t begin, int64_t count,
                        double *out);
/* Stores them. Integers are rounded, ties to even, and saturated; NaN becomes 0. */
void kelp_real_store_f32(kelp_dtype dtype, void *data, int64_t begin, int64_t count,
                         const float *from);
void kelp_real_store_f64(kelp_dtype dtype, void *data, int64_t begin, int64_t count,
                         const double *from);

/* Loads or stores elements of a tensor in the same way. */
static inline void kelp_tensor_load_f32(const kelp_tensor *tensor, int64_t begin, int64_t count,
                                        float *out) {
    kelp_real_load_f32(tensor->dtype, tensor->data, begin, count, out);
}
static inline void kelp_tensor_store_f32(kelp_tensor *tensor, int64_t begin, int64_t count,
                                         const float *from) {
    kelp_real_store_f32(tensor->dtype, tensor->data, begin, count, from);
}
static inline void kelp_tensor_set_f64(kelp_tensor *tensor, int64_t index, double value) {
    kelp_real_store_f64(tensor->dtype, tensor->data, index, 1, &value);
}

/* Returns `value` rounded to `dtype` if that is float16 or bfloat16, and unchanged otherwise. */
static inline float kelp_real_round(kelp_dtype dtype, float value) {
    if (dtype == KELP_F16)
        return kelp_f16_to_f32(kelp_f32_to_f16(value));
    return dtype == KELP_BF16 ? kelp_bf16_to_f32(kelp_f32_to_bf16(value)) : value;
}

#endif
