/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that own subgraphs: If, Loop and Scan. They are dispatched, not planned: which branch
 * runs and how often depends on data. */
#ifndef KELP_OPS_CONTROL_H_
#define KELP_OPS_CONTROL_H_

#include <kelp/opset.h>

/* The `dispatch` of the cpu opset backend; `self` is the kelp_opset_registry whose backends run the
 * subgraphs' nodes. */
kelp_status *kelp_control_dispatch(void *self, const kelp_op_env *env, const kelp_node *node,
                                   const kelp_tensor *const *inputs, kelp_tensor *outputs,
                                   kelp_completion *completion, kelp_dispatch_result *out_result);

/* FlexAttention, which runs subgraphs within its attention. */
kelp_status *kelp_control_flex(void *self, const kelp_op_env *env, const kelp_node *node,
                               const kelp_tensor *const *inputs,
                               kelp_tensor *outputs) KELP_MUST_USE;
/* Scan, all versions. */
kelp_status *kelp_control_scan(const kelp_opset_registry *registry, const kelp_op_env *env,
                               const kelp_node *node, const kelp_tensor *const *inputs,
                               kelp_tensor *outputs) KELP_MUST_USE;

#endif
