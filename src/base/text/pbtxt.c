/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the protobuf text format into a tree. Nesting is a list of open messages, not recursion.
 */
#include "base/text/pbtxt.h"

#include "base/assert.h"

#include <math.h>
#include <stdio.h>

#define DEPTH_MAX 100

typedef struct parser {
    kelp_arena *arena;
    const char *file;
    const char *at, *end;
    uint32_t line, column;
} parser;

typedef struct open_message {
    kelp_pbtxt *message;
    kelp_pbtxt *last;
    char closing;
    kelp_pbtxt *list; /* for an item of a list: the first item, which has the field's name */
} open_message;

static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static kelp_status *fail(const parser *p, const char *expected) {
    if (p->at == p->end)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s:%u:%u: expected %s, found the end of the file",
                          p->file, p->line, p->column, expected);
    unsigned char c = (unsigned char)*p->at;
    if (c < 0x20 || c >= 0x7f)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s:%u:%u: expected %s, found byte 0x%02x",
                          p->file, p->line, p->column, expected, c);
    int length = 1; /* shows a whole word */
    while (is_name_char((char)c) && length < 64 && length < p->end - p->at &&
           is_name_char(p->at[length]))
        length++;
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s:%u:%u: expected %s, found '%.*s'", p->file,
                      p->line, p->column, expected, length, p->at);
}

static void advance(parser *p) {
    KELP_ASSERT(p->at < p->end);
    if (*p->at == '\n') {
        p->line++;
        p->column = 0;
    }
    p->column++;
    p->at++;
}

static void skip_blanks(parser *p) {
    while (p->at < p->end) {
        char c = *p->at;
        if (c == '#') {
            while (p->at < p->end && *p->at != '\n')
                advance(p);
        } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f') {
            advance(p);
        } else {
            return;
        }
    }
}

static bool peek(const parser *p, char c) {
    return p->at < p->end && *p->at == c;
}

static bool take(parser *p, char c) {
    if (!peek(p, c))
        return false;
    advance(p);
    skip_blanks(p);
    return true;
}

/* ---- names ---- */
static kelp_status *read_name(parser *p, kelp_str *out) {
    const char *begin = p->at;
    if (peek(p, '[')) { /* an extension, kept with its brackets */
        while (p->at < p->end && *p->at != ']' && *p->at != '\n')
            advance(p);
        if (!peek(p, ']'))
            return fail(p, "']' after an extension's name");
        advance(p);
    } else {
        if (p->at == p->end || !is_name_char(*begin) || (*begin >= '0' && *begin <= '9'))
            return fail(p, "a field's name");
        while (p->at < p->end && is_name_char(*p->at))
            advance(p);
    }
    *out = (kelp_str){begin, (size_t)(p->at - begin)};
    skip_blanks(p);
    return NULL;
}

/* ---- strings ---- */
static int digit_value(char c, int base) {
    int value = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : 99;
    return value < base ? value : -1;
}

static uint32_t read_digits(parser *p, int base, int max, int *out_count) {
    uint32_t value = 0;
    for (*out_count = 0; *out_count < max && p->at < p->end; (*out_count)++) {
        int digit = digit_value(*p->at, base);
        if (digit < 0)
            break;
        value = value * (uint32_t)base + (uint32_t)digit;
        advance(p);
    }
    return value;
}

static char *put_utf8(char *to, uint32_t code) {
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t leads[] = {0, 0xc0, 0xe0, 0xf0};
    *to++ = (char)(leads[more] | code >> (6 * more));
    while (more-- > 0)
        *to++ = (char)(0x80 | (code >> (6 * more) & 0x3f));
    return to;
}

/* Reads the low surrogate after an escaped high one and combines both to a code point. */
static kelp_status *read_low_surrogate(parser *p, uint32_t *inout_value) {
    int count = 0;
    uint32_t low = 0;
    if (*inout_value < 0xdc00 && p->end - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u') {
        advance(p);
        advance(p);
        low = read_digits(p, 16, 4, &count);
    }
    if (count != 4 || low < 0xdc00 || low > 0xdfff)
        return fail(p, "both halves of a surrogate pair");
    *inout_value = 0x10000 + ((*inout_value - 0xd800) << 10) + (low - 0xdc00);
    return NULL;
}

