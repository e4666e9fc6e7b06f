/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ai.onnx.preview FlexAttention: attention whose scores and probabilities pass through subgraphs of
 * the node. A subgraph processes the scores of all heads at once. Source: ONNX operator
 * specification.
 */
#include "base/assert.h"
#include "cpu/kernels/attention/sdpa.h"
#include "cpu/ops/control/control.h"
#include "cpu/ops/converted.h"
#include "runtime/opset/body.h"
#include "tensor/real.h"

#include <math.h>

typedef struct flex {
    const kelp_op_env *env;
    const kelp_node *node;
    const kelp_tensor *const *inputs;
    kelp_sdpa s;
    bool is_f64; /* computed in double, else in float */
    void *scores;
} flex;

/* Allocates `count` elements of the type that the node computes in, for this run. */
static void *elements(const flex *f, int64_t count) {
    size_t bytes;
    KELP_ASSERT(count >= 0);
    if (!kelp_size_mul((size_t)count, f->is_f64 ? sizeof(double) : sizeof(float), &bytes))
        return NULL;
    return kelp_op_env_alloc(f->env, bytes + 1);
}

static void load_all(const flex *f, const kelp_tensor *from, void *to) {
    if (f->is_f64)
        kelp_real_load_f64(from->dtype, from->data, 0, kelp_tensor_elements(from), to);
    else
        kelp_ops_load_f32(f->env, from, to);
}

static void store_all(const flex *f, const void *from, kelp_tensor *to) {
    if (f->is_f64)
        kelp_real_store_f64(to->dtype, to->data, 0, kelp_tensor_elements(to), from);
    else
        kelp_ops_store_f32(f->env, from, to);
}

/* Multiplies `x` by `factor` and rounds to the type of the queries. */
static void scale_all(const flex *f, void *x, int64_t count, double factor) {
    for (int64_t i = 0; i < count; i++) {
        if (f->is_f64) {
            double value = ((double *)x)[i] * factor;
            ((double *)x)[i] =
                f->s.round == KELP_F64 ? value : (double)kelp_real_round(f->s.round, (float)value);
        } else {
            ((float *)x)[i] = kelp_real_round(f->s.round, ((float *)x)[i] * (float)factor);
        }
    }
}

static kelp_status *read_shapes(flex *f) {
    const kelp_tensor *q = f->inputs[0], *k = f->inputs[1], *v = f->inputs[2];
    kelp_sdpa *s = &f->s;
    bool good = q->rank == 4 && k->rank == 4 && v->rank == 4 && k->shape[0] == q->shape[0] &&
                v->shape[0] == q->shape[0] && k->shape[1] > 0 && v->shape[1] == k->shape[1] &&
                q->shape[1] % k->shape[1] == 0 && k->shape[2] == v->shape[2] &&
                k->shape[3] == q->shape[3] && kelp_ops_is_float(q->dtype) && k->dtype == q->dtype &&
                v->dtype == q->dtype;
    if (!good)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "node '%s' (FlexAttention): queries, keys and values must have one float type and "
            "matching shapes [batch, heads, length, size]",
            kelp_node_name(f->node));
    s->batch = q->shape[0];
    s->heads = q->shape[1];
    s->group = KELP_MAX((int64_t)1, q->shape[1] / k->shape[1]);
    s->queries = q->shape[2];
    s->size = q->shape[3];
    s->keys = k->shape[2];
    s->v_size = v->shape[3];
    s->left = s->right = -1;
    return NULL;
}

static kelp_status *read_types(flex *f) {
    kelp_sdpa *s = &f->s;
    kelp_dtype dtype = f->inputs[0]->dtype;
    kelp_dtype usual = dtype == KELP_F64 ? KELP_F64 : KELP_F32;
    s->softmax_round = kelp_ops_attr_dtype(f->node, "softmax_precision", usual);
    if (!kelp_ops_is_float(s->softmax_round))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "node '%s' (FlexAttention): softmax_precision must be a float type",
                          kelp_node_name(f->node));
    f->is_f64 = dtype == KELP_F64 || s->softmax_round == KELP_F64;
    s->compute = f->is_f64 ? KELP_F64 : KELP_F32;
    s->q_dtype = s->y_dtype = s->round = dtype;
    float scale = kelp_node_attr_f32(f->node, "scale", (float)(1.0 / sqrt((double)s->size)));
    s->q_scale = kelp_real_round(dtype, sqrtf(scale));
    return NULL;
}

