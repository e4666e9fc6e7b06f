/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-level BPE. Source: GPT-2; for CLIP, onnxruntime-extensions. */
#include "tokenizer/bpe.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "tokenizer/bytes.h"

#define WORD_END "</w>"
#define DOTTED_CAPITAL_I 0x130u

/* ---- normalization for CLIP ---- */
/* White space of Python's str.isspace. */
static bool is_space(uint32_t c) {
    return (c >= 0x1C && c <= 0x1F) || c == 0x85 || kelp_char_class_of(c) == KELP_CHAR_SPACE;
}

/* Keeps the first character of each run of white space, without those at the ends and without line
 * ends, and converts to lower case. `to` has twice the capacity of `from`. */
static size_t normalize(const kelp_char *from, size_t count, kelp_char *to) {
    size_t kept = 0;
    while (count > 0 && is_space(from[count - 1].c))
        count--;
    for (size_t i = 0; i < count; i++) {
        kelp_char x = from[i];
        if (is_space(x.c) && (i == 0 || is_space(from[i - 1].c)))
            continue;
        if (x.c == '\n' || x.c == '\r')
            continue;
        if (x.c == DOTTED_CAPITAL_I) {
            to[kept++] = (kelp_char){'i', x.begin, x.end};
            x.c = 0x307;
        } else {
            x.c = kelp_char_lower(x.c);
        }
        to[kept++] = x;
    }
    return kept;
}

/* ---- words ---- */
/* Encodes characters as UTF-8. Returns the number of bytes. Spaces are omitted if words have ends.
 * U+0000, which only invalid UTF-8 contains, is omitted as in onnxruntime-extensions. */
static size_t bytes_of(kelp_bpe_encoder *e, size_t begin, size_t end, uint8_t *out) {
    size_t count = 0;
    for (size_t i = begin; i < end; i++) {
        if (e->chars[i].c == 0 || (e->b->ends_words && e->chars[i].c == ' '))
            continue;
        size_t size = kelp_utf8_encode(e->chars[i].c, (char *)out + count);
        for (size_t k = 0; k < size; k++)
            e->begins[count + k] = (uint32_t)i;
        count += size;
    }
    KELP_ASSERT(count <= e->byte_capacity);
    return count;
}

kelp_status *kelp_bpe_push(kelp_bpe_encoder *encoder, uint32_t id, size_t first, size_t last,
                           size_t length, bool after_space) {
    kelp_bpe_encoder *e = encoder;
    const kelp_char *first_char = &e->source[e->begins[first]];
    const kelp_char *last_char = &e->source[e->begins[last]];
    return kelp_token_list_push(
        e->out, (kelp_text_token){.id = id == KELP_MERGE_NONE ? KELP_TOKEN_NONE : id,
                                  .begin = first_char->begin,
                                  .end = last_char->end,
                                  .word = e->word,
                                  .length = length,
                                  .after_space = after_space});
}

/* Appends the parts of a word; e->key spells it. */
static kelp_status *push_parts(kelp_bpe_encoder *e, size_t count, bool after_space) {
    size_t at = 0;
    for (uint32_t i = 0; i != KELP_MERGE_NONE; i = e->parts[i].next) {
        const kelp_part *part = &e->parts[i];
        size_t before = at;
        for (uint32_t byte = part->begin; byte <= part->end; byte++)
            at += (uint8_t)e->key[at] < 0x80 ? 1 : 2;
        if (e->b->ends_words && part->end + 1 == count)
            at += sizeof WORD_END - 1;
        KELP_TRY(kelp_bpe_push(e, part->id, part->begin, part->end, at - before, after_space));
    }
    return NULL;
}

