/* SPDX-License-Identifier: Apache-2.0 */
/* Det; com.microsoft Inverse and CDist. Source: ONNX operator specification; ONNX Runtime,
 * ContribOperators.md; Gauss-Jordan elimination with partial pivoting. */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

#include <math.h>

/* Checks that the input is a batch of square matrices of floats. */
static kelp_status *check_square(const kelp_op_args *args) {
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (!kelp_ops_is_float(x->dtype))
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank < 2 || x->shape[x->rank - 1] != x->shape[x->rank - 2])
        return kelp_ops_bad_shapes(args, x, NULL, "expected square matrices");
    return NULL;
}

/* ---- Inverse ---- */
typedef struct inverse_plan {
    int64_t n, count;
    size_t matrix; /* offset of the scratch memory: for each worker [n, 2n] doubles */
    const kelp_op_args *args;
} inverse_plan;

static kelp_status *inverse_reshape(const void *state, kelp_op_args *args) {
    inverse_plan *p = args->plan;
    int64_t both;
    (void)state;
    KELP_TRY(check_square(args));
    const kelp_tensor *x = args->inputs[0];
    p->n = x->shape[x->rank - 1];
    p->count = kelp_ops_product(x->shape, 0, x->rank - 2);
    if (!kelp_i64_mul(2 * p->n, p->n, &both))
        return kelp_ops_bad_shapes(args, x, NULL, "the matrices are too large");
    KELP_TRY(kelp_ops_scratch(args, both, sizeof(double) * (size_t)kelp_op_env_threads(args->env),
                              &p->matrix));
    return kelp_ops_set_like(args, 0, x);
}

static void swap_rows(double *a, double *b, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        double held = a[i];
        a[i] = b[i];
        b[i] = held;
    }
}

/* Transforms [matrix, identity] to [identity, inverse]. A singular matrix results in infinities and
 * NaN. */
static void eliminate(const kelp_op_env *env, double *a, int64_t n) {
    for (int64_t c = 0; c < n && !kelp_op_env_cancelled(env); c++) {
        int64_t best = c;
        for (int64_t r = c + 1; r < n; r++)
            if (fabs(a[r * 2 * n + c]) > fabs(a[best * 2 * n + c]))
                best = r;
        if (best != c)
            swap_rows(a + best * 2 * n, a + c * 2 * n, 2 * n);
        double pivot = a[c * 2 * n + c];
        for (int64_t k = 0; k < 2 * n; k++)
            a[c * 2 * n + k] /= pivot;
        for (int64_t r = 0; r < n; r++) {
            double factor = a[r * 2 * n + c];
            for (int64_t k = c; k < 2 * n && r != c; k++)
                a[r * 2 * n + k] -= factor * a[c * 2 * n + k];
        }
    }
}

static void inverse_range(void *userp, int64_t begin, int64_t end, int worker) {
    const inverse_plan *p = userp;
    int64_t n = p->n;
    double *a = (double *)kelp_ops_scratch_at(p->args, p->matrix) + worker * 2 * n * n;
    for (int64_t m = begin; m < end; m++) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                a[i * 2 * n + j] = kelp_ops_read_f64(p->args->inputs[0], (m * n + i) * n + j);
                a[i * 2 * n + n + j] = i == j;
            }
        eliminate(p->args->env, a, n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                kelp_tensor_set_f64(p->args->outputs[0], (m * n + i) * n + j, a[i * 2 * n + n + j]);
    }
}

static kelp_status *inverse_invoke(const void *state, kelp_op_args *args) {
    inverse_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->count * p->n * p->n == kelp_tensor_elements(args->inputs[0]));
    p->args = args;
    int64_t work = KELP_MAX((int64_t)1, p->n * p->n * p->n);
    if (p->n > 0)
        kelp_op_parallel(args->env, p->count, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, work),
                         inverse_range, p);
    return NULL;
}
KELP_KERNEL(MsInverse, KELP_OP_INPLACE_0, sizeof(inverse_plan), 0, inverse_reshape, inverse_invoke);

/* ---- CDist ---- */
static kelp_status *metric_of(const kelp_node *node, bool *out_root) {
    const char *metric = kelp_node_attr_string(node, "metric", "sqeuclidean", NULL);
    *out_root = strcmp(metric, "euclidean") == 0;
    if (!*out_root && strcmp(metric, "sqeuclidean") != 0)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "operator 'CDist': metric '%s' is not supported",
                          metric);
    return NULL;
}

