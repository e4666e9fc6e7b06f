/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The alternatives are matched by functions instead of a general engine. They agree with
 * onnxruntime-extensions 0.15 where it differs from the expression.
 */
#include "tokenizer/pretokens.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

static bool is_class(kelp_char x, kelp_char_class class) {
    return kelp_char_class_of(x.c) == class;
}

static bool is_line_end(kelp_char x) {
    return x.c == '\r' || x.c == '\n';
}

/* Returns the end of the characters of a class from `begin` on. */
static size_t run(const kelp_char *chars, size_t count, size_t begin, kelp_char_class class) {
    size_t end = begin;
    while (end < count && is_class(chars[end], class))
        end++;
    return end;
}

/* Returns the length of an English contraction, or 0. */
static size_t contraction(const kelp_char *chars, size_t count, uint32_t case_bit) {
    static const char *const endings[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (chars[0].c != '\'')
        return 0;
    for (size_t i = 0; i < KELP_COUNT(endings); i++) {
        size_t length = strlen(endings[i]), same = 0;
        while (same < length && same + 1 < count && chars[same + 1].c < 0x80 &&
               (chars[same + 1].c | case_bit) == (uint8_t)endings[i][same])
            same++;
        if (same == length)
            return length + 1;
    }
    return 0;
}

/* ---- alternatives: each returns the length of a match at the first character, or 0 ---- */
static size_t contraction_lower(const kelp_char *chars, size_t count) {
    return contraction(chars, count, 0);
}

static size_t contraction_any_case(const kelp_char *chars, size_t count) {
    return contraction(chars, count, 0x20);
}

/* Matches characters of a class, with a space in front. */
static size_t spaced(const kelp_char *chars, size_t count, kelp_char_class class) {
    size_t space = chars[0].c == ' ' && count > 1 ? 1 : 0;
    size_t end = run(chars, count, space, class);
    return end > space ? end : 0;
}

static size_t spaced_letters_or_numbers(const kelp_char *chars, size_t count) {
    size_t length = spaced(chars, count, KELP_CHAR_LETTER);
    return length > 0 ? length : spaced(chars, count, KELP_CHAR_NUMBER);
}

static size_t spaced_others(const kelp_char *chars, size_t count) {
    return spaced(chars, count, KELP_CHAR_OTHER);
}

static size_t spaced_others_and_line_ends(const kelp_char *chars, size_t count) {
    size_t end = spaced(chars, count, KELP_CHAR_OTHER);
    while (end > 0 && end < count && is_line_end(chars[end]))
        end++;
    return end;
}

/* The last space belongs to the next word. */
static size_t spaces(const kelp_char *chars, size_t count) {
    size_t length = run(chars, count, 0, KELP_CHAR_SPACE);
    return length > 1 && length < count ? length - 1 : length;
}

static size_t spaces_to_line_end(const kelp_char *chars, size_t count) {
    size_t end = run(chars, count, 0, KELP_CHAR_SPACE);
    if (end > 1 && is_line_end(chars[end - 1]))
        return end;
    for (end = 0; end < count && is_line_end(chars[end]); end++)
        continue;
    return end;
}

static size_t letters_after_any(const kelp_char *chars, size_t count) {
    bool letter = is_class(chars[0], KELP_CHAR_LETTER);
    if (!letter && (is_line_end(chars[0]) || is_class(chars[0], KELP_CHAR_NUMBER)))
        return 0;
    size_t end = run(chars, count, 1, KELP_CHAR_LETTER);
    return letter || end > 1 ? end : 0;
}

static size_t letters_or_number(const kelp_char *chars, size_t count) {
    size_t length = run(chars, count, 0, KELP_CHAR_LETTER);
    return length > 0 ? length : is_class(chars[0], KELP_CHAR_NUMBER);
}

static size_t others(const kelp_char *chars, size_t count) {
    return run(chars, count, 0, KELP_CHAR_OTHER);
}

static size_t three_numbers(const kelp_char *chars, size_t count) {
    return run(chars, KELP_MIN(count, 3), 0, KELP_CHAR_NUMBER);
}

static size_t number(const kelp_char *chars, size_t count) {
    return run(chars, KELP_MIN(count, 1), 0, KELP_CHAR_NUMBER);
}

/* ---- words with capitals at the start ---- */
static bool is_capital(kelp_char x) { /* Lu, Lt, Lm, Lo, M */
    kelp_char_part part = kelp_char_part_of(x.c);
    return part == KELP_CHAR_PART_UPPER || part == KELP_CHAR_PART_MARK ||
           (part == KELP_CHAR_PART_NONE && is_class(x, KELP_CHAR_LETTER));
}

static bool is_small(kelp_char x) { /* Ll, Lm, Lo, M */
    kelp_char_part part = kelp_char_part_of(x.c);
    return part == KELP_CHAR_PART_LOWER || part == KELP_CHAR_PART_MARK ||
           (part == KELP_CHAR_PART_NONE && is_class(x, KELP_CHAR_LETTER));
}

/* Returns 1 if the first character, which is no letter, may precede a word. */
static size_t lead(const kelp_char *chars) {
    return !is_line_end(chars[0]) && !is_class(chars[0], KELP_CHAR_NUMBER) &&
           !is_class(chars[0], KELP_CHAR_LETTER);
}

/* Matches capitals, and small letters, of which one is needed; letters without case are both. The
 * end of the text also ends the capitals. */
static size_t capitals_then_small(const kelp_char *chars, size_t count) {
    size_t begin = lead(chars), end = begin;
    if (begin == count)
        return 0;
    while (end < count && is_capital(chars[end]))
        end++;
    if (end == count)
        return end;
    if (!is_small(chars[end]))
        return end > begin && is_small(chars[end - 1]) ? end : 0;
    while (end < count && is_small(chars[end]))
        end++;
    return end;
}

/* Matches capitals, of which one is needed, and small letters. */
static size_t capitals_and_small(const kelp_char *chars, size_t count) {
    size_t begin = lead(chars), end = begin;
    while (end < count && is_capital(chars[end]))
        end++;
    if (end == begin)
        return 0;
    while (end < count && is_small(chars[end]))
        end++;
    return end;
}

static size_t with_contraction(const kelp_char *chars, size_t count, size_t length) {
    return length > 0 && length < count
               ? length + contraction_any_case(chars + length, count - length)
               : length;
}

static size_t capitals_then_small_contracted(const kelp_char *chars, size_t count) {
    return with_contraction(chars, count, capitals_then_small(chars, count));
}

static size_t capitals_and_small_contracted(const kelp_char *chars, size_t count) {
    return with_contraction(chars, count, capitals_and_small(chars, count));
}

/* ---- the alternatives ---- */
#define CAPITALS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define LEAD "[^\\r\\n\\p{L}\\p{N}]?"
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"

enum {
    CONTRACTION_ANY_CASE = 5,
    OTHERS_AND_LINE_ENDS = 7,
    LETTERS_AFTER_ANY = 8,
    CONTRACTION_LOWER = 9,
    SPACED_OTHERS = 10,
    SPACED_LETTERS = 11,
    SPACES = 14,
    THREE_NUMBERS = 15,
    TO_LINE_END = 16
};
/* Longer alternatives are in front of those that are parts of them. */
static const struct {
    const char *expression;
    size_t (*match)(const kelp_char *chars, size_t count);
} alternatives[] = {
    {LEAD CAPITALS "*" SMALL "+" CONTRACTIONS "?", capitals_then_small_contracted},
    {LEAD CAPITALS "+" SMALL "*" CONTRACTIONS "?", capitals_and_small_contracted},
    {LEAD CAPITALS "*" SMALL "+", capitals_then_small},
    {LEAD CAPITALS "+" SMALL "*", capitals_and_small},
    {"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])", contraction_any_case},
    [CONTRACTION_ANY_CASE] = {CONTRACTIONS, contraction_any_case},
    {" ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*", spaced_others_and_line_ends},
    [OTHERS_AND_LINE_ENDS] = {" ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*", spaced_others_and_line_ends},
    [LETTERS_AFTER_ANY] = {LEAD "\\p{L}+", letters_after_any},
    [CONTRACTION_LOWER] = {"'s|'t|'re|'ve|'m|'ll|'d", contraction_lower},
    [SPACED_OTHERS] = {" ?[^\\s\\p{L}\\p{N}]+", spaced_others},
    [SPACED_LETTERS] = {" ?\\p{L}+| ?\\p{N}+", spaced_letters_or_numbers},
    {"[\\p{L}]+|[\\p{N}]", letters_or_number},
    {"[^\\s\\p{L}\\p{N}]+", others},
    [SPACES] = {"\\s+(?!\\S)|\\s+", spaces},
    [THREE_NUMBERS] = {"\\p{N}{1,3}", three_numbers},
    [TO_LINE_END] = {"\\s*[\\r\\n]+", spaces_to_line_end},
    {"\\p{N}", number},
};
_Static_assert(KELP_COUNT(alternatives) <= KELP_PRETOKEN_RULES, "each alternative occurs once");

kelp_pretokens kelp_pretokens_gpt2(void) {
    return (kelp_pretokens){{CONTRACTION_LOWER, SPACED_LETTERS, SPACED_OTHERS, SPACES}, 4};
}

kelp_pretokens kelp_pretokens_llama(void) {
    return (kelp_pretokens){{CONTRACTION_ANY_CASE, LETTERS_AFTER_ANY, THREE_NUMBERS,
                             OTHERS_AND_LINE_ENDS, TO_LINE_END, SPACES},
                            6};
}

/* ---- reading ---- */
/* The part of an expression that is not read yet. */
typedef struct rest {
    char *data;
    size_t length;
} rest;

/* Finds an alternative between `|` or the ends, and removes it. */
static bool remove_alternative(rest *r, const char *text) {
    size_t length = strlen(text);
    const char *found = length <= r->length ? memmem(r->data, r->length, text, length) : NULL;
    if (found == NULL)
        return false;
    size_t begin = (size_t)(found - r->data), end = begin + length;
    if ((begin > 0 && r->data[begin - 1] != '|') || (end < r->length && r->data[end] != '|'))
        return false;
    if (begin > 0)
        begin--;
    else if (end < r->length)
        end++;
    memmove(r->data + begin, r->data + end, r->length - end);
    r->length -= end - begin;
    return true;
}

/* Reads into the order of the places in the expression. */
static kelp_status *read_alternatives(kelp_pretokens *out, kelp_str expression, rest r) {
    size_t places[KELP_PRETOKEN_RULES];
    out->count = 0;
    for (size_t i = 0; i < KELP_COUNT(alternatives) && r.length > 0; i++) {
        const char *text = alternatives[i].expression;
        if (!remove_alternative(&r, text))
            continue;
        const char *found = memmem(expression.data, expression.length, text, strlen(text));
        KELP_ASSERT(found != NULL);
        size_t place = (size_t)(found - expression.data), to = out->count++;
        for (; to > 0 && places[to - 1] > place; to--) {
            places[to] = places[to - 1];
            out->rules[to] = out->rules[to - 1];
        }
        places[to] = place;
        out->rules[to] = (uint8_t)i;
    }
    if (r.length > 0 || out->count == 0)
        return KELP_ERROR(
            KELP_UNIMPLEMENTED,
            "the expression '%.*s' is unsupported: '%.*s' is not an alternative that Kelp knows",
            KELP_STR_ARG(expression), (int)KELP_MIN(r.length, 1000), r.data);
    return NULL;
}

kelp_status *kelp_pretokens_init(kelp_pretokens *out, kelp_allocator allocator,
                                 kelp_str expression) {
    rest r = {NULL, expression.length};
    *out = (kelp_pretokens){0};
    KELP_TRY(kelp_alloc(allocator, expression.length + 1, (void **)&r.data));
    memcpy(r.data, expression.data, expression.length);
    kelp_status *status = read_alternatives(out, expression, r);
    kelp_free(allocator, r.data, expression.length + 1);
    return status;
}

size_t kelp_pretoken_next(const kelp_pretokens *pretokens, const kelp_char *chars, size_t count,
                          size_t *out_skipped) {
    for (size_t at = 0; at < count; at++)
        for (size_t i = 0; i < pretokens->count; i++) {
            size_t length = alternatives[pretokens->rules[i]].match(chars + at, count - at);
            if (length > 0) {
                *out_skipped = at;
                return length;
            }
        }
    *out_skipped = count;
    return 0;
}
