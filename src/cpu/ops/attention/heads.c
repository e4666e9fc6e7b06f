/* SPDX-License-Identifier: Apache-2.0 */
/* Code that the attention operators share. */
#include "cpu/ops/attention/heads.h"

#include "base/assert.h"
#include "cpu/ops/converted.h"

kelp_status *kelp_sdpa_reserve(kelp_op_args *args, kelp_sdpa *s, size_t *out_offset) {
    size_t bytes;
    if (!kelp_sdpa_plan(s, kelp_op_env_threads(args->env), &bytes))
        bytes = SIZE_MAX; /* fails below */
    args->algorithm = kelp_sdpa_algorithm_name(s);
    return kelp_ops_scratch(args, 1, bytes, out_offset);
}

/* Returns true if the past rows are in the memory of the result: new rows are appended to them. */
static bool appends(const kelp_heads *h) {
    return h->old != NULL && h->old->data == h->to && h->old->dtype == KELP_F32 &&
           h->old_first == 0 && h->old_rows == h->rows;
}

static void gather_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_heads *h = userp;
    const bool in_place = appends(h);
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t image = at / h->heads, head = at % h->heads;
        int64_t past = h->past_counts != NULL ? h->past_counts[image] : h->past;
        KELP_ASSERT(past >= 0 && past + h->fresh <= h->rows);
        float *to = h->to + at * h->rows * h->size;
        if (h->old != NULL && past > 0 && !in_place)
            kelp_math_load_tensor(h->old, h->old_first + at * h->old_rows * h->size, past * h->size,
                                  to);
        to += past * h->size;
        int64_t from = image * h->from.batch + head * h->from.head;
        const float *bias = h->bias != NULL ? h->bias + head * h->size : NULL;
        for (int64_t i = 0; i < h->fresh; i++, to += h->size, from += h->from.row) {
            kelp_math_load(h->from_dtype, h->from.data, from, h->size, to);
            for (int64_t d = 0; d < h->size && bias != NULL; d++)
                to[d] += bias[d];
        }
        if (!in_place)
            memset(to, 0, (size_t)((h->rows - past - h->fresh) * h->size) * sizeof *to);
    }
}

void kelp_heads_gather(const kelp_op_env *env, const kelp_heads *heads, kelp_sdpa_view *out) {
    uintptr_t userp = (uintptr_t)heads;
    KELP_ASSERT(heads->to != NULL);
    int64_t rows = appends(heads) ? heads->fresh : heads->rows;
    int64_t each = KELP_MAX((int64_t)1, rows * heads->size);
    kelp_op_parallel(env, heads->batch * heads->heads, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, each),
                     gather_range, (void *)userp);
    *out = (kelp_sdpa_view){heads->to, heads->heads * heads->rows * heads->size,
                            heads->rows * heads->size, heads->size};
}

kelp_status *kelp_heads_mask_plan(kelp_op_args *args, int32_t input, const kelp_sdpa *s,
                                  kelp_heads_mask *out) {
    const kelp_tensor *m = kelp_ops_in(args, input);
    out->input = m != NULL ? input : -1;
    if (m == NULL)
        return NULL;
    if (m->dtype != KELP_I32)
        return kelp_ops_bad_type(args, m->dtype);
    bool good = false;
    if (m->rank == 1) {
        out->lengths = true;
        good = m->shape[0] == s->batch || m->shape[0] == 2 * s->batch;
        KELP_TRY(kelp_ops_scratch(args, s->batch * s->keys, 1, &out->flags));
    } else if (m->rank == 2) {
        good = m->shape[0] == s->batch && m->shape[1] == s->keys;
    } else if (m->rank == 3) {
        good = m->shape[0] == s->batch && m->shape[1] == s->queries && m->shape[2] == s->keys;
    }
    return good ? NULL
                : kelp_ops_bad_shapes(args, args->inputs[0], m,
                                      "the shape of the mask does not match the scores");
}

/* Flags the keys from the start, if there are two lists, to before the end of each sequence. */
static void flags_of_lengths(const kelp_tensor *m, const kelp_sdpa *s, uint8_t *to) {
    const int32_t *ends = m->data;
    bool starts = m->shape[0] == 2 * s->batch;
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t j = 0; j < s->keys; j++)
            to[b * s->keys + j] = j < ends[b] && (!starts || j >= ends[s->batch + b]);
}

void kelp_heads_mask_set(const kelp_op_args *args, const kelp_heads_mask *mask, float filter,
                         kelp_sdpa *s) {
    kelp_sdpa_mask *out = &s->masks[0];
    if (mask->input < 0)
        return;
    const kelp_tensor *m = args->inputs[mask->input];
    *out = (kelp_sdpa_mask){.data = m->data,
                            .dtype = m->dtype,
                            .batch = s->keys,
                            .column = 1,
                            .keys = s->keys,
                            .is_flags = true,
                            .dropped = filter};
    if (mask->lengths) {
        uint8_t *flags = kelp_ops_scratch_at(args, mask->flags);
        out->dtype = KELP_U8;
        out->data = flags;
        flags_of_lengths(m, s, flags);
    } else if (m->rank == 3) {
        out->batch = s->queries * s->keys;
        out->row = s->keys;
    }
}

kelp_status *kelp_heads_bias_check(const kelp_op_args *args, int32_t input, const kelp_sdpa *s) {
    const kelp_tensor *b = kelp_ops_in(args, input);
    if (b != NULL && (!kelp_ops_is_float(b->dtype) || b->rank != 4 ||
                      (b->shape[0] != 1 && b->shape[0] != s->batch) ||
                      (b->shape[1] != 1 && b->shape[1] != s->heads) || b->shape[2] != s->queries ||
                      b->shape[3] != s->keys))
        return kelp_ops_bad_shapes(args, args->inputs[0], b,
                                   "the attention bias does not broadcast to the scores");
    return NULL;
}

void kelp_heads_bias_set(const kelp_op_args *args, int32_t input, kelp_sdpa *s) {
    const kelp_tensor *b = kelp_ops_in(args, input);
    if (b == NULL)
        return;
    int64_t head = b->shape[2] * b->shape[3];
    s->masks[1] = (kelp_sdpa_mask){.data = b->data,
                                   .dtype = b->dtype,
                                   .batch = b->shape[0] == 1 ? 0 : b->shape[1] * head,
                                   .head = b->shape[1] == 1 ? 0 : head,
                                   .row = b->shape[3],
                                   .column = 1,
                                   .keys = b->shape[3]};
}
