/* SPDX-License-Identifier: Apache-2.0 */
/* What ONNX says of its operators (onnx/docs/Operators.md, by way of schemas_data.c), and nodes
 * held against it. Any thread. */
#ifndef KELP_ONNX_SCHEMA_H_
#define KELP_ONNX_SCHEMA_H_

#include "onnx/model.h"
#include "onnx/schema_table.h"

/* The schema in force at `version` of the domain ("" is ai.onnx), or NULL: a custom domain, or an
 * operator that this version has not. */
const kelp_onnx_schema *kelp_onnx_schema_find(const char *domain, const char *op_type,
                                              int64_t version);

/* The newest version of a domain that the table knows; 0 for a domain that it does not. */
int64_t kelp_onnx_newest(const char *domain);

/* The parameter of an input or output; the last one when it is variadic. NULL past the end. */
const kelp_onnx_param *kelp_onnx_input_param(const kelp_onnx_schema *schema, size_t index);
const kelp_onnx_param *kelp_onnx_output_param(const kelp_onnx_schema *schema, size_t index);
const kelp_onnx_type_set *kelp_onnx_param_types(const kelp_onnx_schema *schema,
                                                const kelp_onnx_param *param);

static inline const char *kelp_onnx_text(uint16_t offset) {
    return kelp_onnx_strings + offset;
}

/* "float", "ints", "graph" … */
const char *kelp_attr_type_name(kelp_attr_type type);

/* Number of inputs and outputs, attributes known, of the right type, and none missing:
 * INVALID_ARGUMENT that names file, graph and node. */
kelp_status *kelp_onnx_check_node(const char *label, const char *graph_name,
                                  const kelp_onnx_node *node,
                                  const kelp_onnx_schema *schema) KELP_MUST_USE;

#endif
