/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ai.onnx.contrib StringRegexReplace. The replacement contains \0 to \9 for groups and \\ for a
 * backslash. Source: onnxruntime-extensions, docs/custom_ops.md; RE2.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/text/utf8.h"
#include "cpu/ops/text/regex.h"
#include "cpu/ops/tokenize/tokenize.h"

static kelp_status *replace_read(void *state, const kelp_node *node, kelp_allocator allocator) {
    (void)allocator;
    return kelp_regex_load(state, node);
}

static void replace_deinit(void *state) {
    kelp_regex_deinit(state);
}
KELP_STATE(replace, kelp_regex, replace_read, replace_deinit)

/* Checks the replacement. As in RE2, one with a group that the expression lacks replaces nothing:
 * `*out_usable` is false. */
static kelp_status *check_replacement(const kelp_op_args *args, kelp_str text, size_t groups,
                                      bool *out_usable) {
    *out_usable = true;
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] != '\\')
            continue;
        char c = ++i < text.length ? text.data[i] : '\0';
        if (c != '\\' && (c < '0' || c > '9'))
            return KELP_TEXT_ERROR(args->node,
                                   "input 2 is invalid: expected a digit or \\ after \\, found "
                                   "'%.*s'",
                                   KELP_STR_ARG(text));
        if (c != '\\' && (size_t)(c - '0') >= groups)
            *out_usable = false;
    }
    return NULL;
}

static void append_replacement(const kelp_matcher *matcher, kelp_str text, kelp_str replacement,
                               kelp_buf *out) {
    for (size_t i = 0; i < replacement.length; i++) {
        size_t begin, end;
        bool escaped = replacement.data[i] == '\\';
        char c = escaped ? replacement.data[++i] : replacement.data[i];
        if (!escaped || c == '\\') {
            kelp_buf_append_char(out, c);
            continue;
        }
        kelp_matcher_group(matcher, (size_t)(c - '0'), &begin, &end);
        if (begin < end && end <= text.length)
            kelp_buf_append(out, text.data + begin, end - begin);
    }
}

static kelp_status *replace(kelp_matcher *matcher, kelp_str text, kelp_str replacement, bool all,
                            kelp_buf *out) {
    size_t at = 0, last_end = SIZE_MAX;
    while (at <= text.length) {
        size_t begin = 0, end = 0;
        bool found = false;
        KELP_TRY(kelp_matcher_find(matcher, text, at, &found));
        if (!found)
            break;
        kelp_matcher_group(matcher, 0, &begin, &end);
        kelp_buf_append(out, text.data + at, begin - at);
        if (begin == end && begin == last_end) { /* an empty match after a match: skipped */
            uint32_t c;
            size_t size =
                begin < text.length
                    ? kelp_utf8_decode((kelp_str){text.data + begin, text.length - begin}, &c)
                    : 1;
            if (begin < text.length)
                kelp_buf_append(out, text.data + begin, size);
            at = begin + size;
            continue;
        }
        append_replacement(matcher, text, replacement, out);
        at = last_end = end;
        if (!all)
            break;
    }
    if (at < text.length)
        kelp_buf_append(out, text.data + at, text.length - at);
    return kelp_buf_status(out);
}

kelp_status *kelp_replace_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 3));
    KELP_TRY(kelp_text_check(args, 3, KELP_STRING));
    for (int32_t i = 1; i < 3; i++)
        if (kelp_tensor_elements(args->inputs[i]) != 1)
            return kelp_ops_bad_shapes(args, args->inputs[i], NULL, "expected one text");
    return kelp_ops_set_like(args, 0, args->inputs[0]);
}

static kelp_status *replace_invoke(const void *state, kelp_op_args *args) {
    const kelp_string *x = args->inputs[0]->data;
    kelp_string *y = args->outputs[0]->data;
    kelp_str pattern = kelp_text_of(args->inputs[1]->data);
    kelp_str replacement = kelp_text_of(args->inputs[2]->data);
    bool all = kelp_flag_attr(args->node, "global_replace", true), usable = false;
    kelp_regex regex;
    kelp_matcher matcher;
    if (pattern.length == 0)
        return KELP_TEXT_ERROR(args->node, "input %d, the pattern, is empty", 1);
    KELP_TRY(kelp_regex_compile_in_run(state, args->env, args->node, "pattern", pattern,
                                       KELP_REGEX_FIRST, &regex));
    KELP_TRY(kelp_matcher_init(&matcher, &regex, args->env));
    KELP_TRY(check_replacement(args, replacement, kelp_matcher_groups(&matcher), &usable));
    for (int64_t i = 0; i < kelp_tensor_elements(args->inputs[0]); i++) {
        kelp_str text = kelp_text_of(&x[i]);
        kelp_buf out;
        y[i] = (kelp_string){text.data, text.length};
        if (!kelp_utf8_count(text, NULL))
            return KELP_TEXT_ERROR(args->node, "element %lld is not valid UTF-8", (long long)i);
        if (!usable)
            continue;
        kelp_buf_init(&out, kelp_run_allocator(args->env));
        KELP_TRY(replace(&matcher, text, replacement, all, &out));
        y[i] = (kelp_string){out.length > 0 ? out.data : "", out.length};
    }
    return NULL;
}

KELP_STATE_KERNEL(StringRegexReplace, replace, 0, kelp_replace_reshape, replace_invoke);
