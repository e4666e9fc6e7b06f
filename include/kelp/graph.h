/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/graph.h: a model as a graph, loaded from ONNX.
 *
 * A kelp_graph is immutable after loading and reference-counted. It owns everything that its
 * functions return: blocks, nodes, values, strings and tensors are borrowed and valid as long as
 * the graph. Initializers are used in place, in the mapped file or in the application's bytes.
 *
 * Unless stated otherwise, functions that take an index return NULL if it is out of range, and all
 * functions except the loaders are thread-safe, do not allocate and cannot fail.
 *
 * Source: ONNX IR specification (onnx/docs/IR.md) and onnx.proto of release 1.23.
 */
#ifndef KELP_GRAPH_H_
#define KELP_GRAPH_H_

#include <kelp/allocator.h>
#include <kelp/status.h>
#include <kelp/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A model: main block, functions and metadata. */
typedef struct kelp_graph kelp_graph;

/* A list of nodes: the main graph, a subgraph or the body of a function. */
typedef struct kelp_block kelp_block;

/* One operator of a block. */
typedef struct kelp_node kelp_node;

/* An edge of the graph: the output of a node, an input of the block or a constant. */
typedef struct kelp_value kelp_value;

/* ---- Loading ---- */

/* Limits that protect a loader from malicious or defective models. Zeroed fields take the defaults
 * given in [brackets]. */
typedef struct kelp_graph_limits {
    size_t file_bytes;     /* size of the model file [16 GiB] */
    size_t nodes;          /* number of nodes in all blocks [4 Mi] */
    uint32_t depth;        /* nesting of subgraphs and of protobuf messages [64] */
    size_t external_bytes; /* total size of external data [256 GiB] */
    /* Newest accepted version of ai.onnx [the newest that Kelp implements]. Operators of later
     * versions are checked against the newest known schema and run by whichever provider supports
     * them. */
    int64_t newest_onnx;
} kelp_graph_limits;

/* Loads an ONNX ModelProto from a file. The file is mapped and must not be modified while the
 * graph exists. External data is resolved relative to the directory of the file; if both are
 * symbolic links, it may be in the directory of the file that `path` leads to. `limits` may be
 * NULL. The caller releases `*out`. Fails with
 * - NOT_FOUND or PERMISSION_DENIED: a file cannot be opened, or external data is outside the
 *   directory;
 * - INVALID_ARGUMENT: the model is malformed (names file and field) or invalid (names the node);
 * - RESOURCE_EXHAUSTED: a limit is exceeded;
 * - UNIMPLEMENTED: the model needs a newer version of ai.onnx than `newest_onnx`. */
KELP_API kelp_status *kelp_graph_load_file(kelp_allocator allocator, const char *path,
                                           const kelp_graph_limits *limits,
                                           kelp_graph **out) KELP_MUST_USE;

/* Loads an ONNX ModelProto from memory. `data` is borrowed until the last reference to the graph
 * is dropped; then `release(userp)` is called, and also if this function fails (`release` may be
 * NULL). `label` names the model in error messages. External data is resolved relative to
 * `directory`; if it is NULL, a model with external data is rejected. Otherwise the same as
 * kelp_graph_load_file. */
KELP_API kelp_status *kelp_graph_load_bytes(kelp_allocator allocator, const void *data,
                                            size_t size_bytes, const char *label,
                                            const char *directory, void (*release)(void *userp),
                                            void *userp, const kelp_graph_limits *limits,
                                            kelp_graph **out) KELP_MUST_USE;

/* Adds a reference and returns `graph`. */
KELP_API kelp_graph *kelp_graph_retain(kelp_graph *graph);

/* Drops a reference. NULL is allowed. */
KELP_API void kelp_graph_release(kelp_graph *graph);

/* ---- Model ---- */

/* Properties of a model. Missing strings are "". */
typedef struct kelp_graph_info {
    const char *label;            /* path or label that the model was loaded from */
    const char *producer_name;    /* tool that wrote the model */
    const char *producer_version; /* version of that tool */
    const char *domain;           /* namespace of the model */
    const char *doc;              /* documentation */
    const char *graph_name;       /* name of the main graph */
    int64_t ir_version;           /* version of the ONNX IR */
    int64_t model_version;        /* version of the model */
    size_t node_count;            /* number of nodes in all blocks, functions included */
    size_t parameter_count;       /* number of elements of all initializers */
    size_t parameter_bytes;       /* bytes of all initializers */
    size_t metadata_count;        /* number of metadata entries */
} kelp_graph_info;

/* Returns the properties of the model. */
KELP_API kelp_graph_info kelp_graph_get_info(const kelp_graph *graph);

/* Gets a metadata entry. `index` must be less than `metadata_count`. */
KELP_API void kelp_graph_metadata(const kelp_graph *graph, size_t index, const char **out_key,
                                  const char **out_value);

/* Returns the number of imported opsets. */
KELP_API size_t kelp_graph_opset_count(const kelp_graph *graph);

