/* SPDX-License-Identifier: Apache-2.0 */
/* Element types at any address. Weights are used in place in the file that a model was read from,
 * which does not align them. */
#ifndef KELP_CPU_KERNELS_UNALIGNED_H_
#define KELP_CPU_KERNELS_UNALIGNED_H_

typedef float kelp_float_u __attribute__((aligned(1), may_alias));
typedef double kelp_double_u __attribute__((aligned(1), may_alias));

#endif
