/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vector of floats as wide as the vectors of the instruction set for which the including file is
 * compiled. It uses the vector types of the compiler, so that kernels are written once; intrinsics
 * are used only for operations that these types lack: maximum, rounding, masks.
 */
#ifndef KELP_CPU_KERNELS_SIMD_VEC_H_
#define KELP_CPU_KERNELS_SIMD_VEC_H_

#include "base/assert.h"

#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(VEC_NEON)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define VEC_BYTES 64
#elif defined(__AVX2__)
#define VEC_BYTES 32
#else
#define VEC_BYTES 16
#endif
#define VEC_LANES (VEC_BYTES / 4)

#define VEC_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define VEC_UNROLL _Pragma("unroll")
#else
#define VEC_UNROLL _Pragma("GCC unroll 16")
#endif

typedef float vf __attribute__((vector_size(VEC_BYTES)));
typedef float vf_u __attribute__((vector_size(VEC_BYTES), aligned(1), may_alias));
typedef int32_t vi __attribute__((vector_size(VEC_BYTES)));

VEC_INLINE vf v_load(const void *p) {
    return *(const vf_u *)p;
}
VEC_INLINE void v_store(void *p, vf x) {
    *(vf_u *)p = x;
}
/* Keeps the compiler from deriving one pointer from another. */
#define VEC_OPAQUE(pointer) __asm__("" : "+r"(pointer))

VEC_INLINE vf v_set(float x) {
    return x - (vf){0}; /* folds to a broadcast; 0 + x would not because of -0 */
}
VEC_INLINE vf v_select(vi mask, vf a, vf b) {
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
}
VEC_INLINE vf v_abs(vf x) {
    return (vf)((vi)x & 0x7fffffff);
}

