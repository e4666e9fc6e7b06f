/* SPDX-License-Identifier: Apache-2.0 */
/* Reads AttributeProto. */
#include "base/assert.h"
#include "onnx/fields.h"
#include "onnx/reader.h"

#include <string.h>

/* Reads the next occurrence of a field. Returns false at the end; the caller has already checked
 * that the message is well-formed. */
static bool next_of(kelp_protobuf *wire, uint32_t number, kelp_protobuf_field *out) {
    while (kelp_protobuf_next(wire, out) == KELP_PROTOBUF_FIELD)
        if (out->number == number)
            return true;
    return false;
}

static bool read_f32_bits(kelp_protobuf *wire, uint64_t *out) {
    uint32_t bits;
    if ((size_t)(wire->end - wire->at) < sizeof bits)
        return false;
    memcpy(&bits, wire->at, sizeof bits);
    wire->at += sizeof bits;
    *out = bits;
    return true;
}

/* Reads the numbers of all occurrences of the field, one or packed. */
static kelp_status *read_numbers(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                 kelp_str message, uint32_t number, kelp_onnx_attr *out) {
    KELP_ASSERT(number == ATTRIBUTE_FLOATS || number == ATTRIBUTE_INTS);
    bool is_float = number == ATTRIBUTE_FLOATS;
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    size_t capacity = 0, item = is_float ? sizeof(float) : sizeof(int64_t);
    while (next_of(&wire, number, &field))
        capacity += field.type == KELP_PROTOBUF_BYTES ? field.bytes.length : 1;
    char *items = kelp_arena_array(reader->arena, capacity ? capacity : 1, item);
    if (items == NULL)
        return kelp_status_oom();
    out->count = 0;
    wire = kelp_protobuf_of(message);
    while (next_of(&wire, number, &field)) {
        if (field.type != KELP_PROTOBUF_BYTES) {
            memcpy(items + out->count++ * item, &field.value, item);
            continue;
        }
        kelp_protobuf packed = kelp_protobuf_of(field.bytes);
        while (packed.at < packed.end) {
            uint64_t value = 0;
            bool complete =
                is_float ? read_f32_bits(&packed, &value) : kelp_protobuf_varint(&packed, &value);
            if (!complete)
                return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                                       "%s: malformed packed numbers",
                                       is_float ? "floats" : "ints");
            memcpy(items + out->count++ * item, &value, item);
        }
    }
    KELP_ASSERT(out->count <= capacity);
    if (is_float)
        out->floats = (float *)(void *)items;
    else
        out->ints = (int64_t *)(void *)items;
    return NULL;
}

static kelp_status *read_strings(kelp_onnx_reader *reader, kelp_str message, kelp_onnx_attr *out) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    KELP_TRY(
        kelp_onnx_array(reader, message, ATTRIBUTE_STRINGS, sizeof(kelp_string), &out->strings));
    out->count = 0;
    while (next_of(&wire, ATTRIBUTE_STRINGS, &field))
        out->strings[out->count++] = (kelp_string){field.bytes.data, field.bytes.length};
    return NULL;
}

static kelp_status *read_tensors(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                 kelp_str message, uint32_t number, kelp_onnx_attr *out) {
    KELP_ASSERT(number == ATTRIBUTE_T || number == ATTRIBUTE_TENSORS);
    bool single = number == ATTRIBUTE_T;
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    KELP_TRY(kelp_onnx_array(reader, message, number, sizeof(kelp_onnx_tensor), &out->tensors));
    out->count = 0;
    while (next_of(&wire, number, &field)) {
        kelp_onnx_place inner =
            kelp_onnx_inside(place, single ? "t" : "tensors", single ? -1 : (int64_t)out->count);
        KELP_TRY(kelp_onnx_expect_bytes(reader, &inner, &field, "tensor"));
        KELP_TRY(kelp_onnx_read_tensor(reader, &inner, field.bytes, &out->tensors[out->count++]));
    }
    return NULL;
}

static kelp_status *read_graphs(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                kelp_str message, uint32_t number, kelp_onnx_attr *out) {
    KELP_ASSERT(number == ATTRIBUTE_G || number == ATTRIBUTE_GRAPHS);
    bool single = number == ATTRIBUTE_G;
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    KELP_TRY(kelp_onnx_array(reader, message, number, sizeof(kelp_onnx_graph), &out->graphs));
    out->count = 0;
    while (next_of(&wire, number, &field)) {
        kelp_onnx_place inner =
            kelp_onnx_inside(place, single ? "g" : "graphs", single ? -1 : (int64_t)out->count);
        KELP_TRY(kelp_onnx_expect_bytes(reader, &inner, &field, "graph"));
        KELP_TRY(kelp_onnx_read_graph(reader, &inner, field.bytes, &out->graphs[out->count++]));
    }
    return NULL;
}

/* Reads a sparse tensor as a dense one: Constant's "sparse_value" becomes its "value". */
static kelp_status *read_sparse(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                kelp_str message, kelp_onnx_attr *out) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    KELP_TRY(kelp_onnx_array(reader, message, ATTRIBUTE_SPARSE_TENSOR, sizeof(kelp_onnx_tensor),
                             &out->tensors));
    if (out->tensors == NULL)
        return NULL;
    while (next_of(&wire, ATTRIBUTE_SPARSE_TENSOR, &field)) {
        kelp_onnx_place inner = kelp_onnx_inside(place, "sparse_tensor", -1);
        KELP_TRY(kelp_onnx_expect_bytes(reader, &inner, &field, "tensor"));
        KELP_TRY(kelp_onnx_read_sparse(reader, &inner, field.bytes, &out->tensors[0]));
    }
    out->count = 1;
    out->type = KELP_ATTR_TENSOR;
    if (kelp_str_is(out->name, "sparse_value"))
        out->name = kelp_str_from("value");
    return NULL;
}