static kelp_status *cdist_reshape(const void *state, kelp_op_args *args) {
    bool root;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *a = args->inputs[0], *b = args->inputs[1];
    KELP_TRY(metric_of(args->node, &root));
    if (!kelp_ops_is_float(a->dtype) || a->dtype != b->dtype)
        return kelp_ops_bad_type(args, b->dtype);
    if (a->rank != 2 || b->rank != 2 || a->shape[1] != b->shape[1])
        return kelp_ops_bad_shapes(args, a, b, "expected two matrices with rows of one length");
    return kelp_ops_set(args, 0, a->dtype, 2, (int64_t[2]){a->shape[0], b->shape[0]});
}

typedef struct cdist_job {
    const kelp_op_args *args;
    bool root;
} cdist_job;

static void cdist_range(void *userp, int64_t begin, int64_t end, int worker) {
    const cdist_job *job = userp;
    const kelp_tensor *a = job->args->inputs[0], *b = job->args->inputs[1];
    int64_t n = a->shape[1], columns = b->shape[0];
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < columns; j++) {
            double sum = 0;
            for (int64_t k = 0; k < n; k++) {
                double d = a->dtype == KELP_F32
                               ? (double)(((const float *)a->data)[i * n + k] -
                                          ((const float *)b->data)[j * n + k])
                               : kelp_ops_read_f64(a, i * n + k) - kelp_ops_read_f64(b, j * n + k);
                sum += d * d;
            }
            kelp_tensor_set_f64(job->args->outputs[0], i * columns + j,
                                job->root ? sqrt(sum) : sum);
        }
}

static kelp_status *cdist_invoke(const void *state, kelp_op_args *args) {
    cdist_job job = {.args = args};
    (void)state;
    KELP_ASSERT(args->inputs[0]->shape[1] == args->inputs[1]->shape[1]);
    KELP_TRY(metric_of(args->node, &job.root));
    int64_t work = KELP_MAX((int64_t)1, args->inputs[0]->shape[1] * args->inputs[1]->shape[0]);
    kelp_op_parallel(args->env, args->inputs[0]->shape[0],
                     kelp_cpu_grain(KELP_GRAIN_ELEMENTS, work), cdist_range, &job);
    return NULL;
}
KELP_KERNEL(MsCDist, 0, 0, 0, cdist_reshape, cdist_invoke);

/* ---- Det: Gaussian elimination with partial pivoting ---- */
static kelp_status *det_reshape(const void *state, kelp_op_args *args) {
    size_t at;
    (void)state;
    KELP_TRY(check_square(args));
    const kelp_tensor *x = args->inputs[0];
    int64_t n = x->shape[x->rank - 1];
    KELP_TRY(kelp_ops_scratch(args, n * n, sizeof(double), &at));
    return kelp_ops_set(args, 0, x->dtype, x->rank - 2, x->shape);
}

static double determinant(const kelp_op_env *env, double *m, int64_t n) {
    double result = 1;
    for (int64_t k = 0; k < n && !kelp_op_env_cancelled(env); k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++) {
            double a = m[i * n + k], b = m[pivot * n + k];
            if ((a < 0 ? -a : a) > (b < 0 ? -b : b))
                pivot = i;
        }
        if (m[pivot * n + k] == 0)
            return 0;
        for (int64_t j = 0; pivot != k && j < n; j++) {
            double kept = m[k * n + j];
            m[k * n + j] = m[pivot * n + j];
            m[pivot * n + j] = kept;
        }
        result *= pivot != k ? -m[k * n + k] : m[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            double factor = m[i * n + k] / m[k * n + k];
            for (int64_t j = k; j < n; j++)
                m[i * n + j] -= factor * m[k * n + j];
        }
    }
    return result;
}

static kelp_status *det_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0];
    int64_t n = x->shape[x->rank - 1];
    (void)state;
    KELP_ASSERT(n == x->shape[x->rank - 2] && kelp_ops_is_float(x->dtype));
    for (int64_t at = 0; at < kelp_tensor_elements(args->outputs[0]); at++) {
        kelp_real_load_f64(x->dtype, x->data, at * n * n, n * n, args->scratch);
        double result = determinant(args->env, args->scratch, n);
        kelp_real_store_f64(x->dtype, args->outputs[0]->data, at, 1, &result);
    }
    return NULL;
}
KELP_KERNEL(Det, KELP_OP_SERIAL, 0, 0, det_reshape, det_invoke);
