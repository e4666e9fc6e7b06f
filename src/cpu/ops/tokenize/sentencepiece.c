/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ai.onnx.contrib SentencepieceTokenizer and SentencepieceDecoder. Source: onnxruntime-extensions,
 * docs/custom_ops.md.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/ops/tokenize/tokenize.h"
#include "tokenizer/base64.h"

typedef struct sentencepiece {
    kelp_tokenizer *tokenizer;
    int64_t start, end; /* ids */
} sentencepiece;

static void sentencepiece_deinit(void *state) {
    sentencepiece *s = state;
    kelp_tokenizer_destroy(s->tokenizer);
}

static kelp_status *sentencepiece_read(void *state, const kelp_node *node,
                                       kelp_allocator allocator) {
    sentencepiece *s = state;
    kelp_str model, bytes = {NULL, 0};
    char *decoded = NULL;
    KELP_TRY(kelp_text_required_attr(node, "model", &model));
    KELP_TRY(kelp_alloc(allocator, model.length, (void **)&decoded));
    bytes.data = decoded;
    bool is_base64 = kelp_base64_read(model, decoded, &bytes.length);
    kelp_status *status =
        kelp_sentencepiece_create(allocator, is_base64 ? bytes : model, &s->tokenizer);
    kelp_free(allocator, decoded, model.length);
    if (status != NULL)
        return KELP_ANNOTATE(status, "node '%s' (%s): attribute 'model'", kelp_node_name(node),
                             kelp_node_op_type(node));
    kelp_sentencepiece_ends(s->tokenizer, &s->start, &s->end);
    return NULL;
}

KELP_STATE(sentencepiece, sentencepiece, sentencepiece_read, sentencepiece_deinit)

/* Reads a flag, which is an input of one bool. */
static kelp_status *read_flag(const kelp_op_args *args, int32_t index, bool *out) {
    const kelp_tensor *x = kelp_ops_in(args, index);
    *out = false;
    if (x == NULL)
        return NULL;
    if (x->dtype != KELP_BOOL || kelp_tensor_elements(x) != 1)
        return KELP_TEXT_ERROR(args->node, "input %d is invalid: expected one bool", index);
    *out = x->data != NULL && *(const uint8_t *)x->data != 0;
    return NULL;
}

/* ---- SentencepieceTokenizer ---- */
typedef struct result {
    kelp_token_list tokens;
    int64_t *begins;
} result;

static kelp_status *push(kelp_token_list *list, int64_t id, size_t begin) {
    return kelp_token_list_push(list, (kelp_text_token){.id = id, .begin = begin, .end = begin});
}

static void reverse(kelp_token_list *list, size_t first) {
    for (size_t a = first, b = list->count; a + 1 < b; a++) {
        kelp_text_token token = list->items[a];
        list->items[a] = list->items[--b];
        list->items[b] = token;
    }
}

static kelp_status *encode_text(const sentencepiece *s, kelp_str text, const bool *flags,
                                kelp_token_list *out) {
    size_t first = out->count;
    if (flags[0])
        KELP_TRY(push(out, s->start, 0));
    KELP_TRY(kelp_tokenizer_encode(s->tokenizer, text, out));
    if (flags[1])
        KELP_TRY(push(out, s->end, text.length));
    if (flags[2])
        reverse(out, first);
    return NULL;
}

/* The ids of fairseq: those of <unk> and <s> are exchanged, and others are one more. */
static int64_t to_fairseq(int64_t id) {
    return id == 0 ? 3 : id == 1 ? 0 : id == 2 ? 2 : id + 1;
}

static int64_t from_fairseq(int64_t id) {
    return id == 3 ? 0 : id == 0 ? 1 : id == 2 ? 2 : id - 1;
}

