/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of an engine's main block that are handed to backends whole: found, made into
 * kelp::BackendSubgraph nodes, made ready, and run as a kernel. One thread, but for running.
 */
#ifndef KELP_RUNTIME_PARTITION_PARTITION_H_
#define KELP_RUNTIME_PARTITION_PARTITION_H_

#include "base/log.h"
#include "graph/ir.h"
#include "runtime/opset/registry.h"

/* One of them; the state of kelp_subgraph_kernel. */
typedef struct kelp_subgraph {
    struct kelp_subgraph *next;
    const kelp_opset_entry *entry;
    kelp_opset_registry *registry;
    kelp_graph *graph; /* its main block is the node's `body` */
    const kelp_node *node;
    void *state; /* the backend's */
} kelp_subgraph;

typedef struct kelp_partition {
    kelp_allocator allocator;
    kelp_arena arena;
    kelp_opset_choice choice;
    kelp_subgraph *first, **last;
    size_t count;
} kelp_partition;

/* Chooses the backends; `providers` as kelp_engine_options has it. */
kelp_status *kelp_partition_init(kelp_partition *partition, kelp_allocator allocator,
                                 kelp_opset_registry *registry,
                                 const char *providers) KELP_MUST_USE;
/* Also of a zeroed one. The graph whose nodes it made is still there. */
void kelp_partition_deinit(kelp_partition *partition);
/* Parts the main block of an engine's graph. Use counts are fresh before and after. What a backend
 * says that it cannot run is logged and stays. UNIMPLEMENTED lists what nobody chosen covers. */
kelp_status *kelp_partition_run(kelp_partition *partition, kelp_graph *graph,
                                const kelp_op_env *env, const kelp_logger *logger) KELP_MUST_USE;

/* true for a node kelp::BackendSubgraph. */
bool kelp_is_subgraph_node(const kelp_node *node);
/* Whose node it is, or NULL. */
kelp_subgraph *kelp_partition_find(const kelp_partition *partition, const kelp_node *node);

/* Runs such a node; its state is the kelp_subgraph, which stays the partition's. */
extern const kelp_op_kernel kelp_subgraph_kernel;

/* ---- estimates ---- */
/* Arithmetic of a node whose shapes are known, and the time that Kelp's own kernels take for it;
 * open extents count as 1. */
void kelp_estimate_node(const kelp_node *node, double *out_operations, double *out_ns);
/* Bytes of a value whose shape is fixed; 0 for another. */
size_t kelp_estimate_bytes(const kelp_value *value);

#endif
