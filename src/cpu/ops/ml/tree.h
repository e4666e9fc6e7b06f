/* SPDX-License-Identifier: Apache-2.0 */
/* Tree ensembles: read from attributes of any version as nodes, then compiled to steps. */
#ifndef KELP_CPU_OPS_ML_TREE_H_
#define KELP_CPU_OPS_ML_TREE_H_

#include "cpu/ops/ml/ml.h"

/* The values of nodes_modes of TreeEnsemble-5. */
typedef enum kelp_tree_mode {
    KELP_TREE_LEQ = 0,
    KELP_TREE_LT = 1,
    KELP_TREE_GTE = 2,
    KELP_TREE_GT = 3,
    KELP_TREE_EQ = 4,
    KELP_TREE_NEQ = 5,
    KELP_TREE_MEMBER = 6,
    KELP_TREE_LEAF = 7
} kelp_tree_mode;

/* A node as read from the attributes. In a branch, `yes` and `no` are its children. In a leaf,
 * `yes` is its first weight and `no` the number of its weights. */
typedef struct kelp_tree_node {
    double split;
    int32_t feature;
    int32_t yes, no;
    int32_t members, member_count; /* MEMBER: a range of kelp_trees.members */
    uint8_t mode;                  /* kelp_tree_mode */
    uint8_t missing_is_yes;
} kelp_tree_node;

/* A weight of a leaf. */
typedef struct kelp_tree_weight {
    double weight;
    int32_t target;
} kelp_tree_weight;

/* The values of aggregate_function of TreeEnsemble-5. */
typedef enum kelp_tree_aggregate {
    KELP_TREE_AVERAGE = 0,
    KELP_TREE_SUM = 1,
    KELP_TREE_MIN = 2,
    KELP_TREE_MAX = 3
} kelp_tree_aggregate;

/* A compiled node. The high bits of `column` are flags (tree_walk.c). The successor of a branch is
 * `next` or `next` + 1; a leaf is its own successor. */
typedef struct kelp_tree_step {
    double split;
    int32_t column, next;
} kelp_tree_step;
#define KELP_TREE_MAX_COLUMNS (1 << 27)

/* The data of a step: the weight of a leaf of a `single_target` ensemble, the range of weights of
 * other leaves, or the range of members of a MEMBER step. */
typedef union kelp_tree_leaf {
    struct {
        int32_t first, count;
    } list;
    double weight;
} kelp_tree_leaf;

/* A tree ensemble, the state of its kernels. */
typedef struct kelp_trees {
    kelp_ml_state head;
    kelp_arena reading;    /* freed when the state is complete */
    kelp_tree_node *nodes; /* in `reading`, like `read_roots` */
    size_t node_count;
    int32_t *read_roots;
    kelp_tree_step *steps;
    kelp_tree_leaf *leaves; /* one for each step */
    int32_t flags;          /* the union of the flags of all steps */
    bool single_target;     /* one target, one weight per leaf, and the weights are summed */
    int32_t *roots;
    size_t root_count;
    kelp_tree_weight *weights;
    const double *members;
    size_t targets;
    int64_t features; /* number of columns that the nodes read */
    kelp_tree_aggregate aggregate;
    kelp_ml_transform transform;
    const double *base;
    size_t base_count;
    kelp_ml_labels labels; /* classifiers */
    bool binary;           /* classifiers: weights of one class, but two labels */
    bool positive;         /* classifiers: no weight is negative */
    const kelp_node *node;
} kelp_trees;

/* Reads the attributes nodes_* and PREFIX_* ("class", "target") of versions 1 to 3, checks all
 * indices, and compiles the trees. */
kelp_status *kelp_trees_read_old(kelp_trees *trees, const kelp_node *node,
                                 const char *prefix) KELP_MUST_USE;
/* Does the same for the attributes of TreeEnsemble-5. */
kelp_status *kelp_trees_read(kelp_trees *trees, const kelp_node *node) KELP_MUST_USE;
/* Compiles the nodes to steps. Returns INVALID_ARGUMENT if a branch has two parents or the nodes
 * have a cycle. */
kelp_status *kelp_trees_compile(kelp_trees *trees) KELP_MUST_USE;

/* Rows of floats or doubles, and their aggregated scores per target. */
typedef struct kelp_tree_rows {
    const void *rows;
    bool floats;
    int64_t columns, count;
    double *scores;     /* [count, score_step] */
    bool *seen;         /* [count, score_step]: a leaf has a weight of the target */
    int64_t score_step; /* at least the number of targets */
} kelp_tree_rows;
/* Evaluates all trees for all rows. */
void kelp_trees_run(const kelp_trees *trees, const kelp_tree_rows *rows);

#endif
