/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures during a run: all types and shapes are known. */
#include "runtime/opset/typed.h"

#include "base/assert.h"

#include <string.h>

static void view_of(const kelp_tensor *tensor, kelp_signature_view *out) {
    out->dtype = tensor->dtype;
    out->rank = tensor->rank;
    memcpy(out->shape, tensor->shape, (size_t)tensor->rank * sizeof *out->shape);
    memset(out->symbols, 0, (size_t)tensor->rank * sizeof *out->symbols);
}

static const char *value_name(const kelp_value *value) {
    return value != NULL ? value->name : "";
}

kelp_status *kelp_typed_check_inputs(const kelp_signature *signature, const kelp_node *node,
                                     const kelp_tensor *const *inputs,
                                     kelp_signature_facts *out_facts) {
    kelp_signature_problem problem;
    kelp_signature_view view;
    kelp_signature_facts_init(signature, out_facts);
    for (int32_t i = 0; i < signature->counter_count; i++) {
        int32_t at = signature->counters[i];
        const kelp_attr *attr = kelp_node_find_attr(node, signature->params[at].name);
        if (attr != NULL &&
            !kelp_signature_learn_integer(signature, at, attr->i, out_facts, &problem))
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "attribute '%s': %s", attr->name,
                              problem.text);
    }
    size_t count = kelp_node_first_capture(node);
    for (size_t i = 0; i < count; i++) {
        int32_t at = kelp_signature_input(signature, i);
        if (inputs[i] == NULL)
            continue;
        KELP_ASSERT(at >= 0); /* the node matches */
        const char *name = signature->params[at].name;
        if (inputs[i]->dtype == KELP_LIST)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "input %zu ('%s', value '%s') is a sequence, an optional or a map: "
                              "expected a tensor",
                              i, name, value_name(node->inputs[i]));
        view_of(inputs[i], &view);
        if (!kelp_signature_learn(signature, at, &view, out_facts, &problem))
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "input %zu ('%s', value '%s'): %s", i, name,
                              value_name(node->inputs[i]), problem.text);
    }
    return NULL;
}

static bool is_complete(const kelp_signature_view *view) {
    if (view->dtype == KELP_DTYPE_INVALID || view->rank < 0)
        return false;
    for (int32_t i = 0; i < view->rank; i++)
        if (view->shape[i] < 0)
            return false;
    return true;
}

bool kelp_typed_describe_outputs(const kelp_signature *signature, const kelp_node *node,
                                 const kelp_signature_facts *facts, kelp_tensor *const *outputs) {
    kelp_signature_view view;
    for (size_t i = 0; i < node->output_count; i++) {
        if (outputs[i] == NULL)
            continue;
        kelp_signature_tell(signature, kelp_signature_output(signature, i), facts, &view);
        if (!is_complete(&view))
            return false;
        kelp_status *status = kelp_tensor_init(outputs[i], view.dtype, view.rank, view.shape, NULL);
        if (status != NULL) { /* too large: the provider reports it */
            kelp_status_free(status);
            return false;
        }
    }
    return true;
}

kelp_status *kelp_typed_check_results(const kelp_signature *signature, const kelp_node *node,
                                      kelp_signature_facts *inout_facts, const char *name,
                                      const kelp_tensor *results) {
    kelp_signature_problem problem;
    kelp_signature_view view;
    for (size_t i = 0; i < node->output_count; i++) {
        int32_t at = kelp_signature_output(signature, i);
        if (node->outputs[i] == NULL || results[i].dtype == KELP_DTYPE_INVALID)
            continue; /* the caller reports missing results */
        KELP_ASSERT(at >= 0);
        if (results[i].dtype == KELP_LIST)
            return KELP_ERROR(KELP_INTERNAL, "provider '%s' returned a list for '%s'", name,
                              value_name(node->outputs[i]));
        view_of(&results[i], &view);
        if (!kelp_signature_learn(signature, at, &view, inout_facts, &problem))
            return KELP_ERROR(KELP_INTERNAL, "provider '%s' returned a wrong tensor for '%s': %s",
                              name, value_name(node->outputs[i]), problem.text);
    }
    return NULL;
}
