/* SPDX-License-Identifier: Apache-2.0 */
/* What the instances of sdpa.inc for floats share. */
#ifndef KELP_CPU_KERNELS_ATTENTION_SDPA_FLOAT_H_
#define KELP_CPU_KERNELS_ATTENTION_SDPA_FLOAT_H_

#include "cpu/kernels/attention/sdpa_internal.h"

#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/kernels/norm/norm_kernels.h"
#include "tensor/real.h"

#include <math.h>
#include <string.h>

#define REAL float
#define REAL_DTYPE KELP_F32
#define LOAD kelp_real_load_f32
#define STORE kelp_real_store_f32

static inline void softmax_plain(float *x, const float *bias, float scale, int64_t count) {
    const kelp_norm_kernels *norm = kelp_norm_kernels_get();
    norm->softmax(x, bias, scale, x, count, false);
}

static inline void tanh_row(float *x, int64_t count) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    elementwise->act[KELP_ACT_TANH](x, x, count);
}

static inline float round_to(kelp_dtype dtype, float x) {
    return kelp_real_round(dtype, x);
}

static inline float exponent(float x) {
    return expf(x);
}

#endif
