/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions with PCRE2. Constants and signatures: pcre2.h 10.x. */
#include "cpu/ops/text/regex.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text/utf8.h"
#include "cpu/ops/optional.h"

#define PCRE2_ANCHORED 0x80000000u
#define PCRE2_NO_UTF_CHECK 0x40000000u
#define PCRE2_ENDANCHORED 0x20000000u
#define PCRE2_UTF 0x00080000u
#define PCRE2_DOLLAR_ENDONLY 0x00000010u
#define PCRE2_ALLOW_EMPTY_CLASS 0x00000001u
#define PCRE2_CASELESS 0x00000008u
#define PCRE2_NOTEMPTY 0x00000004u
#define PCRE2_NO_MATCH (-1)
#define PCRE2_DFA_WORKSPACE_SIZE (-43)

#define WORKSPACE_COUNT 1000      /* initial size */
#define WORKSPACE_MAX (1u << 20u) /* 4 MiB */

static kelp_status *load(kelp_regex *r, const kelp_node *node) {
    static const char *const names[] = {"pcre2_compile_8",
                                        "pcre2_code_free_8",
                                        "pcre2_general_context_create_8",
                                        "pcre2_compile_context_create_8",
                                        "pcre2_match_data_create_from_pattern_8",
                                        "pcre2_get_ovector_count_8",
                                        "pcre2_get_ovector_pointer_8",
                                        "pcre2_match_8",
                                        "pcre2_dfa_match_8",
                                        "pcre2_get_error_message_8"};
    void *addresses[KELP_COUNT(names)];
    kelp_status *status = kelp_optional_open(&kelp_lib_pcre2, &r->library);
    if (status != NULL)
        return KELP_ANNOTATE(status, "node '%s' (%s)", kelp_node_name(node),
                             kelp_node_op_type(node));
    for (size_t i = 0; i < KELP_COUNT(names); i++) {
        addresses[i] = kelp_dl_symbol(&r->library, names[i]);
        if (addresses[i] == NULL)
            return KELP_ERROR(KELP_FAILED_PRECONDITION, "the library '%s' lacks the function '%s'",
                              kelp_lib_pcre2.file, names[i]);
    }
    _Static_assert(sizeof(kelp_pcre2) == sizeof addresses, "one function for each name, in order");
    memcpy(&r->fn, addresses, sizeof addresses);
    return NULL;
}

void kelp_regex_deinit(kelp_regex *regex) {
    if (regex->code != NULL)
        regex->fn.code_free(regex->code);
    if (regex->library.handle != NULL)
        kelp_dl_close(&regex->library);
    *regex = (kelp_regex){0};
}

static kelp_status *compile(kelp_regex *r, const kelp_node *node, const char *subject,
                            kelp_str pattern, void *context) {
    static const uint32_t options_of[] = {
        [KELP_REGEX_FIRST] = PCRE2_UTF,
        [KELP_REGEX_LONGEST] = PCRE2_UTF,
        [KELP_REGEX_FULL] = PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED,
        [KELP_REGEX_BYTES] = PCRE2_ALLOW_EMPTY_CLASS,
        [KELP_REGEX_BYTES_ANY_CASE] = PCRE2_ALLOW_EMPTY_CLASS | PCRE2_CASELESS,
    };
    uint32_t options = options_of[r->kind] | PCRE2_DOLLAR_ENDONLY;
    size_t at = 0;
    int error = 0;
    const char *text = pattern.length > 0 ? pattern.data : "";
    r->code = r->fn.compile((const uint8_t *)text, pattern.length, options, &error, &at, context);
    if (r->code != NULL)
        return NULL;
    uint8_t message[200] = "";
    r->fn.error_message(error, message, sizeof message);
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "node '%s' (%s): %s '%.*s' is invalid at byte %zu: %s",
                      kelp_node_name(node), kelp_node_op_type(node), subject, KELP_STR_ARG(pattern),
                      at, (const char *)message);
}

kelp_status *kelp_regex_load(kelp_regex *out, const kelp_node *node) {
    *out = (kelp_regex){0};
    kelp_status *status = load(out, node);
    if (status != NULL)
        kelp_regex_deinit(out);
    return status;
}

kelp_status *kelp_regex_init(kelp_regex *out, const kelp_node *node, const char *attribute,
                             kelp_str pattern, kelp_regex_kind kind) {
    KELP_TRY(kelp_regex_load(out, node));
    out->kind = kind;
    kelp_status *status = compile(out, node, attribute, pattern, NULL);
    if (status != NULL)
        kelp_regex_deinit(out);
    return status;
}

static void *alloc_of_run(size_t size_bytes, void *userp) {
    return kelp_op_env_alloc(userp, size_bytes);
}

static void free_of_run(void *pointer, void *userp) {
    (void)pointer;
    (void)userp;
}

kelp_status *kelp_regex_compile_in_run(const kelp_regex *library, const kelp_op_env *env,
                                       const kelp_node *node, const char *input, kelp_str pattern,
                                       kelp_regex_kind kind, kelp_regex *out) {
    *out = (kelp_regex){.fn = library->fn, .kind = kind};
    void *memory = out->fn.general_context_create(alloc_of_run, free_of_run, (void *)env);
    void *context = memory != NULL ? out->fn.compile_context_create(memory) : NULL;
    if (context == NULL)
        return kelp_status_oom();
    return compile(out, node, input, pattern, context);
}

