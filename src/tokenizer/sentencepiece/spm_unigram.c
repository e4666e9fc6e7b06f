/* SPDX-License-Identifier: Apache-2.0 */
/* The unigram language model of SentencePiece: the most probable division into pieces (Viterbi). */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/utf8.h"
#include "tokenizer/sentencepiece/spm.h"

#define UNKNOWN_PENALTY 10.0f
#define NONE UINT32_MAX

/* The best path that ends at a byte, and its last piece. */
typedef struct path {
    float score;
    uint32_t begin; /* of the piece; NONE: no path ends here */
    int32_t id;
} path;

/* Scores are compared in double and stored in float, as in sentencepiece, so that ties have the
 * same result. */
static void update(path *p, double score, size_t begin, int32_t id) {
    if (p->begin == NONE || score > (double)p->score)
        *p = (path){(float)score, (uint32_t)begin, id};
}

static size_t char_size(kelp_str text, size_t at) {
    uint32_t c;
    size_t size = kelp_utf8_decode((kelp_str){text.data + at, text.length - at}, &c);
    return KELP_MAX(size, 1);
}

/* Extends the best path that ends at byte `begin` by all pieces that begin there. The first
 * character has `size` bytes. */
static void extend(const kelp_spm *spm, path *paths, kelp_str text, size_t begin, size_t size) {
    bool has_single = false;
    float score = paths[begin].score;
    uint32_t node = KELP_TRIE_ROOT;
    for (size_t at = begin; at < text.length; at++) {
        node = kelp_trie_next(&spm->trie, node, (uint8_t)text.data[at]);
        if (node == KELP_TRIE_NONE)
            break;
        int32_t id = spm->trie.values[node];
        size_t length = at + 1 - begin;
        if (id < 0 || spm->pieces[id].type == KELP_SPM_UNUSED)
            continue;
        /* user-defined pieces are always selected */
        double own = spm->pieces[id].type == KELP_SPM_USER_DEFINED
                         ? (double)((float)length * spm->max_score) - 0.1
                         : (double)spm->pieces[id].score;
        update(&paths[at + 1], own + (double)score, begin, id);
        has_single = has_single || length == size;
    }
    if (!has_single)
        update(&paths[begin + size], (double)(spm->min_score - UNKNOWN_PENALTY + score), begin,
               spm->unknown);
}

static kelp_status *write_path(const path *paths, size_t length, kelp_spm_spans *out) {
    size_t count = 0;
    for (size_t end = length; end > 0; end = paths[end].begin)
        count++;
    KELP_TRY(kelp_grow(out->allocator, (void **)&out->items, &out->capacity, out->count + count,
                       sizeof *out->items));
    out->count += count;
    size_t to = out->count;
    for (size_t end = length; end > 0; end = paths[end].begin)
        out->items[--to] = (kelp_spm_span){paths[end].begin, (uint32_t)end, paths[end].id};
    return NULL;
}

kelp_status *kelp_spm_unigram(const kelp_spm *spm, kelp_str text, kelp_spm_spans *out) {
    path *paths = NULL;
    size_t count = text.length + 1;
    if (text.length == 0)
        return NULL;
    KELP_TRY(kelp_alloc(out->allocator, count * sizeof *paths, (void **)&paths));
    for (size_t i = 0; i < count; i++)
        paths[i] = (path){0, NONE, -1};
    for (size_t at = 0, size; at < text.length; at += size) {
        size = char_size(text, at);
        extend(spm, paths, text, at, size);
    }
    kelp_status *status = write_path(paths, text.length, out);
    kelp_free(out->allocator, paths, count * sizeof *paths);
    return status;
}
