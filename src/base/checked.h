/* SPDX-License-Identifier: Apache-2.0 */
/* Checked arithmetic on sizes: returns false on overflow. */
#ifndef KELP_BASE_CHECKED_H_
#define KELP_BASE_CHECKED_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool kelp_size_add(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

static inline bool kelp_size_mul(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool kelp_i64_add(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

static inline bool kelp_i64_sub(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_sub_overflow(a, b, out);
}

static inline bool kelp_i64_mul(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

/* Rounds up to a multiple of a power of two; returns false on overflow. */
static inline bool kelp_size_align(size_t value, size_t alignment, size_t *out) {
    size_t sum;
    if (!kelp_size_add(value, alignment - 1, &sum))
        return false;
    *out = sum & ~(alignment - 1);
    return true;
}

/* Divides, or rounds to a multiple, upwards; value >= 0, by > 0, and no overflow. */
static inline int64_t kelp_divide_up(int64_t value, int64_t by) {
    return (value + by - 1) / by;
}
static inline int64_t kelp_round_up(int64_t value, int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

#define KELP_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KELP_MIN(a, b) ((a) < (b) ? (a) : (b))
#define KELP_MAX(a, b) ((a) > (b) ? (a) : (b))
#define KELP_LIKELY(x) __builtin_expect(!!(x), 1)
#define KELP_UNLIKELY(x) __builtin_expect(!!(x), 0)

static inline bool kelp_is_power_of_two(size_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

#endif
