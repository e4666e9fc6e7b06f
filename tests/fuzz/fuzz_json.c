/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes JSON: an accepted text can be written as UTF-8 and read back to the same tree, and an
 * error contains the position. Skipping a text has the same result as reading it. */
#include "base/text/json.h"
#include "base/text/utf8.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The reader limits the depth of the recursion. */
static void write_value(kelp_json_writer *writer, kelp_arena *arena, const kelp_json *value) {
    switch (value->type) {
    case KELP_JSON_NULL:
        kelp_json_put_null(writer);
        return;
    case KELP_JSON_BOOL:
        kelp_json_put_bool(writer, value->boolean);
        return;
    case KELP_JSON_INT:
        kelp_json_put_i64(writer, value->i64);
        return;
    case KELP_JSON_UINT:
        kelp_json_put_u64(writer, value->u64);
        return;
    case KELP_JSON_DOUBLE:
        kelp_json_put_f64(writer, value->f64);
        return;
    case KELP_JSON_STRING:
        kelp_json_put_string(writer, value->string);
        return;
    case KELP_JSON_ARRAY:
        kelp_json_begin_array(writer);
        for (const kelp_json *at = value->child; at != NULL; at = at->next)
            write_value(writer, arena, at);
        kelp_json_end_array(writer);
        return;
    case KELP_JSON_OBJECT:
        kelp_json_begin_object(writer);
        for (const kelp_json *at = value->child; at != NULL; at = at->next) {
            const char *key = kelp_arena_strndup(arena, at->key.data, at->key.length);
            kelp_json_key(writer, key != NULL ? key : "");
            write_value(writer, arena, at);
        }
        kelp_json_end_object(writer);
        return;
    default:
        abort();
    }
}

/* Bytes that are not UTF-8 are replaced when they are written. */
static bool same_text(kelp_str a, kelp_str b) {
    return kelp_str_equal(a, b) || !kelp_utf8_count(a, NULL);
}

/* Keys are written from terminated text, so they are the same up to their first NUL. */
static bool same_key(kelp_str a, kelp_str b) {
    const char *nul = a.length > 0 ? memchr(a.data, '\0', a.length) : NULL;
    if (nul != NULL)
        a.length = (size_t)(nul - a.data);
    return same_text(a, b);
}

static bool same(const kelp_json *a, const kelp_json *b) {
    if (a->type != b->type || a->boolean != b->boolean || a->i64 != b->i64 || a->u64 != b->u64 ||
        !same_text(a->string, b->string) || !same_key(a->key, b->key) || a->count != b->count)
        return false;
    if (a->f64 != b->f64 && !(isnan(a->f64) && isnan(b->f64)))
        return false;
    const kelp_json *x = a->child, *y = b->child;
    for (; x != NULL && y != NULL; x = x->next, y = y->next) {
        if (!same(x, y))
            return false;
    }
    return x == NULL && y == NULL;
}

static bool skips(kelp_arena *arena, const char *text, size_t size) {
    kelp_json_reader reader;
    kelp_json_token token;
    kelp_json_reader_init(&reader, arena, text, size);
    kelp_status *status = kelp_json_skip(&reader);
    if (status == NULL)
        status = kelp_json_next(&reader, &token);
    bool taken = status == NULL && token.type == KELP_JSON_END;
    kelp_status_free(status);
    return taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kelp_arena arena;
    kelp_buf out;
    kelp_json *tree = NULL, *again = NULL;
    kelp_json_writer writer;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_buf_init(&out, kelp_allocator_system());
    kelp_status *status = kelp_json_parse(&arena, "input", (const char *)data, size, &tree);
    if (skips(&arena, (const char *)data, size) != (status == NULL))
        abort();
    if (status != NULL) {
        const char *message = kelp_status_message(status);
        if (strncmp(message, "input:", 6) != 0 || message[6] < '1' || message[6] > '9')
            abort();
        kelp_status_free(status);
    } else {
        kelp_json_writer_init(&writer, &out);
        write_value(&writer, &arena, tree);
        const char *text = kelp_buf_cstr(&out);
        if (text == NULL || !kelp_utf8_count((kelp_str){text, out.length}, NULL) ||
            kelp_json_parse(&arena, "output", text, out.length, &again) != NULL ||
            !same(tree, again))
            abort();
    }
    kelp_buf_deinit(&out);
    kelp_arena_deinit(&arena);
    return 0;
}
