/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convex sets of nodes.
 *
 * The level of a node is the maximum, over all paths to it, of the number of changes between
 * candidates and other nodes. Connected candidates of one level are convex: a path between two of
 * them through another node would raise the level of the second one. Levels divide more than
 * necessary. So a set is then joined with a set that reads its results, unless a path leads from
 * the first to the second through a third set.
 */
#include "runtime/partition/regions.h"

#include "base/assert.h"
#include "base/checked.h"

#include <string.h>

/* Limits the cost of joining, which visits every edge for each pair of sets. */
#define JOIN_MAX_TRIES 4096

typedef struct grower {
    const kelp_block *block;
    const bool *candidates;
    uint32_t *level, *set;                    /* by node; sets are a union-find forest */
    uint32_t *first_user, *next_user, *users; /* edges, by producer */
    uint32_t *first_member, *next_member;     /* nodes of a set, by its root */
    uint32_t *seen, *stack;                   /* by node: number of the last search; to visit */
    uint32_t search;
} grower;

/* Returns the index of the node that produces input `i`, or SIZE_MAX if no node of the block does.
 */
static size_t producer_of(const kelp_block *block, const kelp_node *node, size_t i) {
    const kelp_value *value = node->inputs[i];
    if (value == NULL || value->block != block || value->producer == NULL ||
        value->constant != NULL)
        return SIZE_MAX;
    return value->producer->index;
}

static uint32_t root_of(grower *g, uint32_t node) {
    while (g->set[node] != node) {
        g->set[node] = g->set[g->set[node]];
        node = g->set[node];
    }
    return node;
}

static kelp_status *allocate(grower *g, kelp_arena *arena) {
    size_t nodes = g->block->node_count, edges = 0;
    for (size_t n = 0; n < nodes; n++)
        edges += g->block->nodes[n]->input_count;
    uint32_t **const arrays[] = {&g->level,        &g->set,         &g->first_user,
                                 &g->first_member, &g->next_member, &g->seen};
    for (size_t i = 0; i < KELP_COUNT(arrays); i++) {
        *arrays[i] = KELP_ARENA_ARRAY(arena, nodes + 1, uint32_t);
        if (*arrays[i] == NULL)
            return kelp_status_oom();
    }
    g->next_user = KELP_ARENA_ARRAY(arena, edges + 1, uint32_t);
    g->users = KELP_ARENA_ARRAY(arena, edges + 1, uint32_t);
    g->stack = KELP_ARENA_ARRAY(arena, nodes + 1, uint32_t);
    return g->next_user != NULL && g->users != NULL && g->stack != NULL ? NULL : kelp_status_oom();
}

/* Computes levels and edges in one pass: producers precede their users. */
static void walk_edges(grower *g) {
    uint32_t edges = 0;
    for (uint32_t n = 0; n < g->block->node_count; n++) {
        const kelp_node *node = g->block->nodes[n];
        g->set[n] = n;
        for (size_t i = 0; i < node->input_count; i++) {
            size_t from = producer_of(g->block, node, i);
            if (from == SIZE_MAX)
                continue;
            KELP_ASSERT(from < n); /* the block is sorted */
            uint32_t level = g->level[from] + (g->candidates[from] != g->candidates[n]);
            g->level[n] = KELP_MAX(g->level[n], level);
            g->users[edges] = n;
            g->next_user[edges] = g->first_user[from];
            g->first_user[from] = ++edges;
        }
    }
}

static void join_levels(grower *g) {
    for (uint32_t n = 0; n < g->block->node_count; n++)
        for (uint32_t e = g->first_user[n]; e != 0; e = g->next_user[e - 1]) {
            uint32_t user = g->users[e - 1];
            if (g->candidates[n] && g->candidates[user] && g->level[n] == g->level[user])
                g->set[root_of(g, user)] = root_of(g, n);
        }
}

/* Lists the members of each set, in the order of the nodes. */
static void list_members(grower *g) {
    memset(g->first_member, 0, g->block->node_count * sizeof *g->first_member);
    for (uint32_t n = (uint32_t)g->block->node_count; n-- > 0;) {
        uint32_t root = root_of(g, n);
        g->next_member[n] = g->first_member[root];
        g->first_member[root] = n + 1;
    }
}

/* Pushes the users of a set, except members of `a` and `b`, on the stack. Returns true if `b` has a
 * user of the set and not `direct`. */
static bool push_users(grower *g, uint32_t root, uint32_t a, uint32_t b, bool direct,
                       size_t *inout_depth) {
    for (uint32_t m = g->first_member[root]; m != 0; m = g->next_member[m - 1])
        for (uint32_t e = g->first_user[m - 1]; e != 0; e = g->next_user[e - 1]) {
            uint32_t user = root_of(g, g->users[e - 1]);
            if (user == b && !direct)
                return true;
            if (user == a || user == b || g->seen[user] == g->search)
                continue;
            g->seen[user] = g->search;
            KELP_ASSERT(*inout_depth < g->block->node_count); /* each set is pushed once */
            g->stack[(*inout_depth)++] = user;
        }
    return false;
}

/* Returns true if a path leads from `a` to `b` through a third set. */
static bool has_indirect_path(grower *g, uint32_t a, uint32_t b) {
    size_t depth = 0;
    g->search++;
    (void)push_users(g, a, a, b, true, &depth);
    while (depth > 0)
        if (push_users(g, g->stack[--depth], a, b, false, &depth))
            return true;
    return false;
}

/* Joins the first pair of sets that stays convex. Returns false if there is no such pair. */
static bool join_one(grower *g, uint32_t *inout_tries) {
    for (uint32_t n = 0; n < g->block->node_count; n++) {
        for (uint32_t e = g->first_user[n]; g->candidates[n] && e != 0; e = g->next_user[e - 1]) {
            uint32_t user = g->users[e - 1], a = root_of(g, n), b = root_of(g, user);
            if (!g->candidates[user] || a == b)
                continue;
            if ((*inout_tries)++ >= JOIN_MAX_TRIES)
                return false;
            if (has_indirect_path(g, a, b))
                continue;
            g->set[b] = a;
            return true;
        }
    }
    return false;
}

kelp_status *kelp_regions_grow(const kelp_block *block, const bool *candidates, kelp_arena *arena,
                               uint32_t **out_of, uint32_t *out_count) {
    grower g = {.block = block, .candidates = candidates};
    KELP_TRY(allocate(&g, arena));
    walk_edges(&g);
    join_levels(&g);
    list_members(&g);
    for (uint32_t tries = 0; join_one(&g, &tries);)
        list_members(&g);
    uint32_t *of = KELP_ARENA_ARRAY(arena, block->node_count + 1, uint32_t);
    if (of == NULL)
        return kelp_status_oom();
    *out_count = 0;
    for (uint32_t n = 0; n < block->node_count; n++)
        of[n] = KELP_NO_REGION;
    for (uint32_t n = 0; n < block->node_count; n++) {
        if (!candidates[n])
            continue;
        uint32_t root = root_of(&g, n);
        if (of[root] == KELP_NO_REGION)
            of[root] = (*out_count)++;
        of[n] = of[root];
    }
    *out_of = of;
    return NULL;
}
