/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece as a tokenizer. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/utf8.h"
#include "tokenizer/sentencepiece/spm.h"

kelp_status *kelp_spm_push(kelp_spm_spans *spans, size_t begin, size_t end, int32_t id) {
    KELP_TRY(kelp_grow(spans->allocator, (void **)&spans->items, &spans->capacity, spans->count + 1,
                       sizeof *spans->items));
    spans->items[spans->count++] = (kelp_spm_span){(uint32_t)begin, (uint32_t)end, id};
    return NULL;
}

/* Adds the byte pieces of unknown text. Only the last one covers the text. */
static kelp_status *push_bytes(const kelp_spm *spm, kelp_str bytes, size_t begin, size_t end,
                               size_t word, kelp_token_list *out) {
    for (size_t i = 0; i < bytes.length; i++) {
        bool is_last = i + 1 == bytes.length;
        KELP_TRY(kelp_token_list_push(out, (kelp_text_token){
                                               .id = spm->bytes[(uint8_t)bytes.data[i]],
                                               .begin = begin,
                                               .end = is_last ? end : begin,
                                               .word = word,
                                           }));
    }
    return NULL;
}

/* Adds the tokens of pieces. Neighbouring unknown pieces are one token. */
static kelp_status *push_all(const kelp_spm *spm, const kelp_spm_text *text,
                             const kelp_spm_spans *spans, kelp_token_list *out) {
    bool after_unknown = false;
    for (size_t i = 0; i < spans->count; i++) {
        const kelp_spm_span *s = &spans->items[i];
        size_t begin = text->origins[s->begin], end = text->origins[s->end];
        bool is_unknown = s->id == spm->unknown;
        if (is_unknown && spm->byte_fallback)
            KELP_TRY(push_bytes(spm, (kelp_str){text->data + s->begin, s->end - s->begin}, begin,
                                end, i, out));
        else if (is_unknown && after_unknown)
            out->items[out->count - 1].end = end;
        else
            KELP_TRY(kelp_token_list_push(
                out, (kelp_text_token){.id = s->id, .begin = begin, .end = end, .word = i}));
        after_unknown = is_unknown;
    }
    return NULL;
}

static kelp_status *encode(const kelp_tokenizer *tokenizer, kelp_str text,
                           kelp_token_list *inout_tokens) {
    const kelp_spm *spm = (const kelp_spm *)tokenizer;
    kelp_spm_text normalized = {.allocator = inout_tokens->allocator};
    kelp_spm_spans spans = {.allocator = inout_tokens->allocator};
    KELP_TRY(kelp_spm_normalize(spm, text, &normalized));
    kelp_str whole = {normalized.data, normalized.length};
    kelp_status *status = spm->algorithm == KELP_SPM_UNIGRAM ? kelp_spm_unigram(spm, whole, &spans)
                          : spm->algorithm == KELP_SPM_BPE   ? kelp_spm_bpe(spm, whole, &spans)
                                                             : kelp_spm_chars(spm, whole, &spans);
    if (status == NULL)
        status = push_all(spm, &normalized, &spans, inout_tokens);
    kelp_spm_text_deinit(&normalized);
    if (spans.items != NULL)
        kelp_free(spans.allocator, spans.items, spans.capacity * sizeof *spans.items);
    return status;
}

/* ---- text of ids ---- */
/* Appends bytes as text; each invalid byte becomes U+FFFD. */
static void append_bytes(kelp_str bytes, kelp_buf *out) {
    for (size_t at = 0; at < bytes.length;) {
        uint32_t c;
        size_t size = kelp_utf8_decode((kelp_str){bytes.data + at, bytes.length - at}, &c);
        if (size > 0)
            kelp_buf_append(out, bytes.data + at, size);
        else
            kelp_buf_append_cstr(out, "\xEF\xBF\xBD");
        at += KELP_MAX(size, 1);
    }
}

