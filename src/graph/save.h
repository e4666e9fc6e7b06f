/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as an ONNX model, and back out of the two parts of a plan. One thread. */
#ifndef KELP_GRAPH_SAVE_H_
#define KELP_GRAPH_SAVE_H_

#include "base/buf.h"
#include "graph/ir.h"

/* Where external data of a model in parts is: what is read where it lies, what is there for the
 * case that somebody wants it after all, and what somebody else will bring. */
#define KELP_WEIGHTS_LOCATION "weights"
#define KELP_ORIGINALS_LOCATION "originals"
#define KELP_STRIPPED_LOCATION "stripped"
/* On nodes whose version is not the one that the model imports; only models in parts have it. */
#define KELP_OPSET_ATTRIBUTE "kelp.opset"

typedef enum kelp_graph_part {
    KELP_PART_WEIGHTS = 0,
    KELP_PART_ORIGINALS = 1,
    KELP_PART_STRIPPED = 2, /* no bytes of it are kept, but how many there are */
    KELP_PART_COUNT = 3
} kelp_graph_part;

/* Tensors' bytes of one model or several that share them, each at a multiple of 64. */
typedef struct kelp_graph_parts {
    kelp_buf bytes[KELP_PART_COUNT]; /* STRIPPED stays empty */
    size_t stripped_bytes;
    /* Where a tensor goes; one whose bytes are there already stays with them, but that stripped
     * ones are kept apart from the rest. NULL: to the weights. */
    kelp_graph_part (*choose)(void *userp, const kelp_tensor *tensor);
    void *userp;
    kelp_map places; /* a tensor's bytes -> where they are */
    kelp_arena arena;
} kelp_graph_parts;
void kelp_graph_parts_init(kelp_graph_parts *parts, kelp_allocator allocator);
void kelp_graph_parts_deinit(kelp_graph_parts *parts);
/* Where the bytes of a tensor that was saved are; false: in the model itself. */
bool kelp_graph_parts_find(const kelp_graph_parts *parts, const kelp_tensor *tensor,
                           kelp_graph_part *out_part, size_t *out_offset);

/* Appends a ModelProto. `parts` NULL: tensors are written into it, and every node must be of the
 * version that the graph imports (UNIMPLEMENTED names one that is not). Else tensors' bytes go
 * there and the model refers to them. Names of values inside are made anew; those of inputs,
 * outputs and constants stay where they are unique. Captures that kelp_pass_captures added are left
 * out. */
kelp_status *kelp_graph_save(const kelp_graph *graph, kelp_graph_parts *parts,
                             kelp_buf *out) KELP_MUST_USE;
/* Whether saving leaves the node out: all its outputs are constants. */
bool kelp_node_is_folded(const kelp_node *node);

/* A model that kelp_graph_save wrote in parts. All are borrowed until the graph goes, when
 * `release(userp)` is called (also when this fails). Tensors are read where they lie. */
kelp_status *kelp_graph_load_parts(kelp_allocator allocator, kelp_str model,
                                   const kelp_str parts[KELP_PART_COUNT], const char *label,
                                   void (*release)(void *userp), void *userp,
                                   const kelp_graph_limits *limits, kelp_graph **out) KELP_MUST_USE;

#endif
