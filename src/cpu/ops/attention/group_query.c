/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft GroupQueryAttention, the attention of decoders. Sequences of a batch may differ in
 * length: new keys and values are rotated by their positions and appended to the past of each
 * sequence. Source: ONNX Runtime, ContribOperators.md.
 */
#include "base/assert.h"
#include "cpu/ops/attention/rotary.h"
#include "cpu/ops/attention/heads.h"
#include "cpu/ops/converted.h"
#include "tensor/real.h"

#include <math.h>

enum {
    QUERY,
    KEY,
    VALUE,
    PAST_KEY,
    PAST_VALUE,
    LENGTHS,
    TOTAL,
    COSINES,
    SINES,
    POSITIONS,
    ADDED,
    SINKS,
    K_SCALE,
    V_SCALE,
    Q_NORM,
    K_NORM
};

typedef struct query_plan {
    kelp_sdpa s;
    int64_t kv_heads, past, rows; /* rows of the past and of the present cache */
    bool packed, rotary, interleaved;
    int64_t half; /* angles per row */
    size_t angles, sinks, q_copy, kv_copies[2], counts, scratch;
    const kelp_op_args *args;
    const int64_t *past_counts;
    const float *cosines, *sines;
} query_plan;

static kelp_status *read_layout(kelp_op_args *args, query_plan *p) {
    const kelp_tensor *q = args->inputs[QUERY], *k = kelp_ops_in(args, KEY);
    const kelp_tensor *v = kelp_ops_in(args, VALUE);
    kelp_sdpa *s = &p->s;
    s->heads = kelp_node_attr_i64(args->node, "num_heads", 0);
    p->kv_heads = kelp_node_attr_i64(args->node, "kv_num_heads", 0);
    p->packed = k == NULL;
    int64_t parts = p->packed ? s->heads + 2 * p->kv_heads : s->heads;
    if (q->rank != 3 || s->heads < 1 || p->kv_heads < 1 || s->heads % p->kv_heads != 0 ||
        q->shape[2] % parts != 0)
        return kelp_ops_bad_shapes(args, q, k,
                                   "num_heads and kv_num_heads do not match the queries");
    s->batch = q->shape[0];
    s->queries = q->shape[1];
    s->size = s->v_size = q->shape[2] / parts;
    s->group = s->heads / p->kv_heads;
    int64_t fresh[3] = {s->batch, s->queries, p->kv_heads * s->size};
    if (!p->packed &&
        (v == NULL || k->rank != 3 || v->rank != 3 || memcmp(k->shape, fresh, sizeof fresh) != 0 ||
         memcmp(v->shape, fresh, sizeof fresh) != 0))
        return kelp_ops_bad_shapes(args, q, k,
                                   "the shapes of keys and values do not match the queries");
    return NULL;
}

static kelp_status *read_cache(kelp_op_args *args, query_plan *p) {
    const kelp_tensor *k = kelp_ops_in(args, PAST_KEY), *v = kelp_ops_in(args, PAST_VALUE);
    const kelp_tensor *lengths = kelp_ops_in(args, LENGTHS), *total = kelp_ops_in(args, TOTAL);
    kelp_sdpa *s = &p->s;
    if (lengths == NULL || total == NULL || lengths->dtype != KELP_I32 ||
        total->dtype != KELP_I32 || kelp_tensor_elements(lengths) != s->batch ||
        kelp_tensor_elements(total) != 1)
        return kelp_ops_bad_shapes(args, lengths, total,
                                   "expected int32 seqlens_k of one value for each sequence, and "
                                   "int32 total_sequence_length of one value");
    if ((k == NULL) != (v == NULL) ||
        (k != NULL &&
         (k->rank != 4 || v->rank != 4 || k->shape[0] != s->batch || k->shape[1] != p->kv_heads ||
          k->shape[3] != s->size || memcmp(k->shape, v->shape, 4 * sizeof *k->shape) != 0)))
        return kelp_ops_bad_shapes(args, k, v, "the shapes of past keys and values do not match");
    KELP_ASSERT(total->data != NULL); /* reshape was deferred until it is known */
    s->keys = *(const int32_t *)total->data;
    p->past = k != NULL ? k->shape[2] : 0;
    p->rows = KELP_MAX(p->past, s->keys);
    if (s->keys < s->queries)
        return kelp_ops_bad_shapes(args, args->inputs[QUERY], NULL,
                                   "total_sequence_length is less than the number of queries");
    return NULL;
}