static kelp_status *set_tokens(kelp_op_args *args, const result *r, bool fairseq) {
    int32_t *ids = NULL, *begins = NULL;
    const int64_t count = (int64_t)r->tokens.count;
    const int64_t texts = kelp_tensor_elements(args->inputs[0]) + 1;
    KELP_TRY(kelp_run_array(args->env, r->tokens.count, sizeof *ids, (void **)&ids));
    KELP_TRY(kelp_run_array(args->env, r->tokens.count, sizeof *begins, (void **)&begins));
    for (int64_t i = 0; i < count; i++) {
        int64_t id = r->tokens.items[i].id;
        ids[i] = (int32_t)(fairseq ? to_fairseq(id) : id);
        begins[i] = (int32_t)r->tokens.items[i].begin;
    }
    KELP_TRY(kelp_results_set(args, 0, KELP_I32, 1, &count, ids));
    KELP_TRY(kelp_results_set(args, 1, KELP_I64, 1, &texts, r->begins));
    return kelp_results_set(args, 2, KELP_I32, 1, &count, begins);
}

static kelp_status *tokenizer_reshape(const void *state, kelp_op_args *args) {
    bool flags[3], fairseq;
    result r;
    KELP_TRY(kelp_ops_check_inputs(args, 6));
    KELP_TRY(kelp_text_check(args, 1, KELP_STRING));
    for (int32_t i = 0; i < 3; i++)
        KELP_TRY(read_flag(args, 3 + i, &flags[i]));
    KELP_TRY(read_flag(args, 6, &fairseq));
    if (!kelp_results_begin(args))
        return NULL;
    const kelp_string *x = args->inputs[0]->data;
    size_t count = (size_t)kelp_tensor_elements(args->inputs[0]);
    KELP_TRY(kelp_run_array(args->env, count + 1, sizeof *r.begins, (void **)&r.begins));
    kelp_token_list_init(&r.tokens, kelp_run_allocator(args->env));
    for (size_t i = 0; i < count; i++) {
        r.begins[i] = (int64_t)r.tokens.count;
        KELP_TRY(encode_text(state, kelp_text_of(&x[i]), flags, &r.tokens));
    }
    r.begins[count] = (int64_t)r.tokens.count;
    return set_tokens(args, &r, fairseq && !flags[2]);
}

KELP_STATE_KERNEL(SentencepieceTokenizer, sentencepiece, sizeof(kelp_results), tokenizer_reshape,
                  kelp_results_invoke);

/* ---- SentencepieceDecoder ---- */
static kelp_status *decode(const sentencepiece *s, kelp_op_args *args, bool fairseq,
                           kelp_string *out) {
    const int64_t *from = args->inputs[0]->data;
    size_t count = (size_t)kelp_tensor_elements(args->inputs[0]);
    int64_t *ids = NULL;
    kelp_buf text;
    KELP_TRY(kelp_run_array(args->env, count, sizeof *ids, (void **)&ids));
    for (size_t i = 0; i < count; i++) {
        ids[i] = fairseq ? from_fairseq(from[i]) : from[i];
        if (kelp_tokenizer_token(s->tokenizer, ids[i]).data == NULL)
            return KELP_TEXT_ERROR(args->node, "id %lld of element %zu is not in the vocabulary",
                                   (long long)from[i], i);
    }
    kelp_buf_init(&text, kelp_run_allocator(args->env));
    KELP_TRY(kelp_tokenizer_decode(s->tokenizer, ids, count, &(kelp_decode_options){0}, &text));
    kelp_str whole = kelp_text_of(&(kelp_string){text.data, text.length});
    *out = (kelp_string){whole.data, whole.length};
    return NULL;
}

static kelp_status *decoder_reshape(const void *state, kelp_op_args *args) {
    bool fairseq;
    kelp_string *out = NULL;
    KELP_TRY(kelp_ops_check(args, 1));
    KELP_TRY(kelp_text_check(args, 1, KELP_I64));
    KELP_TRY(read_flag(args, 1, &fairseq));
    const kelp_tensor *ids = args->inputs[0];
    if (ids->rank != 1 && !(ids->rank == 2 && ids->shape[0] == 1))
        return kelp_ops_bad_shapes(args, ids, NULL, "expected [N] or [1,N]");
    if (!kelp_results_begin(args))
        return NULL;
    KELP_TRY(kelp_run_array(args->env, 1, sizeof *out, (void **)&out));
    KELP_TRY(decode(state, args, fairseq, out));
    return kelp_results_set(args, 0, KELP_STRING, 1, (const int64_t[]){1}, out);
}

KELP_STATE_KERNEL(SentencepieceDecoder, sentencepiece, sizeof(kelp_results), decoder_reshape,
                  kelp_results_invoke);
