/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The features of this CPU that kernels use. All tables of micro-kernels are selected by them.
 * Thread-safe.
 */
#ifndef KELP_CPU_KERNELS_CPU_FEATURES_H_
#define KELP_CPU_KERNELS_CPU_FEATURES_H_

#include <kelp/status.h>

/* Ranks of instruction sets. A higher rank includes the lower ones; the meaning of a rank depends
 * on the architecture. */
typedef enum kelp_cpu_isa {
    KELP_ISA_PORTABLE = 0, /* any CPU */
    KELP_ISA_VECTOR = 1,   /* x86-64: AVX2 and FMA; arm64: NEON */
    KELP_ISA_EXTENDED = 2, /* x86-64: AVX-512 F, VL, BW and DQ; arm64: DotProd or I8MM */
    KELP_ISA_BEST = 3      /* all others: x86-64: VNNI, BF16; arm64: I8MM */
} kelp_cpu_isa;

/* Indices of the best tables of kernels. */
typedef struct kelp_cpu_features {
    kelp_cpu_isa rank; /* at most KELP_ISA_EXTENDED */
    int f32;           /* 0: portable, 1: AVX2 or NEON, 2: AVX-512 */
    int int8;          /* 0: portable, 1: AVX2 or NEON, 2: AVX-512 or DotProd, 3: VNNI or I8MM */
    int bf16;          /* 0: portable, 1: AVX2, 2: AVX-512, 3: AVX512_BF16 */
} kelp_cpu_features;

/* Returns the features of the CPU within the limit. The first call detects them and reads the
 * environment variable KELP_ISA. */
const kelp_cpu_features *kelp_cpu_features_get(void);
/* Returns all features, without the limit. */
const kelp_cpu_features *kelp_cpu_features_all(void);

/* Limits the instruction sets that kernels use in this process and overrides KELP_ISA; for tests
 * and measurements. Call it before engines are created. */
void kelp_cpu_isa_limit(kelp_cpu_isa limit);
/* Checks KELP_ISA. Fails with INVALID_ARGUMENT if it is not a name that this build knows, and with
 * FAILED_PRECONDITION if this CPU lacks the instruction set. */
kelp_status *kelp_cpu_isa_check(void) KELP_MUST_USE;
/* Returns the instruction sets in use for display, such as "avx512 vnni bf16". Static. */
const char *kelp_cpu_isa_name(void);

#endif
