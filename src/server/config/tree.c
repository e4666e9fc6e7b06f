/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the schema: creation, reading from text and JSON, writing as JSON. */
#include "server/config/schema.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/map.h"

#include <stdio.h>

#define PLACE_BYTES 4200  /* a path, line and column */
#define MAX_JSON_DEPTH 32 /* the schema has fewer levels */

kelp_config_message *kelp_config_message_new(kelp_arena *arena, const kelp_config_schema *schema) {
    kelp_config_message *message = KELP_ARENA_NEW(arena, kelp_config_message);
    if (message == NULL)
        return NULL;
    message->schema = schema;
    message->values = KELP_ARENA_ARRAY(arena, schema->field_count + 1, kelp_config_value *);
    return message->values != NULL ? message : NULL;
}

size_t kelp_config_field_index(const kelp_config_schema *schema, kelp_str name) {
    for (size_t i = 0; i < schema->field_count; i++)
        if (kelp_str_is(name, schema->fields[i].name))
            return i;
    return SIZE_MAX;
}

kelp_config_value *kelp_config_get(const kelp_config_message *message, const char *field) {
    if (message == NULL)
        return NULL;
    size_t index = kelp_config_field_index(message->schema, kelp_str_from(field));
    return index != SIZE_MAX ? message->values[index] : NULL;
}

static kelp_config_value *append(kelp_arena *arena, kelp_config_message *message, size_t index) {
    KELP_ASSERT(index < message->schema->field_count);
    const kelp_config_field *field = &message->schema->fields[index];
    kelp_config_value *value = KELP_ARENA_NEW(arena, kelp_config_value);
    if (value == NULL)
        return NULL;
    if (field->kind == KELP_CONFIG_MESSAGE) {
        value->message = kelp_config_message_new(arena, field->message);
        if (value->message == NULL)
            return NULL;
    }
    kelp_config_value *first = message->values[index];
    if (first == NULL) {
        message->values[index] = first = value;
    } else {
        KELP_ASSERT(first->last != NULL && first->last->next == NULL);
        first->last->next = value;
    }
    first->last = value;
    return value;
}

kelp_config_value *kelp_config_set(kelp_arena *arena, kelp_config_message *message,
                                   const char *field) {
    kelp_config_value *value = kelp_config_get(message, field);
    return value != NULL ? value : kelp_config_add(arena, message, field);
}

kelp_config_value *kelp_config_add(kelp_arena *arena, kelp_config_message *message,
                                   const char *field) {
    return append(arena, message, kelp_config_field_index(message->schema, kelp_str_from(field)));
}

/* ---- common to text and JSON ---- */
static size_t distance(kelp_str a, const char *b) {
    size_t row[64], length = strlen(b);
    if (a.length >= 64 || length >= 64)
        return 64;
    for (size_t k = 0; k <= length; k++)
        row[k] = k;
    for (size_t i = 1; i <= a.length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t k = 1; k <= length; k++) {
            size_t change = diagonal + (a.data[i - 1] != b[k - 1]);
            diagonal = row[k];
            row[k] = KELP_MIN(change, KELP_MIN(row[k], row[k - 1]) + 1);
        }
    }
    return row[length];
}

static kelp_status *unknown_field(const char *where, const kelp_config_schema *schema,
                                  kelp_str name) {
    const char *nearest = NULL;
    size_t best = 4;
    for (size_t i = 0; i < schema->field_count; i++) {
        size_t d = distance(name, schema->fields[i].name);
        if (d < best) {
            best = d;
            nearest = schema->fields[i].name;
        }
    }
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: %s has no field '%.*s'%s%s%s", where,
                      schema->name, KELP_STR_ARG(name), nearest ? "; did you mean '" : "",
                      nearest ? nearest : "", nearest ? "'?" : "");
}

/* Returns the set field because of which a field cannot be set: the field itself if it is not
 * repeated, or another one of its `oneof` group. Returns NULL if there is none. */
