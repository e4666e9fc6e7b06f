/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grains and cache sizes of the cpu kernels.
 *
 * A grain is the work of one chunk of kelp_op_parallel: about 16 µs, the time for which waking a
 * second thread is worthwhile. Each is the number of steps that one core does in that time, so it
 * depends on what a step is. Values were measured on x86-64 with AVX2 and AVX-512; to measure them
 * again run bench/convolutions.c, bench/gemm.c and bench/models.py with one and two threads.
 *
 * Cache sizes are for a first-level cache of 32 KiB and a second-level cache of 1 MiB, of which a
 * kernel's working set may take the larger part: the rest is for the operand that streams through.
 */
#ifndef KELP_CPU_KERNELS_TUNING_H_
#define KELP_CPU_KERNELS_TUNING_H_

#include "base/checked.h"

/* ---- grains ---- */
/* Multiply-adds of float register tiles: about 20 µs with AVX2. */
#define KELP_GRAIN_TILES 1000000
/* The same in blocks of a GEMM. A block is usually a chunk by itself; several are one chunk only
 * where blocks are small. */
#define KELP_GRAIN_GEMM 500000
/* Multiply-adds below which a GEMM's block is not divided for another thread: 10 µs. */
#define KELP_GRAIN_GEMM_BLOCK 400000
/* Multiply-adds of Winograd's products; the transforms take the rest of the time. */
#define KELP_GRAIN_WINOGRAD 800000
/* Multiply-adds of depthwise windows, which reach a third of the rate of register tiles. */
#define KELP_GRAIN_DEPTHWISE 330000
/* Multiply-adds of bytes, or of bfloat16, in register tiles: twice the rate of floats. */
#define KELP_GRAIN_NARROW_TILES 2000000
/* Multiply-adds of depthwise windows of bytes, which widen each to 32 bits. */
#define KELP_GRAIN_DEPTHWISE_INT8 100000
/* Elements of bfloat16 that pools read. */
#define KELP_GRAIN_POOL_BF16 600000
/* Multiply-adds of packed weights of 2, 4 or 8 bits: of tiles, and one row at a time. */
#define KELP_GRAIN_BITS_TILES 100000
#define KELP_GRAIN_BITS_ROWS 200000
/* Multiply-adds of one direction of a recurrent layer. */
#define KELP_GRAIN_RECURRENT 500000
/* Floats that are transposed or gathered. */
#define KELP_GRAIN_TRANSPOSE 60000
/* Elements of simple element-wise loops. Heavier steps take a fraction of it, lighter ones a
 * multiple. */
#define KELP_GRAIN_ELEMENTS 16384
/* Powers, which take a call of pow each. */
#define KELP_GRAIN_POW 4096
/* Bytes that are copied. */
#define KELP_GRAIN_COPY_BYTES (1 << 19)

/* Returns the grain for units of `unit_work` steps each: those of one chunk, and one more, so that
 * the result is positive. */
static inline int64_t kelp_cpu_grain(int64_t chunk_work, int64_t unit_work) {
    return chunk_work / KELP_MAX((int64_t)1, unit_work) + 1;
}
/* The same where the work may exceed int64. */
static inline int64_t kelp_cpu_grain_f64(int64_t chunk_work, double unit_work) {
    return unit_work < (double)chunk_work ? (int64_t)((double)chunk_work / (unit_work + 1)) + 1 : 1;
}
/* The same for units that are themselves chosen to be about one chunk: rounded down, at least 1. */
static inline int64_t kelp_cpu_grain_of_blocks(int64_t chunk_work, int64_t unit_work) {
    return KELP_MAX((int64_t)1, chunk_work / KELP_MAX((int64_t)1, unit_work));
}

/* ---- GEMM ---- */
/* Rows of B of one slice: a panel of 32 columns takes 48 KiB, an L1 and a half, and A's rows of a
 * tile 18 KiB. Convolutions that are GEMMs slice their depth alike. */
#define KELP_GEMM_DEPTH 384
/* Rows and columns of a block of C, before rounding to tiles: about 20 µs at KELP_GEMM_DEPTH. */
#define KELP_GEMM_ROWS 48
#define KELP_GEMM_COLUMNS 192
/* Columns of a block where C has one tile's rows or fewer: B is read once, so blocks are wide. */
#define KELP_GEMM_FLAT_COLUMNS 256

/* bfloat16: pairs of rows of B of one slice (32 columns take 32 KiB, A's rows of a tile 12 KiB),
 * and rows and columns of a block of C. */
