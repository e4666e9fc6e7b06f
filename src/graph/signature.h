/* SPDX-License-Identifier: Apache-2.0 */
/* Checks nodes against the signatures of operators (signature/signature.h). */
#ifndef KELP_GRAPH_SIGNATURE_H_
#define KELP_GRAPH_SIGNATURE_H_

#include "graph/ir.h"
#include "signature/signature.h"

/* Checks the attributes, the number of inputs and outputs, and their types and shapes as far as
 * they are known. Returns false and sets the problem if the node does not match. Otherwise
 * `out_facts` has what the inputs and attributes determine. */
bool kelp_node_matches(const kelp_node *node, const kelp_signature *signature,
                       kelp_signature_facts *out_facts, kelp_signature_problem *out_problem);

/* Returns the parameter of an input (an own one, no capture) or output, or -1 if `index` is out of
 * range. The last one may be variadic. */
int32_t kelp_signature_input(const kelp_signature *signature, size_t index);
int32_t kelp_signature_output(const kelp_signature *signature, size_t index);

/* Returns the signature of a node's operator, or NULL. */
typedef const kelp_signature *(*kelp_signature_of_fn)(void *userp, const kelp_node *node);

/* Infers the types and shapes of a block again, with the signatures of operators that are not in
 * Kelp's list. Has no effect if no node has one. Fails with INVALID_ARGUMENT if a node does not
 * match its signature. */
kelp_status *kelp_block_infer_signatures(kelp_block *block, kelp_signature_of_fn signature_of,
                                         void *userp) KELP_MUST_USE;

#endif