/* Passes scores or probabilities through the subgraph `name`, if the node has it. */
static kelp_status *modify(const flex *f, const char *name) {
    int64_t shape[4] = {f->s.batch, f->s.heads, f->s.queries, f->s.keys};
    if (kelp_node_attr_block(f->node, name) == NULL)
        return NULL;
    kelp_body *body = NULL;
    KELP_TRY(kelp_env_body(f->env, f->node, name, &body));
    size_t own = kelp_node_own_inputs(f->node), all = kelp_node_input_count(f->node);
    KELP_ASSERT(own <= all);
    if (kelp_block_input_count(body->block) != 1 + all - own ||
        kelp_block_output_count(body->block) != 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "node '%s' (FlexAttention): %s must have one input and one output",
                          kelp_node_name(f->node), name);
    kelp_tensor in, out;
    KELP_TRY(kelp_tensor_init(&in, f->s.softmax_round, 4, shape, NULL));
    in.data = kelp_op_env_alloc(f->env, kelp_tensor_bytes(&in) + 1);
    if (in.data == NULL)
        return kelp_status_oom();
    store_all(f, f->scores, &in);
    const kelp_tensor **inputs = kelp_op_env_alloc(f->env, (1 + all - own) * sizeof *inputs);
    if (inputs == NULL)
        return kelp_status_oom();
    inputs[0] = &in;
    for (size_t i = own; i < all; i++) /* captured values */
        inputs[1 + i - own] = f->inputs[i];
    out = (kelp_tensor){.data = NULL};
    KELP_TRY(kelp_body_run(body, inputs, &out));
    if (out.dtype != in.dtype || out.rank != 4 || memcmp(out.shape, shape, sizeof shape) != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "node '%s' (FlexAttention): %s changes the type or the shape",
                          kelp_node_name(f->node), name);
    load_all(f, &out, f->scores);
    return NULL;
}

static kelp_status *make_views(flex *f, kelp_tensor *y) {
    const kelp_tensor *q = f->inputs[0], *k = f->inputs[1], *v = f->inputs[2];
    kelp_sdpa *s = &f->s;
    void *keys = elements(f, kelp_tensor_elements(k));
    void *values = elements(f, kelp_tensor_elements(v));
    size_t bytes;
    if (keys == NULL || values == NULL || !kelp_sdpa_plan(s, kelp_op_env_threads(f->env), &bytes) ||
        (s->scratch = kelp_op_env_alloc(f->env, bytes)) == NULL)
        return kelp_status_oom();
    load_all(f, k, keys);
    scale_all(f, keys, kelp_tensor_elements(k), (double)s->q_scale);
    load_all(f, v, values);
    int64_t kv_heads = k->shape[1];
    s->q =
        (kelp_sdpa_view){q->data, s->heads * s->queries * s->size, s->queries * s->size, s->size};
    s->k = (kelp_sdpa_view){keys, kv_heads * s->keys * s->size, s->keys * s->size, s->size};
    s->v = (kelp_sdpa_view){values, kv_heads * s->keys * s->v_size, s->keys * s->v_size, s->v_size};
    s->y = (kelp_sdpa_view){y->data, s->heads * s->queries * s->v_size, s->queries * s->v_size,
                            s->v_size};
    return NULL;
}

static kelp_status *attend(flex *f, kelp_tensor *y) {
    kelp_sdpa *s = &f->s;
    int64_t scores;
    if (!kelp_shape_elements(4, (int64_t[4]){s->batch, s->heads, s->queries, s->keys}, &scores))
        return kelp_status_oom();
    KELP_TRY(make_views(f, y));
    f->scores = elements(f, scores);
    if (f->scores == NULL)
        return kelp_status_oom();
    kelp_sdpa_run_scores(f->env, s, f->scores);
    if (kelp_op_env_cancelled(f->env))
        return NULL;
    KELP_TRY(modify(f, "score_mod"));
    kelp_sdpa_run_softmax(f->env, s, f->scores);
    KELP_TRY(modify(f, "prob_mod"));
    kelp_sdpa_run_values(f->env, s, f->scores);
    return NULL;
}

kelp_status *kelp_control_flex(const kelp_op_env *env, const kelp_node *node,
                               const kelp_tensor *const *inputs, kelp_tensor *outputs) {
    flex f = {.env = env, .node = node, .inputs = inputs};
    if (kelp_node_input_count(node) < 3 || inputs[0] == NULL || inputs[1] == NULL ||
        inputs[2] == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "node '%s' (FlexAttention) needs queries, keys and values",
                          kelp_node_name(node));
    KELP_TRY(read_shapes(&f));
    KELP_TRY(read_types(&f));
    int64_t shape[4] = {f.s.batch, f.s.heads, f.s.queries, f.s.v_size};
    KELP_TRY(kelp_tensor_init(&outputs[0], inputs[0]->dtype, 4, shape, NULL));
    outputs[0].data = kelp_op_env_alloc(env, kelp_tensor_bytes(&outputs[0]) + 1);
    if (outputs[0].data == NULL)
        return kelp_status_oom();
    return attend(&f, &outputs[0]);
}
