/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of float32, for operators that contain one. */
#ifndef KELP_CPU_OPS_NORM_SOFTMAX_H_
#define KELP_CPU_OPS_NORM_SOFTMAX_H_

#include "cpu/ops/kernel.h"

/* y = softmax(x) along the middle axis of [outer, length, inner], or its logarithm; y may be x. */
typedef struct kelp_softmax {
    int64_t outer, length, inner;
    bool log;
    const float *x;
    float *y;
} kelp_softmax;

/* Computes it on all threads. */
void kelp_softmax_run(const kelp_op_env *env, const kelp_softmax *softmax);

#endif
