/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of shape inference. */
#ifndef KELP_GRAPH_INFER_H_
#define KELP_GRAPH_INFER_H_

#include "graph/ir.h"

/* A shape in the making: rank -1 is unknown; an extent -1 is open, with or without a name. */
typedef struct kelp_dims {
    int32_t rank;
    int64_t shape[KELP_MAX_RANK];
    const char *symbols[KELP_MAX_RANK];
} kelp_dims;

typedef bool (*kelp_infer_fn)(const kelp_node *node, kelp_dims *out);

/* The function that knows the shape of output 0 of this operator, or NULL. */
kelp_infer_fn kelp_infer_find(const char *op_type);

#endif
