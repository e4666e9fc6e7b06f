/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ai.onnx.preview FlexAttention: attention whose scores and probabilities pass through subgraphs of
 * the node. All heads' scores exist at once, since the subgraphs take them so. Source: ONNX
 * operator specification.
 */
#include "cpu/ops/control/control.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/ops/kernel.h"
#include "cpu/ops/wide.h"
#include "runtime/opset/body.h"

#include <math.h>

typedef struct flex {
    const kelp_op_env *env;
    const kelp_node *node;
    const kelp_tensor *const *inputs;
    int64_t batch, heads, group, queries, keys, size, v_size;
    kelp_dtype type, softmax_type;
    bool wide; /* computed in double, else in float */
    void *q, *k, *v, *scores, *y;
} flex;

static void *numbers(const flex *f, int64_t count) {
    size_t bytes;
    if (!kelp_size_mul((size_t)count, f->wide ? sizeof(double) : sizeof(float), &bytes))
        return NULL;
    return kelp_op_env_alloc(f->env, bytes + 1);
}

static void read_all(const flex *f, const kelp_tensor *from, void *to) {
    if (!f->wide) {
        kelp_ops_widen(f->env, from, to);
        return;
    }
    for (int64_t i = 0; i < kelp_tensor_elements(from); i++)
        ((double *)to)[i] = kelp_ops_read_f64(from, i);
}

static void write_all(const flex *f, const void *from, kelp_tensor *to) {
    if (!f->wide) {
        kelp_ops_narrow(f->env, from, to);
        return;
    }
    for (int64_t i = 0; i < kelp_tensor_elements(to); i++)
        kelp_ops_write_f64(to, i, ((const double *)from)[i]);
}

static double rounded(kelp_dtype dtype, double value) {
    return dtype == KELP_F64 ? value : (double)kelp_ops_round(dtype, (float)value);
}

static void scale_all(const flex *f, void *x, int64_t count, double factor) {
    for (int64_t i = 0; i < count; i++) {
        if (f->wide)
            ((double *)x)[i] = rounded(f->type, ((double *)x)[i] * factor);
        else
            ((float *)x)[i] = kelp_ops_round(f->type, ((float *)x)[i] * (float)factor);
    }
}

static kelp_status *read_shapes(flex *f) {
    const kelp_tensor *q = f->inputs[0], *k = f->inputs[1], *v = f->inputs[2];
    bool good = q->rank == 4 && k->rank == 4 && v->rank == 4 && k->shape[0] == q->shape[0] &&
                v->shape[0] == q->shape[0] && k->shape[1] > 0 && v->shape[1] == k->shape[1] &&
                q->shape[1] % k->shape[1] == 0 && k->shape[2] == v->shape[2] &&
                k->shape[3] == q->shape[3] && kelp_ops_is_float(q->dtype) && k->dtype == q->dtype &&
                v->dtype == q->dtype;
    if (!good)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "node '%s' (FlexAttention): queries, keys and values must be of one float "
            "type and fit as [batch, heads, length, size]",
            kelp_node_name(f->node));
    f->batch = q->shape[0];
    f->heads = q->shape[1];
    f->group = q->shape[1] / k->shape[1];
    f->queries = q->shape[2];
    f->size = q->shape[3];
    f->keys = k->shape[2];
    f->v_size = v->shape[3];
    f->type = q->dtype;
    kelp_dtype usual = f->type == KELP_F64 ? KELP_F64 : KELP_F32;
    f->softmax_type = kelp_ops_attr_dtype(f->node, "softmax_precision", usual);
    if (!kelp_ops_is_float(f->softmax_type))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "node '%s' (FlexAttention): softmax_precision must be a float type",
                          kelp_node_name(f->node));
    f->wide = f->type == KELP_F64 || f->softmax_type == KELP_F64;
    return NULL;
}

/* One head: C[m,n] = A[m,k] · B, B as [n,k] when turned, else [k,n]. */
static void product_f64(const double *a, const double *b, double *c, int64_t m, int64_t n,
                        int64_t k, bool turned) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += a[i * k + p] * (turned ? b[j * k + p] : b[p * n + j]);
            c[i * n + j] = sum;
        }
}

static void product_f32(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k,
                        bool turned) {
    const kelp_simd *simd = kelp_simd_get();
    kelp_gemm job = {.a = a, .b = b, .c = c, .m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n};
    for (int64_t i = 0; i < m && turned; i++)
        simd->dots(a + i * k, b, k, n, k, c + i * n);
    if (!turned)
        kelp_gemm_run_serial(simd, &job);
}

#define RUN_ROWS ((int64_t)64)

static int64_t runs_of(const flex *f) {
    return (f->queries + RUN_ROWS - 1) / RUN_ROWS;
}

typedef struct product_job {
    const flex *f;
    const void *a, *b;
    void *c;
    int64_t n, k;
    bool turned;
} product_job;

/* A range of runs of rows, one head's after the other's. */
static void product_range(void *userp, int64_t begin, int64_t end, int worker) {
    const product_job *job = userp;
    int64_t all = job->f->queries, runs = runs_of(job->f), n = job->n, k = job->k;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        int64_t h = at / runs, row = at % runs * RUN_ROWS, m = KELP_MIN(RUN_ROWS, all - row);
        int64_t kv = h / job->f->group; /* images lie side by side, so do their heads */
        row += h * all;
        if (job->f->wide)
            product_f64((const double *)job->a + row * k, (const double *)job->b + kv * n * k,
                        (double *)job->c + row * n, m, n, k, job->turned);
        else
            product_f32((const float *)job->a + row * k, (const float *)job->b + kv * n * k,
                        (float *)job->c + row * n, m, n, k, job->turned);
    }
}

