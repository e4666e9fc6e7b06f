/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The intermediate representation (IR) that kelp/graph.h exposes and that passes and the engine
 * use. Everything of a graph is allocated in its arena and addressed by pointer. Ids are dense
 * within a block, so that the engine can index arrays with them. A loaded graph is immutable. An
 * engine works on a copy of its main block (kelp_graph_clone_for_engine), which passes modify.
 */
#ifndef KELP_GRAPH_IR_H_
#define KELP_GRAPH_IR_H_

#include "base/arena.h"
#include "base/map.h"
#include "operator/operator.h"

#include <kelp/graph.h>

/* An attribute of a node. */
typedef struct kelp_attr {
    const char *name;
    kelp_attr_type type;
    const char *ref; /* in a function: the attribute of the call that it refers to; or NULL */
    int64_t i;
    float f;
    kelp_string s;
    size_t count; /* number of items */
    const int64_t *ints;
    const float *floats;
    const kelp_string *strings;
    const kelp_tensor *tensor; /* TENSOR; TENSORS: all items */
    kelp_block **blocks;       /* GRAPH: one item; GRAPHS: all items */
    struct kelp_attr *next;
} kelp_attr;

/* How the elements of a value take part in computing shapes. */
typedef enum kelp_shape_use {
    KELP_SHAPE_USE_NONE,
    KELP_SHAPE_USE_DYNAMIC, /* for dimensions that depend on elements of inputs */
    KELP_SHAPE_USE_STATIC   /* for dimensions that depend on shapes and constants */
} kelp_shape_use;

/* A value: an input, a constant, or an output of a node. */
struct kelp_value {
    const char *name;
    kelp_value_kind kind;
    kelp_dtype dtype;
    int32_t rank; /* -1 if unknown */
    int64_t shape[KELP_MAX_RANK];
    const char *symbols[KELP_MAX_RANK];
    const kelp_tensor *constant;
    kelp_block *block;   /* block that defines it: an outer block for a captured value */
    kelp_node *producer; /* NULL for an input of the block and for a constant */
    uint32_t id;         /* dense within its block */
    uint32_t use_count;  /* number of uses by nodes, captures of subgraphs included, and as block
                            outputs; set by kelp_block_count_uses */
    bool is_input;
    bool is_output;
    bool is_own;       /* a constant that a pass created, whose bytes may be changed */
    bool is_generated; /* a constant that the lowering of a layer created */
    bool follows_data; /* computed from elements of inputs; and shape_use: set by
                          kelp_graph_find_shape_values */
    kelp_shape_use shape_use;
    kelp_value *local; /* set by kelp_pass_captures: the input or constant for it in `local_in` */
    const kelp_block *local_in;
};

/* A node: one use of an operator. */
struct kelp_node {
    const char *name;
    const kelp_operator *op; /* never NULL; two nodes of one graph have the same operator exactly
                                when this is the same pointer */
    int64_t opset_version;
    kelp_value **inputs; /* NULL items are omitted */
    size_t input_count;
    kelp_value **outputs;
    size_t output_count;
    kelp_attr *attributes; /* linked list, in file order */
    kelp_block *block;
    size_t index; /* position in its block */
    bool removed; /* set by a pass; kelp_block_sweep removes the node */
};

/* A block: the main graph, a subgraph of a node, or the body of a function. */
struct kelp_block {
    const char *name;
    kelp_graph *graph;
    kelp_block *parent; /* enclosing block of a subgraph */
    kelp_node *owner;   /* the node that has this block as an attribute */
    kelp_node **nodes;
    size_t node_count, node_capacity;
    kelp_value **values; /* indexed by id */
    size_t value_count, value_capacity;
    kelp_value **inputs;
    size_t input_count;
    kelp_value **outputs;
    size_t output_count;
    /* functions only */
    const kelp_operator *function; /* operator of the nodes that call it */
    kelp_attr *defaults;
};

/* The version of a domain that a model imports. */
typedef struct kelp_opset_import {
    const char *domain;
    int64_t version;
} kelp_opset_import;

/* A graph and the owner of its memory. */
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
    kelp_graph *origin; /* graph that a clone borrows constants from */
    void *source;       /* mappings and external files of the loader; freed by release_source */
    void (*release_source)(kelp_graph *graph);
    bool settled; /* graph of an engine image: types and shapes were inferred when it was built */
    size_t node_limit; /* number of nodes that inlining may produce; 0: the loader's default */
};

/* Creates a graph with an empty main block, without imports and metadata. */
kelp_status *kelp_graph_new(kelp_allocator allocator, kelp_graph **out) KELP_MUST_USE;
/* Releases the resident pages of mapped files; they are read again on access. Thread-safe. */
void kelp_graph_release_pages(kelp_graph *graph);

/* Creates a mutable copy for an engine: nodes, values and attributes are new; constants and
 * strings are borrowed from `graph`, which the copy retains. Calls of model-local functions are
 * replaced by their bodies, in subgraphs too. Fails with INVALID_ARGUMENT for recursive calls and
 * missing functions. */
kelp_status *kelp_graph_clone_for_engine(kelp_graph *graph, kelp_graph **out) KELP_MUST_USE;

/* Creates a graph of one node whose inputs and outputs are the block's, so that a provider that
 * only executes graphs can run one operator. Borrows the attributes of `node`, whose blocks keep
 * `node` as their owner. `inputs` define types and shapes. */
