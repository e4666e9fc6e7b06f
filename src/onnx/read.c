/* SPDX-License-Identifier: Apache-2.0 */
/* Reads ModelProto, GraphProto, NodeProto and FunctionProto. Nested graphs recurse, limited by
 * `depth`. */
#include "base/assert.h"
#include "base/buf.h"
#include "onnx/fields.h"
#include "onnx/reader.h"

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
    KELP_ASSERT(item_bytes > 0);
    size_t count = kelp_protobuf_count(message, number);
    void *items = count > 0 ? kelp_arena_array(reader->arena, count, item_bytes) : NULL;
    memcpy(out_items, &items, sizeof items);
    return count > 0 && items == NULL ? kelp_status_oom() : NULL;
}

kelp_status *kelp_onnx_expect_bytes(const kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                    const kelp_protobuf_field *field, const char *name) {
    if (field->type == KELP_PROTOBUF_BYTES)
        return NULL;
    return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                           "%s: expected bytes, found wire type %u", name, field->type);
}

static kelp_status *expect_number(const kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                  const kelp_protobuf_field *field, const char *name) {
    if (field->type == KELP_PROTOBUF_VARINT)
        return NULL;
    return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                           "%s: expected a number, found wire type %u", name, field->type);
}

kelp_status *kelp_onnx_expect_types(const kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                    const kelp_protobuf_field *field, uint32_t bytes,
                                    uint32_t numbers) {
    KELP_ASSERT((bytes & numbers) == 0);
    uint32_t bit = field->number < 32 ? KELP_ONNX_BIT(field->number) : 0;
    bool wrong = ((bytes & bit) && field->type != KELP_PROTOBUF_BYTES) ||
                 ((numbers & bit) && field->type != KELP_PROTOBUF_VARINT);
    if (!wrong)
        return NULL;
    return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                           "field %u: expected %s, found wire type %u", field->number,
                           bytes & bit ? "bytes" : "a number", field->type);
}

kelp_status *kelp_onnx_check_end(const kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                 kelp_protobuf_result result, const char *message) {
    if (result == KELP_PROTOBUF_END)
        return NULL;
    return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                           "malformed or truncated: expected a %s", message);
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

static kelp_status *read_node_field(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                    const kelp_protobuf_field *field, kelp_str *out_overload,
                                    kelp_onnx_node *out) {
    kelp_onnx_place inner;
    if (field->number > NODE_OVERLOAD)
        return NULL;
    KELP_TRY(kelp_onnx_expect_bytes(reader, place, field, "field"));
    switch (field->number) {
    case NODE_INPUT:
        out->inputs[out->input_count++] = field->bytes;
        return NULL;
    case NODE_OUTPUT:
        out->outputs[out->output_count++] = field->bytes;
        return NULL;
    case NODE_NAME:
        out->name = field->bytes;
        return NULL;
    case NODE_OP_TYPE:
        out->op_type = field->bytes;
        return NULL;
    case NODE_ATTRIBUTE:
        inner = kelp_onnx_inside(place, "attribute", (int64_t)out->attr_count);
        return kelp_onnx_read_attribute(reader, &inner, field->bytes,
                                        &out->attrs[out->attr_count++]);
    case NODE_DOMAIN:
        out->domain = plain_domain(field->bytes);
        return NULL;
    case NODE_OVERLOAD:
        *out_overload = field->bytes;
        return NULL;
    default:
        return NULL;
    }
}

