/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/common/forward.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/text/utf8.h"

#include <regex.h>

struct kelp_forward {
    kelp_allocator allocator;
    regex_t regex;
};

kelp_status *kelp_forward_create(kelp_allocator allocator, const char *pattern,
                                 kelp_forward **out) {
    char reason[128];
    kelp_forward *forward;
    KELP_TRY(KELP_NEW(allocator, kelp_forward, &forward));
    forward->allocator = allocator;
    const char *expression = pattern;
    int flags = REG_EXTENDED | REG_ICASE | REG_NOSUB;
    if (!strncmp(pattern, "(?i)", 4)) {
        expression += 4;
    } else if (!strncmp(pattern, "(?-i)", 5)) {
        expression += 5;
        flags &= ~REG_ICASE;
    }
    int failure = regcomp(&forward->regex, expression, flags);
    if (failure == 0) {
        *out = forward;
        return NULL;
    }
    (void)regerror(failure, &forward->regex, reason, sizeof reason);
    kelp_free(allocator, forward, sizeof *forward);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "header pattern '%s' is not an extended regular expression: %s", pattern,
                      reason);
}

void kelp_forward_destroy(kelp_forward *forward) {
    if (forward == NULL)
        return;
    regfree(&forward->regex);
    kelp_free(forward->allocator, forward, sizeof *forward);
}

static bool is_reserved(const char *name) {
    static const char *const names[] = {"sequence_id",       "sequence_start", "sequence_end",
                                        "priority",          "timeout",        "headers",
                                        "binary_data_output"};
    for (size_t i = 0; i < KELP_COUNT(names); i++)
        if (!strcmp(name, names[i]))
            return true;
    return !strncmp(name, "triton_", strlen("triton_"));
}

kelp_status *kelp_forward_header(const kelp_forward *forward, kelp_arena *arena, kelp_str name,
                                 kelp_str value, const char **out_name, const char **out_value) {
    *out_name = *out_value = NULL;
    const char *copy = kelp_arena_strndup(arena, name.data, name.length);
    if (copy == NULL)
        return kelp_status_oom();
    if (regexec(&forward->regex, copy, 0, NULL, 0) != 0)
        return NULL;
    if (is_reserved(copy))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "Header '%s' is reserved for Triton usage and cannot be forwarded.",
                          copy);
    if (!kelp_utf8_count(value, NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "header '%s' cannot be forwarded: its value is not valid UTF-8", copy);
    *out_value = kelp_arena_strndup(arena, value.data != NULL ? value.data : "", value.length);
    if (*out_value == NULL)
        return kelp_status_oom();
    *out_name = copy;
    return NULL;
}
