/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ai.onnx.contrib BpeDecoder: text of ids, with a vocabulary and a table of bytes. The text of each
 * token is computed when the kernel is created. Source: onnxruntime-extensions,
 * docs/custom_ops.md.
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/map.h"
#include "cpu/ops/tokenize/tokenize.h"
#include "tokenizer/unicode.h"

#define SPACE_MARK 0x2581u /* of SentencePiece */
#define SPACE_MARK_TEXT "\xE2\x96\x81"

typedef struct decoder {
    kelp_arena arena;
    kelp_map bytes;   /* from character to byte + 1; keys are uint32_t */
    kelp_map added;   /* from id to text; keys are int64_t */
    kelp_map special; /* ids; keys are int64_t */
    kelp_str *texts;  /* by id */
    size_t count;
    kelp_str unknown; /* belongs to the node */
    bool skip_special, space_around_special;
} decoder;

/* ---- attributes ---- */
typedef struct line_reader {
    const kelp_node *node;
    const char *attribute;
    kelp_str rest;
} line_reader;

/* Reads the next line, "NUMBER" or "NUMBER<tab>TEXT". */
static kelp_status *next_line(line_reader *r, bool *out_found, int64_t *out_number,
                              kelp_str *out_text) {
    *out_found = r->rest.length > 0;
    if (!*out_found)
        return NULL;
    const char *end = memchr(r->rest.data, '\n', r->rest.length);
    kelp_str line = {r->rest.data, end != NULL ? (size_t)(end - r->rest.data) : r->rest.length};
    size_t used = KELP_MIN(line.length + 1, r->rest.length);
    r->rest = (kelp_str){r->rest.data + used, r->rest.length - used};
    const char *tab = line.length > 0 ? memchr(line.data, '\t', line.length) : NULL;
    kelp_str number = {line.data, tab != NULL ? (size_t)(tab - line.data) : line.length};
    *out_text = tab != NULL ? (kelp_str){tab + 1, line.length - number.length - 1} : KELP_STR("");
    if (!kelp_parse_i64(number, out_number))
        return KELP_TEXT_ERROR(r->node,
                               "attribute '%s' is malformed: expected a number, found '%.*s'",
                               r->attribute, KELP_STR_ARG(line));
    return NULL;
}

/* Copies a key of the map into the arena, and adds the value. */
static kelp_status *put(decoder *d, kelp_map *map, const void *key, size_t size, void *value) {
    char *copy = kelp_arena_strndup(&d->arena, key, size);
    return copy != NULL ? kelp_map_put(map, (kelp_str){copy, size}, value) : kelp_status_oom();
}

static kelp_status *read_bytes(decoder *d, const kelp_node *node) {
    line_reader r = {node, "byte_decoder", {NULL, 0}};
    bool found;
    int64_t c = 0, byte = 0;
    kelp_str text;
    KELP_TRY(kelp_text_required_attr(node, r.attribute, &r.rest));
    for (;;) {
        KELP_TRY(next_line(&r, &found, &c, &text));
        if (!found)
            return NULL;
        if (c < 0 || c > UINT32_MAX || !kelp_parse_i64(text, &byte) || byte < 0 || byte > 255)
            return KELP_TEXT_ERROR(node,
                                   "attribute 'byte_decoder' is malformed: expected a character "
                                   "and a byte, found '%lld' and '%.*s'",
                                   (long long)c, KELP_STR_ARG(text));
        uint32_t key = (uint32_t)c;
        KELP_TRY(put(d, &d->bytes, &key, sizeof key, (void *)(uintptr_t)(byte + 1)));
    }
}

