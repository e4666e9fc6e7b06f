/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMM of 8-bit matrices with sums of 32 bits on all threads. Zero points, scales, bias,
 * activation and quantization are applied while the sums are in cache.
 */
#ifndef KELP_CPU_KERNELS_GEMM_GEMM_INT8_H_
#define KELP_CPU_KERNELS_GEMM_GEMM_INT8_H_

#include "base/checked.h"
#include "cpu/kernels/gemm/gemm_shape.h"
#include "cpu/kernels/int8/int8_kernels.h"

#include <kelp/op_env.h>

/* ---- B ---- */
/* An unpacked matrix of 8-bit integers; strides in elements. `zero` has one element, one for
 * each column, or is NULL. */
typedef struct kelp_int8_matrix {
    const void *data;
    kelp_dtype dtype; /* U8 or I8 */
    int64_t k, n, row_stride, column_stride;
    const kelp_tensor *zero;
    int64_t zero_first; /* element of `zero` that belongs to the first column */
} kelp_int8_matrix;

/* B packed in panels of signed bytes, with terms for its zero points. The layout is the same for
 * every instruction set. */
typedef struct kelp_int8_weights {
    int64_t k, n;
    const int8_t *panels;
    const int32_t *balance; /* of a column: the sum of its elements minus their zero points */
    const int32_t *zeros;   /* of a column; NULL if all are `zero` */
    int32_t zero;
} kelp_int8_weights;

/* Computes the bytes of the packed matrix; false on overflow. */
bool kelp_int8_weights_size(int64_t k, int64_t n, size_t *out_bytes);
#define KELP_INT8_LAYOUT "int8/1" /* name of the format, for every instruction set */
/* Packs the matrix to `memory`, which is 64-byte aligned and must outlive `*out`. */
void kelp_int8_weights_pack(const kelp_int8_kernels *kernels, const kelp_int8_matrix *b,
                            void *memory, kelp_int8_weights *out);
/* Sets the pointers into `memory`, which holds a packed matrix of k and n. */
void kelp_int8_weights_view(int64_t k, int64_t n, const void *memory, kelp_int8_weights *out);

/* ---- GEMM ---- */
/* The epilogue: kelp_int8_row, then the activation, then for bytes
 * max(lowest, min(highest, round(y / out_scale) + out_zero)). */
typedef struct kelp_int8_finish {
    kelp_dtype dtype;                   /* I32: the sums; F32; U8 or I8 */
    const float *scale, *bias, *addend; /* of a column; bias and addend may be NULL */
    float step, low, high;
    bool direct; /* bytes are the rounded values before `step`, plus out_zero */
    kelp_act act;
    float out_scale;
    int32_t out_zero;
} kelp_int8_finish;

typedef struct kelp_int8_gemm {
    const uint8_t *a; /* unsigned; a_zero is its zero point */
    int64_t m, lda;
    int32_t a_zero;
    const int32_t *a_zeros; /* of a row, or NULL */
    kelp_int8_weights b;
    kelp_int8_finish finish;
    void *y;
    int64_t ldy;
    bool transposed; /* y[column][row], columns ldy elements apart */
} kelp_int8_gemm;

/* Maximum columns, columns of a transposed result, and rows of one call of
 * kelp_int8_gemm_block. */
#define KELP_INT8_BLOCK_COLUMNS 256
#define KELP_INT8_TRANSPOSED_COLUMNS 64
#define KELP_INT8_BLOCK_ROWS 64

/* ---- algorithms ---- */
typedef struct kelp_int8_gemm_algorithm {
    const char *name;
    bool (*is_applicable)(const kelp_gemm_shape *shape);
    /* Runs `count` GEMMs of one shape, distributed over the threads together. Needs no scratch
     * memory. */
    void (*run)(const kelp_op_env *env, const kelp_int8_gemm *jobs, int64_t count);
} kelp_int8_gemm_algorithm;

/* Returns the first algorithm that is applicable:
 *   int8_gemm_few_rows   at most 16 rows: wide blocks, so that B is read once
 *   int8_gemm            blocks */
const kelp_int8_gemm_algorithm *kelp_int8_gemm_choose(const kelp_gemm_shape *shape);

/* ---- blocks, for convolutions ---- */
/* Computes a block on the calling thread; `column` is a multiple of 16. */
void kelp_int8_gemm_block(const kelp_int8_kernels *kernels, const kelp_int8_gemm *g, int64_t row,
                          int64_t column, int64_t rows, int64_t columns);
/* Applies the epilogue to sums [rows][columns] that the caller computed, for a transposed result
 * without zero points of B. */
void kelp_int8_gemm_finish(const kelp_int8_kernels *kernels, const kelp_int8_gemm *g, int64_t row,
                           int64_t column, int64_t rows, int64_t columns, const int32_t *sums);

/* Converts signed bytes to unsigned ones: copies them with the top bit flipped, on all threads. */
void kelp_int8_flip(const kelp_op_env *env, const void *from, uint8_t *to, int64_t count);

#endif
