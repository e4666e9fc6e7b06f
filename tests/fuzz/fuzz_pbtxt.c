/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the text format: every tree is well-formed, every field can be read as any type, and
 * every error contains the position. */
#include "base/text/pbtxt.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(kelp_status *status) {
    if (status == NULL)
        return;
    const char *message = kelp_status_message(status);
    if (kelp_status_code(status) != KELP_INVALID_ARGUMENT || strncmp(message, "input:", 6) != 0 ||
        message[6] < '1' || message[6] > '9')
        abort();
    kelp_status_free(status);
}

static void read_all(const kelp_pbtxt *field) {
    int64_t i = 1;
    uint64_t u = 1;
    double f;
    bool b;
    kelp_str s;
    check_refusal(kelp_pbtxt_i64("input", field, -7, 7, &i));
    check_refusal(kelp_pbtxt_u64("input", field, 7, &u));
    if (i < -7 || i > 7 || u > 7)
        abort();
    check_refusal(kelp_pbtxt_i64("input", field, INT64_MIN, INT64_MAX, &i));
    check_refusal(kelp_pbtxt_u64("input", field, UINT64_MAX, &u));
    check_refusal(kelp_pbtxt_f64("input", field, &f));
    check_refusal(kelp_pbtxt_bool("input", field, &b));
    check_refusal(kelp_pbtxt_string("input", field, &s));
}

static void walk(const kelp_pbtxt *message, int depth) {
    if (depth > 100 || message->type != KELP_PBTXT_MESSAGE)
        abort();
    for (const kelp_pbtxt *at = message->child; at != NULL; at = at->next) {
        if (at->name.length == 0 || at->line == 0 || at->column == 0 || at->value_line < at->line ||
            (at->type == KELP_PBTXT_SCALAR && at->text.length == 0))
            abort();
        read_all(at);
        if (at->type == KELP_PBTXT_MESSAGE)
            walk(at, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kelp_arena arena;
    kelp_pbtxt *root = NULL;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_status *status = kelp_pbtxt_parse(&arena, "input", (const char *)data, size, &root);
    if (status == NULL)
        walk(root, 0);
    check_refusal(status);
    /* The memory is a node of fixed size for each field, and at most the length of the text. */
    if (arena.used_bytes > 1024 + size * 256)
        abort();
    kelp_arena_deinit(&arena);
    return 0;
}
