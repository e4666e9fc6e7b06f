/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grains and cache sizes of the cpu kernels.
 *
 * A grain is the work of one chunk of kelp_op_parallel: about 16 µs, the shortest time that
 * justifies waking a second thread. Each grain is the number of steps that one core executes in
 * that time; its comment says what a step is. Values were measured on x86-64 with AVX2 and AVX-512;
 * to measure them again run bench/convolutions.c, bench/gemm.c and bench/models.py with one and two
 * threads.
 *
 * Cache sizes are for a first-level cache of 32 KiB and a second-level cache of 1 MiB. The working
 * set of a kernel may take more than half of a cache; the rest is for the operand that is streamed.
 */
#ifndef KELP_CPU_KERNELS_TUNING_H_
#define KELP_CPU_KERNELS_TUNING_H_

#include "base/checked.h"

/* ---- grains ---- */
/* Multiply-adds of float register tiles: about 20 µs with AVX2. */
#define KELP_GRAIN_TILES 1000000
/* The same in blocks of a GEMM. A chunk is usually one block, or several if they are small. */
#define KELP_GRAIN_GEMM 500000
/* Multiply-adds below which a GEMM's block is not divided for another thread: 10 µs. */
#define KELP_GRAIN_GEMM_BLOCK 400000
/* Multiply-adds of the GEMMs of Winograd's convolutions; the transforms take the rest of the time.
 */
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
/* Multiply-adds of packed weights of 4 or 8 bits and activations of 8 bits. */
#define KELP_GRAIN_BITS_INT8 1000000
/* Multiply-adds of one direction of a recurrent layer. */
#define KELP_GRAIN_RECURRENT 500000
/* Floats that are transposed or gathered. */
#define KELP_GRAIN_TRANSPOSE 60000
/* Elements of simple element-wise loops. Heavier steps take a fraction of it, lighter ones a
 * multiple. */
#define KELP_GRAIN_ELEMENTS 16384
/* Elements for each of which a function of the C library is called. */
#define KELP_GRAIN_LIBM 2048
/* Bytes that are copied. */
#define KELP_GRAIN_COPY_BYTES (1 << 19)

/* Returns the grain for units of `unit_work` steps each: the units of one chunk, plus one so that
 * the result is positive. */
static inline int64_t kelp_cpu_grain(int64_t chunk_work, int64_t unit_work) {
    return chunk_work / KELP_MAX((int64_t)1, unit_work) + 1;
}
/* The same for work that may exceed int64. */
static inline int64_t kelp_cpu_grain_f64(int64_t chunk_work, double unit_work) {
    return unit_work < (double)chunk_work ? (int64_t)((double)chunk_work / (unit_work + 1)) + 1 : 1;
}
/* The same for units whose size is about one chunk: rounded down, at least 1. */
static inline int64_t kelp_cpu_grain_of_blocks(int64_t chunk_work, int64_t unit_work) {
    return KELP_MAX((int64_t)1, chunk_work / KELP_MAX((int64_t)1, unit_work));
}

/* ---- GEMM ---- */
/* Rows of B of one slice: a panel of 32 columns takes 48 KiB, 1.5 first-level caches, and the rows
 * of A of a tile 18 KiB. Convolutions that are GEMMs use the same slices. */
#define KELP_GEMM_DEPTH 384
/* Rows and columns of a block of C, before rounding to tiles: about 20 µs at KELP_GEMM_DEPTH. */
#define KELP_GEMM_ROWS 48
#define KELP_GEMM_COLUMNS 192
/* Columns of a block if C has at most the rows of one tile: B is read once, so blocks are wide. */
#define KELP_GEMM_FLAT_COLUMNS 256

/* bfloat16: pairs of rows of B of one slice (32 columns take 32 KiB, A's rows of a tile 12 KiB),
 * and rows and columns of a block of C. */
#define KELP_GEMM_BF16_PAIRS 256
#define KELP_GEMM_BF16_ROWS 96
#define KELP_GEMM_BF16_COLUMNS 256
#define KELP_GEMM_BF16_FLAT_COLUMNS 512

/* A GEMM is skinny if its time is that of reading B. Minimum elements of B, below which packed
 * panels stay in cache; minimum rows and columns of B. */
#define KELP_SKINNY_MIN_ELEMENTS ((int64_t)1 << 16)
#define KELP_SKINNY_MIN_SIZE 64
/* Minimum columns for which threads divide B by columns; the columns of such a share; the minimum
 * columns of any share. */
#define KELP_SKINNY_WIDE 8192
#define KELP_SKINNY_WIDE_SHARE 4096
#define KELP_SKINNY_MIN_SHARE_COLUMNS 512
/* Elements of B that a thread reads in 5 µs: a share. */
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
/* Maximum output columns for which windows are copied from a padded plane: separate copies of short
 * rows would take longer. */
#define KELP_IM2COL_SHORT_ROW 64
/* Floats of a padded tile of depthwise convolutions and pools: a first-level cache. */
#define KELP_PADDED_TILE_FLOATS 8192

/* Columns of a strip of the direct GEMM; the same if there are few strips for each thread. */
#define KELP_DIRECT_COLUMNS 320
#define KELP_DIRECT_FEW_COLUMNS 64
/* Floats of its padded tile: three quarters of a second-level cache. */
#define KELP_DIRECT_TILE_FLOATS 196608
/* Maximum depth for which the offsets of the tile's rows stay in cache. */
#define KELP_DIRECT_CHANNELS 8192
/* Minimum multiplications for each input that a slice of the output channels copies again. */
#define KELP_DIRECT_SLICE_WORK 64

/* Floats of the transformed blocks of Winograd's convolutions: three quarters of a second-level
 * cache. */
#define KELP_WINOGRAD_BLOCK_FLOATS 196608
/* Floats of transformed weights that stay in a second-level cache; those whose reading is hidden by
 * prefetching; and the maximum, because transformed weights take four times the memory. */
#define KELP_WINOGRAD_HELD_FLOATS (1 << 17)
#define KELP_WINOGRAD_NEAR_FLOATS (1 << 19)
#define KELP_WINOGRAD_MAX_FLOATS (1 << 24)

/* Maximum output positions for which a GEMM with windows as rows is always the fastest algorithm,
 * and for which it may be. */
#define KELP_IM2ROW_FEW 10
#define KELP_IM2ROW_MAX 64
/* Channels that one unit transposes. */
#define KELP_IM2ROW_BLOCK 64

/* bfloat16: bytes of the planes and results of a strip, and of a strip of NHWC pixels. Each is a
 * part of the second-level cache. */
#define KELP_BF16_PLANES_BYTES (256 << 10)
#define KELP_BF16_NHWC_BYTES (384 << 10)
/* Output channels that are computed before they are finished, so that sums are still in cache, and
 * pairs of weights of one channel at a time. */
#define KELP_BF16_BLOCK_CHANNELS 48
#define KELP_BF16_SLICE_PAIRS 288
/* Maximum output positions for which windows are gathered: the rows of a tile. */
#define KELP_BF16_FEW_POSITIONS 12
/* Units for each thread: with many small units the threads finish at about the same time. */
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
