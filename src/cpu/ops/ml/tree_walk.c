/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way down the trees. What decides where it goes is as good as random, so a branch of the
 * processor there is guessed wrong half of the time: steps are computed instead, children side by
 * side, and eight ways go on together (eight rows down one tree, or one row down eight), so that
 * none waits for its own loads. A row's sums are made in the order of the trees either way.
 */
#include "cpu/ops/ml/tree.h"

#include <float.h>
#include <math.h>

#define LANES 8
/* What is made for floats and for doubles, and of each for trees that only ask `x <= split`
 * (plain) and for all others. */
#define EACH_KIND static inline __attribute__((always_inline))
typedef struct kind {
    bool floats, plain;
} tree_kind;

/* Kept above the column. */
#define LESS (INT32_C(1) << 27) /* x < split */
#define EQUAL (INT32_C(1) << 28)
#define MEMBER (INT32_C(1) << 29)
#define NAN_ON (INT32_C(1) << 30) /* NaN goes to the second child */
#define COLUMN (LESS - 1)

_Static_assert(COLUMN == KELP_TREE_MOST_COLUMNS - 1, "flags lie above the columns");

/* ---- from nodes to steps ---- */
/* Every comparison as `x <= split`; where the opposite is asked, children are turned. */
static kelp_tree_step step_of(const kelp_tree_node *n, bool *out_turned) {
    kelp_tree_mode mode = (kelp_tree_mode)n->mode;
    bool missing = n->missing_is_yes, above = mode == KELP_TREE_GT || mode == KELP_TREE_GTE;
    bool turned = mode == KELP_TREE_NEQ || (above && !isnan(n->split));
    kelp_tree_step step = {.split = n->split, .column = n->feature};
    if (mode == KELP_TREE_LT || mode == KELP_TREE_GTE) {
        if (fabs(n->split) <= DBL_MIN) /* some threads take what is smaller than that for 0 */
            step.column |= LESS;
        else
            step.split = n->split == -INFINITY ? NAN : nextafter(n->split, -INFINITY);
    }
    if (mode == KELP_TREE_EQ || mode == KELP_TREE_NEQ)
        step.column |= EQUAL;
    if (mode == KELP_TREE_MEMBER)
        step.column |= MEMBER;
    /* NaN compares with nothing, but for NEQ, which it fulfils */
    if (mode != KELP_TREE_NEQ && missing != turned)
        step.column |= NAN_ON;
    *out_turned = turned;
    return step;
}

typedef struct compiler {
    kelp_trees *trees;
    int32_t *waiting; /* of each step that is still to be made: its node */
    bool *met;        /* of nodes that branch */
    int32_t made;
} compiler;

static kelp_status *compile_branch(compiler *c, int32_t at, const kelp_tree_node *n) {
    kelp_trees *t = c->trees;
    bool turned = false;
    int32_t node = c->waiting[at], pair = c->made;
    if (c->met[node])
        return KELP_ML_ERROR(t->node, "node %d can be reached in two ways: not a tree", (int)node);
    c->met[node] = true;
    c->made += 2;
    t->steps[at] = step_of(n, &turned);
    t->steps[at].next = pair;
    t->flags |= t->steps[at].column & ~COLUMN;
    c->waiting[pair] = turned ? n->yes : n->no;
    c->waiting[pair + 1] = turned ? n->no : n->yes;
    if (n->mode == KELP_TREE_MEMBER)
        t->leaves[at].list.first = n->members, t->leaves[at].list.count = n->member_count;
    return NULL;
}

/* A leaf leads to itself, whatever is in the column. Several ways may lead to one. */
static void compile_leaf(const compiler *c, int32_t at, const kelp_tree_node *n) {
    kelp_tree_leaf *leaf = &c->trees->leaves[at];
    c->trees->steps[at] = (kelp_tree_step){.split = NAN, .next = at};
    if (c->trees->lone)
        leaf->weight = c->trees->weights[n->yes].weight;
    else
        leaf->list.first = n->yes, leaf->list.count = n->no;
}

