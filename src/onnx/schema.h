/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas of ONNX operators, and checks of nodes against them. Thread-safe. Source:
 * onnx/docs/Operators.md, as extracted in schemas_data.c. */
#ifndef KELP_ONNX_SCHEMA_H_
#define KELP_ONNX_SCHEMA_H_

#include "onnx/model.h"
#include "onnx/schema_table.h"

/* The index of an operator without a schema. */
#define KELP_ONNX_NO_SCHEMA UINT16_MAX

/* Returns the schema in force at `version` of the operator's domain, or NULL. `newest` is the index
 * of the operator's newest schema (onnx/schema_index.h). */
const kelp_onnx_schema *kelp_onnx_schema_at(uint16_t newest, int64_t version);

/* Returns the newest known version of a domain; 0 for an unknown domain. */
int64_t kelp_onnx_newest(const char *domain);

/* Returns the parameter of an input or output; the last one if it is variadic. NULL if `index` is
 * out of range. */
const kelp_onnx_param *kelp_onnx_input_param(const kelp_onnx_schema *schema, size_t index);
const kelp_onnx_param *kelp_onnx_output_param(const kelp_onnx_schema *schema, size_t index);
const kelp_onnx_type_set *kelp_onnx_param_types(const kelp_onnx_schema *schema,
                                                const kelp_onnx_param *param);

static inline const char *kelp_onnx_text(uint16_t offset) {
    return kelp_onnx_strings + offset;
}

/* Returns a static name such as "float", "ints" or "graph". */
const char *kelp_attr_type_name(kelp_attr_type type);

/* Checks the number of inputs and outputs and that attributes are known, of the right type and
 * complete. Fails with INVALID_ARGUMENT and names file, graph and node. */
kelp_status *kelp_onnx_check_node(const char *label, const char *graph_name,
                                  const kelp_onnx_node *node,
                                  const kelp_onnx_schema *schema) KELP_MUST_USE;

#endif
