/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compilation and traversal of trees. The comparisons in the nodes are unpredictable, so that CPU
 * branches on them would be mispredicted often. The traversal computes the index of the next step
 * instead, from adjacent children, and interleaves eight traversals (eight rows of one tree, or one
 * row of eight trees) to hide the latency of the loads. Both sum a row in the order of the trees.
 */
#include "base/assert.h"
#include "cpu/ops/ml/tree.h"

#include <float.h>
#include <math.h>

#define LANES 8
/* A compile-time variant of the traversal: floats or doubles; `plain` for trees whose only
 * comparison is `x <= split`. */
typedef struct tree_kind {
    bool floats, plain;
} tree_kind;
#define EACH_KIND static inline __attribute__((always_inline))

/* Flags in the high bits of kelp_tree_step.column. */
#define LESS (INT32_C(1) << 27) /* x < split */
#define EQUAL (INT32_C(1) << 28)
#define MEMBER (INT32_C(1) << 29)
#define NAN_ON (INT32_C(1) << 30) /* NaN selects the second child */
#define COLUMN (LESS - 1)

_Static_assert(COLUMN == KELP_TREE_MAX_COLUMNS - 1, "the flags are above the columns");

/* ---- from nodes to steps ---- */
/* Converts a comparison to `x <= split`. The children are swapped for the opposite comparison. */
static kelp_tree_step step_of(const kelp_tree_node *n, bool *out_swapped) {
    kelp_tree_mode mode = (kelp_tree_mode)n->mode;
    bool missing = n->missing_is_yes, above = mode == KELP_TREE_GT || mode == KELP_TREE_GTE;
    bool swapped = mode == KELP_TREE_NEQ || (above && !isnan(n->split));
    kelp_tree_step step = {.split = n->split, .column = n->feature};
    KELP_ASSERT(n->feature >= 0 && n->feature < KELP_TREE_MAX_COLUMNS && mode != KELP_TREE_LEAF);
    if (mode == KELP_TREE_LT || mode == KELP_TREE_GTE) {
        if (fabs(n->split) <= DBL_MIN) /* threads may flush subnormal numbers to zero */
            step.column |= LESS;
        else
            step.split = n->split == -INFINITY ? NAN : nextafter(n->split, -INFINITY);
    }
    if (mode == KELP_TREE_EQ || mode == KELP_TREE_NEQ)
        step.column |= EQUAL;
    if (mode == KELP_TREE_MEMBER)
        step.column |= MEMBER;
    /* comparisons with NaN are false, except NEQ */
    if (mode != KELP_TREE_NEQ && missing != swapped)
        step.column |= NAN_ON;
    *out_swapped = swapped;
    return step;
}

typedef struct compiler {
    kelp_trees *trees;
    int32_t *node_of; /* of each step: its node */
    bool *visited;    /* of each branch node */
    int32_t count;    /* of steps */
    size_t capacity;
} compiler;

static kelp_status *compile_branch(compiler *c, int32_t at, const kelp_tree_node *n) {
    kelp_trees *t = c->trees;
    bool swapped = false;
    int32_t node = c->node_of[at], pair = c->count;
    if (c->visited[node])
        return KELP_ML_ERROR(t->node, "node %d has two parents: expected a tree", (int)node);
    c->visited[node] = true;
    c->count += 2;
    KELP_ASSERT((size_t)c->count <= c->capacity);
    t->steps[at] = step_of(n, &swapped);
    t->steps[at].next = pair;
    t->flags |= t->steps[at].column & ~COLUMN;
    c->node_of[pair] = swapped ? n->yes : n->no;
    c->node_of[pair + 1] = swapped ? n->no : n->yes;
    if (n->mode == KELP_TREE_MEMBER)
        t->leaves[at].list.first = n->members, t->leaves[at].list.count = n->member_count;
    return NULL;
}

/* A leaf is its own successor for any value of its column. It may have several parents. */
static void compile_leaf(const compiler *c, int32_t at, const kelp_tree_node *n) {
    kelp_tree_leaf *leaf = &c->trees->leaves[at];
    c->trees->steps[at] = (kelp_tree_step){.split = NAN, .next = at};
    if (c->trees->single_target)
        leaf->weight = c->trees->weights[n->yes].weight;
    else
        leaf->list.first = n->yes, leaf->list.count = n->no;
}