static const kelp_config_field *find_conflict(const kelp_config_message *message, size_t index) {
    KELP_ASSERT(index < message->schema->field_count);
    const kelp_config_field *field = &message->schema->fields[index];
    if ((field->flags & (KELP_CONFIG_REPEATED | KELP_CONFIG_MAP)) != 0)
        return NULL;
    if (message->values[index] != NULL)
        return field;
    for (size_t i = 0; field->oneof != NULL && i < message->schema->field_count; i++) {
        const kelp_config_field *other = &message->schema->fields[i];
        if (message->values[i] != NULL && other->oneof != NULL &&
            strcmp(other->oneof, field->oneof) == 0)
            return other;
    }
    return NULL;
}

static kelp_status *conflict_error(const char *where, const kelp_config_field *field,
                                   const kelp_config_field *conflict) {
    if (conflict == field)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: field '%s' is set twice", where, field->name);
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: fields '%s' and '%s' exclude each other (%s)",
                      where, conflict->name, field->name, field->oneof);
}

/* Returns false if no value of the enumeration has the name or number. */
static bool find_enum(const kelp_config_field *field, kelp_str text, int64_t *out) {
    KELP_ASSERT(field->kind == KELP_CONFIG_ENUM && field->values != NULL);
    int64_t count = 0;
    for (; field->values[count] != NULL; count++)
        if (kelp_str_is(text, field->values[count])) {
            *out = count;
            return true;
        }
    return kelp_parse_i64(text, out) && *out >= 0 && *out < count;
}

static kelp_status *enum_error(const char *where, const kelp_config_field *field, kelp_str text) {
    char names[600] = "";
    size_t length = 0;
    for (int64_t i = 0; field->values[i] != NULL && length < sizeof names - 48; i++)
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "",
                                   field->values[i]);
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: field '%s': expected one of %s, found '%.*s'",
                      where, field->name, names, KELP_STR_ARG(text));
}

/* ---- text ---- */
typedef struct text_reader {
    kelp_arena *arena;
    const char *file;
} text_reader;

static const char *text_place(char *buffer, size_t size, const char *file,
                              const kelp_pbtxt *field) {
    snprintf(buffer, size, "%s:%u:%u", file, field->line, field->column);
    return buffer;
}

static kelp_status *text_number(const text_reader *r, const kelp_config_field *field,
                                const kelp_pbtxt *from, kelp_config_value *to) {
    bool truth = false;
    uint64_t bits = 0;
    kelp_status *status = NULL;
    switch (field->kind) {
    case KELP_CONFIG_BOOL:
        status = kelp_pbtxt_bool(r->file, from, &truth);
        to->i = truth;
        return status;
    case KELP_CONFIG_INT32:
        return kelp_pbtxt_i64(r->file, from, INT32_MIN, INT32_MAX, &to->i);
    case KELP_CONFIG_INT64:
        return kelp_pbtxt_i64(r->file, from, INT64_MIN, INT64_MAX, &to->i);
    case KELP_CONFIG_UINT32:
        return kelp_pbtxt_i64(r->file, from, 0, UINT32_MAX, &to->i);
    case KELP_CONFIG_UINT64:
        status = kelp_pbtxt_u64(r->file, from, UINT64_MAX, &bits);
        to->i = (int64_t)bits;
        return status;
    default:
        return kelp_pbtxt_f64(r->file, from, &to->f);
    }
}

static kelp_status *text_value(const text_reader *r, const kelp_config_field *field,
                               const kelp_pbtxt *from, kelp_config_value *to) {
    char place[PLACE_BYTES];
    text_place(place, sizeof place, r->file, from);
    if (field->kind == KELP_CONFIG_MESSAGE) {
        if (from->type != KELP_PBTXT_MESSAGE)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: field '%s': expected a message in { }",
                              place, field->name);
        return kelp_config_from_pbtxt(r->arena, r->file, from, to->message);
    }
    if (field->kind == KELP_CONFIG_STRING)
        return kelp_pbtxt_string(r->file, from, &to->text);
    if (field->kind == KELP_CONFIG_ENUM) {
        if (from->type != KELP_PBTXT_SCALAR)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "%s: field '%s': expected a name without quotes", place, field->name);
        return find_enum(field, from->text, &to->i) ? NULL : enum_error(place, field, from->text);
    }
    return text_number(r, field, from, to);
}

