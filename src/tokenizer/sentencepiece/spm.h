/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece: the model, and the functions of each algorithm. Source: sentencepiece 0.1.96. */
#ifndef KELP_TOKENIZER_SENTENCEPIECE_SPM_H_
#define KELP_TOKENIZER_SENTENCEPIECE_SPM_H_

#include "tokenizer/kind.h"
#include "tokenizer/sentencepiece/trie.h"

#define KELP_SPM_SPACE "\xE2\x96\x81" /* U+2581, which replaces spaces */
#define KELP_SPM_SPACE_LENGTH 3
#define KELP_SPM_BYTES 256

/* Types of pieces and algorithms, as in sentencepiece_model.proto. */
enum {
    KELP_SPM_NORMAL = 1,
    KELP_SPM_UNKNOWN = 2,
    KELP_SPM_CONTROL = 3,
    KELP_SPM_USER_DEFINED = 4,
    KELP_SPM_UNUSED = 5,
    KELP_SPM_BYTE = 6
};
enum { KELP_SPM_UNIGRAM = 1, KELP_SPM_BPE = 2, KELP_SPM_WORD = 3, KELP_SPM_CHAR = 4 };

typedef struct kelp_spm_piece {
    float score;
    uint8_t type;
} kelp_spm_piece;

typedef struct kelp_spm {
    kelp_tokenizer base; /* pieces by id; its map has those that text may contain */
    kelp_spm_piece *pieces;
    size_t piece_count, piece_capacity;
    kelp_map reserved;             /* control, unknown and byte pieces: id + 1 */
    kelp_trie trie;                /* pieces that text may contain */
    kelp_trie user;                /* user-defined pieces */
    float min_score, max_score;    /* of normal pieces */
    int32_t unknown;               /* id */
    int32_t bytes[KELP_SPM_BYTES]; /* ids of byte pieces; -1: none */
    /* trainer_spec */
    uint32_t algorithm;
    bool space_is_suffix, byte_fallback;
    kelp_str unknown_surface;
    int32_t start, end; /* ids of bos_piece and eos_piece; -1: none */
    /* normalizer_spec */
    bool add_prefix, remove_spaces, escape_spaces;
    const uint32_t *charsmap; /* a double array, or NULL */
    size_t charsmap_count;
    kelp_str charsmap_texts; /* replacements, each ending with NUL */
} kelp_spm;

/* Normalized text; `origins[i]` is the byte of the text that byte i comes from, with one more entry
 * for the end. */
typedef struct kelp_spm_text {
    kelp_allocator allocator;
    char *data;
    uint32_t *origins;
    size_t length, data_capacity, origin_capacity;
} kelp_spm_text;

kelp_status *kelp_spm_normalize(const kelp_spm *spm, kelp_str text,
                                kelp_spm_text *out) KELP_MUST_USE;
void kelp_spm_text_deinit(kelp_spm_text *text);

/* A piece of normalized text. */
typedef struct kelp_spm_span {
    uint32_t begin, end;
    int32_t id;
} kelp_spm_span;
typedef struct kelp_spm_spans {
    kelp_allocator allocator;
    kelp_spm_span *items;
    size_t count, capacity;
} kelp_spm_spans;
kelp_status *kelp_spm_push(kelp_spm_spans *spans, size_t begin, size_t end,
                           int32_t id) KELP_MUST_USE;

/* These functions divide normalized text into pieces. */
kelp_status *kelp_spm_unigram(const kelp_spm *spm, kelp_str text,
                              kelp_spm_spans *out) KELP_MUST_USE;
kelp_status *kelp_spm_bpe(const kelp_spm *spm, kelp_str text, kelp_spm_spans *out) KELP_MUST_USE;
kelp_status *kelp_spm_chars(const kelp_spm *spm, kelp_str text, kelp_spm_spans *out) KELP_MUST_USE;

/* Normalizes the beginning of a text without white space rules. Returns the number of bytes that it
 * consists of. */
size_t kelp_spm_normalize_prefix(const kelp_spm *spm, kelp_str text, kelp_str *out);

/* Copies the double array and the replacements of `precompiled_charsmap`; an empty one is allowed.
 */
kelp_status *kelp_spm_read_charsmap(kelp_spm *spm, kelp_str map) KELP_MUST_USE;
/* Reads a model into a zeroed struct. */
kelp_status *kelp_spm_read(kelp_spm *spm, kelp_str model) KELP_MUST_USE;
/* Returns the id of a piece: a reserved one first; that of the unknown piece if there is none. */
int32_t kelp_spm_id(const kelp_spm *spm, kelp_str piece);
/* Returns the length of the user-defined piece that the text begins with, else that of its first
 * character. `out_is_user` may be NULL. */
size_t kelp_spm_prefix(const kelp_spm *spm, kelp_str text, bool *out_is_user);

#endif
