/* SPDX-License-Identifier: Apache-2.0 */
/* Finds schemas and checks nodes against them. */
#include "onnx/schema.h"

#include "base/assert.h"

#include <string.h>

const kelp_onnx_schema *kelp_onnx_schema_at(uint16_t newest, int64_t version) {
    if (newest == KELP_ONNX_NO_SCHEMA)
        return NULL;
    KELP_ASSERT(newest < kelp_onnx_schemas_count);
    const kelp_onnx_schema *first = &kelp_onnx_schemas[newest];
    const kelp_onnx_schema *end = &kelp_onnx_schemas[kelp_onnx_schemas_count];
    for (const kelp_onnx_schema *schema = first; schema < end; schema++) {
        if (schema->name != first->name || schema->domain != first->domain)
            return NULL;
        if (schema->since <= version)
            return schema;
    }
    return NULL;
}

int64_t kelp_onnx_newest(const char *domain) {
    for (size_t i = 0; i < kelp_onnx_domains_count; i++)
        if (strcmp(kelp_onnx_text(kelp_onnx_domains[i].name), domain) == 0)
            return kelp_onnx_domains[i].newest;
    return 0;
}

static const kelp_onnx_param *param_at(uint16_t first, size_t count, size_t index) {
    if (index < count)
        return &kelp_onnx_params[first + index];
    if (count == 0)
        return NULL;
    const kelp_onnx_param *last = &kelp_onnx_params[first + count - 1];
    return last->flags & KELP_ONNX_VARIADIC ? last : NULL;
}

const kelp_onnx_param *kelp_onnx_input_param(const kelp_onnx_schema *schema, size_t index) {
    return param_at(schema->inputs, schema->input_count, index);
}

const kelp_onnx_param *kelp_onnx_output_param(const kelp_onnx_schema *schema, size_t index) {
    return param_at(schema->outputs, schema->output_count, index);
}

const kelp_onnx_type_set *kelp_onnx_param_types(const kelp_onnx_schema *schema,
                                                const kelp_onnx_param *param) {
    KELP_ASSERT(param->type < schema->type_count);
    return &kelp_onnx_sets[kelp_onnx_types[schema->types + param->type]];
}

const char *kelp_attr_type_name(kelp_attr_type type) {
    static const char *const names[] = {"no value",       "float",   "int",    "string",
                                        "tensor",         "graph",   "floats", "ints",
                                        "strings",        "tensors", "graphs", "sparse tensor",
                                        "sparse tensors", "type",    "types"};
    size_t index = (size_t)type;
    return index < sizeof names / sizeof names[0] ? names[index] : "unknown type";
}

/* ---- nodes ---- */
typedef struct check {
    const char *label, *graph_name;
    const kelp_onnx_node *node;
} check;

#define NODE_ERROR(c, format, ...)                                                                 \
    KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: node '%.*s' (%.*s) in graph '%s': " format, (c)->label, \
               KELP_STR_ARG((c)->node->name), KELP_STR_ARG((c)->node->op_type), (c)->graph_name,   \
               __VA_ARGS__)

/* Returns the number of names without the empty ones at the end. */
static size_t count_named(const kelp_str *names, size_t count) {
    while (count > 0 && names[count - 1].length == 0)
        count--;
    return count;
}

/* Returns the first required input that is missing; the minimum count may include optional inputs.
 */
static size_t first_missing(const kelp_onnx_schema *schema, size_t count) {
    while (count < schema->min_inputs) {
        const kelp_onnx_param *param = kelp_onnx_input_param(schema, count);
        if (param == NULL || !(param->flags & KELP_ONNX_OPTIONAL))
            break;
        count++;
    }
    return count;
}

static kelp_status *check_inputs(const check *c, const kelp_onnx_schema *schema) {
    size_t count = count_named(c->node->inputs, c->node->input_count);
    size_t lacking = first_missing(schema, count);
    if (schema->max_inputs != 255 && count > schema->max_inputs)
        return NODE_ERROR(c, "expected at most %u inputs, found %zu", schema->max_inputs, count);
    if (lacking < schema->min_inputs) {
        const kelp_onnx_param *missing = kelp_onnx_input_param(schema, lacking);
        return NODE_ERROR(c, "expected %s%u inputs, found %zu: '%s' is missing",
                          schema->max_inputs == schema->min_inputs ? "" : "at least ",
                          schema->min_inputs, count, missing ? kelp_onnx_text(missing->name) : "");
    }
    for (size_t i = 0; i < count; i++) {
        const kelp_onnx_param *param = kelp_onnx_input_param(schema, i);
        if (c->node->inputs[i].length == 0 && param != NULL && param->flags == 0)
            return NODE_ERROR(c, "input %zu ('%s') is required but omitted", i,
                              kelp_onnx_text(param->name));
    }
    size_t results = count_named(c->node->outputs, c->node->output_count);
    if (schema->max_outputs != 255 && results > schema->max_outputs)
        return NODE_ERROR(c, "expected at most %u outputs, found %zu", schema->max_outputs,
                          results);
    return NULL;
}

static const kelp_onnx_attr *find_attr(const kelp_onnx_node *node, const char *name) {
    for (size_t i = 0; i < node->attr_count; i++)
        if (kelp_str_is(node->attrs[i].name, name))
            return &node->attrs[i];
    return NULL;
}

static const kelp_onnx_attr_schema *find_schema(const kelp_onnx_schema *schema, kelp_str name) {
    for (size_t i = 0; i < schema->attr_count; i++) {
        const kelp_onnx_attr_schema *attr = &kelp_onnx_attrs[schema->attrs + i];
        if (kelp_str_is(name, kelp_onnx_text(attr->name)))
            return attr;
    }
    return NULL;
}

kelp_status *kelp_onnx_check_node(const char *label, const char *graph_name,
                                  const kelp_onnx_node *node, const kelp_onnx_schema *schema) {
    check c = {label, graph_name, node};
    KELP_TRY(check_inputs(&c, schema));
    for (size_t i = 0; i < node->attr_count; i++) {
        const kelp_onnx_attr *attr = &node->attrs[i];
        const kelp_onnx_attr_schema *known = find_schema(schema, attr->name);
        if (known == NULL)
            return NODE_ERROR(&c, "attribute '%.*s' does not exist in this operator (version %u)",
                              KELP_STR_ARG(attr->name), schema->since);
        if (attr->type != (kelp_attr_type)known->type)
            return NODE_ERROR(
                &c, "attribute '%.*s': expected %s, found %s", KELP_STR_ARG(attr->name),
                kelp_attr_type_name((kelp_attr_type)known->type), kelp_attr_type_name(attr->type));
    }
    for (size_t i = 0; i < schema->attr_count; i++) {
        const kelp_onnx_attr_schema *attr = &kelp_onnx_attrs[schema->attrs + i];
        if ((attr->flags & KELP_ONNX_REQUIRED) &&
            find_attr(node, kelp_onnx_text(attr->name)) == NULL)
            return NODE_ERROR(&c, "attribute '%s' (%s) is required but missing",
                              kelp_onnx_text(attr->name),
                              kelp_attr_type_name((kelp_attr_type)attr->type));
    }
    return NULL;
}
