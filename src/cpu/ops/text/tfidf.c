/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TfIdfVectorizer: counts the n-grams of a pool, with skips. Text tokens are converted to numbers
 * first, so that n-grams of text and of integers share the code. Source: ONNX operator
 * specification, TfIdfVectorizer-9.
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/map.h"
#include "cpu/ops/kernel.h"

#define GRAM_MAX 64

#define TFIDF_ERROR(node, format, ...)                                        \
    KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (TfIdfVectorizer): " format, \
               kelp_node_name(node), __VA_ARGS__)

typedef enum mode { TF, IDF, TFIDF } mode;

typedef struct tfidf {
    kelp_arena arena;
    kelp_map tokens; /* from text to token number + 1 */
    kelp_map grams;  /* from the bytes of the token numbers to the index of the n-gram + 1 */
    bool text;
    mode mode;
    int64_t shortest, longest, skips;
    const int64_t *indexes;
    const float *weights; /* NULL: 1 */
    size_t gram_count;
    int64_t columns;
} tfidf;

static kelp_status *token_of(tfidf *t, const kelp_string *text, int64_t *out) {
    kelp_str key = {text->data, text->length};
    uintptr_t found = (uintptr_t)kelp_map_get(&t->tokens, key);
    if (found == 0) {
        found = t->tokens.count + 1;
        KELP_TRY(kelp_map_put(&t->tokens, key, (void *)found));
    }
    *out = (int64_t)found - 1;
    return NULL;
}

static kelp_status *read_pool(tfidf *t, const kelp_node *node, int64_t **out, size_t *out_count) {
    const kelp_string *texts = NULL;
    const int64_t *ints = NULL;
    size_t text_count = kelp_node_attr_strings(node, "pool_strings", &texts);
    size_t int_count = kelp_node_attr_i64s(node, "pool_int64s", &ints);
    if ((text_count > 0) == (int_count > 0))
        return TFIDF_ERROR(node, "expected one of pool_strings and pool_int64s, found %s",
                           text_count ? "both" : "none");
    t->text = text_count > 0;
    *out_count = text_count + int_count;
    int64_t *pool = KELP_ARENA_ARRAY(&t->arena, *out_count, int64_t);
    if (pool == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < *out_count; i++) {
        if (t->text)
            KELP_TRY(token_of(t, &texts[i], &pool[i]));
        else
            pool[i] = ints[i];
    }
    *out = pool;
    return NULL;
}

/* The pool has all 1-grams, then all 2-grams, …; ngram_counts has the first index of each kind. */
static kelp_status *read_grams(tfidf *t, const kelp_node *node, const int64_t *pool, size_t size) {
    const int64_t *begins = NULL;
    size_t kinds = kelp_node_attr_i64s(node, "ngram_counts", &begins), gram = 0;
    for (size_t n = 1; n <= kinds; n++) {
        int64_t begin = begins[n - 1], end = n < kinds ? begins[n] : (int64_t)size;
        if (begin < 0 || end < begin || end > (int64_t)size || (end - begin) % (int64_t)n != 0)
            return TFIDF_ERROR(node,
                               "ngram_counts[%zu] is invalid: expected a range of %zu-grams in a "
                               "pool of %zu, found %lld to %lld",
                               n - 1, n, size, (long long)begin, (long long)end);
        for (int64_t at = begin; at < end; at += (int64_t)n, gram++) {
            kelp_str key = {(const char *)&pool[at], n * sizeof *pool};
            if (!kelp_map_find(&t->grams, key, NULL))
                KELP_TRY(kelp_map_put(&t->grams, key, (void *)(uintptr_t)(gram + 1)));
        }
    }
    if (gram != t->gram_count)
        return TFIDF_ERROR(node,
                           "ngram_indexes: expected %zu for the n-grams of the pool, found "
                           "%zu",
                           gram, t->gram_count);
    return NULL;
}

static kelp_status *read_all(tfidf *t, const kelp_node *node) {
    static const char *const names[] = {"TF", "IDF", "TFIDF"};
    const char *name = kelp_node_attr_string(node, "mode", "", NULL);
    size_t found = 0, size = 0;
    int64_t *pool = NULL;
    while (found < 3 && strcmp(names[found], name) != 0)
        found++;
    if (found == 3)
        return TFIDF_ERROR(node, "mode: expected TF, IDF or TFIDF, found '%s'", name);
    t->mode = (mode)found;
    t->shortest = kelp_node_attr_i64(node, "min_gram_length", 0);
    t->longest = kelp_node_attr_i64(node, "max_gram_length", 0);
    t->skips = kelp_node_attr_i64(node, "max_skip_count", 0);
    if (t->shortest < 1 || t->longest < t->shortest || t->longest > GRAM_MAX || t->skips < 0)
        return TFIDF_ERROR(node,
                           "the gram lengths are out of range: expected 1 to %d tokens and 0 or "
                           "more skips, found %lld to %lld and %lld",
                           GRAM_MAX, (long long)t->shortest, (long long)t->longest,
                           (long long)t->skips);
    t->gram_count = kelp_node_attr_i64s(node, "ngram_indexes", &t->indexes);
    size_t weights = kelp_node_attr_f32s(node, "weights", &t->weights);
    if (weights != 0 && weights != t->gram_count)
        return TFIDF_ERROR(node, "weights: expected %zu, found %zu", t->gram_count, weights);
    if (weights == 0)
        t->weights = NULL;
    for (size_t i = 0; i < t->gram_count; i++) {
        if (t->indexes[i] < 0 || t->indexes[i] >= INT32_MAX)
            return TFIDF_ERROR(node, "ngram_indexes[%zu] is out of range: found %lld", i,
                               (long long)t->indexes[i]);
        t->columns = KELP_MAX(t->columns, t->indexes[i] + 1);
    }
    KELP_TRY(read_pool(t, node, &pool, &size));
    return read_grams(t, node, pool, size);
}

