/* SPDX-License-Identifier: Apache-2.0 */
/* Operators with subgraphs: If, Loop, Scan, FlexAttention. The engine compiles schedules of their
 * blocks (runtime/opset/body.h); these kernels decide when to run them, and on which tensors. */
#ifndef KELP_CPU_OPS_CONTROL_CONTROL_H_
#define KELP_CPU_OPS_CONTROL_CONTROL_H_

#include "base/alloc.h"
#include "cpu/ops/kernel.h"
#include "runtime/opset/env.h"

/* Runs an operator on lists, or FlexAttention; the `dispatch` of the cpu provider. */
kelp_status *kelp_control_dispatch(void *self, const kelp_op_env *env, const kelp_node *node,
                                   const kelp_tensor *const *inputs, kelp_tensor *outputs,
                                   kelp_completion *completion, kelp_dispatch_result *out_result);

/* Runs FlexAttention, which applies subgraphs to its scores and attention weights. */
kelp_status *kelp_control_flex(const kelp_op_env *env, const kelp_node *node,
                               const kelp_tensor *const *inputs,
                               kelp_tensor *outputs) KELP_MUST_USE;

/* Reads a condition. Returns INVALID_ARGUMENT unless it is one bool. */
kelp_status *kelp_control_bool(const kelp_node *node, const kelp_tensor *tensor,
                               bool *out) KELP_MUST_USE;
/* Returns true if every input has data and there is memory of the run, so that the operator can run
 * in reshape. */
bool kelp_control_has_data(const kelp_op_args *args);

#endif