static kelp_status *encode_word(kelp_bpe_encoder *e, size_t begin, size_t end) {
    const kelp_bpe *b = e->b;
    bool after_space = e->chars[begin].c == ' ';
    uint8_t *bytes = (uint8_t *)e->parts; /* read before the parts are written */
    size_t count = bytes_of(e, begin, end, bytes), length = 0;
    if (count == 0)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        memcpy(e->key + length, b->bytes[bytes[i]].text, 2);
        length += b->bytes[bytes[i]].length;
    }
    if (b->ends_words) {
        memcpy(e->key + length, WORD_END, sizeof WORD_END - 1);
        length += sizeof WORD_END - 1;
    }
    int64_t whole = kelp_vocabulary_id(&b->base.vocabulary, (kelp_str){e->key, length});
    if (whole != KELP_TOKEN_NONE) {
        KELP_TRY(kelp_bpe_push(e, (uint32_t)whole, 0, count - 1, count, after_space));
        e->word++;
        return NULL;
    }
    for (size_t i = count; i-- > 0;) { /* backward: the bytes are in the memory of the parts */
        bool at_end = b->ends_words && i + 1 == count;
        uint32_t id = at_end ? b->bytes[bytes[i]].id_at_end : b->bytes[bytes[i]].id;
        e->parts[i] =
            (kelp_part){id, (uint32_t)i, (uint32_t)i, i > 0 ? (uint32_t)i - 1 : KELP_MERGE_NONE,
                        i + 1 < count ? (uint32_t)i + 1 : KELP_MERGE_NONE};
    }
    KELP_TRY(kelp_merges_apply(&b->merges, e->out->allocator, e->parts, count));
    KELP_TRY(push_parts(e, count, after_space));
    e->word++;
    return NULL;
}

static kelp_status *push_special(kelp_bpe_encoder *e, kelp_added_span span) {
    kelp_text_token token = {.id = span.id,
                             .begin = e->chars[span.begin].begin,
                             .end = e->chars[span.end - 1].end,
                             .word = e->word++,
                             .special = true};
    return kelp_token_list_push(e->out, token);
}

/* Encodes characters begin … end - 1, which have no added or special token. */
static kelp_status *encode_words(kelp_bpe_encoder *e, size_t begin, size_t end) {
    e->source = e->chars;
    while (begin < end) {
        size_t skipped = 0;
        size_t length = kelp_pretoken_next(&e->b->words, e->chars + begin, end - begin, &skipped);
        begin += skipped;
        if (length > 0)
            KELP_TRY(encode_word(e, begin, begin + length));
        begin += length;
    }
    return NULL;
}

/* Encodes characters begin … end - 1, in which special token `index` and later ones may occur. */
static kelp_status *encode_span(kelp_bpe_encoder *e, size_t begin, size_t end, size_t index) {
    while (begin < end) {
        kelp_added_span span;
        if (index == e->b->special.count)
            return e->b->marks_spaces ? kelp_bpe_encode_marked(e, begin, end)
                                      : encode_words(e, begin, end);
        if (!kelp_added_find(&e->b->special.items[index], e->chars, begin, end, &span))
            return encode_span(e, begin, end, index + 1);
        KELP_TRY(encode_span(e, begin, span.begin, index + 1));
        KELP_TRY(push_special(e, span));
        begin = span.end;
    }
    return NULL;
}

static bool is_strip_space(uint32_t c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Returns the first character from `at` on that is no white space or begins an added token. */
static size_t skip_spaces(const kelp_bpe_encoder *e, size_t at) {
    kelp_added_span next;
    while (at < e->char_count && is_strip_space(e->chars[at].c) &&
           !kelp_added_at(&e->b->added, e->chars, e->char_count, at, &next))
        at++;
    return at;
}

static kelp_status *encode_chars(kelp_bpe_encoder *e) {
    kelp_added_span span;
    size_t at = 0;
    while (kelp_added_next(&e->b->added, e->chars, e->char_count, at, &span)) {
        KELP_TRY(encode_span(e, at, span.begin, 0));
        KELP_TRY(push_special(e, span));
        at = span.strips_after ? skip_spaces(e, span.end) : span.end;
    }
    return encode_span(e, at, e->char_count, 0);
}

/* Allocates what the longest word can need: 4 bytes for each character, and for a mark. */
static kelp_status *reserve(kelp_bpe_encoder *e, kelp_allocator allocator) {
    size_t count;
    if (!kelp_size_mul(e->char_count + 1, 4, &count) || count >= UINT32_MAX / 8)
        return kelp_status_oom();
    e->byte_capacity = count;
    if (e->b->marks_spaces)
        KELP_TRY(
            kelp_alloc(allocator, (e->char_count + 1) * sizeof *e->marked, (void **)&e->marked));
    KELP_TRY(kelp_alloc(allocator, 2 * count + sizeof WORD_END, (void **)&e->key));
    KELP_TRY(kelp_alloc(allocator, count * sizeof *e->begins, (void **)&e->begins));
    return kelp_alloc(allocator, count * sizeof *e->parts, (void **)&e->parts);
}

static kelp_status *encode_all(kelp_bpe_encoder *e, kelp_str text, kelp_allocator allocator) {
    if (!e->b->ends_words) {
        e->char_capacity = text.length;
        KELP_TRY(kelp_chars_decode(allocator, text, &e->chars, &e->char_count));
    } else {
        kelp_char *decoded = NULL;
        size_t count = 0;
        e->char_capacity = 2 * text.length;
        KELP_TRY(kelp_alloc(allocator, e->char_capacity * sizeof *e->chars, (void **)&e->chars));
        KELP_TRY(kelp_chars_decode(allocator, text, &decoded, &count));
        e->char_count = normalize(decoded, count, e->chars);
        kelp_free(allocator, decoded, text.length * sizeof *decoded);
    }
    KELP_TRY(reserve(e, allocator));
    return encode_chars(e);
}

static kelp_status *bpe_encode(const kelp_tokenizer *tokenizer, kelp_str text,
                               kelp_token_list *inout_tokens) {
    kelp_allocator allocator = inout_tokens->allocator;
    kelp_bpe_encoder e = {.b = (const kelp_bpe *)tokenizer, .out = inout_tokens};
    if (text.length == 0)
        return NULL;
    if (text.length >= UINT32_MAX / 32)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "a text of %zu bytes is too long", text.length);
    kelp_status *status = encode_all(&e, text, allocator);
    if (e.marked != NULL)
        kelp_free(allocator, e.marked, (e.char_count + 1) * sizeof *e.marked);
    if (e.parts != NULL)
        kelp_free(allocator, e.parts, e.byte_capacity * sizeof *e.parts);
    if (e.begins != NULL)
        kelp_free(allocator, e.begins, e.byte_capacity * sizeof *e.begins);
    if (e.key != NULL)
        kelp_free(allocator, e.key, 2 * e.byte_capacity + sizeof WORD_END);
    if (e.chars != NULL)
        kelp_free(allocator, e.chars, e.char_capacity * sizeof *e.chars);
    return status;
}

