/* SPDX-License-Identifier: Apache-2.0 */
/* Models of SentencePiece. Source: sentencepiece_model.proto. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/utf8.h"
#include "base/wire/protobuf.h"
#include "tokenizer/sentencepiece/spm.h"

#include <float.h>

#define PIECE_MAX (1u << 26)
#define DEFAULT_UNKNOWN_SURFACE " \xE2\x81\x87 "

/* What the reader needs only while it reads. */
typedef struct reader {
    kelp_spm *spm;
    kelp_str start, end; /* names of pieces */
    kelp_str charsmap, denormalizer;
} reader;

typedef kelp_status *(*read_fn)(reader *r, const kelp_protobuf_field *field);

static kelp_status *malformed(const char *message) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "the SentencePiece model is malformed: %s", message);
}

static kelp_status *read_message(reader *r, kelp_str message, read_fn read) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    for (;;) {
        kelp_protobuf_result result = kelp_protobuf_next(&wire, &field);
        if (result == KELP_PROTOBUF_END)
            return NULL;
        if (result == KELP_PROTOBUF_MALFORMED)
            return malformed("expected a protobuf message");
        KELP_TRY(read(r, &field));
    }
}

static bool is_text(const kelp_protobuf_field *field, uint32_t number) {
    return field->number == number && field->type == KELP_PROTOBUF_BYTES;
}

static bool is_number(const kelp_protobuf_field *field, uint32_t number) {
    return field->number == number && field->type == KELP_PROTOBUF_VARINT;
}

/* ---- pieces ---- */
/* Returns the byte of a piece such as <0x0A>, or -1. */
static int byte_of(kelp_str piece) {
    static const char digits[] = "0123456789ABCDEF";
    if (piece.length != 6 || memcmp(piece.data, "<0x", 3) != 0 || piece.data[5] != '>')
        return -1;
    const char *high = memchr(digits, piece.data[3], 16), *low = memchr(digits, piece.data[4], 16);
    return high != NULL && low != NULL ? (int)(16 * (high - digits) + (low - digits)) : -1;
}

static kelp_status *add_text_piece(kelp_spm *spm, kelp_str piece, int32_t id) {
    if (kelp_vocabulary_id(&spm->base.vocabulary, piece) != KELP_TOKEN_NONE)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the SentencePiece model is malformed: piece '%.*s' occurs twice",
                          KELP_STR_ARG(piece));
    KELP_TRY(kelp_vocabulary_add(&spm->base.vocabulary, piece, id));
    KELP_TRY(kelp_trie_put(&spm->trie, piece, id));
    if (spm->pieces[id].type == KELP_SPM_USER_DEFINED)
        KELP_TRY(kelp_trie_put(&spm->user, piece, id));
    if (spm->pieces[id].type == KELP_SPM_NORMAL) {
        spm->min_score = KELP_MIN(spm->min_score, spm->pieces[id].score);
        spm->max_score = KELP_MAX(spm->max_score, spm->pieces[id].score);
    }
    return NULL;
}