static kelp_status *read_rotary(kelp_op_args *args, query_plan *p) {
    const kelp_tensor *c = kelp_ops_in(args, COSINES), *s = kelp_ops_in(args, SINES);
    const kelp_tensor *at = kelp_ops_in(args, POSITIONS);
    p->rotary = kelp_node_attr_i64(args->node, "do_rotary", 0) != 0;
    p->interleaved = kelp_node_attr_i64(args->node, "rotary_interleaved", 0) != 0;
    if (!p->rotary)
        return NULL;
    if (c == NULL || s == NULL || c->rank != 2 || s->rank != 2 || c->shape[1] != s->shape[1] ||
        c->shape[0] != s->shape[0] || 2 * c->shape[1] > p->s.size)
        return kelp_ops_bad_shapes(args, c, s,
                                   "the shapes of cos_cache and sin_cache do not match the heads");
    if (at != NULL &&
        (at->dtype != KELP_I64 || kelp_tensor_elements(at) != p->s.batch * p->s.queries))
        return kelp_ops_bad_shapes(args, args->inputs[QUERY], at,
                                   "expected a position for each token");
    p->half = c->shape[1];
    return kelp_ops_scratch(args, 2 * p->s.batch * p->s.queries * p->half, sizeof(float),
                            &p->angles);
}

static kelp_status *read_attributes(kelp_op_args *args, query_plan *p) {
    kelp_sdpa *s = &p->s;
    const kelp_node *node = args->node;
    const kelp_tensor *sinks = kelp_ops_in(args, SINKS);
    for (int32_t i = K_SCALE; i <= K_NORM; i++)
        if (kelp_ops_in(args, i) != NULL)
            return KELP_ERROR(KELP_UNIMPLEMENTED,
                              "operator 'GroupQueryAttention': quantized caches and norms of "
                              "queries and keys are not supported: found input %d",
                              i);
    if (kelp_node_attr_i64(node, "sliding_window_cache", 0) != 0)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "operator 'GroupQueryAttention': sliding_window_cache is not supported");
    if (sinks != NULL && kelp_tensor_elements(sinks) != s->heads)
        return kelp_ops_bad_shapes(args, sinks, NULL, "expected a sink for each head");
    s->scale = (double)kelp_node_attr_f32(node, "scale", 0.0f);
    if (s->scale == 0)
        s->scale = 1.0 / sqrt((double)s->size);
    s->softcap = (double)kelp_node_attr_f32(node, "softcap", 0.0f);
    s->compute = s->round = s->softmax_round = KELP_F32;
    s->q_scale = 1.0f;
    s->right = kelp_node_attr_i64(node, "causal", 1) != 0 ? 0 : -1;
    int64_t window =
        kelp_node_attr_i64(node, "local_window_size", -1); /* includes the query's own position */
    s->left = window > 0 ? window - 1 : -1;
    s->sink_zero = sinks == NULL && kelp_node_attr_i64(node, "smooth_softmax", -1) == 1;
    s->scores_stage = kelp_node_attr_i64(node, "qk_output", 0) == 2 ? 3 : 2;
    return kelp_ops_scratch(args, sinks != NULL ? s->heads : 0, sizeof(float), &p->sinks);
}

static kelp_status *reserve(kelp_op_args *args, query_plan *p) {
    kelp_sdpa *s = &p->s;
    int64_t tokens = s->batch * s->queries, cache = s->batch * p->kv_heads * p->rows * s->size;
    kelp_dtype dtype = args->inputs[QUERY]->dtype;
    for (int32_t i = 0; i < 2; i++)
        if (kelp_ops_out(args, 1 + i) == NULL || args->outputs[1 + i]->dtype != KELP_F32)
            KELP_TRY(kelp_ops_scratch(args, cache, 4, &p->kv_copies[i]));
    KELP_TRY(kelp_ops_scratch(args, tokens * s->heads * s->size, 4, &p->q_copy));
    KELP_TRY(kelp_ops_scratch(args, 2 * s->batch, sizeof(int64_t), &p->counts));
    s->q_dtype = p->rotary ? KELP_F32 : dtype;
    s->y_dtype = dtype;
    return kelp_sdpa_reserve(args, s, &p->scratch);
}

