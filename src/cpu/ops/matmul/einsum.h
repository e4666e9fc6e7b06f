/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of an Einsum: copies, sums, batched matrix multiplications and loops over two operands.
 * The plan is made when shapes are known. Threads: those of the kernels.
 */
#ifndef KELP_CPU_OPS_MATMUL_EINSUM_H_
#define KELP_CPU_OPS_MATMUL_EINSUM_H_

#include "cpu/kernels/gemm/gemm.h"
#include "cpu/kernels/product/product_kernels.h"
#include "cpu/ops/kernel.h"

#define KELP_EINSUM_OPERANDS 8
/* Labels of size 2 or more, after labels that are always adjacent have been merged. */
#define KELP_EINSUM_LABELS 24
/* An operand has a sum of it and a copy of that; a multiplication two copies of its operands, a
 * result and a copy. */
#define KELP_EINSUM_TENSORS 48
#define KELP_EINSUM_STEPS 48
/* Matrices that one call of the GEMM multiplies. */
#define KELP_EINSUM_JOBS 512

/* Labels in the order of loops. */
typedef struct kelp_einsum_list {
    int32_t count;
    uint8_t labels[KELP_EINSUM_LABELS];
} kelp_einsum_list;

/* An operand, a temporary tensor in scratch memory, or the result, as a view: `strides` are in
 * elements, and labels that a tensor lacks have stride 0. */
typedef struct kelp_einsum_tensor {
    uint32_t labels; /* bit i: label i */
    int32_t input;   /* index of the input; KELP_EINSUM_RESULT or KELP_EINSUM_TEMPORARY */
    size_t at;       /* offset of a temporary tensor in scratch memory */
    int64_t strides[KELP_EINSUM_LABELS];
} kelp_einsum_tensor;
#define KELP_EINSUM_RESULT (-1)
#define KELP_EINSUM_TEMPORARY (-2)

typedef enum kelp_einsum_kind {
    KELP_EINSUM_COPY,    /* c = a */
    KELP_EINSUM_LOOPS,   /* c = Σ a · b; without b, c = Σ a */
    KELP_EINSUM_MATRICES /* c = A · B for each matrix of a batch */
} kelp_einsum_kind;

typedef struct kelp_einsum_step {
    uint8_t kind, a, b, c;   /* indices of tensors; b is KELP_EINSUM_NONE for a sum */
    uint8_t vector;          /* LOOPS: the label of the innermost loop */
    uint8_t step;            /* LOOPS: the label of the loop around it, or KELP_EINSUM_NONE */
    kelp_einsum_list kept;   /* outer loops: labels of the result */
    kelp_einsum_list summed; /* LOOPS: other labels that are summed */
    int64_t count;           /* iterations of the loops `kept` */
    /* MATRICES */
    int64_t m, n, k, a_row, a_column, ldb, ldc;
    const kelp_gemm_algorithm *algorithm;
    size_t scratch;
} kelp_einsum_step;
#define KELP_EINSUM_NONE 255

typedef struct kelp_einsum {
    kelp_product_type type;
    int32_t operands, tensors, steps, labels;
    uint32_t result; /* labels of the result */
    bool is_empty;   /* a label has size 0: the result is all 0 */
    int64_t dims[KELP_EINSUM_LABELS];
    size_t jobs;                                    /* offset of the GEMM jobs in scratch memory */
    kelp_einsum_tensor tensor[KELP_EINSUM_TENSORS]; /* first the operands, then the result */
    kelp_einsum_step step[KELP_EINSUM_STEPS];
} kelp_einsum;

/* Plans the steps. The caller has set `type`, `operands`, `labels`, `result`, `dims`, and the
 * tensors of the operands and the result. */
kelp_status *kelp_einsum_plan(kelp_einsum *e, kelp_op_args *args) KELP_MUST_USE;
/* Plans one product of two tensors, or the sum of one (`b` is KELP_EINSUM_NONE), to `c`; if c is
 * KELP_EINSUM_NONE, to a temporary tensor with the labels `labels`. Returns it in `*out`. */
kelp_status *kelp_einsum_plan_product(kelp_einsum *e, kelp_op_args *args, uint8_t a, uint8_t b,
                                      uint8_t c, uint32_t labels, uint8_t *out) KELP_MUST_USE;
/* Runs the steps. */
void kelp_einsum_run(const kelp_einsum *e, kelp_op_args *args);

#endif
