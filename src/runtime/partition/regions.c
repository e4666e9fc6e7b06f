/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convex sets of nodes.
 *
 * A node's level is how often, at most, a path that leads to it changes between candidates and
 * others. Candidates of one level that are connected are convex: a path between two of them that
 * goes through another node would have raised the second one's level. Levels are finer than need
 * be: a set is then joined with one that reads its results, unless some path leads from the one to
 * the other through a third.
 */
#include "runtime/partition/regions.h"

#include "base/checked.h"

#include <string.h>

/* Joining looks at every edge for each pair that it tries. */
#define JOIN_MAX_TRIES 4096

typedef struct grower {
    const kelp_block *block;
    const bool *candidates;
    uint32_t *level, *set;                    /* by node; sets are a forest of union-find */
    uint32_t *first_user, *next_user, *users; /* edges, by producer */
    uint32_t *first_member, *next_member;     /* nodes of a set, by its root */
    uint32_t *seen, *stack;                   /* of a search; `seen` holds its number */
    uint32_t search;
} grower;

/* The node of the block that makes input `i` of node `n`, or SIZE_MAX. */
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

/* Levels and edges, in one walk: producers come first. */
static void walk_edges(grower *g) {
    uint32_t edges = 0;
    for (uint32_t n = 0; n < g->block->node_count; n++) {
        const kelp_node *node = g->block->nodes[n];
        g->set[n] = n;
        for (size_t i = 0; i < node->input_count; i++) {
            size_t from = producer_of(g->block, node, i);
            if (from == SIZE_MAX)
                continue;
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

/* Sets as lists, in the nodes' order. */
static void list_members(grower *g) {
    memset(g->first_member, 0, g->block->node_count * sizeof *g->first_member);
    for (uint32_t n = (uint32_t)g->block->node_count; n-- > 0;) {
        uint32_t root = root_of(g, n);
        g->next_member[n] = g->first_member[root];
        g->first_member[root] = n + 1;
    }
}

/* Puts the users of a set on the stack, but for those in `a`, and in `b` when `direct`. true when a
 * user in `b` was met that counts. */
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
            g->stack[(*inout_depth)++] = user;
        }
    return false;
}

/* Returns true if a path leads from `a` to `b` through a third. */
static bool leads_around(grower *g, uint32_t a, uint32_t b) {
    size_t depth = 0;
    g->search++;
    (void)push_users(g, a, a, b, true, &depth);
    while (depth > 0)
        if (push_users(g, g->stack[--depth], a, b, false, &depth))
            return true;
    return false;
}

/* The first pair of sets of which one reads the other's results and that may be one. */
static bool join_one(grower *g, uint32_t *inout_tries) {
    for (uint32_t n = 0; n < g->block->node_count; n++) {
        for (uint32_t e = g->first_user[n]; g->candidates[n] && e != 0; e = g->next_user[e - 1]) {
            uint32_t user = g->users[e - 1], a = root_of(g, n), b = root_of(g, user);
            if (!g->candidates[user] || a == b)
                continue;
            if ((*inout_tries)++ >= JOIN_MAX_TRIES)
                return false;
            if (leads_around(g, a, b))
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
