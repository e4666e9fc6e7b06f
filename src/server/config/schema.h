/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Triton's model_config.proto as tables, and messages as trees typed by them. Reading text, reading
 * JSON and writing JSON follow the tables; only the typed view (view.c) knows fields by name.
 */
#ifndef KELP_SERVER_CONFIG_SCHEMA_H_
#define KELP_SERVER_CONFIG_SCHEMA_H_

#include "base/text/json.h"
#include "base/text/pbtxt.h"

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

#define KELP_CONFIG_REPEATED 1u
#define KELP_CONFIG_MAP \
    2u /* entries {key, value}; the key is a string or, with MAP_U64, a number */
#define KELP_CONFIG_MAP_U64 4u
#define KELP_CONFIG_JSON_TEXT 8u /* a 64-bit number that Triton prints as a string */

typedef struct kelp_config_schema kelp_config_schema;
typedef struct kelp_config_field {
    const char *name;
    kelp_config_kind kind;
    uint32_t flags;
    const kelp_config_schema *message; /* MESSAGE */
    const char *const *values;         /* ENUM: names by number, ends with NULL */
    const char *oneof;                 /* at most one field of this group is set */
} kelp_config_field;

struct kelp_config_schema {
    const char *name;
    const kelp_config_field *fields;
    size_t field_count;
};
extern const kelp_config_schema kelp_config_schema_model;

typedef struct kelp_config_message kelp_config_message;
typedef struct kelp_config_value {
    struct kelp_config_value *next; /* of a repeated field or a map */
    kelp_str key;                   /* of a map */
    kelp_str text;                  /* STRING */
    int64_t i;                      /* numbers, BOOL, ENUM (its number); UINT64 as its bits */
    double f;                       /* DOUBLE */
    kelp_config_message *message;   /* MESSAGE */
} kelp_config_value;

struct kelp_config_message {
    const kelp_config_schema *schema;
    kelp_config_value **values; /* by field: the first value, or NULL */
};

/* Creates an empty message; NULL if memory is exhausted. */
kelp_config_message *kelp_config_message_new(kelp_arena *arena, const kelp_config_schema *schema);
/* Returns SIZE_MAX if there is no such field. */
size_t kelp_config_field_index(const kelp_config_schema *schema, kelp_str name);
/* Returns the first value of a field, or NULL. */
kelp_config_value *kelp_config_get(const kelp_config_message *message, const char *field);
/* Returns the single value of a field, which is created if there is none; NULL if memory is
 * exhausted. A MESSAGE is created empty. */
kelp_config_value *kelp_config_set(kelp_arena *arena, kelp_config_message *message,
                                   const char *field);
/* Adds a value to a repeated field or map. */
kelp_config_value *kelp_config_add(kelp_arena *arena, kelp_config_message *message,
                                   const char *field);

/* Read a message. Its memory is in the arena; strings may borrow from the text. An error about an
 * unknown field contains the most similar known one. */
kelp_status *kelp_config_from_pbtxt(kelp_arena *arena, const char *file, const kelp_pbtxt *tree,
                                    kelp_config_message *out) KELP_MUST_USE;
kelp_status *kelp_config_from_json(kelp_arena *arena, const char *name, const char *text,
                                   const kelp_json *tree, kelp_config_message *out) KELP_MUST_USE;
/* Writes JSON with the field names of the proto, and all defaults except unset messages. */
void kelp_config_to_json(const kelp_config_message *message, kelp_json_writer *writer);

#endif
