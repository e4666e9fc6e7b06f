/* SPDX-License-Identifier: Apache-2.0 */
/* Pattern matching for passes. */
#include "base/assert.h"
#include "graph/passes/passes.h"

#include <math.h>
#include <string.h>

kelp_node *kelp_match_producer(const kelp_value *value, const kelp_operator *op) {
    KELP_ASSERT(op != NULL);
    if (value == NULL || value->producer == NULL)
        return NULL;
    kelp_node *node = value->producer;
    KELP_ASSERT(value->constant == NULL); /* a pass that makes a constant removes the producer */
    if (node->removed || node->op != op)
        return NULL;
    return node;
}

bool kelp_match_scalar(const kelp_value *value, double *out) {
    if (value == NULL || value->constant == NULL || kelp_tensor_elements(value->constant) != 1)
        return false;
    const void *data = value->constant->data;
    if (value->constant->dtype == KELP_F32) {
        float number;
        memcpy(&number, data, sizeof number);
        *out = (double)number;
        return true;
    }
    if (value->constant->dtype == KELP_F64) {
        memcpy(out, data, sizeof *out);
        return true;
    }
    return false;
}

bool kelp_match_scalar_near(const kelp_value *value, double expected) {
    double found;
    return kelp_match_scalar(value, &found) && fabs(found - expected) <= 1e-4 * fabs(expected);
}

bool kelp_match_i64s(const kelp_value *value, int64_t *out, size_t capacity, size_t *out_count) {
    if (value == NULL || value->constant == NULL)
        return false;
    const kelp_tensor *tensor = value->constant;
    int64_t count = kelp_tensor_elements(tensor);
    if (count < 0 || (size_t)count > capacity)
        return false;
    for (int64_t i = 0; i < count; i++) {
        if (tensor->dtype == KELP_I64) {
            memcpy(&out[i], (const char *)tensor->data + 8 * i, 8);
        } else if (tensor->dtype == KELP_I32) {
            int32_t narrow;
            memcpy(&narrow, (const char *)tensor->data + 4 * i, 4);
            out[i] = narrow;
        } else {
            return false;
        }
    }
    *out_count = (size_t)count;
    return true;
}

bool kelp_used_once(const kelp_value *value) {
    KELP_ASSERT(value != NULL);
    return value->use_count == 1 && !value->is_output;
}

bool kelp_match_relu6(const kelp_node *node) {
    double low = 1, high = 1;
    if (node->op != KELP_OP(Clip) || node->input_count == 0)
        return false;
    if (node->opset_version < 11)
        return kelp_node_attr_f32(node, "min", 1.0f) == 0.0f &&
               kelp_node_attr_f32(node, "max", 1.0f) == 6.0f;
    return node->input_count == 3 && kelp_match_scalar(node->inputs[1], &low) && low == 0.0 &&
           kelp_match_scalar(node->inputs[2], &high) && high == 6.0;
}

const char *kelp_match_activation(const kelp_node *node) {
    static const struct {
        const kelp_operator *op;
        const char *name;
    } plain[] = {{KELP_OP(Relu), "relu"},
                 {KELP_OP(Tanh), "tanh"},
                 {KELP_OP(Sigmoid), "sigmoid"},
                 {KELP_OP(HardSwish), "hard_swish"}};
    if (node->op == KELP_OP_MS(QuickGelu))
        return kelp_node_attr_f32(node, "alpha", 1.702f) == 1.0f ? "silu" : NULL;
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (node->op == plain[i].op)
            return node->input_count == 1 ? plain[i].name : NULL;
    if (node->op == KELP_OP(Gelu) && node->input_count == 1)
        return strcmp(kelp_node_attr_string(node, "approximate", "none", NULL), "tanh") == 0
                   ? "gelu_tanh"
                   : "gelu";
    return kelp_match_relu6(node) ? "relu6" : NULL;
}

kelp_node *kelp_match_scaled_matmul(kelp_value *value, double *out_scale) {
    kelp_node *mul = kelp_match_producer(value, KELP_OP(Mul));
    kelp_node *div = kelp_match_producer(value, KELP_OP(Div));
    const kelp_value *scaled = value;
    double scalar = 1;
    *out_scale = 1;
    if (!kelp_used_once(value))
        return NULL;
    if (mul != NULL) {
        int k = kelp_match_scalar(mul->inputs[0], &scalar) ? 0 : 1;
        if (!kelp_match_scalar(mul->inputs[k], &scalar))
            return NULL;
        *out_scale = scalar;
        value = mul->inputs[1 - k];
    } else if (div != NULL) {
        if (!kelp_match_scalar(div->inputs[1], &scalar) || scalar == 0)
            return NULL;
        *out_scale = 1 / scalar;
        value = div->inputs[0];
    }
    kelp_node *matmul = kelp_match_producer(value, KELP_OP(MatMul));
    if (matmul == NULL || !kelp_used_once(value) || value->rank != scaled->rank)
        return NULL; /* the scalar may have a higher rank than the MatMul */
    return matmul;
}

bool kelp_match_attention_weights(kelp_value *weights, bool (*fits)(const kelp_value *mask),
                                  bool (*match)(kelp_value *scores, void *userp), void *userp,
                                  kelp_value **out_mask) {
    kelp_node *softmax = kelp_match_producer(weights, KELP_OP(Softmax));
    if (softmax == NULL || !kelp_used_once(weights))
        return false;
    int64_t axis = kelp_node_attr_i64(softmax, "axis", softmax->opset_version < 13 ? 1 : -1);
    if ((axis != -1 && axis != 3) || !kelp_used_once(softmax->inputs[0]))
        return false;
    kelp_node *add = kelp_match_producer(softmax->inputs[0], KELP_OP(Add));
    for (int k = 0; add != NULL && k < 2; k++) {
        *out_mask = add->inputs[1 - k];
        if (fits(*out_mask) && match(add->inputs[k], userp))
            return true;
    }
    *out_mask = NULL;
    return add == NULL && match(softmax->inputs[0], userp);
}
