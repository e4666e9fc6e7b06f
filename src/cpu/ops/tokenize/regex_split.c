/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ai.onnx.contrib StringRegexSplitWithOffsets (expressions of RE2) and
 * StringECMARegexSplitWithOffsets. A separator that the second expression matches is a piece, too.
 * Source: onnxruntime-extensions, docs/custom_ops.md.
 */
#include "base/alloc.h"
#include "base/text/utf8.h"
#include "cpu/ops/tokenize/ecma.h"

typedef struct piece {
    kelp_str text;
    size_t begin; /* byte of the text that was split */
} piece;

typedef struct splitter {
    const kelp_op_args *args;
    kelp_matcher pattern, keep;
    bool keeps; /* has a second expression */
    piece *pieces;
    size_t count, capacity;
} splitter;

static kelp_status *split_read(void *state, const kelp_node *node, kelp_allocator allocator) {
    (void)allocator;
    return kelp_regex_load(state, node);
}

static void split_deinit(void *state) {
    kelp_regex_deinit(state);
}
KELP_STATE(split, kelp_regex, split_read, split_deinit)

static kelp_status *push(splitter *s, kelp_str text, size_t begin, size_t end) {
    KELP_TRY(kelp_grow(kelp_run_allocator(s->args->env), (void **)&s->pieces, &s->capacity,
                       s->count + 1, sizeof *s->pieces));
    s->pieces[s->count++] = (piece){{text.data + begin, end - begin}, begin};
    return NULL;
}

/* Adds a separator if the second expression matches all of it. */
static kelp_status *push_separator(splitter *s, kelp_str text, size_t begin, size_t end) {
    bool kept = false;
    if (s->keeps)
        KELP_TRY(kelp_matcher_search(&s->keep, (kelp_str){text.data + begin, end - begin}, 0,
                                     KELP_MATCH_WHOLE, &kept));
    return kept ? push(s, text, begin, end) : NULL;
}

/* Splits at group 1 of each match; a search begins after the match before as at the start of a
 * text. An expression without groups matches nothing. */
static kelp_status *split_re2(splitter *s, kelp_str text) {
    size_t at = 0;
    while (kelp_matcher_groups(&s->pattern) > 1) {
        kelp_str rest = {text.data + at, text.length - at};
        size_t first, last, begin, end;
        bool found = false;
        KELP_TRY(kelp_matcher_find(&s->pattern, rest, 0, &found));
        if (!found)
            break;
        kelp_matcher_group(&s->pattern, 0, &first, &last);
        kelp_matcher_group(&s->pattern, 1, &begin, &end);
        if (last == 0)
            return KELP_TEXT_ERROR(
                s->args->node, "the pattern is invalid: it matches an empty text at byte %zu", at);
        if (begin > end || end > rest.length)
            return KELP_TEXT_ERROR(
                s->args->node, "the pattern is invalid: group 1 is not part of the match at %zu",
                at + first);
        if (begin > 0)
            KELP_TRY(push(s, text, at, at + begin));
        KELP_TRY(push_separator(s, text, at + begin, at + end));
        at += last;
    }
    return at < text.length ? push(s, text, at, text.length) : NULL;
}

static kelp_status *split_ecma(splitter *s, kelp_str text) {
    kelp_ecma_iterator i = {&s->pattern, text, SIZE_MAX, 0};
    size_t at = 0;
    for (;;) {
        bool found = false;
        KELP_TRY(kelp_ecma_next(&i, &found));
        if (!found)
            break;
        if (i.begin > at)
            KELP_TRY(push(s, text, at, i.begin));
        KELP_TRY(push_separator(s, text, i.begin, i.end));
        at = i.end;
    }
    return at < text.length ? push(s, text, at, text.length) : NULL;
}

static kelp_status *set_pieces(const splitter *s, kelp_op_args *args, int64_t *row_begins) {
    const int64_t count = (int64_t)s->count, begins_count = args->inputs[0]->shape[0] + 1;
    kelp_string *texts = NULL;
    int64_t *begins = NULL, *ends = NULL;
    KELP_TRY(kelp_run_array(args->env, s->count, sizeof *texts, (void **)&texts));
    KELP_TRY(kelp_run_array(args->env, s->count, sizeof *begins, (void **)&begins));
    KELP_TRY(kelp_run_array(args->env, s->count, sizeof *ends, (void **)&ends));
    for (size_t i = 0; i < s->count; i++) {
        const piece *p = &s->pieces[i];
        texts[i] = (kelp_string){p->text.data, p->text.length};
        begins[i] = (int64_t)p->begin;
        ends[i] = (int64_t)(p->begin + p->text.length);
    }
    KELP_TRY(kelp_results_set(args, 0, KELP_STRING, 1, &count, texts));
    KELP_TRY(kelp_results_set(args, 1, KELP_I64, 1, &count, begins));
    KELP_TRY(kelp_results_set(args, 2, KELP_I64, 1, &count, ends));
    return kelp_results_set(args, 3, KELP_I64, 1, &begins_count, row_begins);
}

