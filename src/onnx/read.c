/* SPDX-License-Identifier: Apache-2.0 */
/* Reads ModelProto, GraphProto, NodeProto, AttributeProto and FunctionProto. Nested graphs
 * recurse, limited by `depth`. */
#include "base/buf.h"
#include "onnx/model.h"
#include "onnx/wire.h"

#include <string.h>

/* Maximum number of attributes of a node, which are compared pairwise. The largest operator has
 * 30. */
#define ATTRIBUTES_MAX 4096

/* ---- places and errors ---- */
kelp_onnx_place kelp_onnx_inside(const kelp_onnx_place *parent, const char *field, int64_t index) {
    return (kelp_onnx_place){
        parent, field, index, parent != NULL ? parent->depth + 1 : 0, {NULL, 0}};
}

static void spell(kelp_buf *out, const kelp_onnx_place *place) {
    /* outermost first; the depth is bounded */
    if (place == NULL)
        return;
    if (place->parent != NULL) {
        spell(out, place->parent);
        if (out->length > 0)
            kelp_buf_append_char(out, '.');
    }
    kelp_buf_append_cstr(out, place->field);
    if (place->index >= 0)
        kelp_buf_printf(out, "[%lld]", (long long)place->index);
    if (place->name.length > 0)
        kelp_buf_printf(out, " '%.*s'", KELP_STR_ARG(place->name));
}

kelp_status *kelp_onnx_error(const kelp_onnx_reader *reader, const kelp_onnx_place *place,
                             kelp_code code, const char *format, ...) {
    kelp_buf text;
    va_list args;
    kelp_buf_init(&text, reader->arena->allocator);
    spell(&text, place);
    const char *where = kelp_buf_cstr(&text);
    va_start(args, format);
    kelp_status *what = kelp_status_newv(code, __FILE__, __LINE__, format, args);
    va_end(args);
    kelp_status *status = kelp_status_new(
        code, __FILE__, __LINE__, "%s: %s%s%s", reader->label, where != NULL ? where : "",
        where != NULL && *where ? ": " : "", kelp_status_message(what));
    kelp_status_free(what);
    kelp_buf_deinit(&text);
    return status;
}

kelp_status *kelp_onnx_array(kelp_onnx_reader *reader, kelp_str message, uint32_t number,
                             size_t item_bytes, void *out_items) {
    size_t count = kelp_wire_count(message, number);
    void *items = count > 0 ? kelp_arena_array(reader->arena, count, item_bytes) : NULL;
    memcpy(out_items, &items, sizeof items);
    return count > 0 && items == NULL ? kelp_status_oom() : NULL;
}

/* Checks that a field is a message or bytes. */
static kelp_status *expect_bytes(const kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                 const kelp_field *field, const char *name) {
    if (field->type == KELP_WIRE_BYTES)
        return NULL;
    return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                           "%s: expected bytes, found wire type %u", name, field->type);
}

static kelp_status *expect_number(const kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                  const kelp_field *field, const char *name) {
    if (field->type == KELP_WIRE_VARINT)
        return NULL;
    return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                           "%s: expected a number, found wire type %u", name, field->type);
}

/* Checks the wire types of known fields: `bytes` and `numbers` are bit masks of field numbers.
 * Ignores other fields. */
static kelp_status *expect_types(const kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                 const kelp_field *field, uint32_t bytes, uint32_t numbers) {
    uint32_t bit = field->number < 32 ? 1u << field->number : 0;
    bool wrong = ((bytes & bit) && field->type != KELP_WIRE_BYTES) ||
                 ((numbers & bit) && field->type != KELP_WIRE_VARINT);
    if (!wrong)
        return NULL;
    return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                           "field %u: expected %s, found wire type %u", field->number,
                           bytes & bit ? "bytes" : "a number", field->type);
}

