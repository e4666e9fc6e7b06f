/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/ops/reduce/ordered.h"

#include "base/assert.h"
#include "cpu/ops/converted.h"
#include "tensor/real.h"

#include <math.h>

bool kelp_ordered_find_type(kelp_dtype dtype, kelp_ordered_type *out) {
    if (!kelp_real_takes(dtype))
        return false;
    if (kelp_real_fits_f32(dtype))
        *out = (kelp_ordered_type){KELP_F32, KELP_FOLD_F32, sizeof(float)};
    else if (dtype == KELP_I64 || dtype == KELP_U64)
        *out = (kelp_ordered_type){KELP_I64, KELP_FOLD_I64, sizeof(int64_t)};
    else
        *out = (kelp_ordered_type){KELP_F64, KELP_FOLD_F64, sizeof(double)};
    return true;
}

/* Maps the order of uint64 to that of int64. */
static int64_t flip(int64_t value) {
    return (int64_t)((uint64_t)value ^ (uint64_t)1 << 63);
}

const void *kelp_ordered_load(const kelp_ordered_type *type, const kelp_tensor *x, int64_t first,
                              int64_t count, kelp_ordered_block *block) {
    KELP_ASSERT(count >= 0 && count <= KELP_ORDERED_BLOCK);
    if (x->dtype == type->dtype)
        return (const char *)x->data + (size_t)first * type->bytes;
    if (type->dtype == KELP_F32)
        kelp_math_load_tensor(x, first, count, block->f32);
    else if (type->dtype == KELP_F64)
        kelp_real_load_f64(x->dtype, x->data, first, count, block->f64);
    else
        for (int64_t i = 0; i < count; i++)
            block->i64[i] = flip(((const int64_t *)x->data)[first + i]);
    return block;
}

const void *kelp_ordered_gather(const kelp_ordered_type *type, const kelp_tensor *x, int64_t first,
                                int64_t step, int64_t count, kelp_ordered_block *block) {
    KELP_ASSERT(count >= 0 && count <= KELP_ORDERED_BLOCK);
    if (x->dtype == KELP_F32) {
        for (int64_t i = 0; i < count; i++)
            block->f32[i] = ((const float *)x->data)[first + i * step];
        return block;
    }
    if (kelp_math_is_half(x->dtype)) {
        uint16_t halves[KELP_ORDERED_BLOCK];
        for (int64_t i = 0; i < count; i++)
            halves[i] = ((const uint16_t *)x->data)[first + i * step];
        kelp_math_load(x->dtype, halves, 0, count, block->f32);
        return block;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t at = first + i * step;
        if (type->dtype == KELP_F32)
            kelp_real_load_f32(x->dtype, x->data, at, 1, &block->f32[i]);
        else if (type->dtype == KELP_F64)
            kelp_real_load_f64(x->dtype, x->data, at, 1, &block->f64[i]);
        else
            block->i64[i] = x->dtype == KELP_U64 ? flip(((const int64_t *)x->data)[at])
                                                 : ((const int64_t *)x->data)[at];
    }
    return block;
}

kelp_ordered_value kelp_ordered_best(const kelp_ordered_type *type, const void *x, int64_t count,
                                     bool min) {
    kelp_ordered_value best;
    kelp_fold_job job = {.x = x, .sums = &best, .lines = 1, .rows = 1, .count = count};
    if (type->dtype == KELP_F32)
        best.f32 = min ? INFINITY : -INFINITY;
    else if (type->dtype == KELP_F64)
        best.f64 = min ? (double)INFINITY : -(double)INFINITY;
    else
        best.i64 = min ? INT64_MAX : INT64_MIN;
    kelp_reduce_kernels_get()->fold[type->fold][min ? KELP_FOLD_MIN : KELP_FOLD_MAX].rows(&job);
    return best;
}

bool kelp_ordered_wins(const kelp_ordered_type *type, const kelp_ordered_value *next,
                       const kelp_ordered_value *best, bool min, bool ties) {
    int order;
    if (type->dtype == KELP_I64) {
        order = (next->i64 > best->i64) - (next->i64 < best->i64);
    } else {
        double a = type->dtype == KELP_F32 ? (double)next->f32 : next->f64;
        double b = type->dtype == KELP_F32 ? (double)best->f32 : best->f64;
        if (a != a || b != b)
            return a != a && (b == b || ties);
        order = (a > b) - (a < b);
    }
    return (min ? order < 0 : order > 0) || (ties && order == 0);
}

#define POSITION(type)                                                               \
    {                                                                                \
        const type *values = x;                                                      \
        for (int64_t i = last ? count - 1 : 0; i >= 0 && i < count; i += step)       \
            if (values[i] == wanted || (values[i] != values[i] && wanted != wanted)) \
                return i;                                                            \
        break;                                                                       \
    }
int64_t kelp_ordered_position(const kelp_ordered_type *type, const void *x, int64_t count,
                              const kelp_ordered_value *value, bool last) {
    int64_t step = last ? -1 : 1;
    switch (type->dtype) {
    case KELP_F32: {
        float wanted = value->f32;
        POSITION(float)
    }
    case KELP_F64: {
        double wanted = value->f64;
        POSITION(double)
    }
    default: {
        int64_t wanted = value->i64;
        POSITION(int64_t)
    }
    }
    KELP_ASSERT(false); /* the caller found the value in this array */
    return 0;
}
