/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages, enumerations and services of the gRPC front end as one table. It describes how
 * messages are encoded (codec/json.c) and what server reflection returns (descriptor.c).
 *
 * Rows are in the order of the files. The fields of a message follow its row, and then the types
 * that are declared in it, whose names begin with its name. Names do not contain the package.
 */
#ifndef KELP_FRONTENDS_GRPC_CODEC_SCHEMA_H_
#define KELP_FRONTENDS_GRPC_CODEC_SCHEMA_H_

#include "base/str.h"

typedef enum kelp_grpc_row_kind {
    KELP_GRPC_FILE, /* `type_name`: package, `other`: the file that it imports, or "" */
    KELP_GRPC_MESSAGE,
    KELP_GRPC_FIELD,  /* field of the message above */
    KELP_GRPC_LIST,   /* repeated field */
    KELP_GRPC_MAP,    /* map; `type` and `type_name` are those of the values */
    KELP_GRPC_CHOICE, /* field of the oneof `other` */
    KELP_GRPC_ENUM,
    KELP_GRPC_VALUE, /* value of the enumeration above */
    KELP_GRPC_SERVICE,
    KELP_GRPC_METHOD /* method of the service above; `type_name`: request, `other`: response */
} kelp_grpc_row_kind;

/* Types of fields; the numbers are those of descriptors (FieldDescriptorProto.Type). */
typedef enum kelp_grpc_type {
    KELP_GRPC_DOUBLE = 1,
    KELP_GRPC_FLOAT = 2,
    KELP_GRPC_INT64 = 3,
    KELP_GRPC_UINT64 = 4,
    KELP_GRPC_INT32 = 5,
    KELP_GRPC_BOOL = 8,
    KELP_GRPC_STRING = 9,
    KELP_GRPC_SUBMESSAGE = 11,
    KELP_GRPC_BYTES = 12,
    KELP_GRPC_UINT32 = 13,
    KELP_GRPC_ENUMERATION = 14
} kelp_grpc_type;

/* A row of the table. */
typedef struct kelp_grpc_row {
    const char *name;
    const char *type_name; /* of a message or enumeration; "" for other types */
    const char *other;
    int32_t number;
    uint8_t kind;     /* kelp_grpc_row_kind */
    uint8_t type;     /* kelp_grpc_type */
    uint8_t key_type; /* of a map */
    bool client_streams, server_streams;
} kelp_grpc_row;

extern const kelp_grpc_row kelp_grpc_schema[];
extern const size_t kelp_grpc_schema_count;

/* Returns the row of a message or enumeration of the package inference, or NULL. */
const kelp_grpc_row *kelp_grpc_find_type(const char *name);
/* Returns true if the row is a field of any kind. */
static inline bool kelp_grpc_is_field(const kelp_grpc_row *row) {
    return row->kind >= KELP_GRPC_FIELD && row->kind <= KELP_GRPC_CHOICE;
}
/* Returns the end of the table. */
static inline const kelp_grpc_row *kelp_grpc_schema_end(void) {
    return kelp_grpc_schema + kelp_grpc_schema_count;
}

#endif
