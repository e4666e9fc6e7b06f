/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary position embedding of one row of one head. Source: Su et al., "RoFormer", 2021. */
#ifndef KELP_CPU_OPS_ATTENTION_ROTARY_H_
#define KELP_CPU_OPS_ATTENTION_ROTARY_H_

#include <kelp/tensor.h>

/* Rotates the first 2 * half elements of `x` by the angles of `cosines` and `sines` (half elements
 * each): adjacent pairs if `interleaved`, else pairs of elements that are `half` apart. Copies the
 * other elements, up to `size`. `y` may be `x`. */
void kelp_rotary_row(const float *x, float *y, int64_t size, const float *cosines,
                     const float *sines, int64_t half, bool interleaved);

#endif