/* ---- text of ids ---- */
static bool is_special(const kelp_bpe *b, int64_t id) {
    const kelp_added *lists[] = {&b->special, &b->added};
    for (size_t k = 0; k < KELP_COUNT(lists); k++)
        for (size_t i = 0; i < lists[k]->count; i++)
            if (lists[k]->items[i].id == id)
                return true;
    return false;
}

static kelp_status *bpe_decode(const kelp_tokenizer *tokenizer, const int64_t *ids, size_t count,
                               const kelp_decode_options *options, kelp_buf *out) {
    const kelp_bpe *b = (const kelp_bpe *)tokenizer;
    for (size_t i = 0; i < count; i++) {
        kelp_str token = kelp_vocabulary_token(&tokenizer->vocabulary, ids[i]);
        if (kelp_decode_skips(options, ids[i]) || token.data == NULL)
            continue;
        if (is_special(b, ids[i])) {
            kelp_buf_append_str(out, token);
            continue;
        }
        if (b->marks_spaces) {
            kelp_bpe_decode_marked(token, out);
            continue;
        }
        bool ends = b->ends_words && token.length >= sizeof WORD_END - 1 &&
                    memcmp(token.data + token.length - (sizeof WORD_END - 1), WORD_END,
                           sizeof WORD_END - 1) == 0;
        if (ends)
            token.length -= sizeof WORD_END - 1;
        for (size_t at = 0; at < token.length;) {
            kelp_char x = kelp_char_at(token, at);
            int byte = kelp_byte_of_char(x.c);
            if (byte >= 0)
                kelp_buf_append_char(out, (char)byte);
            else
                kelp_buf_append(out, token.data + at, x.end - at);
            at = x.end;
        }
        if (ends)
            kelp_buf_append_char(out, ' ');
    }
    return NULL;
}

static void bpe_deinit(kelp_tokenizer *tokenizer) {
    kelp_bpe *b = (kelp_bpe *)tokenizer;
    kelp_merges_deinit(&b->merges);
    kelp_added_deinit(&b->special);
    kelp_added_deinit(&b->added);
}

static const kelp_tokenizer_kind bpe_kind = {.size_bytes = sizeof(kelp_bpe),
                                             .encode = bpe_encode,
                                             .decode = bpe_decode,
                                             .deinit = bpe_deinit};

