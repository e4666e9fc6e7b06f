/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor. Sums are in double. The rows are
 * divided among the worker threads.
 */
#include "base/assert.h"
#include "cpu/ops/ml/tree.h"
#include "cpu/ops/variant.h"

#include "tensor/convert.h"

/* ---- create ---- */
static kelp_status *done(kelp_trees *trees, kelp_status *status, void **out_state) {
    kelp_arena_deinit(&trees->reading);
    if (status != NULL) {
        kelp_ml_state_destroy(trees, trees->head.arena.allocator);
        return status;
    }
    *out_state = trees;
    return NULL;
}

static kelp_status *read_targets(kelp_trees *trees, const kelp_node *node) {
    int64_t targets = kelp_node_attr_i64(node, "n_targets", 1);
    if (targets < 1 || targets > (1 << 24))
        return KELP_ML_ERROR(node, "n_targets: expected 1 to 2^24, found %lld", (long long)targets);
    trees->targets = (size_t)targets;
    return NULL;
}

static kelp_status *read_regressor(kelp_trees *trees, const kelp_node *node) {
    static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    const char *name = kelp_node_attr_string(node, "aggregate_function", "SUM", NULL);
    size_t found = 0;
    while (found < KELP_COUNT(names) && strcmp(names[found], name) != 0)
        found++;
    if (found == KELP_COUNT(names))
        return KELP_ML_ERROR(
            node, "aggregate_function: expected AVERAGE, SUM, MIN or MAX, found '%s'", name);
    trees->aggregate = (kelp_tree_aggregate)found;
    KELP_TRY(read_targets(trees, node));
    KELP_TRY(kelp_ml_transform_read(node, &trees->transform));
    KELP_TRY(kelp_trees_read_old(trees, node, "target"));
    if (trees->base_count != 0 && trees->base_count != trees->targets)
        return KELP_ML_ERROR(node, "base_values: expected %zu, found %zu", trees->targets,
                             trees->base_count);
    return NULL;
}

static kelp_status *read_ensemble(kelp_trees *trees, const kelp_node *node) {
    int64_t aggregate = kelp_node_attr_i64(node, "aggregate_function", KELP_TREE_SUM);
    int64_t transform = kelp_node_attr_i64(node, "post_transform", KELP_ML_NONE);
    if (aggregate < 0 || aggregate > KELP_TREE_MAX || transform < 0 || transform > KELP_ML_PROBIT)
        return KELP_ML_ERROR(
            node, "aggregate_function %lld, post_transform %lld: expected 0 to 3, 0 to 4",
            (long long)aggregate, (long long)transform);
    trees->aggregate = (kelp_tree_aggregate)aggregate;
    trees->transform = (kelp_ml_transform)transform;
    KELP_TRY(read_targets(trees, node));
    return kelp_trees_read(trees, node);
}

static kelp_status *read_classifier(kelp_trees *trees, const kelp_node *node) {
    trees->aggregate = KELP_TREE_SUM;
    KELP_TRY(kelp_ml_transform_read(node, &trees->transform));
    KELP_TRY(
        kelp_ml_labels_read(node, "classlabels_strings", "classlabels_int64s", &trees->labels));
    trees->targets = trees->labels.count;
    KELP_TRY(kelp_trees_read_old(trees, node, "class"));
    if (trees->base_count != 0 && trees->base_count != trees->targets &&
        !(trees->base_count == 1 && trees->targets == 2))
        return KELP_ML_ERROR(node, "base_values: expected %zu, found %zu", trees->targets,
                             trees->base_count);
    const int64_t *ids = NULL;
    size_t count = kelp_node_attr_i64s(node, "class_ids", &ids);
    const double *weights = NULL;
    KELP_TRY(kelp_ml_numbers(&trees->reading, node, "class_weights", "class_weights_as_tensor",
                             &weights, &count));
    bool one = count > 0;
    trees->positive = true;
    for (size_t i = 0; i < count; i++) {
        one = one && ids[i] == ids[0];
        trees->positive = trees->positive && weights[i] >= 0;
    }
    trees->binary = trees->targets == 2 && one;
    return NULL;
}

#define CREATE(name, read)                                                                      \
    static kelp_status *name(const kelp_node *node, const kelp_op_env *env, void **out_state) { \
        kelp_trees *trees = NULL;                                                               \
        KELP_TRY(kelp_ml_state_create(env, sizeof *trees, &trees));                             \
        trees->node = node;                                                                     \
        kelp_arena_init(&trees->reading, kelp_op_env_allocator(env), 0);                        \
        return done(trees, read(trees, node), out_state);                                       \
    }
