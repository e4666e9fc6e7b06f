/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All tables of micro-kernels: one for each operation and instruction set. The name of a table is
 * kelp_OPERATION_kernels_ISA, its type kelp_OPERATION_kernels.
 *
 * A new operation is a directory with OPERATION_kernels.h and OPERATION.inc, a name in the list
 * below and an include in f32.inc. A new instruction set is a name in a list below and a source
 * file that defines ISA and the sizes of its register tile, and includes f32.inc (bf16.inc,
 * int8.inc).
 */
#ifndef KELP_CPU_KERNELS_ISA_TABLES_H_
#define KELP_CPU_KERNELS_ISA_TABLES_H_

#include "cpu/kernels/bf16/bf16_kernels.h"
#include "cpu/kernels/conv/conv_kernels.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/kernels/gemm/gemm_kernels.h"
#include "cpu/kernels/int8/int8_kernels.h"
#include "cpu/kernels/layout/layout_kernels.h"
#include "cpu/kernels/math/math_kernels.h"
#include "cpu/kernels/nbits/nbits_int8_kernels.h"
#include "cpu/kernels/nbits/nbits_kernels.h"
#include "cpu/kernels/norm/norm_kernels.h"
#include "cpu/kernels/product/product_kernels.h"
#include "cpu/kernels/reduce/reduce_kernels.h"
#include "cpu/kernels/resize/resize_kernels.h"
#include "cpu/kernels/sliding/sliding_kernels.h"
#include "cpu/kernels/vector/vector_kernels.h"

/* Operations on floats. */
#define KELP_F32_OPERATIONS(X) \
    X(conv)                    \
    X(elementwise)             \
    X(gemm)                    \
    X(layout)                  \
    X(math)                    \
    X(nbits)                   \
    X(norm)                    \
    X(product)                 \
    X(reduce)                  \
    X(resize)                  \
    X(sliding)                 \
    X(vector)

/* Instruction sets, in the order of the indices in kelp_cpu_features. */
#if defined(__x86_64__)
#define KELP_F32_ISAS(X, operation) \
    X(operation, portable)          \
    X(operation, avx2)              \
    X(operation, avx512)
#define KELP_INT8_ISAS(X, operation) KELP_F32_ISAS(X, operation) X(operation, vnni)
#define KELP_BF16_ISAS(X, operation) KELP_F32_ISAS(X, operation) X(operation, avx512_bf16)
#elif defined(__aarch64__)
#define KELP_F32_ISAS(X, operation) X(operation, portable) X(operation, neon)
#define KELP_INT8_ISAS(X, operation) \
    KELP_F32_ISAS(X, operation) X(operation, dotprod) X(operation, i8mm)
#define KELP_BF16_ISAS(X, operation) X(operation, portable)
#else
#define KELP_F32_ISAS(X, operation) X(operation, portable)
#define KELP_INT8_ISAS(X, operation) X(operation, portable)
#define KELP_BF16_ISAS(X, operation) X(operation, portable)
#endif

#define KELP_KERNEL_TABLE_NAME(operation, isa) kelp_##operation##_kernels_##isa
#define KELP_DECLARE_TABLE(operation, isa) \
    extern const kelp_##operation##_kernels KELP_KERNEL_TABLE_NAME(operation, isa);
#define KELP_DECLARE_F32_TABLES(operation) KELP_F32_ISAS(KELP_DECLARE_TABLE, operation)
KELP_F32_OPERATIONS(KELP_DECLARE_F32_TABLES)
KELP_INT8_ISAS(KELP_DECLARE_TABLE, int8)
KELP_INT8_ISAS(KELP_DECLARE_TABLE, nbits_int8)
KELP_BF16_ISAS(KELP_DECLARE_TABLE, bf16)
#undef KELP_DECLARE_F32_TABLES
#undef KELP_DECLARE_TABLE

/* The table of `operation` for the instruction set ISA of the including file. */
#define KELP_KERNEL_TABLE_OF(operation, isa) KELP_KERNEL_TABLE_NAME(operation, isa)
#define KERNEL_TABLE(operation) KELP_KERNEL_TABLE_OF(operation, ISA)

#endif
