/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that build graphs for tests of passes. */
#ifndef KELP_TESTS_GRAPH_PASSES_SUPPORT_H_
#define KELP_TESTS_GRAPH_PASSES_SUPPORT_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/passes/passes.h"

/* A graph under construction. */
typedef struct model {
    kelp_graph *graph;
    kelp_block *block;
} model;

/* Creates an empty graph. */
static inline model make(void) {
    model m = {0};
    assert_null(kelp_graph_new(kelp_allocator_system(), &m.graph));
    m.block = m.graph->main;
    return m;
}

/* Adds a value with dynamic dimensions. */
static inline kelp_value *value(model *m, kelp_dtype dtype, int32_t rank) {
    kelp_value *v = NULL;
    assert_null(kelp_block_add_value(m->block, "v", &v));
    v->kind = KELP_VALUE_TENSOR;
    v->dtype = dtype;
    v->rank = rank;
    for (int32_t i = 0; i < rank; i++)
        v->shape[i] = -1;
    return v;
}

#endif
