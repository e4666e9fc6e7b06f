/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of type and shape inference. One thread. */
#ifndef KELP_GRAPH_INFER_INFER_H_
#define KELP_GRAPH_INFER_INFER_H_

#include "graph/signature.h"
#include "onnx/schema.h"

/* A shape under construction. Rank -1 is unknown; -1 is a dynamic dimension, with or without a
 * name. */
typedef struct kelp_dims {
    int32_t rank;
    int64_t shape[KELP_MAX_RANK];
    const char *symbols[KELP_MAX_RANK];
} kelp_dims;

/* The elements of a small integer vector or scalar, some of which are known before a run. Shapes
 * are computed from these. */
typedef struct kelp_content {
    int32_t rank; /* 0 or 1 */
    size_t count;
    struct {
        bool known;
        int64_t value;
        const char *symbol; /* name of a dynamic dimension, or NULL */
    } items[KELP_MAX_RANK];
} kelp_content;

/* The state of inference in one block; `parent` is that of the enclosing block. */
typedef struct kelp_infer {
    const struct kelp_infer *parent;
    kelp_block *block;
    kelp_arena *arena;                 /* freed when inference ends */
    kelp_content **contents;           /* by value id; NULL where unknown */
    kelp_signature_of_fn signature_of; /* of operators without a schema; NULL: none */
    void *userp;
} kelp_infer;

/* The arguments of an operator's shape function. */
typedef struct kelp_infer_call {
    const kelp_infer *infer;
    const kelp_node *node;
    int64_t version;   /* opset version that introduced this form of the operator */
    size_t output;     /* index of the output whose shape is computed */
    char problem[192]; /* set when the inputs are inconsistent */
} kelp_infer_call;

/* Computes a shape; false when it is not known, or `problem` is set. */
typedef bool (*kelp_infer_fn)(kelp_infer_call *call, kelp_dims *out);

/* Computes the elements of output 0; false when they are not known. */
typedef bool (*kelp_content_fn)(const kelp_infer *infer, const kelp_node *node, kelp_content *out);

/* The source of the type of an output that the type variables of the schema do not determine. */
typedef enum kelp_type_source {
    KELP_TYPE_SCHEMA,             /* none */
    KELP_TYPE_ATTRIBUTE,          /* the type in the attribute, or the type `fallback` */
    KELP_TYPE_ATTRIBUTE_OR_INPUT, /* the type in the attribute, or that of input `fallback` */
    KELP_TYPE_VALUE,              /* the tensor in attribute 'value', or the type `fallback` */
    KELP_TYPE_INPUT,              /* input `fallback` */
    KELP_TYPE_ZERO_POINT,         /* QuantizeLinear's: the attribute, the zero point, or uint8 */
    KELP_TYPE_CONSTANT            /* the attribute that holds a Constant's value */
} kelp_type_source;

/* A rule for the type of an output. */
typedef struct kelp_type_rule {
    kelp_type_source source;
    const char *attribute; /* NULL: none */
    int fallback;
} kelp_type_rule;

/* How the outputs of an operator follow from its inputs. */
typedef struct kelp_infer_rule {
    kelp_infer_fn shape;     /* NULL: none */
    kelp_content_fn content; /* NULL: none */
    kelp_type_rule type;
    bool each_output; /* `shape` is called for every output; otherwise for the first only */
} kelp_infer_rule;

/* The rules that operators.inc names. */
#define OPERATOR(domain, name, since, kernel, variant, infer, cost, gradient) \
    extern const kelp_infer_rule kelp_rule_##infer;
#include "operator/operators.inc"

/* Creates the status of a failure at a node; the message names the model, the node and the graph.
 */
#define KELP_INFER_ERROR(node, format, ...)                                        \
    KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: node '%s' (%s) in graph '%s': " format, \
               (node)->block->graph->info.label, (node)->name, (node)->op->name,   \
               (node)->block->name, __VA_ARGS__)

