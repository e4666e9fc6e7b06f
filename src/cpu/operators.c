/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of the operator list that the cpu provider implements: versions, kernels and
 * variants. */
#include "base/assert.h"
#include "base/checked.h"
#include "cpu/ops/control/control.h"
#include "cpu/ops/variant.h"
#include "cpu/provider.h"
#include "graph/ir.h"

#define OPERATOR(domain, name, since, kernel, variant, infer, cost, gradient) \
    extern const kelp_op_kernel kelp_op_##kernel;
#define OPERATOR_DISPATCHED(domain, name, since, variant, infer, cost, gradient)
#include "operator/operators.inc"

/* In the order of ids, so that the operators of a domain are consecutive. */
static const kelp_opset_op operators[KELP_OPERATOR_COUNT] = {
#define OPERATOR(domain, name, since, kernel, variant, infer, cost, gradient) \
    {#name, since, 0, &kelp_op_##kernel, NULL},
#define OPERATOR_DISPATCHED(domain, name, since, variant, infer, cost, gradient) \
    {#name, since, 0, NULL, NULL},
#include "operator/operators.inc"
};

/* The last opset has the operators of the runtime, which no provider declares. */
static const kelp_opset opsets[] = {
#define OPERATOR_DOMAIN(domain, name, version)                \
    {name, version, &operators[KELP_OPERATOR_FIRST_##domain], \
     KELP_OPERATOR_END_##domain - KELP_OPERATOR_FIRST_##domain},
#define OPERATOR(domain, name, since, kernel, variant, infer, cost, gradient)
#include "operator/operators.inc"
};

static const uint8_t variants[KELP_OPERATOR_COUNT + 1] = {
#define OPERATOR(domain, name, since, kernel, variant, infer, cost, gradient) \
    KELP_VARIANT_##variant,
#include "operator/operators.inc"
};

kelp_op_variant kelp_op_variant_of(const kelp_node *node) {
    KELP_ASSERT(node->op != NULL && node->op->id <= KELP_OPERATOR_COUNT);
    return (kelp_op_variant)variants[node->op->id];
}

static const kelp_opset *atomic_opset(void *self) {
    (void)self;
    return &opsets[0];
}

static const kelp_opset *extension_opsets(void *self, size_t *out_count) {
    (void)self;
    *out_count = KELP_COUNT(opsets) - 2;
    return &opsets[1];
}

const kelp_opset_backend kelp_cpu_operators = {
    .abi_version = KELP_OPSET_ABI_VERSION,
    .struct_size = sizeof(kelp_opset_backend),
    .name = "cpu",
    .atomic_opset = atomic_opset,
    .extension_opsets = extension_opsets,
    .dispatch = kelp_control_dispatch,
};