kelp_status *kelp_graph_of_node(kelp_allocator allocator, const kelp_node *node,
                                const kelp_tensor *const *inputs, kelp_graph **out) KELP_MUST_USE;

/* Infers types and shapes that the file does not declare, as far as the operators are known.
 * Declared ones are kept. */
kelp_status *kelp_block_infer(kelp_block *block) KELP_MUST_USE;
/* Infers types and shapes of the nodes from index `first` on. */
kelp_status *kelp_block_infer_from(kelp_block *block, size_t first) KELP_MUST_USE;

/* Sets follows_data and shape_use of all values. */
void kelp_graph_find_shape_values(kelp_graph *graph);
/* Returns true if another constant in the place of this one may change a shape. Call
 * kelp_graph_find_shape_values first. */
bool kelp_value_sets_shape(const kelp_value *value);

/* The attribute of nodes with blocks that kelp_pass_captures adds: the index of the first captured
 * input. The loader rejects it in files. */
#define KELP_CAPTURES_ATTRIBUTE "kelp.captures"

/* ---- building and modifying ---- */
/* Memory is allocated in the arena of the graph; functions fail with RESOURCE_EXHAUSTED. */

/* Creates an empty block. `name` is borrowed. */
kelp_status *kelp_block_new(kelp_graph *graph, kelp_block *parent, const char *name,
                            kelp_block **out) KELP_MUST_USE;
/* Adds a value of unknown type and rank. `name` is borrowed. */
kelp_status *kelp_block_add_value(kelp_block *block, const char *name,
                                  kelp_value **out) KELP_MUST_USE;
/* Appends a node. Copies the arrays and sets the producers of the outputs; takes over
 * `attributes`. */
kelp_status *kelp_block_add_node(kelp_block *block, const kelp_operator *op, int64_t opset_version,
                                 const char *name, kelp_value *const *inputs, size_t input_count,
                                 kelp_value *const *outputs, size_t output_count,
                                 kelp_attr *attributes, kelp_node **out) KELP_MUST_USE;
/* Creates a node and inserts it before `before`; otherwise the same as kelp_block_add_node. */
kelp_status *kelp_block_insert_node(kelp_block *block, kelp_node *before, const kelp_operator *op,
                                    int64_t opset_version, const char *name,
                                    kelp_value *const *inputs, size_t input_count,
                                    kelp_value *const *outputs, size_t output_count,
                                    kelp_attr *attributes, kelp_node **out) KELP_MUST_USE;
/* Inserts nodes of another block at index `at`. The caller sets their `block`. */
kelp_status *kelp_block_insert_nodes(kelp_block *block, size_t at, kelp_node *const *nodes,
                                     size_t count) KELP_MUST_USE;
/* Moves a value of another block to this one and gives it a new id. */
kelp_status *kelp_block_adopt_value(kelp_block *block, kelp_value *value) KELP_MUST_USE;
/* Sets an attribute; replaces one of the same name. Names and strings are borrowed, lists copied.
 */
kelp_status *kelp_node_set_i64(kelp_node *node, const char *name, int64_t value) KELP_MUST_USE;
kelp_status *kelp_node_set_f32(kelp_node *node, const char *name, float value) KELP_MUST_USE;
kelp_status *kelp_node_set_i64s(kelp_node *node, const char *name, const int64_t *values,
                                size_t count) KELP_MUST_USE;
kelp_status *kelp_node_set_string(kelp_node *node, const char *name,
                                  const char *value) KELP_MUST_USE;
/* Returns the attribute of this name, or NULL. */
const kelp_attr *kelp_node_find_attr(const kelp_node *node, const char *name);

/* Replaces every use of `from` (by nodes of this block and of nested ones, and as block output) by
 * `to`. If `from` is a block output, `to` takes over its name and position. */
void kelp_block_replace_uses(kelp_block *block, kelp_value *from, kelp_value *to);
/* Recounts use_count of every value. */
void kelp_block_count_uses(kelp_block *block);
/* Removes nodes marked `removed` and renumbers the others. */
void kelp_block_sweep(kelp_block *block);
/* Removes nodes marked `removed`, and nodes whose outputs are not used, random ones included, and
 * in subgraphs once kelp_pass_captures has run. Use counts are up to date afterwards. Returns the
 * number of unused nodes removed from this block. */
size_t kelp_block_remove_dead(kelp_block *block);
/* Returns the only node that uses `value`, if it is used exactly once, by a node of its block;
 * else NULL. Needs current use counts. */
kelp_node *kelp_value_only_user(const kelp_value *value);

/* ---- nodes that own blocks ---- */
/* Makes each value that a subgraph reads from outside an input of the node that owns the subgraph
 * and of its blocks. An engine does this once. */
kelp_status *kelp_pass_captures(kelp_block *block) KELP_MUST_USE;
/* Returns the index of the node's first captured input, or the number of inputs without captures.
 */
size_t kelp_node_first_capture(const kelp_node *node);
/* Replaces captured inputs that have become constant by constants of the blocks. */
void kelp_node_share_constants(kelp_node *node);
/* Removes captured inputs that no block uses. Use counts must be up to date. */
void kelp_node_drop_captures(kelp_node *node);
/* Replaces the If `node` by the nodes of its block `branch`, whose captures are inputs already. The
 * node is marked as removed. */
kelp_status *kelp_node_take_branch(kelp_node *node, kelp_block *branch) KELP_MUST_USE;

#endif