static kelp_status *check_end(const kelp_onnx_reader *reader, const kelp_onnx_place *place,
                              kelp_wire_result result, const char *message) {
    if (result == KELP_WIRE_END)
        return NULL;
    return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                           "malformed or truncated: expected a %s", message);
}

static kelp_status *read_graph(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                               kelp_str bytes, kelp_onnx_graph *out);

/* ---- attributes ---- */
static kelp_status *read_numbers(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                 kelp_str message, uint32_t number, kelp_onnx_attr *out) {
    kelp_wire wire = kelp_wire_of(message);
    kelp_field field;
    size_t capacity = 0, item = number == 7 ? sizeof(float) : sizeof(int64_t);
    while (kelp_wire_next(&wire, &field) == KELP_WIRE_FIELD)
        if (field.number == number)
            capacity += field.type == KELP_WIRE_BYTES ? field.bytes.length : 1;
    char *items = kelp_arena_array(reader->arena, capacity ? capacity : 1, item);
    if (items == NULL)
        return kelp_status_oom();
    out->count = 0;
    wire = kelp_wire_of(message);
    while (kelp_wire_next(&wire, &field) == KELP_WIRE_FIELD) {
        if (field.number != number)
            continue;
        kelp_wire packed = kelp_wire_of(field.bytes);
        uint64_t value = field.value;
        for (bool more = true; more;) {
            if (field.type == KELP_WIRE_BYTES && packed.at == packed.end)
                break;
            if (field.type == KELP_WIRE_BYTES && number == 8 && !kelp_wire_varint(&packed, &value))
                return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                                       "ints: malformed packed numbers");
            if (field.type == KELP_WIRE_BYTES && number == 7) {
                if (packed.end - packed.at < 4)
                    return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                                           "floats: malformed packed numbers");
                uint32_t bits;
                memcpy(&bits, packed.at, 4);
                value = bits;
                packed.at += 4;
            }
            memcpy(items + out->count++ * item, &value, item);
            more = field.type == KELP_WIRE_BYTES;
        }
    }
    if (number == 7)
        out->floats = (float *)(void *)items;
    else
        out->ints = (int64_t *)(void *)items;
    return NULL;
}

static kelp_status *read_strings(kelp_onnx_reader *reader, kelp_str message, kelp_onnx_attr *out) {
    kelp_wire wire = kelp_wire_of(message);
    kelp_field field;
    KELP_TRY(kelp_onnx_array(reader, message, 9, sizeof(kelp_string), &out->strings));
    out->count = 0;
    while (kelp_wire_next(&wire, &field) == KELP_WIRE_FIELD)
        if (field.number == 9)
            out->strings[out->count++] = (kelp_string){field.bytes.data, field.bytes.length};
    return NULL;
}

static kelp_status *read_tensors(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                 kelp_str message, uint32_t number, kelp_onnx_attr *out) {
    kelp_wire wire = kelp_wire_of(message);
    kelp_field field;
    KELP_TRY(kelp_onnx_array(reader, message, number, sizeof(kelp_onnx_tensor), &out->tensors));
    out->count = 0;
    while (kelp_wire_next(&wire, &field) == KELP_WIRE_FIELD) {
        if (field.number != number)
            continue;
        kelp_onnx_place inner = kelp_onnx_inside(place, number == 5 ? "t" : "tensors",
                                                 number == 5 ? -1 : (int64_t)out->count);
        KELP_TRY(expect_bytes(reader, &inner, &field, "tensor"));
        KELP_TRY(kelp_onnx_read_tensor(reader, &inner, field.bytes, &out->tensors[out->count++]));
    }
    return NULL;
}