static void append_piece(const kelp_spm *spm, kelp_str piece, int32_t id, bool at_begin,
                         kelp_buf *out) {
    const kelp_str space = KELP_STR(KELP_SPM_SPACE);
    if (spm->pieces[id].type == KELP_SPM_CONTROL)
        return;
    if (spm->pieces[id].type == KELP_SPM_UNKNOWN) {
        kelp_buf_append_str(out, spm->unknown_surface);
        return;
    }
    if (at_begin && (spm->add_prefix || spm->remove_spaces) && kelp_str_starts(piece, space))
        piece = (kelp_str){piece.data + space.length, piece.length - space.length};
    while (piece.length > 0) {
        bool is_space = kelp_str_starts(piece, space);
        size_t length = is_space ? space.length : 1;
        kelp_buf_append_char(out, is_space ? ' ' : *piece.data);
        piece = (kelp_str){piece.data + length, piece.length - length};
    }
}

/* Returns the byte of a byte piece, or -1. */
static int byte_of_id(const kelp_spm *spm, int64_t id) {
    for (int i = 0; i < KELP_SPM_BYTES; i++)
        if (spm->bytes[i] == id)
            return i;
    return -1;
}

static kelp_status *decode(const kelp_tokenizer *tokenizer, const int64_t *ids, size_t count,
                           const kelp_decode_options *options, kelp_buf *out) {
    const kelp_spm *spm = (const kelp_spm *)tokenizer;
    size_t begin = out->length;
    kelp_buf bytes;
    kelp_buf_init(&bytes, out->allocator);
    for (size_t i = 0; i < count; i++) {
        if (kelp_decode_skips(options, ids[i]))
            continue;
        bool is_known = ids[i] >= 0 && (uint64_t)ids[i] < spm->piece_count;
        int32_t id = is_known ? (int32_t)ids[i] : spm->unknown;
        if (spm->pieces[id].type == KELP_SPM_BYTE) {
            kelp_buf_append_char(&bytes, (char)byte_of_id(spm, id));
            continue;
        }
        append_bytes((kelp_str){bytes.data, bytes.length}, out);
        kelp_buf_clear(&bytes);
        append_piece(spm, kelp_vocabulary_token(&tokenizer->vocabulary, id), id,
                     out->length == begin, out);
    }
    append_bytes((kelp_str){bytes.data, bytes.length}, out);
    kelp_status *status = kelp_buf_status(&bytes);
    kelp_buf_deinit(&bytes);
    return status;
}

static void deinit(kelp_tokenizer *tokenizer) {
    kelp_spm *spm = (kelp_spm *)tokenizer;
    kelp_map_deinit(&spm->reserved);
    kelp_trie_deinit(&spm->trie);
    kelp_trie_deinit(&spm->user);
    if (spm->pieces != NULL)
        kelp_free(tokenizer->allocator, spm->pieces, spm->piece_capacity * sizeof *spm->pieces);
}

static const kelp_tokenizer_kind kind = {
    .size_bytes = sizeof(kelp_spm), .encode = encode, .decode = decode, .deinit = deinit};

kelp_status *kelp_sentencepiece_create(kelp_allocator allocator, kelp_str model,
                                       kelp_tokenizer **out) {
    kelp_tokenizer *tokenizer = NULL;
    KELP_TRY(kelp_tokenizer_new(allocator, &kind, &tokenizer));
    kelp_spm *spm = (kelp_spm *)tokenizer;
    kelp_map_init(&spm->reserved, allocator);
    spm->trie.allocator = spm->user.allocator = allocator;
    kelp_status *status = kelp_trie_init(&spm->trie, allocator);
    if (status == NULL)
        status = kelp_trie_init(&spm->user, allocator);
    if (status == NULL)
        status = kelp_spm_read(spm, model);
    if (status != NULL) {
        kelp_tokenizer_destroy(tokenizer);
        return status;
    }
    *out = tokenizer;
    return NULL;
}

void kelp_sentencepiece_ends(const kelp_tokenizer *tokenizer, int64_t *out_start,
                             int64_t *out_end) {
    const kelp_spm *spm = (const kelp_spm *)tokenizer;
    KELP_ASSERT(tokenizer->kind == &kind);
    *out_start = spm->start;
    *out_end = spm->end;
}
