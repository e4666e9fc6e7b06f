/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ONNX ModelProto as C structs. Strings and tensor data are borrowed from the input where
 * possible; the rest is allocated in the arena.
 * Source: onnx.proto of release 1.23 (field numbers), docs/ExternalData.md.
 */
#ifndef KELP_ONNX_MODEL_H_
#define KELP_ONNX_MODEL_H_

#include "base/arena.h"
#include "base/file_guard.h"

#include <kelp/graph.h>

typedef struct kelp_onnx_graph kelp_onnx_graph;

typedef struct kelp_onnx_tensor {
    kelp_str name;
    kelp_tensor tensor;
} kelp_onnx_tensor;

typedef struct kelp_onnx_attr {
    kelp_str name;
    kelp_attr_type type;
    kelp_str ref; /* name of the function's attribute that it refers to */
    int64_t i;
    float f;
    kelp_str s;
    size_t count;
    int64_t *ints;
    float *floats;
    kelp_string *strings;
    kelp_onnx_tensor *tensors; /* TENSOR: one item */
    kelp_onnx_graph *graphs;   /* GRAPH: one item */
} kelp_onnx_attr;

typedef struct kelp_onnx_node {
    kelp_str name, op_type, domain;
    kelp_str *inputs, *outputs;
    size_t input_count, output_count;
    kelp_onnx_attr *attrs;
    size_t attr_count;
} kelp_onnx_node;

typedef struct kelp_onnx_type {
    kelp_value_kind kind;
    kelp_dtype dtype;
    int32_t rank; /* -1 without a shape */
    int64_t shape[KELP_MAX_RANK];
    kelp_str symbols[KELP_MAX_RANK];
} kelp_onnx_type;

typedef struct kelp_onnx_value {
    kelp_str name;
    kelp_onnx_type type;
} kelp_onnx_value;

struct kelp_onnx_graph {
    kelp_str name, doc;
    kelp_onnx_node *nodes;
    kelp_onnx_tensor *initializers;
    kelp_onnx_value *inputs, *outputs, *values;
    size_t node_count, initializer_count, input_count, output_count, value_count;
};

typedef struct kelp_onnx_import {
    kelp_str domain;
    int64_t version;
} kelp_onnx_import;

typedef struct kelp_onnx_function {
    kelp_str name, domain, overload;         /* the name ends in ":overload" if there is one */
    kelp_str *inputs, *outputs, *attributes; /* names of attributes without a default */
    size_t input_count, output_count, attribute_count;
    kelp_onnx_attr *defaults; /* attributes with a default */
    size_t default_count;
    kelp_onnx_node *nodes;
    size_t node_count;
    kelp_onnx_import *imports;
    size_t import_count;
} kelp_onnx_function;

typedef struct kelp_onnx_model {
    int64_t ir_version, model_version;
    kelp_str producer_name, producer_version, domain, doc;
    kelp_onnx_graph graph;
    kelp_onnx_import *imports;
    size_t import_count;
    kelp_str *metadata; /* key, value, … */
    size_t metadata_count;
    kelp_onnx_function *functions;
    size_t function_count;
} kelp_onnx_model;

/* External data files, mapped once each. */
typedef struct kelp_onnx_file {
    struct kelp_onnx_file *next;
    kelp_str location;
    kelp_mapping mapping;
} kelp_onnx_file;

typedef struct kelp_onnx_reader {
    kelp_arena *arena; /* memory of the structs */
    kelp_arena *data;  /* memory of decoded tensors and file names; must outlive the tensors */
    const char *label;
    const char *directory; /* directory of external data; NULL: not allowed */
    /* path of the model's file, or NULL; if it is a symbolic link, external data may be links to
     * the directory of the file that it leads to */
    const char *path;
    kelp_graph_limits limits;
    kelp_file_guard *guard; /* maps external data; NULL: plain mappings */
    kelp_onnx_file *files;  /* unmapped by the caller, also after a failure */
    size_t node_count;
    size_t external_bytes;
} kelp_onnx_reader;

/* Reads a model. Opens no files except external data. Fails with INVALID_ARGUMENT "LABEL:
 * graph.node[3].attribute[0] 'axes': …". */
kelp_status *kelp_onnx_read(kelp_onnx_reader *reader, kelp_str bytes,
                            kelp_onnx_model *out) KELP_MUST_USE;

#endif