/* ---- types (type.c) ---- */
/* Checks the inputs' types against the schema, and sets the outputs' types. */
kelp_status *kelp_infer_types(kelp_node *node, const kelp_onnx_schema *schema,
                              const kelp_type_rule *type) KELP_MUST_USE;
/* Sets the type of a value; INVALID_ARGUMENT if a different type is declared. INVALID and UNKNOWN
 * leave the value as it is. */
kelp_status *kelp_infer_set_type(const kelp_node *node, kelp_value *value, kelp_value_kind kind,
                                 kelp_dtype dtype) KELP_MUST_USE;

/* ---- contents (content.c) ---- */
/* Gets the known elements of a value: of a constant, or as kelp_infer_note_content stored them. */
bool kelp_infer_content(const kelp_infer *infer, const kelp_value *value, kelp_content *out);
/* Gets the elements if all are known; false otherwise. */
bool kelp_infer_i64s(const kelp_infer *infer, const kelp_value *value, int64_t *out,
                     size_t *out_count);
/* Stores the contents of the node's first output if `rule` can compute them. `rule` may be NULL. */
kelp_status *kelp_infer_note_content(kelp_infer *infer, const kelp_node *node,
                                     kelp_content_fn rule) KELP_MUST_USE;
/* Computes the elements of output 0 of one operator; see kelp_content_fn. */
bool kelp_content_shape(const kelp_infer *infer, const kelp_node *node, kelp_content *out);
bool kelp_content_gather(const kelp_infer *infer, const kelp_node *node, kelp_content *out);
bool kelp_content_concat(const kelp_infer *infer, const kelp_node *node, kelp_content *out);
bool kelp_content_slice(const kelp_infer *infer, const kelp_node *node, kelp_content *out);
bool kelp_content_same(const kelp_infer *infer, const kelp_node *node, kelp_content *out);
bool kelp_content_cast(const kelp_infer *infer, const kelp_node *node, kelp_content *out);
bool kelp_content_unsqueeze(const kelp_infer *infer, const kelp_node *node, kelp_content *out);
bool kelp_content_squeeze(const kelp_infer *infer, const kelp_node *node, kelp_content *out);
bool kelp_content_reshape(const kelp_infer *infer, const kelp_node *node, kelp_content *out);
bool kelp_content_add(const kelp_infer *infer, const kelp_node *node, kelp_content *out);
bool kelp_content_subtract(const kelp_infer *infer, const kelp_node *node, kelp_content *out);
bool kelp_content_multiply(const kelp_infer *infer, const kelp_node *node, kelp_content *out);
bool kelp_content_divide(const kelp_infer *infer, const kelp_node *node, kelp_content *out);
bool kelp_content_constant(const kelp_infer *infer, const kelp_node *node, kelp_content *out);

/* ---- helpers of shape functions (shape.c) ---- */
/* Sets the problem and returns false, for use in a return statement. */
bool kelp_infer_problem(kelp_infer_call *call, const char *format, ...) KELP_PRINTF(2, 3);
/* Gets the shape of an input; false if its rank is not known. */
bool kelp_dims_load(const kelp_node *node, size_t input, kelp_dims *out);
/* Copies one dimension with its name. */
void kelp_dims_copy(kelp_dims *to, int32_t at, const kelp_dims *from, int32_t axis);
/* Sets one dimension, without a name; negative if dynamic. */
void kelp_dims_set(kelp_dims *to, int32_t at, int64_t dimension);
/* Broadcasts `to` with `other` as NumPy does; sets the problem if that is impossible. */
bool kelp_dims_broadcast(kelp_infer_call *call, kelp_dims *to, const kelp_dims *other);
/* Converts a negative axis to the equivalent positive one; sets the problem when it is out of
 * range. */
bool kelp_infer_axis(kelp_infer_call *call, int64_t *inout_axis, int32_t rank);
/* Gets attribute `name`, or else the elements of input `input`; false when they are not known. An
 * absent attribute or input has count 0. */
bool kelp_infer_list(const kelp_infer_call *call, const char *name, size_t input, int64_t *out,
                     size_t *out_count);

#endif