/* Derives the attribute type from the field that is present: files before IR version 2 omit the
 * type. */
static kelp_attr_type guess_type(kelp_str message) {
    static const struct {
        uint32_t number;
        kelp_attr_type type;
    } fields[] = {{ATTRIBUTE_T, KELP_ATTR_TENSOR},        {ATTRIBUTE_G, KELP_ATTR_GRAPH},
                  {ATTRIBUTE_FLOATS, KELP_ATTR_FLOATS},   {ATTRIBUTE_INTS, KELP_ATTR_INTS},
                  {ATTRIBUTE_STRINGS, KELP_ATTR_STRINGS}, {ATTRIBUTE_TENSORS, KELP_ATTR_TENSORS},
                  {ATTRIBUTE_GRAPHS, KELP_ATTR_GRAPHS},   {ATTRIBUTE_S, KELP_ATTR_STRING},
                  {ATTRIBUTE_I, KELP_ATTR_INT},           {ATTRIBUTE_F, KELP_ATTR_FLOAT}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (kelp_protobuf_count(message, fields[i].number) > 0)
            return fields[i].type;
    return KELP_ATTR_NONE;
}

static kelp_status *read_attr_value(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                    kelp_str message, kelp_onnx_attr *out) {
    switch (out->type) {
    case KELP_ATTR_TENSOR:
        return read_tensors(reader, place, message, ATTRIBUTE_T, out);
    case KELP_ATTR_TENSORS:
        return read_tensors(reader, place, message, ATTRIBUTE_TENSORS, out);
    case KELP_ATTR_GRAPH:
        return read_graphs(reader, place, message, ATTRIBUTE_G, out);
    case KELP_ATTR_GRAPHS:
        return read_graphs(reader, place, message, ATTRIBUTE_GRAPHS, out);
    case KELP_ATTR_FLOATS:
        return read_numbers(reader, place, message, ATTRIBUTE_FLOATS, out);
    case KELP_ATTR_INTS:
        return read_numbers(reader, place, message, ATTRIBUTE_INTS, out);
    case KELP_ATTR_STRINGS:
        return read_strings(reader, message, out);
    case KELP_ATTR_SPARSE_TENSOR:
        return read_sparse(reader, place, message, out);
    case KELP_ATTR_FLOAT:
    case KELP_ATTR_INT:
    case KELP_ATTR_STRING:
    case KELP_ATTR_SPARSE_TENSORS:
    case KELP_ATTR_TYPE_PROTO:
    case KELP_ATTR_TYPE_PROTOS:
    case KELP_ATTR_NONE:
        return NULL;
    }
    return NULL;
}

/* Reads a field that occurs once and is not a message. Ignores other fields. */
static kelp_status *read_attr_field(const kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                    const kelp_protobuf_field *field, uint64_t *out_type,
                                    kelp_onnx_attr *out) {
    KELP_TRY(kelp_onnx_expect_types(reader, place, field,
                                    KELP_ONNX_BIT(ATTRIBUTE_NAME) | KELP_ONNX_BIT(ATTRIBUTE_S) |
                                        KELP_ONNX_BIT(ATTRIBUTE_STRINGS) |
                                        KELP_ONNX_BIT(ATTRIBUTE_REF_ATTR_NAME),
                                    KELP_ONNX_BIT(ATTRIBUTE_I) | KELP_ONNX_BIT(ATTRIBUTE_TYPE)));
    switch (field->number) {
    case ATTRIBUTE_NAME:
        out->name = field->bytes;
        return NULL;
    case ATTRIBUTE_F:
        if (field->type != KELP_PROTOBUF_I32)
            return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                                   "f: expected a float, found wire type %u", field->type);
        memcpy(&out->f, &field->value, sizeof out->f);
        return NULL;
    case ATTRIBUTE_I:
        out->i = (int64_t)field->value;
        return NULL;
    case ATTRIBUTE_S:
        out->s = field->bytes;
        return NULL;
    case ATTRIBUTE_TYPE:
        *out_type = field->value;
        return NULL;
    case ATTRIBUTE_REF_ATTR_NAME:
        out->ref = field->bytes;
        return NULL;
    default:
        return NULL;
    }
}

kelp_status *kelp_onnx_read_attribute(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                      kelp_str message, kelp_onnx_attr *out) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    uint64_t type = 0;
    *out = (kelp_onnx_attr){0};
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD)
        KELP_TRY(read_attr_field(reader, place, &field, &type, out));
    KELP_TRY(kelp_onnx_check_end(reader, place, result, "AttributeProto"));
    if (out->name.length == 0)
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "name: expected one, found none");
    if (type > KELP_ATTR_TYPE_PROTOS)
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "'%.*s': type: expected an attribute type, found %llu",
                               KELP_STR_ARG(out->name), (unsigned long long)type);
    out->type = type != 0 ? (kelp_attr_type)type : guess_type(message);
    kelp_onnx_place named = *place;
    named.name = out->name;
    return read_attr_value(reader, &named, message, out);
}
