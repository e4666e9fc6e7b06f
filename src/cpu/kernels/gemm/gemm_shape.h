/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters that the choice of a GEMM's algorithm depends on.
 *
 * gemm.h, gemm_bf16.h and gemm_int8.h each have an ordered list of algorithms. A caller chooses one
 * when shapes are known (kelp_…_choose: the first of the list that is applicable), reserves its
 * scratch memory, and calls its `run` for each inference. The `name` is what profiles show.
 */
#ifndef KELP_CPU_KERNELS_GEMM_GEMM_SHAPE_H_
#define KELP_CPU_KERNELS_GEMM_GEMM_SHAPE_H_

#include "cpu/kernels/elementwise/elementwise_kernels.h"

typedef struct kelp_gemm_shape {
    int64_t m, n, k;
    int64_t count;     /* GEMMs of this shape that run together */
    bool is_packed;    /* B is in panels */
    bool has_residual; /* `residual` will be set */
    kelp_act act;
} kelp_gemm_shape;

#endif
