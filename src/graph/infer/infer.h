/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of type and shape inference. One thread. */
#ifndef KELP_GRAPH_INFER_INFER_H_
#define KELP_GRAPH_INFER_INFER_H_

#include "graph/ir.h"
#include "onnx/schema.h"

/* A shape in the making: rank -1 is unknown; an extent -1 is open, with or without a name. */
typedef struct kelp_dims {
    int32_t rank;
    int64_t shape[KELP_MAX_RANK];
    const char *symbols[KELP_MAX_RANK];
} kelp_dims;

/* The elements of a small integer vector or scalar, as far as they are known before anything runs:
 * shapes are computed with such. */
typedef struct kelp_content {
    int32_t rank; /* 0 or 1 */
    size_t count;
    struct {
        bool known;
        int64_t value;
        const char *symbol; /* of an extent that is not known, or NULL */
    } items[KELP_MAX_RANK];
} kelp_content;

/* One block being inferred; those around it are its parents. */
typedef struct kelp_infer {
    const struct kelp_infer *parent;
    kelp_block *block;
    kelp_arena *arena;       /* goes with the inference */
    kelp_content **contents; /* by value id; NULL items: not known */
} kelp_infer;

/* A question to an operator's shape function. */
typedef struct kelp_infer_call {
    const kelp_infer *infer;
    const kelp_node *node;
    int64_t version;   /* since which opset version the operator is as it is */
    size_t output;     /* which one is asked for */
    char problem[192]; /* set when the inputs contradict each other */
} kelp_infer_call;

/* false: not known, or a problem. */
typedef bool (*kelp_infer_fn)(kelp_infer_call *call, kelp_dims *out);

/* Computes the elements of output 0 from the inputs'; false when they are not known. */
typedef bool (*kelp_content_fn)(const kelp_infer *infer, const kelp_node *node, kelp_content *out);

/* Where the type of an output comes from that the schema's type variables leave open. */
typedef enum kelp_type_source {
    KELP_TYPE_SCHEMA,             /* from nowhere else */
    KELP_TYPE_ATTRIBUTE,          /* the type that the attribute names, or the type `fallback` */
    KELP_TYPE_ATTRIBUTE_OR_INPUT, /* the type that the attribute names, or that of input `fallback`
                                   */
    KELP_TYPE_VALUE,              /* the tensor in attribute 'value', or the type `fallback` */
    KELP_TYPE_INPUT,              /* input `fallback` */
    KELP_TYPE_ZERO_POINT,         /* QuantizeLinear's: the attribute, the zero point, or uint8 */
    KELP_TYPE_CONSTANT            /* the attribute that holds a Constant's value */
} kelp_type_source;

typedef struct kelp_type_rule {
    kelp_type_source source;
    const char *attribute; /* NULL: none */
    int fallback;
} kelp_type_rule;

/* How the outputs of an operator follow from its inputs. */
typedef struct kelp_infer_rule {
    kelp_infer_fn shape;     /* NULL: not known */
    kelp_content_fn content; /* NULL: not known */
    kelp_type_rule type;
    bool each_output; /* `shape` is called for every output; else for the first alone */
} kelp_infer_rule;

/* The rules that operators.inc names. */
#define OPERATOR(domain, name, since, kernel, variant, infer, cost, gradient) \
    extern const kelp_infer_rule kelp_rule_##infer;
#include "operator/operators.inc"

/* ---- types (type.c) ---- */
/* Checks the inputs' types against the schema, and sets the outputs' types. */
kelp_status *kelp_infer_types(kelp_node *node, const kelp_onnx_schema *schema,
                              const kelp_type_rule *type) KELP_MUST_USE;
/* Gives a value the type; INVALID_ARGUMENT when another is declared. INVALID and UNKNOWN say
 * nothing. */
kelp_status *kelp_infer_set_type(const kelp_node *node, kelp_value *value, kelp_value_kind kind,
                                 kelp_dtype dtype) KELP_MUST_USE;

/* ---- contents (content.c) ---- */
/* What is known of a value's elements: constants, Constant nodes, and what infer_contents found. */
bool kelp_infer_content(const kelp_infer *infer, const kelp_value *value, kelp_content *out);
/* All elements known: their values. */
bool kelp_infer_i64s(const kelp_infer *infer, const kelp_value *value, int64_t *out,
                     size_t *out_count);
/* Stores the contents of the node's first output if `rule` can compute them. `rule` may be NULL. */
kelp_status *kelp_infer_note_content(kelp_infer *infer, const kelp_node *node,
                                     kelp_content_fn rule) KELP_MUST_USE;
/* By operator, for the rules. */
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
/* Fills the problem; returns false, so that a rule can return it. */
bool kelp_infer_problem(kelp_infer_call *call, const char *format, ...) KELP_PRINTF(2, 3);
bool kelp_dims_load(const kelp_node *node, size_t input, kelp_dims *out);
void kelp_dims_copy(kelp_dims *to, int32_t at, const kelp_dims *from, int32_t axis);
void kelp_dims_set(kelp_dims *to, int32_t at, int64_t extent);
bool kelp_dims_broadcast(kelp_infer_call *call, kelp_dims *to, const kelp_dims *other);
/* Turns a negative axis positive; a problem when it is out of range. */
bool kelp_infer_axis(kelp_infer_call *call, int64_t *inout_axis, int32_t rank);
/* Attribute `name`, or else the contents of input `input`; false when they are not known. Absent:
 * count 0. */
bool kelp_infer_list(const kelp_infer_call *call, const char *name, size_t input, int64_t *out,
                     size_t *out_count);

#endif
