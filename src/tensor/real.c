/* SPDX-License-Identifier: Apache-2.0 */
/* Converts runs of elements of any number type to and from float or double. */
#include "tensor/real.h"

#include "base/assert.h"

#include <math.h>

typedef uint16_t half_bits __attribute__((aligned(1), may_alias));

bool kelp_real_takes(kelp_dtype dtype) {
    switch (dtype) {
    case KELP_F32:
    case KELP_F64:
    case KELP_F16:
    case KELP_BF16:
    case KELP_U8:
    case KELP_I8:
    case KELP_U16:
    case KELP_I16:
    case KELP_U32:
    case KELP_I32:
    case KELP_U64:
    case KELP_I64:
    case KELP_BOOL:
        return true;
    default:
        return false;
    }
}

bool kelp_real_fits_f32(kelp_dtype dtype) {
    return dtype == KELP_F32 || kelp_dtype_bits(dtype) <= 16;
}

#define LOAD(dtype_name, type)                                                      \
    case dtype_name: {                                                              \
        typedef type unaligned_type __attribute__((aligned(1), may_alias));         \
        const unaligned_type *restrict from = (const unaligned_type *)data + begin; \
        for (int64_t i = 0; i < count; i++)                                         \
            out[i] = (REAL)from[i];                                                 \
        break;                                                                      \
    }
#define LOAD_ALL                                        \
    LOAD(KELP_U8, uint8_t)                              \
    LOAD(KELP_I8, int8_t)                               \
    LOAD(KELP_U16, uint16_t)                            \
    LOAD(KELP_I16, int16_t)                             \
    LOAD(KELP_U32, uint32_t)                            \
    LOAD(KELP_I32, int32_t)                             \
    LOAD(KELP_U64, uint64_t)                            \
    LOAD(KELP_I64, int64_t)                             \
    LOAD(KELP_BOOL, uint8_t)                            \
    LOAD(KELP_F32, float)                               \
    LOAD(KELP_F64, double)                              \
    case KELP_F16:                                      \
        for (int64_t i = 0; i < count; i++)             \
            out[i] = (REAL)kelp_f16_to_f32(halves[i]);  \
        break;                                          \
    case KELP_BF16:                                     \
        for (int64_t i = 0; i < count; i++)             \
            out[i] = (REAL)kelp_bf16_to_f32(halves[i]); \
        break;

#define STORE(dtype_name, type, min, max)                                             \
    case dtype_name: {                                                                \
        type *restrict to = (type *)data + begin;                                     \
        for (int64_t i = 0; i < count; i++)                                           \
            to[i] = from[i] >= (REAL)(max)  ? (max)                                   \
                    : from[i] > (REAL)(min) ? (type)ROUND(from[i])                    \
                                            : (from[i] != from[i] ? 0 : (type)(min)); \
        break;                                                                        \
    }
/* Without conditions and calls, so that the compiler vectorizes the loop. Adding ROUNDING rounds to
 * integers, ties to even. */
#define STORE_SMALL(dtype_name, type, min, max)                   \
    case dtype_name: {                                            \
        type *restrict to = (type *)data + begin;                 \
        for (int64_t i = 0; i < count; i++) {                     \
            REAL value = from[i] != from[i] ? (REAL)0 : from[i];  \
            value = value < (REAL)(max) ? value : (REAL)(max);    \
            value = value > (REAL)(min) ? value : (REAL)(min);    \
            to[i] = (type)(int32_t)(value + ROUNDING - ROUNDING); \
        }                                                         \
        break;                                                    \
    }
#define STORE_ALL                                          \
    STORE_SMALL(KELP_U8, uint8_t, 0, UINT8_MAX)            \
    STORE_SMALL(KELP_I8, int8_t, INT8_MIN, INT8_MAX)       \
    STORE_SMALL(KELP_U16, uint16_t, 0, UINT16_MAX)         \
    STORE_SMALL(KELP_I16, int16_t, INT16_MIN, INT16_MAX)   \
    STORE(KELP_U32, uint32_t, 0, UINT32_MAX)               \
    STORE(KELP_I32, int32_t, INT32_MIN, INT32_MAX)         \
    STORE(KELP_U64, uint64_t, 0, UINT64_MAX)               \
    STORE(KELP_I64, int64_t, INT64_MIN, INT64_MAX)         \
    case KELP_BOOL:                                        \
        for (int64_t i = 0; i < count; i++)                \
            ((uint8_t *)data)[begin + i] = from[i] != 0;   \
        break;                                             \
    case KELP_F32:                                         \
        for (int64_t i = 0; i < count; i++)                \
            ((float *)data)[begin + i] = (float)from[i];   \
        break;                                             \
    case KELP_F64:                                         \
        for (int64_t i = 0; i < count; i++)                \
            ((double *)data)[begin + i] = (double)from[i]; \
        break;                                             \
    case KELP_F16:                                         \
        for (int64_t i = 0; i < count; i++)                \
            halves[i] = TO_F16(from[i]);                   \
        break;                                             \
    case KELP_BF16:                                        \
        for (int64_t i = 0; i < count; i++)                \
            halves[i] = TO_BF16(from[i]);                  \
        break;

#define REAL float
#define ROUND rintf
#define ROUNDING 0x1.8p23f
#define TO_F16 kelp_f32_to_f16
#define TO_BF16 kelp_f32_to_bf16
void kelp_real_load_f32(kelp_dtype dtype, const void *data, int64_t begin, int64_t count,
                        float *restrict out) {
    const half_bits *halves = (const half_bits *)data + begin;
    KELP_ASSERT(begin >= 0 && count >= 0 && kelp_real_takes(dtype));
    switch (dtype) {
        LOAD_ALL
    default:
        break;
    }
}

void kelp_real_store_f32(kelp_dtype dtype, void *data, int64_t begin, int64_t count,
                         const float *restrict from) {
    half_bits *halves = (half_bits *)data + begin;
    KELP_ASSERT(begin >= 0 && count >= 0 && kelp_real_takes(dtype));
    switch (dtype) {
        STORE_ALL
    default:
        break;
    }
}
#undef REAL
#undef ROUND
#undef ROUNDING
#undef TO_F16
#undef TO_BF16

#define REAL double
#define ROUND rint
#define ROUNDING 0x1.8p52
#define TO_F16 kelp_f64_to_f16
#define TO_BF16 kelp_f64_to_bf16
void kelp_real_load_f64(kelp_dtype dtype, const void *data, int64_t begin, int64_t count,
                        double *restrict out) {
    const half_bits *halves = (const half_bits *)data + begin;
    KELP_ASSERT(begin >= 0 && count >= 0 && kelp_real_takes(dtype));
    switch (dtype) {
        LOAD_ALL
    default:
        break;
    }
}

void kelp_real_store_f64(kelp_dtype dtype, void *data, int64_t begin, int64_t count,
                         const double *restrict from) {
    half_bits *halves = (half_bits *)data + begin;
    KELP_ASSERT(begin >= 0 && count >= 0 && kelp_real_takes(dtype));
    switch (dtype) {
        STORE_ALL
    default:
        break;
    }
}