static kelp_status *read_graphs(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                kelp_str message, uint32_t number, kelp_onnx_attr *out) {
    kelp_wire wire = kelp_wire_of(message);
    kelp_field field;
    KELP_TRY(kelp_onnx_array(reader, message, number, sizeof(kelp_onnx_graph), &out->graphs));
    out->count = 0;
    while (kelp_wire_next(&wire, &field) == KELP_WIRE_FIELD) {
        if (field.number != number)
            continue;
        kelp_onnx_place inner = kelp_onnx_inside(place, number == 6 ? "g" : "graphs",
                                                 number == 6 ? -1 : (int64_t)out->count);
        KELP_TRY(expect_bytes(reader, &inner, &field, "graph"));
        KELP_TRY(read_graph(reader, &inner, field.bytes, &out->graphs[out->count++]));
    }
    return NULL;
}

/* Reads a sparse tensor as a dense one: Constant's "sparse_value" becomes its "value". */
static kelp_status *read_sparse(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                kelp_str message, kelp_onnx_attr *out) {
    kelp_wire wire = kelp_wire_of(message);
    kelp_field field;
    KELP_TRY(kelp_onnx_array(reader, message, 22, sizeof(kelp_onnx_tensor), &out->tensors));
    if (out->tensors == NULL)
        return NULL;
    while (kelp_wire_next(&wire, &field) == KELP_WIRE_FIELD) {
        if (field.number != 22)
            continue;
        kelp_onnx_place inner = kelp_onnx_inside(place, "sparse_tensor", -1);
        KELP_TRY(expect_bytes(reader, &inner, &field, "tensor"));
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
    } fields[] = {{5, KELP_ATTR_TENSOR},  {6, KELP_ATTR_GRAPH},   {7, KELP_ATTR_FLOATS},
                  {8, KELP_ATTR_INTS},    {9, KELP_ATTR_STRINGS}, {10, KELP_ATTR_TENSORS},
                  {11, KELP_ATTR_GRAPHS}, {4, KELP_ATTR_STRING},  {3, KELP_ATTR_INT},
                  {2, KELP_ATTR_FLOAT}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (kelp_wire_count(message, fields[i].number) > 0)
            return fields[i].type;
    return KELP_ATTR_NONE;
}

static kelp_status *read_attr_value(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                    kelp_str message, kelp_onnx_attr *out) {
    switch (out->type) {
    case KELP_ATTR_TENSOR:
        return read_tensors(reader, place, message, 5, out);
    case KELP_ATTR_TENSORS:
        return read_tensors(reader, place, message, 10, out);
    case KELP_ATTR_GRAPH:
        return read_graphs(reader, place, message, 6, out);
    case KELP_ATTR_GRAPHS:
        return read_graphs(reader, place, message, 11, out);
    case KELP_ATTR_FLOATS:
        return read_numbers(reader, place, message, 7, out);
    case KELP_ATTR_INTS:
        return read_numbers(reader, place, message, 8, out);
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

static kelp_status *read_attr(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                              kelp_str message, kelp_onnx_attr *out) {
    kelp_wire wire = kelp_wire_of(message);
    kelp_field field;
    kelp_wire_result result;
    uint64_t type = 0;
    *out = (kelp_onnx_attr){0};
    while ((result = kelp_wire_next(&wire, &field)) == KELP_WIRE_FIELD) {
        KELP_TRY(expect_types(reader, place, &field, 1u << 1 | 1u << 4 | 1u << 9 | 1u << 21,
                              1u << 3 | 1u << 20));
        if (field.number == 1)
            out->name = field.bytes;
        else if (field.number == 2 && field.type == KELP_WIRE_I32)
            memcpy(&out->f, &field.value, sizeof out->f);
        else if (field.number == 2)
            return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                                   "f: expected a float, found wire type %u", field.type);
        else if (field.number == 3)
            out->i = (int64_t)field.value;
        else if (field.number == 4)
            out->s = field.bytes;
        else if (field.number == 20)
            type = field.value;
        else if (field.number == 21)
            out->ref = field.bytes;
    }
    KELP_TRY(check_end(reader, place, result, "AttributeProto"));
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

/* ---- nodes ---- */
/* Appends the overload to a function's name, which identifies functions with the same name. */
static kelp_status *add_overload(kelp_onnx_reader *reader, kelp_str overload,
                                 kelp_str *inout_name) {
    if (overload.length == 0)
        return NULL;
    size_t length = inout_name->length + 1 + overload.length;
    char *full = kelp_arena_alloc(reader->arena, length, 1);
    if (full == NULL)
        return kelp_status_oom();
    if (inout_name->length > 0)
        memcpy(full, inout_name->data, inout_name->length);
    full[inout_name->length] = ':';
    memcpy(full + inout_name->length + 1, overload.data, overload.length);
    *inout_name = (kelp_str){full, length};
    return NULL;
}

static kelp_str plain_domain(kelp_str domain) {
    return kelp_str_is(domain, "ai.onnx") ? (kelp_str){NULL, 0} : domain;
}

static kelp_status *read_node(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                              kelp_str message, kelp_onnx_node *out) {
    kelp_wire wire = kelp_wire_of(message);
    kelp_field field;
    kelp_wire_result result;
    kelp_str overload = {0};
    *out = (kelp_onnx_node){0};
    if (++reader->node_count > reader->limits.nodes)
        return kelp_onnx_error(reader, place, KELP_RESOURCE_EXHAUSTED,
                               "the model has more than %zu nodes", reader->limits.nodes);
    KELP_TRY(kelp_onnx_array(reader, message, 1, sizeof(kelp_str), &out->inputs));
    KELP_TRY(kelp_onnx_array(reader, message, 2, sizeof(kelp_str), &out->outputs));
    if (kelp_wire_count(message, 5) > ATTRIBUTES_MAX)
        return kelp_onnx_error(reader, place, KELP_RESOURCE_EXHAUSTED,
                               "a node has more than %d attributes", ATTRIBUTES_MAX);
    KELP_TRY(kelp_onnx_array(reader, message, 5, sizeof(kelp_onnx_attr), &out->attrs));
    while ((result = kelp_wire_next(&wire, &field)) == KELP_WIRE_FIELD) {
        if (field.number > 8)
            continue;
        KELP_TRY(expect_bytes(reader, place, &field, "field"));
        if (field.number == 1) {
            out->inputs[out->input_count++] = field.bytes;
        } else if (field.number == 2) {
            out->outputs[out->output_count++] = field.bytes;
        } else if (field.number == 3) {
            out->name = field.bytes;
        } else if (field.number == 4) {
            out->op_type = field.bytes;
        } else if (field.number == 7) {
            out->domain = plain_domain(field.bytes);
        } else if (field.number == 8) {
            overload = field.bytes;
        } else if (field.number == 5) {
            kelp_onnx_place inner = kelp_onnx_inside(place, "attribute", (int64_t)out->attr_count);
            KELP_TRY(read_attr(reader, &inner, field.bytes, &out->attrs[out->attr_count++]));
        }
    }
    KELP_TRY(check_end(reader, place, result, "NodeProto"));
    if (out->op_type.length == 0)
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "op_type: expected one, found none");
    /* many exporters leave nodes unnamed: name them after their first output for messages,
     * profiles and logs */
    for (size_t i = 0; i < out->output_count && out->name.length == 0; i++)
        out->name = out->outputs[i];
    return add_overload(reader, overload, &out->op_type);
}

/* ---- graphs ---- */
static kelp_status *read_graph_field(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                     const kelp_field *field, kelp_onnx_graph *out) {
    static const char *const names[] = {
        [1] = "node", [5] = "initializer", [11] = "input", [12] = "output", [13] = "value_info"};
    bool known =
        field->number == 1 || field->number == 5 || (field->number >= 11 && field->number <= 13);
    if (!known)
        return NULL;
    size_t index = field->number == 1    ? out->node_count++
                   : field->number == 5  ? out->initializer_count++
                   : field->number == 11 ? out->input_count++
                   : field->number == 12 ? out->output_count++
                                         : out->value_count++;
    kelp_onnx_place inner = kelp_onnx_inside(place, names[field->number], (int64_t)index);
    KELP_TRY(expect_bytes(reader, &inner, field, "message"));
    switch (field->number) {
    case 1:
        return read_node(reader, &inner, field->bytes, &out->nodes[index]);
    case 5:
        return kelp_onnx_read_tensor(reader, &inner, field->bytes, &out->initializers[index]);
    case 11:
        return kelp_onnx_read_value(reader, &inner, field->bytes, &out->inputs[index]);
    case 12:
        return kelp_onnx_read_value(reader, &inner, field->bytes, &out->outputs[index]);
    default:
        return kelp_onnx_read_value(reader, &inner, field->bytes, &out->values[index]);
    }
}

static kelp_status *read_sparse_initializer(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                            const kelp_field *field, kelp_onnx_graph *out) {
    kelp_onnx_place inner =
        kelp_onnx_inside(place, "sparse_initializer", (int64_t)out->initializer_count);
    return kelp_onnx_read_sparse(reader, &inner, field->bytes,
                                 &out->initializers[out->initializer_count++]);
}

static kelp_status *read_graph(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                               kelp_str message, kelp_onnx_graph *out) {
    kelp_wire wire = kelp_wire_of(message);
    kelp_field field;
    kelp_wire_result result;
    /* a nested graph is three levels deeper: node, attribute, graph */
    if (place->depth > 3 * reader->limits.depth)
        return kelp_onnx_error(reader, NULL, KELP_RESOURCE_EXHAUSTED,
                               "graphs are nested deeper than the limit of %u",
                               reader->limits.depth);
    *out = (kelp_onnx_graph){0};
    if (kelp_wire_count(message, 1) > reader->limits.nodes)
        return kelp_onnx_error(reader, place, KELP_RESOURCE_EXHAUSTED,
                               "the graph has more than %zu nodes", reader->limits.nodes);
    KELP_TRY(kelp_onnx_array(reader, message, 1, sizeof(kelp_onnx_node), &out->nodes));
    size_t initializers = kelp_wire_count(message, 5) + kelp_wire_count(message, 15);
    out->initializers = KELP_ARENA_ARRAY(reader->arena, initializers + 1, kelp_onnx_tensor);
    if (out->initializers == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_onnx_array(reader, message, 11, sizeof(kelp_onnx_value), &out->inputs));
    KELP_TRY(kelp_onnx_array(reader, message, 12, sizeof(kelp_onnx_value), &out->outputs));
    KELP_TRY(kelp_onnx_array(reader, message, 13, sizeof(kelp_onnx_value), &out->values));
    while ((result = kelp_wire_next(&wire, &field)) == KELP_WIRE_FIELD) {
        KELP_TRY(expect_types(reader, place, &field, 1u << 2 | 1u << 10 | 1u << 15, 0));
        if (field.number == 2)
            out->name = field.bytes;
        else if (field.number == 10)
            out->doc = field.bytes;
        else if (field.number == 15)
            KELP_TRY(read_sparse_initializer(reader, place, &field, out));
        else
            KELP_TRY(read_graph_field(reader, place, &field, out));
    }
    return check_end(reader, place, result, "GraphProto");
}

/* ---- the model ---- */
static kelp_status *read_pair(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                              kelp_str message, kelp_str *out_first, kelp_str *out_second,
                              int64_t *out_number) {
    kelp_wire wire = kelp_wire_of(message);
    kelp_field field;
    kelp_wire_result result;
    while ((result = kelp_wire_next(&wire, &field)) == KELP_WIRE_FIELD) {
        bool text = out_second != NULL;
        KELP_TRY(expect_types(reader, place, &field, 1u << 1 | (text ? 1u << 2 : 0),
                              text ? 0 : 1u << 2));
        if (field.number == 1)
            *out_first = field.bytes;
        else if (field.number == 2 && out_second != NULL)
            *out_second = field.bytes;
        else if (field.number == 2)
            *out_number = (int64_t)field.value;
    }
    return check_end(reader, place, result, "pair");
}

static kelp_status *read_import(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                const kelp_field *field, kelp_onnx_import *items,
                                size_t *inout_count) {
    kelp_onnx_place inner = kelp_onnx_inside(place, "opset_import", (int64_t)*inout_count);
    KELP_TRY(expect_bytes(reader, &inner, field, "message"));
    kelp_onnx_import *item = &items[(*inout_count)++];
    KELP_TRY(read_pair(reader, &inner, field->bytes, &item->domain, NULL, &item->version));
    item->domain = plain_domain(item->domain);
    if (item->version <= 0)
        return kelp_onnx_error(reader, &inner, KELP_INVALID_ARGUMENT,
                               "version: expected 1 or more, found %lld", (long long)item->version);
    return NULL;
}

static kelp_status *read_function_field(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                        const kelp_field *field, kelp_onnx_function *out) {
    kelp_onnx_place inner;
    KELP_TRY(expect_types(reader, place, field,
                          1u << 1 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 10 | 1u << 13, 0));
    switch (field->number) {
    case 1:
        out->name = field->bytes;
        return NULL;
    case 4:
        out->inputs[out->input_count++] = field->bytes;
        return NULL;
    case 5:
        out->outputs[out->output_count++] = field->bytes;
        return NULL;
    case 6:
        out->attributes[out->attribute_count++] = field->bytes;
        return NULL;
    case 7:
        inner = kelp_onnx_inside(place, "node", (int64_t)out->node_count);
        KELP_TRY(expect_bytes(reader, &inner, field, "message"));
        return read_node(reader, &inner, field->bytes, &out->nodes[out->node_count++]);
    case 9:
        return read_import(reader, place, field, out->imports, &out->import_count);
    case 10:
        out->domain = plain_domain(field->bytes);
        return NULL;
    case 13:
        out->overload = field->bytes;
        return NULL;
    case 11:
        inner = kelp_onnx_inside(place, "attribute_proto", (int64_t)out->default_count);
        KELP_TRY(expect_bytes(reader, &inner, field, "message"));
        return read_attr(reader, &inner, field->bytes, &out->defaults[out->default_count++]);
    default:
        return NULL;
    }
}

static kelp_status *read_function(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                  kelp_str message, kelp_onnx_function *out) {
    kelp_wire wire = kelp_wire_of(message);
    kelp_field field;
    kelp_wire_result result;
    *out = (kelp_onnx_function){0};
    KELP_TRY(kelp_onnx_array(reader, message, 4, sizeof(kelp_str), &out->inputs));
    KELP_TRY(kelp_onnx_array(reader, message, 5, sizeof(kelp_str), &out->outputs));
    KELP_TRY(kelp_onnx_array(reader, message, 6, sizeof(kelp_str), &out->attributes));
    KELP_TRY(kelp_onnx_array(reader, message, 7, sizeof(kelp_onnx_node), &out->nodes));
    KELP_TRY(kelp_onnx_array(reader, message, 9, sizeof(kelp_onnx_import), &out->imports));
    KELP_TRY(kelp_onnx_array(reader, message, 11, sizeof(kelp_onnx_attr), &out->defaults));
    while ((result = kelp_wire_next(&wire, &field)) == KELP_WIRE_FIELD)
        KELP_TRY(read_function_field(reader, place, &field, out));
    KELP_TRY(check_end(reader, place, result, "FunctionProto"));
    if (out->name.length == 0)
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "name: expected one, found none");
    return add_overload(reader, out->overload, &out->name);
}

static kelp_status *read_model_field(kelp_onnx_reader *reader, const kelp_field *field,
                                     kelp_onnx_model *out) {
    kelp_str *const strings[] = {[2] = &out->producer_name,
                                 [3] = &out->producer_version,
                                 [4] = &out->domain,
                                 [6] = &out->doc};
    kelp_onnx_place place;
    switch (field->number) {
    case 1:
        KELP_TRY(expect_number(reader, NULL, field, "ir_version"));
        out->ir_version = (int64_t)field->value;
        return NULL;
    case 2:
    case 3:
    case 4:
    case 6:
        KELP_TRY(expect_bytes(reader, NULL, field, "text"));
        *strings[field->number] = field->bytes;
        return NULL;
    case 5:
        KELP_TRY(expect_number(reader, NULL, field, "model_version"));
        out->model_version = (int64_t)field->value;
        return NULL;
    case 7:
        place = kelp_onnx_inside(NULL, "graph", -1);
        KELP_TRY(expect_bytes(reader, &place, field, "message"));
        return read_graph(reader, &place, field->bytes, &out->graph);
    case 8:
        return read_import(reader, NULL, field, out->imports, &out->import_count);
    case 14:
        place = kelp_onnx_inside(NULL, "metadata_props", (int64_t)out->metadata_count);
        KELP_TRY(expect_bytes(reader, &place, field, "message"));
        out->metadata_count++;
        return read_pair(reader, &place, field->bytes, &out->metadata[2 * out->metadata_count - 2],
                         &out->metadata[2 * out->metadata_count - 1], NULL);
    case 25:
        place = kelp_onnx_inside(NULL, "functions", (int64_t)out->function_count);
        KELP_TRY(expect_bytes(reader, &place, field, "message"));
        return read_function(reader, &place, field->bytes, &out->functions[out->function_count++]);
    default:
        return NULL;
    }
}

kelp_status *kelp_onnx_read(kelp_onnx_reader *reader, kelp_str bytes, kelp_onnx_model *out) {
    kelp_wire wire = kelp_wire_of(bytes);
    kelp_field field;
    kelp_wire_result result;
    *out = (kelp_onnx_model){0};
    if (bytes.length == 0)
        return kelp_onnx_error(reader, NULL, KELP_INVALID_ARGUMENT,
                               "empty: expected an ONNX ModelProto");
    KELP_TRY(kelp_onnx_array(reader, bytes, 8, sizeof(kelp_onnx_import), &out->imports));
    KELP_TRY(kelp_onnx_array(reader, bytes, 14, 2 * sizeof(kelp_str), &out->metadata));
    KELP_TRY(kelp_onnx_array(reader, bytes, 25, sizeof(kelp_onnx_function), &out->functions));
    bool has_graph = false;
    while ((result = kelp_wire_next(&wire, &field)) == KELP_WIRE_FIELD) {
        if (field.number == 7 && has_graph)
            return kelp_onnx_error(reader, NULL, KELP_INVALID_ARGUMENT,
                                   "graph: expected one, found two");
        has_graph = has_graph || field.number == 7;
        KELP_TRY(read_model_field(reader, &field, out));
    }
    if (result == KELP_WIRE_MALFORMED)
        return kelp_onnx_error(
            reader, NULL, KELP_INVALID_ARGUMENT,
            "malformed or truncated near byte %zu of %zu: expected an ONNX ModelProto",
            (size_t)(wire.at - (const uint8_t *)bytes.data), bytes.length);
    if (!has_graph)
        return kelp_onnx_error(reader, NULL, KELP_INVALID_ARGUMENT,
                               "graph: expected one, found none");
    if (out->ir_version <= 0)
        return kelp_onnx_error(reader, NULL, KELP_INVALID_ARGUMENT,
                               "ir_version: expected 1 or more, found %lld",
                               (long long)out->ir_version);
    if (out->import_count == 0 && out->ir_version >= 3)
        return kelp_onnx_error(reader, NULL, KELP_INVALID_ARGUMENT,
                               "opset_import: expected at least one, found none");
    return NULL;
}