/* Reads the ids of `attribute` into `map`, with their texts. */
static kelp_status *read_ids(decoder *d, const kelp_node *node, const char *attribute,
                             kelp_map *map) {
    line_reader r = {node, attribute, kelp_text_attr(node, attribute, "")};
    bool found;
    int64_t id = 0;
    kelp_str text;
    for (;;) {
        KELP_TRY(next_line(&r, &found, &id, &text));
        if (!found)
            return NULL;
        kelp_str *copy = KELP_ARENA_NEW(&d->arena, kelp_str);
        if (copy == NULL)
            return kelp_status_oom();
        copy->data = kelp_arena_strndup(&d->arena, text.data, text.length);
        copy->length = text.length;
        if (copy->data == NULL)
            return kelp_status_oom();
        KELP_TRY(put(d, map, &id, sizeof id, copy));
    }
}

/* ---- texts of tokens ---- */
/* Converts a piece of SentencePiece: a byte such as <0x20>, or text with marks for spaces. */
static void decode_marks(kelp_str token, char *out, size_t *out_length) {
    const kelp_str mark = KELP_STR(SPACE_MARK_TEXT);
    bool is_byte = token.length == 6 && memcmp(token.data, "<0x", 3) == 0 && token.data[5] == '>';
    size_t length = 0;
    if (is_byte) {
        unsigned value = 0;
        for (int i = 3; i < 5; i++) {
            char c = token.data[i];
            unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                             : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                             : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                                    : 16;
            if (digit == 16)
                break;
            value = value * 16 + digit;
        }
        out[length++] = (char)value;
        token.length = 0;
    }
    while (token.length > 0) {
        bool is_space = kelp_str_starts(token, mark);
        size_t used = is_space ? mark.length : 1;
        out[length++] = is_space ? ' ' : *token.data;
        token = (kelp_str){token.data + used, token.length - used};
    }
    *out_length = length;
}

/* Converts the characters of a token to bytes. Returns false if one has no byte. */
static bool decode_bytes(const decoder *d, kelp_str token, char *out, size_t *out_length) {
    *out_length = 0;
    for (size_t at = 0; at < token.length;) {
        kelp_char x = kelp_char_at(token, at);
        uintptr_t byte =
            (uintptr_t)kelp_map_get(&d->bytes, (kelp_str){(const char *)&x.c, sizeof x.c});
        if (byte > 0)
            out[(*out_length)++] = (char)(byte - 1);
        else if (x.c <= 0xFF)
            out[(*out_length)++] = (char)x.c;
        else if (!d->skip_special)
            return false;
        at = x.end;
    }
    return true;
}

static kelp_status *add_token(decoder *d, kelp_str token, bool has_marks) {
    char *text = kelp_arena_alloc(&d->arena, token.length + 1, 1);
    size_t length = 0;
    if (text == NULL)
        return kelp_status_oom();
    bool known = true;
    if (has_marks)
        decode_marks(token, text, &length);
    else
        known = decode_bytes(d, token, text, &length);
    d->texts[d->count++] = known ? (kelp_str){text, length} : d->unknown;
    return NULL;
}

static kelp_status *read_vocabulary(decoder *d, const kelp_node *node) {
    kelp_str vocabulary;
    const uint32_t mark = SPACE_MARK;
    bool has_marks = kelp_map_find(&d->bytes, (kelp_str){(const char *)&mark, sizeof mark}, NULL);
    size_t lines = 1;
    KELP_TRY(kelp_text_required_attr(node, "id_vocab", &vocabulary));
    for (size_t i = 0; i < vocabulary.length; i++)
        lines += vocabulary.data[i] == '\n';
    d->texts = KELP_ARENA_ARRAY(&d->arena, lines, kelp_str);
    if (d->texts == NULL)
        return kelp_status_oom();
    for (size_t begin = 0, end; begin < vocabulary.length; begin = end + 1) {
        const char *found = memchr(vocabulary.data + begin, '\n', vocabulary.length - begin);
        end = found != NULL ? (size_t)(found - vocabulary.data) : vocabulary.length;
        KELP_TRY(add_token(d, (kelp_str){vocabulary.data + begin, end - begin}, has_marks));
    }
    return NULL;
}

