/* SPDX-License-Identifier: Apache-2.0 */
/* Detection of the features of this CPU. */
#include "cpu/kernels/cpu_features.h"

#include "base/assert.h"
#include "base/checked.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#define VARIABLE "KELP_ISA"
#define RANKS (KELP_ISA_BEST + 1)

/* Names of ranks in the environment, from the lowest. */
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

/* ---- detection ---- */
static kelp_cpu_features detect(void) {
    kelp_cpu_features f = {.rank = KELP_ISA_PORTABLE};
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return f;
    f = (kelp_cpu_features){KELP_ISA_VECTOR, 1, 1, 1};
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl") ||
        !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq"))
        return f;
    f = (kelp_cpu_features){KELP_ISA_EXTENDED, 2, 2, 2};
    f.int8 += __builtin_cpu_supports("avx512vnni") != 0;
    f.bf16 += __builtin_cpu_supports("avx512bf16") != 0;
#elif defined(__aarch64__)
    bool i8mm = (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
    bool dotprod = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
    f = (kelp_cpu_features){KELP_ISA_VECTOR, 1, 1, 0};
    if (dotprod || i8mm) {
        f.rank = KELP_ISA_EXTENDED;
        f.int8 = i8mm ? 3 : 2;
    }
#endif
    return f;
}

static kelp_cpu_features within(kelp_cpu_features f, int limit) {
    f.rank = (kelp_cpu_isa)KELP_MIN((int)f.rank, limit);
    f.f32 = KELP_MIN(f.f32, limit);
    f.int8 = KELP_MIN(f.int8, limit);
    f.bf16 = KELP_MIN(f.bf16, limit);
    return f;
}

/* For each limit; filled before `selected` points into it. */
static kelp_cpu_features features[RANKS];
static _Atomic(const kelp_cpu_features *) selected;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Returns the rank of that name, -1 for an unknown name, KELP_ISA_BEST for none. */
static int rank_of(const char *name) {
    if (name == NULL || *name == '\0')
        return KELP_ISA_BEST;
    for (size_t i = 0; i < KELP_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

static void initialize(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
    kelp_cpu_features all = detect();
    for (int limit = 0; limit < RANKS; limit++)
        features[limit] = within(all, limit);
    int limit = rank_of(getenv(VARIABLE)); /* kelp_cpu_isa_check reports an unknown name */
    atomic_store_explicit(&selected, &features[limit < 0 ? KELP_ISA_BEST : limit],
                          memory_order_release);
}

const kelp_cpu_features *kelp_cpu_features_get(void) {
    const kelp_cpu_features *f = atomic_load_explicit(&selected, memory_order_acquire);
    if (f == NULL) {
        (void)pthread_once(&once, initialize);
        f = atomic_load_explicit(&selected, memory_order_acquire);
    }
    return f;
}

const kelp_cpu_features *kelp_cpu_features_all(void) {
    (void)kelp_cpu_features_get(); /* fills them */
    return &features[KELP_ISA_BEST];
}

/* ---- limit ---- */
void kelp_cpu_isa_limit(kelp_cpu_isa limit) {
    KELP_ASSERT(limit >= KELP_ISA_PORTABLE && limit <= KELP_ISA_BEST);
    (void)kelp_cpu_features_get(); /* fills them */
    atomic_store_explicit(&selected, &features[limit], memory_order_release);
}

kelp_status *kelp_cpu_isa_check(void) {
    const char *name = getenv(VARIABLE);
    int rank = rank_of(name);
    const kelp_cpu_features *used = kelp_cpu_features_get();
    if (rank < 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the environment variable " VARIABLE " is '%s': expected " NAMES
                          ", or nothing for all that the CPU has",
                          name);
    if (rank != KELP_ISA_BEST && used == &features[rank] && (int)used->rank != rank)
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "the environment variable " VARIABLE
                          " is '%s', which this CPU lacks: it has at most %s",
                          name, names[used->rank]);
    return NULL;
}

const char *kelp_cpu_isa_name(void) {
    const kelp_cpu_features *f = kelp_cpu_features_get();
#if defined(__x86_64__)
    if (f->int8 == 3)
        return f->bf16 == 3 ? "avx512 vnni bf16" : "avx512 vnni";
#elif defined(__aarch64__)
    if (f->int8 == 3)
        return "i8mm";
#endif
    return names[f->rank];
}
