/* SPDX-License-Identifier: Apache-2.0 */
/* Infers element types: binds the type variables of the schema to the inputs' types. Rules give the
 * output types of the few operators whose schema does not determine them. */
#include "graph/infer/infer.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

/* Maximum number of type variables of a schema, including types that are spelled out. */
#define VARIABLES_MAX 16

typedef struct binding {
    kelp_value_kind kind;
    kelp_dtype dtype;
    const char *by; /* name of the first parameter of the type */
} binding;

static const char *kind_prefix(kelp_value_kind kind) {
    switch (kind) {
    case KELP_VALUE_SEQUENCE:
        return "sequence of ";
    case KELP_VALUE_OPTIONAL:
        return "optional ";
    case KELP_VALUE_MAP:
        return "map to ";
    case KELP_VALUE_SPARSE:
        return "sparse ";
    default:
        return "";
    }
}

kelp_status *kelp_infer_set_type(const kelp_node *node, kelp_value *value, kelp_value_kind kind,
                                 kelp_dtype dtype) {
    if (kind != KELP_VALUE_UNKNOWN && value->kind == KELP_VALUE_UNKNOWN)
        value->kind = kind;
    if (dtype == KELP_DTYPE_INVALID)
        return NULL;
    if (value->dtype == KELP_DTYPE_INVALID)
        value->dtype = dtype;
    if (value->dtype != dtype)
        return KELP_INFER_ERROR(node, "output '%s' is declared as %s: the operator returns %s",
                                value->name, kelp_dtype_name(value->dtype), kelp_dtype_name(dtype));
    return NULL;
}

static bool allows(const kelp_onnx_type_set *set, kelp_value_kind kind, kelp_dtype dtype) {
    uint32_t bit = dtype == KELP_DTYPE_INVALID ? UINT32_MAX : 1u << dtype;
    switch (kind) {
    case KELP_VALUE_TENSOR:
        return (set->tensors & bit) != 0;
    case KELP_VALUE_SEQUENCE:
        return (set->sequences & bit) != 0 || (set->flags & KELP_ONNX_SET_MAPS) != 0;
    case KELP_VALUE_OPTIONAL:
        return (set->optionals & bit) != 0 || (set->flags & KELP_ONNX_SET_OPTIONAL_SEQUENCES) != 0;
    case KELP_VALUE_MAP:
        return (set->flags & KELP_ONNX_SET_MAP) != 0;
    case KELP_VALUE_UNKNOWN:
    case KELP_VALUE_SPARSE:
        return true;
    }
    return true;
}

static kelp_status *wrong_type(const kelp_node *node, const kelp_onnx_schema *schema,
                               const kelp_onnx_param *param, const kelp_value *value) {
    uint32_t tensors = kelp_onnx_param_types(schema, param)->tensors;
    char types[512] = "", *at = types;
    for (int t = 0; t < 32; t++)
        if ((tensors >> t & 1u) != 0 && (size_t)(at - types) < sizeof types - 16)
            at += snprintf(at, 16, "%s%s", at == types ? "" : ", ", kelp_dtype_name((kelp_dtype)t));
    return KELP_INFER_ERROR(
        node, "input '%s' (%s) has the unsupported type %s%s: version %d supports %s",
        kelp_onnx_text(param->name), value->name, kind_prefix(value->kind),
        kelp_dtype_name(value->dtype), (int)schema->since, types[0] != '\0' ? types : "no tensors");
}

static kelp_status *bind_inputs(const kelp_node *node, const kelp_onnx_schema *schema,
                                binding *bound) {
    for (size_t i = 0; i < node->input_count; i++) {
        const kelp_value *value = node->inputs[i];
        const kelp_onnx_param *param = kelp_onnx_input_param(schema, i);
        if (value == NULL || param == NULL || param->type >= VARIABLES_MAX)
            continue;
        const char *name = kelp_onnx_text(param->name);
        if (!allows(kelp_onnx_param_types(schema, param), value->kind, value->dtype))
            return wrong_type(node, schema, param, value);
        if ((param->flags & KELP_ONNX_HETEROGENEOUS) || value->dtype == KELP_DTYPE_INVALID ||
            value->kind == KELP_VALUE_SPARSE)
            continue;
        binding *b = &bound[param->type];
        if (b->dtype == KELP_DTYPE_INVALID)
            *b = (binding){value->kind, value->dtype, name};
        else if (b->dtype != value->dtype)
            return KELP_INFER_ERROR(
                node, "input '%s' is %s, but '%s' is %s: expected the same type", name,
                kelp_dtype_name(value->dtype), b->by, kelp_dtype_name(b->dtype));
    }
    return NULL;
}

/* ---- rules without a shape ---- */
const kelp_infer_rule kelp_rule_bit_cast = {.type = {KELP_TYPE_ATTRIBUTE, "to", 0}};
const kelp_infer_rule kelp_rule_multinomial = {.type = {KELP_TYPE_ATTRIBUTE, "dtype", KELP_I32}};
const kelp_infer_rule kelp_rule_window_function = {
    .type = {KELP_TYPE_ATTRIBUTE, "output_datatype", KELP_F32}};
const kelp_infer_rule kelp_rule_sequence_empty = {.type = {KELP_TYPE_ATTRIBUTE, "dtype", KELP_F32}};
const kelp_infer_rule kelp_rule_element_type = {.type = {KELP_TYPE_INPUT, NULL, 0}};

