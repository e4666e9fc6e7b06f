/* SPDX-License-Identifier: Apache-2.0 */
/* Which tables of loops this CPU runs. */
#include "ops/simd/bf16.h"
#include "ops/simd/int8.h"

#include "ops/ops.h"

#include <stdatomic.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

static _Atomic int isa_limit = KELP_ISA_BEST;

void kelp_cpu_isa_limit(kelp_cpu_isa most) {
    atomic_store_explicit(&isa_limit, (int)most, memory_order_relaxed);
}

#if defined(__aarch64__)
static bool has_dotprod(void) {
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}
static bool has_i8mm(void) {
    return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
}
#endif

kelp_cpu_isa kelp_cpu_isa_level(void) {
    int limit = atomic_load_explicit(&isa_limit, memory_order_relaxed);
#if defined(__x86_64__)
    if (limit >= KELP_ISA_AVX512 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq"))
        return KELP_ISA_AVX512;
    if (limit >= KELP_ISA_AVX2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return KELP_ISA_AVX2;
#elif defined(__aarch64__)
    if (limit >= KELP_ISA_DOTPROD && (has_dotprod() || has_i8mm()))
        return KELP_ISA_DOTPROD;
    if (limit >= KELP_ISA_NEON)
        return KELP_ISA_NEON;
#else
    (void)limit;
#endif
    return KELP_ISA_PORTABLE;
}

const kelp_simd *kelp_simd_get(void) {
#if defined(__x86_64__)
    switch (kelp_cpu_isa_level()) {
    case KELP_ISA_AVX512:
        return &kelp_simd_avx512;
    case KELP_ISA_AVX2:
        return &kelp_simd_avx2;
    default:
        break;
    }
#elif defined(__aarch64__)
    if (kelp_cpu_isa_level() >= KELP_ISA_NEON)
        return &kelp_simd_neon;
#endif
    return &kelp_simd_portable;
}

const kelp_int8 *kelp_int8_get(void) {
#if defined(__x86_64__)
    switch (kelp_cpu_isa_level()) {
    case KELP_ISA_AVX512:
        return __builtin_cpu_supports("avx512vnni") ? &kelp_int8_vnni : &kelp_int8_avx512;
    case KELP_ISA_AVX2:
        return &kelp_int8_avx2;
    default:
        break;
    }
#elif defined(__aarch64__)
    switch (kelp_cpu_isa_level()) {
    case KELP_ISA_DOTPROD:
        return has_i8mm() ? &kelp_int8_i8mm : &kelp_int8_dotprod;
    case KELP_ISA_NEON:
        return &kelp_int8_neon;
    default:
        break;
    }
#endif
    return &kelp_int8_portable;
}

const kelp_int8 *kelp_int8_at(int index) {
    const kelp_int8 *tables[4] = {&kelp_int8_portable};
#if defined(__x86_64__)
    int count = 1;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        tables[count++] = &kelp_int8_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        tables[count++] = &kelp_int8_avx512;
    if (count == 3 && __builtin_cpu_supports("avx512vnni"))
        tables[count++] = &kelp_int8_vnni;
#elif defined(__aarch64__)
    int count = 1;
    tables[count++] = &kelp_int8_neon;
    if (has_dotprod())
        tables[count++] = &kelp_int8_dotprod;
    if (has_i8mm())
        tables[count++] = &kelp_int8_i8mm;
#endif
    return index >= 0 && index < 4 ? tables[index] : NULL;
}

const kelp_bf16 *kelp_bf16_get(void) {
#if defined(__x86_64__)
    switch (kelp_cpu_isa_level()) {
    case KELP_ISA_AVX512:
        return __builtin_cpu_supports("avx512bf16") ? &kelp_bf16_native : &kelp_bf16_avx512;
    case KELP_ISA_AVX2:
        return &kelp_bf16_avx2;
    default:
        break;
    }
#endif
    return &kelp_bf16_portable;
}

const kelp_bf16 *kelp_bf16_at(int index) {
    const kelp_bf16 *tables[4] = {&kelp_bf16_portable};
#if defined(__x86_64__)
    int count = 1;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        tables[count++] = &kelp_bf16_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        tables[count++] = &kelp_bf16_avx512;
    if (count == 3 && __builtin_cpu_supports("avx512bf16"))
        tables[count++] = &kelp_bf16_native;
#endif
    return index >= 0 && index < 4 ? tables[index] : NULL;
}
