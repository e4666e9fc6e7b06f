/* SPDX-License-Identifier: Apache-2.0 */
/* Which tables of loops this CPU runs. */
#include "cpu/kernels/simd/bf16.h"
#include "cpu/kernels/simd/int8.h"

#include "cpu/ops/ops.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#define UNREAD (-1)
#define VARIABLE "KELP_ISA"

static _Atomic int isa_limit = UNREAD;

/* Names of KELP_ISA, in rising order: what stands at N is level N. */
#if defined(__x86_64__)
static const char *const names[] = {"portable", "avx2", "avx512"};
#define NAMES "portable, avx2 or avx512"
#elif defined(__aarch64__)
static const char *const names[] = {"portable", "neon", "dotprod"};
#define NAMES "portable, neon or dotprod"
#else
static const char *const names[] = {"portable"};
#define NAMES "portable"
#endif

/* UNREAD for a name that is none; unset and empty leave all that the CPU has. */
static int level_of(const char *name) {
    if (name == NULL || *name == '\0')
        return KELP_ISA_BEST;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return UNREAD;
}

/* Read once: kernels of one process agree. */
static int current_limit(void) {
    int limit = atomic_load_explicit(&isa_limit, memory_order_relaxed);
    if (limit != UNREAD)
        return limit;
    limit = level_of(getenv(VARIABLE));
    limit = limit == UNREAD ? KELP_ISA_BEST : limit; /* kelp_cpu_isa_check tells */
    atomic_store_explicit(&isa_limit, limit, memory_order_relaxed);
    return limit;
}

kelp_status *kelp_cpu_isa_check(void) {
    const char *name = getenv(VARIABLE);
    int level = level_of(name);
    if (level == UNREAD)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the environment's " VARIABLE " is '%s': expected " NAMES
                          ", or nothing for all that the CPU has",
                          name);
    if (level != KELP_ISA_BEST && current_limit() == level && (int)kelp_cpu_isa_level() != level)
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "the environment's " VARIABLE " is '%s', which this CPU does not have: "
                          "it has %s at most",
                          name, names[kelp_cpu_isa_level()]);
    return NULL;
}

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
    int limit = current_limit();
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

const char *kelp_cpu_isa_name(void) {
#if defined(__x86_64__)
    if (kelp_cpu_isa_level() == KELP_ISA_AVX512 && kelp_int8_get() == &kelp_int8_vnni)
        return kelp_bf16_get() == &kelp_bf16_native ? "avx512 vnni bf16" : "avx512 vnni";
#elif defined(__aarch64__)
    if (kelp_int8_get() == &kelp_int8_i8mm)
        return "i8mm";
#endif
    return names[kelp_cpu_isa_level()];
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
        return current_limit() > KELP_ISA_AVX512 && __builtin_cpu_supports("avx512vnni")
                   ? &kelp_int8_vnni
                   : &kelp_int8_avx512;
    case KELP_ISA_AVX2:
        return &kelp_int8_avx2;
    default:
        break;
    }
#elif defined(__aarch64__)
    switch (kelp_cpu_isa_level()) {
    case KELP_ISA_DOTPROD:
        return current_limit() > KELP_ISA_DOTPROD && has_i8mm() ? &kelp_int8_i8mm
                                                                : &kelp_int8_dotprod;
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
        return current_limit() > KELP_ISA_AVX512 && __builtin_cpu_supports("avx512bf16")
                   ? &kelp_bf16_native
                   : &kelp_bf16_avx512;
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
