/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch of the cpu provider: operators on lists, whose number of elements depends on data, and
 * FlexAttention. */
#include "cpu/ops/control/control.h"

#include "base/assert.h"
#include "cpu/ops/sequence/sequence.h"
#include "graph/ir.h"

kelp_status *kelp_control_dispatch(void *self, const kelp_op_env *env, const kelp_node *node,
                                   const kelp_tensor *const *inputs, kelp_tensor *outputs,
                                   kelp_completion *completion, kelp_dispatch_result *out_result) {
    (void)self;
    (void)completion;
    KELP_ASSERT(node->op != NULL);
    *out_result = KELP_DISPATCH_IMMEDIATE;
    if (node->op == KELP_OPERATOR(PREVIEW, FlexAttention))
        return kelp_control_flex(env, node, inputs, outputs);
    if (node->op == KELP_OPERATOR(TRAINING, Gradient)) /* a pass expands those of the main graph */
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "node '%s' (Gradient) is unsupported in a subgraph: expected it in the "
                          "main graph",
                          kelp_node_name(node));
    bool found = false;
    KELP_TRY(kelp_list_dispatch(env, node, inputs, outputs, &found));
    if (found)
        return NULL;
    return KELP_ERROR(KELP_INTERNAL, "operator '%s' is not dispatched by the cpu provider",
                      kelp_node_op_type(node));
}
