/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/grpc/codec/decode.h"

#include "base/text/utf8.h"

#define FIRST_CAPACITY 8

enum { ENTRY_KEY = 1, ENTRY_VALUE };
enum { VALUE_BOOL = 1, VALUE_INT64, VALUE_STRING, VALUE_DOUBLE, VALUE_UINT64 };
enum { REPOSITORY_BYTES = 4 };

kelp_status *kelp_grpc_malformed(const char *message_type) {
    return KELP_ERROR(KELP_INTERNAL, "Unable to parse request: malformed %s", message_type);
}

kelp_status *kelp_grpc_next(kelp_protobuf *message, const char *message_type,
                            kelp_protobuf_field *out, bool *out_more) {
    kelp_protobuf_result result = kelp_protobuf_next(message, out);
    *out_more = result == KELP_PROTOBUF_FIELD;
    return result == KELP_PROTOBUF_MALFORMED ? kelp_grpc_malformed(message_type) : NULL;
}

kelp_status *kelp_grpc_add_slice(kelp_arena *arena, kelp_grpc_slices *slices,
                                 const kelp_protobuf_field *field, const char *what) {
    if (field->type != KELP_PROTOBUF_BYTES)
        return kelp_grpc_malformed(what);
    if (slices->count == KELP_GRPC_MAX_ITEMS)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the request has more than %d %s",
                          KELP_GRPC_MAX_ITEMS, what);
    if (slices->count == slices->capacity) {
        size_t capacity = slices->capacity > 0 ? slices->capacity * 2 : FIRST_CAPACITY;
        kelp_str *items = KELP_ARENA_ARRAY(arena, capacity, kelp_str);
        if (items == NULL)
            return kelp_status_oom();
        if (slices->count > 0)
            memcpy(items, slices->items, slices->count * sizeof *items);
        slices->items = items;
        slices->capacity = capacity;
    }
    slices->items[slices->count++] = field->bytes;
    return NULL;
}

kelp_status *kelp_grpc_text(kelp_arena *arena, const kelp_protobuf_field *field, const char *what,
                            const char **out) {
    if (field->type != KELP_PROTOBUF_BYTES)
        return KELP_ERROR(KELP_INTERNAL,
                          "Unable to parse request: %s: expected a string, found wire type %u",
                          what, field->type);
    if (!kelp_utf8_count(field->bytes, NULL))
        return KELP_ERROR(KELP_INTERNAL, "Unable to parse request: %s is not valid UTF-8", what);
    if (field->bytes.length > 0 && memchr(field->bytes.data, 0, field->bytes.length) != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: a NUL character is not allowed", what);
    *out = kelp_arena_strndup(arena, field->bytes.data, field->bytes.length);
    return *out != NULL ? NULL : kelp_status_oom();
}

/* Reads the field of a oneof; unknown fields leave the parameter unchanged. */
static kelp_status *read_choice(const kelp_protobuf_field *field, bool repository,
                                kelp_grpc_parameter *inout) {
    uint32_t expected = KELP_PROTOBUF_VARINT;
    if (field->number == VALUE_BOOL) {
        inout->kind = KELP_GRPC_BOOL_VALUE;
        inout->u64 = field->value != 0;
    } else if (field->number == VALUE_INT64) {
        inout->kind = KELP_GRPC_INT_VALUE;
        inout->u64 = field->value;
    } else if (field->number == VALUE_STRING || (repository && field->number == REPOSITORY_BYTES)) {
        inout->kind =
            field->number == VALUE_STRING ? KELP_GRPC_STRING_VALUE : KELP_GRPC_BYTES_VALUE;
        inout->bytes = field->bytes;
        expected = KELP_PROTOBUF_BYTES;
    } else if (!repository && field->number == VALUE_DOUBLE) {
        inout->kind = KELP_GRPC_DOUBLE_VALUE;
        memcpy(&inout->f64, &field->value, sizeof inout->f64);
        expected = KELP_PROTOBUF_I64;
    } else if (!repository && field->number == VALUE_UINT64) {
        inout->kind = KELP_GRPC_UINT_VALUE;
        inout->u64 = field->value;
    } else {
        return NULL;
    }
    return field->type == expected ? NULL : kelp_grpc_malformed("parameter");
}

kelp_status *kelp_grpc_read_parameter(kelp_arena *arena, kelp_str entry, bool repository,
                                      kelp_grpc_parameter *out) {
    kelp_protobuf wire = kelp_protobuf_of(entry), value;
    kelp_protobuf_field field;
    bool more;
    *out = (kelp_grpc_parameter){.name = ""};
    KELP_TRY(kelp_grpc_next(&wire, "parameter", &field, &more));
    while (more) {
        if (field.number == ENTRY_KEY) {
            KELP_TRY(kelp_grpc_text(arena, &field, "the name of a parameter", &out->name));
        } else if (field.number == ENTRY_VALUE) {
            kelp_protobuf_field choice;
            if (field.type != KELP_PROTOBUF_BYTES)
                return kelp_grpc_malformed("parameter");
            value = kelp_protobuf_of(field.bytes);
            KELP_TRY(kelp_grpc_next(&value, "parameter", &choice, &more));
            while (more) {
                KELP_TRY(read_choice(&choice, repository, out));
                KELP_TRY(kelp_grpc_next(&value, "parameter", &choice, &more));
            }
        }
        KELP_TRY(kelp_grpc_next(&wire, "parameter", &field, &more));
    }
    if (out->kind == KELP_GRPC_STRING_VALUE && !kelp_utf8_count(out->bytes, NULL))
        return KELP_ERROR(KELP_INTERNAL,
                          "Unable to parse request: the value of parameter '%s' is not valid UTF-8",
                          out->name);
    return NULL;
}

kelp_status *kelp_grpc_parse_version(const char *text, int64_t *out) {
    *out = -1;
    if (*text == '\0' || kelp_parse_i64(kelp_str_from(text), out))
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "failed to get model version from specified version string '%s': expected "
                      "an integer",
                      text);
}
