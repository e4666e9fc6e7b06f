/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in double: exact rather than fast. */
#ifndef KELP_CPU_KERNELS_CONV_REFERENCE_H_
#define KELP_CPU_KERNELS_CONV_REFERENCE_H_

#include "cpu/ops/conv/window.h"

/* Channels are those of a group. Inputs X, W and (may be missing) bias, and output 0, are double.
 */
typedef struct kelp_conv_wide {
    const kelp_window *w; /* `in` and `out` are the operator's; of a transposed one as well */
    const kelp_op_args *args;
    int64_t batch, groups, in_channels, out_channels;
} kelp_conv_wide;

void kelp_conv_wide_run(const kelp_conv_wide *job);
/* ConvTranspose: each input is added to the outputs that it reaches. */
void kelp_conv_wide_transposed_run(const kelp_conv_wide *job);

#endif
