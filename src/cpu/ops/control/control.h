/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that own subgraphs: If, Loop, Scan, FlexAttention. Their blocks are planned by the
 * engine (runtime/opset/body.h); what is left here is when they run, and on what. */
#ifndef KELP_CPU_OPS_CONTROL_CONTROL_H_
#define KELP_CPU_OPS_CONTROL_CONTROL_H_

#include "base/alloc.h"
#include "cpu/ops/kernel.h"
#include "runtime/opset/env.h"

/* The `dispatch` of the cpu opset backend: operators on lists, and FlexAttention. */
kelp_status *kelp_control_dispatch(void *self, const kelp_op_env *env, const kelp_node *node,
                                   const kelp_tensor *const *inputs, kelp_tensor *outputs,
                                   kelp_completion *completion, kelp_dispatch_result *out_result);

/* FlexAttention, which runs subgraphs within its attention. */
kelp_status *kelp_control_flex(const kelp_op_env *env, const kelp_node *node,
                               const kelp_tensor *const *inputs,
                               kelp_tensor *outputs) KELP_MUST_USE;

/* A condition; INVALID_ARGUMENT when it is not one bool. */
kelp_status *kelp_control_bool(const kelp_node *node, const kelp_tensor *tensor,
                               bool *out) KELP_MUST_USE;
/* true when every input has its data, and memory that lives until invoke is there: the operator
 * may run while it is reshaped. */
bool kelp_control_has_data(const kelp_op_args *args);

#endif