#if defined(__AVX512F__)
/* returns b if one of them is NaN, as the portable version does */
VEC_INLINE vf v_max(vf a, vf b) {
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
}
VEC_INLINE vf v_min(vf a, vf b) {
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
}
VEC_INLINE vf v_sqrt(vf x) {
    return (vf)_mm512_sqrt_ps((__m512)x);
}
VEC_INLINE vi v_round(vf x) {
    return (vi)_mm512_cvtps_epi32((__m512)x);
}
VEC_INLINE vf v_load_n(const void *p, int64_t n) {
    KELP_ASSERT(n >= 0 && n <= VEC_LANES);
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
VEC_INLINE void v_store_n(void *p, vf x, int64_t n) {
    KELP_ASSERT(n >= 0 && n <= VEC_LANES);
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)x);
}
VEC_INLINE vf v_gather(const float *p, const int32_t *at) {
    return (vf)_mm512_i32gather_ps(_mm512_loadu_si512(at), p, 4);
}
/* Loads VEC_LANES bytes as integers. */
VEC_INLINE vi v_bytes(const void *p) {
    return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128(p));
}
VEC_INLINE float v_sum(vf x) {
    return _mm512_reduce_add_ps((__m512)x);
}
VEC_INLINE float v_max_lane(vf x) {
    return _mm512_reduce_max_ps((__m512)x);
}
#elif defined(__AVX2__)
VEC_INLINE vf v_max(vf a, vf b) {
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
}
VEC_INLINE vf v_min(vf a, vf b) {
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
}
VEC_INLINE vf v_sqrt(vf x) {
    return (vf)_mm256_sqrt_ps((__m256)x);
}
VEC_INLINE vi v_round(vf x) {
    return (vi)_mm256_cvtps_epi32((__m256)x);
}
VEC_INLINE vf v_gather(const float *p, const int32_t *at) {
    return (vf)_mm256_i32gather_ps(p, _mm256_loadu_si256((const __m256i *)(const void *)at), 4);
}
VEC_INLINE vi v_bytes(const void *p) {
    return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64(p));
}
VEC_INLINE __m256i v_mask(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
VEC_INLINE vf v_load_n(const void *p, int64_t n) {
    return (vf)_mm256_maskload_ps(p, v_mask(n));
}
VEC_INLINE void v_store_n(void *p, vf x, int64_t n) {
    _mm256_maskstore_ps(p, v_mask(n), (__m256)x);
}
#elif defined(VEC_NEON)
/* returns NaN if one of them is NaN */
VEC_INLINE vf v_max(vf a, vf b) {
    return (vf)vmaxq_f32((float32x4_t)a, (float32x4_t)b);
}
VEC_INLINE vf v_min(vf a, vf b) {
    return (vf)vminq_f32((float32x4_t)a, (float32x4_t)b);
}
VEC_INLINE vf v_sqrt(vf x) {
    return (vf)vsqrtq_f32((float32x4_t)x);
}
VEC_INLINE vi v_round(vf x) {
    return (vi)vcvtnq_s32_f32((float32x4_t)x);
}
VEC_INLINE vf v_gather(const float *p, const int32_t *at) {
    return (vf){p[at[0]], p[at[1]], p[at[2]], p[at[3]]};
}
VEC_INLINE vi v_bytes(const void *p) {
    uint32_t four;
    memcpy(&four, p, 4);
    uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
    return (vi)vmovl_u16(vget_low_u16(words));
}
/* NEON has no masks: copies two floats and one, which is faster than a call of memcpy. */
VEC_INLINE vf v_load_n(const void *p, int64_t n) {
    const char *from = p;
    vf x = {0};
    if (n >= VEC_LANES)
        return v_load(p);
    if (n & 2) {
        memcpy(&x, from, 8);
        if (n & 1)
            memcpy((char *)&x + 8, from + 8, 4);
    } else if (n & 1) {
        memcpy(&x, from, 4);
    }
    return x;
}
VEC_INLINE void v_store_n(void *p, vf x, int64_t n) {
    char *to = p;
    if (n >= VEC_LANES) {
        v_store(p, x);
    } else if (n & 2) {
        memcpy(to, &x, 8);
        if (n & 1)
            memcpy(to + 8, (const char *)&x + 8, 4);
    } else if (n & 1) {
        memcpy(to, &x, 4);
    }
}
VEC_INLINE float v_sum(vf x) {
    return vaddvq_f32((float32x4_t)x);
}
VEC_INLINE float v_max_lane(vf x) {
    return vmaxvq_f32((float32x4_t)x);
}
#else
VEC_INLINE vi v_bytes(const void *p) {
    const uint8_t *bytes = p;
    vi x;
    for (int i = 0; i < VEC_LANES; i++)
        x[i] = bytes[i];
    return x;
}
VEC_INLINE vf v_max(vf a, vf b) {
    return v_select((vi)(a > b), a, b);
}
VEC_INLINE vf v_min(vf a, vf b) {
    return v_select((vi)(a < b), a, b);
}
VEC_INLINE vf v_sqrt(vf x) {
    for (int i = 0; i < VEC_LANES; i++)
        x[i] = __builtin_sqrtf(x[i]);
    return x;
}
/* exact for |x| < 2^22, which callers guarantee */
VEC_INLINE vi v_round(vf x) {
    vf y = x + 0x1.8p23f;
    return (vi)y - 0x4b400000;
}
VEC_INLINE vf v_gather(const float *p, const int32_t *at) {
    vf x;
    for (int i = 0; i < VEC_LANES; i++)
        x[i] = p[at[i]];
    return x;
}
VEC_INLINE vf v_load_n(const void *p, int64_t n) {
    vf x = {0};
    KELP_ASSERT(n >= 0 && n <= VEC_LANES);
    memcpy(&x, p, (size_t)n * 4);
    return x;
}
VEC_INLINE void v_store_n(void *p, vf x, int64_t n) {
    KELP_ASSERT(n >= 0 && n <= VEC_LANES);
    memcpy(p, &x, (size_t)n * 4);
}
#endif
#if !defined(__AVX512F__) && !defined(VEC_NEON)
VEC_INLINE float v_sum(vf x) {
    float sum = 0;
    for (int i = 0; i < VEC_LANES; i++)
        sum += x[i];
    return sum;
}
VEC_INLINE float v_max_lane(vf x) {
    float max = x[0];
    for (int i = 1; i < VEC_LANES; i++)
        max = x[i] > max ? x[i] : max;
    return max;
}
#endif

/* Return every second float of two vectors: x[0], x[2], … and x[1], x[3], … */
VEC_INLINE vf v_even(vf a, vf b) {
#if VEC_LANES == 16
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#elif VEC_LANES == 8
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
#else
    return __builtin_shufflevector(a, b, 0, 2, 4, 6);
#endif
}
VEC_INLINE vf v_odd(vf a, vf b) {
#if VEC_LANES == 16
    return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#elif VEC_LANES == 8
    return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    return __builtin_shufflevector(a, b, 1, 3, 5, 7);
#endif
}
/* Returns a without its first float, followed by the first float of b. */
VEC_INLINE vf v_shift(vf a, vf b) {
#if VEC_LANES == 16
    return __builtin_shufflevector(a, b, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
#elif VEC_LANES == 8
    return __builtin_shufflevector(a, b, 1, 2, 3, 4, 5, 6, 7, 8);
#else
    return __builtin_shufflevector(a, b, 1, 2, 3, 4);
#endif
}
/* Returns the VEC_LANES floats of {before, x, after} that begin `by` (-2 to 2) floats after x. */
VEC_INLINE vf v_neighbours_at(vf before, vf x, vf after, int by) {
#if defined(__AVX512F__)
#define SHIFTED(a, b, n) (vf) _mm512_alignr_epi32((__m512i)(b), (__m512i)(a), n)
#elif defined(__AVX2__)
#define HALVES(a, b) _mm256_permute2x128_si256((__m256i)(a), (__m256i)(b), 0x21)
#define SHIFTED(a, b, n)                                                       \
    (vf)((n) < 4 ? _mm256_alignr_epi8(HALVES(a, b), (__m256i)(a), (n) % 4 * 4) \
                 : _mm256_alignr_epi8((__m256i)(b), HALVES(a, b), (n) % 4 * 4))
#else
#define SHIFTED(a, b, n) __builtin_shufflevector(a, b, n, (n) + 1, (n) + 2, (n) + 3)
#endif
    switch (by) {
    case -2:
        return SHIFTED(before, x, VEC_LANES - 2);
    case -1:
        return SHIFTED(before, x, VEC_LANES - 1);
    case 1:
        return SHIFTED(x, after, 1);
    case 2:
        return SHIFTED(x, after, 2);
    default:
        return x;
    }
#undef SHIFTED
#undef HALVES
}
/* Return the first halves of both vectors, and the second halves. */
VEC_INLINE vf v_firsts(vf a, vf b) {
#if VEC_LANES == 16
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
#elif VEC_LANES == 8
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
#else
    return __builtin_shufflevector(a, b, 0, 1, 4, 5);
#endif
}
VEC_INLINE vf v_seconds(vf a, vf b) {
#if VEC_LANES == 16
    return __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30,
                                   31);
#elif VEC_LANES == 8
    return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
#else
    return __builtin_shufflevector(a, b, 2, 3, 6, 7);
#endif
}
/* Loads VEC_LANES floats `stride` (1 or 2) apart. With stride 2 one float after the last is read.
 */
VEC_INLINE vf v_load_stride(const float *p, int64_t stride) {
    return stride == 1 ? v_load(p) : v_even(v_load(p), v_load(p + VEC_LANES));
}
/* Returns the maximum, NaN if one of them is NaN. */
VEC_INLINE vf v_max_nan(vf a, vf b) {
#if defined(__AVX512F__)
    __mmask16 none = _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_UNORD_Q);
    return (vf)_mm512_mask_mov_ps((__m512)v_max(a, b), none, (__m512)a);
#elif defined(VEC_NEON)
    return v_max(a, b);
#else
    return v_select((vi)(a != a), a, v_max(a, b));
#endif
}

