/* SPDX-License-Identifier: Apache-2.0 */
/* Searches libraries for the domains that a graph uses and that no registered provider declares. */
#include "runtime/partition/domains.h"

#include "base/buf.h"
#include "runtime/partition/partition.h"

#include <string.h>

/* Maximum number of domains without a library that are searched. The limit bounds the number of
 * files that a damaged model makes Kelp look for. */
#define MISSING_MAX 16

typedef struct walk {
    kelp_opset_choice *choice;
    const kelp_graph *graph;
    kelp_arena *arena;
    const char *missing[MISSING_MAX]; /* domains without a library */
    size_t missing_count;
    kelp_buf reasons;
} walk;

bool kelp_is_function_call(const kelp_graph *graph, const kelp_node *node) {
    for (size_t i = 0; i < graph->function_count; i++)
        if (graph->functions[i]->function == node->op)
            return true;
    return false;
}

static bool is_known(const walk *w, const char *domain) {
    for (size_t i = 0; i < w->missing_count; i++)
        if (strcmp(w->missing[i], domain) == 0)
            return true;
    return kelp_opset_declares(w->choice->registry, domain);
}

/* Returns true if the node needs a provider that is not registered. */
static bool is_foreign(const walk *w, const kelp_node *node) {
    if (node->op->id != KELP_OPERATOR_COUNT || kelp_is_function_call(w->graph, node))
        return false;
    for (size_t i = 0; i < w->choice->count; i++)
        if (kelp_opset_entry_covers(w->choice->entries[i], node))
            return false;
    return !is_known(w, node->op->domain);
}

kelp_status *kelp_opset_choice_add(kelp_opset_choice *choice, kelp_arena *arena,
                                   kelp_opset_entry *entry) {
    for (size_t i = 0; i < choice->count; i++)
        if (choice->entries[i] == entry)
            return NULL;
    if (choice->count == choice->capacity) {
        size_t capacity = 2 * choice->capacity + 1;
        kelp_opset_entry **more = KELP_ARENA_ARRAY(arena, capacity, kelp_opset_entry *);
        if (more == NULL)
            return kelp_status_oom();
        if (choice->count > 0)
            memcpy(more, choice->entries, choice->count * sizeof *more);
        choice->entries = more;
        choice->capacity = capacity;
    }
    choice->entries[choice->count++] = entry;
    return NULL;
}

static kelp_status *search_domain(walk *w, const char *domain) {
    kelp_opset_entry *entry = NULL;
    if (w->missing_count == MISSING_MAX)
        return NULL;
    kelp_status *status = kelp_opset_search(w->choice->registry, domain, &entry);
    if (kelp_status_code(status) == KELP_RESOURCE_EXHAUSTED)
        return status;
    if (entry != NULL)
        return kelp_opset_choice_add(w->choice, w->arena, entry);
    w->missing[w->missing_count++] = domain;
    if (status != NULL)
        kelp_buf_printf(&w->reasons, "\n%s", kelp_status_message(status));
    kelp_status_free(status);
    return NULL;
}

/* The loader limits the nesting of blocks, and so the depth of this recursion. */
static kelp_status *search_block(walk *w, const kelp_block *block) {
    for (size_t i = 0; i < block->node_count; i++) {
        const kelp_node *node = block->nodes[i];
        if (kelp_is_subgraph_node(node))
            continue; /* assigned to a provider */
        if (is_foreign(w, node))
            KELP_TRY(search_domain(w, node->op->domain));
        for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
            for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++)
                KELP_TRY(search_block(w, attr->blocks[k]));
    }
    return NULL;
}

static kelp_status *search_graph(walk *w) {
    KELP_TRY(search_block(w, w->graph->main));
    for (size_t i = 0; i < w->graph->function_count; i++)
        KELP_TRY(search_block(w, w->graph->functions[i]));
    if (w->reasons.length == 0)
        return NULL;
    KELP_TRY(kelp_buf_status(&w->reasons));
    w->choice->searched =
        kelp_arena_strndup(w->arena, kelp_buf_cstr(&w->reasons), w->reasons.length);
    return w->choice->searched != NULL ? NULL : kelp_status_oom();
}

kelp_status *kelp_opset_search_domains(const kelp_graph *graph, kelp_arena *arena,
                                       kelp_opset_choice *inout) {
    walk w = {.choice = inout, .graph = graph, .arena = arena};
    kelp_buf_init(&w.reasons, inout->registry->allocator);
    kelp_status *status = search_graph(&w);
    kelp_buf_deinit(&w.reasons);
    return status;
}
