/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the outputs of a node that may stay on a device of its provider. */
#include "runtime/partition/partition.h"

static bool runs_on(const kelp_partition *partition, const kelp_node *node,
                    const kelp_opset_entry *entry) {
    kelp_opset_match match;
    if (kelp_is_subgraph_node(node)) {
        const kelp_subgraph *subgraph = kelp_partition_find(partition, node);
        return subgraph != NULL && subgraph->entry == entry;
    }
    return kelp_opset_choice_find(&partition->choice, node, &match) &&
           match.backend == entry->backend && match.self == entry->self && match.op->kernel == NULL;
}

uint64_t kelp_partition_stays(const kelp_partition *partition, const kelp_node *node,
                              const kelp_opset_entry *entry) {
    const kelp_block *block = node->block;
    uint64_t stays = 0;
    for (size_t i = 0; i < node->output_count && i < 64; i++)
        if (node->outputs[i] != NULL && !node->outputs[i]->is_output)
            stays |= (uint64_t)1 << i;
    for (size_t n = node->index + 1; n < block->node_count; n++)
        for (size_t k = 0; k < block->nodes[n]->input_count; k++)
            for (size_t i = 0; i < node->output_count && i < 64; i++)
                if (node->outputs[i] != NULL && block->nodes[n]->inputs[k] == node->outputs[i] &&
                    !runs_on(partition, block->nodes[n], entry))
                    stays &= ~((uint64_t)1 << i);
    return stays;
}