static kelp_status *query_reshape(const void *state, kelp_op_args *args) {
    query_plan *p = args->plan;
    kelp_sdpa *s = &p->s;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    kelp_dtype dtype = args->inputs[QUERY]->dtype;
    for (int32_t i = 0; i < args->input_count && i <= SINKS; i++)
        if (args->inputs[i] != NULL && i != LENGTHS && i != TOTAL && i != POSITIONS &&
            (!kelp_ops_is_float(dtype) || dtype == KELP_F64 || args->inputs[i]->dtype != dtype))
            return kelp_ops_bad_type(args, args->inputs[i]->dtype);
    if (kelp_ops_defer(args, TOTAL))
        return NULL;
    KELP_TRY(read_layout(args, p));
    KELP_TRY(read_cache(args, p));
    KELP_TRY(read_rotary(args, p));
    KELP_TRY(read_attributes(args, p));
    KELP_TRY(kelp_heads_bias_check(args, ADDED, s));
    int64_t y[3] = {s->batch, s->queries, s->heads * s->size};
    int64_t cache[4] = {s->batch, p->kv_heads, p->rows, s->size};
    int64_t scores[4] = {s->batch, s->heads, s->queries, s->keys};
    KELP_TRY(kelp_ops_set(args, 0, dtype, 3, y));
    KELP_TRY(kelp_ops_set(args, 1, dtype, 4, cache));
    KELP_TRY(kelp_ops_set(args, 2, dtype, 4, cache));
    KELP_TRY(kelp_ops_set(args, 3, dtype, 4, scores));
    return reserve(args, p);
}

/* ---- invoke ---- */
/* Counts the tokens of each sequence before and after this run. */
static kelp_status *count_keys(const kelp_op_args *args, const query_plan *p, int64_t *past,
                               int64_t *now) {
    const int32_t *lengths = args->inputs[LENGTHS]->data;
    bool prompt = p->s.queries == p->s.keys;
    for (int64_t b = 0; b < p->s.batch; b++) {
        past[b] = prompt ? 0 : lengths[b] + (int64_t)1 - p->s.queries;
        now[b] = past[b] + p->s.queries;
        if (past[b] < 0 || past[b] > p->past || now[b] > p->s.keys)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "operator 'GroupQueryAttention': sequence %lld has seqlens_k %d: with "
                "%lld new tokens, that does not match a past of %lld and a total of %lld",
                (long long)b, lengths[b], (long long)p->s.queries, (long long)p->past,
                (long long)p->s.keys);
    }
    return NULL;
}

static int64_t position(const query_plan *p, int64_t image, int64_t token) {
    const kelp_tensor *at = kelp_ops_in(p->args, POSITIONS);
    if (at != NULL)
        return ((const int64_t *)at->data)[image * p->s.queries + token];
    return p->past_counts[image] + token;
}

static kelp_status *check_positions(const query_plan *p) {
    int64_t rows = p->args->inputs[COSINES]->shape[0];
    for (int64_t b = 0; b < p->s.batch; b++)
        for (int64_t i = 0; i < p->s.queries; i++)
            if (position(p, b, i) < 0 || position(p, b, i) >= rows)
                return KELP_ERROR(KELP_INVALID_ARGUMENT,
                                  "operator 'GroupQueryAttention': position %lld is outside the "
                                  "%lld rows of angles",
                                  (long long)position(p, b, i), (long long)rows);
    return NULL;
}

/* Rotates the new rows of [batch, heads, rows, size] in place. */
static void rotate(const query_plan *p, float *x, int64_t heads, int64_t rows, bool after_past) {
    int64_t size = p->s.size;
    for (int64_t at = 0; at < p->s.batch * heads; at++) {
        int64_t image = at / heads;
        float *row = x + (at * rows + (after_past ? p->past_counts[image] : 0)) * size;
        for (int64_t i = 0; i < p->s.queries; i++, row += size) {
            int64_t angles = (image * p->s.queries + i) * p->half;
            kelp_rotary_row(row, row, size, p->cosines + angles, p->sines + angles, p->half,
                            p->interleaved);
        }
    }
}

/* Loads the angles of each token, [batch * queries, half], cosines before sines. */
static void load_angles(query_plan *p) {
    const kelp_tensor *c = p->args->inputs[COSINES], *s = p->args->inputs[SINES];
    float *cosines = kelp_ops_scratch_at(p->args, p->angles);
    float *sines = cosines + p->s.batch * p->s.queries * p->half;
    p->cosines = cosines;
    p->sines = sines;
    for (int64_t at = 0; at < p->s.batch * p->s.queries; at++) {
        int64_t row = position(p, at / p->s.queries, at % p->s.queries) * p->half;
        kelp_math_load_tensor(c, row, p->half, cosines + at * p->half);
        kelp_math_load_tensor(s, row, p->half, sines + at * p->half);
    }
}

