/* SPDX-License-Identifier: Apache-2.0 */
/* Between the loader's files. */
#ifndef KELP_GRAPH_LOAD_H_
#define KELP_GRAPH_LOAD_H_

#include "graph/ir.h"

/* Orders the nodes so that values are made before they are used, keeping the file's order where it
 * can; a cycle is an error that names a node on it. */
kelp_status *kelp_block_sort(kelp_block *block) KELP_MUST_USE;

#endif
