/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ordered tree of nodes that are members of other objects: inserting, removing and finding the
 * next node take logarithmic time, appending takes constant time, and nothing allocates. Not
 * thread-safe.
 */
#ifndef KELP_SERVER_CORE_ORDERED_TREE_H_
#define KELP_SERVER_CORE_ORDERED_TREE_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct kelp_ordered_tree kelp_ordered_tree;

/* The position of a node, compared member by member. `serial` is unique in the tree. */
typedef struct kelp_ordered_key {
    uint64_t major;
    uint64_t minor;
    uint64_t serial;
} kelp_ordered_key;

/* A node; zero-initialized it is in no tree. */
typedef struct kelp_ordered_node {
    kelp_ordered_tree *tree; /* NULL: in no tree */
    struct kelp_ordered_node *parent, *left, *right;
    kelp_ordered_key key;
} kelp_ordered_node;

/* A tree; zero-initialized it is empty. Must not move while it has nodes. */
struct kelp_ordered_tree {
    kelp_ordered_node *root;
    kelp_ordered_node *first, *last; /* NULL if the tree is empty */
};

/* Returns true if `a` is before `b`. */
bool kelp_ordered_tree_before(const kelp_ordered_node *a, const kelp_ordered_node *b);
/* Inserts a node that is in no tree. */
void kelp_ordered_tree_insert(kelp_ordered_tree *tree, kelp_ordered_node *node,
                              kelp_ordered_key key);
/* Removes a node from its tree, and keeps its key. */
void kelp_ordered_tree_remove(kelp_ordered_node *node);
/* Returns the next node, or NULL. */
kelp_ordered_node *kelp_ordered_tree_next(const kelp_ordered_node *node);

#endif
