/* SPDX-License-Identifier: Apache-2.0 */
/* The classification extension. */
#include "frontends/tensor/classify.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/checked.h"
#include "base/str.h"
#include "frontends/tensor/element.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* An element and its position in the row. */
typedef struct candidate {
    double score;
    uint64_t index;
} candidate;

#define SCORE_CHARACTERS 400 /* the largest double has 309 digits before the point */
#define LENGTH_BYTES 4

static double score_at(kelp_v2_element element, const unsigned char *row, size_t index) {
    const unsigned char *at = row + index * element.size_bytes;
    if (kelp_v2_is_float(element))
        return kelp_v2_load_float(at, element);
    if (element.kind == KELP_V2_SIGNED)
        return (double)kelp_v2_load_signed(at, element.size_bytes);
    return (double)kelp_v2_load_unsigned(at, element.size_bytes);
}

/* Orders by descending score, then by ascending index; NaN comes last. */
static bool precedes(const candidate *a, const candidate *b) {
    bool a_nan = isnan(a->score), b_nan = isnan(b->score);
    if (a_nan != b_nan)
        return b_nan;
    if (!a_nan && a->score != b->score)
        return a->score > b->score;
    return a->index < b->index;
}

static int compare(const void *a, const void *b) {
    return precedes(a, b) ? -1 : precedes(b, a) ? 1 : 0;
}

/* Restores the heap below `at`. Its root is the element that all others precede. */
static void sift_down(candidate *heap, size_t count, size_t at) {
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count)
            return;
        if (child + 1 < count && precedes(&heap[child], &heap[child + 1]))
            child++;
        if (!precedes(&heap[at], &heap[child]))
            return;
        candidate swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
        at = child;
    }
}

/* Selects and sorts the first `keep` of n elements by precedes(). */
static void select_top(kelp_v2_element element, const unsigned char *row, size_t n, candidate *kept,
                       size_t keep) {
    KELP_ASSERT(keep <= n);
    for (size_t i = 0; i < keep; i++)
        kept[i] = (candidate){score_at(element, row, i), i};
    for (size_t i = keep; i-- > 0;)
        sift_down(kept, keep, i);
    for (size_t i = keep; i < n; i++) {
        candidate next = {score_at(element, row, i), i};
        if (precedes(&next, &kept[0])) {
            kept[0] = next;
            sift_down(kept, keep, 0);
        }
    }
    qsort(kept, keep, sizeof *kept, compare);
}

static void append_class(kelp_buf *out, TRITONSERVER_InferenceResponse *response, uint32_t output,
                         kelp_v2_element element, const unsigned char *row,
                         const candidate *chosen) {
    static const char no_length[LENGTH_BYTES];
    size_t start = out->length, size = element.size_bytes;
    const unsigned char *at = row + chosen->index * size;
    kelp_buf_append(out, no_length, sizeof no_length); /* written at the end */
    if (kelp_v2_is_float(element)) {
        char score[SCORE_CHARACTERS];
        snprintf(score, sizeof score, "%f", chosen->score);
        kelp_plain_radix(score);
        kelp_buf_append_cstr(out, score);
    } else if (element.kind == KELP_V2_SIGNED) {
        kelp_buf_append_i64(out, kelp_v2_load_signed(at, size));
    } else {
        kelp_buf_append_u64(out, kelp_v2_load_unsigned(at, size));
    }
    kelp_buf_append_char(out, ':');
    kelp_buf_append_u64(out, chosen->index);
    const char *label = NULL;
    KELP_ASSERT(size > 0);
    TRITONSERVER_Error *error = TRITONSERVER_InferenceResponseOutputClassificationLabel(
        response, output, chosen->index, &label);
    if (error != NULL) /* the label is optional */
        TRITONSERVER_ErrorDelete(error);
    else if (label != NULL && *label) {
        kelp_buf_append_char(out, ':');
        kelp_buf_append_cstr(out, label);
    }
    if (out->failed)
        return;
    kelp_v2_store(out->data + start, LENGTH_BYTES, out->length - start - LENGTH_BYTES);
}

kelp_status *kelp_v2_classify(kelp_arena *arena, TRITONSERVER_InferenceResponse *response,
                              uint32_t index, const char *name, TRITONSERVER_DataType type,
                              const int64_t *shape, size_t rank, bool batched, const void *bytes,
                              size_t size_bytes, uint32_t count, kelp_v2_classes *out) {
    kelp_v2_element element = kelp_v2_element_of(type);
    if (element.size_bytes == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "output '%s' has type %s, which does not support classification", name,
                          TRITONSERVER_DataTypeString(type));
    batched = batched && rank > 1 && shape[0] > 0;
    size_t rows = batched ? (size_t)shape[0] : 1;
    size_t n = size_bytes / element.size_bytes / rows;
    size_t keep = KELP_MIN((size_t)count, n);
    candidate *kept = KELP_ARENA_ARRAY(arena, keep, candidate);
    if (kept == NULL)
        return kelp_status_oom();
    kelp_buf text;
    kelp_buf_init(&text, kelp_arena_allocator(arena));
    for (size_t r = 0; r < rows; r++) {
        const unsigned char *row = (const unsigned char *)bytes + r * n * element.size_bytes;
        select_top(element, row, n, kept, keep);
        for (size_t i = 0; i < keep; i++)
            append_class(&text, response, index, element, row, &kept[i]);
    }
    KELP_TRY(kelp_buf_status(&text));
    out->bytes = text.data;
    out->size_bytes = text.length;
    out->rank = 0;
    if (batched)
        out->shape[out->rank++] = (int64_t)rows;
    out->shape[out->rank++] = (int64_t)keep;
    return NULL;
}
