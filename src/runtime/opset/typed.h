/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the tensors of a call against the signature of its operator. */
#ifndef KELP_RUNTIME_OPSET_TYPED_H_
#define KELP_RUNTIME_OPSET_TYPED_H_

#include "graph/signature.h"

/* Checks the inputs. The node matches the signature. `out_facts` has what follows. */
kelp_status *kelp_typed_check_inputs(const kelp_signature *signature, const kelp_node *node,
                                     const kelp_tensor *const *inputs,
                                     kelp_signature_facts *out_facts) KELP_MUST_USE;
/* Describes the outputs without data; `outputs` may have NULL items. Returns false if the type or
 * the shape of one does not follow. */
bool kelp_typed_describe_outputs(const kelp_signature *signature, const kelp_node *node,
                                 const kelp_signature_facts *facts, kelp_tensor *const *outputs);
/* Checks the results that provider `name` returned. Fails with INTERNAL. */
kelp_status *kelp_typed_check_results(const kelp_signature *signature, const kelp_node *node,
                                      kelp_signature_facts *inout_facts, const char *name,
                                      const kelp_tensor *results) KELP_MUST_USE;

#endif
