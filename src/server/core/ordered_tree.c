/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered trees. They are treaps: the weight of a node, a hash of its serial number, is at most
 * that of its parent, which keeps the tree balanced with high probability. */
#include "server/core/ordered_tree.h"

#include "base/assert.h"

#include <stddef.h>

/* Returns the weight of a node (the finalizer of SplitMix64). */
static uint64_t weight(const kelp_ordered_node *node) {
    uint64_t x = node->key.serial + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

bool kelp_ordered_tree_before(const kelp_ordered_node *a, const kelp_ordered_node *b) {
    if (a->key.major != b->key.major)
        return a->key.major < b->key.major;
    if (a->key.minor != b->key.minor)
        return a->key.minor < b->key.minor;
    return a->key.serial < b->key.serial;
}

/* Sets the child of `parent`, or the root, that was `from`. */
static void replace_child(kelp_ordered_tree *tree, kelp_ordered_node *parent,
                          const kelp_ordered_node *from, kelp_ordered_node *to) {
    if (parent == NULL)
        tree->root = to;
    else if (parent->left == from)
        parent->left = to;
    else
        parent->right = to;
    if (to != NULL)
        to->parent = parent;
}

/* Exchanges a node with its parent. */
static void rotate_up(kelp_ordered_node *node) {
    kelp_ordered_node *parent = node->parent;
    kelp_ordered_node *moved = parent->left == node ? node->right : node->left;
    bool is_left = parent->left == node;
    replace_child(node->tree, parent->parent, parent, node);
    if (is_left) {
        node->right = parent;
        parent->left = moved;
    } else {
        node->left = parent;
        parent->right = moved;
    }
    parent->parent = node;
    if (moved != NULL)
        moved->parent = parent;
}

static void attach(kelp_ordered_tree *tree, kelp_ordered_node *node) {
    kelp_ordered_node **link = &tree->root;
    node->parent = NULL;
    if (tree->last != NULL && kelp_ordered_tree_before(tree->last, node)) {
        node->parent = tree->last;
        link = &tree->last->right;
    }
    while (*link != NULL) {
        node->parent = *link;
        link = kelp_ordered_tree_before(node, *link) ? &(*link)->left : &(*link)->right;
    }
    *link = node;
}

void kelp_ordered_tree_insert(kelp_ordered_tree *tree, kelp_ordered_node *node,
                              kelp_ordered_key key) {
    KELP_ASSERT(node->tree == NULL);
    *node = (kelp_ordered_node){.tree = tree, .key = key};
    attach(tree, node);
    if (tree->first == NULL || kelp_ordered_tree_before(node, tree->first))
        tree->first = node;
    if (tree->last == NULL || kelp_ordered_tree_before(tree->last, node))
        tree->last = node;
    while (node->parent != NULL && weight(node->parent) < weight(node))
        rotate_up(node);
}

static kelp_ordered_node *leftmost(kelp_ordered_node *node) {
    while (node->left != NULL)
        node = node->left;
    return node;
}

kelp_ordered_node *kelp_ordered_tree_next(const kelp_ordered_node *node) {
    if (node->right != NULL)
        return leftmost(node->right);
    while (node->parent != NULL && node->parent->right == node)
        node = node->parent;
    return node->parent;
}

static kelp_ordered_node *previous(const kelp_ordered_node *node) {
    if (node->left != NULL) {
        kelp_ordered_node *at = node->left;
        while (at->right != NULL)
            at = at->right;
        return at;
    }
    while (node->parent != NULL && node->parent->left == node)
        node = node->parent;
    return node->parent;
}

void kelp_ordered_tree_remove(kelp_ordered_node *node) {
    kelp_ordered_tree *tree = node->tree;
    KELP_ASSERT(tree != NULL);
    if (tree->first == node)
        tree->first = kelp_ordered_tree_next(node);
    if (tree->last == node)
        tree->last = previous(node);
    while (node->left != NULL && node->right != NULL)
        rotate_up(weight(node->left) > weight(node->right) ? node->left : node->right);
    replace_child(tree, node->parent, node, node->left != NULL ? node->left : node->right);
    *node = (kelp_ordered_node){.key = node->key};
}
