/* SPDX-License-Identifier: Apache-2.0 */
/* See case_file.h. */
#include "support/case_file.h"

#include "onnx/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void give_up(const char *what, kelp_status *status) {
    fprintf(stderr, "%s: %s\n", what, status ? kelp_status_message(status) : "cut short");
    exit(2);
}

static const char *take(kelp_str *rest, size_t size) {
    if (rest->length < size)
        give_up("a case file", NULL);
    const char *at = rest->data;
    rest->data += size;
    rest->length -= size;
    return at;
}

static uint32_t take_u32(kelp_str *rest) {
    uint32_t value;
    memcpy(&value, take(rest, sizeof value), sizeof value);
    return value;
}

/* Reads a TensorProto; copies the elements to memory with the alignment of an application. */
static void read_tensor(test_case *c, kelp_str bytes, kelp_tensor *out) {
    kelp_onnx_reader reader = {.arena = &c->arena, .data = &c->arena, .label = "case"};
    kelp_onnx_place place = {.field = "tensor", .index = -1};
    kelp_onnx_tensor read;
    reader.limits = (kelp_graph_limits){.file_bytes = bytes.length, .depth = 8};
    kelp_status *status = kelp_onnx_read_tensor(&reader, &place, bytes, &read);
    if (status != NULL)
        give_up("a case's tensor", status);
    *out = read.tensor;
    size_t size = kelp_tensor_bytes(out);
    void *copy = kelp_arena_alloc(&c->arena, size + 64, 64);
    if (copy == NULL)
        exit(2);
    if (size > 0)
        memcpy(copy, out->data, size);
    out->data = copy;
}

/* Reads a TensorProto, or a list whose rank is its kind (see kelp/tensor.h), and its elements. */
static void read_value(test_case *c, kelp_str *rest, kelp_tensor *out) {
    int32_t kind = (int32_t)take_u32(rest);
    uint32_t count = take_u32(rest);
    if (kind == 0) {
        read_tensor(c, (kelp_str){take(rest, count), count}, out);
        return;
    }
    kelp_tensor *items = kelp_arena_alloc(&c->arena, (count + 1) * sizeof *items, 64);
    for (uint32_t i = 0; items != NULL && i < count; i++)
        read_value(c, rest, &items[i]);
    kelp_status *status =
        kelp_tensor_init(out, KELP_LIST, kind, (const int64_t[]){count, 1, 1}, items);
    if (status != NULL)
        give_up("a case's list", status);
}

static test_named *read_list(test_case *c, kelp_str *rest, uint32_t *out_count) {
    *out_count = take_u32(rest);
    test_named *list = kelp_arena_alloc(&c->arena, (*out_count + 1) * sizeof *list, 16);
    for (uint32_t i = 0; list != NULL && i < *out_count; i++) {
        size_t length = take_u32(rest);
        list[i].name = kelp_arena_strndup(&c->arena, take(rest, length), length);
        read_value(c, rest, &list[i].tensor);
    }
    return list;
}

void test_case_read(test_case *c, const char *path) {
    *c = (test_case){0};
    kelp_arena_init(&c->arena, kelp_allocator_system(), 65536);
    kelp_status *status = kelp_fs_map(path, &c->mapping);
    if (status != NULL)
        give_up(path, status);
    kelp_str rest = {c->mapping.data, c->mapping.size_bytes};
    memcpy(&c->rtol, take(&rest, 8), 8);
    memcpy(&c->atol, take(&rest, 8), 8);
    c->inputs = read_list(c, &rest, &c->input_count);
    c->outputs = read_list(c, &rest, &c->output_count);
}

void test_case_free(test_case *c) {
    kelp_fs_unmap(&c->mapping);
    kelp_arena_deinit(&c->arena);
}
