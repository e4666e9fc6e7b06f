/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bridges between the three ways in which a backend may run operators, so that the engine knows
 * one: kernels.
 */
#ifndef KELP_OPSET_BRIDGE_H_
#define KELP_OPSET_BRIDGE_H_

#include <kelp/opset.h>

/* A kernel for an operator that its backend only dispatches or executes as a graph. Its state is
 * made by kelp_bridge_create, not by the kernel's own create. Outputs depend on data, so reshape
 * runs the operator and invoke hands the result over. */
extern const kelp_op_kernel kelp_bridge_kernel;

kelp_status *kelp_bridge_create(const kelp_opset_match *match, const kelp_node *node,
                                kelp_allocator allocator, void **out_state) KELP_MUST_USE;

/* What a subgraph reads from outside: values of outer blocks, and their tensors. */
typedef struct kelp_captures {
    const kelp_value *const *values;
    const kelp_tensor *const *tensors;
    size_t count;
} kelp_captures;

/* Runs a whole block one operator at a time, each by whoever covers it: what `execute_graph` falls
 * back to, and how subgraphs of control flow run. `captures` may be NULL. Outputs' data lives in
 * the env. */
kelp_status *kelp_opset_walk_block(const kelp_opset_registry *registry, const kelp_op_env *env,
                                   const kelp_block *block, const kelp_captures *captures,
                                   const kelp_tensor *const *inputs,
                                   kelp_tensor *outputs) KELP_MUST_USE;

/* The captures of a node that owns subgraphs, among the tensors given for its inputs (see
 * kelp_pass_captures). */
kelp_captures kelp_node_captures(const kelp_node *node, const kelp_tensor *const *inputs);

/* INVALID_ARGUMENT when an input is a list (KELP_LIST) and the kernel does not take lists. */
kelp_status *kelp_opset_check_lists(const kelp_op_kernel *kernel,
                                    const kelp_op_args *args) KELP_MUST_USE;

#endif
