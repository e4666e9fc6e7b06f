/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The intermediate representation behind kelp/graph.h: what passes and the engine see.
 *
 * Everything of one graph lives in its arena and is addressed by pointer; ids are dense within a
 * block, so that the engine can use arrays. A loaded graph is immutable. An engine works on a copy
 * of its main block (kelp_graph_clone_for_engine), which passes may change.
 */
#ifndef KELP_GRAPH_IR_H_
#define KELP_GRAPH_IR_H_

#include "base/arena.h"
#include "base/map.h"
#include "operator/operator.h"

#include <kelp/graph.h>

typedef struct kelp_attr {
    const char *name;
    kelp_attr_type type;
    const char *ref; /* in a function: the attribute of the call that it stands for; else NULL */
    int64_t i;
    float f;
    kelp_string s;
    size_t count; /* of the arrays */
    const int64_t *ints;
    const float *floats;
    const kelp_string *strings;
    const kelp_tensor *tensor; /* TENSOR; items of TENSORS */
    kelp_block **blocks;       /* GRAPH: one; GRAPHS */
    struct kelp_attr *next;
} kelp_attr;

struct kelp_value {
    const char *name;
    kelp_value_kind kind;
    kelp_dtype dtype;
    int32_t rank; /* -1 unknown */
    int64_t shape[KELP_MAX_RANK];
    const char *symbols[KELP_MAX_RANK];
    const kelp_tensor *constant;
    kelp_block *block; /* where it is defined; an outer block for values that a subgraph captures */
    kelp_node *producer; /* NULL: input of its block or constant */
    uint32_t id;         /* dense in its block */
    uint32_t use_count;  /* uses by nodes (subgraphs' captures count) and as block outputs; kept by
                            kelp_block_count_uses */
    bool is_input;
    bool is_output;
    bool is_own;       /* a constant that a pass made: its bytes may be changed */
    kelp_value *local; /* kelp_pass_captures: what stands for it in block `local_in` */
    const kelp_block *local_in;
};

struct kelp_node {
    const char *name;
    const kelp_operator *op; /* never NULL; two nodes of one graph have the same operator exactly
                                when this is the same pointer */
    int64_t opset_version;
    kelp_value **inputs; /* NULL items: left out */
    size_t input_count;
    kelp_value **outputs;
    size_t output_count;
    kelp_attr *attributes; /* list, in file order */
    kelp_block *block;
    size_t index; /* in its block's order */
    bool removed; /* by a pass; swept by kelp_block_sweep */
};

struct kelp_block {
    const char *name;
    kelp_graph *graph;
    kelp_block *parent; /* of a subgraph */
    kelp_node *owner;   /* node whose attribute this block is */
    kelp_node **nodes;
    size_t node_count, node_capacity;
    kelp_value **values; /* by id */
    size_t value_count, value_capacity;
    kelp_value **inputs;
    size_t input_count;
    kelp_value **outputs;
    size_t output_count;
    /* functions only */
    const kelp_operator *function; /* what nodes that call it have as their operator */
    kelp_attr *defaults;
};

typedef struct kelp_opset_import {
    const char *domain;
    int64_t version;
} kelp_opset_import;

struct kelp_graph {
    _Atomic uint32_t references;
    kelp_allocator allocator;
    kelp_arena arena;
    kelp_graph_info info;
    kelp_opset_import *imports;
    size_t import_count;
    const char **metadata; /* key, value, key, value … */
    kelp_block *main;
    kelp_block **functions;
    size_t function_count;
    kelp_graph *origin; /* a clone keeps the graph alive whose constants it borrows */
    void *source;       /* loader's: mappings, external files; freed by release_source */
    void (*release_source)(kelp_graph *graph);
    bool settled;      /* of a plan: types and shapes are as they were inferred when it was built */
    size_t node_limit; /* that functions may be inlined to; 0 is the loader's default */
};

/* A graph with an empty main block; imports and metadata are not set. */
kelp_status *kelp_graph_new(kelp_allocator allocator, kelp_graph **out) KELP_MUST_USE;
/* Pages of the files that the loader mapped leave memory until they are read again. Any thread. */
void kelp_graph_relax(kelp_graph *graph);

