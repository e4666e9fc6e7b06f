/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ai.onnx.contrib GPT2Tokenizer, CLIPTokenizer, RobertaTokenizer and SpmTokenizer. Source:
 * onnxruntime-extensions, docs/custom_ops.md.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/ops/tokenize/bpe.h"
#include "cpu/ops/variant.h"

#include <stdint.h>

/* What the operators differ in. */
typedef struct flavor {
    const char *model_name;
    const char *unknown, *start, *end;
    const char *padding; /* NULL: id 0 */
} flavor;

static const flavor gpt2 = {"GPT2", "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", NULL};
static const flavor roberta = {"Roberta", "<unk>", "<s>", "</s>", "<pad>"};
static const flavor clip = {"CLIP", "<|endoftext|>", "<|startoftext|>", "<|endoftext|>",
                            "<|endoftext|>"};
static const flavor spm = {"Llama", "<unk>", "<s>", "</s>", ""};

static void bpe_deinit(void *state) {
    kelp_bpe_model *b = state;
    kelp_tokenizer_destroy(b->tokenizer);
}

/* ---- attributes ---- */
#define SPECIAL_MAX 4

/* A special token that is part of an earlier one, or equal to it, is not recognized. */
static size_t special_tokens(const flavor *f, kelp_added_token *out) {
    const char *const names[SPECIAL_MAX] = {f->unknown, f->start, f->end, f->padding};
    size_t count = 0;
    for (size_t i = 0; i < SPECIAL_MAX; i++) {
        bool known = names[i] == NULL || *names[i] == '\0';
        for (size_t k = 0; k < count && !known; k++)
            known = strstr(out[k].text.data, names[i]) != NULL;
        if (!known)
            out[count++].text = kelp_str_from(names[i]);
    }
    return count;
}

/* Reads "TOKEN=ID" lines. `out` has a capacity of one more than the text has line ends. */
static kelp_status *read_added(const kelp_node *node, kelp_str text, kelp_added_token *out,
                               size_t *out_count) {
    for (size_t begin = 0, end; begin < text.length; begin = end + 1) {
        const char *found = memchr(text.data + begin, '\n', text.length - begin);
        end = found != NULL ? (size_t)(found - text.data) : text.length;
        kelp_str line = {text.data + begin, end - begin}, id;
        while (line.length > 0 && line.data[line.length - 1] == '\r')
            line.length--;
        if (line.length == 0)
            continue;
        const char *equals = memrchr(line.data, '=', line.length);
        kelp_added_token token = {0};
        if (equals != NULL) {
            token.text = (kelp_str){line.data, (size_t)(equals - line.data)};
            id = (kelp_str){equals + 1, line.length - token.text.length - 1};
        }
        if (equals == NULL || token.text.length == 0 || !kelp_parse_i64(id, &token.id) ||
            token.id < 0 || token.id > INT32_MAX)
            return KELP_TEXT_ERROR(node,
                                   "attribute 'added_token' is malformed: expected TOKEN=ID, "
                                   "found '%.*s'",
                                   KELP_STR_ARG(line));
        out[(*out_count)++] = token;
    }
    return NULL;
}

static kelp_status *create_tokenizer(kelp_bpe_model *b, const kelp_node *node, const flavor *f,
                                     kelp_str name, kelp_allocator allocator) {
    kelp_added_token special[SPECIAL_MAX], *added = NULL;
    kelp_pretokens llama = kelp_pretokens_llama();
    kelp_bpe_options options = {.special = special,
                                .ends_words = b->is_clip,
                                .marks_spaces = b->is_marked,
                                .marks_start = b->is_marked,
                                .one_word = b->is_marked && kelp_str_is(name, "Gemma"),
                                .words = kelp_str_is(name, "Llama") ? &llama : NULL};
    kelp_str lines = kelp_text_attr(node, "added_token", "");
    size_t capacity = 1;
    KELP_TRY(kelp_text_required_attr(node, "vocab", &options.vocabulary));
    KELP_TRY(kelp_text_required_attr(node, "merges", &options.merges));
    options.special_count = special_tokens(f, special);
    for (size_t i = 0; i < lines.length; i++)
        capacity += lines.data[i] == '\n';
    KELP_TRY(kelp_alloc_zero(allocator, capacity, sizeof *added, (void **)&added));
    kelp_status *status = read_added(node, lines, added, &options.added_count);
    options.added = added;
    if (status == NULL)
        status = kelp_bpe_create(allocator, &options, &b->tokenizer);
    kelp_free(allocator, added, capacity * sizeof *added);
    return status == NULL ? NULL
                          : KELP_ANNOTATE(status, "node '%s' (%s): attributes 'vocab' and 'merges'",
                                          kelp_node_name(node), kelp_node_op_type(node));
}

