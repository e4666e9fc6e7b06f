/* SPDX-License-Identifier: Apache-2.0 */
/* Names of activations. */
#include "cpu/ops/activation.h"

#include "base/assert.h"

bool kelp_act_parse(const char *name, kelp_act *out) {
    static const struct {
        const char *name;
        kelp_act act;
    } names[] = {{"", KELP_ACT_NONE},      {"relu", KELP_ACT_RELU},
                 {"gelu", KELP_ACT_GELU},  {"gelu_tanh", KELP_ACT_GELU_TANH},
                 {"tanh", KELP_ACT_TANH},  {"sigmoid", KELP_ACT_SIGMOID},
                 {"silu", KELP_ACT_SILU},  {"hard_swish", KELP_ACT_HARD_SWISH},
                 {"relu6", KELP_ACT_RELU6}};
    KELP_ASSERT(name != NULL && out != NULL);
    for (size_t i = 0; i < KELP_COUNT(names); i++)
        if (strcmp(names[i].name, name) == 0) {
            *out = names[i].act;
            return true;
        }
    return false;
}

kelp_status *kelp_act_read(const kelp_op_args *args, kelp_act *out) {
    const char *name = kelp_node_attr_string(args->node, "activation", "", NULL);
    if (!kelp_act_parse(name, out))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "operator '%s': unknown activation '%s'",
                          kelp_node_op_type(args->node), name);
    return NULL;
}
