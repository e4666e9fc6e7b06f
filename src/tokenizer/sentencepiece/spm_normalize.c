/* SPDX-License-Identifier: Apache-2.0 */
/* Normalization of SentencePiece: replacements of the model, and white space. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/utf8.h"
#include "tokenizer/sentencepiece/spm.h"

#define REPLACEMENT "\xEF\xBF\xBD"

void kelp_spm_text_deinit(kelp_spm_text *text) {
    if (text->data != NULL)
        kelp_free(text->allocator, text->data, text->data_capacity);
    if (text->origins != NULL)
        kelp_free(text->allocator, text->origins, text->origin_capacity * sizeof *text->origins);
    *text = (kelp_spm_text){.allocator = text->allocator};
}

static kelp_status *append(kelp_spm_text *t, const char *data, size_t length, size_t origin) {
    KELP_TRY(kelp_grow(t->allocator, (void **)&t->data, &t->data_capacity, t->length + length, 1));
    KELP_TRY(kelp_grow(t->allocator, (void **)&t->origins, &t->origin_capacity,
                       t->length + length + 1, sizeof *t->origins));
    if (length > 0)
        memcpy(t->data + t->length, data, length);
    for (size_t i = 0; i < length; i++)
        t->origins[t->length++] = (uint32_t)origin;
    return NULL;
}

static kelp_status *append_space(const kelp_spm *spm, kelp_spm_text *t, size_t origin) {
    return spm->escape_spaces ? append(t, KELP_SPM_SPACE, KELP_SPM_SPACE_LENGTH, origin)
                              : append(t, " ", 1, origin);
}

/* Finds the longest replacement whose key the text begins with. The double array is that of
 * Darts-clone: each unit has the label of its edge, and the offset of its children. */
static size_t find_replacement(const kelp_spm *spm, kelp_str text, size_t *out_value) {
    size_t longest = 0, at = 0;
    uint32_t unit = spm->charsmap_count > 0 ? spm->charsmap[0] : 0;
    at ^= (size_t)(unit >> 10) << ((unit & 0x200u) >> 6);
    for (size_t i = 0; i < text.length && spm->charsmap_count > 0; i++) {
        at ^= (uint8_t)text.data[i];
        if (at >= spm->charsmap_count)
            break;
        unit = spm->charsmap[at];
        if ((unit & 0x800000FFu) != (uint8_t)text.data[i])
            break;
        at ^= (size_t)(unit >> 10) << ((unit & 0x200u) >> 6);
        if ((unit >> 8 & 1) != 0 && at < spm->charsmap_count) {
            size_t value = spm->charsmap[at] & 0x7FFFFFFFu;
            if (value < spm->charsmap_texts.length) {
                longest = i + 1;
                *out_value = value;
            }
        }
    }
    return longest;
}

size_t kelp_spm_normalize_prefix(const kelp_spm *spm, kelp_str text, kelp_str *out) {
    bool is_user = false;
    size_t value = 0, length = kelp_trie_longest(&spm->user, text);
    uint32_t c;
    is_user = length > 0;
    if (is_user) {
        *out = (kelp_str){text.data, length};
        return length;
    }
    length = find_replacement(spm, text, &value);
    if (length > 0) {
        *out = kelp_str_from(spm->charsmap_texts.data + value);
        return length;
    }
    length = kelp_utf8_decode(text, &c);
    *out = length > 0 ? (kelp_str){text.data, length} : KELP_STR(REPLACEMENT);
    return KELP_MAX(length, 1);
}

static kelp_str rest_of(kelp_str text, size_t at) {
    return (kelp_str){text.data + at, text.length - at};
}

/* Appends the normalized text from byte `at` on. */
static kelp_status *append_all(const kelp_spm *spm, kelp_str text, size_t at, kelp_spm_text *out) {
    bool after_space = spm->remove_spaces;
    while (at < text.length) {
        kelp_str part;
        size_t length = kelp_spm_normalize_prefix(spm, rest_of(text, at), &part);
        while (after_space && part.length > 0 && *part.data == ' ')
            part = rest_of(part, 1);
        for (size_t i = 0; i < part.length; i++) {
            if (spm->escape_spaces && part.data[i] == ' ')
                KELP_TRY(append_space(spm, out, at));
            else
                KELP_TRY(append(out, part.data + i, 1, at));
        }
        if (part.length > 0)
            after_space = spm->remove_spaces && part.data[part.length - 1] == ' ';
        at += length;
    }
    return NULL;
}

static bool ends_with_space(const kelp_spm *spm, const kelp_spm_text *t) {
    size_t length = spm->escape_spaces ? KELP_SPM_SPACE_LENGTH : 1;
    return t->length >= length && memcmp(t->data + t->length - length,
                                         spm->escape_spaces ? KELP_SPM_SPACE : " ", length) == 0;
}

static kelp_status *normalize(const kelp_spm *spm, kelp_str text, kelp_spm_text *out) {
    size_t at = 0, consumed = text.length;
    while (spm->remove_spaces && at < text.length) {
        kelp_str part;
        size_t length = kelp_spm_normalize_prefix(spm, rest_of(text, at), &part);
        if (!kelp_str_is(part, " "))
            break;
        at += length;
    }
    if (at == text.length) /* only spaces */
        return NULL;
    if (!spm->space_is_suffix && spm->add_prefix)
        KELP_TRY(append_space(spm, out, at));
    KELP_TRY(append_all(spm, text, at, out));
    while (spm->remove_spaces && ends_with_space(spm, out)) {
        out->length -= spm->escape_spaces ? KELP_SPM_SPACE_LENGTH : 1;
        consumed = out->origins[out->length];
    }
    if (spm->space_is_suffix && spm->add_prefix)
        KELP_TRY(append_space(spm, out, consumed));
    KELP_TRY(append(out, NULL, 0, 0));
    out->origins[out->length] = (uint32_t)consumed;
    return NULL;
}

kelp_status *kelp_spm_normalize(const kelp_spm *spm, kelp_str text, kelp_spm_text *out) {
    *out = (kelp_spm_text){.allocator = out->allocator};
    if (text.length >= UINT32_MAX / 8)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "a text of %zu bytes is too long", text.length);
    kelp_status *status = normalize(spm, text, out);
    if (status != NULL)
        kelp_spm_text_deinit(out);
    return status;
}
