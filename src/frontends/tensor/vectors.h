/* SPDX-License-Identifier: Apache-2.0 */
/* The vector instructions that arrays of numbers are converted with. */
#ifndef KELP_FRONTENDS_TENSOR_VECTORS_H_
#define KELP_FRONTENDS_TENSOR_VECTORS_H_

#include <stdbool.h>

#if defined(__x86_64__)
#include <immintrin.h>

/* Marks functions that are called only if kelp_v2_has_avx2 returns true. */
#define KELP_V2_AVX2 __attribute__((target("avx2")))

/* Returns true if this processor has AVX2. Thread-safe. */
bool kelp_v2_has_avx2(void);
#endif

/* Permits vector instructions, as at the start, or not; for tests. Not thread-safe. */
void kelp_v2_allow_vectors(bool allow);

#endif
