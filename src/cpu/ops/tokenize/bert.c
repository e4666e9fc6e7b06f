/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ai.onnx.contrib BertTokenizer, HfBertTokenizer, BasicTokenizer and BertTokenizerDecoder. Source:
 * onnxruntime-extensions, docs/custom_ops.md.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/ops/tokenize/tokenize.h"
#include "tokenizer/words.h"

#define MAX_WORD_CHARS 100

typedef struct bert {
    kelp_tokenizer *tokenizer;
    int64_t unknown, separator, start; /* ids */
    int64_t max_length;
    bool has_offsets; /* words are those of KELP_WORDS_BASIC */
} bert;

static void bert_deinit(void *state) {
    bert *b = state;
    kelp_tokenizer_destroy(b->tokenizer);
}

static kelp_word_options word_options(const kelp_node *node) {
    return (kelp_word_options){
        .rule = KELP_WORDS_BASIC,
        .strip_accents = kelp_flag_attr(node, "strip_accents", false),
        .lower_case = kelp_flag_attr(node, "do_lower_case", true),
        .split_cjk = kelp_flag_attr(node, "tokenize_chinese_chars", true),
        .split_punctuation = true,
        .remove_control = true,
    };
}

static kelp_status *find_token(const bert *b, const kelp_node *node, const char *attribute,
                               const char *fallback, int64_t *out) {
    kelp_str token = kelp_text_attr(node, attribute, fallback);
    *out = kelp_tokenizer_id(b->tokenizer, token);
    if (*out == KELP_TOKEN_NONE)
        return KELP_TEXT_ERROR(node, "'vocab_file' lacks the token '%.*s' of attribute '%s'",
                               KELP_STR_ARG(token), attribute);
    return NULL;
}

static kelp_status *bert_read(void *state, const kelp_node *node, kelp_allocator allocator) {
    bert *b = state;
    kelp_wordpiece_options options = {.separators = "\r\n", .max_word_chars = MAX_WORD_CHARS};
    int64_t unused;
    KELP_TRY(kelp_text_required_attr(node, "vocab_file", &options.vocabulary));
    options.unknown = kelp_text_attr(node, "unk_token", "[UNK]");
    options.continuation = kelp_text_attr(node, "suffix_indicator", "##");
    options.words = word_options(node);
    b->has_offsets = kelp_flag_attr(node, "do_basic_tokenize", true);
    if (!b->has_offsets)
        options.words.rule = KELP_WORDS_INNER_SPACES;
    b->max_length = kelp_node_attr_i64(node, "max_length", -1);
    kelp_status *status = kelp_wordpiece_create(allocator, &options, &b->tokenizer);
    if (status != NULL)
        return KELP_ANNOTATE(status, "node '%s' (%s): attribute 'vocab_file'", kelp_node_name(node),
                             kelp_node_op_type(node));
    KELP_TRY(find_token(b, node, "unk_token", "[UNK]", &b->unknown));
    KELP_TRY(find_token(b, node, "sep_token", "[SEP]", &b->separator));
    KELP_TRY(find_token(b, node, "cls_token", "[CLS]", &b->start));
    KELP_TRY(find_token(b, node, "pad_token", "[PAD]", &unused));
    return find_token(b, node, "mask_token", "[MASK]", &unused);
}

KELP_STATE(bert, bert, bert_read, bert_deinit)

/* The results of one or two texts. */
typedef struct sequence {
    size_t count;
    int64_t *ids, *types, *mask, *offsets;
    size_t offset_count; /* pairs */
} sequence;

static void add_offsets(sequence *s, int64_t begin, int64_t end) {
    if (s->offset_count == s->count) /* there is no place for the last ones of two texts */
        return;
    s->offsets[2 * s->offset_count] = begin;
    s->offsets[2 * s->offset_count++ + 1] = end;
}

/* Computes offsets as onnxruntime-extensions does: those of the tokens when words are joined with
 * one space, and an unknown token counts one byte. */
static void add_offsets_of(const bert *b, const kelp_token_list *tokens, size_t first,
                           sequence *s) {
    int64_t at = 0;
    add_offsets(s, 0, 0);
    for (size_t i = first; i < tokens->count; i++) {
        kelp_str token = kelp_tokenizer_token(b->tokenizer, tokens->items[i].id);
        size_t marks = 0;
        while (marks < token.length && token.data[marks] == '#')
            marks++;
        int64_t size = kelp_str_is(token, "[UNK]") ? 1 : (int64_t)(token.length - marks);
        if (marks > 0)
            at--;
        add_offsets(s, at, at + size);
        at += size + 1;
    }
    add_offsets(s, 0, 0);
}

static kelp_status *sequence_alloc(sequence *s, const kelp_op_env *env, size_t count) {
    size_t bytes;
    if (!kelp_size_mul(count, 5 * sizeof *s->ids, &bytes))
        return kelp_status_oom();
    int64_t *memory = kelp_op_env_alloc(env, bytes);
    if (memory == NULL)
        return kelp_status_oom();
    memset(memory, 0, bytes);
    *s = (sequence){count, memory, memory + count, memory + 2 * count, memory + 3 * count, 0};
    return NULL;
}

