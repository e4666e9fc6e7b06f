/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Presents operators that a provider dispatches or executes as a graph as kernels, so that the
 * engine runs kernels only.
 */
#ifndef KELP_RUNTIME_OPSET_BRIDGE_H_
#define KELP_RUNTIME_OPSET_BRIDGE_H_

#include <kelp/opset.h>

#include <pthread.h>

/* A pending result of an asynchronous dispatch, on the stack of the calling thread. */
struct kelp_completion {
    pthread_mutex_t lock;
    pthread_cond_t done_cond;
    bool done;
    kelp_status *error;
};

/* Counts the dispatch as in flight. Fails with RESOURCE_EXHAUSTED if too many are. */
kelp_status *kelp_completion_begin(kelp_completion *completion,
                                   kelp_opset_registry *registry) KELP_MUST_USE;
/* Ends a dispatch that returned `take_status` and `result`: waits for a pending result, and returns
 * its error. */
kelp_status *kelp_completion_end(kelp_completion *completion, kelp_opset_registry *registry,
                                 kelp_status *take_status,
                                 kelp_dispatch_result result) KELP_MUST_USE;

/* Checks the tensor that a provider returned for `value`. Fails with INTERNAL if there is no tensor
 * or its type differs from the model's, and with UNIMPLEMENTED if it is strided. */
kelp_status *kelp_bridge_check_result(const kelp_opset_backend *backend, const kelp_value *value,
                                      const kelp_tensor *result) KELP_MUST_USE;

/* A kernel for operators that their provider dispatches or executes as a graph. kelp_bridge_create
 * creates its state. Shapes may depend on data, so reshape runs the operator and invoke copies the
 * results. */
extern const kelp_op_kernel kelp_bridge_kernel;

/* Creates the state of kelp_bridge_kernel. The node must outlive it. `stays` as in kelp_placer. */
kelp_status *kelp_bridge_create(const kelp_opset_match *match, const kelp_node *node,
                                uint64_t stays, kelp_allocator allocator,
                                void **out_state) KELP_MUST_USE;

/* Returns INVALID_ARGUMENT if an input is a list (KELP_LIST) and the kernel does not take lists. */
kelp_status *kelp_opset_check_lists(const kelp_op_kernel *kernel,
                                    const kelp_op_args *args) KELP_MUST_USE;

#endif
