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

/* Nodes with the same problem. */
typedef struct listing {
    kelp_buf lines;
    size_t count;
} listing;

typedef struct walk {
    const kelp_opset_choice *choice;
    const kelp_graph *graph;
    bool alone;
    listing missing;    /* no provider declares the operator */
    listing mismatched; /* some provider does, with a signature that does not match */
} walk;

static void describe_location(kelp_buf *out, const kelp_block *block) {
    if (block->owner != NULL) {
        kelp_buf_printf(out, "subgraph '%s' of node '%s' (%s)", block->name, block->owner->name,
                        block->owner->op->name);
        return;
    }
    kelp_buf_printf(out, "%s '%s'", block->function != NULL ? "function" : "graph", block->name);
}

/* Returns true if a provider covers the node. Otherwise the problem says why its signature does not
 * match, or is empty. */
static bool is_covered(const walk *w, const kelp_node *node, kelp_signature_problem *out_problem) {
    out_problem->text[0] = '\0';
    if (kelp_is_function_call(w->graph, node))
        return true;
    for (size_t i = w->choice->count; i > 0;
         i--) /* the problem of the preferred provider remains */
        if (kelp_opset_entry_find(w->choice->entries[i - 1], node, out_problem) != NULL)
            return true;
    for (size_t i = 0; !w->alone && i < w->choice->count; i++)
        if (kelp_opset_entry_covers(w->choice->entries[i], node))
            return true;
    return false;
}

static void list_node(listing *list, const kelp_block *block, const kelp_node *node,
                      const kelp_signature_problem *problem) {
    if (list->count++ >= LISTED_MAX)
        return;
    kelp_buf_printf(&list->lines, "\n  %s::%s version %lld, node '%s', in ",
                    *node->op->domain ? node->op->domain : "ai.onnx", node->op->name,
                    (long long)node->opset_version, node->name);
    describe_location(&list->lines, block);
    if (problem->text[0] != '\0')
        kelp_buf_printf(&list->lines, ": %s", problem->text);
}

static void check_block(walk *w, const kelp_block *block) {
    for (size_t i = 0; i < block->node_count; i++) {
        const kelp_node *node = block->nodes[i];
        kelp_signature_problem problem;
        if (w->alone && kelp_is_subgraph_node(node))
            continue; /* assigned to a provider */
        if (!is_covered(w, node, &problem))
            list_node(problem.text[0] != '\0' ? &w->mismatched : &w->missing, block, node,
                      &problem);
        /* The loader limits the nesting of blocks, and so the depth of this recursion. */
        for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
            for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
                check_block(w, attr->blocks[k]);
    }
}

static void end_list(listing *list) {
    if (list->count > LISTED_MAX)
        kelp_buf_printf(&list->lines, "\n  … and %zu more", list->count - LISTED_MAX);
}

static kelp_status *not_ready(walk *w) {
    const char *which = w->choice->named ? "chosen" : "registered";
    kelp_buf text;
    end_list(&w->missing);
    end_list(&w->mismatched);
    kelp_buf_init(&text, w->graph->allocator);
    kelp_buf_printf(&text, "model '%s' is not ready:", w->graph->info.label);
    if (w->missing.count > 0)
        kelp_buf_printf(&text, " no %s provider covers %zu of its nodes:%s%s", which,
                        w->missing.count, kelp_buf_cstr(&w->missing.lines), w->choice->searched);
    if (w->mismatched.count > 0)
        kelp_buf_printf(&text,
                        "%s %zu of its nodes do not match the signatures of their operators:%s",
                        w->missing.count > 0 ? "\n" : "", w->mismatched.count,
                        kelp_buf_cstr(&w->mismatched.lines));
    kelp_status *status = kelp_buf_status(&text);
    if (status == NULL)
        status = KELP_ERROR(w->missing.count > 0 ? KELP_UNIMPLEMENTED : KELP_INVALID_ARGUMENT, "%s",
                            kelp_buf_cstr(&text));
    kelp_buf_deinit(&text);
    return status;
}

kelp_status *kelp_opset_check_choice(const kelp_opset_choice *choice, const kelp_graph *graph,
                                     bool alone) {
    walk w = {.choice = choice, .graph = graph, .alone = alone};
    kelp_buf_init(&w.missing.lines, graph->allocator);
    kelp_buf_init(&w.mismatched.lines, graph->allocator);
    check_block(&w, graph->main);
    for (size_t i = 0; i < graph->function_count; i++)
        check_block(&w, graph->functions[i]);
    kelp_status *status = kelp_buf_status(&w.missing.lines);
    if (status == NULL)
        status = kelp_buf_status(&w.mismatched.lines);
    if (status == NULL && w.missing.count + w.mismatched.count > 0)
        status = not_ready(&w);
    kelp_buf_deinit(&w.missing.lines);
    kelp_buf_deinit(&w.mismatched.lines);
    return status;
}

/* Infers types and shapes with signatures: those of a loaded graph are known only up to the first
 * operator that is not Kelp's. */
static kelp_status *check_inferred(kelp_opset_choice *choice, const kelp_graph *graph) {
    kelp_graph *copy = NULL;
    KELP_TRY(kelp_graph_clone_for_engine((kelp_graph *)(uintptr_t)graph, &copy));
    kelp_status *status =
        kelp_block_infer_signatures(copy->main, kelp_opset_choice_signature, choice);
    if (status == NULL)
        status = kelp_opset_check_choice(choice, copy, false);
    kelp_graph_release(copy);
    return status;
}

static bool has_signatures(const kelp_opset_choice *choice) {
    for (size_t i = 0; i < choice->count; i++)
        for (size_t k = 1; k < choice->entries[i]->link_count; k++)
            if (choice->entries[i]->links[k].signature != NULL)
                return true;
    return false;
}

kelp_status *kelp_opset_check_ready(const kelp_opset_registry *registry, const kelp_graph *graph) {
    kelp_arena arena;
    kelp_opset_choice choice;
    kelp_arena_init(&arena, graph->allocator, 0);
    kelp_status *status =
        kelp_opset_choose((kelp_opset_registry *)(uintptr_t)registry, NULL, graph, &arena, &choice);
    if (status == NULL)
        status = kelp_opset_check_choice(&choice, graph, false);
    if (status == NULL && has_signatures(&choice))
        status = check_inferred(&choice, graph);
    kelp_arena_deinit(&arena);
    return status;
}
