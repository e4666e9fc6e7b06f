/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/onnx_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void put(pb *out, const void *data, size_t length) {
    assert_true(length <= sizeof out->data - out->length);
    if (length > 0)
        memcpy(out->data + out->length, data, length);
    out->length += length;
}

void pb_varint(pb *out, uint64_t value) {
    do {
        uint8_t byte = (uint8_t)(value & 0x7f) | (value > 0x7f ? 0x80 : 0);
        put(out, &byte, 1);
        value >>= 7;
    } while (value != 0);
}

void pb_int(pb *out, uint32_t field, uint64_t value) {
    pb_varint(out, (uint64_t)field << 3);
    pb_varint(out, value);
}

void pb_float(pb *out, uint32_t field, float value) {
    pb_varint(out, (uint64_t)field << 3 | 5);
    put(out, &value, sizeof value);
}

void pb_bytes(pb *out, uint32_t field, const void *data, size_t length) {
    pb_varint(out, (uint64_t)field << 3 | 2);
    pb_varint(out, length);
    put(out, data, length);
}

void pb_text(pb *out, uint32_t field, const char *text) {
    pb_bytes(out, field, text, strlen(text));
}

void pb_message(pb *out, uint32_t field, const pb *message) {
    pb_bytes(out, field, message->data, message->length);
}

static void put_names(pb *node, uint32_t field, const char *names) {
    while (*names != '\0') {
        size_t length = strcspn(names, " ");
        bool left_out = length == 1 && *names == '-';
        pb_bytes(node, field, names, left_out ? 0 : length);
        names += length;
        names += *names == ' ';
    }
}

pb pb_node(const char *op_type, const char *inputs, const char *outputs) {
    pb node = {0};
    put_names(&node, 1, inputs);
    put_names(&node, 2, outputs);
    pb_text(&node, 3, op_type); /* its name is its operator's */
    pb_text(&node, 4, op_type);
    return node;
}

static void put_attr(pb *node, pb *attr, const char *name, uint32_t type) {
    pb_text(attr, 1, name);
    pb_int(attr, 20, type);
    pb_message(node, 5, attr);
}

void pb_attr_int(pb *node, const char *name, int64_t value) {
    pb attr = {0};
    pb_int(&attr, 3, (uint64_t)value);
    put_attr(node, &attr, name, 2);
}

void pb_attr_ints(pb *node, const char *name, size_t count, const int64_t *values) {
    pb attr = {0};
    for (size_t i = 0; i < count; i++)
        pb_int(&attr, 8, (uint64_t)values[i]);
    put_attr(node, &attr, name, 7);
}

void pb_attr_text(pb *node, const char *name, const char *value) {
    pb attr = {0};
    pb_text(&attr, 4, value);
    put_attr(node, &attr, name, 3);
}

void pb_attr_graph(pb *node, const char *name, const pb *graph) {
    pb attr = {0};
    pb_message(&attr, 6, graph);
    put_attr(node, &attr, name, 5);
}

void pb_attr_ref(pb *node, const char *name, const char *ref, uint32_t type) {
    pb attr = {0};
    pb_text(&attr, 21, ref);
    put_attr(node, &attr, name, type);
}

static pb shape_of(const char *text) {
    pb shape = {0};
    while (*text == '[' || *text == ',') {
        pb dim = {0};
        char *end = NULL;
        size_t length = strcspn(++text, ",]");
        long long extent = strtoll(text, &end, 10);
        if (end != text)
            pb_int(&dim, 1, (uint64_t)extent);
        else if (length > 0 && *text != '?')
            pb_bytes(&dim, 2, text, length);
        if (length > 0)
            pb_message(&shape, 1, &dim);
        text += length;
    }
    return shape;
}

pb pb_value(const char *name, const char *type) {
    pb value = {0}, tensor = {0}, outer = {0};
    char dtype[32] = {0};
    size_t length = strcspn(type, "[");
    assert_true(length < sizeof dtype);
    memcpy(dtype, type, length);
    pb_text(&value, 1, name);
    if (length == 0)
        return value;
    pb_int(&tensor, 1, (uint64_t)kelp_dtype_parse(dtype));
    if (type[length] == '[') {
        pb shape = shape_of(type + length);
        pb_message(&tensor, 2, &shape);
    }
    pb_message(&outer, 1, &tensor);
    pb_message(&value, 2, &outer);
    return value;
}

pb pb_tensor(const char *name, kelp_dtype dtype, int32_t rank, const int64_t *dims,
             const void *data, size_t length) {
    pb tensor = {0};
    for (int32_t i = 0; i < rank; i++)
        pb_int(&tensor, 1, (uint64_t)dims[i]);
    pb_int(&tensor, 2, (uint64_t)dtype);
    pb_text(&tensor, 8, name);
    pb_bytes(&tensor, 9, data, length);
    return tensor;
}

void pb_add_node(pb *graph, const pb *node) {
    pb_message(graph, 1, node);
}

void pb_add_input(pb *graph, const char *name, const char *type) {
    pb value = pb_value(name, type);
    pb_message(graph, 11, &value);
}

void pb_add_output(pb *graph, const char *name, const char *type) {
    pb value = pb_value(name, type);
    pb_message(graph, 12, &value);
}

void pb_add_initializer(pb *graph, const pb *tensor) {
    pb_message(graph, 5, tensor);
}

void pb_import(pb *model, const char *domain, int64_t version) {
    pb import = {0};
    pb_text(&import, 1, domain);
    pb_int(&import, 2, (uint64_t)version);
    pb_message(model, 8, &import);
}

pb pb_model(const pb *graph, int64_t opset) {
    pb model = {0};
    pb_int(&model, 1, 10);
    pb_message(&model, 7, graph);
    pb_import(&model, "", opset);
    return model;
}
