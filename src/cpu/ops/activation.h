/* SPDX-License-Identifier: Apache-2.0 */
/* The activation of Kelp's fused operators, an attribute. */
#ifndef KELP_CPU_OPS_ACTIVATION_H_
#define KELP_CPU_OPS_ACTIVATION_H_

#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/ops/kernel.h"

/* Parses "", "relu", "gelu", "gelu_tanh", "tanh", "sigmoid", "silu", "hard_swish" or "relu6".
 * Returns false for another name. */
bool kelp_act_parse(const char *name, kelp_act *out);
/* Reads the node's attribute "activation"; KELP_ACT_NONE without one. Returns INVALID_ARGUMENT for
 * an unknown name. */
kelp_status *kelp_act_read(const kelp_op_args *args, kelp_act *out) KELP_MUST_USE;

#endif
