/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/tensor/vectors.h"

static bool forbidden;

#if defined(__x86_64__)
bool kelp_v2_has_avx2(void) {
    return __builtin_cpu_supports("avx2") && !forbidden;
}
#endif

void kelp_v2_allow_vectors(bool allow) {
    forbidden = !allow;
}
