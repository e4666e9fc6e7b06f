/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subgraphs of an engine's main block that providers run as a whole: they are found, replaced by
 * kelp::BackendSubgraph nodes, prepared, and run as a kernel. One thread, except for running.
 */
#ifndef KELP_RUNTIME_PARTITION_PARTITION_H_
#define KELP_RUNTIME_PARTITION_PARTITION_H_

#include "base/log.h"
#include "graph/ir.h"
#include "runtime/opset/registry.h"

/* A subgraph; the state of kelp_subgraph_kernel. */
typedef struct kelp_subgraph {
    struct kelp_subgraph *next;
    const kelp_opset_entry *entry;
    kelp_opset_registry *registry;
    kelp_graph *graph; /* its main block is the node's `body` */
    const kelp_node *node;
    void *state; /* the provider's */
} kelp_subgraph;

typedef struct kelp_partition {
    kelp_allocator allocator;
    kelp_arena arena;
    kelp_opset_choice choice;
    kelp_subgraph *first, **last;
    size_t count;
} kelp_partition;

/* Chooses the providers; `providers` is the member of kelp_engine_options. */
kelp_status *kelp_partition_init(kelp_partition *partition, kelp_allocator allocator,
                                 kelp_opset_registry *registry,
                                 const char *providers) KELP_MUST_USE;
/* Accepts a zeroed one. The graph whose nodes it created still exists. */
void kelp_partition_deinit(kelp_partition *partition);
/* Partitions the main block of an engine's graph. Use counts are valid before and after. A region
 * that its provider declines is logged and left in place. UNIMPLEMENTED lists the nodes that no
 * chosen provider covers. */
kelp_status *kelp_partition_run(kelp_partition *partition, kelp_graph *graph,
                                const kelp_op_env *env, const kelp_logger *logger) KELP_MUST_USE;

/* Returns true for a node kelp::BackendSubgraph. */
bool kelp_is_subgraph_node(const kelp_node *node);
/* Returns the subgraph of a node, or NULL. */
kelp_subgraph *kelp_partition_find(const kelp_partition *partition, const kelp_node *node);

/* Runs such a node; its state is the kelp_subgraph, which stays the partition's. */
extern const kelp_op_kernel kelp_subgraph_kernel;

/* ---- estimates ---- */
/* Estimates the operations of a node whose shapes are known, and the time of Kelp's own kernels;
 * dynamic dimensions count as 1. */
void kelp_estimate_node(const kelp_node *node, double *out_operations, double *out_ns);
/* Returns the bytes of a value whose shape is fixed, else 0. */
size_t kelp_estimate_bytes(const kelp_value *value);

#endif