static kelp_status *text_entry(const text_reader *r, const kelp_config_field *field,
                               const kelp_pbtxt *from, kelp_config_value *to) {
    char place[PLACE_BYTES];
    KELP_ASSERT((field->flags & KELP_CONFIG_MAP) != 0);
    text_place(place, sizeof place, r->file, from);
    if (from->type != KELP_PBTXT_MESSAGE)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: field '%s': expected an entry { key: … value: … }", place,
                          field->name);
    for (const kelp_pbtxt *part = from->child; part != NULL; part = part->next) {
        if (kelp_str_is(part->name, "key") && (field->flags & KELP_CONFIG_MAP_U64) != 0)
            to->key = part->text;
        else if (kelp_str_is(part->name, "key"))
            KELP_TRY(kelp_pbtxt_string(r->file, part, &to->key));
        else if (kelp_str_is(part->name, "value"))
            KELP_TRY(text_value(r, field, part, to));
        else
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "%s:%u:%u: an entry of '%s' has 'key' and 'value', found '%.*s'",
                              r->file, part->line, part->column, field->name,
                              KELP_STR_ARG(part->name));
    }
    return NULL;
}

/* Removes the entries of a map that have the key of a later entry, as protobuf does. */
static kelp_status *remove_duplicates(const kelp_arena *arena, kelp_config_message *message,
                                      size_t index) {
    KELP_ASSERT((message->schema->fields[index].flags & KELP_CONFIG_MAP) != 0);
    kelp_config_value *first = message->values[index];
    if (first == NULL || first->next == NULL)
        return NULL;
    kelp_map latest;
    kelp_status *status = NULL;
    kelp_map_init(&latest, arena->allocator);
    for (kelp_config_value *at = first; at != NULL && status == NULL; at = at->next)
        status = kelp_map_put(&latest, at->key, at);
    for (kelp_config_value **link = &message->values[index]; *link != NULL && status == NULL;) {
        if (kelp_map_get(&latest, (*link)->key) != *link)
            *link = (*link)->next;
        else
            link = &(*link)->next;
    }
    message->values[index]->last = first->last; /* the last entry is never removed */
    kelp_map_deinit(&latest);
    return status;
}

kelp_status *kelp_config_from_pbtxt(kelp_arena *arena, const char *file, const kelp_pbtxt *tree,
                                    kelp_config_message *out) {
    text_reader r = {arena, file};
    char place[PLACE_BYTES];
    for (const kelp_pbtxt *from = tree->child; from != NULL; from = from->next) {
        size_t index = kelp_config_field_index(out->schema, from->name);
        text_place(place, sizeof place, file, from);
        if (index == SIZE_MAX)
            return unknown_field(place, out->schema, from->name);
        const kelp_config_field *field = &out->schema->fields[index];
        const kelp_config_field *conflict = find_conflict(out, index);
        if (conflict != NULL)
            return conflict_error(place, field, conflict);
        kelp_config_value *value = append(arena, out, index);
        if (value == NULL)
            return kelp_status_oom();
        if ((field->flags & KELP_CONFIG_MAP) != 0)
            KELP_TRY(text_entry(&r, field, from, value));
        else
            KELP_TRY(text_value(&r, field, from, value));
    }
    for (size_t i = 0; i < out->schema->field_count; i++)
        if ((out->schema->fields[i].flags & KELP_CONFIG_MAP) != 0)
            KELP_TRY(remove_duplicates(arena, out, i));
    return NULL;
}

/* ---- JSON ---- */
typedef struct json_reader {
    kelp_arena *arena;
    const char *name;
    const char *text;
} json_reader;

/* Formats the place of a value for an error. Not for other use: it reads the text from its start.
 */
static const char *json_place(char *buffer, size_t size, const json_reader *r,
                              const kelp_json *from) {
    size_t line, column;
    kelp_json_where(r->text, from->offset + 1, from->offset, &line, &column);
    snprintf(buffer, size, "%s:%zu:%zu", r->name, line, column);
    return buffer;
}

