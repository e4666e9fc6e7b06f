/* SPDX-License-Identifier: Apache-2.0 */
/* The operator records, and the search by name. */
#include "operator/operator.h"

#include "base/assert.h"
#include "base/checked.h"
#include "onnx/schema_index.h"

#include <string.h>

/* Schemas by domain. com.microsoft and Kelp's own domain have none. */
#define SCHEMA_ONNX(name) KELP_ONNX_SCHEMA_ONNX_##name
#define SCHEMA_ML(name) KELP_ONNX_SCHEMA_ML_##name
#define SCHEMA_PREVIEW(name) KELP_ONNX_SCHEMA_PREVIEW_##name
#define SCHEMA_TRAINING(name) KELP_ONNX_SCHEMA_TRAINING_##name
#define SCHEMA_MS(name) KELP_ONNX_NO_SCHEMA
#define SCHEMA_CONTRIB(name) KELP_ONNX_NO_SCHEMA
#define SCHEMA_EXTENSIONS(name) KELP_ONNX_NO_SCHEMA
#define SCHEMA_KELP(name) KELP_ONNX_NO_SCHEMA
#define SCHEMA_RUNTIME(name) KELP_ONNX_NO_SCHEMA
/* ONNX Runtime writes this operator in the domain ai.onnx, whose specification lacks it. */
#define KELP_ONNX_SCHEMA_ONNX_SimplifiedLayerNormalization KELP_ONNX_NO_SCHEMA

/* Names of the domains, as addresses that constant records can hold. */
#define OPERATOR_DOMAIN(domain, text, version) static const char domain_##domain[] = text;
#define OPERATOR(domain, name, since, kernel, variant, infer, cost, gradient)
#include "operator/operators.inc"

static const struct {
    const char *name;
    int first, end; /* ids of its operators */
} domains[] = {
#define OPERATOR_DOMAIN(domain, text, version) \
    {domain_##domain, KELP_OPERATOR_FIRST_##domain, KELP_OPERATOR_END_##domain},
#define OPERATOR(domain, name, since, kernel, variant, infer, cost, gradient)
#include "operator/operators.inc"
};

const kelp_operator kelp_operators[KELP_OPERATOR_COUNT] = {
#define OPERATOR(domain, name, since, kernel, variant, infer, cost, gradient) \
    {domain_##domain, #name, KELP_OPERATOR_##domain##_##name, SCHEMA_##domain(name)},
#include "operator/operators.inc"
};

static int compare(const char *text, kelp_str name) {
    size_t length = strlen(text), common = length < name.length ? length : name.length;
    int order = common > 0 ? memcmp(text, name.data, common) : 0;
    return order != 0 ? order : (length > name.length) - (length < name.length);
}

/* Searches rows [low, end), which are sorted by name. */
static const kelp_operator *find_between(int low, int end, kelp_str name) {
    KELP_ASSERT(low >= 0 && end <= KELP_OPERATOR_COUNT);
    while (low < end) {
        int middle = low + (end - low) / 2;
        int order = compare(kelp_operators[middle].name, name);
        if (order == 0)
            return &kelp_operators[middle];
        if (order < 0)
            low = middle + 1;
        else
            end = middle;
    }
    return NULL;
}

const kelp_operator *kelp_operator_find(kelp_str domain, kelp_str name) {
    const kelp_operator *found = NULL;
    for (size_t i = 0; found == NULL && i < KELP_COUNT(domains); i++)
        if (kelp_str_is(domain, domains[i].name))
            found = find_between(domains[i].first, domains[i].end, name);
    KELP_ASSERT(found == NULL || found == &kelp_operators[found->id]);
    return found;
}

void kelp_operator_standard(const kelp_operator **inout_op, int64_t *inout_version) {
    static const struct {
        const kelp_operator *contrib, *standard;
        int64_t version;
    } rows[] = {{KELP_OP_MS(DequantizeLinear), KELP_OP(DequantizeLinear), 21},
                {KELP_OP_MS(GatherND), KELP_OP(GatherND), 13},
                {KELP_OP_MS(QuantizeLinear), KELP_OP(QuantizeLinear), 21}};
    for (size_t i = 0; i < KELP_COUNT(rows); i++) {
        if (*inout_op == rows[i].contrib) {
            *inout_op = rows[i].standard;
            *inout_version = rows[i].version;
            return;
        }
    }
}
