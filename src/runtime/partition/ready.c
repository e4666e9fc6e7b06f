/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness: checks that every node of every block, subgraph and function has a provider, and lists
 * those without. */
#include "base/buf.h"
#include "graph/ir.h"
#include "runtime/partition/domains.h"
#include "runtime/partition/partition.h"

#include <string.h>

/* Maximum number of nodes that a message lists; its count is exact. */
#define LISTED_MAX 200

typedef struct walk {
    const kelp_opset_choice *choice;
    const kelp_graph *graph;
    bool alone;
    kelp_buf lines;
    size_t missing;
} walk;

static void describe_location(kelp_buf *out, const kelp_block *block) {
    if (block->owner != NULL) {
        kelp_buf_printf(out, "subgraph '%s' of node '%s' (%s)", block->name, block->owner->name,
                        block->owner->op->name);
        return;
    }
    kelp_buf_printf(out, "%s '%s'", block->function != NULL ? "function" : "graph", block->name);
}

static bool is_covered(const walk *w, const kelp_node *node) {
    kelp_opset_match match;
    if (kelp_is_function_call(w->graph, node) || kelp_opset_choice_find(w->choice, node, &match))
        return true;
    for (size_t i = 0; !w->alone && i < w->choice->count; i++)
        if (kelp_opset_entry_covers(w->choice->entries[i], node))
            return true;
    return false;
}

static void check_block(walk *w, const kelp_block *block) {
    for (size_t i = 0; i < block->node_count; i++) {
        const kelp_node *node = block->nodes[i];
        if (w->alone && kelp_is_subgraph_node(node))
            continue; /* assigned to a provider */
        if (!is_covered(w, node) && w->missing++ < LISTED_MAX) {
            kelp_buf_printf(&w->lines, "\n  %s::%s version %lld, node '%s', in ",
                            *node->op->domain ? node->op->domain : "ai.onnx", node->op->name,
                            (long long)node->opset_version, node->name);
            describe_location(&w->lines, block);
        }
        /* The loader limits the nesting of blocks, and so the depth of this recursion. */
        for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
            for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
                check_block(w, attr->blocks[k]);
    }
}

kelp_status *kelp_opset_check_choice(const kelp_opset_choice *choice, const kelp_graph *graph,
                                     bool alone) {
    walk w = {.choice = choice, .graph = graph, .alone = alone};
    kelp_buf_init(&w.lines, graph->allocator);
    check_block(&w, graph->main);
    for (size_t i = 0; i < graph->function_count; i++)
        check_block(&w, graph->functions[i]);
    if (w.missing > LISTED_MAX)
        kelp_buf_printf(&w.lines, "\n  … and %zu more", w.missing - LISTED_MAX);
    kelp_status *status = NULL;
    if (w.missing > 0) {
        status = kelp_buf_status(&w.lines);
        if (status == NULL)
            status = KELP_ERROR(KELP_UNIMPLEMENTED,
                                "model '%s' is not ready: no %s provider covers %zu of its "
                                "nodes:%s%s",
                                graph->info.label, choice->named ? "chosen" : "registered",
                                w.missing, kelp_buf_cstr(&w.lines), choice->searched);
    }
    kelp_buf_deinit(&w.lines);
    return status;
}

kelp_status *kelp_opset_check_ready(const kelp_opset_registry *registry, const kelp_graph *graph) {
    kelp_arena arena;
    kelp_opset_choice choice;
    kelp_arena_init(&arena, graph->allocator, 0);
    kelp_status *status =
        kelp_opset_choose((kelp_opset_registry *)(uintptr_t)registry, NULL, graph, &arena, &choice);
    if (status == NULL)
        status = kelp_opset_check_choice(&choice, graph, false);
    kelp_arena_deinit(&arena);
    return status;
}
