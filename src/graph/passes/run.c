/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the passes: idioms come first, so that their results can be fused with neighbouring
 * nodes. */
#include "base/assert.h"
#include "graph/passes/passes.h"

typedef kelp_status *(*pass_fn)(kelp_block *block);

/* The body of a subgraph belongs to its provider and is not changed. */
static kelp_attr *own_blocks(const kelp_node *node) {
    return node->op == KELP_OPERATOR(RUNTIME, BackendSubgraph) ? NULL : node->attributes;
}

static kelp_status *run(kelp_block *block, const pass_fn *passes, size_t count) {
    kelp_block_count_uses(block);
    for (size_t i = 0; i < count; i++) {
        KELP_TRY(passes[i](block));
        kelp_block_remove_dead(block);
    }
    for (size_t n = 0; n < block->node_count; n++)
        for (kelp_attr *attr = own_blocks(block->nodes[n]); attr != NULL; attr = attr->next)
            for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
                KELP_TRY(run(attr->blocks[k], passes, count));
    return NULL;
}

kelp_status *kelp_pass_each(kelp_block *block,
                            kelp_status *(*fuse)(kelp_block *block, kelp_node *node,
                                                 bool *out_done)) {
    bool done = false;
    for (size_t i = 0; i < block->node_count; i = done ? 0 : i + 1) {
        kelp_node *node = block->nodes[i];
        done = false;
        if (node->removed || node->output_count == 0 || node->outputs[0] == NULL)
            continue;
        KELP_TRY(fuse(block, node, &done));
        KELP_ASSERT(done || block->nodes[i] == node); /* a change is reported */
        if (done)
            kelp_block_remove_dead(block);
    }
    return NULL;
}

kelp_status *kelp_passes_run_quant(kelp_block *block) {
    static const pass_fn passes[] = {kelp_pass_contrib, kelp_pass_simplify,      kelp_pass_gelu,
                                     kelp_pass_quant,   kelp_pass_quant_dynamic, kelp_pass_weights};
    return run(block, passes, sizeof passes / sizeof passes[0]);
}

/* Other blocks are left as they are: each operator rounds its result, as ONNX defines it. */
static kelp_status *half_with_weights(kelp_block *block) {
    return kelp_half_has_weights(block) ? kelp_pass_half(block) : NULL;
}

kelp_status *kelp_passes_run_half(kelp_block *block) {
    static const pass_fn passes[] = {half_with_weights};
    return run(block, passes, sizeof passes / sizeof passes[0]);
}

kelp_status *kelp_passes_run_bf16(kelp_block *block) {
    static const pass_fn passes[] = {kelp_pass_bf16, kelp_pass_bf16_values};
    return run(block, passes, sizeof passes / sizeof passes[0]);
}

kelp_status *kelp_passes_run(kelp_block *block) {
    static const pass_fn passes[] = {
        kelp_pass_simplify,   kelp_pass_gelu,      kelp_pass_swish,           kelp_pass_lookup,
        kelp_pass_layer_norm, kelp_pass_attention, kelp_pass_attention_heads, kelp_pass_scale,
        kelp_pass_affine,     kelp_pass_conv,      kelp_pass_residual,        kelp_pass_matmul,
        kelp_pass_skip_norm,
    };
    return run(block, passes, sizeof passes / sizeof passes[0]);
}
