/* SPDX-License-Identifier: Apache-2.0 */
/* Source: google/protobuf/descriptor.proto, for the numbers of the fields. */
#include "frontends/grpc/codec/descriptor.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/wire/protobuf_write.h"

#include <stdio.h>

/* The longest name of the schema with package, message and field. */
#define MAX_NAME_BYTES 192

enum { FILE_NAME = 1, FILE_PACKAGE, FILE_DEPENDENCY, FILE_MESSAGE, FILE_ENUM, FILE_SERVICE };
enum { FILE_SYNTAX = 12 };
enum { MESSAGE_NAME = 1, MESSAGE_FIELD, MESSAGE_NESTED, MESSAGE_ENUM };
enum { MESSAGE_OPTIONS = 7, MESSAGE_ONEOF = 8, OPTION_MAP_ENTRY = 7, ONEOF_NAME = 1 };
enum { FIELD_NAME = 1, FIELD_NUMBER = 3, FIELD_LABEL, FIELD_TYPE, FIELD_TYPE_NAME };
enum { FIELD_ONEOF_INDEX = 9, FIELD_JSON_NAME, LABEL_OPTIONAL = 1, LABEL_REPEATED = 3 };
enum { ENUM_NAME = 1, ENUM_VALUE, VALUE_NAME = 1, VALUE_NUMBER };
enum { SERVICE_NAME = 1, SERVICE_METHOD, METHOD_NAME = 1, METHOD_INPUT, METHOD_OUTPUT };
enum { METHOD_CLIENT_STREAMS = 5, METHOD_SERVER_STREAMS };
enum { MAP_KEY = 1, MAP_VALUE };

/* ---- names ---- */

const kelp_grpc_row *kelp_grpc_find_file(kelp_str name) {
    for (const kelp_grpc_row *row = kelp_grpc_schema; row < kelp_grpc_schema_end(); row++)
        if (row->kind == KELP_GRPC_FILE && kelp_str_is(name, row->name))
            return row;
    return NULL;
}

static bool is_parent(const kelp_grpc_row *row) {
    return row->kind == KELP_GRPC_MESSAGE || row->kind == KELP_GRPC_ENUM ||
           row->kind == KELP_GRPC_SERVICE;
}

const kelp_grpc_row *kelp_grpc_find_symbol(kelp_str symbol) {
    const kelp_grpc_row *file = NULL, *parent = NULL;
    for (const kelp_grpc_row *row = kelp_grpc_schema; row < kelp_grpc_schema_end(); row++) {
        char name[MAX_NAME_BYTES];
        if (row->kind == KELP_GRPC_FILE) {
            file = row;
            continue;
        }
        KELP_ASSERT(file != NULL);
        if (is_parent(row)) {
            parent = row;
            snprintf(name, sizeof name, "%s.%s", file->type_name, row->name);
        } else {
            snprintf(name, sizeof name, "%s.%s.%s", file->type_name,
                     parent != NULL ? parent->name : "", row->name);
        }
        if (kelp_str_is(symbol, name))
            return file;
    }
    return NULL;
}

/* Returns the part of a name after its last dot. */
static const char *simple_name(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot != NULL ? dot + 1 : name;
}

/* Returns true if the type is declared in `parent`, or in the file if `parent` is NULL. */
static bool is_declared_in(const kelp_grpc_row *row, const kelp_grpc_row *parent) {
    const char *simple = simple_name(row->name);
    if (parent == NULL)
        return simple == row->name;
    size_t length = strlen(parent->name);
    return (size_t)(simple - row->name) == length + 1 &&
           memcmp(row->name, parent->name, length) == 0;
}

/* Appends ".package.name" as a field. */
static void put_type_name(kelp_buf *out, uint32_t number, const kelp_grpc_row *file,
                          const char *name) {
    size_t start = out->length;
    kelp_buf_append_char(out, '.');
    kelp_buf_append_cstr(out, file->type_name);
    kelp_buf_append_char(out, '.');
    kelp_buf_append_cstr(out, name);
    kelp_protobuf_wrap(out, number, start);
}

/* Appends a name without underscores, "someName" or "SomeName". */
static void append_camel_case(kelp_buf *out, const char *field, bool upper) {
    for (; *field; field++) {
        if (*field != '_')
            kelp_buf_append_char(
                out, upper && *field >= 'a' && *field <= 'z' ? (char)(*field - 'a' + 'A') : *field);
        upper = *field == '_';
    }
}