/* Scores or probabilities through a subgraph, when the node has it. */
static kelp_status *modify(const flex *f, const char *name) {
    int64_t shape[4] = {f->batch, f->heads, f->queries, f->keys};
    if (kelp_node_attr_block(f->node, name) == NULL)
        return NULL;
    kelp_body *body = NULL;
    KELP_TRY(kelp_env_body(f->env, f->node, name, &body));
    size_t own = kelp_node_own_inputs(f->node), all = kelp_node_input_count(f->node);
    if (kelp_block_input_count(body->block) != 1 + all - own ||
        kelp_block_output_count(body->block) != 1)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "node '%s' (FlexAttention): %s must have one input and one output",
                          kelp_node_name(f->node), name);
    kelp_tensor in, out;
    KELP_TRY(kelp_tensor_init(&in, f->softmax_type, 4, shape, NULL));
    in.data = kelp_op_env_alloc(f->env, kelp_tensor_bytes(&in) + 1);
    if (in.data == NULL)
        return kelp_status_oom();
    write_all(f, f->scores, &in);
    const kelp_tensor **given = kelp_op_env_alloc(f->env, (1 + all - own) * sizeof *given);
    if (given == NULL)
        return kelp_status_oom();
    given[0] = &in;
    for (size_t i = own; i < all; i++)
        given[1 + i - own] = f->inputs[i];
    out = (kelp_tensor){.data = NULL};
    KELP_TRY(kelp_body_run(body, given, &out));
    if (out.dtype != in.dtype || out.rank != 4 || memcmp(out.shape, shape, sizeof shape) != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "node '%s' (FlexAttention): %s changes the type or the shape",
                          kelp_node_name(f->node), name);
    read_all(f, &out, f->scores);
    return NULL;
}

static void soften_row(const flex *f, double *x) {
    kelp_dtype t = f->softmax_type;
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < f->keys; j++)
        most = x[j] > most || isnan(x[j]) ? x[j] : most;
    for (int64_t j = 0; j < f->keys; j++)
        sum += x[j] = rounded(t, exp(rounded(t, x[j] - most)));
    sum = rounded(t, sum);
    for (int64_t j = 0; j < f->keys; j++)
        x[j] = rounded(t, x[j] / sum);
}

static kelp_status *soften(const flex *f) {
    int64_t rows = f->batch * f->heads * f->queries;
    double *row = kelp_op_env_alloc(f->env, (size_t)(f->keys + 1) * sizeof *row);
    if (row == NULL)
        return kelp_status_oom();
    for (int64_t i = 0; i < rows && !kelp_op_env_cancelled(f->env); i++) {
        if (f->softmax_type == KELP_F32 && !f->wide) {
            float *x = (float *)f->scores + i * f->keys;
            kelp_simd_get()->softmax(x, NULL, 1.0f, x, f->keys, false);
        } else if (f->wide) {
            soften_row(f, (double *)f->scores + i * f->keys);
        } else {
            float *x = (float *)f->scores + i * f->keys;
            for (int64_t j = 0; j < f->keys; j++)
                row[j] = (double)x[j];
            soften_row(f, row);
            for (int64_t j = 0; j < f->keys; j++)
                x[j] = (float)row[j];
        }
    }
    return NULL;
}

static kelp_status *attend(flex *f) {
    const kelp_tensor *q = f->inputs[0], *k = f->inputs[1], *v = f->inputs[2];
    int64_t rows = f->batch * f->heads * f->queries, scores;
    if (!kelp_shape_elements(2, (int64_t[2]){rows, f->keys}, &scores))
        return kelp_status_oom();
    f->q = numbers(f, kelp_tensor_elements(q));
    f->k = numbers(f, kelp_tensor_elements(k));
    f->v = numbers(f, kelp_tensor_elements(v));
    f->scores = numbers(f, scores);
    f->y = numbers(f, rows * f->v_size);
    if (f->q == NULL || f->k == NULL || f->v == NULL || f->scores == NULL || f->y == NULL)
        return kelp_status_oom();
    read_all(f, q, f->q);
    read_all(f, k, f->k);
    read_all(f, v, f->v);
    float scale = kelp_node_attr_f32(f->node, "scale", (float)(1.0 / sqrt((double)f->size)));
    double root = rounded(f->type, (double)sqrtf(scale));
    scale_all(f, f->q, kelp_tensor_elements(q), root);
    scale_all(f, f->k, kelp_tensor_elements(k), root);
    product_job job = {f, f->q, f->k, f->scores, f->keys, f->size, true};
    kelp_op_parallel(f->env, f->batch * f->heads * runs_of(f), 1, product_range, &job);
    if (kelp_op_env_cancelled(f->env))
        return NULL;
    scale_all(f, f->scores, scores, 1.0); /* rounds */
    KELP_TRY(modify(f, "score_mod"));
    KELP_TRY(soften(f));
    KELP_TRY(modify(f, "prob_mod"));
    job = (product_job){f, f->scores, f->v, f->y, f->v_size, f->keys, false};
    kelp_op_parallel(f->env, f->batch * f->heads * runs_of(f), 1, product_range, &job);
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
    KELP_TRY(attend(&f));
    int64_t shape[4] = {f.batch, f.heads, f.queries, f.v_size};
    KELP_TRY(kelp_tensor_init(&outputs[0], f.type, 4, shape, NULL));
    outputs[0].data = kelp_op_env_alloc(env, kelp_tensor_bytes(&outputs[0]) + 1);
    if (outputs[0].data == NULL)
        return kelp_status_oom();
    write_all(&f, f.y, &outputs[0]);
    return NULL;
}
