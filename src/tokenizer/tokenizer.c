/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/tokenizer.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "tokenizer/kind.h"

void kelp_token_list_init(kelp_token_list *list, kelp_allocator allocator) {
    *list = (kelp_token_list){.allocator = allocator};
}

void kelp_token_list_deinit(kelp_token_list *list) {
    if (list->items != NULL)
        kelp_free(list->allocator, list->items, list->capacity * sizeof *list->items);
    *list = (kelp_token_list){.allocator = list->allocator};
}

kelp_status *kelp_token_list_push(kelp_token_list *list, kelp_text_token token) {
    KELP_TRY(kelp_grow(list->allocator, (void **)&list->items, &list->capacity, list->count + 1,
                       sizeof *list->items));
    list->items[list->count++] = token;
    return NULL;
}

kelp_status *kelp_tokenizer_new(kelp_allocator allocator, const kelp_tokenizer_kind *kind,
                                kelp_tokenizer **out) {
    KELP_ASSERT(kind->size_bytes >= sizeof **out);
    KELP_TRY(kelp_alloc_zero(allocator, 1, kind->size_bytes, (void **)out));
    (*out)->kind = kind;
    (*out)->allocator = allocator;
    kelp_vocabulary_init(&(*out)->vocabulary, allocator);
    return NULL;
}

void kelp_tokenizer_destroy(kelp_tokenizer *tokenizer) {
    if (tokenizer == NULL)
        return;
    if (tokenizer->kind->deinit != NULL)
        tokenizer->kind->deinit(tokenizer);
    kelp_vocabulary_deinit(&tokenizer->vocabulary);
    kelp_free(tokenizer->allocator, tokenizer, tokenizer->kind->size_bytes);
}

kelp_status *kelp_tokenizer_encode(const kelp_tokenizer *tokenizer, kelp_str text,
                                   kelp_token_list *inout_tokens) {
    if (text.length == 0)
        text.data = "";
    return tokenizer->kind->encode(tokenizer, text, inout_tokens);
}

kelp_status *kelp_tokenizer_decode(const kelp_tokenizer *tokenizer, const int64_t *ids,
                                   size_t count, const kelp_decode_options *options,
                                   kelp_buf *out) {
    KELP_TRY(tokenizer->kind->decode(tokenizer, ids, count, options, out));
    return kelp_buf_status(out);
}

bool kelp_decode_skips(const kelp_decode_options *options, int64_t id) {
    for (size_t i = 0; i < options->skipped_count; i++)
        if (options->skipped[i] == id)
            return true;
    return false;
}

int64_t kelp_tokenizer_id(const kelp_tokenizer *tokenizer, kelp_str token) {
    return kelp_vocabulary_id(&tokenizer->vocabulary, token);
}

kelp_str kelp_tokenizer_token(const kelp_tokenizer *tokenizer, int64_t id) {
    return kelp_vocabulary_token(&tokenizer->vocabulary, id);
}