CREATE(regressor_create, read_regressor)
CREATE(ensemble_create, read_ensemble)
CREATE(classifier_create, read_classifier)

/* ---- rows on threads ---- */
/* A block of rows that fits in a cache and reuses each tree. Each worker has scratch memory for the
 * scores, and for rows that are converted to double. */
typedef struct blocks {
    int64_t rows, columns, score_step;
    size_t scores, seen, bytes; /* offsets, and the total per worker */
} blocks;

/* The traversal reads the first column at leaves, so that an input without columns is not read in
 * place. */
static bool is_read_in_place(const kelp_tensor *x) {
    return (x->dtype == KELP_F32 || x->dtype == KELP_F64) && x->shape[x->rank - 1] > 0;
}

static blocks blocks_of(const kelp_trees *t, const kelp_tensor *x) {
    enum { MAX_ROWS = 64, CACHE_DOUBLES = 1 << 14 };
    int64_t columns = x->shape[x->rank - 1];
    blocks b = {.columns = columns, .score_step = (int64_t)t->targets + 2}; /* decide() may add 1 */
    b.rows = CACHE_DOUBLES / (columns + b.score_step + 1);
    b.rows = KELP_MAX(KELP_MIN(b.rows / 8 * 8, MAX_ROWS), 1);
    b.scores = is_read_in_place(x) ? 0 : (size_t)(b.rows * columns + 1) * sizeof(double);
    b.seen = b.scores + (size_t)(b.rows * b.score_step) * sizeof(double);
    b.bytes = (b.seen + (size_t)(b.rows * b.score_step) + 63) / 64 * 64;
    return b;
}

typedef struct job {
    const kelp_trees *trees;
    const kelp_tensor *x;
    kelp_tensor *y, *labels;
    blocks blocks;
    char *scratch;
} job;

static void store(kelp_tensor *y, int64_t index, double value) {
    if (y->dtype == KELP_F64)
        ((double *)y->data)[index] = value;
    else if (y->dtype == KELP_F16)
        ((uint16_t *)y->data)[index] = kelp_f32_to_f16((float)value);
    else
        ((float *)y->data)[index] = (float)value;
}

static void read_rows(const job *j, int64_t first, int64_t count, double *out) {
    int64_t columns = j->blocks.columns;
    out[0] = 0;
    for (int64_t row = first; row < first + count; row++, out += columns)
        if (j->x->dtype != KELP_F16)
            kelp_ml_read_row(j->x, row, columns, out);
        else
            for (int64_t i = 0; i < columns; i++)
                out[i] = kelp_ops_read_f64(j->x, row * columns + i);
}

/* Computes the class and the final scores; returns their number, which is 2 if the weights are of
 * one of two classes. */
static size_t decide(const kelp_trees *t, double *s, const bool *seen, size_t *out_class) {
    size_t count = t->targets, best = 0;
    KELP_ASSERT(count > 0 && count == t->labels.count);
    if (count != 2 && count != 1) {
        bool any = false;
        for (size_t i = 0; i < count; i++) {
            s[i] += i < t->base_count ? t->base[i] : 0;
            bool has = seen[i] || t->base_count > 0;
            if (has && (!any || s[i] > s[best])) {
                best = i;
                any = true;
            }
        }
        *out_class = best;
        kelp_ml_transform_apply(t->transform, s, count);
        return count;
    }
    bool second = count == 2 && seen[1];
    if (t->base_count == 2 && second) {
        s[1] += t->base[1];
        s[0] += t->base[0];
    } else if (t->base_count == 2) {
        s[0] += t->base[0];
        s[1] += t->base[1];
        second = true;
    } else if (t->base_count == 1) {
        s[0] += t->base[0];
    }
    double weight = second ? s[1] : s[0];
    if (t->binary)
        *out_class = weight > (t->positive ? 0.5 : 0.0);
    else
        *out_class = count == 2 && s[1] > s[0];
    if (second || count == 1 || !t->binary) {
        kelp_ml_transform_apply(t->transform, s, count);
        return count;
    }
    kelp_ml_second_score(t->transform, !t->positive, s[0], s);
    return 2;
}