static kelp_status *read_node(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                              kelp_str message, kelp_onnx_node *out) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    kelp_str overload = {0};
    *out = (kelp_onnx_node){0};
    if (++reader->node_count > reader->limits.nodes)
        return kelp_onnx_error(reader, place, KELP_RESOURCE_EXHAUSTED,
                               "the model has more than %zu nodes", reader->limits.nodes);
    KELP_TRY(kelp_onnx_array(reader, message, NODE_INPUT, sizeof(kelp_str), &out->inputs));
    KELP_TRY(kelp_onnx_array(reader, message, NODE_OUTPUT, sizeof(kelp_str), &out->outputs));
    if (kelp_protobuf_count(message, NODE_ATTRIBUTE) > ATTRIBUTES_MAX)
        return kelp_onnx_error(reader, place, KELP_RESOURCE_EXHAUSTED,
                               "a node has more than %d attributes", ATTRIBUTES_MAX);
    KELP_TRY(kelp_onnx_array(reader, message, NODE_ATTRIBUTE, sizeof(kelp_onnx_attr), &out->attrs));
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD)
        KELP_TRY(read_node_field(reader, place, &field, &overload, out));
    KELP_TRY(kelp_onnx_check_end(reader, place, result, "NodeProto"));
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
static kelp_status *read_graph_value(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                     const char *name, const kelp_protobuf_field *field,
                                     kelp_onnx_value *items, size_t *inout_count) {
    kelp_onnx_place inner = kelp_onnx_inside(place, name, (int64_t)*inout_count);
    KELP_TRY(kelp_onnx_expect_bytes(reader, &inner, field, "message"));
    return kelp_onnx_read_value(reader, &inner, field->bytes, &items[(*inout_count)++]);
}

static kelp_status *read_graph_node(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                    const kelp_protobuf_field *field, kelp_onnx_node *items,
                                    size_t *inout_count) {
    kelp_onnx_place inner = kelp_onnx_inside(place, "node", (int64_t)*inout_count);
    KELP_TRY(kelp_onnx_expect_bytes(reader, &inner, field, "message"));
    return read_node(reader, &inner, field->bytes, &items[(*inout_count)++]);
}

static kelp_status *read_initializer(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                     const kelp_protobuf_field *field, kelp_onnx_graph *out) {
    bool sparse = field->number == GRAPH_SPARSE_INITIALIZER;
    kelp_onnx_place inner = kelp_onnx_inside(place, sparse ? "sparse_initializer" : "initializer",
                                             (int64_t)out->initializer_count);
    KELP_TRY(kelp_onnx_expect_bytes(reader, &inner, field, "message"));
    kelp_onnx_tensor *tensor = &out->initializers[out->initializer_count++];
    return sparse ? kelp_onnx_read_sparse(reader, &inner, field->bytes, tensor)
                  : kelp_onnx_read_tensor(reader, &inner, field->bytes, tensor);
}

static kelp_status *read_graph_field(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                     const kelp_protobuf_field *field, kelp_onnx_graph *out) {
    KELP_TRY(kelp_onnx_expect_types(
        reader, place, field, KELP_ONNX_BIT(GRAPH_NAME) | KELP_ONNX_BIT(GRAPH_DOC_STRING), 0));
    switch (field->number) {
    case GRAPH_NODE:
        return read_graph_node(reader, place, field, out->nodes, &out->node_count);
    case GRAPH_NAME:
        out->name = field->bytes;
        return NULL;
    case GRAPH_INITIALIZER:
    case GRAPH_SPARSE_INITIALIZER:
        return read_initializer(reader, place, field, out);
    case GRAPH_DOC_STRING:
        out->doc = field->bytes;
        return NULL;
    case GRAPH_INPUT:
        return read_graph_value(reader, place, "input", field, out->inputs, &out->input_count);
    case GRAPH_OUTPUT:
        return read_graph_value(reader, place, "output", field, out->outputs, &out->output_count);
    case GRAPH_VALUE_INFO:
        return read_graph_value(reader, place, "value_info", field, out->values, &out->value_count);
    default:
        return NULL;
    }
}

