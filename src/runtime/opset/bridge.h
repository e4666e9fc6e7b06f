/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bridges between the three ways in which a backend may run operators, so that the engine knows
 * one: kernels.
 */
#ifndef KELP_RUNTIME_OPSET_BRIDGE_H_
#define KELP_RUNTIME_OPSET_BRIDGE_H_

#include <kelp/opset.h>

#include <pthread.h>

/* A result that comes later, on its caller's stack. */
struct kelp_completion {
    pthread_mutex_t lock;
    pthread_cond_t done_cond;
    bool done;
    kelp_status *error;
};
/* Counts the dispatch among those under way: RESOURCE_EXHAUSTED when there are too many. */
kelp_status *kelp_completion_begin(kelp_completion *completion,
                                   kelp_opset_registry *registry) KELP_MUST_USE;
/* After the call that was given it, which returned these: waits where the result comes later, and
 * returns the error it ended with. */
kelp_status *kelp_completion_end(kelp_completion *completion, kelp_opset_registry *registry,
                                 kelp_status *take_status,
                                 kelp_dispatch_result result) KELP_MUST_USE;

/* What a backend returned for `value`: INTERNAL when there is none, or one of another type than the
 * model says, UNIMPLEMENTED when it is strided. */
kelp_status *kelp_bridge_check_result(const kelp_opset_backend *backend, const kelp_value *value,
                                      const kelp_tensor *result) KELP_MUST_USE;

/* A kernel for an operator that its backend only dispatches or executes as a graph. Its state is
 * made by kelp_bridge_create, not by the kernel's own create. Outputs depend on data, so reshape
 * runs the operator and invoke hands the result over. */
extern const kelp_op_kernel kelp_bridge_kernel;

kelp_status *kelp_bridge_create(const kelp_opset_match *match, const kelp_node *node,
                                kelp_allocator allocator, void **out_state) KELP_MUST_USE;

/* INVALID_ARGUMENT when an input is a list (KELP_LIST) and the kernel does not take lists. */
kelp_status *kelp_opset_check_lists(const kelp_op_kernel *kernel,
                                    const kelp_op_args *args) KELP_MUST_USE;

#endif
