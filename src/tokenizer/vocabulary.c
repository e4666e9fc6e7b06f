/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/vocabulary.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"
#include "tokenizer/tokenizer.h"

void kelp_vocabulary_init(kelp_vocabulary *vocabulary, kelp_allocator allocator) {
    *vocabulary = (kelp_vocabulary){.allocator = allocator};
    kelp_arena_init(&vocabulary->arena, allocator, 1 << 16);
    kelp_map_init(&vocabulary->ids, allocator);
}

void kelp_vocabulary_deinit(kelp_vocabulary *vocabulary) {
    kelp_map_deinit(&vocabulary->ids);
    if (vocabulary->tokens != NULL)
        kelp_free(vocabulary->allocator, vocabulary->tokens,
                  vocabulary->capacity * sizeof *vocabulary->tokens);
    kelp_arena_deinit(&vocabulary->arena);
}

static kelp_status *reserve(kelp_vocabulary *v, size_t count) {
    size_t before = v->capacity;
    KELP_TRY(kelp_grow(v->allocator, (void **)&v->tokens, &v->capacity, count, sizeof *v->tokens));
    memset(v->tokens + before, 0, (v->capacity - before) * sizeof *v->tokens);
    return NULL;
}

kelp_status *kelp_vocabulary_set_token(kelp_vocabulary *vocabulary, kelp_str token, int64_t id) {
    if (id < 0 || id >= KELP_VOCABULARY_MAX_ID)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "token '%.*s' has an invalid id: expected 0 to %d, found %lld",
                          KELP_STR_ARG(token), KELP_VOCABULARY_MAX_ID - 1, (long long)id);
    KELP_TRY(reserve(vocabulary, (size_t)id + 1));
    vocabulary->tokens[id] = token;
    vocabulary->end = KELP_MAX(vocabulary->end, id + 1);
    return NULL;
}

kelp_status *kelp_vocabulary_add(kelp_vocabulary *vocabulary, kelp_str token, int64_t id) {
    char *text = kelp_arena_strndup(&vocabulary->arena, token.data, token.length);
    if (text == NULL)
        return kelp_status_oom();
    kelp_str copy = {text, token.length};
    KELP_TRY(kelp_vocabulary_set_token(vocabulary, copy, id));
    return kelp_map_put(&vocabulary->ids, copy, (void *)(uintptr_t)(id + 1));
}

kelp_status *kelp_vocabulary_add_lines(kelp_vocabulary *vocabulary, kelp_str text,
                                       const char *separators) {
    int64_t id = 0;
    for (size_t at = 0, begin = 0; at <= text.length; at++) {
        bool ends = at == text.length ||
                    (text.data[at] != '\0' && strchr(separators, text.data[at]) != NULL);
        if (!ends)
            continue;
        if (at > begin)
            KELP_TRY(
                kelp_vocabulary_add(vocabulary, (kelp_str){text.data + begin, at - begin}, id++));
        begin = at + 1;
    }
    return NULL;
}

static kelp_status *add_members(kelp_vocabulary *v, kelp_json_reader *reader) {
    kelp_json_token token, value;
    KELP_TRY(kelp_json_next(reader, &token));
    if (token.type != KELP_JSON_OBJECT)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the vocabulary is malformed: expected an object from token to id, "
                          "found %s",
                          kelp_json_type_name(token.type));
    for (;;) {
        KELP_TRY(kelp_json_next(reader, &token));
        if (token.type == KELP_JSON_OBJECT_END)
            break;
        KELP_ASSERT(token.type == KELP_JSON_KEY);
        KELP_TRY(kelp_json_next(reader, &value));
        if (value.type != KELP_JSON_INT)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "token '%.*s' has an invalid id: expected an integer, found %s",
                              KELP_STR_ARG(token.string), kelp_json_type_name(value.type));
        KELP_TRY(kelp_vocabulary_add(v, token.string, value.i64));
    }
    return kelp_json_next(reader, &token); /* nothing follows */
}

kelp_status *kelp_vocabulary_add_json(kelp_vocabulary *vocabulary, kelp_str text) {
    kelp_json_reader reader;
    kelp_arena arena;
    kelp_arena_init(&arena, vocabulary->allocator, 0);
    kelp_json_reader_init(&reader, &arena, text.data, text.length);
    kelp_status *status = add_members(vocabulary, &reader);
    kelp_arena_deinit(&arena);
    return status;
}

int64_t kelp_vocabulary_id(const kelp_vocabulary *vocabulary, kelp_str token) {
    return (int64_t)(uintptr_t)kelp_map_get(&vocabulary->ids, token) - 1;
}

kelp_str kelp_vocabulary_token(const kelp_vocabulary *vocabulary, int64_t id) {
    return id >= 0 && id < vocabulary->end ? vocabulary->tokens[id] : (kelp_str){NULL, 0};
}
