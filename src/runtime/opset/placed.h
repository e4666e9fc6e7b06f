/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that a provider left on a device: they stay there for the provider's own operators, are
 * copied to the host by the provider, or are rejected. Nothing else reads them. */
#ifndef KELP_RUNTIME_OPSET_PLACED_H_
#define KELP_RUNTIME_OPSET_PLACED_H_

#include "runtime/opset/env.h"
#include "runtime/opset/registry.h"

/* A tensor on a device that a run owns. Allocated in the arena of the run. */
typedef struct kelp_placed {
    struct kelp_placed *next;
    const kelp_opset_entry *entry;
    kelp_tensor tensor;
} kelp_placed;

/* An operator or subgraph and its provider. */
typedef struct kelp_placer {
    const kelp_opset_entry *entry;
    const kelp_node *node;
    uint64_t stays; /* bit i: output i is read only by operators that run on the same provider */
} kelp_placer;

/* Returns true if the provider may leave outputs on a device. */
bool kelp_places(const kelp_opset_entry *entry);
/* Fails with UNIMPLEMENTED if an input is on a device that the provider does not accept. */
kelp_status *kelp_placed_check_inputs(const kelp_opset_entry *entry, const kelp_node *node,
                                      const kelp_tensor *const *inputs, size_t count) KELP_MUST_USE;
/* Takes over the results of a run that are on a device. They are released after the run. */
kelp_status *kelp_placed_own(const kelp_opset_entry *entry, const kelp_op_env *env,
                             const kelp_tensor *results, size_t count) KELP_MUST_USE;
/* Copies result `index` to host memory. Fails with UNIMPLEMENTED if it is on a device and the
 * provider cannot copy it. */
kelp_status *kelp_placed_copy(const kelp_placer *placer, const kelp_op_env *env, size_t index,
                              const kelp_tensor *result, void *to) KELP_MUST_USE;
/* Sets an output to the result, in place if it stays on its device, otherwise to a copy in memory
 * of kelp_op_env_alloc. */
kelp_status *kelp_placed_set(const kelp_placer *placer, const kelp_op_env *env, size_t index,
                             const kelp_tensor *result, kelp_tensor *out) KELP_MUST_USE;
/* Does this for all outputs of a deferred reshape, which then needs no invoke. */
kelp_status *kelp_placed_set_all(const kelp_placer *placer, kelp_op_args *args,
                                 const kelp_tensor *results) KELP_MUST_USE;
/* Releases the tensors that were added after `until`, or all if it is NULL. */
void kelp_placed_release(kelp_placed **head, const kelp_placed *until);

#endif
