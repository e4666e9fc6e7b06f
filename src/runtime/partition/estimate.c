/* SPDX-License-Identifier: Apache-2.0 */
/* Rough costs of nodes: they decide if a region is worth its transfers. */
#include "base/assert.h"
#include "runtime/partition/partition.h"

/* One thread with AVX2: a multiply-add at about 20 GFLOP/s for small matrices, 2 elements per
 * nanosecond, and a fixed cost per node. */
#define NS_PER_OPERATION 0.05
#define NS_PER_ELEMENT 0.5
#define NS_PER_NODE 300.0

static double elements_of(const kelp_value *value) {
    double elements = 1;
    for (int32_t i = 0; value != NULL && i < value->rank; i++)
        elements *= value->shape[i] > 0 ? (double)value->shape[i] : 1.0;
    return value != NULL ? elements : 0;
}

static double dim_of(const kelp_value *value, int32_t axis) {
    if (value == NULL || value->rank <= 0)
        return 1;
    axis = axis < 0 ? axis + value->rank : axis;
    return axis >= 0 && axis < value->rank && value->shape[axis] > 0 ? (double)value->shape[axis]
                                                                     : 1;
}

static const kelp_value *input_of(const kelp_node *node, size_t index) {
    return index < node->input_count ? node->inputs[index] : NULL;
}

/* ---- multiply-adds, by the column `cost` of the operator list ---- */
typedef double (*cost_fn)(const kelp_node *node);

static double outputs_of(const kelp_node *node) {
    return node->output_count > 0 ? elements_of(node->outputs[0]) : 0;
}

static double cost_NONE(const kelp_node *node) {
    (void)node;
    return 0;
}

static double cost_MATMUL(const kelp_node *node) {
    return outputs_of(node) * dim_of(input_of(node, 0), -1);
}

static double cost_GEMM(const kelp_node *node) {
    int32_t axis = kelp_node_attr_i64(node, "transA", 0) != 0 ? 0 : -1;
    return outputs_of(node) * dim_of(input_of(node, 0), axis);
}

static double convolution_of(const kelp_node *node, const kelp_value *weights) {
    return outputs_of(node) * elements_of(weights) / dim_of(weights, 0);
}

static double cost_CONV(const kelp_node *node) {
    return convolution_of(node, input_of(node, 1));
}

static double cost_QLINEAR_CONV(const kelp_node *node) {
    return convolution_of(node, input_of(node, 3));
}

static double cost_CONV_TRANSPOSE(const kelp_node *node) {
    const kelp_value *weights = input_of(node, 1);
    return elements_of(input_of(node, 0)) * elements_of(weights) / dim_of(weights, 0);
}

static double cost_RECURRENT(const kelp_node *node) {
    const kelp_value *x = input_of(node, 0);
    return dim_of(x, 0) * dim_of(x, 1) *
           (elements_of(input_of(node, 1)) + elements_of(input_of(node, 2)));
}

static const cost_fn costs[KELP_OPERATOR_COUNT + 1] = {
#define OPERATOR(domain, name, since, kernel, variant, infer, cost, gradient) cost_##cost,
#include "operator/operators.inc"
    cost_NONE};

void kelp_estimate_node(const kelp_node *node, double *out_operations, double *out_ns) {
    KELP_ASSERT(node->op->id <= KELP_OPERATOR_COUNT);
    double multiply_adds = costs[node->op->id](node), elements = 0;
    for (size_t i = 0; i < node->output_count; i++)
        elements += elements_of(node->outputs[i]);
    *out_operations = multiply_adds > 0 ? 2 * multiply_adds : elements;
    *out_ns = NS_PER_NODE + 2 * multiply_adds * NS_PER_OPERATION + elements * NS_PER_ELEMENT;
}

size_t kelp_estimate_bytes(const kelp_value *value) {
    kelp_tensor tensor;
    for (int32_t i = 0; i < value->rank; i++)
        if (value->shape[i] < 0)
            return 0;
    if (value->rank < 0 || value->dtype == KELP_DTYPE_INVALID)
        return 0;
    kelp_status *status = kelp_tensor_init(&tensor, value->dtype, value->rank, value->shape, NULL);
    kelp_status_free(status);
    return status == NULL ? kelp_tensor_bytes(&tensor) : 0;
}