static void make_queries(query_plan *p, const void *data, int64_t width, kelp_sdpa *s) {
    kelp_heads h = {.batch = s->batch,
                    .heads = s->heads,
                    .fresh = s->queries,
                    .rows = s->queries,
                    .size = s->size,
                    .from = {data, s->queries * width, s->size, width},
                    .from_dtype = p->args->inputs[QUERY]->dtype,
                    .to = kelp_ops_scratch_at(p->args, p->q_copy)};
    s->q = h.from;
    if (!p->rotary)
        return;
    kelp_heads_gather(p->args->env, &h, &s->q);
    rotate(p, h.to, s->heads, s->queries, false);
}

static void make_cache(query_plan *p, int32_t index, const void *data, int64_t width,
                       kelp_sdpa_view *out) {
    const kelp_op_args *args = p->args;
    kelp_tensor *present = kelp_ops_out(args, 1 + index);
    bool straight = present != NULL && present->dtype == KELP_F32;
    kelp_heads h = {.batch = p->s.batch,
                    .heads = p->kv_heads,
                    .fresh = p->s.queries,
                    .rows = p->rows,
                    .size = p->s.size,
                    .from = {data, p->s.queries * width, p->s.size, width},
                    .from_dtype = args->inputs[QUERY]->dtype,
                    .old = kelp_ops_in(args, PAST_KEY + index),
                    .old_rows = p->past,
                    .past_counts = p->past_counts};
    h.to = straight ? present->data : kelp_ops_scratch_at(args, p->kv_copies[index]);
    kelp_heads_gather(args->env, &h, out);
    if (index == 0 && p->rotary)
        rotate(p, h.to, p->kv_heads, p->rows, true);
    if (present != NULL && !straight)
        kelp_ops_store_f32(args->env, h.to, present);
}

static kelp_status *query_invoke(const void *state, kelp_op_args *args) {
    query_plan *p = args->plan;
    kelp_sdpa s = p->s;
    int64_t *past = kelp_ops_scratch_at(args, p->counts), *now = past + s.batch;
    int64_t q_width = s.heads * s.size, kv_width = p->kv_heads * s.size;
    size_t element = kelp_ops_element_bytes(args->inputs[QUERY]->dtype);
    const char *in[3];
    (void)state;
    KELP_ASSERT(s.batch == args->inputs[QUERY]->shape[0] && p->rows >= s.keys);
    KELP_ASSERT(s.heads == s.group * p->kv_heads && s.keys >= s.queries);
    p->args = args;
    p->past_counts = past;
    KELP_TRY(count_keys(args, p, past, now));
    if (p->rotary) {
        KELP_TRY(check_positions(p));
        load_angles(p);
    }
    for (int32_t i = 0; i < 3; i++)
        in[i] = kelp_ops_in(args, i) != NULL ? args->inputs[i]->data : NULL;
    if (p->packed) {
        in[KEY] = in[QUERY] + (size_t)q_width * element;
        in[VALUE] = in[KEY] + (size_t)kv_width * element;
        q_width = kv_width = q_width + 2 * kv_width;
    }
    make_queries(p, in[QUERY], q_width, &s);
    make_cache(p, 0, in[KEY], kv_width, &s.k);
    make_cache(p, 1, in[VALUE], kv_width, &s.v);
    s.offsets = past;
    s.key_counts = now;
    if (kelp_ops_in(args, SINKS) != NULL) {
        float *sinks = kelp_ops_scratch_at(args, p->sinks);
        kelp_math_load_tensor(args->inputs[SINKS], 0, s.heads, sinks);
        s.sinks = sinks;
    }
    s.scores = kelp_ops_out(args, 3) != NULL ? args->outputs[3]->data : NULL;
    s.scores_dtype = s.y_dtype;
    kelp_heads_bias_set(args, ADDED, &s);
    s.scratch = kelp_ops_scratch_at(args, p->scratch);
    s.y = (kelp_sdpa_view){args->outputs[0]->data, s.queries * s.heads * s.size, s.size,
                           s.heads * s.size};
    kelp_sdpa_run(args->env, &s);
    return NULL;
}
KELP_KERNEL(MsGroupQueryAttention, 0, sizeof(query_plan), 0, query_reshape, query_invoke);
