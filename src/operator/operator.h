/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operator records. Each row of operators.inc has one record, so that two nodes have the same
 * operator exactly when their records are the same pointer. Records are constant and may be read
 * from any thread.
 */
#ifndef KELP_OPERATOR_OPERATOR_H_
#define KELP_OPERATOR_OPERATOR_H_

#include "onnx/schema.h"

/* Operator ids: dense, in the order of the list. */
enum {
#define OPERATOR_DOMAIN(domain, name, version) \
    KELP_OPERATOR_FIRST_##domain, KELP_OPERATOR_BEFORE_##domain = KELP_OPERATOR_FIRST_##domain - 1,
#define OPERATOR_DOMAIN_END(domain) \
    KELP_OPERATOR_END_##domain, KELP_OPERATOR_LAST_##domain = KELP_OPERATOR_END_##domain - 1,
#define OPERATOR(domain, name, since, kernel, variant, infer, cost, gradient) \
    KELP_OPERATOR_##domain##_##name,
#include "operator/operators.inc"
    KELP_OPERATOR_COUNT
};

/* An operator. */
typedef struct kelp_operator {
    const char *domain; /* "" is ai.onnx */
    const char *name;
    uint16_t id;     /* KELP_OPERATOR_COUNT for an operator that is not in the list */
    uint16_t schema; /* the newest schema, for kelp_onnx_schema_at; or KELP_ONNX_NO_SCHEMA */
} kelp_operator;

/* Records by id. Tables that modules build from the list have one more entry, for operators that
 * are not in the list, so that id is always a valid index. */
extern const kelp_operator kelp_operators[KELP_OPERATOR_COUNT];

/* Expands to the record of an operator of ai.onnx, com.microsoft, another domain, or of Kelp's own
 * fused operators: `node->op == KELP_OP(Conv)`. Does not compile if the list has no such row. */
#define KELP_OPERATOR(domain, name) (&kelp_operators[KELP_OPERATOR_##domain##_##name])
#define KELP_OP(name) KELP_OPERATOR(ONNX, name)
#define KELP_OP_MS(name) KELP_OPERATOR(MS, name)
#define KELP_OP_KELP(name) KELP_OPERATOR(KELP, name)

/* Finds a record by name; returns NULL for an operator that is not in the list. `domain` is empty
 * for ai.onnx. */
const kelp_operator *kelp_operator_find(kelp_str domain, kelp_str name);

/* Replaces an operator of com.microsoft, and its version, by that of ai.onnx with the same meaning,
 * if there is one. */
void kelp_operator_standard(const kelp_operator **inout_op, int64_t *inout_version);

/* Returns the schema of the operator at `version` of its domain, or NULL. */
static inline const kelp_onnx_schema *kelp_operator_schema(const kelp_operator *op,
                                                           int64_t version) {
    return kelp_onnx_schema_at(op->schema, version);
}

/* Returns true for operators of the domain ai.onnx. */
static inline bool kelp_operator_is_onnx(const kelp_operator *op) {
    return *op->domain == '\0';
}

#endif
