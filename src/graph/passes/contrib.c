/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces operators of com.microsoft by those of ai.onnx that other passes match. */
#include "graph/passes/passes.h"
#include "operator/operator.h"

kelp_status *kelp_pass_contrib(kelp_block *block) {
    for (size_t i = 0; i < block->node_count; i++)
        kelp_operator_standard(&block->nodes[i]->op, &block->nodes[i]->opset_version);
    return NULL;
}