static kelp_status *wrong_json(const json_reader *r, const kelp_config_field *field,
                               const kelp_json *from, const char *expected) {
    char place[600];
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: field '%s': expected %s, found %s",
                      json_place(place, sizeof place, r, from), field->name, expected,
                      kelp_json_type_name(from->type));
}

/* 64-bit numbers may be strings, as in protobuf's JSON. */
static kelp_status *json_integer(const json_reader *r, const kelp_config_field *field,
                                 const kelp_json *from, kelp_config_value *to) {
    int64_t value = from->i64;
    uint64_t bits = 0;
    bool is_number = from->type == KELP_JSON_INT;
    if (from->type == KELP_JSON_STRING)
        is_number = kelp_parse_i64(from->string, &value);
    if (field->kind == KELP_CONFIG_UINT64) {
        bits = from->u64;
        is_number = (from->type == KELP_JSON_INT && from->i64 >= 0) ||
                    from->type == KELP_JSON_UINT ||
                    (from->type == KELP_JSON_STRING && kelp_parse_u64(from->string, &bits));
        value = (int64_t)bits;
        if (from->type == KELP_JSON_INT)
            value = from->i64;
    } else if (field->kind == KELP_CONFIG_INT32) {
        is_number = is_number && value >= INT32_MIN && value <= INT32_MAX;
    } else if (field->kind == KELP_CONFIG_UINT32) {
        is_number = is_number && value >= 0 && value <= UINT32_MAX;
    }
    if (!is_number)
        return wrong_json(r, field, from, "a whole number in range");
    to->i = value;
    return NULL;
}

static kelp_status *json_object(const json_reader *r, const kelp_json *tree,
                                kelp_config_message *out, uint32_t depth);

static kelp_status *json_value(const json_reader *r, const kelp_config_field *field,
                               const kelp_json *from, kelp_config_value *to, uint32_t depth) {
    char place[600];
    bool is_number = from->type == KELP_JSON_INT || from->type == KELP_JSON_UINT ||
                     from->type == KELP_JSON_DOUBLE;
    switch (field->kind) {
    case KELP_CONFIG_MESSAGE:
        if (from->type != KELP_JSON_OBJECT)
            return wrong_json(r, field, from, "an object");
        return json_object(r, from, to->message, depth + 1);
    case KELP_CONFIG_STRING:
        if (from->type != KELP_JSON_STRING)
            return wrong_json(r, field, from, "a string");
        to->text = from->string;
        return NULL;
    case KELP_CONFIG_BOOL:
        if (from->type != KELP_JSON_BOOL)
            return wrong_json(r, field, from, "true or false");
        to->i = from->boolean;
        return NULL;
    case KELP_CONFIG_ENUM:
        if (from->type == KELP_JSON_STRING)
            return find_enum(field, from->string, &to->i)
                       ? NULL
                       : enum_error(json_place(place, sizeof place, r, from), field, from->string);
        for (int64_t i = 0; from->type == KELP_JSON_INT && field->values[i] != NULL; i++)
            if (i == from->i64) {
                to->i = i;
                return NULL;
            }
        return wrong_json(r, field, from, "a name of the enumeration");
    case KELP_CONFIG_DOUBLE:
        if (!is_number)
            return wrong_json(r, field, from, "a number");
        to->f = from->f64;
        return NULL;
    default:
        return json_integer(r, field, from, to);
    }
}

static kelp_status *json_field(const json_reader *r, kelp_config_message *out, size_t index,
                               const kelp_json *from, uint32_t depth) {
    const kelp_config_field *field = &out->schema->fields[index];
    bool map = (field->flags & KELP_CONFIG_MAP) != 0;
    bool list = (field->flags & KELP_CONFIG_REPEATED) != 0;
    if (list && from->type != KELP_JSON_ARRAY)
        return wrong_json(r, field, from, "an array");
    if (map && from->type != KELP_JSON_OBJECT)
        return wrong_json(r, field, from, "an object");
    const kelp_json *item = list || map ? from->child : from;
    for (; item != NULL; item = list || map ? item->next : NULL) {
        kelp_config_value *value = append(r->arena, out, index);
        if (value == NULL)
            return kelp_status_oom();
        value->key = map ? item->key : (kelp_str){0};
        KELP_TRY(json_value(r, field, item, value, depth));
    }
    return map ? remove_duplicates(r->arena, out, index) : NULL;
}

