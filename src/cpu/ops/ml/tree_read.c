/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the attributes of TreeEnsembleClassifier, TreeEnsembleRegressor (1, 3) and TreeEnsemble
 * (5). All indices are untrusted and are checked here, so that evaluation needs no checks.
 */
#include "base/assert.h"
#include "cpu/ops/ml/tree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- versions 1 to 3: nodes are identified by (tree, node) ---- */
typedef struct key {
    int64_t tree, node;
    int32_t index;
} key;

static int compare_keys(const void *a, const void *b) {
    const key *x = a, *y = b;
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

typedef struct old_form {
    kelp_trees *trees;
    const kelp_node *node;
    key *keys;
    const int64_t *tree_ids, *node_ids, *features, *yes, *no, *missing;
    const kelp_string *modes;
    const double *splits;
    size_t count;
    size_t start; /* presumed index of the first key of the tree that was found last */
} old_form;

/* Finds a node. Tries its position in a tree whose nodes are numbered from 0 before it searches. */
static kelp_status *find(old_form *o, int64_t tree, int64_t node, const char *what, int32_t *out) {
    key wanted = {tree, node, 0};
    const key *found = NULL;
    KELP_ASSERT(o->start < o->count);
    if (node >= 0 && (uint64_t)node < o->count - o->start)
        found = &o->keys[o->start + (size_t)node];
    if (found == NULL || compare_keys(found, &wanted) != 0)
        found = bsearch(&wanted, o->keys, o->count, sizeof *o->keys, compare_keys);
    if (found == NULL)
        return KELP_ML_ERROR(o->node, "%s: tree %lld has no node %lld", what, (long long)tree,
                             (long long)node);
    size_t at = (size_t)(found - o->keys);
    o->start = node >= 0 && (uint64_t)node <= at ? at - (size_t)node : 0;
    *out = found->index;
    return NULL;
}

/* Reads an attribute of `count` integers; *out is NULL for an empty one. */
static kelp_status *ints(const kelp_node *node, const char *name, size_t count, bool needed,
                         const int64_t **out) {
    size_t length = kelp_node_attr_i64s(node, name, out);
    if (length != count && (needed || length != 0))
        return KELP_ML_ERROR(node, "attribute '%s': expected %zu values, found %zu", name, count,
                             length);
    if (length == 0)
        *out = NULL;
    return NULL;
}

static kelp_status *read_mode(const kelp_node *node, const kelp_string *name, uint8_t *out) {
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
    for (uint8_t i = 0; i < KELP_COUNT(names); i++)
        if (i != KELP_TREE_MEMBER && strlen(names[i]) == name->length &&
            memcmp(names[i], name->data, name->length) == 0) {
            *out = i;
            return NULL;
        }
    return KELP_ML_ERROR(node, "nodes_modes: unknown mode '%.*s'", (int)name->length, name->data);
}

static kelp_status *old_arrays(old_form *o) {
    kelp_arena *arena = &o->trees->reading;
    size_t splits;
    o->count = kelp_node_attr_i64s(o->node, "nodes_treeids", &o->tree_ids);
    if (o->count == 0 || o->count > INT32_MAX / 2)
        return KELP_ML_ERROR(o->node, "nodes_treeids: expected 1 to 2^30 nodes, found %zu",
                             o->count);
    KELP_TRY(ints(o->node, "nodes_nodeids", o->count, true, &o->node_ids));
    KELP_TRY(ints(o->node, "nodes_featureids", o->count, true, &o->features));
    KELP_TRY(ints(o->node, "nodes_truenodeids", o->count, true, &o->yes));
    KELP_TRY(ints(o->node, "nodes_falsenodeids", o->count, true, &o->no));
    KELP_TRY(ints(o->node, "nodes_missing_value_tracks_true", o->count, false, &o->missing));
    size_t modes = kelp_node_attr_strings(o->node, "nodes_modes", &o->modes);
    KELP_TRY(kelp_ml_numbers(arena, o->node, "nodes_values", "nodes_values_as_tensor", &o->splits,
                             &splits));
    if (modes != o->count || splits != o->count)
        return KELP_ML_ERROR(o->node,
                             "expected %zu nodes_modes and nodes_values, found %zu and %zu",
                             o->count, modes, splits);
    o->keys = KELP_ARENA_ARRAY(arena, o->count, key);
    o->trees->nodes = KELP_ARENA_ARRAY(arena, o->count, kelp_tree_node);
    o->trees->read_roots = KELP_ARENA_ARRAY(arena, o->count, int32_t);
    if (o->keys == NULL || o->trees->nodes == NULL || o->trees->read_roots == NULL)
        return kelp_status_oom();
    o->trees->node_count = o->count;
    return NULL;
}

static kelp_status *old_nodes(old_form *o) {
    kelp_trees *t = o->trees;
    for (size_t i = 0; i < o->count; i++)
        o->keys[i] = (key){o->tree_ids[i], o->node_ids[i], (int32_t)i};
    bool sorted = true;
    for (size_t i = 1; i < o->count && sorted; i++)
        sorted = compare_keys(&o->keys[i - 1], &o->keys[i]) < 0;
    if (!sorted)
        qsort(o->keys, o->count, sizeof *o->keys, compare_keys);
    for (size_t i = 1; i < o->count; i++)
        if (compare_keys(&o->keys[i - 1], &o->keys[i]) == 0)
            return KELP_ML_ERROR(o->node, "nodes_nodeids: tree %lld has node %lld twice",
                                 (long long)o->keys[i].tree, (long long)o->keys[i].node);
    for (size_t i = 0; i < o->count; i++) {
        kelp_tree_node *n = &t->nodes[i];
        if (i == 0 || o->tree_ids[i] != o->tree_ids[i - 1])
            t->read_roots[t->root_count++] = (int32_t)i;
        KELP_TRY(read_mode(o->node, &o->modes[i], &n->mode));
        if (n->mode == KELP_TREE_LEAF)
            continue;
        if (o->features[i] < 0 || o->features[i] >= KELP_TREE_MAX_COLUMNS)
            return KELP_ML_ERROR(o->node, "nodes_featureids[%zu]: %lld is not a column", i,
                                 (long long)o->features[i]);
        n->feature = (int32_t)o->features[i];
        n->split = o->splits[i];
        n->missing_is_yes = o->missing != NULL && o->missing[i] != 0;
        t->features = KELP_MAX(t->features, n->feature + 1);
        KELP_TRY(find(o, o->tree_ids[i], o->yes[i], "nodes_truenodeids", &n->yes));
        KELP_TRY(find(o, o->tree_ids[i], o->no[i], "nodes_falsenodeids", &n->no));
    }
    return NULL;
}

/* Groups the weights by leaf: counts those of each leaf, then stores them. */
static kelp_status *old_weights(old_form *o, const char *prefix) {
    kelp_trees *t = o->trees;
    kelp_arena *arena = &t->reading;
    char names[5][40];
    static const char *const parts[5] = {"treeids", "nodeids", "ids", "weights",
                                         "weights_as_tensor"};
    for (size_t i = 0; i < 5; i++)
        snprintf(names[i], sizeof names[i], "%s_%s", prefix, parts[i]);
    const int64_t *tree_ids, *node_ids, *ids;
    const double *weights;
    size_t weight_count, count = kelp_node_attr_i64s(o->node, names[0], &tree_ids);
    KELP_TRY(ints(o->node, names[1], count, true, &node_ids));
    KELP_TRY(ints(o->node, names[2], count, true, &ids));
    KELP_TRY(kelp_ml_numbers(arena, o->node, names[3], names[4], &weights, &weight_count));
    if (weight_count != count || count > INT32_MAX / 2)
        return KELP_ML_ERROR(o->node, "%s: expected %zu values, found %zu", names[3], count,
                             weight_count);
    int32_t *leaves = KELP_ARENA_ARRAY(arena, count + 1, int32_t);
    t->weights = KELP_ARENA_ARRAY(&t->head.arena, count + 1, kelp_tree_weight);
    if (leaves == NULL || t->weights == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < count; i++) {
        KELP_TRY(find(o, tree_ids[i], node_ids[i], names[1], &leaves[i]));
        if (ids[i] < 0 || (size_t)ids[i] >= t->targets)
            return KELP_ML_ERROR(o->node, "%s[%zu]: %lld is outside [0, %zu)", names[2], i,
                                 (long long)ids[i], t->targets);
        if (t->nodes[leaves[i]].mode == KELP_TREE_LEAF)
            t->nodes[leaves[i]].no++;
    }
    int32_t at = 0;
    for (size_t i = 0; i < t->node_count; i++)
        if (t->nodes[i].mode == KELP_TREE_LEAF) {
            t->nodes[i].yes = at;
            at += t->nodes[i].no;
            t->nodes[i].no = 0;
        }
    KELP_ASSERT((size_t)at <= count);
    for (size_t i = 0; i < count; i++) {
        kelp_tree_node *leaf = &t->nodes[leaves[i]];
        if (leaf->mode == KELP_TREE_LEAF) /* weights of branches have no effect */
            t->weights[leaf->yes + leaf->no++] = (kelp_tree_weight){weights[i], (int32_t)ids[i]};
    }
    return NULL;
}

kelp_status *kelp_trees_read_old(kelp_trees *trees, const kelp_node *node, const char *prefix) {
    old_form o = {.trees = trees, .node = node};
    trees->node = node;
    KELP_TRY(old_arrays(&o));
    KELP_TRY(old_nodes(&o));
    KELP_TRY(old_weights(&o, prefix));
    KELP_TRY(kelp_ml_numbers(&trees->head.arena, node, "base_values", "base_values_as_tensor",
                             &trees->base, &trees->base_count));
    return kelp_trees_compile(trees);
}

/* ---- TreeEnsemble-5: separate numbers for branches and leaves ---- */
typedef struct new_form {
    kelp_trees *trees;
    const kelp_node *node;
    size_t branches, leaves;
    const int64_t *features, *yes, *no, *yes_leaf, *no_leaf, *missing, *roots, *targets;
    const kelp_tensor *modes;
} new_form;

static kelp_status *tensor_numbers(const new_form *f, kelp_arena *arena, const char *name,
                                   const double **out, size_t *out_count) {
    const kelp_tensor *tensor = kelp_node_attr_tensor(f->node, name);
    *out_count = tensor != NULL ? (size_t)kelp_tensor_elements(tensor) : 0;
    double *numbers = KELP_ARENA_ARRAY(arena, *out_count + 1, double);
    if (numbers == NULL)
        return kelp_status_oom();
    if (tensor != NULL && tensor->dtype != KELP_F32 && tensor->dtype != KELP_F64 &&
        tensor->dtype != KELP_F16)
        return KELP_ML_ERROR(f->node,
                             "attribute '%s' has the wrong type: expected a float type, found %s",
                             name, kelp_dtype_name(tensor->dtype));
    if (tensor != NULL) {
        /* the data of attributes may be unaligned */
        kelp_tensor aligned = *tensor;
        size_t bytes = kelp_tensor_bytes(tensor);
        aligned.data = kelp_arena_alloc(&f->trees->reading, bytes + 8, 16);
        if (aligned.data == NULL)
            return kelp_status_oom();
        if (bytes > 0)
            memcpy(aligned.data, tensor->data, bytes);
        for (size_t i = 0; i < *out_count; i++)
            numbers[i] = kelp_ops_read_f64(&aligned, (int64_t)i);
    }
    *out = numbers;
    return NULL;
}

static kelp_status *child(const new_form *f, size_t i, const char *name, int64_t index,
                          int64_t is_leaf, int32_t *out) {
    size_t limit = is_leaf ? f->leaves : f->branches;
    if (index < 0 || (size_t)index >= limit)
        return KELP_ML_ERROR(f->node, "%s[%zu]: %lld is outside [0, %zu)", name, i,
                             (long long)index, limit);
    *out = (int32_t)(is_leaf ? f->branches + (size_t)index : (size_t)index);
    return NULL;
}

static kelp_status *new_branches(new_form *f) {
    kelp_trees *t = f->trees;
    const double *splits;
    size_t split_count, member_count, member = 0;
    KELP_TRY(tensor_numbers(f, &t->reading, "nodes_splits", &splits, &split_count));
    KELP_TRY(tensor_numbers(f, &t->head.arena, "membership_values", &t->members, &member_count));
    if (split_count != f->branches || f->modes == NULL || f->modes->dtype != KELP_U8 ||
        (size_t)kelp_tensor_elements(f->modes) != f->branches)
        return KELP_ML_ERROR(f->node, "expected %zu nodes_splits and nodes_modes (uint8)",
                             f->branches);
    for (size_t i = 0; i < f->branches; i++) {
        kelp_tree_node *n = &t->nodes[i];
        n->mode = ((const uint8_t *)f->modes->data)[i];
        if (n->mode > KELP_TREE_MEMBER)
            return KELP_ML_ERROR(f->node, "nodes_modes[%zu]: expected 0 to 6, found %u", i,
                                 n->mode);
        if (f->features[i] < 0 || f->features[i] >= KELP_TREE_MAX_COLUMNS)
            return KELP_ML_ERROR(f->node, "nodes_featureids[%zu]: %lld is not a column", i,
                                 (long long)f->features[i]);
        n->feature = (int32_t)f->features[i];
        n->split = splits[i];
        n->missing_is_yes = f->missing != NULL && f->missing[i] != 0;
        t->features = KELP_MAX(t->features, n->feature + 1);
        KELP_TRY(child(f, i, "nodes_truenodeids", f->yes[i], f->yes_leaf[i], &n->yes));
        KELP_TRY(child(f, i, "nodes_falsenodeids", f->no[i], f->no_leaf[i], &n->no));
        if (n->mode != KELP_TREE_MEMBER)
            continue;
        n->members = (int32_t)member;
        while (member < member_count && !isnan(t->members[member]))
            member++;
        n->member_count = (int32_t)member - n->members;
        if (member < member_count)
            member++; /* the NaN that ends the set */
    }
    return NULL;
}

static kelp_status *new_leaves(new_form *f) {
    kelp_trees *t = f->trees;
    const double *weights;
    size_t count;
    KELP_TRY(tensor_numbers(f, &t->reading, "leaf_weights", &weights, &count));
    if (count != f->leaves)
        return KELP_ML_ERROR(f->node, "leaf_weights: expected %zu values, found %zu", f->leaves,
                             count);
    for (size_t i = 0; i < f->leaves; i++) {
        if (f->targets[i] < 0 || (size_t)f->targets[i] >= t->targets)
            return KELP_ML_ERROR(f->node, "leaf_targetids[%zu]: %lld is outside [0, %zu)", i,
                                 (long long)f->targets[i], t->targets);
        t->weights[i] = (kelp_tree_weight){weights[i], (int32_t)f->targets[i]};
        t->nodes[f->branches + i] =
            (kelp_tree_node){.mode = KELP_TREE_LEAF, .yes = (int32_t)i, .no = 1};
    }
    return NULL;
}

kelp_status *kelp_trees_read(kelp_trees *trees, const kelp_node *node) {
    new_form f = {.trees = trees, .node = node};
    kelp_arena *arena = &trees->reading;
    trees->node = node;
    f.branches = kelp_node_attr_i64s(node, "nodes_featureids", &f.features);
    f.leaves = kelp_node_attr_i64s(node, "leaf_targetids", &f.targets);
    trees->root_count = kelp_node_attr_i64s(node, "tree_roots", &f.roots);
    f.modes = kelp_node_attr_tensor(node, "nodes_modes");
    if (f.branches == 0 || f.leaves == 0 || f.branches + f.leaves > INT32_MAX / 2)
        return KELP_ML_ERROR(node, "expected 1 to 2^30 nodes and leaves, found %zu and %zu",
                             f.branches, f.leaves);
    KELP_TRY(ints(node, "nodes_truenodeids", f.branches, true, &f.yes));
    KELP_TRY(ints(node, "nodes_falsenodeids", f.branches, true, &f.no));
    KELP_TRY(ints(node, "nodes_trueleafs", f.branches, true, &f.yes_leaf));
    KELP_TRY(ints(node, "nodes_falseleafs", f.branches, true, &f.no_leaf));
    KELP_TRY(ints(node, "nodes_missing_value_tracks_true", f.branches, false, &f.missing));
    trees->node_count = f.branches + f.leaves;
    trees->nodes = KELP_ARENA_ARRAY(arena, trees->node_count, kelp_tree_node);
    trees->weights = KELP_ARENA_ARRAY(&trees->head.arena, f.leaves, kelp_tree_weight);
    trees->read_roots = KELP_ARENA_ARRAY(arena, trees->root_count + 1, int32_t);
    if (trees->nodes == NULL || trees->weights == NULL || trees->read_roots == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < trees->root_count; i++)
        KELP_TRY(child(&f, i, "tree_roots", f.roots[i], 0, &trees->read_roots[i]));
    KELP_TRY(new_branches(&f));
    KELP_TRY(new_leaves(&f));
    KELP_ASSERT(trees->features <= KELP_TREE_MAX_COLUMNS);
    return kelp_trees_compile(trees);
}
