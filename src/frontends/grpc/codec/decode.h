/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that decode fields of messages. */
#ifndef KELP_FRONTENDS_GRPC_CODEC_DECODE_H_
#define KELP_FRONTENDS_GRPC_CODEC_DECODE_H_

#include "base/arena.h"
#include "base/wire/protobuf.h"

/* The maximum number of items of a repeated field. */
#define KELP_GRPC_MAX_ITEMS 16384

/* Slices of a message, in the arena. */
typedef struct kelp_grpc_slices {
    kelp_str *items;
    size_t count, capacity;
} kelp_grpc_slices;

/* A parameter: an entry of a map from string to InferParameter or ModelRepositoryParameter. */
typedef struct kelp_grpc_parameter {
    const char *name;
    enum {
        KELP_GRPC_NO_VALUE,
        KELP_GRPC_BOOL_VALUE,
        KELP_GRPC_INT_VALUE,
        KELP_GRPC_UINT_VALUE,
        KELP_GRPC_DOUBLE_VALUE,
        KELP_GRPC_STRING_VALUE,
        KELP_GRPC_BYTES_VALUE
    } kind;
    uint64_t u64; /* the bits of BOOL, INT, UINT */
    double f64;
    kelp_str bytes; /* STRING (valid UTF-8), BYTES */
} kelp_grpc_parameter;

/* Returns the failure for a malformed message of this type. */
kelp_status *kelp_grpc_malformed(const char *message_type) KELP_MUST_USE;
/* Reads the next field. *out_more is false at the end. `message_type` is for the failure. */
kelp_status *kelp_grpc_next(kelp_protobuf *message, const char *message_type,
                            kelp_protobuf_field *out, bool *out_more) KELP_MUST_USE;
/* Appends the bytes of a repeated field. `what` names the items in the failure for too many. */
kelp_status *kelp_grpc_add_slice(kelp_arena *arena, kelp_grpc_slices *slices,
                                 const kelp_protobuf_field *field, const char *what) KELP_MUST_USE;
/* Copies a string field into the arena, terminated. `what` describes it in failures: wrong wire
 * type, invalid UTF-8, NUL. */
kelp_status *kelp_grpc_text(kelp_arena *arena, const kelp_protobuf_field *field, const char *what,
                            const char **out) KELP_MUST_USE;
/* Decodes an entry of a map of InferParameter; with `repository`, of ModelRepositoryParameter. */
kelp_status *kelp_grpc_read_parameter(kelp_arena *arena, kelp_str entry, bool repository,
                                      kelp_grpc_parameter *out) KELP_MUST_USE;
/* Parses a model version; -1 for "". */
kelp_status *kelp_grpc_parse_version(const char *text, int64_t *out) KELP_MUST_USE;

#endif