static kelp_dtype input_dtype(const kelp_node *node, size_t index) {
    return index < node->input_count && node->inputs[index] != NULL ? node->inputs[index]->dtype
                                                                    : KELP_DTYPE_INVALID;
}

static kelp_dtype attribute_dtype(const kelp_node *node, const char *name) {
    int64_t number = kelp_node_attr_i64(node, name, 0);
    return number > 0 && number < KELP_DTYPE_COUNT ? (kelp_dtype)number : KELP_DTYPE_INVALID;
}

/* Returns the type of the attribute that holds the value of a Constant. */
static kelp_dtype constant_dtype(const kelp_node *node) {
    static const struct {
        const char *name;
        kelp_dtype dtype;
    } forms[] = {{"value_float", KELP_F32},     {"value_floats", KELP_F32},
                 {"value_int", KELP_I64},       {"value_ints", KELP_I64},
                 {"value_string", KELP_STRING}, {"value_strings", KELP_STRING}};
    const kelp_tensor *tensor = kelp_node_attr_tensor(node, "value");
    for (size_t i = 0; tensor == NULL && i < sizeof forms / sizeof forms[0]; i++)
        if (kelp_node_find_attr(node, forms[i].name) != NULL)
            return forms[i].dtype;
    return tensor != NULL ? tensor->dtype : KELP_DTYPE_INVALID;
}

/* Returns the type of outputs that no input determines; INVALID when it stays unknown. */
static kelp_dtype named_dtype(const kelp_node *node, const kelp_type_rule *rule) {
    kelp_dtype named =
        rule->attribute != NULL ? attribute_dtype(node, rule->attribute) : KELP_DTYPE_INVALID;
    const kelp_tensor *value = kelp_node_attr_tensor(node, "value");
    if (named != KELP_DTYPE_INVALID)
        return named;
    switch (rule->source) {
    case KELP_TYPE_ATTRIBUTE:
        return (kelp_dtype)rule->fallback;
    case KELP_TYPE_VALUE:
        return value != NULL ? value->dtype : (kelp_dtype)rule->fallback;
    case KELP_TYPE_ATTRIBUTE_OR_INPUT:
    case KELP_TYPE_INPUT:
        return input_dtype(node, (size_t)rule->fallback);
    case KELP_TYPE_ZERO_POINT:
        return node->input_count > 2 && node->inputs[2] != NULL ? input_dtype(node, 2) : KELP_U8;
    case KELP_TYPE_CONSTANT:
        return constant_dtype(node);
    case KELP_TYPE_SCHEMA:
        break;
    }
    return KELP_DTYPE_INVALID;
}

static kelp_value_kind only_kind(const kelp_onnx_type_set *set) {
    bool sequences = set->sequences != 0 || (set->flags & KELP_ONNX_SET_MAPS);
    bool optionals = set->optionals != 0 || (set->flags & KELP_ONNX_SET_OPTIONAL_SEQUENCES);
    int kinds =
        (set->tensors != 0) + sequences + optionals + ((set->flags & KELP_ONNX_SET_MAP) != 0);
    if (kinds != 1)
        return KELP_VALUE_UNKNOWN;
    return set->tensors ? KELP_VALUE_TENSOR
           : sequences  ? KELP_VALUE_SEQUENCE
           : optionals  ? KELP_VALUE_OPTIONAL
                        : KELP_VALUE_MAP;
}

static kelp_dtype only_dtype(const kelp_onnx_type_set *set) {
    uint32_t bits = set->tensors;
    bool one = bits != 0 && (bits & (bits - 1)) == 0 && set->sequences == 0 &&
               set->optionals == 0 && set->flags == 0;
    return one ? (kelp_dtype)__builtin_ctz(bits) : KELP_DTYPE_INVALID;
}

/* Returns true for If, Loop and Scan; infer.c infers their output types from their bodies. */
static bool has_blocks(const kelp_node *node) {
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        if (attr->blocks != NULL)
            return true;
    return false;
}

kelp_status *kelp_infer_types(kelp_node *node, const kelp_onnx_schema *schema,
                              const kelp_type_rule *type) {
    binding bound[VARIABLES_MAX] = {0};
    KELP_ASSERT(schema != NULL && type != NULL);
    KELP_TRY(bind_inputs(node, schema, bound));
    if (has_blocks(node))
        return NULL;
    kelp_dtype named = named_dtype(node, type);
    for (size_t i = 0; i < node->output_count; i++) {
        const kelp_onnx_param *param = kelp_onnx_output_param(schema, i);
        if (node->outputs[i] == NULL || param == NULL || param->type >= VARIABLES_MAX)
            continue;
        const kelp_onnx_type_set *set = kelp_onnx_param_types(schema, param);
        kelp_value_kind kind = only_kind(set);
        kelp_dtype dtype = only_dtype(set);
        if (dtype == KELP_DTYPE_INVALID)
            dtype = bound[param->type].dtype;
        if (dtype == KELP_DTYPE_INVALID)
            dtype = named;
        if (kind == KELP_VALUE_UNKNOWN)
            kind = bound[param->type].kind;
        KELP_TRY(kelp_infer_set_type(node, node->outputs[i], kind, dtype));
    }
    return NULL;
}
