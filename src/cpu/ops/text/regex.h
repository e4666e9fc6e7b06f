/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions of operators, with the library PCRE2, which accepts the patterns of RE2. The
 * library is loaded when the first expression is compiled. A kelp_regex is immutable and
 * thread-safe; a kelp_matcher belongs to one thread.
 */
#ifndef KELP_CPU_OPS_TEXT_REGEX_H_
#define KELP_CPU_OPS_TEXT_REGEX_H_

#include "base/dl.h"
#include "base/str.h"
#include "cpu/ops/kernel.h"

typedef struct kelp_pcre2 {
    void *(*compile)(const uint8_t *pattern, size_t length, uint32_t options, int *error,
                     size_t *error_offset, void *context);
    void (*code_free)(void *code);
    void *(*general_context_create)(void *(*alloc)(size_t size_bytes, void *userp),
                                    void (*release)(void *pointer, void *userp), void *userp);
    void *(*compile_context_create)(void *general_context);
    void *(*match_data_create)(const void *code, void *general_context);
    uint32_t (*ovector_count)(void *match_data);
    size_t *(*ovector)(void *match_data);
    int (*match)(const void *code, const uint8_t *subject, size_t length, size_t start,
                 uint32_t options, void *match_data, void *context);
    int (*dfa_match)(const void *code, const uint8_t *subject, size_t length, size_t start,
                     uint32_t options, void *match_data, void *context, int *workspace,
                     size_t workspace_count);
    int (*error_message)(int error, uint8_t *buffer, size_t length);
} kelp_pcre2;

/* How an expression matches. */
typedef enum kelp_regex_kind {
    KELP_REGEX_FIRST,   /* the leftmost match; of several alternatives, the first one */
    KELP_REGEX_LONGEST, /* the leftmost match; of several matches, the longest one */
    KELP_REGEX_FULL,    /* the whole text */
    /* the first match in bytes instead of characters, which need not be valid UTF-8; an empty class
     * is allowed, and matches nothing */
    KELP_REGEX_BYTES,
    KELP_REGEX_BYTES_ANY_CASE /* the same; letters of ASCII match in both cases */
} kelp_regex_kind;

typedef struct kelp_regex {
    kelp_dl library;
    kelp_pcre2 fn;
    void *code;
    kelp_regex_kind kind;
} kelp_regex;

/* Compiles the expression of an attribute. As in RE2, `$` matches only the end of the text. Returns
 * NOT_FOUND, with the name of the Debian package, if the library is missing, and INVALID_ARGUMENT,
 * with the position, for an invalid expression. After a failure, `*out` is zeroed. */
kelp_status *kelp_regex_init(kelp_regex *out, const kelp_node *node, const char *attribute,
                             kelp_str pattern, kelp_regex_kind kind) KELP_MUST_USE;
/* Loads only the library, for kelp_regex_compile_in_run. */
kelp_status *kelp_regex_load(kelp_regex *out, const kelp_node *node) KELP_MUST_USE;
/* Compiles an expression that is an input of the node, into memory of the run, with a library that
 * is loaded. Otherwise like kelp_regex_init; `*out` needs no kelp_regex_deinit. */
kelp_status *kelp_regex_compile_in_run(const kelp_regex *library, const kelp_op_env *env,
                                       const kelp_node *node, const char *input, kelp_str pattern,
                                       kelp_regex_kind kind, kelp_regex *out) KELP_MUST_USE;
/* Accepts a zeroed struct. */
void kelp_regex_deinit(kelp_regex *regex);

/* The state of matches in one run. */
typedef struct kelp_matcher {
    const kelp_regex *regex;
    const kelp_op_env *env;
    void *data;
    int *workspace; /* only for KELP_REGEX_LONGEST */
    size_t workspace_count;
} kelp_matcher;

/* Allocates memory of the run. */
kelp_status *kelp_matcher_init(kelp_matcher *out, const kelp_regex *regex,
                               const kelp_op_env *env) KELP_MUST_USE;
/* Where a match may be. */
typedef enum kelp_match_rule {
    KELP_MATCH_ANYWHERE, /* at or after `start` */
    KELP_MATCH_NONEMPTY, /* at `start`, and not empty */
    KELP_MATCH_WHOLE     /* from `start` to the end of the text */
} kelp_match_rule;

/* Finds the first match under a rule. `text` is valid UTF-8, except for KELP_REGEX_BYTES. Returns
 * RESOURCE_EXHAUSTED if the search exceeds the limits of the library. */
kelp_status *kelp_matcher_search(kelp_matcher *matcher, kelp_str text, size_t start,
                                 kelp_match_rule rule, bool *out_found) KELP_MUST_USE;
/* The same with KELP_MATCH_ANYWHERE. */
kelp_status *kelp_matcher_find(kelp_matcher *matcher, kelp_str text, size_t start,
                               bool *out_found) KELP_MUST_USE;
/* Returns the first and the last + 1 byte of capture group `group` (0: the whole match) of the
 * match that was found; SIZE_MAX for a group without a match. KELP_REGEX_LONGEST has only group 0.
 */
void kelp_matcher_group(const kelp_matcher *matcher, size_t group, size_t *out_begin,
                        size_t *out_end);
/* Returns the number of groups of the expression, group 0 included. */
size_t kelp_matcher_groups(const kelp_matcher *matcher);

#endif
