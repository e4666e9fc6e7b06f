/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a node with a signature: attributes, then inputs, then outputs. */
#include "graph/signature.h"

#include "base/assert.h"
#include "onnx/schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

KELP_PRINTF(2, 3)
static bool problem(kelp_signature_problem *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(out->text, sizeof out->text, format, args);
    va_end(args);
    return false;
}

/* Puts the name of the part that does not match before the problem. */
KELP_PRINTF(2, 3)
static bool name_problem(kelp_signature_problem *inout, const char *format, ...) {
    kelp_signature_problem named;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(named.text, sizeof named.text, format, args);
    va_end(args);
    if (length >= 0 && (size_t)length < sizeof named.text)
        snprintf(named.text + length, sizeof named.text - (size_t)length, ": %.300s", inout->text);
    *inout = named;
    return false;
}

/* ---- parameters of a node ---- */
/* Returns the parameter at position `index` of the inputs, or of the outputs. */
static int32_t param_at(const kelp_signature *s, size_t index, kelp_param_direction other) {
    for (int32_t i = 0; i < s->count; i++) {
        const kelp_signature_param *p = &s->params[i];
        if (p->kind != KELP_ARG_TENSOR || p->direction == other)
            continue;
        if (index == 0 || p->variadic)
            return i;
        index--;
    }
    return -1;
}

int32_t kelp_signature_input(const kelp_signature *signature, size_t index) {
    return param_at(signature, index, KELP_PARAM_OUT);
}

int32_t kelp_signature_output(const kelp_signature *signature, size_t index) {
    return param_at(signature, index, KELP_PARAM_IN);
}

/* Returns the maximum number of inputs or outputs; SIZE_MAX: any number. */
static size_t most_tensors(const kelp_signature *s, kelp_param_direction other) {
    size_t count = 0;
    for (int32_t i = 0; i < s->count; i++) {
        const kelp_signature_param *p = &s->params[i];
        if (p->kind == KELP_ARG_TENSOR && p->direction != other)
            count = p->variadic ? SIZE_MAX : count + 1;
    }
    return count;
}

/* ---- attributes ---- */
static bool check_integer(const kelp_signature *s, int32_t index, const kelp_attr *attr,
                          kelp_signature_facts *facts, kelp_signature_problem *out) {
    if (attr->ref != NULL) /* its value is that of an attribute of the function's node */
        return true;
    return kelp_signature_learn_integer(s, index, attr->i, facts, out) ||
           name_problem(out, "attribute '%s'", attr->name);
}

/* Returns true if an input determines the dimension that the integer parameter is named after. */
static bool has_dimension(const kelp_signature *s, const kelp_signature_param *integer) {
    for (int32_t i = 0; integer->symbol >= 0 && i < s->count; i++) {
        const kelp_signature_param *p = &s->params[i];
        if (p->kind != KELP_ARG_TENSOR || p->direction == KELP_PARAM_OUT || p->optional)
            continue;
        for (int32_t k = 0; k < p->dim_count; k++)
            if (p->dims[k] == -2 - integer->symbol)
                return true;
    }
    return false;
}

static bool check_parameter_attribute(const kelp_node *node, const kelp_signature *s, int32_t index,
                                      kelp_signature_facts *facts, kelp_signature_problem *out) {
    const kelp_signature_param *p = &s->params[index];
    const kelp_attr *attr = kelp_node_find_attr(node, p->name);
    if (attr == NULL)
        return p->optional || has_dimension(s, p) ||
               problem(out, "attribute '%s' is missing: expected %s", p->name,
                       kelp_attr_type_name(p->attr));
    if (attr->type != p->attr)
        return problem(out, "attribute '%s' has the wrong type: expected %s, found %s", p->name,
                       kelp_attr_type_name(p->attr), kelp_attr_type_name(attr->type));
    return p->kind != KELP_ARG_INT || check_integer(s, index, attr, facts, out);
}

static bool is_declared(const kelp_signature *s, const char *name) {
    for (int32_t i = 0; i < s->count; i++)
        if (s->params[i].kind != KELP_ARG_TENSOR && strcmp(s->params[i].name, name) == 0)
            return true;
    return false;
}

static bool check_attributes(const kelp_node *node, const kelp_signature *s,
                             kelp_signature_facts *facts, kelp_signature_problem *out) {
    for (int32_t i = 0; i < s->count; i++)
        if (s->params[i].kind != KELP_ARG_TENSOR &&
            !check_parameter_attribute(node, s, i, facts, out))
            return false;
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        if (!is_declared(s, attr->name) && strcmp(attr->name, KELP_CAPTURES_ATTRIBUTE) != 0)
            return problem(out, "attribute '%s' is not in the operator's signature", attr->name);
    return true;
}