/* Gets an imported opset. `index` must be less than kelp_graph_opset_count. The domain of ai.onnx
 * is "". */
KELP_API void kelp_graph_opset(const kelp_graph *graph, size_t index, const char **out_domain,
                               int64_t *out_version);

/* Returns the imported version of a domain, or 0 if the model does not import it. "ai.onnx" and ""
 * are the same domain. */
KELP_API int64_t kelp_graph_opset_version(const kelp_graph *graph, const char *domain);

/* Returns the main block. */
KELP_API const kelp_block *kelp_graph_main(const kelp_graph *graph);

/* Returns the number of model-local functions. */
KELP_API size_t kelp_graph_function_count(const kelp_graph *graph);

/* Returns the body of a model-local function. */
KELP_API const kelp_block *kelp_graph_function(const kelp_graph *graph, size_t index);

/* ---- Blocks ----
 *
 * Nodes are in topological order: every value is produced before it is used. */

/* Returns the name of the graph, or "domain::name" for a function. */
KELP_API const char *kelp_block_name(const kelp_block *block);

/* Returns the number of nodes, without those of nested blocks. */
KELP_API size_t kelp_block_node_count(const kelp_block *block);

/* Returns a node. */
KELP_API const kelp_node *kelp_block_node(const kelp_block *block, size_t index);

/* Returns the number of inputs, initializers excluded. */
KELP_API size_t kelp_block_input_count(const kelp_block *block);

/* Returns an input. */
KELP_API const kelp_value *kelp_block_input(const kelp_block *block, size_t index);

/* Returns the number of outputs. */
KELP_API size_t kelp_block_output_count(const kelp_block *block);

/* Returns an output. */
KELP_API const kelp_value *kelp_block_output(const kelp_block *block, size_t index);

/* ---- Values ---- */

/* Kind of a value. */
typedef enum kelp_value_kind {
    KELP_VALUE_UNKNOWN = 0,  /* not declared and not inferred */
    KELP_VALUE_TENSOR = 1,   /* dense tensor */
    KELP_VALUE_SEQUENCE = 2, /* sequence */
    KELP_VALUE_OPTIONAL = 3, /* optional */
    KELP_VALUE_MAP = 4,      /* map */
    KELP_VALUE_SPARSE = 5    /* sparse tensor */
} kelp_value_kind;

/* Returns the name, unique within the block. */
KELP_API const char *kelp_value_name(const kelp_value *value);

/* Returns the kind. */
KELP_API kelp_value_kind kelp_value_kind_of(const kelp_value *value);

/* Returns the element type, that of the innermost tensor for sequences and optionals, or
 * KELP_DTYPE_INVALID if unknown. */
KELP_API kelp_dtype kelp_value_dtype(const kelp_value *value);

/* Returns the number of dimensions, or -1 if unknown. */
KELP_API int32_t kelp_value_rank(const kelp_value *value);

/* Returns a dimension, or -1 if it is dynamic, unknown or out of range. `out_symbol` (may be NULL)
 * receives its name, such as "batch", or NULL. */
KELP_API int64_t kelp_value_dim(const kelp_value *value, int32_t axis, const char **out_symbol);

/* Returns the constant that the value holds (initializer, Constant node or folded result), or
 * NULL. Its data may be misaligned for its element type. */
KELP_API const kelp_tensor *kelp_value_constant(const kelp_value *value);

/* ---- Nodes ---- */

/* Returns the name, which may be "" and need not be unique. */
KELP_API const char *kelp_node_name(const kelp_node *node);

/* Returns the operator's name, such as "Conv". */
KELP_API const char *kelp_node_op_type(const kelp_node *node);

/* Returns the operator's domain; "" is ai.onnx. */
KELP_API const char *kelp_node_domain(const kelp_node *node);

/* Returns the version of the operator's domain that applies to the node. */
KELP_API int64_t kelp_node_opset_version(const kelp_node *node);

/* Returns the number of inputs, omitted ones included, trailing ones excluded. */
KELP_API size_t kelp_node_input_count(const kelp_node *node);

/* Returns an input, or NULL if it is omitted. */
KELP_API const kelp_value *kelp_node_input(const kelp_node *node, size_t index);

/* Returns the number of outputs, omitted ones included, trailing ones excluded. */
KELP_API size_t kelp_node_output_count(const kelp_node *node);

/* Returns an output, or NULL if it is omitted. */
KELP_API const kelp_value *kelp_node_output(const kelp_node *node, size_t index);

/* ---- Attributes ----
 *
 * The loader rejects attributes whose type does not match the operator's schema. A reader returns
 * its fallback if the attribute is absent or of another type. */