/* Appends the name of the message that stands for the entries of a map: "SomeNameEntry". */
static void append_entry_name(kelp_buf *out, const char *field) {
    append_camel_case(out, field, true);
    kelp_buf_append_cstr(out, "Entry");
}

static void put_json_name(kelp_buf *out, const char *field) {
    size_t start = out->length;
    append_camel_case(out, field, false);
    kelp_protobuf_wrap(out, FIELD_JSON_NAME, start);
}

/* ---- messages ---- */

/* Returns the number of different oneofs of the fields from `message` to `end`. */
static uint32_t count_oneofs(const kelp_grpc_row *message, const kelp_grpc_row *end) {
    const char *last = "";
    uint32_t count = 0;
    for (const kelp_grpc_row *row = message + 1; row < end && kelp_grpc_is_field(row); row++) {
        if (row->kind == KELP_GRPC_CHOICE && strcmp(row->other, last) != 0)
            count++;
        if (row->kind == KELP_GRPC_CHOICE)
            last = row->other;
    }
    return count;
}

static void put_field(kelp_buf *out, const kelp_grpc_row *file, const kelp_grpc_row *message,
                      const kelp_grpc_row *row) {
    size_t start = out->length;
    bool repeated = row->kind == KELP_GRPC_LIST || row->kind == KELP_GRPC_MAP;
    kelp_protobuf_put_text(out, FIELD_NAME, row->name);
    kelp_protobuf_put_i64(out, FIELD_NUMBER, row->number);
    kelp_protobuf_put_i64(out, FIELD_LABEL, repeated ? LABEL_REPEATED : LABEL_OPTIONAL);
    kelp_protobuf_put_i64(out, FIELD_TYPE,
                          row->kind == KELP_GRPC_MAP ? (int64_t)KELP_GRPC_SUBMESSAGE : row->type);
    if (row->kind == KELP_GRPC_MAP) {
        size_t name = out->length;
        kelp_buf_printf(out, ".%s.%s.", file->type_name, message->name);
        append_entry_name(out, row->name);
        kelp_protobuf_wrap(out, FIELD_TYPE_NAME, name);
    } else if (row->type_name[0] != '\0') {
        put_type_name(out, FIELD_TYPE_NAME, file, row->type_name);
    }
    if (row->kind == KELP_GRPC_CHOICE)
        kelp_protobuf_put_i64(out, FIELD_ONEOF_INDEX, count_oneofs(message, row + 1) - 1);
    put_json_name(out, row->name);
    kelp_protobuf_wrap(out, MESSAGE_FIELD, start);
}

static void put_entry_field(kelp_buf *out, const kelp_grpc_row *file, const char *name, int number,
                            int type, const char *type_name) {
    size_t start = out->length;
    kelp_protobuf_put_text(out, FIELD_NAME, name);
    kelp_protobuf_put_i64(out, FIELD_NUMBER, number);
    kelp_protobuf_put_i64(out, FIELD_LABEL, LABEL_OPTIONAL);
    kelp_protobuf_put_i64(out, FIELD_TYPE, type);
    if (type_name[0] != '\0')
        put_type_name(out, FIELD_TYPE_NAME, file, type_name);
    put_json_name(out, name);
    kelp_protobuf_wrap(out, MESSAGE_FIELD, start);
}

/* Appends the message that stands for the entries of a map. */
static void put_entry(kelp_buf *out, const kelp_grpc_row *file, const kelp_grpc_row *row) {
    size_t start = out->length;
    append_entry_name(out, row->name);
    kelp_protobuf_wrap(out, MESSAGE_NAME, start);
    put_entry_field(out, file, "key", MAP_KEY, row->key_type, "");
    put_entry_field(out, file, "value", MAP_VALUE, row->type, row->type_name);
    size_t options = out->length;
    kelp_protobuf_put_i64(out, OPTION_MAP_ENTRY, 1);
    kelp_protobuf_wrap(out, MESSAGE_OPTIONS, options);
    kelp_protobuf_wrap(out, MESSAGE_NESTED, start);
}

