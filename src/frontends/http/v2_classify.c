/* SPDX-License-Identifier: Apache-2.0 */
/* The classification extension. */
#include "frontends/http/v2_classify.h"

#include "base/buf.h"
#include "base/checked.h"
#include "base/str.h"
#include "frontends/http/call.h"
#include "frontends/http/v2_tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct candidate {
    double score;
    uint64_t index;
} candidate;

static bool is_float(TRITONSERVER_DataType type) {
    return type == TRITONSERVER_TYPE_FP16 || type == TRITONSERVER_TYPE_BF16 ||
           type == TRITONSERVER_TYPE_FP32 || type == TRITONSERVER_TYPE_FP64;
}

#define LOAD(type_, p_, at_)                                         \
    ({                                                               \
        type_ load_;                                                 \
        memcpy(&load_, (p_) + (at_) * sizeof(load_), sizeof(load_)); \
        load_;                                                       \
    })

static float bf16_value(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof(value));
    return value;
}

static double score_at(TRITONSERVER_DataType type, const unsigned char *p, size_t at) {
    switch (type) {
    case TRITONSERVER_TYPE_BOOL:
    case TRITONSERVER_TYPE_UINT8:
        return p[at];
    case TRITONSERVER_TYPE_INT8:
        return (int8_t)p[at];
    case TRITONSERVER_TYPE_UINT16:
        return LOAD(uint16_t, p, at);
    case TRITONSERVER_TYPE_INT16:
        return LOAD(int16_t, p, at);
    case TRITONSERVER_TYPE_UINT32:
        return LOAD(uint32_t, p, at);
    case TRITONSERVER_TYPE_INT32:
        return LOAD(int32_t, p, at);
    case TRITONSERVER_TYPE_UINT64:
        return (double)LOAD(uint64_t, p, at);
    case TRITONSERVER_TYPE_INT64:
        return (double)LOAD(int64_t, p, at);
    case TRITONSERVER_TYPE_FP16:
        return (double)kelp_v2_float_from_half(LOAD(uint16_t, p, at));
    case TRITONSERVER_TYPE_BF16:
        return (double)bf16_value(LOAD(uint16_t, p, at));
    case TRITONSERVER_TYPE_FP32:
        return (double)LOAD(float, p, at);
    case TRITONSERVER_TYPE_FP64:
        return LOAD(double, p, at);
    default:
        return 0.0;
    }
}

/* Higher scores first, then lower indices; NaN behind all. */
static bool before(const candidate *a, const candidate *b) {
    bool a_nan = isnan(a->score), b_nan = isnan(b->score);
    if (a_nan != b_nan)
        return b_nan;
    if (!a_nan && a->score != b->score)
        return a->score > b->score;
    return a->index < b->index;
}

static int compare(const void *a, const void *b) {
    return before(a, b) ? -1 : before(b, a) ? 1 : 0;
}

/* Restores the heap below `at`; its root is the last of those kept. */
static void sift_down(candidate *heap, size_t count, size_t at) {
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count)
            return;
        if (child + 1 < count && before(&heap[child], &heap[child + 1]))
            child++;
        if (!before(&heap[at], &heap[child]))
            return;
        candidate swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
        at = child;
    }
}

/* The `keep` first of n elements by `before`, sorted. */
static void select_top(TRITONSERVER_DataType type, const unsigned char *row, size_t n,
                       candidate *kept, size_t keep) {
    for (size_t i = 0; i < keep; i++)
        kept[i] = (candidate){score_at(type, row, i), i};
    for (size_t i = keep; i-- > 0;)
        sift_down(kept, keep, i);
    for (size_t i = keep; i < n; i++) {
        candidate next = {score_at(type, row, i), i};
        if (before(&next, &kept[0])) {
            kept[0] = next;
            sift_down(kept, keep, 0);
        }
    }
    qsort(kept, keep, sizeof(*kept), compare);
}

static void append_class(kelp_buf *out, TRITONSERVER_InferenceResponse *response, uint32_t output,
                         TRITONSERVER_DataType type, const unsigned char *row,
                         const candidate *chosen) {
    size_t start = out->length;
    kelp_buf_append(out, "\0\0\0\0", 4);
    if (is_float(type)) {
        char score[400]; /* the largest double has 309 digits before the point */
        snprintf(score, sizeof score, "%f", chosen->score);
        kelp_plain_radix(score);
        kelp_buf_append_cstr(out, score);
    } else if (type == TRITONSERVER_TYPE_UINT64)
        kelp_buf_append_u64(out, LOAD(uint64_t, row, chosen->index));
    else if (type == TRITONSERVER_TYPE_INT64)
        kelp_buf_append_i64(out, LOAD(int64_t, row, chosen->index));
    else
        kelp_buf_append_i64(out, (int64_t)chosen->score);
    kelp_buf_append_char(out, ':');
    kelp_buf_append_u64(out, chosen->index);
    const char *label = NULL;
    TRITONSERVER_Error *error = TRITONSERVER_InferenceResponseOutputClassificationLabel(
        response, output, chosen->index, &label);
    if (error) /* a class without a label is still a class */
        TRITONSERVER_ErrorDelete(error);
    else if (label && *label) {
        kelp_buf_append_char(out, ':');
        kelp_buf_append_cstr(out, label);
    }
    if (out->failed)
        return;
    uint32_t length = (uint32_t)(out->length - start - 4);
    for (unsigned i = 0; i < 4; i++)
        out->data[start + i] = (char)(unsigned char)(length >> (8 * i));
}

kelp_status *kelp_v2_classify(kelp_arena *arena, TRITONSERVER_InferenceResponse *response,
                              uint32_t index, const char *name, TRITONSERVER_DataType type,
                              const int64_t *shape, size_t rank, bool batched, const void *bytes,
                              size_t size_bytes, uint32_t count, kelp_v2_classes *out) {
    size_t element = TRITONSERVER_DataTypeByteSize(type);
    if (element == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "output '%s' is of type %s, which cannot be classified", name,
                          TRITONSERVER_DataTypeString(type));
    batched = batched && rank > 1 && shape[0] > 0;
    size_t rows = batched ? (size_t)shape[0] : 1;
    size_t n = size_bytes / element / rows;
    size_t keep = KELP_MIN((size_t)count, n);
    candidate *kept = KELP_ARENA_ARRAY(arena, keep, candidate);
    if (!kept)
        return kelp_status_oom();
    kelp_buf text;
    kelp_buf_init(&text, kelp_arena_allocator(arena));
    for (size_t r = 0; r < rows; r++) {
        const unsigned char *row = (const unsigned char *)bytes + r * n * element;
        select_top(type, row, n, kept, keep);
        for (size_t i = 0; i < keep; i++)
            append_class(&text, response, index, type, row, &kept[i]);
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