kelp_status *kelp_onnx_read_graph(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                  kelp_str message, kelp_onnx_graph *out) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    /* a nested graph is three levels deeper: node, attribute, graph */
    if (place->depth > 3 * reader->limits.depth)
        return kelp_onnx_error(reader, NULL, KELP_RESOURCE_EXHAUSTED,
                               "graphs are nested deeper than the limit of %u",
                               reader->limits.depth);
    *out = (kelp_onnx_graph){0};
    if (kelp_protobuf_count(message, GRAPH_NODE) > reader->limits.nodes)
        return kelp_onnx_error(reader, place, KELP_RESOURCE_EXHAUSTED,
                               "the graph has more than %zu nodes", reader->limits.nodes);
    KELP_TRY(kelp_onnx_array(reader, message, GRAPH_NODE, sizeof(kelp_onnx_node), &out->nodes));
    size_t initializers = kelp_protobuf_count(message, GRAPH_INITIALIZER) +
                          kelp_protobuf_count(message, GRAPH_SPARSE_INITIALIZER);
    out->initializers = KELP_ARENA_ARRAY(reader->arena, initializers + 1, kelp_onnx_tensor);
    if (out->initializers == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_onnx_array(reader, message, GRAPH_INPUT, sizeof(kelp_onnx_value), &out->inputs));
    KELP_TRY(
        kelp_onnx_array(reader, message, GRAPH_OUTPUT, sizeof(kelp_onnx_value), &out->outputs));
    KELP_TRY(
        kelp_onnx_array(reader, message, GRAPH_VALUE_INFO, sizeof(kelp_onnx_value), &out->values));
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD)
        KELP_TRY(read_graph_field(reader, place, &field, out));
    KELP_ASSERT(out->initializer_count <= initializers);
    return kelp_onnx_check_end(reader, place, result, "GraphProto");
}

/* ---- the model ---- */
static kelp_status *read_entry(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                               kelp_str message, kelp_str *out_key, kelp_str *out_value) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD) {
        KELP_TRY(kelp_onnx_expect_types(reader, place, &field,
                                        KELP_ONNX_BIT(ENTRY_KEY) | KELP_ONNX_BIT(ENTRY_VALUE), 0));
        if (field.number == ENTRY_KEY)
            *out_key = field.bytes;
        else if (field.number == ENTRY_VALUE)
            *out_value = field.bytes;
    }
    return kelp_onnx_check_end(reader, place, result, "StringStringEntryProto");
}

static kelp_status *read_opset_id(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                  kelp_str message, kelp_onnx_import *out) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    *out = (kelp_onnx_import){0};
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD) {
        KELP_TRY(kelp_onnx_expect_types(reader, place, &field, KELP_ONNX_BIT(OPSET_ID_DOMAIN),
                                        KELP_ONNX_BIT(OPSET_ID_VERSION)));
        if (field.number == OPSET_ID_DOMAIN)
            out->domain = plain_domain(field.bytes);
        else if (field.number == OPSET_ID_VERSION)
            out->version = (int64_t)field.value;
    }
    KELP_TRY(kelp_onnx_check_end(reader, place, result, "OperatorSetIdProto"));
    if (out->version <= 0)
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "version: expected 1 or more, found %lld", (long long)out->version);
    return NULL;
}

static kelp_status *read_import(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                const kelp_protobuf_field *field, kelp_onnx_import *items,
                                size_t *inout_count) {
    kelp_onnx_place inner = kelp_onnx_inside(place, "opset_import", (int64_t)*inout_count);
    KELP_TRY(kelp_onnx_expect_bytes(reader, &inner, field, "message"));
    return read_opset_id(reader, &inner, field->bytes, &items[(*inout_count)++]);
}