static const flavor *flavor_of(const kelp_node *node) {
    kelp_op_variant variant = kelp_op_variant_of(node);
    return variant == KELP_VARIANT_TOKENS_CLIP      ? &clip
           : variant == KELP_VARIANT_TOKENS_ROBERTA ? &roberta
           : variant == KELP_VARIANT_TOKENS_SPM     ? &spm
                                                    : &gpt2;
}

/* Sets what depends on the name of the model, which is that of a class of transformers. */
static kelp_status *read_name(kelp_bpe_model *b, const kelp_node *node, const flavor *f,
                              kelp_str *out) {
    static const char *const names[] = {"GPT2", "CodeGen", "Roberta", "CLIP", "Llama", "Gemma"};
    kelp_str name = kelp_text_attr(node, "model_name", "");
    size_t found = 0;
    if (name.length == 0)
        name = kelp_str_from(f->model_name);
    while (found < KELP_COUNT(names) && !kelp_str_is(name, names[found]))
        found++;
    if (found == KELP_COUNT(names))
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "node '%s' (%s): model_name: expected GPT2, CodeGen, Roberta, CLIP, "
                          "Llama or Gemma, found '%.*s'",
                          kelp_node_name(node), kelp_node_op_type(node), KELP_STR_ARG(name));
    b->is_marked = f == &spm;
    b->adds_start = b->is_marked || found >= 2;
    b->adds_end = !b->is_marked && found >= 2;
    b->is_clip = !b->is_marked && found == 3;
    *out = name;
    return NULL;
}

static kelp_status *bpe_read(void *state, const kelp_node *node, kelp_allocator allocator) {
    kelp_bpe_model *b = state;
    const flavor *f = flavor_of(node);
    kelp_str name;
    KELP_TRY(read_name(b, node, f, &name));
    b->padding_length = kelp_node_attr_i64(node, "padding_length", -1);
    if (b->padding_length != -1 && b->padding_length <= 0)
        return KELP_TEXT_ERROR(node, "padding_length: expected -1 or more than 0, found %lld",
                               (long long)b->padding_length);
    KELP_TRY(create_tokenizer(b, node, f, name, allocator));
    b->start = kelp_tokenizer_id(b->tokenizer, kelp_str_from(f->start));
    b->end = kelp_tokenizer_id(b->tokenizer, kelp_str_from(f->end));
    if (f->padding != NULL)
        b->padding = kelp_tokenizer_id(b->tokenizer, kelp_str_from(f->padding));
    if (b->padding == KELP_TOKEN_NONE) /* as in onnxruntime-extensions */
        b->padding = UINT32_MAX;
    return NULL;
}
KELP_STATE(bpe, kelp_bpe_model, bpe_read, bpe_deinit)

/* ---- encoding ---- */
/* The tokens of all texts. */
typedef struct batch {
    const kelp_bpe_model *b;
    const kelp_op_env *env;
    bool add_ends;
    kelp_token_list tokens;
    size_t *ends; /* for each text: the number of tokens up to its end */
    size_t text_count, length;
} batch;

/* Returns the number of ids of a text, which is at most the padding length. */
static size_t row_length(const batch *t, size_t tokens) {
    bool empty_clip = t->b->is_clip && tokens == 0; /* has both tokens in any case */
    size_t length = tokens;
    length += empty_clip || (t->b->adds_start && t->add_ends);
    length += empty_clip || (t->b->adds_end && t->add_ends);
    if (t->b->padding_length > 0)
        length = KELP_MIN(length, (size_t)t->b->padding_length);
    return length;
}

static kelp_status *encode_all(batch *t, const kelp_string *x) {
    KELP_TRY(kelp_run_array(t->env, t->text_count, sizeof *t->ends, (void **)&t->ends));
    kelp_token_list_init(&t->tokens, kelp_run_allocator(t->env));
    for (size_t i = 0; i < t->text_count; i++) {
        size_t before = t->tokens.count;
        KELP_TRY(kelp_tokenizer_encode(t->b->tokenizer, kelp_text_of(&x[i]), &t->tokens));
        t->ends[i] = t->tokens.count;
        t->length = KELP_MAX(t->length, row_length(t, t->tokens.count - before));
    }
    if (t->b->padding_length > 0)
        t->length = (size_t)t->b->padding_length;
    return NULL;
}

static void write_row(const batch *t, const kelp_text_token *tokens, size_t count, int64_t *ids,
                      int64_t *mask) {
    size_t length = row_length(t, count);
    bool empty_clip = t->b->is_clip && count == 0;
    bool starts = empty_clip || (t->b->adds_start && t->add_ends);
    for (size_t i = 0; i < t->length; i++) {
        mask[i] = i < length;
        if (i >= length)
            ids[i] = t->b->padding;
        else if (starts && i == 0)
            ids[i] = t->b->start;
        else if (i - starts == count)
            ids[i] = t->b->end;
        else /* an id that is not in the vocabulary is that of onnxruntime-extensions */
            ids[i] = tokens[i - starts].id != KELP_TOKEN_NONE ? tokens[i - starts].id : UINT32_MAX;
    }
}