static void put_oneofs(kelp_buf *out, const kelp_grpc_row *message) {
    const char *last = "";
    for (const kelp_grpc_row *row = message + 1;
         row < kelp_grpc_schema_end() && kelp_grpc_is_field(row); row++) {
        if (row->kind != KELP_GRPC_CHOICE || strcmp(row->other, last) == 0)
            continue;
        size_t start = out->length;
        kelp_protobuf_put_text(out, ONEOF_NAME, row->other);
        kelp_protobuf_wrap(out, MESSAGE_ONEOF, start);
        last = row->other;
    }
}

static void put_enum(kelp_buf *out, const kelp_grpc_row *row, uint32_t number) {
    size_t start = out->length;
    kelp_protobuf_put_text(out, ENUM_NAME, simple_name(row->name));
    for (row++; row < kelp_grpc_schema_end() && row->kind == KELP_GRPC_VALUE; row++) {
        size_t value = out->length;
        kelp_protobuf_put_text(out, VALUE_NAME, row->name);
        kelp_protobuf_put_i64(out, VALUE_NUMBER, row->number);
        kelp_protobuf_wrap(out, ENUM_VALUE, value);
    }
    kelp_protobuf_wrap(out, number, start);
}

/* Appends a message with the types declared in it. */
static void put_message(kelp_buf *out, const kelp_grpc_row *file, const kelp_grpc_row *message,
                        uint32_t number) {
    const kelp_grpc_row *end = kelp_grpc_schema_end(), *row;
    size_t start = out->length;
    kelp_protobuf_put_text(out, MESSAGE_NAME, simple_name(message->name));
    for (row = message + 1; row < end && kelp_grpc_is_field(row); row++) {
        put_field(out, file, message, row);
        if (row->kind == KELP_GRPC_MAP)
            put_entry(out, file, row);
    }
    put_oneofs(out, message);
    for (; row < end && row->kind != KELP_GRPC_FILE; row++) {
        if (row->kind == KELP_GRPC_MESSAGE && is_declared_in(row, message))
            put_message(out, file, row, MESSAGE_NESTED);
        else if (row->kind == KELP_GRPC_ENUM && is_declared_in(row, message))
            put_enum(out, row, MESSAGE_ENUM);
    }
    kelp_protobuf_wrap(out, number, start);
}

/* ---- services and files ---- */

static void put_service(kelp_buf *out, const kelp_grpc_row *file, const kelp_grpc_row *row) {
    size_t start = out->length;
    kelp_protobuf_put_text(out, SERVICE_NAME, row->name);
    for (row++; row < kelp_grpc_schema_end() && row->kind == KELP_GRPC_METHOD; row++) {
        size_t method = out->length;
        kelp_protobuf_put_text(out, METHOD_NAME, row->name);
        put_type_name(out, METHOD_INPUT, file, row->type_name);
        put_type_name(out, METHOD_OUTPUT, file, row->other);
        if (row->client_streams)
            kelp_protobuf_put_i64(out, METHOD_CLIENT_STREAMS, 1);
        if (row->server_streams)
            kelp_protobuf_put_i64(out, METHOD_SERVER_STREAMS, 1);
        kelp_protobuf_wrap(out, SERVICE_METHOD, method);
    }
    kelp_protobuf_wrap(out, FILE_SERVICE, start);
}

void kelp_grpc_put_file(kelp_buf *out, const kelp_grpc_row *file) {
    KELP_ASSERT(file->kind == KELP_GRPC_FILE);
    kelp_protobuf_put_text(out, FILE_NAME, file->name);
    kelp_protobuf_put_text(out, FILE_PACKAGE, file->type_name);
    if (file->other[0] != '\0')
        kelp_protobuf_put_text(out, FILE_DEPENDENCY, file->other);
    for (const kelp_grpc_row *row = file + 1;
         row < kelp_grpc_schema_end() && row->kind != KELP_GRPC_FILE; row++) {
        if (row->kind == KELP_GRPC_MESSAGE && is_declared_in(row, NULL))
            put_message(out, file, row, FILE_MESSAGE);
        else if (row->kind == KELP_GRPC_ENUM && is_declared_in(row, NULL))
            put_enum(out, row, FILE_ENUM);
        else if (row->kind == KELP_GRPC_SERVICE)
            put_service(out, file, row);
    }
    kelp_protobuf_put_text(out, FILE_SYNTAX, "proto3");
}
