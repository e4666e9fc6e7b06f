/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ordered tree of nodes that are members of other objects: inserting, removing and finding the
 * next node take logarithmic time, appending takes constant time, and nothing allocates. Not
 * thread-safe.
 */
#ifndef KELP_SERVER_CORE_TREE_H_
#define KELP_SERVER_CORE_TREE_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct kelp_tree kelp_tree;

/* The position of a node, compared member by member. `serial` is unique in the tree. */
typedef struct kelp_tree_key {
    uint64_t major;
    uint64_t minor;
    uint64_t serial;
} kelp_tree_key;

/* A node; zero-initialized it is in no tree. */
typedef struct kelp_tree_node {
    kelp_tree *tree; /* NULL: in no tree */
    struct kelp_tree_node *parent, *left, *right;
    kelp_tree_key key;
} kelp_tree_node;

/* A tree; zero-initialized it is empty. Must not move while it has nodes. */
struct kelp_tree {
    kelp_tree_node *root;
    kelp_tree_node *first, *last; /* NULL if the tree is empty */
};

/* Returns true if `a` is before `b`. */
bool kelp_tree_before(const kelp_tree_node *a, const kelp_tree_node *b);
/* Inserts a node that is in no tree. */
void kelp_tree_insert(kelp_tree *tree, kelp_tree_node *node, kelp_tree_key key);
/* Removes a node from its tree, and keeps its key. */
void kelp_tree_remove(kelp_tree_node *node);
/* Returns the next node, or NULL. */
kelp_tree_node *kelp_tree_next(const kelp_tree_node *node);

#endif
