/* SPDX-License-Identifier: Apache-2.0 */
/* Serializes graphs as ONNX models, and loads models whose weights are stored in parts of an
 * engine image. Thread safety: one thread at a time. */
#ifndef KELP_GRAPH_SAVE_H_
#define KELP_GRAPH_SAVE_H_

#include "base/buf.h"
#include "graph/ir.h"

/* Locations of external data of a model in parts: used in place; kept in case they are needed
 * (originals); supplied later by the application (stripped). */
#define KELP_WEIGHTS_LOCATION "weights"
#define KELP_ORIGINALS_LOCATION "originals"
#define KELP_STRIPPED_LOCATION "stripped"
/* Attribute of nodes whose version differs from the imported one; only in models in parts. */
#define KELP_OPSET_ATTRIBUTE "kelp.opset"

/* A part of an engine image with bytes of tensors. */
typedef enum kelp_graph_part {
    KELP_PART_WEIGHTS = 0,
    KELP_PART_ORIGINALS = 1,
    KELP_PART_STRIPPED = 2, /* only sizes are kept, no bytes */
    KELP_PART_COUNT = 3
} kelp_graph_part;

/* Bytes of tensors of one or more models that share them, each at a multiple of 64. */
typedef struct kelp_graph_parts {
    kelp_buf bytes[KELP_PART_COUNT]; /* the buffer of STRIPPED stays empty */
    size_t stripped_bytes;
    /* Chooses the part for a tensor. Bytes that are stored already are not stored again, but
     * stripped ones are kept apart. NULL: weights. */
    kelp_graph_part (*choose)(void *userp, const kelp_tensor *tensor);
    void *userp;
    kelp_map stored; /* from the bytes of a tensor to their part and offset */
    kelp_arena arena;
} kelp_graph_parts;
/* Initializes empty parts. */
void kelp_graph_parts_init(kelp_graph_parts *parts, kelp_allocator allocator);
/* Frees the bytes. */
void kelp_graph_parts_deinit(kelp_graph_parts *parts);
/* Finds the bytes of a saved tensor. Returns false if they are in the model itself. */
bool kelp_graph_parts_find(const kelp_graph_parts *parts, const kelp_tensor *tensor,
                           kelp_graph_part *out_part, size_t *out_offset);

/* Appends a ModelProto. With `parts`, tensors are written there and the model refers to them. With
 * NULL, tensors are written into the model and every node must have the version that the graph
 * imports, or it fails with UNIMPLEMENTED and names the node. Inner values get new names; inputs,
 * outputs and constants keep theirs if unique. Captures that kelp_pass_captures added are left
 * out. */
kelp_status *kelp_graph_save(const kelp_graph *graph, kelp_graph_parts *parts,
                             kelp_buf *out) KELP_MUST_USE;
/* Returns true if saving leaves the node out, because all its outputs are constants. */
bool kelp_node_is_folded(const kelp_node *node);

/* Loads a model that kelp_graph_save wrote in parts. Everything is borrowed until the graph is
 * destroyed; then `release(userp)` is called, and also on failure. Tensors are used in place. */
kelp_status *kelp_graph_load_parts(kelp_allocator allocator, kelp_str model,
                                   const kelp_str parts[KELP_PART_COUNT], const char *label,
                                   void (*release)(void *userp), void *userp,
                                   const kelp_graph_limits *limits, kelp_graph **out) KELP_MUST_USE;

#endif