static kelp_status *encode_all(const bert *b, const kelp_op_args *args, sequence *out) {
    const kelp_string *x = args->inputs[0]->data;
    size_t count = (size_t)kelp_tensor_elements(args->inputs[0]), ends[2] = {0}, at = 0;
    kelp_token_list tokens;
    kelp_token_list_init(&tokens, kelp_run_allocator(args->env));
    KELP_ASSERT(count == 1 || count == 2);
    for (size_t i = 0; i < count; i++) {
        KELP_TRY(kelp_tokenizer_encode(b->tokenizer, kelp_text_of(&x[i]), &tokens));
        ends[i] = tokens.count;
    }
    /* only one text is truncated */
    if (count == 1 && b->max_length > 2)
        ends[0] = KELP_MIN(ends[0], (size_t)b->max_length - 2);
    KELP_TRY(sequence_alloc(out, args->env, ends[count - 1] + count + 1));
    out->ids[at++] = b->start;
    for (size_t i = 0, token = 0; i < count; i++) {
        for (; token < ends[i]; token++, at++) {
            out->ids[at] = tokens.items[token].id;
            out->types[at] = (int64_t)i;
        }
        out->ids[at] = b->separator;
        out->types[at++] = (int64_t)i;
    }
    for (size_t i = 0; i < at; i++)
        out->mask[i] = 1;
    for (size_t i = 0; b->has_offsets && i < count; i++) {
        tokens.count = i + 1 < count || count == 2 ? ends[i] : tokens.count;
        add_offsets_of(b, &tokens, i == 0 ? 0 : ends[0], out);
    }
    return NULL;
}

static kelp_status *bert_reshape(const void *state, kelp_op_args *args) {
    KELP_TRY(kelp_text_check(args, 1, KELP_STRING));
    int64_t count = kelp_tensor_elements(args->inputs[0]);
    if (count != 1 && count != 2)
        return KELP_TEXT_ERROR(args->node, "expected one or two texts, found %lld",
                               (long long)count);
    if (!kelp_results_begin(args))
        return NULL;
    sequence s;
    KELP_TRY(encode_all(state, args, &s));
    const int64_t shape[2] = {(int64_t)s.count, 2};
    KELP_TRY(kelp_results_set(args, 0, KELP_I64, 1, shape, s.ids));
    KELP_TRY(kelp_results_set(args, 1, KELP_I64, 1, shape, s.types));
    KELP_TRY(kelp_results_set(args, 2, KELP_I64, 1, shape, s.mask));
    return kelp_results_set(args, 3, KELP_I64, 2, shape, s.offsets);
}

/* HfBertTokenizer: always two texts, and the results of other ranks and in another order. */
static kelp_status *hf_bert_reshape(const void *state, kelp_op_args *args) {
    KELP_TRY(kelp_text_check(args, 1, KELP_STRING));
    int64_t count = kelp_tensor_elements(args->inputs[0]);
    if (count != 2)
        return KELP_TEXT_ERROR(args->node, "expected two texts, found %lld", (long long)count);
    if (!kelp_results_begin(args))
        return NULL;
    sequence s;
    KELP_TRY(encode_all(state, args, &s));
    const int64_t row[2] = {1, (int64_t)s.count}, pairs[2] = {(int64_t)s.count, 2};
    KELP_TRY(kelp_results_set(args, 0, KELP_I64, 2, row, s.ids));
    KELP_TRY(kelp_results_set(args, 1, KELP_I64, 2, row, s.mask));
    KELP_TRY(kelp_results_set(args, 2, KELP_I64, 2, row, s.types));
    return kelp_results_set(args, 3, KELP_I64, 2, pairs, s.offsets);
}

KELP_STATE_KERNEL(BertTokenizer, bert, sizeof(kelp_results), bert_reshape, kelp_results_invoke);
KELP_STATE_KERNEL(HfBertTokenizer, bert, sizeof(kelp_results), hf_bert_reshape,
                  kelp_results_invoke);

/* ---- BasicTokenizer ---- */
static kelp_status *basic_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_text_check(args, 1, KELP_STRING));
    kelp_word_options options = word_options(args->node);
    options.split_punctuation = kelp_flag_attr(args->node, "tokenize_punctuation", false);
    options.remove_control = kelp_flag_attr(args->node, "remove_control_chars", true);
    if (kelp_tensor_elements(args->inputs[0]) != 1)
        return kelp_ops_bad_shapes(args, args->inputs[0], NULL, "expected one text");
    if (!kelp_results_begin(args))
        return NULL;
    kelp_words words;
    kelp_string *out = NULL;
    KELP_TRY(kelp_words_split(&options, kelp_run_allocator(args->env),
                              kelp_text_of(args->inputs[0]->data), &words));
    KELP_TRY(kelp_run_array(args->env, words.count, sizeof *out, (void **)&out));
    for (size_t i = 0, at = 0; i < words.count; i++) {
        kelp_str text;
        KELP_TRY(kelp_words_text(&words, at, words.ends[i], &text));
        out[i] = (kelp_string){text.data, text.length};
        at = words.ends[i];
    }
    return kelp_results_set(args, 0, KELP_STRING, 1, (const int64_t[]){(int64_t)words.count}, out);
}
KELP_KERNEL(BasicTokenizer, KELP_OP_SERIAL, sizeof(kelp_results), 0, basic_reshape,
            kelp_results_invoke);
