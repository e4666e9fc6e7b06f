/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subgraphs of an engine's main block that providers run as one unit. Partitioning finds them,
 * replaces them by kelp::BackendSubgraph nodes and prepares them. Not thread-safe, except for
 * kelp_subgraph_kernel.
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
    void *state;    /* of the provider */
    uint64_t stays; /* see kelp_placer */
} kelp_subgraph;

typedef struct kelp_partition {
    kelp_allocator allocator;
    kelp_arena arena;
    kelp_opset_choice choice;
    kelp_subgraph *first, **last;
    size_t count;
} kelp_partition;

/* Chooses the providers for a graph as kelp_opset_choose does. */
kelp_status *kelp_partition_init(kelp_partition *partition, kelp_allocator allocator,
                                 kelp_opset_registry *registry, const char *providers,
                                 const kelp_graph *graph) KELP_MUST_USE;
/* Releases the subgraphs. Accepts a zeroed object. The partitioned graph must still exist. */
void kelp_partition_deinit(kelp_partition *partition);
/* Partitions the main block of an engine's graph. Use counts are valid afterwards. A region that
 * its provider declines is logged and left in place. Fails with UNIMPLEMENTED, with a list of the
 * nodes, if no chosen provider covers some nodes. */
kelp_status *kelp_partition_run(kelp_partition *partition, kelp_graph *graph,
                                const kelp_op_env *env, const kelp_logger *logger) KELP_MUST_USE;

/* Returns true if the node is a kelp::BackendSubgraph. */
bool kelp_is_subgraph_node(const kelp_node *node);
/* Returns the subgraph of a node, or NULL. */
kelp_subgraph *kelp_partition_find(const kelp_partition *partition, const kelp_node *node);

/* Returns the outputs of a node that only operators of the same provider read, one bit each. They
 * may stay on a device. */
uint64_t kelp_partition_stays(const kelp_partition *partition, const kelp_node *node,
                              const kelp_opset_entry *entry);

/* Runs a kelp::BackendSubgraph node. Its state is the kelp_subgraph, which the partition owns. */
extern const kelp_op_kernel kelp_subgraph_kernel;

/* ---- estimates ---- */
/* Estimates the operations of a node, and the time of Kelp's own kernels. Dynamic dimensions count
 * as 1. */
void kelp_estimate_node(const kelp_node *node, double *out_operations, double *out_ns);
/* Returns the size of a value in bytes, or 0 if its shape is dynamic. */
size_t kelp_estimate_bytes(const kelp_value *value);

#endif
