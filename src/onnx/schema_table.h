/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout of schemas_data.c: flat arrays that refer to each other by index and to strings by
 * offset, so that the table is read-only data without relocations.
 */
#ifndef KELP_ONNX_SCHEMA_TABLE_H_
#define KELP_ONNX_SCHEMA_TABLE_H_

#include <stddef.h>
#include <stdint.h>

/* Types that a type variable allows: bit n is data type n of onnx.TensorProto. */
typedef struct kelp_onnx_type_set {
    uint32_t tensors, sequences, optionals;
    uint8_t flags; /* KELP_ONNX_SET_* */
} kelp_onnx_type_set;
enum { KELP_ONNX_SET_MAP = 1, KELP_ONNX_SET_MAPS = 2, KELP_ONNX_SET_OPTIONAL_SEQUENCES = 4 };

typedef struct kelp_onnx_param {
    uint16_t name;
    uint8_t type; /* index into the schema's type variables */
    uint8_t flags;
} kelp_onnx_param;
enum { KELP_ONNX_OPTIONAL = 1, KELP_ONNX_VARIADIC = 2, KELP_ONNX_HETEROGENEOUS = 4 };

typedef struct kelp_onnx_attr_schema {
    uint16_t name;
    uint8_t type; /* kelp_attr_type */
    uint8_t flags;
} kelp_onnx_attr_schema;
enum { KELP_ONNX_REQUIRED = 1, KELP_ONNX_HAS_DEFAULT = 2 };

typedef struct kelp_onnx_schema {
    uint16_t domain, name;                  /* offset of a string */
    uint16_t inputs, outputs, attrs, types; /* index of the first input, output, … */
    uint8_t since;
    uint8_t input_count, output_count, attr_count, type_count;
    uint8_t min_inputs, max_inputs, min_outputs, max_outputs; /* 255: unlimited */
    uint8_t flags;
} kelp_onnx_schema;
enum { KELP_ONNX_DEPRECATED = 1, KELP_ONNX_FUNCTION = 2, KELP_ONNX_CONTEXT_FUNCTION = 4 };

typedef struct kelp_onnx_domain {
    uint16_t name;
    uint16_t newest; /* newest known version */
} kelp_onnx_domain;

extern const char kelp_onnx_strings[];
extern const kelp_onnx_type_set kelp_onnx_sets[];
extern const kelp_onnx_param kelp_onnx_params[];
extern const kelp_onnx_attr_schema kelp_onnx_attrs[];
extern const uint8_t kelp_onnx_types[]; /* index of a type set */
extern const kelp_onnx_domain kelp_onnx_domains[];
extern const size_t kelp_onnx_domains_count;
extern const kelp_onnx_schema
    kelp_onnx_schemas[]; /* sorted by domain, name and descending version */
extern const size_t kelp_onnx_schemas_count;

#endif
