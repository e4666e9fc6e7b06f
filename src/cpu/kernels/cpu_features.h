/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this CPU has, as far as kernels are written for it. Every table of kernels is selected from
 * here. Thread-safe.
 */
#ifndef KELP_CPU_KERNELS_CPU_FEATURES_H_
#define KELP_CPU_KERNELS_CPU_FEATURES_H_

#include <kelp/status.h>

/* Ranks of instruction sets. A higher rank includes the lower ones; what a rank stands for depends
 * on the architecture. */
typedef enum kelp_cpu_isa {
    KELP_ISA_PORTABLE = 0, /* any CPU */
    KELP_ISA_VECTOR = 1,   /* x86-64: AVX2 and FMA; arm64: NEON */
    KELP_ISA_EXTENDED = 2, /* x86-64: AVX-512 F, VL, BW and DQ; arm64: DotProd or I8MM */
    KELP_ISA_BEST = 3      /* what goes beyond: x86-64: VNNI, BF16; arm64: I8MM */
} kelp_cpu_isa;

/* Indices of the best tables of kernels. */
typedef struct kelp_cpu_features {
    kelp_cpu_isa rank; /* KELP_ISA_EXTENDED at most */
    int f32;           /* 0: portable, 1: AVX2 or NEON, 2: AVX-512 */
    int int8;          /* 0: portable, 1: AVX2 or NEON, 2: AVX-512 or DotProd, 3: VNNI or I8MM */
    int bf16;          /* 0: portable, 1: AVX2, 2: AVX-512, 3: AVX512_BF16 */
} kelp_cpu_features;

/* The CPU's features within the limit. Detected, and KELP_ISA read, on first use. */
const kelp_cpu_features *kelp_cpu_features_get(void);
/* The same without the limit. */
const kelp_cpu_features *kelp_cpu_features_all(void);

/* Caps what kernels use from now on in this process, overriding the environment's KELP_ISA; for
 * tests and measurements. Call it before engines are created. */
void kelp_cpu_isa_limit(kelp_cpu_isa limit);
/* INVALID_ARGUMENT when the environment's KELP_ISA is not a name that this build knows,
 * FAILED_PRECONDITION when this CPU lacks the requested instruction set. */
kelp_status *kelp_cpu_isa_check(void) KELP_MUST_USE;
/* The instruction sets in use, for people: "avx512 vnni bf16". */
const char *kelp_cpu_isa_name(void);

#endif
