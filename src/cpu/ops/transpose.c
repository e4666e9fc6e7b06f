/* SPDX-License-Identifier: Apache-2.0 */
/* Transposition in tiles that vectors hold; matrices of a few rows or columns in plain loops. */
#include "cpu/ops/transpose.h"

#include "base/assert.h"
#include "base/checked.h"
#include "cpu/kernels/int8/int8_kernels.h"
#include "cpu/kernels/layout/layout_kernels.h"

#include <string.h>

/* Rows and columns of a block, so that the cache lines of both sides stay in cache until they are
 * complete. */
#define BLOCK 32

typedef uint8_t any8;
typedef uint16_t any16 __attribute__((aligned(1), may_alias));
typedef uint32_t any32 __attribute__((aligned(1), may_alias));
typedef uint64_t any64 __attribute__((aligned(1), may_alias));

/* ---- a few rows or columns ---- */
/* Transposes `few` rows without gaps between the results, or `few` columns without gaps between the
 * rows; it is a constant. */
#define NARROW(bits)                                                                         \
    static inline __attribute__((always_inline)) void together_##bits(                       \
        any##bits *restrict to, const any##bits *restrict from, int64_t step, int64_t count, \
        const int few) {                                                                     \
        for (int64_t i = 0; i < count; i++)                                                  \
            for (int j = 0; j < few; j++)                                                    \
                to[i * few + j] = from[j * step + i];                                        \
    }                                                                                        \
    static inline __attribute__((always_inline)) void apart_##bits(                          \
        any##bits *restrict to, const any##bits *restrict from, int64_t step, int64_t count, \
        const int few) {                                                                     \
        for (int64_t i = 0; i < count; i++)                                                  \
            for (int j = 0; j < few; j++)                                                    \
                to[j * step + i] = from[i * few + j];                                        \
    }                                                                                        \
    static void narrow_##bits(any##bits *to, int64_t to_step, const any##bits *from,         \
                              int64_t from_step, int64_t rows, int64_t columns) {            \
        if (rows == 3 && to_step == 3)                                                       \
            together_##bits(to, from, from_step, columns, 3);                                \
        else if (rows == 2 && to_step == 2)                                                  \
            together_##bits(to, from, from_step, columns, 2);                                \
        else if (columns == 3 && from_step == 3)                                             \
            apart_##bits(to, from, to_step, rows, 3);                                        \
        else if (columns == 2 && from_step == 2)                                             \
            apart_##bits(to, from, to_step, rows, 2);                                        \
        else                                                                                 \
            for (int64_t r = 0; r < rows; r++)                                               \
                for (int64_t c = 0; c < columns; c++)                                        \
                    to[c * to_step + r] = from[r * from_step + c];                           \
    }
NARROW(8)
NARROW(16)
NARROW(32)
NARROW(64)

/* ---- tiles ---- */
#define TILE_16 8
typedef uint16_t words __attribute__((vector_size(16)));
typedef uint16_t words_any __attribute__((vector_size(16), aligned(1), may_alias));

/* Each round interleaves the first half of the rows with the second. */
static inline void tile_16(any16 *to, int64_t to_step, const any16 *from, int64_t from_step) {
    words x[TILE_16], y[TILE_16];
    for (int i = 0; i < TILE_16; i++)
        x[i] = *(const words_any *)(from + i * from_step);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < TILE_16 / 2; i++) {
            words a = x[i], b = x[i + TILE_16 / 2];
            y[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
            y[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
        }
        memcpy(x, y, sizeof x);
    }
    for (int i = 0; i < TILE_16; i++)
        *(words_any *)(to + i * to_step) = x[i];
}

#define TILE_64 4
typedef uint64_t pair __attribute__((vector_size(16)));
typedef uint64_t pair_any __attribute__((vector_size(16), aligned(1), may_alias));

static inline void tile_64(any64 *to, int64_t to_step, const any64 *from, int64_t from_step) {
    for (int r = 0; r < TILE_64; r += 2)
        for (int c = 0; c < TILE_64; c += 2) {
            pair a = *(const pair_any *)(from + r * from_step + c);
            pair b = *(const pair_any *)(from + (r + 1) * from_step + c);
            *(pair_any *)(to + c * to_step + r) = __builtin_shufflevector(a, b, 0, 2);
            *(pair_any *)(to + (c + 1) * to_step + r) = __builtin_shufflevector(a, b, 1, 3);
        }
}

/* The last tile of a row or column overlaps the one before. */
#define TILES(bits)                                                                             \
    static void tiles_##bits(any##bits *to, int64_t to_step, const any##bits *from,             \
                             int64_t from_step, int64_t rows, int64_t columns) {                \
        for (int64_t r0 = 0; r0 < rows; r0 += BLOCK)                                            \
            for (int64_t c0 = 0; c0 < columns; c0 += BLOCK)                                     \
                for (int64_t r = r0; r < KELP_MIN(r0 + BLOCK, rows); r += TILE_##bits)          \
                    for (int64_t c = c0; c < KELP_MIN(c0 + BLOCK, columns); c += TILE_##bits) { \
                        int64_t row = KELP_MIN(r, rows - TILE_##bits);                          \
                        int64_t column = KELP_MIN(c, columns - TILE_##bits);                    \
                        tile_##bits(to + column * to_step + row, to_step,                       \
                                    from + row * from_step + column, from_step);                \
                    }                                                                           \
    }
TILES(16)
TILES(64)

void kelp_ops_transpose(size_t element_bytes, void *to, int64_t to_step, const void *from,
                        int64_t from_step, int64_t rows, int64_t columns) {
    int64_t least = KELP_MIN(rows, columns);
    KELP_ASSERT(rows >= 0 && columns >= 0);
    switch (element_bytes) {
    case 1:
        if (least < 4)
            narrow_8(to, to_step, from, from_step, rows, columns);
        else
            kelp_int8_kernels_get()->transpose(to, to_step, from, from_step, rows, columns, 0);
        break;
    case 2:
        (least < TILE_16 ? narrow_16 : tiles_16)(to, to_step, from, from_step, rows, columns);
        break;
    case 4:
        if (((uintptr_t)to & 3) != 0)
            narrow_32(to, to_step, from, from_step, rows, columns);
        else
            kelp_layout_kernels_get()->transpose(to, to_step, from, from_step, rows, columns);
        break;
    default:
        KELP_ASSERT(element_bytes == 8);
        (least < TILE_64 ? narrow_64 : tiles_64)(to, to_step, from, from_step, rows, columns);
        break;
    }
}
