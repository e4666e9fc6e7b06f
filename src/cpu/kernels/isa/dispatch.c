/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of the tables of kernels. */
#include "cpu/kernels/simd/bf16.h"
#include "cpu/kernels/simd/int8.h"

#include "cpu/kernels/cpu_features.h"

/* In the order of kelp_cpu_features. */
static const kelp_simd *const float_tables[] = {
    &kelp_simd_portable,
#if defined(__x86_64__)
    &kelp_simd_avx2,
    &kelp_simd_avx512,
#elif defined(__aarch64__)
    &kelp_simd_neon,
#endif
};
static const kelp_int8 *const int8_tables[] = {
    &kelp_int8_portable,
#if defined(__x86_64__)
    &kelp_int8_avx2,
    &kelp_int8_avx512,
    &kelp_int8_vnni,
#elif defined(__aarch64__)
    &kelp_int8_neon,
    &kelp_int8_dotprod,
    &kelp_int8_i8mm,
#endif
};
static const kelp_bf16 *const bf16_tables[] = {
    &kelp_bf16_portable,
#if defined(__x86_64__)
    &kelp_bf16_avx2,
    &kelp_bf16_avx512,
    &kelp_bf16_native,
#endif
};

const kelp_simd *kelp_simd_get(void) {
    return float_tables[kelp_cpu_features_get()->f32];
}

const kelp_int8 *kelp_int8_get(void) {
    return int8_tables[kelp_cpu_features_get()->int8];
}

const kelp_int8 *kelp_int8_at(int index) {
    return index >= 0 && index <= kelp_cpu_features_all()->int8 ? int8_tables[index] : NULL;
}

const kelp_bf16 *kelp_bf16_get(void) {
    return bf16_tables[kelp_cpu_features_get()->bf16];
}

const kelp_bf16 *kelp_bf16_at(int index) {
    return index >= 0 && index <= kelp_cpu_features_all()->bf16 ? bf16_tables[index] : NULL;
}
