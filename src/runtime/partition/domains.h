/* SPDX-License-Identifier: Apache-2.0 */
/* The domains that a graph uses, and the libraries that provide them. */
#ifndef KELP_RUNTIME_PARTITION_DOMAINS_H_
#define KELP_RUNTIME_PARTITION_DOMAINS_H_

#include "graph/ir.h"
#include "runtime/opset/registry.h"

/* Returns true if the node calls a function of the model. */
bool kelp_is_function_call(const kelp_graph *graph, const kelp_node *node);

/* Adds a provider with the lowest priority, unless it is chosen already. */
kelp_status *kelp_opset_choice_add(kelp_opset_choice *choice, kelp_arena *arena,
                                   kelp_opset_entry *entry) KELP_MUST_USE;

/* Searches a library for each domain of the graph that no registered provider declares, unless a
 * chosen provider covers its nodes, and adds its operators to the choice. Sets `inout->searched`;
 * that a library is missing is not a failure. */
kelp_status *kelp_opset_search_domains(const kelp_graph *graph, kelp_arena *arena,
                                       kelp_opset_choice *inout) KELP_MUST_USE;

#endif
