/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protobuf text format as a tree without a schema: the reader of a message interprets its fields.
 * Supports lists ("dims: [ 1, 2 ]"), nested messages in {} or <>, comments, adjacent strings and
 * all escapes.
 * Source: protobuf.dev, "Text Format Language Specification".
 */
#ifndef KELP_BASE_TEXT_PBTXT_H_
#define KELP_BASE_TEXT_PBTXT_H_

#include "base/arena.h"

typedef enum kelp_pbtxt_type {
    KELP_PBTXT_MESSAGE,
    KELP_PBTXT_STRING,
    KELP_PBTXT_SCALAR /* number, identifier (enum, true, false, inf, nan), with its sign */
} kelp_pbtxt_type;

/* One occurrence of a field. A list of n values becomes n occurrences. */
typedef struct kelp_pbtxt kelp_pbtxt;
struct kelp_pbtxt {
    kelp_pbtxt_type type;
    kelp_str name;     /* name of the field; "[a.b]" for an extension; empty for the root */
    kelp_str text;     /* STRING: decoded; SCALAR: as written without inner blanks */
    kelp_pbtxt *child; /* MESSAGE: first field */
    kelp_pbtxt *next;
    uint32_t line, column; /* position of the name, from 1 */
    uint32_t value_line, value_column;
};

/* Parses a text into the arena. Fails with INVALID_ARGUMENT "FILE:LINE:COLUMN: …". The maximum
 * depth is 100. */
kelp_status *kelp_pbtxt_parse(kelp_arena *arena, const char *file, const char *text, size_t length,
                              kelp_pbtxt **out_root) KELP_MUST_USE;

/* These functions convert one occurrence to a scalar. Errors contain file, line, column and field
 * ("… field 'max_batch_size': expected an int32, found 'x'"). */
kelp_status *kelp_pbtxt_i64(const char *file, const kelp_pbtxt *field, int64_t min, int64_t max,
                            int64_t *out) KELP_MUST_USE;
kelp_status *kelp_pbtxt_u64(const char *file, const kelp_pbtxt *field, uint64_t max,
                            uint64_t *out) KELP_MUST_USE;
kelp_status *kelp_pbtxt_f64(const char *file, const kelp_pbtxt *field, double *out) KELP_MUST_USE;
kelp_status *kelp_pbtxt_bool(const char *file, const kelp_pbtxt *field, bool *out) KELP_MUST_USE;
kelp_status *kelp_pbtxt_string(const char *file, const kelp_pbtxt *field,
                               kelp_str *out) KELP_MUST_USE;

#endif
