/* SPDX-License-Identifier: Apache-2.0 */
/* Writes ONNX models in a few lines, right ones and wrong ones, for tests of what reads them. */
#ifndef KELP_TESTS_ONNX_WRITER_H_
#define KELP_TESTS_ONNX_WRITER_H_

#include <kelp/tensor.h>

/* A message being written. Fixed room: a test that needs more fails at once. */
typedef struct pb {
    size_t length;
    char data[131072];
} pb;

void pb_varint(pb *out, uint64_t value); /* without a tag */
void pb_int(pb *out, uint32_t field, uint64_t value);
void pb_float(pb *out, uint32_t field, float value);
void pb_bytes(pb *out, uint32_t field, const void *data, size_t length);
void pb_text(pb *out, uint32_t field, const char *text);
void pb_message(pb *out, uint32_t field, const pb *message);

/* NodeProto; names are separated by blanks, "-" is one left out. */
pb pb_node(const char *op_type, const char *inputs, const char *outputs);
void pb_attr_int(pb *node, const char *name, int64_t value);
void pb_attr_ints(pb *node, const char *name, size_t count, const int64_t *values);
void pb_attr_text(pb *node, const char *name, const char *value);
void pb_attr_graph(pb *node, const char *name, const pb *graph);
/* A function's attribute that stands for the call's. `type` is an attribute type's number. */
void pb_attr_ref(pb *node, const char *name, const char *ref, uint32_t type);

/* ValueInfoProto: "float32[2,n,?]" in words: dtype name, then a list of numbers, names and question
 * marks; without a list the rank is open. */
pb pb_value(const char *name, const char *type);
/* TensorProto with raw data. */
pb pb_tensor(const char *name, kelp_dtype dtype, int32_t rank, const int64_t *dims,
             const void *data, size_t length);
/* GraphProto parts. */
void pb_add_node(pb *graph, const pb *node);
void pb_add_input(pb *graph, const char *name, const char *type);
void pb_add_output(pb *graph, const char *name, const char *type);
void pb_add_initializer(pb *graph, const pb *tensor);
/* ModelProto of the graph: IR version 10, ai.onnx at `opset`. */
pb pb_model(const pb *graph, int64_t opset);
void pb_import(pb *model, const char *domain, int64_t version);

#endif
