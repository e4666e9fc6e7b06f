/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the JSON tree for configuration. */
#include "base/text/json.h"

#include "base/assert.h"

#include <stdio.h>

typedef struct level {
    kelp_json *container;
    kelp_json *last;
} level;

static void add_child(level *at, kelp_json *node) {
    if (at->last != NULL)
        at->last->next = node;
    else
        at->container->child = node;
    at->last = node;
    at->container->count++;
}

static kelp_status *parse(kelp_arena *arena, kelp_json_reader *reader, kelp_json **out) {
    level levels[KELP_JSON_MAX_DEPTH + 1];
    uint32_t depth = 0;
    kelp_str key = {0};
    kelp_json_token token;
    *out = NULL;
    for (;;) {
        KELP_TRY(kelp_json_next(reader, &token));
        if (token.type == KELP_JSON_END)
            return NULL;
        if (token.type == KELP_JSON_KEY) {
            key = token.string;
            continue;
        }
        if (token.type == KELP_JSON_ARRAY_END || token.type == KELP_JSON_OBJECT_END) {
            KELP_ASSERT(depth > 0); /* the reader matches brackets */
            depth--;
            continue;
        }
        kelp_json *node = KELP_ARENA_NEW(arena, kelp_json);
        if (node == NULL)
            return kelp_status_oom();
        *node = (kelp_json){.type = token.type,
                            .boolean = token.boolean,
                            .i64 = token.i64,
                            .u64 = token.u64,
                            .f64 = token.f64,
                            .string = token.string,
                            .key = key,
                            .offset = token.offset};
        key = (kelp_str){0};
        if (depth > 0)
            add_child(&levels[depth - 1], node);
        else
            *out = node;
        if (token.type == KELP_JSON_ARRAY || token.type == KELP_JSON_OBJECT)
            levels[depth++] = (level){node, NULL};
    }
}

kelp_status *kelp_json_parse(kelp_arena *arena, const char *name, const char *text, size_t length,
                             kelp_json **out) {
    kelp_json_reader reader;
    kelp_json_reader_init(&reader, arena, text, length);
    kelp_status *status = parse(arena, &reader, out);
    if (status == NULL || kelp_status_code(status) != KELP_INVALID_ARGUMENT)
        return status;
    /* position in the format of compilers and editors */
    size_t line = 1, column = 1;
    int prefix = 0;
    const char *message = kelp_status_message(status);
    if (sscanf(message, "line %zu column %zu: %n", &line, &column, &prefix) != 2)
        prefix = 0;
    kelp_status *named =
        kelp_status_new(KELP_INVALID_ARGUMENT, kelp_status_file(status), kelp_status_line(status),
                        "%s:%zu:%zu: %s", name, line, column, message + prefix);
    kelp_status_free(status);
    return named;
}

const kelp_json *kelp_json_get(const kelp_json *object, const char *key) {
    if (object == NULL || object->type != KELP_JSON_OBJECT)
        return NULL;
    for (const kelp_json *member = object->child; member != NULL; member = member->next)
        if (kelp_str_is(member->key, key))
            return member;
    return NULL;
}
