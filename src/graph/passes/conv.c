/* SPDX-License-Identifier: Apache-2.0 */
/* Fuses a convolution with the activation that follows it. */
#include "base/assert.h"
#include "graph/passes/passes.h"

#include <string.h>

static kelp_status *copy_attributes(const kelp_node *from, kelp_node *to) {
    static const char *const lists[] = {"dilations", "kernel_shape", "pads", "strides"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const int64_t *values = NULL;
        size_t count = kelp_node_attr_i64s(from, lists[i], &values);
        if (count > 0)
            KELP_TRY(kelp_node_set_i64s(to, lists[i], values, count));
    }
    KELP_TRY(kelp_node_set_i64(to, "group", kelp_node_attr_i64(from, "group", 1)));
    return kelp_node_set_string(to, "auto_pad",
                                kelp_node_attr_string(from, "auto_pad", "NOTSET", NULL));
}

kelp_status *kelp_pass_conv(kelp_block *block) {
    for (size_t i = 0; i < block->node_count; i++) {
        kelp_node *conv = block->nodes[i], *fused = NULL;
        if (conv->removed || conv->output_count == 0 ||
            kelp_match_producer(conv->outputs[0], KELP_OP(Conv)) != conv ||
            conv->inputs[0]->dtype != KELP_F32 || !kelp_used_once(conv->outputs[0]))
            continue;
        kelp_node *next = kelp_value_only_user(conv->outputs[0]);
        if (next == NULL || kelp_match_activation(next) == NULL)
            continue;
        KELP_TRY(kelp_block_insert_node(block, next, KELP_OP_KELP(ConvAct), 1, conv->name,
                                        conv->inputs, conv->input_count, next->outputs, 1, NULL,
                                        &fused));
        KELP_TRY(copy_attributes(conv, fused));
        KELP_TRY(kelp_node_set_string(fused, "activation", kelp_match_activation(next)));
        KELP_ASSERT(next->outputs[0]->producer == fused);
        conv->removed = true;
        next->removed = true;
        kelp_block_sweep(block);
        kelp_block_count_uses(block);
        i = SIZE_MAX; /* start again */
    }
    return NULL;
}