/* e^x = 2^n · e^r, |r| <= ln2 / 2, with the Taylor series up to r^7 (relative error below 6e-9). */
VEC_INLINE vf v_exp(vf x) {
    x = v_min(v_set(89.0f), v_max(v_set(-104.0f), x));
    vi n = v_round(x * 0x1.715476p+0f);
    vf nf = __builtin_convertvector(n, vf);
    vf r = x - nf * 0x1.62e4p-1f;
    r = r - nf * 0x1.7f7d1cp-20f;
    vf p = v_set(1.0f / 5040);
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    /* in two steps, because 2^n alone may be out of range near both ends */
    vi half = n >> 1;
    return p * (vf)((half + 127) << 23) * (vf)((n - half + 127) << 23);
}

/* Odd rational functions, fitted by iterated least squares; relative error below 4e-7. */
VEC_INLINE vf v_erf(vf x) {
    x = v_min(v_set(3.9f), v_max(v_set(-3.9f), x));
    vf t = x * x;
    vf p = v_set(0x1.1560fap-19f);
    p = p * t + 0x1.2ae5a6p-12f;
    p = p * t + 0x1.e9e7b2p-9f;
    p = p * t + 0x1.af70a2p-5f;
    p = p * t + 0x1.8467a6p-3f;
    p = p * t + 0x1.20dd74p+0f;
    vf q = v_set(0x1.410a84p-15f);
    q = q * t + 0x1.2f5bcap-10f;
    q = q * t + 0x1.e8aabap-7f;
    q = q * t + 0x1.d22cfp-4f;
    q = q * t + 0x1.00b858p-1f;
    q = q * t + 1.0f;
    return v_min(v_set(1.0f), v_max(v_set(-1.0f), x * p / q));
}

VEC_INLINE vf v_tanh(vf x) {
    x = v_min(v_set(9.0f), v_max(v_set(-9.0f), x));
    vf t = x * x;
    vf p = v_set(0x1.cae1a2p-27f);
    p = p * t + 0x1.59c53ep-16f;
    p = p * t + 0x1.ca2d74p-9f;
    p = p * t + 0x1.120b3ep-3f;
    p = p * t + 1.0f;
    vf q = v_set(0x1.a1837ap-21f);
    q = q * t + 0x1.588754p-12f;
    q = q * t + 0x1.a7f868p-6f;
    q = q * t + 0x1.de5ae8p-2f;
    q = q * t + 1.0f;
    return v_min(v_set(1.0f), v_max(v_set(-1.0f), x * p / q));
}

VEC_INLINE vf v_sigmoid(vf x) {
    return 1.0f / (1.0f + v_exp(-x));
}

#endif
