/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary position embedding of one row of one head. Source: Su et al., "RoFormer", 2021. */
#ifndef KELP_CPU_OPS_ATTENTION_ROTARY_H_
#define KELP_CPU_OPS_ATTENTION_ROTARY_H_

#include <kelp/tensor.h>

/* The first 2 * half elements are turned by the angles of `cos` and `sin` (half elements each): as
 * pairs of neighbours when `interleaved`, else each with the one `half` further; the rest, up to
 * `size`, is copied. y may be x. Each product and sum is rounded as `round` holds it. */
void kelp_rotary_row(const float *x, float *y, int64_t size, const float *cosines,
                     const float *sines, int64_t half, bool interleaved, kelp_dtype round);

#endif