static kelp_status *compiler_init(compiler *c) {
    kelp_trees *t = c->trees;
    size_t steps = t->root_count;
    t->single_target = t->targets == 1 && t->aggregate <= KELP_TREE_SUM && t->root_count > 0;
    for (size_t i = 0; i < t->node_count; i++) {
        bool leaf = t->nodes[i].mode == KELP_TREE_LEAF;
        steps += leaf ? 0 : 2;
        t->single_target = t->single_target && (!leaf || t->nodes[i].no == 1);
    }
    if (steps > INT32_MAX)
        return KELP_ML_ERROR(t->node, "the trees have too many nodes: found %zu", t->node_count);
    c->capacity = steps;
    c->node_of = KELP_ARENA_ARRAY(&t->reading, steps, int32_t);
    c->visited = KELP_ARENA_ARRAY(&t->reading, t->node_count, bool);
    t->steps = KELP_ARENA_ARRAY(&t->head.arena, steps, kelp_tree_step);
    t->leaves = KELP_ARENA_ARRAY(&t->head.arena, steps, kelp_tree_leaf);
    t->roots = KELP_ARENA_ARRAY(&t->head.arena, t->root_count, int32_t);
    bool all = c->node_of != NULL && c->visited != NULL && t->steps != NULL && t->leaves != NULL &&
               t->roots != NULL;
    return all ? NULL : kelp_status_oom();
}

kelp_status *kelp_trees_compile(kelp_trees *trees) {
    compiler c = {.trees = trees};
    KELP_TRY(compiler_init(&c));
    for (size_t r = 0; r < trees->root_count; r++) {
        int32_t at = c.count++;
        trees->roots[r] = at;
        c.node_of[at] = trees->read_roots[r];
        for (; at < c.count; at++) {
            KELP_ASSERT(c.node_of[at] >= 0 && (size_t)c.node_of[at] < trees->node_count);
            const kelp_tree_node *n = &trees->nodes[c.node_of[at]];
            if (n->mode == KELP_TREE_LEAF)
                compile_leaf(&c, at, n);
            else
                KELP_TRY(compile_branch(&c, at, n));
        }
    }
    return NULL;
}

/* ---- traversal ---- */
static bool is_member(const kelp_trees *t, int32_t at, double x) {
    const double *members = &t->members[t->leaves[at].list.first];
    for (int32_t i = 0; i < t->leaves[at].list.count; i++)
        if (members[i] == x)
            return true;
    return false;
}

/* Returns the successor of step `at`. */
EACH_KIND int32_t successor(const kelp_trees *t, tree_kind kind, int32_t at, const void *row) {
    const kelp_tree_step s = t->steps[at];
    int32_t column = s.column & COLUMN;
    double x = kind.floats ? (double)((const float *)row)[column] : ((const double *)row)[column];
    int32_t on = x <= s.split;
    if (!kind.plain) {
        on &= (x >= s.split) | !(s.column & EQUAL);
        on &= (x < s.split) | !(s.column & LESS);
        if (s.column & MEMBER)
            on = is_member(t, at, x);
        on |= (x != x) & ((s.column & NAN_ON) != 0);
    }
    return s.next + on;
}

/* Advances each of inout_at[i] with rows[i] to its leaf. */
EACH_KIND void descend(const kelp_trees *t, tree_kind kind, const void *const rows[LANES],
                       int32_t inout_at[LANES]) {
    int32_t moved;
    do {
        moved = 0;
        for (int i = 0; i < LANES; i++) {
            int32_t next = successor(t, kind, inout_at[i], rows[i]);
            moved |= next ^ inout_at[i];
            inout_at[i] = next;
        }
    } while (moved != 0);
}

static inline void add_leaf(const kelp_trees *t, int32_t at, double *scores, bool *seen) {
    const kelp_tree_leaf *leaf = &t->leaves[at];
    if (t->single_target) {
        *scores += leaf->weight;
        return;
    }
    for (int32_t i = 0; i < leaf->list.count; i++) {
        const kelp_tree_weight *w = &t->weights[leaf->list.first + i];
        double *score = &scores[w->target];
        if (t->aggregate == KELP_TREE_MIN)
            *score = seen[w->target] ? fmin(*score, w->weight) : w->weight;
        else if (t->aggregate == KELP_TREE_MAX)
            *score = seen[w->target] ? fmax(*score, w->weight) : w->weight;
        else
            *score += w->weight;
        seen[w->target] = true;
    }
}