/* Reads an escape after the backslash. */
static kelp_status *read_escape(parser *p, char **to) {
    static const char letters[] = "abfnrtv?\\'\"", values[] = "\a\b\f\n\r\t\v?\\'\"";
    if (p->at == p->end)
        return fail(p, "an escape");
    char c = *p->at;
    const char *found = c != '\0' ? strchr(letters, c) : NULL;
    int count = 0;
    if (found != NULL) {
        *(*to)++ = values[found - letters];
        advance(p);
        return NULL;
    }
    if (digit_value(c, 8) >= 0) {
        *(*to)++ = (char)read_digits(p, 8, 3, &count);
        return NULL;
    }
    advance(p);
    int max = c == 'x' || c == 'X' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint32_t value = read_digits(p, 16, max, &count);
    if (max == 0 || count == 0 || (max > 2 && (count != max || value > 0x10ffff)))
        return fail(p, "an escape that the text format knows");
    if (max > 2 && value >= 0xd800 && value < 0xe000)
        KELP_TRY(read_low_surrogate(p, &value));
    if (max == 2)
        *(*to)++ = (char)value;
    else
        *to = put_utf8(*to, value);
    return NULL;
}

/* Returns an upper bound of the string's length: the bytes between the quotes of all adjacent
 * literals. No escape is shorter than its value. */
static size_t measure_string(parser ahead) {
    size_t length = 0;
    while (peek(&ahead, '"') || peek(&ahead, '\'')) {
        char quote = *ahead.at;
        advance(&ahead);
        for (; ahead.at < ahead.end && *ahead.at != quote; length++) {
            if (*ahead.at == '\\' && ahead.end - ahead.at > 1) {
                advance(&ahead);
                length++;
            }
            if (*ahead.at == '\n')
                return length;
            advance(&ahead);
        }
        if (ahead.at == ahead.end)
            return length;
        advance(&ahead);
        skip_blanks(&ahead);
    }
    return length;
}

/* Reads a string; adjacent literals are concatenated. */
static kelp_status *read_string(parser *p, kelp_str *out) {
    size_t longest = measure_string(*p);
    char *data = kelp_arena_alloc(p->arena, longest + 1, 1), *to = data;
    if (data == NULL)
        return kelp_status_oom();
    while (peek(p, '"') || peek(p, '\'')) {
        char quote = *p->at;
        advance(p);
        while (p->at < p->end && *p->at != quote) {
            if (*p->at == '\n')
                return fail(p, "the closing quote of a string on its line");
            if (*p->at == '\\') {
                advance(p);
                KELP_TRY(read_escape(p, &to));
            } else {
                *to++ = *p->at;
                advance(p);
            }
        }
        if (p->at == p->end)
            return fail(p, "the closing quote of a string");
        advance(p);
        skip_blanks(p);
    }
    KELP_ASSERT((size_t)(to - data) <= longest);
    *out = (kelp_str){data, (size_t)(to - data)};
    return NULL;
}

/* ---- scalars ---- */
static kelp_status *read_scalar(parser *p, kelp_str *out) {
    bool negative = peek(p, '-');
    if (negative) {
        advance(p);
        skip_blanks(p);
    }
    const char *begin = p->at;
    while (p->at < p->end && (is_name_char(*p->at) || *p->at == '.' ||
                              ((*p->at == '+' || *p->at == '-') && p->at > begin &&
                               (begin[0] < 'A') && (p->at[-1] == 'e' || p->at[-1] == 'E'))))
        advance(p);
    size_t length = (size_t)(p->at - begin);
    if (length == 0)
        return fail(p, "a value");
    if (negative) {
        char *text = kelp_arena_alloc(p->arena, length + 1, 1);
        if (text == NULL)
            return kelp_status_oom();
        text[0] = '-';
        memcpy(text + 1, begin, length);
        *out = (kelp_str){text, length + 1};
    } else {
        *out = (kelp_str){begin, length};
    }
    skip_blanks(p);
    return NULL;
}

/* ---- structure ---- */
static kelp_status *add_field(parser *p, open_message *into, kelp_str name, uint32_t line,
                              uint32_t column, kelp_pbtxt **out) {
    kelp_pbtxt *field = KELP_ARENA_NEW(p->arena, kelp_pbtxt);
    if (field == NULL)
        return kelp_status_oom();
    field->name = name;
    field->line = line;
    field->column = column;
    field->value_line = p->line;
    field->value_column = p->column;
    if (into->last != NULL)
        into->last->next = field;
    else
        into->message->child = field;
    into->last = field;
    *out = field;
    return NULL;
}

