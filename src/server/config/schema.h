/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables for the messages of Triton's model_config.proto, and trees that hold messages. Reading
 * text, reading JSON and writing JSON use the tables; only the typed view (view.c) uses the names
 * of fields.
 */
#ifndef KELP_SERVER_CONFIG_SCHEMA_H_
#define KELP_SERVER_CONFIG_SCHEMA_H_

#include "base/text/json.h"
#include "base/text/pbtxt.h"

/* The kind of a field's value. */
typedef enum kelp_config_kind {
    KELP_CONFIG_STRING,
    KELP_CONFIG_BOOL,
    KELP_CONFIG_INT32,
    KELP_CONFIG_INT64,
    KELP_CONFIG_UINT32,
    KELP_CONFIG_UINT64,
    KELP_CONFIG_DOUBLE,
    KELP_CONFIG_ENUM,
    KELP_CONFIG_MESSAGE
} kelp_config_kind;

/* Flags of a field. MAP: entries {key, value}; the key is a string or, with MAP_U64, a number.
 * JSON_TEXT: a 64-bit number that Triton prints as a string. SPARSE: printed only if it is set,
 * because gRPC servers of earlier versions of Triton cannot read a configuration that has it. */
#define KELP_CONFIG_REPEATED 1u
#define KELP_CONFIG_MAP 2u
#define KELP_CONFIG_MAP_U64 4u
#define KELP_CONFIG_JSON_TEXT 8u
#define KELP_CONFIG_SPARSE 16u

typedef struct kelp_config_schema kelp_config_schema;
/* A field of a message. */
typedef struct kelp_config_field {
    const char *name;
    kelp_config_kind kind;
    uint32_t flags;
    const kelp_config_schema *message; /* MESSAGE */
    const char *const *values;         /* ENUM: names by number; NULL ends the list */
    const char *oneof;                 /* group of fields of which at most one is set, or NULL */
} kelp_config_field;

/* The fields of a message. */
struct kelp_config_schema {
    const char *name;
    const kelp_config_field *fields;
    size_t field_count;
};
extern const kelp_config_schema kelp_config_schema_model;

typedef struct kelp_config_message kelp_config_message;
/* One value of a field. */
typedef struct kelp_config_value {
    struct kelp_config_value *next; /* of a repeated field or a map */
    struct kelp_config_value *last; /* of the same list; only valid in its first value */
    kelp_str key;                   /* of a map */
    kelp_str text;                  /* STRING */
    int64_t i;                      /* numbers, BOOL, ENUM (its number); UINT64 as its bits */
    double f;                       /* DOUBLE */
    kelp_config_message *message;   /* MESSAGE */
} kelp_config_value;

/* The values of a message. */
struct kelp_config_message {
    const kelp_config_schema *schema;
    kelp_config_value **values; /* by field: the first value, or NULL */
};

/* Creates an empty message; returns NULL if memory is exhausted. */
kelp_config_message *kelp_config_message_new(kelp_arena *arena, const kelp_config_schema *schema);
/* Returns the index of a field by name, or SIZE_MAX. */
size_t kelp_config_field_index(const kelp_config_schema *schema, kelp_str name);
/* Returns the first value of a field, or NULL. */
kelp_config_value *kelp_config_get(const kelp_config_message *message, const char *field);
/* Returns the value of a field that is not repeated, and creates it if the field is unset; NULL if
 * memory is exhausted. A MESSAGE is created empty. */
kelp_config_value *kelp_config_set(kelp_arena *arena, kelp_config_message *message,
                                   const char *field);
/* Appends a value to a repeated field or map; returns NULL if memory is exhausted. */
kelp_config_value *kelp_config_add(kelp_arena *arena, kelp_config_message *message,
                                   const char *field);

/* Reads a message from text or JSON. Its memory is in the arena; strings may borrow from the text.
 * The error for an unknown field suggests the most similar known field. */
kelp_status *kelp_config_from_pbtxt(kelp_arena *arena, const char *file, const kelp_pbtxt *tree,
                                    kelp_config_message *out) KELP_MUST_USE;
kelp_status *kelp_config_from_json(kelp_arena *arena, const char *name, const char *text,
                                   const kelp_json *tree, kelp_config_message *out) KELP_MUST_USE;
/* Writes JSON with the field names of the proto; includes all defaults except unset messages. */
void kelp_config_to_json(const kelp_config_message *message, kelp_json_writer *writer);

#endif
