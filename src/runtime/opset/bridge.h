/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bridges between the three ways in which a backend may run operators, so that the engine knows
 * one: kernels.
 */
#ifndef KELP_RUNTIME_OPSET_BRIDGE_H_
#define KELP_RUNTIME_OPSET_BRIDGE_H_

#include <kelp/opset.h>

#include <pthread.h>

/* A result that comes later, on the stack of the dispatch. */
struct kelp_completion {
    pthread_mutex_t lock;
    pthread_cond_t done_cond;
    bool done;
    kelp_status *error;
};
/* Counts the dispatch as in flight. Fails with RESOURCE_EXHAUSTED if there are too many. */
kelp_status *kelp_completion_begin(kelp_completion *completion,
                                   kelp_opset_registry *registry) KELP_MUST_USE;
/* Ends a dispatch that returned `take_status` and `result`: waits for a result that comes later,
 * and returns its error. */
kelp_status *kelp_completion_end(kelp_completion *completion, kelp_opset_registry *registry,
                                 kelp_status *take_status,
                                 kelp_dispatch_result result) KELP_MUST_USE;

/* Checks what a provider returned for `value`. Fails with INTERNAL if there is nothing, or another
 * type than the model declares, and with UNIMPLEMENTED if it is strided. */
kelp_status *kelp_bridge_check_result(const kelp_opset_backend *backend, const kelp_value *value,
                                      const kelp_tensor *result) KELP_MUST_USE;

/* A kernel for operators that their provider dispatches or executes as a graph. Its state is
 * created by kelp_bridge_create. Outputs depend on data, so reshape runs the operator and invoke
 * copies the result. */
extern const kelp_op_kernel kelp_bridge_kernel;

kelp_status *kelp_bridge_create(const kelp_opset_match *match, const kelp_node *node,
                                kelp_allocator allocator, void **out_state) KELP_MUST_USE;

/* Returns INVALID_ARGUMENT if an input is a list (KELP_LIST) and the kernel does not take lists. */
kelp_status *kelp_opset_check_lists(const kelp_op_kernel *kernel,
                                    const kelp_op_args *args) KELP_MUST_USE;

#endif
