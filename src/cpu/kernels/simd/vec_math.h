/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementary functions of vectors of floats. Polynomials are fitted by iteratively weighted least
 * squares; their relative error is below 0.1 ulp. math_kernels.h has the error bounds of the
 * functions. Sources: Cody and Waite, "Software Manual for the Elementary Functions", 1980, for the
 * argument reductions; Kahan's log1p.
 */
#ifndef KELP_CPU_KERNELS_SIMD_VEC_MATH_H_
#define KELP_CPU_KERNELS_SIMD_VEC_MATH_H_

#include "cpu/kernels/simd/vec.h"

#include <math.h>

#define V_LN2_HIGH 0x1.62e4p-1f
#define V_LN2_LOW 0x1.7f7d1cp-20f

/* a * b + c; rounded once on CPUs with FMA, for which V_HAS_FMA is 1. */
#if defined(__AVX512F__)
#define V_HAS_FMA 1
VEC_INLINE vf v_fma(vf a, vf b, vf c) {
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
VEC_INLINE bool v_any(vi mask) {
    return _mm512_movepi32_mask((__m512i)mask) != 0;
}
VEC_INLINE vf v_floor(vf x) {
    return (vf)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
VEC_INLINE vf v_ceil(vf x) {
    return (vf)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
VEC_INLINE vf v_rint(vf x) {
    return (vf)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#elif defined(__AVX2__)
#define V_HAS_FMA 1
VEC_INLINE vf v_fma(vf a, vf b, vf c) {
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
VEC_INLINE bool v_any(vi mask) {
    return _mm256_movemask_ps((__m256)mask) != 0;
}
VEC_INLINE vf v_floor(vf x) {
    return (vf)_mm256_floor_ps((__m256)x);
}
VEC_INLINE vf v_ceil(vf x) {
    return (vf)_mm256_ceil_ps((__m256)x);
}
VEC_INLINE vf v_rint(vf x) {
    return (vf)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#elif defined(VEC_NEON)
#define V_HAS_FMA 1
VEC_INLINE vf v_fma(vf a, vf b, vf c) {
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
VEC_INLINE bool v_any(vi mask) {
    return vmaxvq_u32((uint32x4_t)mask) != 0;
}
VEC_INLINE vf v_floor(vf x) {
    return (vf)vrndmq_f32((float32x4_t)x);
}
VEC_INLINE vf v_ceil(vf x) {
    return (vf)vrndpq_f32((float32x4_t)x);
}
VEC_INLINE vf v_rint(vf x) {
    return (vf)vrndnq_f32((float32x4_t)x);
}
#else
#define V_HAS_FMA 0
VEC_INLINE vf v_fma(vf a, vf b, vf c) {
    return a * b + c;
}
VEC_INLINE bool v_any(vi mask) {
    return (mask[0] | mask[1] | mask[2] | mask[3]) != 0;
}
#define V_EACH(name, function)              \
    VEC_INLINE vf name(vf x) {              \
        for (int i = 0; i < VEC_LANES; i++) \
            x[i] = function(x[i]);          \
        return x;                           \
    }
V_EACH(v_floor, floorf)
V_EACH(v_ceil, ceilf)
V_EACH(v_rint, rintf)
#undef V_EACH
#endif

/* Returns x with the sign of s. */
VEC_INLINE vf v_copysign(vf x, vf s) {
    return (vf)(((vi)x & 0x7fffffff) | ((vi)s & (int32_t)0x80000000u));
}

typedef uint32_t v_unsigned __attribute__((vector_size(VEC_BYTES)));

/* Returns e^x · 2^shift. */
VEC_INLINE vf v_exp_shifted(vf x, int32_t shift) {
    x = v_min(v_set(90.0f), v_max(v_set(-125.0f), x));
    vi n = v_round(x * 0x1.715476p+0f);
    vf nf = __builtin_convertvector(n, vf);
    vf r = v_fma(nf, v_set(-V_LN2_HIGH), x);
    r = v_fma(nf, v_set(-V_LN2_LOW), r);
    vf p = v_set(0x1.a1a198p-13f);
    p = v_fma(p, r, v_set(0x1.6d74b6p-10f));
    p = v_fma(p, r, v_set(0x1.11109p-7f));
    p = v_fma(p, r, v_set(0x1.5554aep-5f));
    p = v_fma(p, r, v_set(0x1.555556p-3f));
    p = v_fma(p, r, v_set(0.5f));
    p = v_fma(p * r, r, r) + 1.0f;
    /* a NaN has the lowest n, from which a signed subtraction would overflow */
    n = (vi)((v_unsigned)n + (uint32_t)shift);
    vi half = n >> 1;
    return p * (vf)((half + 127) << 23) * (vf)((n - half + 127) << 23);
}

/* Returns e^x - 1 for x up to 1. */
VEC_INLINE vf v_expm1_low(vf x) {
    x = v_min(v_set(1.0f), v_max(v_set(-40.0f), x));
    vi n = v_round(x * 0x1.715476p+0f);
    vf nf = __builtin_convertvector(n, vf);
    vf r = v_fma(nf, v_set(-V_LN2_HIGH), x);
    r = v_fma(nf, v_set(-V_LN2_LOW), r);
    vf p = v_set(0x1.a1a198p-13f);
    p = v_fma(p, r, v_set(0x1.6d74b6p-10f));
    p = v_fma(p, r, v_set(0x1.11109p-7f));
    p = v_fma(p, r, v_set(0x1.5554aep-5f));
    p = v_fma(p, r, v_set(0x1.555556p-3f));
    p = v_fma(p, r, v_set(0.5f));
    p = v_fma(p * r, r, r);
    vf scale = (vf)((n + 127) << 23);
    return v_fma(p, scale, scale - 1.0f);
}

/* Returns log(x) for positive finite x, the logarithm of other values by the rules of logf. */
VEC_INLINE vf v_log(vf x) {
    vi tiny = (vi)(x < 0x1p-126f);
    vf y = v_select(tiny, x * 0x1p23f, x);
    vi bits = (vi)v_abs(y), e = (bits - 0x3f3504f3) >> 23; /* negative numbers are replaced below */
    vf f = (vf)(bits - (e << 23)) - 1.0f;
    vf n = __builtin_convertvector(e - (tiny & 23), vf);
    vf p = v_set(0x1.1b3eaap-4f);
    p = v_fma(p, f, v_set(-0x1.e2e818p-4f));
    p = v_fma(p, f, v_set(0x1.e651a6p-4f));
    p = v_fma(p, f, v_set(-0x1.fb4382p-4f));
    p = v_fma(p, f, v_set(0x1.2332b4p-3f));
    p = v_fma(p, f, v_set(-0x1.5562ep-3f));
    p = v_fma(p, f, v_set(0x1.99a546p-3f));
    p = v_fma(p, f, v_set(-0x1.ffffeep-3f));
    p = v_fma(p, f, v_set(0x1.555546p-2f));
    vf t = f * f;
    vf low = v_fma(p * f, t, n * V_LN2_LOW);
    low = v_fma(t, v_set(-0.5f), low);
    y = v_fma(n, v_set(V_LN2_HIGH), f + low);
    y = v_select((vi)(x < INFINITY), y, x); /* infinity, NaN */
    y = v_select((vi)(x < 0.0f), v_set(NAN), y);
    return v_select((vi)(x == 0.0f), v_set(-INFINITY), y);
}

/* Returns log(1 + x); the rounding error of 1 + x is added to the logarithm. */
VEC_INLINE vf v_log1p(vf x) {
    vf u = 1.0f + x;
    vi is_large = (vi)(x > 1.0f);
    vf lost = v_select(is_large, 1.0f - (u - x), x - (u - 1.0f));
    vf y = v_log(u);
    return v_select((vi)(v_abs(u) < INFINITY) & (vi)(u > 0.0f), y + lost / u, y);
}

/* ---- trigonometric functions ---- */
/* Arguments up to which the reduction is exact enough; those above are left to libm. */
#if V_HAS_FMA
#define V_REDUCED 100000.0f
#else
#define V_REDUCED 8000.0f
#endif

/* Reduces x to [-π/4, π/4] and returns the number of quarter turns. */
VEC_INLINE vi v_reduce(vf x, vf *out_r) {
    x = v_select((vi)(v_abs(x) <= V_REDUCED), x, v_set(0.0f));
    vi n = v_round(x * 0x1.45f306p-1f);
    vf nf = __builtin_convertvector(n, vf);
#if V_HAS_FMA
    vf r = v_fma(nf, v_set(-0x1.921fb6p+0f), x);
    r = v_fma(nf, v_set(0x1.777a5cp-25f), r);
    *out_r = v_fma(nf, v_set(0x1.ee59dap-50f), r);
#else
    vf r = x - nf * 0x1.92p+0f; /* products of 11 bits and up to 13 are exact */
    r = r - nf * 0x1.fb4p-12f;
    r = r - nf * 0x1.444p-24f;
    *out_r = r - nf * 0x1.68c234p-39f;
#endif
    return n;
}

/* Returns sin(r) for |r| <= π/4. */
VEC_INLINE vf v_sin_reduced(vf r) {
    vf t = r * r, p = v_set(0x1.6cd838p-19f);
    p = v_fma(p, t, v_set(-0x1.a00f9ep-13f));
    p = v_fma(p, t, v_set(0x1.111108p-7f));
    p = v_fma(p, t, v_set(-0x1.555556p-3f));
    return v_fma(p * t, r, r);
}
VEC_INLINE vf v_cos_reduced(vf r) {
    vf t = r * r, p = v_set(-0x1.242abep-22f);
    p = v_fma(p, t, v_set(0x1.a0112p-16f));
    p = v_fma(p, t, v_set(-0x1.6c16b8p-10f));
    p = v_fma(p, t, v_set(0x1.555556p-5f));
    return v_fma(p * t, t, v_fma(t, v_set(-0.5f), v_set(1.0f)));
}

/* Computes `function` of the lanes that v_reduce does not reduce. */
#define V_LARGE_ARGUMENTS(function)                               \
    if (__builtin_expect(v_any(~(vi)(v_abs(x) <= V_REDUCED)), 0)) \
        for (int i = 0; i < VEC_LANES; i++)                       \
            if (!(fabsf(x[i]) <= V_REDUCED))                      \
                y[i] = function(x[i]);

VEC_INLINE vf v_sin(vf x) {
    vf r;
    vi n = v_reduce(x, &r), swaps = -(n & 1);
    vf y = v_select(swaps, v_cos_reduced(r), v_sin_reduced(r));
    y = (vf)((vi)y ^ ((n & 2) << 30));
    y = v_select((vi)(x == 0.0f), x, y); /* keeps -0 */
    V_LARGE_ARGUMENTS(sinf)
    return y;
}
VEC_INLINE vf v_cos(vf x) {
    vf r;
    vi n = v_reduce(x, &r), swaps = -(n & 1);
    vf y = v_select(swaps, v_sin_reduced(r), v_cos_reduced(r));
    y = (vf)((vi)y ^ (((n + 1) & 2) << 30));
    V_LARGE_ARGUMENTS(cosf)
    return y;
}
VEC_INLINE vf v_tan(vf x) {
    vf r;
    vi n = v_reduce(x, &r), swaps = -(n & 1);
    vf s = v_sin_reduced(r), c = v_cos_reduced(r);
    vf y = v_select(swaps, -c, s) / v_select(swaps, s, c);
    y = v_select((vi)(x == 0.0f), x, y);
    V_LARGE_ARGUMENTS(tanf)
    return y;
}
#undef V_LARGE_ARGUMENTS

VEC_INLINE vf v_atan(vf x) {
    vf a = v_abs(x);
    vi is_large = (vi)(a > 1.0f);
    vf t = v_select(is_large, 1.0f / a, a), z = t * t;
    vf p = v_set(0x1.29816ap-10f);
    p = v_fma(p, z, v_set(-0x1.e67478p-8f));
    p = v_fma(p, z, v_set(0x1.74e876p-6f));
    p = v_fma(p, z, v_set(-0x1.7033ecp-5f));
    p = v_fma(p, z, v_set(0x1.14df64p-4f));
    p = v_fma(p, z, v_set(-0x1.693864p-4f));
    p = v_fma(p, z, v_set(0x1.c50716p-4f));
    p = v_fma(p, z, v_set(-0x1.247504p-3f));
    p = v_fma(p, z, v_set(0x1.9997fep-3f));
    p = v_fma(p, z, v_set(-0x1.555552p-2f));
    vf y = v_fma(p * z, t, t);
    y = v_select(is_large, (0x1.921fb6p+0f - y) - 0x1.777a5cp-25f, y);
    return v_copysign(y, x);
}

/* Returns (asin(s) - s) / s for s² = z <= 1/4. */
VEC_INLINE vf v_asin_tail(vf z) {
    vf p = v_set(0x1.33d736p-5f);
    p = v_fma(p, z, v_set(0x1.d7a7b6p-7f));
    p = v_fma(p, z, v_set(0x1.04ab04p-5f));
    p = v_fma(p, z, v_set(0x1.6cabb6p-5f));
    p = v_fma(p, z, v_set(0x1.333892p-4f));
    p = v_fma(p, z, v_set(0x1.55554cp-3f));
    return p * z;
}
VEC_INLINE vf v_asin(vf x) {
    vf a = v_abs(x);
    vi is_large = (vi)(a > 0.5f);
    vf z = v_select(is_large, 0.5f - 0.5f * a, a * a);
    vf s = v_select(is_large, v_sqrt(z), a);
    vf y = v_fma(v_asin_tail(z), s, s);
    y = v_select(is_large, (0x1.921fb6p+0f - 2.0f * y) - 0x1.777a5cp-25f, y);
    return v_copysign(y, x); /* NaN for |x| > 1: z is negative */
}
VEC_INLINE vf v_acos(vf x) {
    vf a = v_abs(x);
    vi is_large = (vi)(a > 0.5f), is_negative = (vi)(x < 0.0f);
    vf z = v_select(is_large, 0.5f - 0.5f * a, a * a);
    vf s = v_select(is_large, v_sqrt(z), v_select(is_negative, -a, a));
    vf y = v_fma(v_asin_tail(z), s, s);
    vf large = v_select(is_negative, 0x1.921fb6p+1f - 2.0f * y, 2.0f * y);
    return v_select(is_large, large, 0x1.921fb6p+0f - (y + 0x1.777a5cp-25f));
}

/* ---- hyperbolic functions ---- */
VEC_INLINE vf v_sinh(vf x) {
    vf a = v_abs(x), e = v_exp_shifted(a, -1), t = x * x;
    vf p = v_set(0x1.7a28a2p-19f);
    p = v_fma(p, t, v_set(0x1.9ffe04p-13f));
    p = v_fma(p, t, v_set(0x1.111136p-7f));
    p = v_fma(p, t, v_set(0x1.555556p-3f));
    vf small = v_fma(p * t, x, x);
    return v_select((vi)(a < 1.0f), small, v_copysign(e - 0.25f / e, x));
}
VEC_INLINE vf v_cosh(vf x) {
    vf e = v_exp_shifted(v_abs(x), -1);
    return e + 0.25f / e;
}
VEC_INLINE vf v_asinh(vf x) {
    vf a = v_abs(x), t = a * a;
    vi is_large = (vi)(a > 0x1p30f);
    vf u = v_select(is_large, a, a + t / (1.0f + v_sqrt(1.0f + t)));
    vf y = v_log1p(u) + v_select(is_large, v_set(0x1.62e43p-1f), v_set(0.0f));
    return v_copysign(y, x);
}
VEC_INLINE vf v_acosh(vf x) {
    vf t = x - 1.0f;
    vi is_large = (vi)(x > 0x1p30f);
    vf u = v_select(is_large, x, t + v_sqrt(t * (x + 1.0f)));
    vf y = v_log1p(u) + v_select(is_large, v_set(0x1.62e43p-1f), v_set(0.0f));
    return v_select((vi)(x < 1.0f), v_set(NAN), y);
}
VEC_INLINE vf v_atanh(vf x) {
    vf a = v_abs(x);
    return v_copysign(0.5f * v_log1p(2.0f * a / (1.0f - a)), x);
}

/* ---- activations ---- */
VEC_INLINE vf v_softplus(vf x) {
    return v_max(v_set(0.0f), x) + v_log1p(v_exp_shifted(-v_abs(x), 0));
}
/* x · tanh(log(1 + e^x)), where tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2) */
VEC_INLINE vf v_mish(vf x) {
    vf scaled = v_exp_shifted(v_min(v_set(30.0f), x), 24), e = scaled * 0x1p-24f;
    vf w = e * (e + 2.0f), y = x * (w / (w + 2.0f));
    y = v_select((vi)(x < -20.0f), x * scaled * 0x1p-24f, y); /* e may be subnormal */
    return v_select((vi)(x > 30.0f), x, y);
}

/* x / (1 + e^(-a x)); the exponent is never positive, so that it does not overflow. */
VEC_INLINE vf v_swish(vf x, vf a) {
    vf t = a * x, scaled = v_exp_shifted(-v_abs(t), 24); /* e^t may be subnormal */
    return v_select((vi)(t < 0.0f), x * scaled * 0x1p-24f, x) / (1.0f + scaled * 0x1p-24f);
}

/* ---- powers ---- */
#define V_DOUBLES (VEC_BYTES / 8)
typedef double vd __attribute__((vector_size(VEC_BYTES)));
typedef int64_t vl __attribute__((vector_size(VEC_BYTES)));
typedef float v_half_f __attribute__((vector_size(VEC_BYTES / 2)));

VEC_INLINE vd v_blend(vl mask, vd a, vd b) {
    return (vd)((mask & (vl)a) | (~mask & (vl)b));
}

/* Returns log2 of positive normal doubles, with a relative error below 2^-38. */
VEC_INLINE vd v_log2_double(vd x) {
    vl bits = (vl)x, e = (bits - 0x3fe6a09e667f3bcd) >> 52;
    vd m = (vd)(bits - (e << 52)), s = (m - 1.0) / (m + 1.0), t = s * s;
    vd p = 1.0 / 15 - (vd){0};
    p = p * t + 1.0 / 13;
    p = p * t + 1.0 / 11;
    p = p * t + 1.0 / 9;
    p = p * t + 1.0 / 7;
    p = p * t + 1.0 / 5;
    p = p * t + 1.0 / 3;
    p = p * t + 1.0;
    /* e as a double, without an instruction that AVX2 lacks */
    vd n = (vd)(e + 0x4338000000000000) - 0x1.8p52;
    return p * s * 0x1.71547652b82fep+1 + n;
}

/* Returns 2^x for x in [-1000, 1000], with a relative error below 2^-32. */
VEC_INLINE vd v_exp2_double(vd x) {
    vd whole = x + 0x1.8p52;
    vl n = (vl)whole - 0x4338000000000000;
    vd r = (x - (whole - 0x1.8p52)) * 0x1.62e42fefa39efp-1;
    vd p = 1.0 / 40320 - (vd){0};
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return (vd)((vl)p + (n << 52));
}

VEC_INLINE v_half_f v_pow_half(v_half_f x, v_half_f y) {
    vd z = __builtin_convertvector(y, vd) * v_log2_double(__builtin_convertvector(x, vd));
    z = v_blend((vl)(z > 200.0), 200.0 - (vd){0}, z);
    z = v_blend((vl)(z < -200.0), -200.0 - (vd){0}, z);
    return __builtin_convertvector(v_exp2_double(z), v_half_f);
}

/* Returns x^y, in double precision; zeros, subnormal numbers, infinities and NaN are left to powf.
 */
VEC_INLINE vf v_pow(vf x, vf y) {
    vf a = v_abs(x);
    vi plain = (vi)(a >= 0x1p-126f) & (vi)(a < INFINITY) & (vi)(v_abs(y) < 0x1p22f);
    vf base = v_select(plain, a, v_set(1.0f)), power = v_select(plain, y, v_set(1.0f)), z;
    v_half_f part[2], exponent[2];
    memcpy(part, &base, sizeof part);
    memcpy(exponent, &power, sizeof exponent);
    part[0] = v_pow_half(part[0], exponent[0]);
    part[1] = v_pow_half(part[1], exponent[1]);
    memcpy(&z, part, sizeof z);
    if (v_any((vi)(x < 0.0f))) { /* an odd power keeps the sign; others than integers are NaN */
        vi n = v_round(power);
        vi is_whole = (vi)(__builtin_convertvector(n, vf) == power);
        vf signed_z = v_select(is_whole, (vf)((vi)z ^ (n << 31)), v_set(NAN));
        z = v_select((vi)(x < 0.0f), signed_z, z);
    }
    if (__builtin_expect(v_any(~plain), 0))
        for (int i = 0; i < VEC_LANES; i++)
            if (plain[i] == 0)
                z[i] = powf(x[i], y[i]);
    return z;
}

#endif