static void tfidf_destroy(void *state, kelp_allocator allocator) {
    tfidf *t = state;
    if (t == NULL)
        return;
    kelp_map_deinit(&t->tokens);
    kelp_map_deinit(&t->grams);
    kelp_arena_deinit(&t->arena);
    kelp_free(allocator, t, sizeof *t);
}

static kelp_status *tfidf_create(const kelp_node *node, const kelp_op_env *env, void **out_state) {
    tfidf *t = NULL;
    kelp_allocator allocator = kelp_op_env_allocator(env);
    KELP_TRY(KELP_NEW(allocator, tfidf, &t));
    kelp_arena_init(&t->arena, allocator, 0);
    kelp_map_init(&t->tokens, allocator);
    kelp_map_init(&t->grams, allocator);
    kelp_status *status = read_all(t, node);
    if (status != NULL) {
        tfidf_destroy(t, allocator);
        return status;
    }
    *out_state = t;
    return NULL;
}

static kelp_status *tfidf_reshape(const void *state, kelp_op_args *args) {
    const tfidf *t = state;
    size_t offset;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    bool fits = t->text ? x->dtype == KELP_STRING : x->dtype == KELP_I32 || x->dtype == KELP_I64;
    if (!fits)
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank < 1 || x->rank > 2)
        return kelp_ops_bad_shapes(args, x, NULL, "expected [C] or [N,C]");
    KELP_TRY(kelp_ops_scratch(args, x->shape[x->rank - 1] + 1, sizeof(int64_t), &offset));
    int64_t shape[2] = {x->rank == 2 ? x->shape[0] : t->columns, t->columns};
    return kelp_ops_set(args, 0, KELP_F32, x->rank, shape);
}

/* Converts the tokens of one row to numbers; text that is not in the pool to -1. */
static void read_row(const tfidf *t, const kelp_tensor *x, int64_t row, int64_t columns,
                     int64_t *out) {
    for (int64_t i = 0; i < columns; i++) {
        if (!t->text) {
            out[i] = kelp_ops_read_i64(x, row * columns + i);
            continue;
        }
        const kelp_string *text = (const kelp_string *)x->data + row * columns + i;
        kelp_str key = {text->data, text->length};
        out[i] = (int64_t)(uintptr_t)kelp_map_get(&t->tokens, key) - 1;
    }
}

static void count_row(const tfidf *t, const int64_t *tokens, int64_t columns, float *y) {
    int64_t gram[GRAM_MAX];
    KELP_ASSERT(t->shortest >= 1 && t->longest <= GRAM_MAX);
    for (int64_t n = t->shortest; n <= t->longest; n++)
        for (int64_t skip = 0; skip <= (n == 1 ? 0 : t->skips); skip++) {
            if (n > 1 && skip + 1 > (columns - 1) / (n - 1))
                break; /* the row is too short for an n-gram */
            for (int64_t at = 0; at + (n - 1) * (skip + 1) < columns; at++) {
                for (int64_t k = 0; k < n; k++)
                    gram[k] = tokens[at + k * (skip + 1)];
                kelp_str key = {(const char *)gram, (size_t)n * sizeof *gram};
                uintptr_t found = (uintptr_t)kelp_map_get(&t->grams, key);
                KELP_ASSERT(found <= t->gram_count);
                if (found != 0)
                    y[t->indexes[found - 1]] += 1.0f;
            }
        }
    for (size_t i = 0; t->mode != TF && i < t->gram_count; i++) {
        float weight = t->weights != NULL ? t->weights[i] : 1.0f, *to = &y[t->indexes[i]];
        *to = t->mode == TFIDF ? *to * weight : *to > 0 ? weight : 0;
    }
}

static kelp_status *tfidf_invoke(const void *state, kelp_op_args *args) {
    const tfidf *t = state;
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    int64_t columns = x->shape[x->rank - 1], rows = x->rank == 2 ? x->shape[0] : 1;
    memset(y->data, 0, kelp_tensor_bytes(y));
    for (int64_t r = 0; r < rows; r++) {
        read_row(t, x, r, columns, args->scratch);
        count_row(t, args->scratch, columns, (float *)y->data + r * t->columns);
    }
    return NULL;
}

const kelp_op_kernel kelp_op_TfIdfVectorizer = {.struct_size = sizeof(kelp_op_kernel),
                                                .create = tfidf_create,
                                                .destroy = tfidf_destroy,
                                                .reshape = tfidf_reshape,
                                                .invoke = tfidf_invoke};