#define KELP_GEMM_BF16_PAIRS 256
#define KELP_GEMM_BF16_ROWS 96
#define KELP_GEMM_BF16_COLUMNS 256
#define KELP_GEMM_BF16_FLAT_COLUMNS 512

/* Skinny GEMMs take as long as reading B takes. Elements of B below which it stays in cache, in
 * panels; and its rows and columns at least. */
#define KELP_SKINNY_LEAST_ELEMENTS ((int64_t)1 << 16)
#define KELP_SKINNY_LEAST_ROWS 64
/* Columns from which threads share them; the columns of such a share; the least of any share. */
#define KELP_SKINNY_WIDE 8192
#define KELP_SKINNY_WIDE_SHARE 4096
#define KELP_SKINNY_LEAST_COLUMNS 512
/* Elements of B of a share: 5 µs of reading. */
#define KELP_SKINNY_SHARE ((int64_t)1 << 15)
/* Bytes of weights that a thread packs at a time, so that memory does not hold them twice. */
#define KELP_PACK_SHARE_BYTES ((int64_t)4 << 20)

/* ---- convolutions ---- */
/* Floats of a matrix of windows (im2col): half of a second-level cache. */
#define KELP_IM2COL_FLOATS 131072
/* Columns of such a matrix: enough to fill the GEMM's tiles. */
#define KELP_IM2COL_COLUMNS 256
/* Columns where several small images share a matrix. */
#define KELP_IM2COL_BATCH_COLUMNS 192
/* Output columns up to which windows are copied from a padded plane: calls would cost more. */
#define KELP_IM2COL_SHORT_ROW 64
/* Floats of a padded tile of depthwise convolutions and pools: a first-level cache. */
#define KELP_PADDED_TILE_FLOATS 8192

/* Columns of a strip of the direct GEMM; those where threads have few strips. */
#define KELP_DIRECT_COLUMNS 320
#define KELP_DIRECT_FEW_COLUMNS 64
/* Floats of its padded tile: most of a second-level cache. */
#define KELP_DIRECT_TILE_FLOATS 196608
/* Depth above which offsets of the tile's rows do not stay in cache. */
#define KELP_DIRECT_CHANNELS 8192
/* Multiplications of an output channel's slice for each input that is copied again. */
#define KELP_DIRECT_SLICE_WORK 64

/* Floats of the transformed blocks of Winograd's convolutions: most of a second-level cache. */
#define KELP_WINOGRAD_BLOCK_FLOATS 196608
/* Floats of transformed weights that stay in a second-level cache; those beyond it that prefetching
 * hides; and those above which memory is not worth the time: four times the model's own weights. */
#define KELP_WINOGRAD_HELD_FLOATS (1 << 17)
#define KELP_WINOGRAD_NEAR_FLOATS (1 << 19)
#define KELP_WINOGRAD_LARGEST_FLOATS (1 << 24)

/* Output positions so few that a GEMM with windows as rows is always the fastest; those up to which
 * it may be. */
#define KELP_IM2ROW_FEW 10
#define KELP_IM2ROW_MOST 64
/* Channels that one unit transposes. */
#define KELP_IM2ROW_BLOCK 64

/* bfloat16: bytes of a strip's planes, and of its result; of a strip of pixels (NHWC). Each is a
 * part of the second-level cache. */
#define KELP_BF16_PLANES_BYTES (256 << 10)
#define KELP_BF16_NHWC_BYTES (384 << 10)
/* Output channels whose sums are finished while they are in cache, and pairs of weights of one
 * channel at a time. */
#define KELP_BF16_BLOCK_CHANNELS 48
#define KELP_BF16_SLICE_PAIRS 288
/* Output positions up to which windows are gathered: the rows of a tile. */
#define KELP_BF16_FEW_POSITIONS 12
/* Units for each thread: one that is delayed leaves little for the others to wait for. */
#define KELP_BF16_UNITS 8

/* int8: output positions of a unit, and positions that are transposed at a time. */
#define KELP_INT8_CONV_ROWS 48
#define KELP_INT8_CONV_TRANSPOSE 256

/* ConvTranspose: rows and columns of a GEMM's result that are added to the output at once. */
#define KELP_CONV_TRANSPOSE_ROWS 48
#define KELP_CONV_TRANSPOSE_COLUMNS 192
/* DeformConv: output positions of one matrix. */
#define KELP_DEFORM_POSITIONS 256

#endif
