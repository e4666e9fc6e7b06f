/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu opset backend: kernels of ai.onnx and of the fused operators that the engine's passes
 * make. */
#ifndef KELP_CPU_OPS_OPS_H_
#define KELP_CPU_OPS_OPS_H_

#include <kelp/opset.h>

/* Instruction sets for which there are kernels, in rising order. */
typedef enum kelp_cpu_isa {
    KELP_ISA_PORTABLE = 0,
    KELP_ISA_AVX2 = 1,    /* x86-64 with AVX2 and FMA */
    KELP_ISA_AVX512 = 2,  /* x86-64 with AVX-512 F, VL, BW and DQ */
    KELP_ISA_NEON = 1,    /* any arm64 */
    KELP_ISA_DOTPROD = 2, /* arm64 with products of bytes, DotProd or I8MM */
    KELP_ISA_BEST = 3     /* x86-64: with VNNI and BF16 where they are */
} kelp_cpu_isa;

/* Caps what kernels use from now on in this process, in place of what KELP_ISA in the environment
 * says; for tests and measurements. Set it before engines are made. */
void kelp_cpu_isa_limit(kelp_cpu_isa most);
/* INVALID_ARGUMENT when KELP_ISA in the environment is none of the names that this build has,
 * FAILED_PRECONDITION when this CPU has not what it asks for. */
kelp_status *kelp_cpu_isa_check(void) KELP_MUST_USE;
/* The level in use: what the CPU has, capped by the limit. Any thread. */
kelp_cpu_isa kelp_cpu_isa_level(void);
/* The same in words, with what goes beyond the level: "avx512 vnni bf16". */
const char *kelp_cpu_isa_name(void);

#endif