static kelp_status *add_reserved_piece(kelp_spm *spm, kelp_str piece, int32_t id) {
    if (kelp_map_find(&spm->reserved, piece, NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the SentencePiece model is malformed: piece '%.*s' occurs twice",
                          KELP_STR_ARG(piece));
    if (spm->pieces[id].type == KELP_SPM_UNKNOWN) {
        if (spm->unknown >= 0)
            return malformed("it has two unknown pieces");
        spm->unknown = id;
    }
    if (spm->pieces[id].type == KELP_SPM_BYTE) {
        if (byte_of(piece) < 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "the SentencePiece model is malformed: expected a byte piece such "
                              "as <0x0A>, found '%.*s'",
                              KELP_STR_ARG(piece));
        spm->bytes[byte_of(piece)] = id;
    }
    char *copy = kelp_arena_strndup(&spm->base.vocabulary.arena, piece.data, piece.length);
    if (copy == NULL)
        return kelp_status_oom();
    kelp_str text = {copy, piece.length};
    KELP_TRY(kelp_map_put(&spm->reserved, text, (void *)(uintptr_t)(id + 1)));
    return kelp_vocabulary_set_token(&spm->base.vocabulary, text, id);
}

static kelp_status *add_piece(kelp_spm *spm, kelp_str piece, float score, uint64_t type) {
    if (piece.length == 0)
        return malformed("a piece is empty");
    if (type < KELP_SPM_NORMAL || type > KELP_SPM_BYTE)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the SentencePiece model is malformed: piece '%.*s' has the invalid type "
                          "%llu",
                          KELP_STR_ARG(piece), (unsigned long long)type);
    if (score != score || spm->piece_count >= PIECE_MAX)
        return malformed("a score is not a number, or there are too many pieces");
    KELP_TRY(kelp_grow(spm->base.allocator, (void **)&spm->pieces, &spm->piece_capacity,
                       spm->piece_count + 1, sizeof *spm->pieces));
    int32_t id = (int32_t)spm->piece_count++;
    spm->pieces[id] = (kelp_spm_piece){score, (uint8_t)type};
    bool is_text_piece =
        type == KELP_SPM_NORMAL || type == KELP_SPM_USER_DEFINED || type == KELP_SPM_UNUSED;
    return is_text_piece ? add_text_piece(spm, piece, id) : add_reserved_piece(spm, piece, id);
}

static kelp_status *read_piece(reader *r, kelp_str message) {
    kelp_protobuf wire = kelp_protobuf_of(message);
    kelp_protobuf_field field;
    kelp_protobuf_result result;
    kelp_str piece = {NULL, 0};
    float score = 0;
    uint64_t type = KELP_SPM_NORMAL;
    while ((result = kelp_protobuf_next(&wire, &field)) == KELP_PROTOBUF_FIELD) {
        if (is_text(&field, 1))
            piece = field.bytes;
        else if (field.number == 2 && field.type == KELP_PROTOBUF_I32) {
            uint32_t bits = (uint32_t)field.value;
            memcpy(&score, &bits, sizeof score);
        } else if (is_number(&field, 3))
            type = field.value;
    }
    if (result == KELP_PROTOBUF_MALFORMED)
        return malformed("expected a piece");
    return add_piece(r->spm, piece, score, type);
}

/* ---- specifications ---- */
static kelp_status *read_trainer(reader *r, const kelp_protobuf_field *field) {
    if (is_number(field, 3))
        r->spm->algorithm = field->value <= KELP_SPM_CHAR ? (uint32_t)field->value : 0;
    else if (is_number(field, 24))
        r->spm->space_is_suffix = field->value != 0;
    else if (is_number(field, 35))
        r->spm->byte_fallback = field->value != 0;
    else if (is_text(field, 44))
        r->spm->unknown_surface = field->bytes;
    else if (is_text(field, 46))
        r->start = field->bytes;
    else if (is_text(field, 47))
        r->end = field->bytes;
    return NULL;
}

static kelp_status *read_normalizer(reader *r, const kelp_protobuf_field *field) {
    if (is_text(field, 2))
        r->charsmap = field->bytes;
    else if (is_number(field, 3))
        r->spm->add_prefix = field->value != 0;
    else if (is_number(field, 4))
        r->spm->remove_spaces = field->value != 0;
    else if (is_number(field, 5))
        r->spm->escape_spaces = field->value != 0;
    return NULL;
}

static kelp_status *read_denormalizer(reader *r, const kelp_protobuf_field *field) {
    if (is_text(field, 2))
        r->denormalizer = field->bytes;
    return NULL;
}

static kelp_status *read_model(reader *r, const kelp_protobuf_field *field) {
    if (is_text(field, 1))
        return read_piece(r, field->bytes);
    if (is_text(field, 2))
        return read_message(r, field->bytes, read_trainer);
    if (is_text(field, 3))
        return read_message(r, field->bytes, read_normalizer);
    if (is_text(field, 5))
        return read_message(r, field->bytes, read_denormalizer);
    return NULL;
}