/* ---- offsets: those of onnxruntime-extensions ---- */
typedef struct offsets {
    int64_t *data;
    size_t count, capacity; /* pairs */
} offsets;

static void add_offset(offsets *o, int64_t begin, int64_t end) {
    if (o->count == o->capacity)
        return;
    o->data[2 * o->count] = begin;
    o->data[2 * o->count++ + 1] = end;
}

/* Adds the pairs of one text. They start again at 0 after each special token, which has none. */
static void add_offsets(const batch *t, const kelp_text_token *tokens, size_t count, offsets *out) {
    const kelp_bpe_model *b = t->b;
    bool starts = b->adds_start && t->add_ends;
    size_t written = starts ? 1 : 0;
    size_t limit = b->padding_length > 0 ? (size_t)b->padding_length : SIZE_MAX;
    for (size_t i = 0; i < count && written < limit;) {
        if (tokens[i].special) {
            written++;
            i++;
            continue;
        }
        int64_t at = 0;
        if (starts)
            add_offset(out, 0, 0);
        for (size_t first = i; i < count && !tokens[i].special; i++) {
            bool begins = i == first || tokens[i].word != tokens[i - 1].word;
            int64_t size = (int64_t)tokens[i].length;
            if (tokens[i].after_space)
                at += begins;
            if (tokens[i].after_space && !b->is_clip)
                size--;
            if (written < limit) {
                add_offset(out, at, at + size);
                written++;
            }
            at += size;
        }
        if (b->adds_end)
            add_offset(out, 0, 0);
    }
}

static kelp_status *write_all(const batch *t, kelp_op_args *args) {
    int64_t shape[KELP_MAX_RANK], *ids = NULL, *mask = NULL;
    const kelp_tensor *x = args->inputs[0];
    size_t total, begin = 0;
    if (!kelp_size_mul(t->text_count, t->length, &total))
        return kelp_status_oom();
    offsets pairs = {.capacity = total};
    KELP_TRY(kelp_run_array(args->env, total, sizeof *ids, (void **)&ids));
    KELP_TRY(kelp_run_array(args->env, total, sizeof *mask, (void **)&mask));
    KELP_TRY(kelp_run_array(args->env, total, 2 * sizeof *pairs.data, (void **)&pairs.data));
    memset(pairs.data, 0, total * 2 * sizeof *pairs.data);
    for (size_t i = 0; i < t->text_count; begin = t->ends[i++]) {
        const kelp_text_token *tokens = t->tokens.items + begin;
        size_t count = t->ends[i] - begin;
        write_row(t, tokens, count, ids + i * t->length, mask + i * t->length);
        add_offsets(t, tokens, count, &pairs);
    }
    memcpy(shape, x->shape, (size_t)x->rank * sizeof *shape);
    shape[x->rank] = (int64_t)t->length;
    shape[x->rank + 1] = 2;
    KELP_TRY(kelp_results_set(args, 0, KELP_I64, x->rank + 1, shape, ids));
    KELP_TRY(kelp_results_set(args, 1, KELP_I64, x->rank + 1, shape, mask));
    return kelp_results_set(args, 2, KELP_I64, x->rank + 2, shape, pairs.data);
}

kelp_status *kelp_bpe_reshape(const void *state, kelp_op_args *args) {
    KELP_TRY(kelp_text_check(args, 1, KELP_STRING));
    const kelp_tensor *x = args->inputs[0], *add_ends = kelp_ops_in(args, 1);
    if (x->rank + 2 > KELP_MAX_RANK)
        return kelp_ops_bad_shapes(args, x, NULL, "the result has too many axes");
    if (add_ends != NULL && add_ends->dtype != KELP_BOOL)
        return kelp_ops_bad_type(args, add_ends->dtype);
    if (add_ends != NULL && kelp_tensor_elements(add_ends) != 1)
        return kelp_ops_bad_shapes(args, add_ends, NULL, "expected one value");
    if (!kelp_results_begin(args))
        return NULL;
    batch t = {.b = state,
               .env = args->env,
               .add_ends = add_ends == NULL || *(const uint8_t *)add_ends->data != 0,
               .text_count = (size_t)kelp_tensor_elements(x)};
    KELP_TRY(encode_all(&t, x->data));
    return write_all(&t, args);
}

KELP_STATE_KERNEL(BpeTokenizer, bpe, sizeof(kelp_results), kelp_bpe_reshape, kelp_results_invoke);