kelp_status *kelp_matcher_init(kelp_matcher *out, const kelp_regex *regex, const kelp_op_env *env) {
    KELP_ASSERT(regex->code != NULL);
    *out = (kelp_matcher){.regex = regex, .env = env};
    void *memory = regex->fn.general_context_create(alloc_of_run, free_of_run, (void *)env);
    if (memory != NULL)
        out->data = regex->fn.match_data_create(regex->code, memory);
    if (out->data == NULL)
        return kelp_status_oom();
    if (regex->kind == KELP_REGEX_LONGEST) {
        out->workspace_count = WORKSPACE_COUNT;
        out->workspace = kelp_op_env_alloc(env, WORKSPACE_COUNT * sizeof *out->workspace);
        if (out->workspace == NULL)
            return kelp_status_oom();
    }
    return NULL;
}

/* Runs one search; enlarges the workspace as long as it is too small. */
static kelp_status *search(kelp_matcher *m, kelp_str text, size_t start, kelp_match_rule rule,
                           int *out) {
    static const uint32_t options_of[] = {
        [KELP_MATCH_ANYWHERE] = PCRE2_NO_UTF_CHECK,
        [KELP_MATCH_NONEMPTY] = PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED | PCRE2_NOTEMPTY,
        [KELP_MATCH_WHOLE] = PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED | PCRE2_ENDANCHORED,
    };
    const kelp_pcre2 *fn = &m->regex->fn;
    const uint8_t *data = (const uint8_t *)(text.length > 0 ? text.data : "");
    KELP_ASSERT(start <= text.length);
    if (m->regex->kind != KELP_REGEX_LONGEST) {
        *out = fn->match(m->regex->code, data, text.length, start, options_of[rule], m->data, NULL);
        return NULL;
    }
    for (;;) {
        *out = fn->dfa_match(m->regex->code, data, text.length, start, options_of[rule], m->data,
                             NULL, m->workspace, m->workspace_count);
        if (*out != PCRE2_DFA_WORKSPACE_SIZE || m->workspace_count >= WORKSPACE_MAX)
            return NULL;
        size_t count = m->workspace_count * 2;
        m->workspace = kelp_op_env_alloc(m->env, count * sizeof *m->workspace);
        if (m->workspace == NULL)
            return kelp_status_oom();
        m->workspace_count = count;
    }
}

kelp_status *kelp_matcher_find(kelp_matcher *matcher, kelp_str text, size_t start,
                               bool *out_found) {
    return kelp_matcher_search(matcher, text, start, KELP_MATCH_ANYWHERE, out_found);
}

kelp_status *kelp_matcher_search(kelp_matcher *matcher, kelp_str text, size_t start,
                                 kelp_match_rule rule, bool *out_found) {
    int result = 0;
    KELP_TRY(search(matcher, text, start, rule, &result));
    *out_found = result >= 0;
    if (result >= 0 || result == PCRE2_NO_MATCH)
        return NULL;
    uint8_t message[200] = "";
    matcher->regex->fn.error_message(result, message, sizeof message);
    return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "cannot match a text of %zu bytes: %s", text.length,
                      (const char *)message);
}

void kelp_matcher_group(const kelp_matcher *matcher, size_t group, size_t *out_begin,
                        size_t *out_end) {
    const size_t *ends = matcher->regex->fn.ovector(matcher->data);
    KELP_ASSERT(group == 0 || matcher->regex->kind != KELP_REGEX_LONGEST);
    *out_begin = ends[2 * group];
    *out_end = ends[2 * group + 1];
}

size_t kelp_matcher_groups(const kelp_matcher *matcher) {
    return matcher->regex->fn.ovector_count(matcher->data);
}

/* ---- RegexFullMatch ---- */
static void full_match_destroy(void *state, kelp_allocator allocator) {
    kelp_regex *r = state;
    if (r == NULL)
        return;
    kelp_regex_deinit(r);
    kelp_free(allocator, r, sizeof *r);
}

static kelp_status *full_match_create(const kelp_node *node, const kelp_op_env *env,
                                      void **out_state) {
    kelp_str pattern = {0};
    pattern.data = kelp_node_attr_string(node, "pattern", NULL, &pattern.length);
    if (pattern.data == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "node '%s' (RegexFullMatch): attribute 'pattern' is missing",
                          kelp_node_name(node));
    kelp_regex *r = NULL;
    KELP_TRY(KELP_NEW(kelp_op_env_allocator(env), kelp_regex, &r));
    kelp_status *status = kelp_regex_init(r, node, "pattern", pattern, KELP_REGEX_FULL);
    if (status != NULL) {
        full_match_destroy(r, kelp_op_env_allocator(env));
        return status;
    }
    *out_state = r;
    return NULL;
}

static kelp_status *full_match_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (x->dtype != KELP_STRING)
        return kelp_ops_bad_type(args, x->dtype);
    return kelp_ops_set(args, 0, KELP_BOOL, x->rank, x->shape);
}

/* A text that is not valid UTF-8 does not match. */
static kelp_status *full_match_invoke(const void *state, kelp_op_args *args) {
    const kelp_string *x = args->inputs[0]->data;
    uint8_t *y = args->outputs[0]->data;
    int64_t count = kelp_tensor_elements(args->inputs[0]);
    kelp_matcher matcher;
    KELP_TRY(kelp_matcher_init(&matcher, state, args->env));
    for (int64_t i = 0; i < count; i++) {
        kelp_str text = {x[i].data, x[i].length};
        bool found = false;
        if (kelp_utf8_count(text, NULL)) {
            kelp_status *status = kelp_matcher_find(&matcher, text, 0, &found);
            if (status != NULL)
                return KELP_ANNOTATE(status, "node '%s' (RegexFullMatch): element %lld",
                                     kelp_node_name(args->node), (long long)i);
        }
        y[i] = found;
    }
    return NULL;
}

const kelp_op_kernel kelp_op_RegexFullMatch = {.struct_size = sizeof(kelp_op_kernel),
                                               .create = full_match_create,
                                               .destroy = full_match_destroy,
                                               .reshape = full_match_reshape,
                                               .invoke = full_match_invoke};
