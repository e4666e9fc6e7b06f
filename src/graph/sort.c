/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts nodes topologically with Kahn's algorithm. Source: "Topological sorting of large
 * networks", 1962. */
#include "base/alloc.h"
#include "base/assert.h"
#include "graph/load.h"

#include <string.h>

typedef void (*visit_fn)(void *userp, const kelp_node *producer);

/* Calls `fn` for every node of `block` that `node` depends on, through captures of its subgraphs
 * too. */
static void visit_inputs(const kelp_block *block, const kelp_node *node, visit_fn fn, void *userp) {
    for (size_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL && node->inputs[i]->block == block &&
            node->inputs[i]->producer != NULL)
            fn(userp, node->inputs[i]->producer);
    for (const kelp_attr *attr = node->attributes; attr != NULL; attr = attr->next)
        for (size_t k = 0; attr->blocks != NULL && k < attr->count; k++) {
            const kelp_block *inner = attr->blocks[k];
            for (size_t n = 0; n < inner->node_count; n++)
                visit_inputs(block, inner->nodes[n], fn, userp);
            for (size_t i = 0; i < inner->output_count; i++)
                if (inner->outputs[i]->block == block && inner->outputs[i]->producer != NULL)
                    fn(userp, inner->outputs[i]->producer);
        }
}

typedef struct check {
    size_t index;
    bool late;
} check;

static void note_late(void *userp, const kelp_node *producer) {
    check *c = userp;
    c->late = c->late || producer->index >= c->index;
}

static bool is_sorted(const kelp_block *block) {
    for (size_t n = 0; n < block->node_count; n++) {
        check c = {n, false};
        visit_inputs(block, block->nodes[n], note_late, &c);
        if (c.late)
            return false;
    }
    return true;
}

typedef struct edges {
    uint32_t *waiting; /* per node: number of producers not in the order yet */
    uint32_t *heads;   /* per node: first edge to a user + 1 */
    uint32_t *next;    /* per edge */
    uint32_t *users;   /* per edge */
    size_t count;
    size_t user; /* being visited */
} edges;

static void count_edge(void *userp, const kelp_node *producer) {
    (void)producer;
    ((edges *)userp)->count++;
}

static void add_edge(void *userp, const kelp_node *producer) {
    edges *e = userp;
    e->waiting[e->user]++;
    e->users[e->count] = (uint32_t)e->user;
    e->next[e->count] = e->heads[producer->index];
    e->heads[producer->index] = (uint32_t)++e->count;
}

static kelp_status *order_nodes(kelp_block *block, edges *e, kelp_node **order) {
    size_t ordered = 0;
    for (size_t n = 0; n < block->node_count; n++)
        if (e->waiting[n] == 0)
            order[ordered++] = block->nodes[n];
    for (size_t at = 0; at < ordered; at++)
        for (uint32_t edge = e->heads[order[at]->index]; edge != 0; edge = e->next[edge - 1]) {
            KELP_ASSERT(e->waiting[e->users[edge - 1]] > 0);
            if (--e->waiting[e->users[edge - 1]] == 0)
                order[ordered++] = block->nodes[e->users[edge - 1]];
        }
    for (size_t n = 0; ordered < block->node_count && n < block->node_count; n++)
        if (e->waiting[n] > 0)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "%s: node '%s' (%s) of graph '%s' depends on its own output: the graph has a cycle",
                block->graph->info.label, block->nodes[n]->name, block->nodes[n]->op->name,
                block->name);
    memcpy(block->nodes, order, ordered * sizeof *order);
    for (size_t n = 0; n < ordered; n++)
        block->nodes[n]->index = n;
    return NULL;
}

kelp_status *kelp_block_sort(kelp_block *block) {
    if (is_sorted(block))
        return NULL;
    edges e = {0};
    for (size_t n = 0; n < block->node_count; n++)
        visit_inputs(block, block->nodes[n], count_edge, &e);
    size_t edge_count = e.count, nodes = block->node_count;
    size_t bytes = nodes * sizeof(kelp_node *) + (2 * nodes + 2 * edge_count) * sizeof(uint32_t);
    void *memory = NULL;
    KELP_TRY(kelp_alloc_zero(block->graph->allocator, 1, bytes, &memory));
    kelp_node **order = memory;
    e.waiting = (uint32_t *)(order + nodes);
    e.heads = e.waiting + nodes;
    e.next = e.heads + nodes;
    e.users = e.next + edge_count;
    e.count = 0;
    for (e.user = 0; e.user < nodes; e.user++)
        visit_inputs(block, block->nodes[e.user], add_edge, &e);
    KELP_ASSERT(e.count == edge_count);
    kelp_status *status = order_nodes(block, &e, order);
    kelp_free(block->graph->allocator, memory, bytes);
    return status;
}
