/* SPDX-License-Identifier: Apache-2.0 */
/* Fuses LayerNormalization(x + skip). The sum is stored only if another node reads it. */
#include "base/assert.h"
#include "graph/passes/passes.h"

/* Returns true when a node between `first` and `last` reads the value, before the fused node would
 * produce it. */
static bool read_between(const kelp_block *block, const kelp_value *value, const kelp_node *first,
                         const kelp_node *last) {
    KELP_ASSERT(first->index < last->index && block->nodes[last->index] == last);
    for (size_t n = first->index + 1; n < last->index; n++)
        for (size_t i = 0; i < block->nodes[n]->input_count; i++)
            if (!block->nodes[n]->removed && block->nodes[n]->inputs[i] == value)
                return true;
    return false;
}

kelp_status *kelp_pass_skip_norm(kelp_block *block) {
    for (size_t i = 0; i < block->node_count; i++) {
        kelp_node *norm = block->nodes[i];
        if (norm->removed ||
            kelp_match_producer(norm->outputs[0], KELP_OP(LayerNormalization)) != norm)
            continue;
        kelp_value *sum = norm->inputs[0];
        kelp_node *add = kelp_match_producer(sum, KELP_OP(Add));
        int64_t axis = kelp_node_attr_i64(norm, "axis", -1);
        if (add == NULL || sum->dtype != KELP_F32 || norm->input_count < 3 ||
            norm->inputs[2] == NULL || (axis != -1 && (sum->rank < 0 || axis != sum->rank - 1)) ||
            norm->output_count > 1 || add->inputs[0]->constant != NULL ||
            add->inputs[1]->constant != NULL || add->inputs[0]->dtype != KELP_F32)
            continue;
        bool keep_sum = !kelp_used_once(sum);
        if (keep_sum && read_between(block, sum, add, norm))
            continue;
        kelp_value *inputs[4] = {add->inputs[0], add->inputs[1], norm->inputs[1], norm->inputs[2]};
        kelp_value *outputs[2] = {norm->outputs[0], sum};
        kelp_node *fused = NULL;
        KELP_TRY(kelp_block_insert_node(block, norm, KELP_OP_KELP(SkipLayerNorm), 1, norm->name,
                                        inputs, 4, outputs, keep_sum ? 2 : 1, NULL, &fused));
        KELP_TRY(kelp_node_set_f32(fused, "epsilon", kelp_node_attr_f32(norm, "epsilon", 1e-5f)));
        norm->removed = true;
        add->removed = true;
        kelp_block_sweep(block);
        kelp_block_count_uses(block);
        i = fused->index;
    }
    return NULL;
}