/* Returns true in `*out_ready` if the inputs are valid and have values. */
static kelp_status *begin(kelp_op_args *args, bool *out_ready) {
    KELP_TRY(kelp_ops_check_inputs(args, 3));
    KELP_TRY(kelp_text_check(args, 3, KELP_STRING));
    if (args->inputs[0]->rank != 1)
        return kelp_ops_bad_shapes(args, args->inputs[0], NULL, "expected a list");
    if (kelp_tensor_elements(args->inputs[1]) != 1 || kelp_tensor_elements(args->inputs[2]) > 1)
        return kelp_ops_bad_shapes(args, args->inputs[1], args->inputs[2],
                                   "expected one text each");
    *out_ready = kelp_results_begin(args);
    return NULL;
}

static kelp_status *split_all(kelp_op_args *args, splitter *s,
                              kelp_status *(*split)(splitter *s, kelp_str text), bool is_utf8) {
    const kelp_string *x = args->inputs[0]->data;
    int64_t *row_begins = NULL, rows = args->inputs[0]->shape[0];
    KELP_TRY(kelp_run_array(args->env, (size_t)rows + 1, sizeof *row_begins, (void **)&row_begins));
    for (int64_t i = 0; i < rows; i++) {
        kelp_str text = kelp_text_of(&x[i]);
        row_begins[i] = (int64_t)s->count;
        if (is_utf8 && !kelp_utf8_count(text, NULL))
            return KELP_TEXT_ERROR(args->node, "element %lld is not valid UTF-8", (long long)i);
        KELP_TRY(split(s, text));
    }
    row_begins[rows] = (int64_t)s->count;
    return set_pieces(s, args, row_begins);
}

static kelp_str keep_of(const kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[2];
    return kelp_tensor_elements(x) == 1 ? kelp_text_of(x->data) : (kelp_str){"", 0};
}

static kelp_status *re2_reshape(const void *state, kelp_op_args *args) {
    splitter s = {.args = args};
    kelp_regex pattern, keep;
    bool ready = false;
    KELP_TRY(begin(args, &ready));
    if (!ready)
        return NULL;
    kelp_str text = kelp_text_of(args->inputs[1]->data), kept = keep_of(args);
    s.keeps = kept.length > 0;
    if (text.length == 0)
        return KELP_TEXT_ERROR(args->node, "input %d, the pattern, is empty", 1);
    KELP_TRY(kelp_regex_compile_in_run(state, args->env, args->node, "pattern", text,
                                       KELP_REGEX_FIRST, &pattern));
    KELP_TRY(kelp_regex_compile_in_run(state, args->env, args->node, "pattern", kept,
                                       KELP_REGEX_FIRST, &keep));
    KELP_TRY(kelp_matcher_init(&s.pattern, &pattern, args->env));
    KELP_TRY(kelp_matcher_init(&s.keep, &keep, args->env));
    return split_all(args, &s, split_re2, true);
}
KELP_STATE_KERNEL(StringRegexSplitWithOffsets, split, sizeof(kelp_results), re2_reshape,
                  kelp_results_invoke);

static kelp_status *ecma_reshape(const void *state, kelp_op_args *args) {
    splitter s = {.args = args};
    kelp_regex pattern, keep;
    bool ready = false, ignore_case = kelp_flag_attr(args->node, "ignore_case", false);
    KELP_TRY(begin(args, &ready));
    if (!ready)
        return NULL;
    kelp_str text = kelp_text_of(args->inputs[1]->data), kept = keep_of(args);
    s.keeps = kept.length > 0;
    KELP_TRY(kelp_ecma_compile(state, args, "pattern", text, ignore_case, &pattern));
    KELP_TRY(kelp_ecma_compile(state, args, "pattern", kept, ignore_case, &keep));
    KELP_TRY(kelp_matcher_init(&s.pattern, &pattern, args->env));
    KELP_TRY(kelp_matcher_init(&s.keep, &keep, args->env));
    return split_all(args, &s, split_ecma, false);
}
KELP_STATE_KERNEL(StringECMARegexSplitWithOffsets, split, sizeof(kelp_results), ecma_reshape,
                  kelp_results_invoke);
