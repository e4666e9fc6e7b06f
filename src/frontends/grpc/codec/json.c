/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/grpc/codec/json.h"

#include "base/assert.h"
#include "base/wire/protobuf_write.h"
#include "frontends/grpc/codec/schema.h"

#define MAP_KEY 1
#define MAP_VALUE 2

static kelp_status *wrong(const kelp_grpc_row *field, const char *expected,
                          const kelp_json *value) {
    return KELP_ERROR(KELP_INTERNAL, "'%s': expected %s, found %s", field->name, expected,
                      kelp_json_type_name(value->type));
}

/* Returns the bits of an integer as protobuf's varint stores them. */
static kelp_status *integer_of(const kelp_grpc_row *field, const kelp_json *value, int64_t *out) {
    uint64_t u64;
    if (value->type == KELP_JSON_INT || value->type == KELP_JSON_UINT) {
        *out = value->type == KELP_JSON_INT ? value->i64 : (int64_t)value->u64;
        return NULL;
    }
    if (value->type == KELP_JSON_STRING && kelp_parse_i64(value->string, out))
        return NULL;
    if (value->type != KELP_JSON_STRING || !kelp_parse_u64(value->string, &u64))
        return wrong(field, "an integer", value);
    *out = (int64_t)u64;
    return NULL;
}

static kelp_status *enumerator_of(const kelp_grpc_row *field, const kelp_json *value,
                                  int64_t *out) {
    const kelp_grpc_row *row = kelp_grpc_find_type(field->type_name);
    KELP_ASSERT(row != NULL && row->kind == KELP_GRPC_ENUM);
    if (value->type != KELP_JSON_STRING)
        return integer_of(field, value, out);
    for (row++; row < kelp_grpc_schema_end() && row->kind == KELP_GRPC_VALUE; row++) {
        if (kelp_str_is(value->string, row->name)) {
            *out = row->number;
            return NULL;
        }
    }
    return KELP_ERROR(KELP_INTERNAL, "'%s': unknown value '%.*s' of %s", field->name,
                      KELP_STR_ARG(value->string), field->type_name);
}

/* Returns the value of a field that is stored as a varint. */
static kelp_status *varint_of(const kelp_grpc_row *field, const kelp_json *value, int64_t *out) {
    if (field->type == KELP_GRPC_ENUMERATION)
        return enumerator_of(field, value, out);
    if (field->type != KELP_GRPC_BOOL)
        return integer_of(field, value, out);
    if (value->type != KELP_JSON_BOOL)
        return wrong(field, "true or false", value);
    *out = value->boolean;
    return NULL;
}

static bool is_number(const kelp_json *value) {
    return value->type == KELP_JSON_INT || value->type == KELP_JSON_UINT ||
           value->type == KELP_JSON_DOUBLE;
}

/* Appends one value. Unless `always`, omits the default value. */
static kelp_status *put_value(kelp_buf *out, const kelp_grpc_row *field, uint32_t number,
                              const kelp_json *value, bool always) {
    int64_t integer = 0;
    size_t start = out->length;
    switch ((kelp_grpc_type)field->type) {
    case KELP_GRPC_SUBMESSAGE:
        if (value->type != KELP_JSON_OBJECT)
            return wrong(field, "an object", value);
        KELP_TRY(kelp_grpc_put_json(out, field->type_name, value));
        kelp_protobuf_wrap(out, number, start);
        return NULL;
    case KELP_GRPC_STRING:
    case KELP_GRPC_BYTES:
        if (value->type != KELP_JSON_STRING)
            return wrong(field, "a string", value);
        if (always || value->string.length > 0)
            kelp_protobuf_put_str(out, number, value->string);
        return NULL;
    case KELP_GRPC_DOUBLE:
    case KELP_GRPC_FLOAT:
        if (!is_number(value))
            return wrong(field, "a number", value);
        if (field->type == KELP_GRPC_FLOAT && (always || value->f64 < 0 || value->f64 > 0))
            kelp_protobuf_put_f32(out, number, (float)value->f64);
        else if (always || value->f64 < 0 || value->f64 > 0)
            kelp_protobuf_put_f64(out, number, value->f64);
        return NULL;
    default:
        KELP_TRY(varint_of(field, value, &integer));
        if (always || integer != 0)
            kelp_protobuf_put_i64(out, number, integer);
        return NULL;
    }
}

/* Numbers of lists are packed, except for floats, which no list of the schema contains. */
static bool is_packed(const kelp_grpc_row *field) {
    return field->type != KELP_GRPC_SUBMESSAGE && field->type != KELP_GRPC_STRING &&
           field->type != KELP_GRPC_BYTES && field->type != KELP_GRPC_DOUBLE &&
           field->type != KELP_GRPC_FLOAT;
}

static kelp_status *put_list(kelp_buf *out, const kelp_grpc_row *field, const kelp_json *value) {
    size_t start = out->length;
    if (value->type != KELP_JSON_ARRAY)
        return wrong(field, "an array", value);
    for (const kelp_json *item = value->child; item != NULL; item = item->next) {
        int64_t integer;
        if (!is_packed(field)) {
            KELP_TRY(put_value(out, field, (uint32_t)field->number, item, true));
            continue;
        }
        KELP_TRY(varint_of(field, item, &integer));
        kelp_protobuf_put_varint(out, (uint64_t)integer);
    }
    if (is_packed(field) && value->count > 0)
        kelp_protobuf_wrap(out, (uint32_t)field->number, start);
    return NULL;
}

static kelp_status *put_map(kelp_buf *out, const kelp_grpc_row *field, const kelp_json *value) {
    if (value->type != KELP_JSON_OBJECT)
        return wrong(field, "an object", value);
    for (const kelp_json *item = value->child; item != NULL; item = item->next) {
        size_t start = out->length;
        uint64_t key;
        if (field->key_type == KELP_GRPC_STRING)
            kelp_protobuf_put_str(out, MAP_KEY, item->key);
        else if (kelp_parse_u64(item->key, &key))
            kelp_protobuf_put_i64(out, MAP_KEY, (int64_t)key);
        else
            return KELP_ERROR(KELP_INTERNAL, "'%s': expected an integer as key, found '%.*s'",
                              field->name, KELP_STR_ARG(item->key));
        KELP_TRY(put_value(out, field, MAP_VALUE, item, true));
        kelp_protobuf_wrap(out, (uint32_t)field->number, start);
    }
    return NULL;
}

static const kelp_grpc_row *find_field(const kelp_grpc_row *message, kelp_str name) {
    for (const kelp_grpc_row *row = message + 1;
         row < kelp_grpc_schema_end() && kelp_grpc_is_field(row); row++)
        if (kelp_str_is(name, row->name))
            return row;
    return NULL;
}

kelp_status *kelp_grpc_put_json(kelp_buf *out, const char *type, const kelp_json *object) {
    const kelp_grpc_row *message = kelp_grpc_find_type(type);
    KELP_ASSERT(message != NULL && message->kind == KELP_GRPC_MESSAGE);
    for (const kelp_json *member = object->child; member != NULL; member = member->next) {
        const kelp_grpc_row *field = find_field(message, member->key);
        if (field == NULL || member->type == KELP_JSON_NULL)
            continue;
        if (field->kind == KELP_GRPC_LIST)
            KELP_TRY(put_list(out, field, member));
        else if (field->kind == KELP_GRPC_MAP)
            KELP_TRY(put_map(out, field, member));
        else
            KELP_TRY(put_value(out, field, (uint32_t)field->number, member,
                               field->kind == KELP_GRPC_CHOICE));
    }
    return kelp_buf_status(out);
}