static void finish_row(const job *j, int64_t row, double *scores, const bool *seen) {
    const kelp_trees *t = j->trees;
    size_t count = t->targets;
    if (t->labels.count > 0) {
        size_t class = 0;
        count = decide(t, scores, seen, &class);
        if (j->labels != NULL)
            kelp_ml_label_write(&t->labels, class, j->labels, row);
    } else {
        for (size_t i = 0; i < t->base_count; i++)
            scores[i] += t->base[i];
        kelp_ml_transform_apply(t->transform, scores, count);
    }
    for (size_t i = 0; j->y != NULL && i < count && i < t->targets; i++)
        store(j->y, row * (int64_t)t->targets + (int64_t)i, scores[i]);
}

static void rows(void *userp, int64_t begin, int64_t end, int worker) {
    const job *j = userp;
    const blocks *b = &j->blocks;
    char *scratch = j->scratch + (size_t)worker * b->bytes;
    kelp_tree_rows r = {.rows = scratch,
                        .floats = j->x->dtype == KELP_F32,
                        .columns = b->columns,
                        .scores = (double *)(void *)(scratch + b->scores),
                        .seen = (bool *)(scratch + b->seen),
                        .score_step = b->score_step};
    size_t row_bytes = (size_t)b->columns * (r.floats ? sizeof(float) : sizeof(double));
    for (int64_t first = begin; first < end; first += r.count) {
        r.count = KELP_MIN(b->rows, end - first);
        KELP_ASSERT(r.count > 0);
        if (is_read_in_place(j->x))
            r.rows = (const char *)j->x->data + (size_t)first * row_bytes;
        else
            read_rows(j, first, r.count, (double *)(void *)scratch);
        kelp_trees_run(j->trees, &r);
        for (int64_t i = 0; i < r.count; i++)
            finish_row(j, first + i, r.scores + i * b->score_step, r.seen + i * b->score_step);
    }
}

static kelp_status *reshape(const void *state, kelp_op_args *args) {
    const kelp_trees *t = state;
    int64_t count, columns;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    const kelp_tensor *x = args->inputs[0];
    bool ensemble = kelp_op_variant_of(args->node) == KELP_VARIANT_TREE_ENSEMBLE;
    if (ensemble && x->dtype == KELP_F16 && x->rank == 2) {
        count = x->shape[0];
        columns = x->shape[1];
    } else {
        KELP_TRY(kelp_ml_rows(args, x, &count, &columns));
    }
    if (columns < t->features)
        return KELP_ML_ERROR(args->node,
                             "the input has too few columns: expected at least %lld, found %lld",
                             (long long)t->features, (long long)columns);
    size_t offset;
    KELP_TRY(
        kelp_ops_scratch(args, kelp_op_env_threads(args->env), blocks_of(t, x).bytes, &offset));
    int64_t shape[2] = {count, (int64_t)t->targets};
    if (t->labels.count == 0)
        return kelp_ops_set(args, 0, ensemble ? x->dtype : KELP_F32, 2, shape);
    KELP_TRY(kelp_ops_set(args, 0, t->labels.strings != NULL ? KELP_STRING : KELP_I64, 1, shape));
    return kelp_ops_set(args, 1, KELP_F32, 2, shape);
}

static kelp_status *invoke(const void *state, kelp_op_args *args) {
    const kelp_trees *t = state;
    const kelp_tensor *x = args->inputs[0];
    job j = {.trees = t, .x = x, .scratch = args->scratch};
    bool classifies = t->labels.count > 0;
    j.labels = classifies ? kelp_ops_out(args, 0) : NULL;
    j.y = kelp_ops_out(args, classifies ? 1 : 0);
    int64_t count = x->rank == 2 ? x->shape[0] : 1;
    j.blocks = blocks_of(t, x);
    KELP_ASSERT(j.blocks.columns >= t->features);
    int64_t grain = KELP_GRAIN_ELEMENTS / (int64_t)(t->root_count * 8 + 1) + 1;
    kelp_op_parallel(args->env, count, grain, rows, &j);
    return NULL;
}

#define TREE_KERNEL(name, create_fn)                                              \
    const kelp_op_kernel kelp_op_##name = {.struct_size = sizeof(kelp_op_kernel), \
                                           .create = (create_fn),                 \
                                           .destroy = kelp_ml_state_destroy,      \
                                           .reshape = reshape,                    \
                                           .invoke = invoke}
TREE_KERNEL(TreeEnsemble, ensemble_create);
TREE_KERNEL(TreeEnsembleClassifier, classifier_create);
TREE_KERNEL(TreeEnsembleRegressor, regressor_create);
