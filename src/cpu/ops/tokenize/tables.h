/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of StringMapping, StringToVector and VectorToString: "KEY<tab>VALUE" per line. */
#ifndef KELP_CPU_OPS_TOKENIZE_TABLES_H_
#define KELP_CPU_OPS_TOKENIZE_TABLES_H_

#include "base/arena.h"
#include "base/map.h"
#include "cpu/ops/tokenize/tokenize.h"

typedef enum kelp_table_kind {
    KELP_TABLE_TEXTS,      /* from text to text */
    KELP_TABLE_TO_VECTOR,  /* from text to integers, with an attribute for unknown texts */
    KELP_TABLE_FROM_VECTOR /* the same table in the other direction */
} kelp_table_kind;

typedef struct kelp_table_row {
    kelp_str text;
    int64_t *vector;
} kelp_table_row;

typedef struct kelp_text_table {
    kelp_arena arena;
    kelp_map rows; /* by text, or by the bytes of the vector */
    size_t vector_length;
    int64_t *unknown_vector;
    kelp_str unknown_text; /* belongs to the node */
} kelp_text_table;

/* Reads the attributes `map` and `unk`. INVALID_ARGUMENT, with the line, if they are malformed; the
 * table must be deinitialized nevertheless. */
kelp_status *kelp_text_table_init(kelp_text_table *out, const kelp_node *node,
                                  kelp_allocator allocator, kelp_table_kind kind) KELP_MUST_USE;
void kelp_text_table_deinit(kelp_text_table *table);

#endif