/* Reads one value; a message is only opened. */
static kelp_status *read_value(parser *p, open_message *stack, size_t *depth, kelp_pbtxt *field,
                               kelp_pbtxt *list) {
    if (peek(p, '{') || peek(p, '<')) {
        field->type = KELP_PBTXT_MESSAGE;
        if (*depth > DEPTH_MAX) /* counts the root */
            return fail(p, "messages nested at most 100 deep");
        stack[*depth] = (open_message){field, NULL, peek(p, '{') ? '}' : '>', list};
        (*depth)++;
        advance(p);
        skip_blanks(p);
        return NULL;
    }
    if (peek(p, '"') || peek(p, '\'')) {
        field->type = KELP_PBTXT_STRING;
        return read_string(p, &field->text);
    }
    field->type = KELP_PBTXT_SCALAR;
    return read_scalar(p, &field->text);
}

/* Reads further items of a list whose first field is `first`; stops after ']' or at a message that
 * it opened. */
static kelp_status *read_items(parser *p, open_message *stack, size_t *depth, kelp_pbtxt *first,
                               bool after_item) {
    open_message *into = &stack[*depth - 1];
    size_t own = *depth;
    for (;;) {
        if (after_item) {
            if (take(p, ']'))
                return NULL;
            if (!take(p, ','))
                return fail(p, "',' or ']' in a list");
        }
        kelp_pbtxt *field = NULL;
        KELP_TRY(add_field(p, into, first->name, first->line, first->column, &field));
        KELP_TRY(read_value(p, stack, depth, field, first));
        if (*depth > own)
            return NULL;
        after_item = true;
    }
}

static kelp_status *read_field(parser *p, open_message *stack, size_t *depth) {
    uint32_t line = p->line, column = p->column;
    open_message *into = &stack[*depth - 1];
    kelp_str name = {0};
    kelp_pbtxt *field = NULL;
    KELP_TRY(read_name(p, &name));
    bool colon = take(p, ':');
    if (!colon && !peek(p, '{') && !peek(p, '<') && !peek(p, '['))
        return fail(p, "':' or '{' after a field's name");
    if (peek(p, '[')) {
        kelp_pbtxt head = {.name = name, .line = line, .column = column};
        advance(p);
        skip_blanks(p);
        if (take(p, ']'))
            return NULL;
        if (!colon && !peek(p, '{') && !peek(p, '<')) /* only messages need no colon */
            return fail(p, "'{' or ']' in a list without ':'");
        kelp_pbtxt *kept = KELP_ARENA_NEW(p->arena, kelp_pbtxt);
        if (kept == NULL)
            return kelp_status_oom();
        *kept = head;
        return read_items(p, stack, depth, kept, false);
    }
    KELP_TRY(add_field(p, into, name, line, column, &field));
    return read_value(p, stack, depth, field, NULL);
}

static kelp_status *parse(parser *p, kelp_pbtxt *root) {
    open_message stack[DEPTH_MAX + 1] = {{root, NULL, '\0', NULL}};
    size_t depth = 1;
    skip_blanks(p);
    for (;;) {
        KELP_ASSERT(depth >= 1 && depth <= DEPTH_MAX + 1);
        open_message *top = &stack[depth - 1];
        size_t before = depth;
        if (p->at == p->end && depth == 1)
            return NULL;
        if (depth > 1 && peek(p, top->closing)) {
            kelp_pbtxt *list = top->list;
            advance(p);
            skip_blanks(p);
            before = --depth;
            if (list != NULL)
                KELP_TRY(read_items(p, stack, &depth, list, true));
        } else if (p->at == p->end) {
            return fail(p, top->closing == '}' ? "'}'" : "'>'");
        } else {
            KELP_TRY(read_field(p, stack, &depth));
        }
        if (depth == before && !take(p, ',')) /* a field has ended */
            (void)take(p, ';');
    }
}

kelp_status *kelp_pbtxt_parse(kelp_arena *arena, const char *file, const char *text, size_t length,
                              kelp_pbtxt **out_root) {
    parser p = {arena, file, text, length > 0 ? text + length : text, 1, 1};
    kelp_pbtxt *root = KELP_ARENA_NEW(arena, kelp_pbtxt);
    if (root == NULL)
        return kelp_status_oom();
    root->type = KELP_PBTXT_MESSAGE;
    *out_root = root;
    return parse(&p, root);
}

/* ---- scalars, typed ---- */
static kelp_status *scalar_error(const char *file, const kelp_pbtxt *field, const char *expected) {
    if (field->type == KELP_PBTXT_MESSAGE)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT, "%s:%u:%u: field '%.*s': expected %s, found a message", file,
            field->value_line, field->value_column, KELP_STR_ARG(field->name), expected);
    const char *quote = field->type == KELP_PBTXT_STRING ? "\"" : "'";
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s:%u:%u: field '%.*s': expected %s, found %s%.*s%s",
                      file, field->value_line, field->value_column, KELP_STR_ARG(field->name),
                      expected, quote, KELP_STR_ARG(field->text), quote);
}

