/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the loader. */
#ifndef KELP_GRAPH_LOAD_H_
#define KELP_GRAPH_LOAD_H_

#include "graph/ir.h"

/* Sorts the nodes topologically, stable with respect to the order of the file. A cycle is an error
 * that names one of its nodes. */
kelp_status *kelp_block_sort(kelp_block *block) KELP_MUST_USE;

#endif
