/* SPDX-License-Identifier: Apache-2.0 */
/* Tree ensembles in one form, whichever attributes they come from. */
#ifndef KELP_CPU_OPS_ML_TREE_H_
#define KELP_CPU_OPS_ML_TREE_H_

#include "cpu/ops/ml/ml.h"

typedef enum kelp_tree_mode { /* numbers of TreeEnsemble-5's nodes_modes */
                              KELP_TREE_LEQ = 0,
                              KELP_TREE_LT = 1,
                              KELP_TREE_GTE = 2,
                              KELP_TREE_GT = 3,
                              KELP_TREE_EQ = 4,
                              KELP_TREE_NEQ = 5,
                              KELP_TREE_MEMBER = 6,
                              KELP_TREE_LEAF = 7
} kelp_tree_mode;

/* What is read from attributes. A branch: nodes to go on with. A leaf: `yes` is its first weight,
 * `no` how many it has. */
typedef struct kelp_tree_node {
    double split;
    int32_t feature;
    int32_t yes, no;
    int32_t members, member_count; /* of MEMBER, in the ensemble's list */
    uint8_t mode;                  /* kelp_tree_mode */
    uint8_t missing_is_yes;
} kelp_tree_node;

typedef struct kelp_tree_weight {
    double weight;
    int32_t target;
} kelp_tree_weight;

typedef enum kelp_tree_aggregate { /* numbers of TreeEnsemble-5 */
                                   KELP_TREE_AVERAGE = 0,
                                   KELP_TREE_SUM = 1,
                                   KELP_TREE_MIN = 2,
                                   KELP_TREE_MAX = 3
} kelp_tree_aggregate;

/* What runs. `column` holds flags as well (tree_walk.c); the step goes on at `next` or the one
 * behind it, a leaf at itself. */
typedef struct kelp_tree_step {
    double split;
    int32_t column, next;
} kelp_tree_step;
#define KELP_TREE_MOST_COLUMNS (1 << 27)

/* Weights of a leaf: the one itself where trees are `lone`. Of a step that asks for members,
 * these. */
typedef union kelp_tree_leaf {
    struct {
        int32_t first, count;
    } list;
    double weight;
} kelp_tree_leaf;

typedef struct kelp_trees {
    kelp_ml_state head;
    kelp_arena reading;    /* what is gone once the state is made */
    kelp_tree_node *nodes; /* in `reading`, like `read_roots` */
    size_t node_count;
    int32_t *read_roots;
    kelp_tree_step *steps;
    kelp_tree_leaf *leaves; /* as many as steps */
    int32_t flags;          /* of all steps together */
    bool lone;              /* one target, of which each leaf has one weight, that are summed up */
    int32_t *roots;
    size_t root_count;
    kelp_tree_weight *weights;
    const double *members;
    size_t targets;
    int64_t features; /* columns that the nodes read */
    kelp_tree_aggregate aggregate;
    kelp_ml_transform transform;
    const double *base;
    size_t base_count;
    kelp_ml_labels labels; /* classifiers */
    bool binary, positive; /* classifiers: one column of weights for two classes; none below 0 */
    const kelp_node *node;
} kelp_trees;

/* From attributes nodes_* and PREFIX_* ("class", "target") of versions 1 to 3, or of 5 (prefix
 * NULL). Every index is in range and no node is reached twice. */
kelp_status *kelp_trees_read_old(kelp_trees *trees, const kelp_node *node,
                                 const char *prefix) KELP_MUST_USE;
kelp_status *kelp_trees_read(kelp_trees *trees, const kelp_node *node) KELP_MUST_USE;
/* The nodes as steps. INVALID_ARGUMENT when a node can be reached twice, which is when there is a
 * cycle too. */
kelp_status *kelp_trees_compile(kelp_trees *trees) KELP_MUST_USE;

/* Rows of floats or doubles, and what becomes of them: sums (or what the aggregate is) over all
 * trees; `seen` says whether any leaf spoke of that target. */
typedef struct kelp_tree_rows {
    const void *rows;
    bool floats;
    int64_t columns, count;
    double *scores; /* of a row: `score_step` apart */
    bool *seen;     /* likewise */
    int64_t score_step;
} kelp_tree_rows;
void kelp_trees_run(const kelp_trees *trees, const kelp_tree_rows *rows);

#endif
