/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of elements of any number type as float and back: 16-bit floats with vectors, other types as
 * kelp_real_load_f32 and kelp_real_store_f32 do. Thread-safe. */
#ifndef KELP_CPU_KERNELS_MATH_LOAD_H_
#define KELP_CPU_KERNELS_MATH_LOAD_H_

#include "cpu/kernels/math/math_kernels.h"
#include "tensor/real.h"

/* Returns true for float16 and bfloat16. */
static inline bool kelp_math_is_half(kelp_dtype dtype) {
    return dtype == KELP_F16 || dtype == KELP_BF16;
}

/* Loads elements [begin, begin + count) of the array at `data`. */
static inline void kelp_math_load(kelp_dtype dtype, const void *data, int64_t begin, int64_t count,
                                  float *out) {
    const kelp_math_kernels *kernels = kelp_math_kernels_get();
    const char *from = (const char *)data + 2 * begin;
    if (dtype == KELP_F16)
        kernels->from_f16(from, out, count);
    else if (dtype == KELP_BF16)
        kernels->from_bf16(from, out, count);
    else
        kelp_real_load_f32(dtype, data, begin, count, out);
}

/* Stores them. */
static inline void kelp_math_store(kelp_dtype dtype, void *data, int64_t begin, int64_t count,
                                   const float *from) {
    const kelp_math_kernels *kernels = kelp_math_kernels_get();
    char *to = (char *)data + 2 * begin;
    if (dtype == KELP_F16)
        kernels->to_f16(from, to, count);
    else if (dtype == KELP_BF16)
        kernels->to_bf16(from, to, count);
    else
        kelp_real_store_f32(dtype, data, begin, count, from);
}

/* The same for elements of a tensor. */
static inline void kelp_math_load_tensor(const kelp_tensor *tensor, int64_t begin, int64_t count,
                                         float *out) {
    kelp_math_load(tensor->dtype, tensor->data, begin, count, out);
}

static inline void kelp_math_store_tensor(const kelp_tensor *tensor, int64_t begin, int64_t count,
                                          const float *from) {
    kelp_math_store(tensor->dtype, tensor->data, begin, count, from);
}

#endif
