/* SPDX-License-Identifier: Apache-2.0 */
/* Adds outputs to a serialized model. Source: onnx.proto of release 1.23. */
#include "cli/compare/compare.h"

#include "base/checked.h"
#include "base/map.h"
#include "base/wire/protobuf.h"
#include "base/wire/protobuf_write.h"

#include <string.h>

/* Numbers of fields. */
enum { MODEL_GRAPH = 7 };
enum { GRAPH_NODE = 1, GRAPH_OUTPUT = 12 };
enum { NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP_TYPE = 4 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2 };
enum { TYPE_TENSOR = 1, TENSOR_ELEMENT = 1 };

static bool is_output(const kelp_block *main, kelp_str name) {
    for (size_t i = 0; i < kelp_block_output_count(main); i++)
        if (kelp_str_is(name, kelp_value_name(kelp_block_output(main, i))))
            return true;
    return false;
}

/* Finds a tensor that a node computes. Nodes come in the order of `hint`, which is advanced. */
static const kelp_value *find_value(const kelp_block *main, kelp_str name, size_t *hint) {
    size_t count = kelp_block_node_count(main);
    for (size_t step = 0; step < count; step++) {
        size_t at = (*hint + step) % count;
        const kelp_node *node = kelp_block_node(main, at);
        for (size_t i = 0; i < kelp_node_output_count(node); i++) {
            const kelp_value *value = kelp_node_output(node, i);
            if (value != NULL && kelp_str_is(name, kelp_value_name(value))) {
                *hint = at;
                return value;
            }
        }
    }
    return NULL;
}

static void put_value(kelp_str name, kelp_dtype dtype, kelp_buf *scratch, kelp_buf *out) {
    kelp_buf_clear(scratch);
    kelp_protobuf_put_i64(scratch, TENSOR_ELEMENT, dtype); /* the numbers of TensorProto.DataType */
    kelp_protobuf_wrap(scratch, TYPE_TENSOR, 0);
    kelp_protobuf_wrap(scratch, VALUE_TYPE, 0);
    size_t start = out->length;
    kelp_protobuf_put_str(out, VALUE_NAME, name);
    kelp_buf_append(out, scratch->data, scratch->length);
    kelp_protobuf_wrap(out, GRAPH_OUTPUT, start);
}

typedef struct exposing {
    const kelp_block *main;
    kelp_arena *arena;
    kelp_exposed_value *values;
    size_t count, hint;
    kelp_buf scratch;
    kelp_buf *out;
} exposing;

static kelp_status *expose_output(exposing *e, kelp_str name, kelp_str op_type, kelp_str node) {
    if (name.length == 0 || is_output(e->main, name))
        return NULL;
    const kelp_value *value = find_value(e->main, name, &e->hint);
    if (value == NULL || kelp_value_constant(value) != NULL ||
        kelp_value_kind_of(value) != KELP_VALUE_TENSOR ||
        kelp_value_dtype(value) == KELP_DTYPE_INVALID)
        return NULL;
    put_value(name, kelp_value_dtype(value), &e->scratch, e->out);
    kelp_exposed_value *exposed = &e->values[e->count++];
    exposed->name = kelp_arena_strndup(e->arena, name.data, name.length);
    exposed->op_type = kelp_arena_strndup(e->arena, op_type.data, op_type.length);
    exposed->node = kelp_arena_strndup(e->arena, node.data, node.length);
    return exposed->name != NULL && exposed->op_type != NULL && exposed->node != NULL
               ? NULL
               : kelp_status_oom();
}

/* Exposes the outputs of a NodeProto. */
static kelp_status *expose_node(exposing *e, kelp_str node) {
    kelp_str op_type = KELP_STR(""), name = KELP_STR("");
    kelp_protobuf_field field;
    kelp_protobuf wire = kelp_protobuf_of(node);
    while (kelp_protobuf_next(&wire, &field) == KELP_PROTOBUF_FIELD) {
        if (field.number == NODE_NAME)
            name = field.bytes;
        else if (field.number == NODE_OP_TYPE)
            op_type = field.bytes;
    }
    wire = kelp_protobuf_of(node);
    while (kelp_protobuf_next(&wire, &field) == KELP_PROTOBUF_FIELD)
        if (field.number == NODE_OUTPUT)
            KELP_TRY(expose_output(e, field.bytes, op_type, name));
    return NULL;
}

static size_t count_outputs(kelp_str graph) {
    kelp_protobuf wire = kelp_protobuf_of(graph);
    kelp_protobuf_field field;
    size_t count = 0;
    while (kelp_protobuf_next(&wire, &field) == KELP_PROTOBUF_FIELD)
        if (field.number == GRAPH_NODE)
            count += kelp_protobuf_count(field.bytes, NODE_OUTPUT);
    return count;
}

/* Appends the GraphProto with more outputs. */
static kelp_status *expose_graph(exposing *e, kelp_str graph) {
    kelp_protobuf wire = kelp_protobuf_of(graph);
    kelp_protobuf_field field;
    kelp_status *status = NULL;
    size_t start = e->out->length, room = count_outputs(graph);
    e->values = KELP_ARENA_ARRAY(e->arena, room, kelp_exposed_value);
    if (e->values == NULL && room > 0)
        return kelp_status_oom();
    kelp_buf_append_str(e->out, graph);
    while (status == NULL && kelp_protobuf_next(&wire, &field) == KELP_PROTOBUF_FIELD)
        if (field.number == GRAPH_NODE)
            status = expose_node(e, field.bytes);
    if (status == NULL)
        kelp_protobuf_wrap(e->out, MODEL_GRAPH, start);
    return status;
}

kelp_status *kelp_expose_values(kelp_str model, const kelp_graph *graph, kelp_arena *arena,
                                kelp_exposed_value **out_values, size_t *out_count, kelp_buf *out) {
    exposing e = {.main = kelp_graph_main(graph), .arena = arena, .out = out};
    kelp_protobuf wire = kelp_protobuf_of(model);
    kelp_protobuf_field field;
    kelp_status *status = NULL;
    kelp_buf_init(&e.scratch, kelp_allocator_system());
    for (const uint8_t *begin = wire.at;
         status == NULL && kelp_protobuf_next(&wire, &field) == KELP_PROTOBUF_FIELD;
         begin = wire.at) {
        if (field.number == MODEL_GRAPH && field.type == KELP_PROTOBUF_BYTES)
            status = expose_graph(&e, field.bytes);
        else
            kelp_buf_append(out, begin, (size_t)(wire.at - begin));
    }
    if (status == NULL)
        status = kelp_buf_status(&e.scratch);
    kelp_buf_deinit(&e.scratch);
    *out_values = e.values;
    *out_count = e.count;
    return status != NULL ? status : kelp_buf_status(out);
}