static kelp_status *compiler_init(compiler *c) {
    kelp_trees *t = c->trees;
    size_t steps = t->root_count;
    t->lone = t->targets == 1 && t->aggregate <= KELP_TREE_SUM && t->root_count > 0;
    for (size_t i = 0; i < t->node_count; i++) {
        bool leaf = t->nodes[i].mode == KELP_TREE_LEAF;
        steps += leaf ? 0 : 2;
        t->lone = t->lone && (!leaf || t->nodes[i].no == 1);
    }
    if (steps > INT32_MAX)
        return KELP_ML_ERROR(t->node, "%zu nodes are too many", t->node_count);
    c->waiting = KELP_ARENA_ARRAY(&t->reading, steps, int32_t);
    c->met = KELP_ARENA_ARRAY(&t->reading, t->node_count, bool);
    t->steps = KELP_ARENA_ARRAY(&t->head.arena, steps, kelp_tree_step);
    t->leaves = KELP_ARENA_ARRAY(&t->head.arena, steps, kelp_tree_leaf);
    t->roots = KELP_ARENA_ARRAY(&t->head.arena, t->root_count, int32_t);
    bool all = c->waiting != NULL && c->met != NULL && t->steps != NULL && t->leaves != NULL &&
               t->roots != NULL;
    return all ? NULL : kelp_status_oom();
}

kelp_status *kelp_trees_compile(kelp_trees *trees) {
    compiler c = {.trees = trees};
    KELP_TRY(compiler_init(&c));
    for (size_t r = 0; r < trees->root_count; r++) {
        int32_t at = c.made++;
        trees->roots[r] = at;
        c.waiting[at] = trees->read_roots[r];
        for (; at < c.made; at++) {
            const kelp_tree_node *n = &trees->nodes[c.waiting[at]];
            if (n->mode == KELP_TREE_LEAF)
                compile_leaf(&c, at, n);
            else
                KELP_TRY(compile_branch(&c, at, n));
        }
    }
    return NULL;
}

/* ---- down ---- */
static bool is_member(const kelp_trees *t, int32_t at, double x) {
    const double *members = &t->members[t->leaves[at].list.first];
    for (int32_t i = 0; i < t->leaves[at].list.count; i++)
        if (members[i] == x)
            return true;
    return false;
}

EACH_KIND int32_t go_on(const kelp_trees *t, tree_kind kind, int32_t at, const void *row) {
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

/* From inout_at[i] with rows[i] to a leaf. */
EACH_KIND void go_down(const kelp_trees *t, tree_kind kind, const void *const rows[LANES],
                       int32_t inout_at[LANES]) {
    int32_t moved;
    do {
        moved = 0;
        for (int i = 0; i < LANES; i++) {
            int32_t next = go_on(t, kind, inout_at[i], rows[i]);
            moved |= next ^ inout_at[i];
            inout_at[i] = next;
        }
    } while (moved != 0);
}

static inline void add_leaf(const kelp_trees *t, int32_t at, double *scores, bool *seen) {
    const kelp_tree_leaf *leaf = &t->leaves[at];
    if (t->lone) {
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

/* Eight rows down each tree. */
EACH_KIND void rows_of_eight(const kelp_trees *t, tree_kind kind, const kelp_tree_rows *r,
                             int64_t first) {
    const void *rows[LANES];
    for (int i = 0; i < LANES; i++)
        rows[i] = row_of(kind, r, first + i);
    for (size_t tree = 0; tree < t->root_count; tree++) {
        int32_t at[LANES];
        for (int i = 0; i < LANES; i++)
            at[i] = t->roots[tree];
        go_down(t, kind, rows, at);
        for (int i = 0; i < LANES; i++)
            add_leaf(t, at[i], r->scores + (first + i) * r->score_step,
                     r->seen + (first + i) * r->score_step);
    }
}

/* One row down eight trees. */
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
        go_down(t, kind, rows, at);
        for (size_t i = 0; i < count; i++)
            add_leaf(t, at[i], r->scores + row * r->score_step, r->seen + row * r->score_step);
    }
}

EACH_KIND void go(const kelp_trees *t, tree_kind kind, const kelp_tree_rows *r) {
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
    for (int64_t row = 0; row < r->count; row++)
        for (size_t i = 0; i < trees->targets; i++) {
            r->scores[row * r->score_step + (int64_t)i] = 0;
            r->seen[row * r->score_step + (int64_t)i] = trees->lone;
        }
    bool plain = trees->flags == 0 || (trees->flags == NAN_ON && !has_nan(r));
    if (plain && r->floats)
        go(trees, (tree_kind){.floats = true, .plain = true}, r);
    else if (plain)
        go(trees, (tree_kind){.floats = false, .plain = true}, r);
    else if (r->floats)
        go(trees, (tree_kind){.floats = true, .plain = false}, r);
    else
        go(trees, (tree_kind){.floats = false, .plain = false}, r);
    if (trees->aggregate != KELP_TREE_AVERAGE || trees->root_count == 0)
        return;
    for (int64_t row = 0; row < r->count; row++)
        for (size_t i = 0; i < trees->targets; i++)
            r->scores[row * r->score_step + (int64_t)i] /= (double)trees->root_count;
}
