/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of VEC_LANES 16-bit floats as floats; addresses need no alignment. Rounds to
 * nearest, ties to even. */
#ifndef KELP_CPU_KERNELS_SIMD_VEC_HALF_H_
#define KELP_CPU_KERNELS_SIMD_VEC_HALF_H_

#include "base/float16.h"
#include "cpu/kernels/simd/vec.h"

typedef uint16_t vec_half_u __attribute__((aligned(1), may_alias));

VEC_INLINE vf v_load_f16(const void *from) {
#if defined(__AVX512F__)
    return (vf)_mm512_cvtph_ps(_mm256_loadu_si256(from));
#elif defined(__AVX2__)
    return (vf)_mm256_cvtph_ps(_mm_loadu_si128(from));
#elif defined(VEC_NEON)
    return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
#else
    const vec_half_u *x = from;
    vf y;
    for (int i = 0; i < VEC_LANES; i++)
        y[i] = kelp_f16_to_f32(x[i]);
    return y;
#endif
}

VEC_INLINE void v_store_f16(void *to, vf x) {
#if defined(__AVX512F__)
    _mm256_storeu_si256(to, _mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__AVX2__)
    _mm_storeu_si128(to, _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
#elif defined(VEC_NEON)
    vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)x)));
#else
    vec_half_u *y = to;
    for (int i = 0; i < VEC_LANES; i++)
        y[i] = kelp_f32_to_f16(x[i]);
#endif
}

VEC_INLINE vf v_load_bf16(const void *from) {
#if defined(__AVX512F__)
    return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(from)), 16);
#elif defined(__AVX2__)
    return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(from)), 16);
#elif defined(VEC_NEON)
    return (vf)vshll_n_u16(vld1_u16(from), 16);
#else
    const vec_half_u *x = from;
    vi y;
    for (int i = 0; i < VEC_LANES; i++)
        y[i] = (int32_t)((uint32_t)x[i] << 16);
    return (vf)y;
#endif
}

#endif