/* A mutable copy for an engine: nodes, values and attributes are new, constants and strings are
 * borrowed from `graph`, which the copy retains. Calls of model-local functions are replaced by
 * their bodies (recursion and missing functions are errors), also inside subgraphs. */
kelp_status *kelp_graph_clone_for_engine(kelp_graph *graph, kelp_graph **out) KELP_MUST_USE;

/* A graph of one node whose inputs and outputs are the block's, so that a backend that only
 * executes graphs can run one operator. Borrows `node`'s attributes; `inputs` give dtypes and
 * shapes. */
kelp_status *kelp_graph_of_node(kelp_allocator allocator, const kelp_node *node,
                                const kelp_tensor *const *inputs, kelp_graph **out) KELP_MUST_USE;

/* Fills in the types and shapes that the file leaves out, as far as the operators are known; what
 * is declared stays. */
kelp_status *kelp_block_infer(kelp_block *block) KELP_MUST_USE;
/* The same when the nodes before index `first` have been inferred already. */
kelp_status *kelp_block_infer_from(kelp_block *block, size_t first) KELP_MUST_USE;

/* ---- building and changing ---- arena memory; RESOURCE_EXHAUSTED when there is none. */
kelp_status *kelp_block_new(kelp_graph *graph, kelp_block *parent, const char *name,
                            kelp_block **out) KELP_MUST_USE;
kelp_status *kelp_block_add_value(kelp_block *block, const char *name,
                                  kelp_value **out) KELP_MUST_USE;
/* Appends. Arrays are copied; the values' producers are set. `attributes` is taken as it is. */
kelp_status *kelp_block_add_node(kelp_block *block, const kelp_operator *op, int64_t opset_version,
                                 const char *name, kelp_value *const *inputs, size_t input_count,
                                 kelp_value *const *outputs, size_t output_count,
                                 kelp_attr *attributes, kelp_node **out) KELP_MUST_USE;
/* The same, placed before `before` in the order. */
kelp_status *kelp_block_insert_node(kelp_block *block, kelp_node *before, const kelp_operator *op,
                                    int64_t opset_version, const char *name,
                                    kelp_value *const *inputs, size_t input_count,
                                    kelp_value *const *outputs, size_t output_count,
                                    kelp_attr *attributes, kelp_node **out) KELP_MUST_USE;
/* Places nodes of another block at index `at`; their `block` stays the caller's to set. */
kelp_status *kelp_block_insert_nodes(kelp_block *block, size_t at, kelp_node *const *nodes,
                                     size_t count) KELP_MUST_USE;
/* A value of another block becomes this one's, under a new id. */
kelp_status *kelp_block_adopt_value(kelp_block *block, kelp_value *value) KELP_MUST_USE;
kelp_status *kelp_node_set_i64(kelp_node *node, const char *name, int64_t value) KELP_MUST_USE;
kelp_status *kelp_node_set_f32(kelp_node *node, const char *name, float value) KELP_MUST_USE;
kelp_status *kelp_node_set_i64s(kelp_node *node, const char *name, const int64_t *values,
                                size_t count) KELP_MUST_USE;
kelp_status *kelp_node_set_string(kelp_node *node, const char *name,
                                  const char *value) KELP_MUST_USE;
const kelp_attr *kelp_node_find_attr(const kelp_node *node, const char *name);

/* Makes every use of `from` (nodes of this block and of nested ones, block outputs) use `to`. When
 * `from` is a block output, `to` takes over its name and place. */
void kelp_block_replace_uses(kelp_block *block, kelp_value *from, kelp_value *to);
/* Recounts use_count of every value. */
void kelp_block_count_uses(kelp_block *block);
/* Removes nodes marked removed, renumbers node indexes. */
void kelp_block_sweep(kelp_block *block);
/* Removes nodes whose outputs nobody uses (pure ones all are, in ONNX, but for the random ones
 * without use, which go too), in subgraphs too once these stand for themselves
 * (kelp_pass_captures). Returns how many of this block's. */
size_t kelp_block_remove_dead(kelp_block *block);
/* The only node that uses `value`, when it is used exactly once and by a node of its block; else
 * NULL. Needs fresh use counts. */
kelp_node *kelp_value_only_user(const kelp_value *value);

#endif
