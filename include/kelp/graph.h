/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/graph.h: a model as a graph, loaded from ONNX and read by operators, tools and backends.
 *
 * A kelp_graph is immutable once it is loaded and is shared by counting. Weights are borrowed from
 * the mapped file (or from the caller's bytes), which the graph keeps alive. Strings returned live
 * as long as the graph. Threads: everything but load may be called from any thread at once. Source:
 * ONNX IR specification (onnx/docs/IR.md), onnx.proto of release 1.23.
 */
#ifndef KELP_GRAPH_H_
#define KELP_GRAPH_H_

#include <kelp/allocator.h>
#include <kelp/status.h>
#include <kelp/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kelp_graph kelp_graph; /* a whole model: main block, functions, metadata */
typedef struct kelp_block
    kelp_block; /* a list of nodes: the main graph, a subgraph, or a function's body */
typedef struct kelp_node kelp_node;
typedef struct kelp_value kelp_value; /* what flows along an edge */

/* What a loader accepts; zeroed fields take the defaults in brackets. */
typedef struct kelp_graph_limits {
    size_t file_bytes;     /* [16 GiB] */
    size_t nodes;          /* [4 Mi] in all blocks */
    uint32_t depth;        /* [64] of nested subgraphs and messages */
    size_t external_bytes; /* [256 GiB] of all external data */
    int64_t newest_onnx; /* [the newest that Kelp knows] version of ai.onnx: operators of later ones
                            are checked as the newest known are, and covered by who has them */
} kelp_graph_limits;

/* Loads an ONNX ModelProto. The file is mapped, not read; external data is looked for beside it,
 * and a location that leads out of its folder is refused (PERMISSION_DENIED). Malformed input:
 * INVALID_ARGUMENT that names file and field. */
KELP_API kelp_status *kelp_graph_load_file(kelp_allocator allocator, const char *path,
                                           const kelp_graph_limits *limits,
                                           kelp_graph **out) KELP_MUST_USE;

/* The same from memory, which is borrowed until the graph goes; then `release(userp)` is called
 * (may be NULL; also called when this fails). `label` names the bytes in errors; `directory` (may
 * be NULL) is where external data is looked for. */
KELP_API kelp_status *kelp_graph_load_bytes(kelp_allocator allocator, const void *data,
                                            size_t size_bytes, const char *label,
                                            const char *directory, void (*release)(void *userp),
                                            void *userp, const kelp_graph_limits *limits,
                                            kelp_graph **out) KELP_MUST_USE;

KELP_API kelp_graph *kelp_graph_retain(kelp_graph *graph);
KELP_API void kelp_graph_release(kelp_graph *graph); /* NULL is fine */

/* ---- the model ---- */
typedef struct kelp_graph_info {
    const char *label; /* path or label it was loaded from */
    const char *producer_name;
    const char *producer_version;
    const char *domain;
    const char *doc;
    const char *graph_name;
    int64_t ir_version;
    int64_t model_version;
    size_t node_count;      /* in all blocks, functions included */
    size_t parameter_count; /* elements of all initializers */
    size_t parameter_bytes;
    size_t metadata_count;
} kelp_graph_info;
KELP_API kelp_graph_info kelp_graph_get_info(const kelp_graph *graph);
KELP_API void kelp_graph_metadata(const kelp_graph *graph, size_t index, const char **out_key,
                                  const char **out_value);
KELP_API size_t kelp_graph_opset_count(const kelp_graph *graph);
/* Domain "" is ai.onnx. */
KELP_API void kelp_graph_opset(const kelp_graph *graph, size_t index, const char **out_domain,
                               int64_t *out_version);
/* 0 when the domain is not imported. "ai.onnx" and "" are the same. */
KELP_API int64_t kelp_graph_opset_version(const kelp_graph *graph, const char *domain);
KELP_API const kelp_block *kelp_graph_main(const kelp_graph *graph);
KELP_API size_t kelp_graph_function_count(const kelp_graph *graph);
KELP_API const kelp_block *kelp_graph_function(const kelp_graph *graph, size_t index);

/* ---- blocks ---- nodes come in an order in which every value is made before it is used. */
KELP_API const char *
kelp_block_name(const kelp_block *block); /* graph name, or "domain::function" */
KELP_API size_t kelp_block_node_count(const kelp_block *block);
KELP_API const kelp_node *kelp_block_node(const kelp_block *block, size_t index);
KELP_API size_t kelp_block_input_count(const kelp_block *block); /* without initializers */
KELP_API const kelp_value *kelp_block_input(const kelp_block *block, size_t index);
KELP_API size_t kelp_block_output_count(const kelp_block *block);
KELP_API const kelp_value *kelp_block_output(const kelp_block *block, size_t index);

/* ---- values ---- */
typedef enum kelp_value_kind {
    KELP_VALUE_UNKNOWN = 0,
    KELP_VALUE_TENSOR = 1,
    KELP_VALUE_SEQUENCE = 2,
    KELP_VALUE_OPTIONAL = 3,
    KELP_VALUE_MAP = 4,
    KELP_VALUE_SPARSE = 5
} kelp_value_kind;
KELP_API const char *kelp_value_name(const kelp_value *value);
KELP_API kelp_value_kind kelp_value_kind_of(const kelp_value *value);
/* Element type (of the innermost tensor for sequences and optionals); KELP_DTYPE_INVALID when not
 * known. */
KELP_API kelp_dtype kelp_value_dtype(const kelp_value *value);
/* -1 when not known. */
KELP_API int32_t kelp_value_rank(const kelp_value *value);
/* An extent; -1 when not fixed. `out_symbol` (may be NULL) receives its name ("batch") or NULL. */
KELP_API int64_t kelp_value_dim(const kelp_value *value, int32_t axis, const char **out_symbol);
/* The constant it holds (initializer, Constant node, folded), or NULL. Data may lie at any address:
 * element alignment is promised only when the low bits say so. */
KELP_API const kelp_tensor *kelp_value_constant(const kelp_value *value);

/* ---- nodes ---- */
KELP_API const char *kelp_node_name(const kelp_node *node); /* may be "" */
KELP_API const char *kelp_node_op_type(const kelp_node *node);
KELP_API const char *kelp_node_domain(const kelp_node *node); /* "" is ai.onnx */
/* The opset version of its domain that the model imports where the node stands. */
KELP_API int64_t kelp_node_opset_version(const kelp_node *node);
KELP_API size_t kelp_node_input_count(const kelp_node *node);
KELP_API const kelp_value *kelp_node_input(const kelp_node *node,
                                           size_t index); /* NULL: left out */
KELP_API size_t kelp_node_output_count(const kelp_node *node);
KELP_API const kelp_value *kelp_node_output(const kelp_node *node,
                                            size_t index); /* NULL: left out */

/* Attributes. Each reader gives `fallback` when the attribute is absent. One that is there with
 * another type makes the node invalid: the loader says so first, so
 * readers never see it. */
typedef enum kelp_attr_type { /* numbers of onnx.AttributeProto.AttributeType */
                              KELP_ATTR_NONE = 0,
                              KELP_ATTR_FLOAT = 1,
                              KELP_ATTR_INT = 2,
                              KELP_ATTR_STRING = 3,
                              KELP_ATTR_TENSOR = 4,
                              KELP_ATTR_GRAPH = 5,
                              KELP_ATTR_FLOATS = 6,
                              KELP_ATTR_INTS = 7,
                              KELP_ATTR_STRINGS = 8,
                              KELP_ATTR_TENSORS = 9,
                              KELP_ATTR_GRAPHS = 10,
                              KELP_ATTR_SPARSE_TENSOR = 11,
                              KELP_ATTR_SPARSE_TENSORS = 12,
                              KELP_ATTR_TYPE_PROTO = 13,
                              KELP_ATTR_TYPE_PROTOS = 14
} kelp_attr_type;
KELP_API kelp_attr_type kelp_node_attr_type(const kelp_node *node, const char *name);
KELP_API size_t kelp_node_attr_count(const kelp_node *node);
KELP_API const char *kelp_node_attr_name(const kelp_node *node, size_t index);
KELP_API int64_t kelp_node_attr_i64(const kelp_node *node, const char *name, int64_t fallback);
KELP_API float kelp_node_attr_f32(const kelp_node *node, const char *name, float fallback);
/* Bytes, `out_length` may be NULL; terminated as well. */
KELP_API const char *kelp_node_attr_string(const kelp_node *node, const char *name,
                                           const char *fallback, size_t *out_length);
/* Number of items, 0 when absent. */
KELP_API size_t kelp_node_attr_i64s(const kelp_node *node, const char *name, const int64_t **out);
KELP_API size_t kelp_node_attr_f32s(const kelp_node *node, const char *name, const float **out);
KELP_API size_t kelp_node_attr_strings(const kelp_node *node, const char *name,
                                       const kelp_string **out);
KELP_API const kelp_tensor *kelp_node_attr_tensor(const kelp_node *node, const char *name);
KELP_API const kelp_block *kelp_node_attr_block(const kelp_node *node, const char *name);

#ifdef __cplusplus
}
#endif
#endif