/* Reads a decimal, hexadecimal (0x) or octal (0) magnitude. */
static bool read_magnitude(kelp_str text, uint64_t *out) {
    int base = 10;
    if (text.length > 2 && text.data[0] == '0' && (text.data[1] == 'x' || text.data[1] == 'X')) {
        base = 16;
        text = (kelp_str){text.data + 2, text.length - 2};
    } else if (text.length > 1 && text.data[0] == '0') {
        base = 8;
    }
    *out = 0;
    for (size_t i = 0; i < text.length; i++) {
        int digit = digit_value(text.data[i], base);
        if (digit < 0 || __builtin_mul_overflow(*out, (uint64_t)base, out) ||
            __builtin_add_overflow(*out, (uint64_t)digit, out))
            return false;
    }
    return text.length > 0;
}

kelp_status *kelp_pbtxt_i64(const char *file, const kelp_pbtxt *field, int64_t min, int64_t max,
                            int64_t *out) {
    bool negative = field->text.length > 0 && field->text.data[0] == '-';
    kelp_str digits = field->text;
    if (negative)
        digits = (kelp_str){digits.data + 1, digits.length - 1};
    uint64_t magnitude = 0;
    bool is_number = field->type == KELP_PBTXT_SCALAR && read_magnitude(digits, &magnitude);
    bool fits = is_number && magnitude <= (uint64_t)INT64_MAX + negative;
    int64_t value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    if (!fits || value < min || value > max) {
        char expected[80];
        snprintf(expected, sizeof expected, "a whole number from %lld to %lld", (long long)min,
                 (long long)max);
        return scalar_error(file, field, expected);
    }
    *out = value;
    return NULL;
}

kelp_status *kelp_pbtxt_u64(const char *file, const kelp_pbtxt *field, uint64_t max,
                            uint64_t *out) {
    uint64_t value = 0;
    if (field->type != KELP_PBTXT_SCALAR || !read_magnitude(field->text, &value) || value > max) {
        char expected[80];
        snprintf(expected, sizeof expected, "a whole number from 0 to %llu",
                 (unsigned long long)max);
        return scalar_error(file, field, expected);
    }
    *out = value;
    return NULL;
}

kelp_status *kelp_pbtxt_f64(const char *file, const kelp_pbtxt *field, double *out) {
    if (field->type != KELP_PBTXT_SCALAR || field->text.length == 0)
        return scalar_error(file, field, "a number");
    kelp_str text = field->text;
    bool negative = text.data[0] == '-';
    if (negative)
        text = (kelp_str){text.data + 1, text.length - 1};
    bool is_hex = text.length > 1 && text.data[0] == '0' && (text.data[1] | 32) == 'x';
    uint64_t magnitude;
    if (kelp_str_equal_nocase(text, KELP_STR("inf")) ||
        kelp_str_equal_nocase(text, KELP_STR("infinity"))) {
        *out = (double)INFINITY;
    } else if (kelp_str_equal_nocase(text, KELP_STR("nan"))) {
        *out = (double)NAN;
    } else if (is_hex && read_magnitude(text, &magnitude)) {
        *out = (double)magnitude;
    } else {
        if (!is_hex && text.length > 1 && (text.data[text.length - 1] | 32) == 'f')
            text.length--; /* "1.5f" */
        bool begins =
            text.length > 0 && (text.data[0] == '.' || digit_value(text.data[0], 10) >= 0);
        if (!begins || !kelp_parse_f64(text, out))
            return scalar_error(file, field, "a number");
    }
    if (negative)
        *out = -*out;
    return NULL;
}

kelp_status *kelp_pbtxt_bool(const char *file, const kelp_pbtxt *field, bool *out) {
    static const char *const yes[] = {"true", "True", "t", "1"}, *const no[] = {"false", "False",
                                                                                "f", "0"};
    for (size_t i = 0; field->type == KELP_PBTXT_SCALAR && i < 4; i++)
        if (kelp_str_is(field->text, yes[i]) || kelp_str_is(field->text, no[i])) {
            *out = kelp_str_is(field->text, yes[i]);
            return NULL;
        }
    return scalar_error(file, field, "true or false");
}

kelp_status *kelp_pbtxt_string(const char *file, const kelp_pbtxt *field, kelp_str *out) {
    if (field->type != KELP_PBTXT_STRING)
        return scalar_error(file, field, "a string in quotes");
    *out = field->text;
    return NULL;
}