/* ---- creation ---- */
static void read_bytes(kelp_bpe *b) {
    for (size_t i = 0; i < KELP_COUNT(b->bytes); i++) {
        char text[2 + sizeof WORD_END];
        size_t length = kelp_utf8_encode(kelp_byte_char((uint8_t)i), text);
        memcpy(text + length, WORD_END, sizeof WORD_END);
        memcpy(b->bytes[i].text, text, 2);
        b->bytes[i].length = (uint8_t)length;
        int64_t id = kelp_vocabulary_id(&b->base.vocabulary, (kelp_str){text, length});
        int64_t at_end =
            kelp_vocabulary_id(&b->base.vocabulary, (kelp_str){text, length + sizeof WORD_END - 1});
        b->bytes[i].id = id == KELP_TOKEN_NONE ? KELP_MERGE_NONE : (uint32_t)id;
        b->bytes[i].id_at_end = at_end == KELP_TOKEN_NONE ? KELP_MERGE_NONE : (uint32_t)at_end;
    }
}

static kelp_status *add_special(kelp_bpe *b, kelp_str text) {
    kelp_vocabulary *vocabulary = &b->base.vocabulary;
    int64_t id = kelp_vocabulary_id(vocabulary, text);
    if (id == KELP_TOKEN_NONE) {
        id = (int64_t)vocabulary->ids.count;
        KELP_TRY(kelp_vocabulary_add(vocabulary, text, id));
    }
    return kelp_added_append(&b->special, &(kelp_added_token){.text = text, .id = id});
}

/* Adds the members of "vocab" and the items of "merges" of a tokenizer.json. */
static kelp_status *add_vocabulary(kelp_vocabulary *v, const kelp_json *tokens) {
    if (tokens == NULL || tokens->type != KELP_JSON_OBJECT)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s", "'model.vocab' is not an object");
    for (const kelp_json *token = tokens->child; token != NULL; token = token->next) {
        if (token->type != KELP_JSON_INT)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "token '%.*s' has an invalid id: expected an integer, found %s",
                              KELP_STR_ARG(token->key), kelp_json_type_name(token->type));
        KELP_TRY(kelp_vocabulary_add(v, token->key, token->i64));
    }
    return NULL;
}

static kelp_status *read_vocabulary(kelp_bpe *b, const kelp_bpe_options *options) {
    kelp_vocabulary *vocabulary = &b->base.vocabulary;
    if (options->model != NULL)
        KELP_TRY(add_vocabulary(vocabulary, kelp_json_get(options->model, "vocab")));
    else
        KELP_TRY(kelp_vocabulary_add_json(vocabulary, options->vocabulary));
    for (size_t i = 0; i < options->special_count; i++) {
        if (i == 1 && b->marks_spaces)
            KELP_TRY(kelp_bpe_add_byte_tokens(vocabulary));
        KELP_TRY(add_special(b, options->special[i].text));
    }
    if (options->special_count < 2 && b->marks_spaces)
        KELP_TRY(kelp_bpe_add_byte_tokens(vocabulary));
    return NULL;
}

static kelp_status *read_all(kelp_bpe *b, const kelp_bpe_options *options) {
    b->ends_words = options->ends_words;
    b->marks_spaces = options->marks_spaces;
    b->marks_start = options->marks_start;
    b->one_word = options->one_word;
    if (options->words != NULL)
        b->words = *options->words;
    else
        b->words = kelp_pretokens_gpt2();
    KELP_TRY(read_vocabulary(b, options));
    if (options->model != NULL)
        KELP_TRY(kelp_merges_init_json(&b->merges, b->base.allocator,
                                       kelp_json_get(options->model, "merges"),
                                       &b->base.vocabulary));
    else
        KELP_TRY(
            kelp_merges_init(&b->merges, b->base.allocator, options->merges, &b->base.vocabulary));
    for (size_t i = 0; i < options->added_count; i++)
        KELP_TRY(kelp_added_append(&b->added, &options->added[i]));
    kelp_added_sort(&b->added);
    read_bytes(b);
    return NULL;
}

kelp_status *kelp_bpe_create(kelp_allocator allocator, const kelp_bpe_options *options,
                             kelp_tokenizer **out) {
    kelp_tokenizer *tokenizer = NULL;
    KELP_TRY(kelp_tokenizer_new(allocator, &bpe_kind, &tokenizer));
    kelp_bpe *b = (kelp_bpe *)tokenizer;
    b->merges.allocator = allocator;
    kelp_added_init(&b->special, allocator);
    kelp_added_init(&b->added, allocator);
    kelp_status *status = read_all(b, options);
    if (status != NULL) {
        kelp_tokenizer_destroy(tokenizer);
        return status;
    }
    *out = tokenizer;
    return NULL;
}
