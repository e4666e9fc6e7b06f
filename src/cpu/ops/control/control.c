/* SPDX-License-Identifier: Apache-2.0 */
/* What the cpu backend dispatches: operators whose results' number and shapes only data tell. */
#include "cpu/ops/control/control.h"

#include "cpu/ops/sequence/sequence.h"
#include "graph/ir.h"

kelp_status *kelp_control_dispatch(void *self, const kelp_op_env *env, const kelp_node *node,
                                   const kelp_tensor *const *inputs, kelp_tensor *outputs,
                                   kelp_completion *completion, kelp_dispatch_result *out_result) {
    (void)self;
    (void)completion;
    *out_result = KELP_DISPATCH_IMMEDIATE;
    if (node->op == KELP_OPERATOR(PREVIEW, FlexAttention))
        return kelp_control_flex(env, node, inputs, outputs);
    if (node->op == KELP_OPERATOR(TRAINING, Gradient)) /* of the main graph it is written out */
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "node '%s' (Gradient) stands in a subgraph: only those of the main graph "
                          "are carried out",
                          kelp_node_name(node));
    bool found = false;
    KELP_TRY(kelp_list_dispatch(env, node, inputs, outputs, &found));
    if (found)
        return NULL;
    return KELP_ERROR(KELP_INTERNAL, "operator '%s' is not dispatched by the cpu backend",
                      kelp_node_op_type(node));
}
