/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ai.onnx.contrib StringECMARegexReplace, and regular expressions of ECMAScript. Source: ECMA-262,
 * 3rd edition, 15.10; where it leaves a choice, libstdc++, which onnxruntime-extensions is built
 * with.
 */
#include "cpu/ops/tokenize/ecma.h"

#include "base/str.h"

/* The state of a translation. */
typedef struct translator {
    const kelp_op_args *args;
    const char *subject;
    kelp_str from;
    size_t at;
    bool in_class;
    kelp_buf out;
} translator;

static kelp_status *malformed(const translator *t, const char *why) {
    return KELP_TEXT_ERROR(t->args->node, "%s '%.*s' is invalid at byte %zu: %s", t->subject,
                           KELP_STR_ARG(t->from), t->at, why);
}

/* Returns the next byte, or NUL at the end. */
static char peek(const translator *t, size_t ahead) {
    return t->at + ahead < t->from.length ? t->from.data[t->at + ahead] : '\0';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static void append_literal(translator *t, char c) {
    static const char digits[] = "0123456789abcdef";
    char text[4] = {'\\', 'x', digits[(uint8_t)c >> 4], digits[(uint8_t)c & 15]};
    kelp_buf_append(&t->out, text, sizeof text);
}

/* Appends a byte of the pattern. Those of other characters remain, so that messages that quote the
 * result are UTF-8. */
static void append_quoted(translator *t, char c) {
    if ((uint8_t)c >= 0x80)
        kelp_buf_append_char(&t->out, c);
    else
        append_literal(t, c);
}

/* Translates \xHH or \uHHHH, of which the low byte counts; t->at is at the first digit. */
static kelp_status *translate_hex(translator *t, size_t count) {
    uint32_t value = 0;
    for (size_t i = 0; i < count; i++, t->at++) {
        int digit = kelp_hex_value(peek(t, 0));
        if (digit < 0)
            return malformed(t, "expected a hexadecimal digit");
        value = value << 4 | (uint32_t)digit;
    }
    append_literal(t, (char)value);
    return NULL;
}

/* Translates an escape; t->at is after the backslash. */
static kelp_status *translate_escape(translator *t) {
    char c = peek(t, 0);
    if (t->at == t->from.length)
        return malformed(t, "expected a character after \\");
    t->at++;
    if (c == '0' || c == 'v') {
        append_literal(t, c == '0' ? '\0' : '\v');
    } else if (is_digit(c)) {
        if (t->in_class)
            return malformed(t, "a back reference in a class");
        kelp_buf_append(&t->out, "\\g{", 3);
        kelp_buf_append_char(&t->out, c);
        for (; is_digit(peek(t, 0)); t->at++)
            kelp_buf_append_char(&t->out, peek(t, 0));
        kelp_buf_append_char(&t->out, '}');
    } else if (c == 'x' || c == 'u') {
        return translate_hex(t, c == 'x' ? 2 : 4);
    } else if (c == 'c') { /* as in libstdc++: the character itself */
        if (t->at == t->from.length)
            return malformed(t, "expected a letter after \\c");
        append_quoted(t, t->from.data[t->at++]);
    } else if (memchr("bBdDsSwWfnrt", c, 12) != NULL) {
        kelp_buf_append(&t->out, (char[]){'\\', c}, 2);
    } else {
        append_quoted(t, c);
    }
    return NULL;
}

/* Translates *, +, ? or {…}, with a ? after it. */
static kelp_status *translate_quantifier(translator *t) {
    if (peek(t, 0) == '{') {
        if (!is_digit(peek(t, 1)))
            return malformed(t, "expected a number after {");
        for (; t->at < t->from.length && peek(t, 0) != '}'; t->at++)
            kelp_buf_append_char(&t->out, peek(t, 0));
        if (t->at == t->from.length)
            return malformed(t, "expected }");
    }
    kelp_buf_append_char(&t->out, t->from.data[t->at++]);
    if (peek(t, 0) == '?')
        kelp_buf_append_char(&t->out, t->from.data[t->at++]);
    if (t->at < t->from.length && memchr("*+?{", peek(t, 0), 4) != NULL)
        return malformed(t, "a quantifier after a quantifier");
    return NULL;
}

static kelp_status *translate_next(translator *t) {
    char c = peek(t, 0);
    if (c == '\\') {
        t->at++;
        return translate_escape(t);
    }
    if (!t->in_class && memchr("*+?{", c, 4) != NULL)
        return translate_quantifier(t);
    if (c == '(' && !t->in_class) {
        bool marked = peek(t, 1) == '?';
        if (peek(t, 1) == '*' || (marked && memchr(":=!", peek(t, 2), 3) == NULL))
            return malformed(t, "expected (?:, (?= or (?!");
        kelp_buf_append(&t->out, t->from.data + t->at, marked ? 3 : 1);
        t->at += marked ? 3 : 1;
        return NULL;
    }
    t->at++;
    if (c == '.' && !t->in_class) {
        kelp_buf_append(&t->out, "[^\\n\\r]", 7);
    } else if (c == '[' && t->in_class) {
        bool named = memchr(":.=", peek(t, 0), 3) != NULL;
        kelp_buf_append(&t->out, named ? "[" : "\\[", named ? 1 : 2);
    } else {
        if (c == '[') {
            t->in_class = true;
            kelp_buf_append_char(&t->out, c);
            if (peek(t, 0) != '^')
                return NULL;
            c = t->from.data[t->at++];
        } else if (c == ']') {
            t->in_class = false;
        }
        kelp_buf_append_char(&t->out, c);
    }
    return NULL;
}

kelp_status *kelp_ecma_compile(const kelp_regex *library, const kelp_op_args *args,
                               const char *subject, kelp_str pattern, bool ignore_case,
                               kelp_regex *out) {
    translator t = {.args = args, .subject = subject, .from = pattern};
    kelp_buf_init(&t.out, kelp_run_allocator(args->env));
    while (t.at < pattern.length)
        KELP_TRY(translate_next(&t));
    KELP_TRY(kelp_buf_status(&t.out));
    return kelp_regex_compile_in_run(
        library, args->env, args->node, subject, (kelp_str){t.out.data, t.out.length},
        ignore_case ? KELP_REGEX_BYTES_ANY_CASE : KELP_REGEX_BYTES, out);
}

kelp_status *kelp_ecma_next(kelp_ecma_iterator *iterator, bool *out_found) {
    kelp_ecma_iterator *i = iterator;
    size_t start = i->end;
    *out_found = false;
    if (i->begin == i->end) {
        if (i->end == i->text.length)
            return NULL;
        KELP_TRY(kelp_matcher_search(i->matcher, i->text, start++, KELP_MATCH_NONEMPTY, out_found));
    }
    if (!*out_found)
        KELP_TRY(kelp_matcher_search(i->matcher, i->text, start, KELP_MATCH_ANYWHERE, out_found));
    if (*out_found)
        kelp_matcher_group(i->matcher, 0, &i->begin, &i->end);
    return NULL;
}

/* ---- StringECMARegexReplace ---- */
/* Appends a replacement: $1 … $99, $&, $`, $' and $$. `last_end` is the end of the match before. */
static void append_replacement(const kelp_ecma_iterator *i, size_t last_end, kelp_str replacement,
                               kelp_buf *out) {
    const char *text = i->text.data;
    for (size_t at = 0; at < replacement.length; at++) {
        char c = replacement.data[at], next = '\0';
        if (at + 1 < replacement.length)
            next = replacement.data[at + 1];
        if (c != '$' || (!is_digit(next) && (next == '\0' || strchr("$&`'", next) == NULL))) {
            kelp_buf_append_char(out, c);
            continue;
        }
        at++;
        if (next == '$')
            kelp_buf_append_char(out, '$');
        else if (next == '&')
            kelp_buf_append(out, text + i->begin, i->end - i->begin);
        else if (next == '`')
            kelp_buf_append(out, text + last_end, i->begin - last_end);
        else if (next == '\'')
            kelp_buf_append(out, text + i->end, i->text.length - i->end);
        if (!is_digit(next))
            continue;
        size_t group = (size_t)(next - '0'), begin = SIZE_MAX, end = SIZE_MAX;
        if (at + 1 < replacement.length && is_digit(replacement.data[at + 1]))
            group = group * 10 + (size_t)(replacement.data[++at] - '0');
        if (group < kelp_matcher_groups(i->matcher))
            kelp_matcher_group(i->matcher, group, &begin, &end);
        if (begin < end && end <= i->text.length)
            kelp_buf_append(out, text + begin, end - begin);
    }
}

static kelp_status *replace(kelp_matcher *matcher, kelp_str text, kelp_str replacement, bool all,
                            kelp_buf *out) {
    kelp_ecma_iterator i = {matcher, text, SIZE_MAX, 0};
    size_t last_end = 0;
    bool found = true;
    while (found) {
        KELP_TRY(kelp_ecma_next(&i, &found));
        if (!found)
            break;
        kelp_buf_append(out, text.data + last_end, i.begin - last_end);
        append_replacement(&i, last_end, replacement, out);
        last_end = i.end;
        found = all;
    }
    kelp_buf_append(out, text.data + last_end, text.length - last_end);
    return kelp_buf_status(out);
}

static kelp_status *replace_read(void *state, const kelp_node *node, kelp_allocator allocator) {
    (void)allocator;
    return kelp_regex_load(state, node);
}

static void replace_deinit(void *state) {
    kelp_regex_deinit(state);
}
KELP_STATE(replace, kelp_regex, replace_read, replace_deinit)

static kelp_status *replace_invoke(const void *state, kelp_op_args *args) {
    const kelp_string *x = args->inputs[0]->data;
    kelp_string *y = args->outputs[0]->data;
    kelp_str pattern = kelp_text_of(args->inputs[1]->data);
    kelp_str replacement = kelp_text_of(args->inputs[2]->data);
    bool all = kelp_flag_attr(args->node, "global_replace", true);
    kelp_regex regex;
    kelp_matcher matcher;
    if (pattern.length == 0)
        return KELP_TEXT_ERROR(args->node, "input %d, the pattern, is empty", 1);
    KELP_TRY(kelp_ecma_compile(state, args, "pattern", pattern,
                               kelp_flag_attr(args->node, "ignore_case", false), &regex));
    KELP_TRY(kelp_matcher_init(&matcher, &regex, args->env));
    for (int64_t i = 0; i < kelp_tensor_elements(args->inputs[0]); i++) {
        kelp_buf out;
        kelp_buf_init(&out, kelp_run_allocator(args->env));
        KELP_TRY(replace(&matcher, kelp_text_of(&x[i]), replacement, all, &out));
        y[i] = (kelp_string){out.length > 0 ? out.data : "", out.length};
    }
    return NULL;
}
KELP_STATE_KERNEL(StringECMARegexReplace, replace, 0, kelp_replace_reshape, replace_invoke);
