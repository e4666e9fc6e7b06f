/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the loader. */
#ifndef KELP_GRAPH_LOAD_H_
#define KELP_GRAPH_LOAD_H_

#include "base/file_guard.h"
#include "graph/ir.h"

/* Sorts the nodes topologically, stable with respect to the order of the file. A cycle is an error
 * that names one of its nodes. */
kelp_status *kelp_block_sort(kelp_block *block) KELP_MUST_USE;

/* Loads a file like kelp_graph_load_file. The model and its external data are mapped by `guard`, so
 * that they may be modified in place while the graph exists; NULL: they may not. */
kelp_status *kelp_graph_load_guarded(kelp_allocator allocator, kelp_file_guard *guard,
                                     const char *path, const kelp_graph_limits *limits,
                                     kelp_graph **out) KELP_MUST_USE;

#endif