static kelp_status *read_function_field(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                        const kelp_protobuf_field *field, kelp_onnx_function *out) {
    kelp_onnx_place inner;
    KELP_TRY(kelp_onnx_expect_types(
        reader, place, field,
        KELP_ONNX_BIT(FUNCTION_NAME) | KELP_ONNX_BIT(FUNCTION_INPUT) |
            KELP_ONNX_BIT(FUNCTION_OUTPUT) | KELP_ONNX_BIT(FUNCTION_ATTRIBUTE) |
            KELP_ONNX_BIT(FUNCTION_DOMAIN) | KELP_ONNX_BIT(FUNCTION_OVERLOAD),
        0));
    switch (field->number) {
    case FUNCTION_NAME:
        out->name = field->bytes;
        return NULL;
    case FUNCTION_INPUT:
        out->inputs[out->input_count++] = field->bytes;
        return NULL;
    case FUNCTION_OUTPUT:
        out->outputs[out->output_count++] = field->bytes;
        return NULL;
    case FUNCTION_ATTRIBUTE:
        out->attributes[out->attribute_count++] = field->bytes;
        return NULL;
    case FUNCTION_NODE:
        return read_graph_node(reader, place, field, out->nodes, &out->node_count);
    case FUNCTION_OPSET_IMPORT:
        return read_import(reader, place, field, out->imports, &out->import_count);
    case FUNCTION_DOMAIN:
        out->domain = plain_domain(field->bytes);
        return NULL;
    case FUNCTION_OVERLOAD:
        out->overload = field->bytes;
        return NULL;
    case FUNCTION_ATTRIBUTE_PROTO:
        inner = kelp_onnx_inside(place, "attribute_proto", (int64_t)out->default_count);
        KELP_TRY(kelp_onnx_expect_bytes(reader, &inner, field, "message"));
        return kelp_onnx_read_attribute(reader, &inner, field->bytes,
                                        &out->defaults[out->default_count++]);
    default:
        return NULL;
    }
}

static kelp_status *read_function(kelp_onnx_reader *reader, const kelp_onnx_place *place,
                                  kelp_str message, kelp_onnx_function *out) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    *out = (kelp_onnx_function){0};
    KELP_TRY(kelp_onnx_array(reader, message, FUNCTION_INPUT, sizeof(kelp_str), &out->inputs));
    KELP_TRY(kelp_onnx_array(reader, message, FUNCTION_OUTPUT, sizeof(kelp_str), &out->outputs));
    KELP_TRY(
        kelp_onnx_array(reader, message, FUNCTION_ATTRIBUTE, sizeof(kelp_str), &out->attributes));
    KELP_TRY(kelp_onnx_array(reader, message, FUNCTION_NODE, sizeof(kelp_onnx_node), &out->nodes));
    KELP_TRY(kelp_onnx_array(reader, message, FUNCTION_OPSET_IMPORT, sizeof(kelp_onnx_import),
                             &out->imports));
    KELP_TRY(kelp_onnx_array(reader, message, FUNCTION_ATTRIBUTE_PROTO, sizeof(kelp_onnx_attr),
                             &out->defaults));
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD)
        KELP_TRY(read_function_field(reader, place, &field, out));
    KELP_TRY(kelp_onnx_check_end(reader, place, result, "FunctionProto"));
    if (out->name.length == 0)
        return kelp_onnx_error(reader, place, KELP_INVALID_ARGUMENT,
                               "name: expected one, found none");
    return add_overload(reader, out->overload, &out->name);
}

