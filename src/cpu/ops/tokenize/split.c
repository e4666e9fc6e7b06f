/* SPDX-License-Identifier: Apache-2.0 */
/*
 * String operators of ai.onnx.contrib whose shape depends on data: StringSplit, StringJoin,
 * MaskedFill. Source: onnxruntime-extensions, docs/custom_ops.md.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/ops/tokenize/tokenize.h"

/* ---- StringSplit ---- */
typedef struct words {
    kelp_string *items;
    int64_t *places; /* row and column of each */
    size_t count;
    int64_t columns;
} words;

static void add_word(words *w, kelp_str word, int64_t row, int64_t column) {
    if (w->items != NULL) {
        w->items[w->count] = (kelp_string){word.data, word.length};
        w->places[2 * w->count] = row;
        w->places[2 * w->count + 1] = column;
    }
    w->count++;
    w->columns = KELP_MAX(w->columns, column + 1);
}

/* Splits at each character of `separators`; without separators, into bytes. Only counts the words
 * if `w` has no memory. */
static void split_text(words *w, kelp_str text, kelp_str separators, bool skip_empty, int64_t row) {
    int64_t column = 0;
    size_t begin = 0;
    if (text.length == 0)
        return;
    for (size_t at = 0; at <= text.length; at++) {
        bool is_end = at == text.length;
        if (separators.length == 0) {
            if (!is_end)
                add_word(w, (kelp_str){text.data + at, 1}, row, column++);
            continue;
        }
        if (!is_end && memchr(separators.data, text.data[at], separators.length) == NULL)
            continue;
        if (at > begin || !skip_empty)
            add_word(w, (kelp_str){text.data + begin, at - begin}, row, column++);
        begin = at + 1;
    }
}

static kelp_status *split_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check_inputs(args, 3));
    KELP_TRY(kelp_text_check(args, 2, KELP_STRING));
    const kelp_tensor *x = args->inputs[0], *skip = args->inputs[2];
    if (x->rank != 1)
        return kelp_ops_bad_shapes(args, x, NULL, "expected a list");
    if (skip->dtype != KELP_BOOL)
        return kelp_ops_bad_type(args, skip->dtype);
    if (kelp_tensor_elements(args->inputs[1]) != 1 || kelp_tensor_elements(skip) != 1)
        return kelp_ops_bad_shapes(args, args->inputs[1], skip, "expected one value each");
    if (!kelp_results_begin(args))
        return NULL;
    kelp_str separators = kelp_text_of(args->inputs[1]->data);
    bool skip_empty = *(const uint8_t *)skip->data != 0;
    words w = {0};
    int64_t *shape = NULL;
    for (int round = 0; round < 2; round++) { /* counts, then writes */
        if (round == 1) {
            KELP_TRY(kelp_run_array(args->env, w.count, sizeof *w.items, (void **)&w.items));
            KELP_TRY(kelp_run_array(args->env, w.count, 2 * sizeof *w.places, (void **)&w.places));
            w.count = 0;
        }
        for (int64_t i = 0; i < x->shape[0]; i++)
            split_text(&w, kelp_text_of((const kelp_string *)x->data + i), separators, skip_empty,
                       i);
    }
    KELP_TRY(kelp_run_array(args->env, 2, sizeof *shape, (void **)&shape));
    shape[0] = x->shape[0];
    shape[1] = w.columns;
    const int64_t pairs[2] = {(int64_t)w.count, 2}, two = 2;
    KELP_TRY(kelp_results_set(args, 0, KELP_I64, 2, pairs, w.places));
    KELP_TRY(kelp_results_set(args, 1, KELP_STRING, 1, pairs, w.items));
    return kelp_results_set(args, 2, KELP_I64, 1, &two, shape);
}
KELP_KERNEL(ContribStringSplit, KELP_OP_SERIAL, sizeof(kelp_results), 0, split_reshape,
            kelp_results_invoke);

/* ---- StringJoin ---- */
static kelp_status *join(const kelp_op_env *env, const kelp_string *x, int64_t count,
                         int64_t stride, kelp_str separator, kelp_string *out) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_run_allocator(env));
    for (int64_t i = 0; i < count; i++) {
        if (i > 0)
            kelp_buf_append_str(&text, separator);
        kelp_buf_append_str(&text, kelp_text_of(&x[i * stride]));
    }
    KELP_TRY(kelp_buf_status(&text));
    *out = (kelp_string){text.length > 0 ? text.data : "", text.length};
    return NULL;
}