static kelp_status *json_object(const json_reader *r, const kelp_json *tree,
                                kelp_config_message *out, uint32_t depth) {
    char place[600];
    if (depth > MAX_JSON_DEPTH)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: more than %d nested objects", r->name,
                          MAX_JSON_DEPTH);
    for (const kelp_json *from = tree->child; from != NULL; from = from->next) {
        size_t index = kelp_config_field_index(out->schema, from->key);
        if (index == SIZE_MAX)
            return unknown_field(json_place(place, sizeof place, r, from), out->schema, from->key);
        if (from->type == KELP_JSON_NULL)
            continue;
        const kelp_config_field *conflict = find_conflict(out, index);
        if (conflict != NULL)
            return conflict_error(json_place(place, sizeof place, r, from),
                                  &out->schema->fields[index], conflict);
        KELP_TRY(json_field(r, out, index, from, depth));
    }
    return NULL;
}

kelp_status *kelp_config_from_json(kelp_arena *arena, const char *name, const char *text,
                                   const kelp_json *tree, kelp_config_message *out) {
    json_reader r = {arena, name, text};
    if (tree == NULL || tree->type != KELP_JSON_OBJECT)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: expected an object", name);
    return json_object(&r, tree, out, 0);
}

/* ---- writing ---- */
static void write_value(const kelp_config_field *field, const kelp_config_value *value,
                        kelp_json_writer *writer) {
    char number[32];
    static const kelp_config_value unset;
    if (value == NULL)
        value = &unset;
    switch (field->kind) {
    case KELP_CONFIG_STRING:
        kelp_json_put_string(writer, value->text);
        return;
    case KELP_CONFIG_BOOL:
        kelp_json_put_bool(writer, value->i != 0);
        return;
    case KELP_CONFIG_UINT64:
        kelp_json_put_u64(writer, (uint64_t)value->i);
        return;
    case KELP_CONFIG_DOUBLE:
        kelp_json_put_f64(writer, value->f);
        return;
    case KELP_CONFIG_ENUM:
        kelp_json_put_cstr(writer, field->values[value->i]);
        return;
    case KELP_CONFIG_MESSAGE:
        kelp_config_to_json(value->message, writer);
        return;
    default:
        if ((field->flags & KELP_CONFIG_JSON_TEXT) != 0) {
            snprintf(number, sizeof number, "%lld", (long long)value->i);
            kelp_json_put_cstr(writer, number);
        } else {
            kelp_json_put_i64(writer, value->i);
        }
        return;
    }
}

static void write_map(const kelp_config_field *field, const kelp_config_value *value,
                      kelp_json_writer *writer) {
    kelp_json_begin_object(writer);
    for (; value != NULL; value = value->next) {
        char key[512];
        snprintf(key, sizeof key, "%.*s", KELP_STR_ARG(value->key));
        kelp_json_key(writer, key);
        write_value(field, value, writer);
    }
    kelp_json_end_object(writer);
}

void kelp_config_to_json(const kelp_config_message *message, kelp_json_writer *writer) {
    kelp_json_begin_object(writer);
    for (size_t i = 0; i < message->schema->field_count; i++) {
        const kelp_config_field *field = &message->schema->fields[i];
        const kelp_config_value *value = message->values[i];
        bool many = (field->flags & (KELP_CONFIG_REPEATED | KELP_CONFIG_MAP)) != 0;
        bool sparse = field->kind == KELP_CONFIG_MESSAGE || field->oneof != NULL ||
                      (field->flags & KELP_CONFIG_SPARSE) != 0;
        if (value == NULL && !many && sparse)
            continue;
        kelp_json_key(writer, field->name);
        if ((field->flags & KELP_CONFIG_MAP) != 0) {
            write_map(field, value, writer);
        } else if (many) {
            kelp_json_begin_array(writer);
            for (; value != NULL; value = value->next)
                write_value(field, value, writer);
            kelp_json_end_array(writer);
        } else {
            write_value(field, value, writer);
        }
    }
    kelp_json_end_object(writer);
}