EACH_KIND const void *row_of(tree_kind kind, const kelp_tree_rows *r, int64_t row) {
    size_t size = kind.floats ? sizeof(float) : sizeof(double);
    return (const char *)r->rows + (size_t)(row * r->columns) * size;
}

/* Evaluates all trees for eight rows, one tree after another. */
EACH_KIND void rows_of_eight(const kelp_trees *t, tree_kind kind, const kelp_tree_rows *r,
                             int64_t first) {
    const void *rows[LANES];
    for (int i = 0; i < LANES; i++)
        rows[i] = row_of(kind, r, first + i);
    for (size_t tree = 0; tree < t->root_count; tree++) {
        int32_t at[LANES];
        for (int i = 0; i < LANES; i++)
            at[i] = t->roots[tree];
        descend(t, kind, rows, at);
        for (int i = 0; i < LANES; i++)
            add_leaf(t, at[i], r->scores + (first + i) * r->score_step,
                     r->seen + (first + i) * r->score_step);
    }
}

/* Evaluates all trees for one row, eight trees at once. */
EACH_KIND void trees_of_eight(const kelp_trees *t, tree_kind kind, const kelp_tree_rows *r,
                              int64_t row) {
    const void *rows[LANES];
    for (int i = 0; i < LANES; i++)
        rows[i] = row_of(kind, r, row);
    for (size_t tree = 0; tree < t->root_count; tree += LANES) {
        size_t count = KELP_MIN(LANES, t->root_count - tree);
        int32_t at[LANES];
        for (size_t i = 0; i < LANES; i++)
            at[i] = t->roots[tree + KELP_MIN(i, count - 1)];
        descend(t, kind, rows, at);
        for (size_t i = 0; i < count; i++)
            add_leaf(t, at[i], r->scores + row * r->score_step, r->seen + row * r->score_step);
    }
}

EACH_KIND void run_kind(const kelp_trees *t, tree_kind kind, const kelp_tree_rows *r) {
    int64_t row = 0;
    for (; row + LANES <= r->count; row += LANES)
        rows_of_eight(t, kind, r, row);
    for (; row < r->count; row++)
        trees_of_eight(t, kind, r, row);
}

static bool has_nan(const kelp_tree_rows *r) {
    int64_t count = r->count * r->columns;
    const float *floats = r->rows;
    const double *doubles = r->rows;
    int found = 0;
    for (int64_t i = 0; r->floats && i < count; i++)
        found |= floats[i] != floats[i];
    for (int64_t i = 0; !r->floats && i < count; i++)
        found |= doubles[i] != doubles[i];
    return found != 0;
}

void kelp_trees_run(const kelp_trees *trees, const kelp_tree_rows *r) {
    KELP_ASSERT(r->columns >= trees->features);
    KELP_ASSERT(r->score_step >= (int64_t)trees->targets);
    for (int64_t row = 0; row < r->count; row++)
        for (size_t i = 0; i < trees->targets; i++) {
            r->scores[row * r->score_step + (int64_t)i] = 0;
            r->seen[row * r->score_step + (int64_t)i] = trees->single_target;
        }
    bool plain = trees->flags == 0 || (trees->flags == NAN_ON && !has_nan(r));
    if (plain && r->floats)
        run_kind(trees, (tree_kind){.floats = true, .plain = true}, r);
    else if (plain)
        run_kind(trees, (tree_kind){.floats = false, .plain = true}, r);
    else if (r->floats)
        run_kind(trees, (tree_kind){.floats = true, .plain = false}, r);
    else
        run_kind(trees, (tree_kind){.floats = false, .plain = false}, r);
    if (trees->aggregate != KELP_TREE_AVERAGE || trees->root_count == 0)
        return;
    for (int64_t row = 0; row < r->count; row++)
        for (size_t i = 0; i < trees->targets; i++)
            r->scores[row * r->score_step + (int64_t)i] /= (double)trees->root_count;
}
