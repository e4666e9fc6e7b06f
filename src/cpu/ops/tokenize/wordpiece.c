/* SPDX-License-Identifier: Apache-2.0 */
/* ai.onnx.contrib WordpieceTokenizer. Source: onnxruntime-extensions, docs/custom_ops.md. */
#include "base/alloc.h"
#include "cpu/ops/tokenize/tokenize.h"

#define MAX_WORD_CHARS 200

typedef struct wordpiece {
    kelp_tokenizer *tokenizer;
    kelp_string unknown; /* belongs to the node */
} wordpiece;

static void wordpiece_deinit(void *state) {
    wordpiece *w = state;
    kelp_tokenizer_destroy(w->tokenizer);
}

static kelp_status *wordpiece_read(void *state, const kelp_node *node, kelp_allocator allocator) {
    wordpiece *w = state;
    kelp_wordpiece_options options = {.is_json = true, .words = {.rule = KELP_WORDS_SPACES}};
    static const char *const required[] = {"suffix_indicator", "unknown_token"};
    int64_t longest = kelp_node_attr_i64(node, "max_input_chars_per_word", MAX_WORD_CHARS);
    KELP_TRY(kelp_text_required_attr(node, "vocab", &options.vocabulary));
    for (size_t i = 0; i < KELP_COUNT(required); i++)
        if (kelp_node_attr_type(node, required[i]) == KELP_ATTR_NONE)
            return KELP_TEXT_ERROR(node, "attribute '%s' is missing", required[i]);
    options.continuation = kelp_text_attr(node, "suffix_indicator", "");
    options.max_word_chars = longest > 0 ? (size_t)longest : 0;
    kelp_str unknown = kelp_text_attr(node, "unknown_token", "");
    w->unknown = (kelp_string){unknown.data, unknown.length};
    kelp_status *status = kelp_wordpiece_create(allocator, &options, &w->tokenizer);
    return status == NULL ? NULL
                          : KELP_ANNOTATE(status, "node '%s' (%s): attribute 'vocab'",
                                          kelp_node_name(node), kelp_node_op_type(node));
}

KELP_STATE(wordpiece, wordpiece, wordpiece_read, wordpiece_deinit)

/* Sets the first tokens of each row, their number in front of each row, and the ends of rows. */
static kelp_status *set_rows(kelp_op_args *args, const int64_t *begins, int64_t count) {
    const int64_t all = count + 1;
    KELP_TRY(kelp_results_set(args, 1, KELP_I64, 1, &all, begins));
    KELP_TRY(kelp_results_set(args, 2, KELP_I64, 1, &count, begins));
    return kelp_results_set(args, 3, KELP_I64, 1, &count, begins + 1);
}

static kelp_status *set_tokens(const wordpiece *w, kelp_op_args *args,
                               const kelp_token_list *tokens) {
    kelp_string *out = NULL;
    const int64_t count = (int64_t)tokens->count;
    KELP_TRY(kelp_run_array(args->env, tokens->count, sizeof *out, (void **)&out));
    for (size_t i = 0; i < tokens->count; i++) {
        kelp_str token = kelp_tokenizer_token(w->tokenizer, tokens->items[i].id);
        out[i] = token.data != NULL ? (kelp_string){token.data, token.length} : w->unknown;
    }
    return kelp_results_set(args, 0, KELP_STRING, 1, &count, out);
}

/* The second input has the first text of each row; if it is empty, each text is a row. */
static kelp_status *wordpiece_reshape(const void *state, kelp_op_args *args) {
    const wordpiece *w = state;
    KELP_TRY(kelp_ops_check_inputs(args, 2));
    KELP_TRY(kelp_text_check(args, 1, KELP_STRING));
    if (args->inputs[1]->dtype != KELP_I64)
        return kelp_ops_bad_type(args, args->inputs[1]->dtype);
    if (!kelp_results_begin(args))
        return NULL;
    const kelp_string *x = args->inputs[0]->data;
    const int64_t *rows = args->inputs[1]->data;
    int64_t count = kelp_tensor_elements(args->inputs[0]), *begins = NULL, row = 0;
    int64_t row_count = kelp_tensor_elements(args->inputs[1]);
    kelp_token_list tokens;
    kelp_token_list_init(&tokens, kelp_run_allocator(args->env));
    KELP_TRY(kelp_run_array(args->env, (size_t)count + 1, sizeof *begins, (void **)&begins));
    for (int64_t i = 0; i < count; i++) {
        if (row_count == 0 || (row < row_count && rows[row] == i))
            begins[row++] = (int64_t)tokens.count;
        KELP_TRY(kelp_tokenizer_encode(w->tokenizer, kelp_text_of(&x[i]), &tokens));
    }
    begins[row] = (int64_t)tokens.count;
    KELP_TRY(set_tokens(w, args, &tokens));
    return set_rows(args, begins, row);
}

KELP_STATE_KERNEL(WordpieceTokenizer, wordpiece, sizeof(kelp_results), wordpiece_reshape,
                  kelp_results_invoke);
