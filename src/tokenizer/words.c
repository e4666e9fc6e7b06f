/* SPDX-License-Identifier: Apache-2.0 */
/* Source of the character sets: the behaviour of onnxruntime-extensions 0.15. */
#include "tokenizer/words.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/utf8.h"

typedef struct range {
    uint32_t first, last;
} range;

static const range cjk[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                            {0x20000, 0x2A6DF}, {0x2A700, 0x2CEAF}, {0x2F800, 0x2FA1F}};

static const range spaces[] = {{0x09, 0x0A},     {0x0D, 0x0D},     {0x20, 0x20},
                               {0xA0, 0xA0},     {0x2000, 0x200A}, {0x202F, 0x202F},
                               {0x205F, 0x205F}, {0x3000, 0x3000}};

static const range punctuation[] = {
    {0x21, 0x2F},     {0x3A, 0x40},     {0x5B, 0x60},     {0x7B, 0x7E},     {0xA1, 0xA1},
    {0xA7, 0xA7},     {0xAB, 0xAB},     {0xB6, 0xB7},     {0xBB, 0xBB},     {0xBF, 0xBF},
    {0x37E, 0x37E},   {0x387, 0x387},   {0x2010, 0x2027}, {0x2030, 0x2043}, {0x2045, 0x2051},
    {0x2053, 0x205E}, {0x3001, 0x3003}, {0x3008, 0x3011}, {0x3014, 0x301F}, {0x3030, 0x3030},
    {0x303D, 0x303D}};

/* Control, format and unassigned characters of some blocks. */
static const range controls[] = {
    {0x00, 0x08},       {0x0B, 0x0C},       {0x0E, 0x1F},       {0x80, 0x9F},
    {0xAD, 0xAD},       {0x378, 0x379},     {0x380, 0x383},     {0x38B, 0x38B},
    {0x38D, 0x38D},     {0x3A2, 0x3A2},     {0x200B, 0x200F},   {0x202A, 0x202E},
    {0x2060, 0x206E},   {0x2E9A, 0x2E9A},   {0x2EF4, 0x2EFE},   {0x9FFD, 0x9FFE},
    {0xFA6E, 0xFA6F},   {0xFADA, 0xFAFE},   {0x2A6DE, 0x2A6DE}, {0x2B735, 0x2B73E},
    {0x2B81E, 0x2B81F}, {0x2CEA2, 0x2CEAE}, {0x2FA1E, 0x2FA1E}};

static bool contains(const range *ranges, size_t count, uint32_t c) {
    for (size_t i = 0; i < count; i++)
        if (c <= ranges[i].last)
            return c >= ranges[i].first;
    return false;
}

bool kelp_words_is_punctuation(uint32_t c) {
    return contains(punctuation, KELP_COUNT(punctuation), c);
}

static uint32_t without_accent(uint32_t c) {
    /* U+00C0 … U+00FF; '.': no accent */
    static const char letters[] = "AAAAAA.CEEEEIIII.NOOOOO..UUUUY.."
                                  "aaaaaa.ceeeeiiii.nooooo..uuuuy.y";
    if (c < 0xC0 || c > 0xFF || letters[c - 0xC0] == '.')
        return c;
    return (uint32_t)letters[c - 0xC0];
}

uint32_t kelp_words_lower(uint32_t c) {
    bool greek = c == 0x399 || (c >= 0x39A && c <= 0x39D) || c == 0x39F || c == 0x3A0;
    bool latin = (c >= 'A' && c <= 'Z') || (c >= 0xC0 && c <= 0xDE && c != 0xD7);
    bool cyrillic = c >= 0x410 && c <= 0x42F;
    return latin || greek || cyrillic || (c >= 0x1F08 && c <= 0x1F68) ? c + 32 : c;
}

void kelp_words_deinit(kelp_words *words) {
    if (words->chars != NULL)
        kelp_free(words->allocator, words->chars, words->capacity * sizeof *words->chars);
    if (words->ends != NULL)
        kelp_free(words->allocator, words->ends, words->capacity * sizeof *words->ends);
    *words = (kelp_words){.allocator = words->allocator};
}

/* Ends the word that has characters up to `end`, if it is not empty. */
static void end_word(kelp_words *w, size_t end) {
    size_t begin = w->count > 0 ? w->ends[w->count - 1] : 0;
    KELP_ASSERT(end >= begin && end <= w->capacity);
    if (end > begin)
        w->ends[w->count++] = end;
}

/* Characters move to the front as others are removed: `kept` is the next position. */
static void split(const kelp_word_options *o, kelp_words *w, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        kelp_char x = w->chars[i];
        if (o->strip_accents)
            x.c = without_accent(x.c);
        if (o->lower_case)
            x.c = kelp_words_lower(x.c);
        bool is_cjk = o->split_cjk && contains(cjk, KELP_COUNT(cjk), x.c);
        if (!is_cjk && o->strip_accents && x.c >= 0x300 && x.c <= 0x36F)
            continue;
        if (is_cjk || (o->split_punctuation && kelp_words_is_punctuation(x.c))) {
            end_word(w, kept);
            w->chars[kept++] = x;
            end_word(w, kept);
        } else if (contains(spaces, KELP_COUNT(spaces), x.c)) {
            end_word(w, kept);
        } else if (!o->remove_control || !contains(controls, KELP_COUNT(controls), x.c)) {
            w->chars[kept++] = x;
        }
    }
    end_word(w, kept);
}

static void split_at_spaces(kelp_words *w, size_t count, bool may_begin_word) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool at_begin = kept == (w->count > 0 ? w->ends[w->count - 1] : 0);
        if (w->chars[i].c == ' ' && !(at_begin && may_begin_word))
            end_word(w, kept);
        else
            w->chars[kept++] = w->chars[i];
    }
    end_word(w, kept);
}

kelp_status *kelp_words_split(const kelp_word_options *options, kelp_allocator allocator,
                              kelp_str text, kelp_words *out) {
    size_t count = 0;
    *out = (kelp_words){.allocator = allocator};
    if (text.length == 0)
        return NULL;
    KELP_TRY(kelp_chars_decode(allocator, text, &out->chars, &count));
    out->capacity = text.length;
    kelp_status *status =
        kelp_alloc(allocator, out->capacity * sizeof *out->ends, (void **)&out->ends);
    if (status != NULL) {
        kelp_words_deinit(out);
        return status;
    }
    if (options->rule == KELP_WORDS_BASIC)
        split(options, out, count);
    else
        split_at_spaces(out, count, options->rule == KELP_WORDS_INNER_SPACES);
    return NULL;
}

kelp_status *kelp_words_text(const kelp_words *words, size_t begin, size_t end, kelp_str *out) {
    char *text = NULL;
    KELP_ASSERT(end > begin && end <= words->capacity);
    KELP_TRY(kelp_alloc(words->allocator, (end - begin) * 4, (void **)&text));
    *out = (kelp_str){text, 0};
    for (size_t i = begin; i < end; i++)
        out->length += kelp_utf8_encode(words->chars[i].c, text + out->length);
    return NULL;
}
