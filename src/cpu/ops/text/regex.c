/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RegexFullMatch with the library PCRE2, which accepts the patterns of RE2. As in RE2, `$` matches
 * the end of the text only. Constants and signatures: pcre2.h 10.x.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/dl.h"
#include "cpu/ops/text/text.h"

#define PCRE2_LIBRARY "libpcre2-8.so.0"
#define PCRE2_ANCHORED 0x80000000u
#define PCRE2_ENDANCHORED 0x20000000u
#define PCRE2_UTF 0x00080000u
#define PCRE2_DOLLAR_ENDONLY 0x00000010u
#define PCRE2_NO_MATCH (-1)
#define PCRE2_BAD_UTF_FIRST (-3)
#define PCRE2_BAD_UTF_LAST (-28)

typedef struct pcre2 {
    void *(*compile)(const uint8_t *pattern, size_t length, uint32_t options, int *error,
                     size_t *error_offset, void *context);
    void (*code_free)(void *code);
    void *(*match_data_create)(uint32_t pairs, void *context);
    void (*match_data_free)(void *match_data);
    int (*match)(const void *code, const uint8_t *subject, size_t length, size_t start,
                 uint32_t options, void *match_data, void *context);
    int (*error_message)(int error, uint8_t *buffer, size_t length);
} pcre2;

typedef struct regex {
    kelp_dl library;
    pcre2 fn;
    void *code;
} regex;

static kelp_status *load(regex *r, const kelp_node *node) {
    static const char *const names[] = {
        "pcre2_compile_8",         "pcre2_code_free_8", "pcre2_match_data_create_8",
        "pcre2_match_data_free_8", "pcre2_match_8",     "pcre2_get_error_message_8"};
    void *addresses[KELP_COUNT(names)];
    kelp_status *status = kelp_dl_open(PCRE2_LIBRARY, &r->library);
    if (status != NULL)
        return KELP_ANNOTATE(status,
                             "node '%s' (RegexFullMatch) needs the library '%s', of Debian package "
                             "libpcre2-8-0",
                             kelp_node_name(node), PCRE2_LIBRARY);
    for (size_t i = 0; i < KELP_COUNT(names); i++) {
        addresses[i] = kelp_dl_symbol(&r->library, names[i]);
        if (addresses[i] == NULL)
            return KELP_ERROR(KELP_FAILED_PRECONDITION, "the library '%s' lacks the function '%s'",
                              PCRE2_LIBRARY, names[i]);
    }
    _Static_assert(sizeof(pcre2) == sizeof addresses, "one function for each name, in order");
    memcpy(&r->fn, addresses, sizeof addresses);
    return NULL;
}

static void regex_destroy(void *state, kelp_allocator allocator) {
    regex *r = state;
    if (r == NULL)
        return;
    if (r->code != NULL)
        r->fn.code_free(r->code);
    if (r->library.handle != NULL)
        kelp_dl_close(&r->library);
    kelp_free(allocator, r, sizeof *r);
}

static kelp_status *compile(regex *r, const kelp_node *node) {
    size_t length = 0, at = 0;
    int error = 0;
    const char *pattern = kelp_node_attr_string(node, "pattern", NULL, &length);
    if (pattern == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "node '%s' (RegexFullMatch): attribute 'pattern' is missing",
                          kelp_node_name(node));
    KELP_TRY(load(r, node));
    r->code = r->fn.compile((const uint8_t *)pattern, length,
                            PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_UTF | PCRE2_DOLLAR_ENDONLY,
                            &error, &at, NULL);
    if (r->code != NULL)
        return NULL;
    uint8_t text[200] = "";
    r->fn.error_message(error, text, sizeof text);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "node '%s' (RegexFullMatch): pattern '%s' is invalid at byte %zu: %s",
                      kelp_node_name(node), pattern, at, (const char *)text);
}

static kelp_status *regex_create(const kelp_node *node, const kelp_op_env *env, void **out_state) {
    regex *r = NULL;
    KELP_TRY(KELP_NEW(kelp_op_env_allocator(env), regex, &r));
    kelp_status *status = compile(r, node);
    if (status != NULL) {
        regex_destroy(r, kelp_op_env_allocator(env));
        return status;
    }
    *out_state = r;
    return NULL;
}

static kelp_status *regex_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (x->dtype != KELP_STRING)
        return kelp_ops_bad_type(args, x->dtype);
    return kelp_ops_set(args, 0, KELP_BOOL, x->rank, x->shape);
}

static kelp_status *regex_invoke(const void *state, kelp_op_args *args) {
    const regex *r = state;
    const kelp_string *x = args->inputs[0]->data;
    uint8_t *y = args->outputs[0]->data;
    int64_t count = kelp_tensor_elements(args->inputs[0]);
    KELP_ASSERT(r->code != NULL && args->inputs[0]->dtype == KELP_STRING);
    void *match = r->fn.match_data_create(1, NULL);
    if (match == NULL)
        return kelp_status_oom();
    kelp_status *status = NULL;
    for (int64_t i = 0; i < count && status == NULL; i++) {
        const char *text = x[i].length > 0 ? x[i].data : "";
        int result = r->fn.match(r->code, (const uint8_t *)text, x[i].length, 0, 0, match, NULL);
        bool bad_utf8 = result <= PCRE2_BAD_UTF_FIRST && result >= PCRE2_BAD_UTF_LAST;
        y[i] = result >= 0;
        if (result < 0 && result != PCRE2_NO_MATCH && !bad_utf8) {
            uint8_t message[200] = "";
            r->fn.error_message(result, message, sizeof message);
            status =
                KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "node '%s' (RegexFullMatch): element %lld: %s",
                           kelp_node_name(args->node), (long long)i, (const char *)message);
        }
    }
    r->fn.match_data_free(match);
    return status;
}

const kelp_op_kernel kelp_op_RegexFullMatch = {.struct_size = sizeof(kelp_op_kernel),
                                               .create = regex_create,
                                               .destroy = regex_destroy,
                                               .reshape = regex_reshape,
                                               .invoke = regex_invoke};