/* Type of an attribute. Source: onnx.AttributeProto.AttributeType. */
typedef enum kelp_attr_type {
    KELP_ATTR_NONE = 0,            /* no such attribute */
    KELP_ATTR_FLOAT = 1,           /* float32 */
    KELP_ATTR_INT = 2,             /* int64 */
    KELP_ATTR_STRING = 3,          /* bytes */
    KELP_ATTR_TENSOR = 4,          /* tensor */
    KELP_ATTR_GRAPH = 5,           /* block */
    KELP_ATTR_FLOATS = 6,          /* list of float32 */
    KELP_ATTR_INTS = 7,            /* list of int64 */
    KELP_ATTR_STRINGS = 8,         /* list of bytes */
    KELP_ATTR_TENSORS = 9,         /* list of tensors */
    KELP_ATTR_GRAPHS = 10,         /* list of blocks */
    KELP_ATTR_SPARSE_TENSOR = 11,  /* sparse tensor */
    KELP_ATTR_SPARSE_TENSORS = 12, /* list of sparse tensors */
    KELP_ATTR_TYPE_PROTO = 13,     /* type description */
    KELP_ATTR_TYPE_PROTOS = 14     /* list of type descriptions */
} kelp_attr_type;

/* Returns the type of an attribute, or KELP_ATTR_NONE if it is absent. */
KELP_API kelp_attr_type kelp_node_attr_type(const kelp_node *node, const char *name);

/* Returns the number of attributes. */
KELP_API size_t kelp_node_attr_count(const kelp_node *node);

/* Returns the name of an attribute. */
KELP_API const char *kelp_node_attr_name(const kelp_node *node, size_t index);

/* Returns an integer, or `fallback`. */
KELP_API int64_t kelp_node_attr_i64(const kelp_node *node, const char *name, int64_t fallback);

/* Returns a float, or `fallback`. */
KELP_API float kelp_node_attr_f32(const kelp_node *node, const char *name, float fallback);

/* Returns a string terminated by NUL, or `fallback`. `out_length` (may be NULL) receives its
 * length, which counts NUL bytes inside. */
KELP_API const char *kelp_node_attr_string(const kelp_node *node, const char *name,
                                           const char *fallback, size_t *out_length);

/* Returns the number of integers of a list and sets `*out` to them; 0 and NULL if absent. */
KELP_API size_t kelp_node_attr_i64s(const kelp_node *node, const char *name, const int64_t **out);

/* Returns the number of floats of a list and sets `*out` to them; 0 and NULL if absent. */
KELP_API size_t kelp_node_attr_f32s(const kelp_node *node, const char *name, const float **out);

/* Returns the number of strings of a list and sets `*out` to them; 0 and NULL if absent. */
KELP_API size_t kelp_node_attr_strings(const kelp_node *node, const char *name,
                                       const kelp_string **out);

/* Returns a tensor, or NULL. */
KELP_API const kelp_tensor *kelp_node_attr_tensor(const kelp_node *node, const char *name);

/* Returns a subgraph, or NULL. */
KELP_API const kelp_block *kelp_node_attr_block(const kelp_node *node, const char *name);

/* ---- Single nodes ----
 *
 * A host that runs operators one by one (kelp_opset_dispatch) describes each as a graph of one
 * node. */

/* An attribute of a node. Only the fields of its type are read. */
typedef struct kelp_node_attribute {
    const char *name;           /* name */
    kelp_attr_type type;        /* INT, FLOAT, STRING, INTS, FLOATS, STRINGS or TENSOR */
    int64_t i;                  /* INT */
    float f;                    /* FLOAT */
    kelp_string s;              /* STRING */
    size_t count;               /* number of items of a list */
    const int64_t *ints;        /* INTS */
    const float *floats;        /* FLOATS */
    const kelp_string *strings; /* STRINGS */
    const kelp_tensor *tensor;  /* TENSOR, compact and in host memory */
} kelp_node_attribute;

/* Description of a node. */
typedef struct kelp_node_desc {
    uint32_t struct_size; /* sizeof(kelp_node_desc) */
    const char *domain;   /* domain of the operator; NULL or "" is ai.onnx */
    const char *name;     /* name of the operator */
    int64_t version;      /* version of the domain */
    /* types and shapes of the inputs, NULL for omitted ones; their data is not read */
    const kelp_tensor *const *inputs;
    size_t input_count;                    /* number of inputs, omitted ones included */
    size_t output_count;                   /* number of outputs */
    const kelp_node_attribute *attributes; /* attributes */
    size_t attribute_count;                /* number of attributes */
} kelp_node_desc;

/* Creates a graph with one node, the first of its main block. Copies everything that `desc` refers
 * to. `limits` may be NULL; use kelp_runtime_graph_limits for operators of plug-in libraries. The
 * caller releases `*out`. Fails as kelp_graph_load_bytes does: INVALID_ARGUMENT if the description
 * is incomplete or does not match the schema of an ONNX operator. */
KELP_API kelp_status *kelp_graph_create_node(kelp_allocator allocator, const kelp_node_desc *desc,
                                             const kelp_graph_limits *limits,
                                             kelp_graph **out) KELP_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
