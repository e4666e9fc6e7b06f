/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BPE whose tokens have U+2581 instead of spaces, and bytes for characters that the vocabulary
 * lacks: models of Llama and Gemma. Source: onnxruntime-extensions 0.15.
 */
#include "base/assert.h"
#include "base/text/utf8.h"
#include "tokenizer/bpe.h"

#define MARK 0x2581u
#define MARK_TEXT "\xE2\x96\x81"
/* Text that is one word is divided where a word begins, or without one, so that the merges of a
 * long text take linear time. */
#define PARTS_MIN 10
#define PARTS_MAX 100

kelp_status *kelp_bpe_add_byte_tokens(kelp_vocabulary *vocabulary) {
    static const char digits[] = "0123456789ABCDEF";
    for (size_t byte = 0; byte < 256; byte++) {
        char name[6] = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
        char text = (char)byte;
        int64_t id = kelp_vocabulary_id(vocabulary, (kelp_str){name, sizeof name});
        if (id == KELP_TOKEN_NONE ||
            kelp_vocabulary_id(vocabulary, (kelp_str){&text, 1}) != KELP_TOKEN_NONE)
            continue;
        char *copy = kelp_arena_strndup(&vocabulary->arena, &text, 1);
        if (copy == NULL)
            return kelp_status_oom();
        KELP_TRY(kelp_map_put(&vocabulary->ids, (kelp_str){copy, 1}, (void *)(uintptr_t)(id + 1)));
    }
    return NULL;
}

static uint32_t id_of(const kelp_bpe_encoder *e, const char *text, size_t length) {
    int64_t id = kelp_vocabulary_id(&e->b->base.vocabulary, (kelp_str){text, length});
    return id == KELP_TOKEN_NONE ? KELP_MERGE_NONE : (uint32_t)id;
}

static void add_part(kelp_bpe_encoder *e, size_t *inout_count, uint32_t id, size_t at,
                     size_t length) {
    uint32_t i = (uint32_t)(*inout_count)++;
    KELP_ASSERT(i < e->byte_capacity);
    e->begins[i] = (uint32_t)at;
    e->key[i] = (char)length;
    e->parts[i] = (kelp_part){id, i, i, i > 0 ? i - 1 : KELP_MERGE_NONE, i + 1};
}

/* Adds the part of a character, or those of its bytes. Only `one_word` counts the bytes of a
 * character. */
static void add_char(kelp_bpe_encoder *e, size_t *inout_count, size_t at) {
    char text[4];
    uint32_t c = e->marked[at].c;
    if (c == 0) /* only in invalid UTF-8; as in onnxruntime-extensions */
        return;
    size_t length = kelp_utf8_encode(c, text);
    uint32_t id = id_of(e, text, length);
    if (id != KELP_MERGE_NONE) {
        add_part(e, inout_count, id, at, length);
        return;
    }
    for (size_t i = 0; i < length; i++)
        add_part(e, inout_count, id_of(e, &text[i], 1), at, 1);
}

/* Merges the parts and appends the tokens. */
static kelp_status *merge(kelp_bpe_encoder *e, size_t count, bool counts_bytes) {
    if (count == 0)
        return NULL;
    e->parts[count - 1].next = KELP_MERGE_NONE;
    KELP_TRY(kelp_merges_apply(&e->b->merges, e->out->allocator, e->parts, count));
    for (uint32_t i = 0; i != KELP_MERGE_NONE; i = e->parts[i].next) {
        const kelp_part *part = &e->parts[i];
        size_t length = 0;
        for (uint32_t unit = part->begin; unit <= part->end; unit++)
            length += counts_bytes ? (size_t)e->key[unit] : 1;
        KELP_TRY(kelp_bpe_push(e, part->id, part->begin, part->end, length, false));
    }
    e->word++;
    return NULL;
}

static bool separates(uint32_t c) {
    return c == '\n' || c == '\r' || c == MARK;
}

static kelp_status *encode_whole(kelp_bpe_encoder *e, size_t count) {
    size_t parts = 0;
    for (size_t at = 0; at < count; at++) {
        bool begins = at > 0 && !separates(e->marked[at - 1].c) && separates(e->marked[at].c);
        if ((parts > PARTS_MIN && begins) || parts > PARTS_MAX) {
            KELP_TRY(merge(e, parts, true));
            parts = 0;
        }
        add_char(e, &parts, at);
    }
    return merge(e, parts, true);
}

/* Encodes a word: one token if the vocabulary has it. */
static kelp_status *encode_word(kelp_bpe_encoder *e, size_t begin, size_t end) {
    size_t length = 0, parts = 0;
    for (size_t i = begin; i < end; i++)
        if (e->marked[i].c != 0)
            length += kelp_utf8_encode(e->marked[i].c, e->key + length);
    uint32_t whole = id_of(e, e->key, length);
    if (whole != KELP_MERGE_NONE) {
        e->begins[0] = (uint32_t)begin;
        e->begins[1] = (uint32_t)end - 1;
        KELP_TRY(kelp_bpe_push(e, whole, 0, 1, length, false));
        e->word++;
        return NULL;
    }
    for (size_t i = begin; i < end; i++)
        add_char(e, &parts, i);
    return merge(e, parts, false);
}

kelp_status *kelp_bpe_encode_marked(kelp_bpe_encoder *encoder, size_t begin, size_t end) {
    kelp_bpe_encoder *e = encoder;
    size_t count = 0;
    bool after_space = e->chars[begin].c == ' ' && e->b->marks_start;
    KELP_ASSERT(begin < end);
    if (e->b->marks_start)
        e->marked[count++] = (kelp_char){MARK, e->chars[begin].begin, e->chars[begin].begin};
    memcpy(e->marked + count, e->chars + begin, (end - begin) * sizeof *e->marked);
    count += end - begin;
    e->source = e->marked;
    bool one_word = e->b->one_word || after_space;
    for (size_t at = 0; at < count && !one_word;) {
        size_t skipped = 0;
        size_t length = kelp_pretoken_next(&e->b->words, e->marked + at, count - at, &skipped);
        at += skipped;
        for (size_t i = at; i < at + length; i++)
            if (e->marked[i].c == ' ')
                e->marked[i].c = MARK;
        if (length > 0)
            KELP_TRY(encode_word(e, at, at + length));
        at += length;
    }
    for (size_t i = 0; i < count && one_word; i++)
        if (e->marked[i].c == ' ')
            e->marked[i].c = MARK;
    return one_word ? encode_whole(e, count) : NULL;
}

/* Returns the value of "<0x00>" … "<0xFF>", or -1 for other tokens. */
static int byte_of(kelp_str token) {
    int value = 0;
    if (token.length != 6 || memcmp(token.data, "<0x", 3) != 0 || token.data[5] != '>')
        return -1;
    for (int i = 3; i < 5; i++) {
        char c = token.data[i];
        bool is_letter = c >= 'A' && c <= 'F';
        if (!is_letter && (c < '0' || c > '9'))
            return -1;
        value = value * 16 + (is_letter ? c - 'A' + 10 : c - '0');
    }
    return value;
}

void kelp_bpe_decode_marked(kelp_str token, kelp_buf *out) {
    const kelp_str mark = KELP_STR(MARK_TEXT);
    int byte = byte_of(token);
    if (byte >= 0) {
        kelp_buf_append_char(out, (char)byte);
        return;
    }
    for (size_t at = 0; at < token.length;) {
        bool is_mark = kelp_str_starts((kelp_str){token.data + at, token.length - at}, mark);
        kelp_buf_append_char(out, is_mark ? ' ' : token.data[at]);
        at += is_mark ? mark.length : 1;
    }
}