static kelp_status *decoder_read(void *state, const kelp_node *node, kelp_allocator allocator) {
    decoder *d = state;
    kelp_arena_init(&d->arena, allocator, 1 << 16);
    kelp_map_init(&d->bytes, allocator);
    kelp_map_init(&d->added, allocator);
    kelp_map_init(&d->special, allocator);
    d->skip_special = kelp_flag_attr(node, "skip_special_tokens", false);
    d->space_around_special = kelp_flag_attr(node, "whitespace_token", false);
    d->unknown = kelp_text_attr(node, "unk_token", "<|endoftext|>");
    KELP_TRY(read_bytes(d, node));
    KELP_TRY(read_ids(d, node, "added_tokens", &d->added));
    KELP_TRY(read_ids(d, node, "all_special_ids", &d->special));
    return read_vocabulary(d, node);
}

static void decoder_deinit(void *state) {
    decoder *d = state;
    kelp_map_deinit(&d->bytes);
    kelp_map_deinit(&d->added);
    kelp_map_deinit(&d->special);
    kelp_arena_deinit(&d->arena);
}
KELP_STATE(decoder, decoder, decoder_read, decoder_deinit)

/* ---- decoding ---- */
/* Finds the text of an id. Returns false if the id adds nothing. */
static bool text_of(const decoder *d, int64_t id, kelp_str *out) {
    const kelp_str *added = kelp_map_get(&d->added, (kelp_str){(const char *)&id, sizeof id});
    *out = added != NULL ? *added : id >= 0 && (uint64_t)id < d->count ? d->texts[id] : d->unknown;
    return added != NULL || (id >= 0 && (uint64_t)id < d->count) || !d->skip_special;
}

static kelp_status *decode(const decoder *d, const kelp_op_env *env, const int64_t *ids,
                           int64_t count, kelp_string *out) {
    bool after_special = false;
    kelp_buf text;
    kelp_buf_init(&text, kelp_run_allocator(env));
    for (int64_t i = 0; i < count; i++) {
        kelp_str token;
        bool special =
            kelp_map_find(&d->special, (kelp_str){(const char *)&ids[i], sizeof ids[i]}, NULL);
        bool spaces = special && d->space_around_special;
        if (special && d->skip_special) {
            after_special = true;
            continue;
        }
        if (!text_of(d, ids[i], &token))
            continue;
        if (spaces && i > 0 && !after_special)
            kelp_buf_append_char(&text, ' ');
        kelp_buf_append_str(&text, token);
        if (spaces && i + 1 < count)
            kelp_buf_append_char(&text, ' ');
        after_special = special;
    }
    KELP_TRY(kelp_buf_status(&text));
    kelp_str whole = kelp_text_of(&(kelp_string){text.data, text.length});
    *out = (kelp_string){whole.data, whole.length};
    return NULL;
}

static kelp_status *decoder_reshape(const void *state, kelp_op_args *args) {
    KELP_TRY(kelp_ops_check(args, 1));
    KELP_TRY(kelp_text_check(args, 1, KELP_I64));
    const kelp_tensor *ids = args->inputs[0];
    if (ids->rank < 1)
        return kelp_ops_bad_shapes(args, ids, NULL, "expected [N] or [...,N]");
    if (!kelp_results_begin(args))
        return NULL;
    const int64_t one = 1, count = ids->shape[ids->rank - 1];
    int64_t rows = kelp_ops_product(ids->shape, 0, ids->rank - 1);
    kelp_string *out = NULL;
    KELP_TRY(kelp_run_array(args->env, (size_t)rows, sizeof *out, (void **)&out));
    for (int64_t i = 0; i < rows; i++)
        KELP_TRY(decode(state, args->env, (const int64_t *)ids->data + i * count, count, &out[i]));
    return ids->rank > 1 ? kelp_results_set(args, 0, KELP_STRING, ids->rank - 1, ids->shape, out)
                         : kelp_results_set(args, 0, KELP_STRING, 1, &one, out);
}

KELP_STATE_KERNEL(BpeDecoder, decoder, sizeof(kelp_results), decoder_reshape, kelp_results_invoke);
