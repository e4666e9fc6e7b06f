/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as an ONNX model, and back out of the two parts of a plan. One thread. */
#ifndef KELP_GRAPH_SAVE_H_
#define KELP_GRAPH_SAVE_H_

#include "base/buf.h"
#include "graph/ir.h"

/* Where external data of a model that lies in two parts is: see kelp_graph_load_parts. */
#define KELP_WEIGHTS_LOCATION "weights"
/* On nodes whose version is not the one that the model imports; only models in parts have it. */
#define KELP_OPSET_ATTRIBUTE "kelp.opset"

/* Appends a ModelProto. `weights` NULL: tensors are written into it, and every node must be of the
 * version that the graph imports (UNIMPLEMENTED names one that is not). Else tensors' bytes go to
 * `weights`, each at a multiple of 64, and the model refers to them. Names of values inside are
 * made anew; those of inputs, outputs and constants stay where they are unique. Captures that
 * kelp_pass_captures added are left out. */
kelp_status *kelp_graph_save(const kelp_graph *graph, kelp_buf *weights,
                             kelp_buf *out) KELP_MUST_USE;

/* A model that kelp_graph_save wrote in parts. Both are borrowed until the graph goes, when
 * `release(userp)` is called (also when this fails). Tensors are read where they lie. */
kelp_status *kelp_graph_load_parts(kelp_allocator allocator, kelp_str model, kelp_str weights,
                                   const char *label, void (*release)(void *userp), void *userp,
                                   kelp_graph **out) KELP_MUST_USE;

#endif
