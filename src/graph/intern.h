/* SPDX-License-Identifier: Apache-2.0 */
/* Finds operator records during the load of a graph, and creates records of operators that are not
 * in the list: custom operators and model-local functions. One thread. */
#ifndef KELP_GRAPH_INTERN_H_
#define KELP_GRAPH_INTERN_H_

#include "base/arena.h"
#include "base/map.h"
#include "operator/operator.h"

/* The operator records of one graph. */
typedef struct kelp_interner {
    kelp_arena *arena; /* owns the created records */
    kelp_map by_name;
} kelp_interner;

/* Initializes an interner that creates records in `arena`. */
void kelp_interner_init(kelp_interner *interner, kelp_allocator allocator, kelp_arena *arena);
/* Frees the interner; the records stay in the arena. */
void kelp_interner_deinit(kelp_interner *interner);
/* Returns one record for each pair of domain and name; "ai.onnx" and "" are the same domain. */
kelp_status *kelp_intern_operator(kelp_interner *interner, kelp_str domain, kelp_str name,
                                  const kelp_operator **out) KELP_MUST_USE;

#endif