/* The map has the size of the double array in 4 bytes, units of 4 bytes, and texts. */
kelp_status *kelp_spm_read_charsmap(kelp_spm *spm, kelp_str map) {
    uint32_t bytes = 0;
    if (map.length == 0)
        return NULL;
    if (map.length >= sizeof bytes)
        memcpy(&bytes, map.data, sizeof bytes);
    if (map.length < sizeof bytes || bytes > map.length - sizeof bytes || bytes % 4 != 0)
        return malformed("the size of precompiled_charsmap is wrong");
    size_t texts = map.length - sizeof bytes - bytes;
    void *units = kelp_arena_alloc(&spm->base.vocabulary.arena, bytes + 1, sizeof(uint32_t));
    spm->charsmap_texts.data =
        kelp_arena_strndup(&spm->base.vocabulary.arena, map.data + sizeof bytes + bytes, texts);
    if (units == NULL || spm->charsmap_texts.data == NULL)
        return kelp_status_oom();
    memcpy(units, map.data + sizeof bytes, bytes);
    spm->charsmap = units;
    spm->charsmap_count = bytes / 4;
    spm->charsmap_texts.length = texts;
    return NULL;
}

static kelp_status *check(const kelp_spm *spm) {
    if (spm->unknown < 0)
        return malformed("it has no unknown piece");
    for (size_t i = 0; spm->byte_fallback && i < KELP_SPM_BYTES; i++)
        if (spm->bytes[i] < 0)
            return malformed("byte_fallback needs 256 byte pieces");
    if (spm->algorithm == 0 || spm->algorithm == KELP_SPM_WORD)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "the model_type of the SentencePiece model is unsupported: expected "
                          "unigram, bpe or char, found %s",
                          spm->algorithm == 0 ? "an unknown type" : "word");
    return NULL;
}

static int32_t special(const kelp_spm *spm, kelp_str piece) {
    int32_t id = kelp_spm_id(spm, piece);
    return spm->pieces[id].type == KELP_SPM_CONTROL ? id : -1;
}

kelp_status *kelp_spm_read(kelp_spm *spm, kelp_str model) {
    reader r = {.spm = spm, .start = KELP_STR("<s>"), .end = KELP_STR("</s>")};
    spm->unknown = -1;
    memset(spm->bytes, 0xFF, sizeof spm->bytes);
    spm->min_score = FLT_MAX;
    spm->max_score = FLT_MIN;
    spm->algorithm = KELP_SPM_UNIGRAM;
    spm->add_prefix = spm->remove_spaces = spm->escape_spaces = true;
    spm->unknown_surface = KELP_STR(DEFAULT_UNKNOWN_SURFACE);
    KELP_TRY(read_message(&r, model, read_model));
    KELP_TRY(check(spm));
    if (r.denormalizer.length > 0)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "the SentencePiece model is unsupported: it has a %s",
                          "denormalizer with rules");
    KELP_TRY(kelp_spm_read_charsmap(spm, r.charsmap));
    spm->unknown_surface.data = kelp_arena_strndup(
        &spm->base.vocabulary.arena, spm->unknown_surface.data, spm->unknown_surface.length);
    if (spm->unknown_surface.data == NULL)
        return kelp_status_oom();
    spm->start = special(spm, r.start);
    spm->end = special(spm, r.end);
    return NULL;
}

int32_t kelp_spm_id(const kelp_spm *spm, kelp_str piece) {
    void *found;
    if (kelp_map_find(&spm->reserved, piece, &found))
        return (int32_t)((uintptr_t)found - 1);
    int64_t id = kelp_vocabulary_id(&spm->base.vocabulary, piece);
    return id != KELP_TOKEN_NONE ? (int32_t)id : spm->unknown;
}

size_t kelp_spm_prefix(const kelp_spm *spm, kelp_str text, bool *out_is_user) {
    size_t length = kelp_trie_longest(&spm->user, text);
    uint32_t c;
    if (out_is_user != NULL)
        *out_is_user = length > 0;
    if (length == 0)
        length = KELP_MAX(kelp_utf8_decode(text, &c), 1);
    return length;
}