static kelp_status *read_model_field(kelp_onnx_reader *reader, const kelp_protobuf_field *field,
                                     kelp_onnx_model *out) {
    kelp_str *const strings[] = {[MODEL_PRODUCER_NAME] = &out->producer_name,
                                 [MODEL_PRODUCER_VERSION] = &out->producer_version,
                                 [MODEL_DOMAIN] = &out->domain,
                                 [MODEL_DOC_STRING] = &out->doc};
    kelp_onnx_place place;
    switch (field->number) {
    case MODEL_IR_VERSION:
        KELP_TRY(expect_number(reader, NULL, field, "ir_version"));
        out->ir_version = (int64_t)field->value;
        return NULL;
    case MODEL_PRODUCER_NAME:
    case MODEL_PRODUCER_VERSION:
    case MODEL_DOMAIN:
    case MODEL_DOC_STRING:
        KELP_TRY(kelp_onnx_expect_bytes(reader, NULL, field, "text"));
        *strings[field->number] = field->bytes;
        return NULL;
    case MODEL_MODEL_VERSION:
        KELP_TRY(expect_number(reader, NULL, field, "model_version"));
        out->model_version = (int64_t)field->value;
        return NULL;
    case MODEL_GRAPH:
        place = kelp_onnx_inside(NULL, "graph", -1);
        KELP_TRY(kelp_onnx_expect_bytes(reader, &place, field, "message"));
        return kelp_onnx_read_graph(reader, &place, field->bytes, &out->graph);
    case MODEL_OPSET_IMPORT:
        return read_import(reader, NULL, field, out->imports, &out->import_count);
    case MODEL_METADATA_PROPS:
        place = kelp_onnx_inside(NULL, "metadata_props", (int64_t)out->metadata_count);
        KELP_TRY(kelp_onnx_expect_bytes(reader, &place, field, "message"));
        out->metadata_count++;
        return read_entry(reader, &place, field->bytes, &out->metadata[2 * out->metadata_count - 2],
                          &out->metadata[2 * out->metadata_count - 1]);
    case MODEL_FUNCTIONS:
        place = kelp_onnx_inside(NULL, "functions", (int64_t)out->function_count);
        KELP_TRY(kelp_onnx_expect_bytes(reader, &place, field, "message"));
        return read_function(reader, &place, field->bytes, &out->functions[out->function_count++]);
    default:
        return NULL;
    }
}

/* Returns the end of a message about bytes that are not a model: what they are, if known. */
static const char *describe_other_content(kelp_str bytes) {
    static const struct {
        const char *beginning, *description;
    } known[] = {
        {"version https://git-lfs",
         ", found a pointer of Git LFS; 'git lfs pull' downloads the file"},
        {"<!DOCTYPE", ", found an HTML page"},
        {"<!doctype", ", found an HTML page"},
        {"<html", ", found an HTML page"},
        {"PK\003\004", ", found a zip archive"},
        {"\037\213", ", found a file compressed with gzip"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i].beginning);
        if (bytes.length >= length && memcmp(bytes.data, known[i].beginning, length) == 0)
            return known[i].description;
    }
    return "";
}

kelp_status *kelp_onnx_read(kelp_onnx_reader *reader, kelp_str bytes, kelp_onnx_model *out) {
    kelp_protobuf wire = kelp_protobuf_of(bytes);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    *out = (kelp_onnx_model){0};
    if (bytes.length == 0)
        return kelp_onnx_error(reader, NULL, KELP_INVALID_ARGUMENT,
                               "empty: expected an ONNX ModelProto");
    KELP_TRY(kelp_onnx_array(reader, bytes, MODEL_OPSET_IMPORT, sizeof(kelp_onnx_import),
                             &out->imports));
    KELP_TRY(
        kelp_onnx_array(reader, bytes, MODEL_METADATA_PROPS, 2 * sizeof(kelp_str), &out->metadata));
    KELP_TRY(kelp_onnx_array(reader, bytes, MODEL_FUNCTIONS, sizeof(kelp_onnx_function),
                             &out->functions));
    bool has_graph = false;
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD) {
        if (field.number == MODEL_GRAPH && has_graph)
            return kelp_onnx_error(reader, NULL, KELP_INVALID_ARGUMENT,
                                   "graph: expected one, found two");
        has_graph = has_graph || field.number == MODEL_GRAPH;
        KELP_TRY(read_model_field(reader, &field, out));
    }
    if (result == KELP_PROTOBUF_MALFORMED)
        return kelp_onnx_error(
            reader, NULL, KELP_INVALID_ARGUMENT,
            "malformed or truncated near byte %zu of %zu: expected an ONNX ModelProto%s",
            (size_t)(wire.at - (const uint8_t *)bytes.data), bytes.length,
            describe_other_content(bytes));
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