static kelp_status *read_axis(const kelp_op_args *args, int64_t *out) {
    const kelp_tensor *x = args->inputs[0], *axis = args->inputs[2];
    *out = *(const int64_t *)axis->data;
    if (x->rank > 0 && (*out < 0 || *out >= x->rank))
        return KELP_TEXT_ERROR(args->node, "the axis is out of range: expected 0 to %d, found %lld",
                               x->rank - 1, (long long)*out);
    return NULL;
}

static kelp_status *join_all(kelp_op_args *args, int64_t axis) {
    const kelp_tensor *x = args->inputs[0];
    int64_t shape[KELP_MAX_RANK] = {1}, inner = 1, count = x->rank > 0 ? x->shape[axis] : 1;
    int32_t rank = KELP_MAX(x->rank - 1, 1);
    for (int32_t i = 0, to = 0; x->rank > 1 && i < x->rank; i++)
        if (i != axis)
            shape[to++] = x->shape[i];
    for (int32_t i = (int32_t)axis + 1; i < x->rank; i++)
        inner *= x->shape[i];
    int64_t total = kelp_ops_product(shape, 0, rank);
    kelp_string *out = NULL;
    KELP_TRY(kelp_run_array(args->env, (size_t)total, sizeof *out, (void **)&out));
    for (int64_t i = 0; i < total; i++) {
        const kelp_string *first =
            (const kelp_string *)x->data + i / inner * inner * count + i % inner;
        KELP_TRY(
            join(args->env, first, count, inner, kelp_text_of(args->inputs[1]->data), &out[i]));
    }
    return kelp_results_set(args, 0, KELP_STRING, rank, shape, out);
}

static kelp_status *join_reshape(const void *state, kelp_op_args *args) {
    int64_t axis = 0;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 3));
    KELP_TRY(kelp_text_check(args, 2, KELP_STRING));
    if (args->inputs[2]->dtype != KELP_I64)
        return kelp_ops_bad_type(args, args->inputs[2]->dtype);
    if (kelp_tensor_elements(args->inputs[1]) != 1 || kelp_tensor_elements(args->inputs[2]) != 1)
        return kelp_ops_bad_shapes(args, args->inputs[1], args->inputs[2],
                                   "expected one value each");
    if (!kelp_results_begin(args))
        return NULL;
    KELP_TRY(read_axis(args, &axis));
    return join_all(args, axis);
}
KELP_KERNEL(StringJoin, KELP_OP_SERIAL, sizeof(kelp_results), 0, join_reshape, kelp_results_invoke);

/* ---- MaskedFill: the texts whose mask is true ---- */
static kelp_status *masked_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    KELP_TRY(kelp_text_check(args, 1, KELP_STRING));
    const kelp_tensor *x = args->inputs[0], *mask = args->inputs[1];
    if (mask->dtype != KELP_BOOL)
        return kelp_ops_bad_type(args, mask->dtype);
    if (x->rank > 1 || x->rank != mask->rank || (x->rank == 1 && x->shape[0] != mask->shape[0]))
        return kelp_ops_bad_shapes(args, x, mask, "expected lists of the same length, or scalars");
    if (!kelp_results_begin(args))
        return NULL;
    int64_t kept = 0;
    kelp_string *out = NULL;
    KELP_TRY(
        kelp_run_array(args->env, (size_t)kelp_tensor_elements(x), sizeof *out, (void **)&out));
    for (int64_t i = 0; i < kelp_tensor_elements(x); i++) {
        kelp_str text = kelp_text_of((const kelp_string *)x->data + i);
        if (((const uint8_t *)mask->data)[i] != 0)
            out[kept++] = (kelp_string){text.data, text.length};
    }
    return kelp_results_set(args, 0, KELP_STRING, 1, &kept, out);
}
KELP_KERNEL(MaskedFill, KELP_OP_SERIAL, sizeof(kelp_results), 0, masked_reshape,
            kelp_results_invoke);