/* ---- tensors ---- */
static bool check_kind(const kelp_value *value, kelp_signature_problem *out) {
    static const char *const names[] = {[KELP_VALUE_SEQUENCE] = "a sequence",
                                        [KELP_VALUE_OPTIONAL] = "an optional",
                                        [KELP_VALUE_MAP] = "a map",
                                        [KELP_VALUE_SPARSE] = "a sparse tensor"};
    return value->kind == KELP_VALUE_UNKNOWN || value->kind == KELP_VALUE_TENSOR ||
           problem(out, "expected a tensor, found %s", names[value->kind]);
}

static void view_of(const kelp_value *value, kelp_signature_view *out) {
    out->dtype = value->dtype;
    out->rank = value->rank;
    for (int32_t i = 0; i < value->rank; i++) {
        out->shape[i] = value->shape[i];
        out->symbols[i] = value->symbols[i];
    }
}

static bool check_count(size_t found, size_t most, const char *what, kelp_signature_problem *out) {
    return found <= most || problem(out, "it has %zu %s: expected %s%zu", found, what,
                                    most > 0 ? "at most " : "", most);
}

/* Returns true if a required parameter has its tensor. */
static bool is_present(const kelp_signature_param *p, bool present, size_t at, const char *what,
                       kelp_signature_problem *out) {
    return present || p->optional || problem(out, "%s %zu ('%s') is missing", what, at, p->name);
}

static bool check_inputs(const kelp_node *node, const kelp_signature *s,
                         kelp_signature_facts *facts, kelp_signature_problem *out) {
    size_t count = kelp_node_first_capture(node);
    kelp_signature_view view;
    if (!check_count(count, most_tensors(s, KELP_PARAM_OUT), "inputs", out))
        return false;
    for (size_t at = 0; at < count || kelp_signature_input(s, at) >= 0; at++) {
        int32_t index = kelp_signature_input(s, at);
        const kelp_signature_param *p = &s->params[index];
        const kelp_value *value = at < count ? node->inputs[at] : NULL;
        bool repeated = at > 0 && kelp_signature_input(s, at - 1) == index;
        if (!repeated && !is_present(p, value != NULL, at, "input", out))
            return false;
        if (value == NULL && p->variadic && at >= count)
            break;
        if (value == NULL && p->variadic && !p->optional)
            return problem(out, "input %zu ('%s') is missing", at, p->name);
        if (value == NULL)
            continue;
        view_of(value, &view);
        if (!check_kind(value, out) || !kelp_signature_learn(s, index, &view, facts, out))
            return name_problem(out, "input %zu ('%s', value '%s')", at, p->name, value->name);
    }
    return true;
}

/* Checks the types of outputs, but not their shapes: exporters declare those of one example. */
static bool check_outputs(const kelp_node *node, const kelp_signature *s,
                          const kelp_signature_facts *facts, kelp_signature_problem *out) {
    if (!check_count(node->output_count, most_tensors(s, KELP_PARAM_IN), "outputs", out))
        return false;
    for (size_t at = 0; at < node->output_count || kelp_signature_output(s, at) >= 0; at++) {
        int32_t index = kelp_signature_output(s, at);
        const kelp_signature_param *p = &s->params[index];
        const kelp_value *value = at < node->output_count ? node->outputs[at] : NULL;
        bool repeated = at > 0 && kelp_signature_output(s, at - 1) == index;
        if (!repeated && !is_present(p, value != NULL, at, "output", out))
            return false;
        if (value == NULL && p->variadic && at >= node->output_count)
            break;
        if (value == NULL)
            continue;
        kelp_signature_facts copy = *facts;
        kelp_signature_view view = {.dtype = value->dtype, .rank = -1};
        if (!check_kind(value, out) || !kelp_signature_learn(s, index, &view, &copy, out))
            return name_problem(out, "output %zu ('%s', value '%s')", at, p->name, value->name);
    }
    return true;
}

bool kelp_node_matches(const kelp_node *node, const kelp_signature *signature,
                       kelp_signature_facts *out_facts, kelp_signature_problem *out_problem) {
    kelp_signature_facts_init(signature, out_facts);
    return check_attributes(node, signature, out_facts, out_problem) &&
           check_inputs(node, signature, out_facts, out_problem) &&
           check_outputs(node, signature, out_facts, out_problem);
}
