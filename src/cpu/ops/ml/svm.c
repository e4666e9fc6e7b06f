/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SVMClassifier, SVMRegressor. Probabilities are Platt's sigmoid of each pair of classes, combined
 * by pairwise coupling. Source: ONNX operator specification; Wu, Lin, Weng, "Probability Estimates
 * for Multi-class Classification by Pairwise Coupling", 2004, second method.
 */
#include "base/assert.h"
#include "cpu/ops/ml/ml.h"

#include <math.h>

typedef enum kernel_type { LINEAR, POLY, RBF, SIGMOID } kernel_type;

typedef struct svm {
    kelp_ml_state head;
    const kelp_node *node;
    kernel_type kernel;
    double gamma, coef0, degree;
    const float *coefficients, *vectors, *rho, *prob_a, *prob_b;
    size_t coefficient_count, vector_values, rho_count, prob_count;
    const int64_t *per_class;
    size_t classes, vector_count;
    int64_t *starts; /* index of the first vector of each class */
    bool linear;     /* no vectors, but a row of coefficients for each class */
    bool one_class, positive;
    kelp_ml_labels labels;
    kelp_ml_transform transform;
} svm;

/* ---- create ---- */
static kelp_status *read_common(svm *s, const kelp_node *node) {
    static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    const char *name = kelp_node_attr_string(node, "kernel_type", "LINEAR", NULL);
    const float *params = NULL;
    size_t found = 0, count = kelp_node_attr_f32s(node, "kernel_params", &params);
    while (found < 4 && strcmp(names[found], name) != 0)
        found++;
    if (found == 4)
        return KELP_ML_ERROR(node, "kernel_type: expected LINEAR, POLY, RBF or SIGMOID, found '%s'",
                             name);
    if (count != 0 && count != 3)
        return KELP_ML_ERROR(node, "kernel_params: expected gamma, coef0, degree; found %zu values",
                             count);
    s->kernel = (kernel_type)found;
    if (count == 3) {
        s->gamma = (double)params[0];
        s->coef0 = (double)params[1];
        s->degree = (double)params[2];
    }
    s->node = node;
    s->coefficient_count = kelp_node_attr_f32s(node, "coefficients", &s->coefficients);
    s->vector_values = kelp_node_attr_f32s(node, "support_vectors", &s->vectors);
    s->rho_count = kelp_node_attr_f32s(node, "rho", &s->rho);
    if (s->rho_count == 0 || s->coefficient_count == 0)
        return KELP_ML_ERROR(node, "expected rho and coefficients, found %zu and %zu", s->rho_count,
                             s->coefficient_count);
    return kelp_ml_transform_read(node, &s->transform);
}

static kelp_status *read_regressor(svm *s, const kelp_node *node) {
    KELP_TRY(read_common(s, node));
    int64_t count = kelp_node_attr_i64(node, "n_supports", 0);
    s->one_class = kelp_node_attr_i64(node, "one_class", 0) != 0;
    if (count < 0 || (count > 0 && ((size_t)count != s->coefficient_count ||
                                    s->vector_values % (size_t)count != 0)))
        return KELP_ML_ERROR(node,
                             "n_supports is inconsistent: found %lld vectors, %zu coefficients and "
                             "%zu support values",
                             (long long)count, s->coefficient_count, s->vector_values);
    s->vector_count = (size_t)count;
    s->linear = count == 0;
    if (s->linear)
        s->kernel = LINEAR;
    return NULL;
}

static kelp_status *read_classifier(svm *s, const kelp_node *node) {
    KELP_TRY(read_common(s, node));
    KELP_TRY(kelp_ml_labels_read(node, "classlabels_strings", "classlabels_ints", &s->labels));
    s->prob_count = kelp_node_attr_f32s(node, "prob_a", &s->prob_a);
    size_t b = kelp_node_attr_f32s(node, "prob_b", &s->prob_b);
    size_t per_class = kelp_node_attr_i64s(node, "vectors_per_class", &s->per_class);
    s->classes = s->labels.count;
    s->linear = per_class == 0;
    s->positive = true;
    for (size_t i = 0; i < s->coefficient_count; i++)
        s->positive = s->positive && s->coefficients[i] >= 0;
    if (s->linear) {
        s->kernel = LINEAR;
        if (s->coefficient_count % s->classes != 0)
            return KELP_ML_ERROR(node,
                                 "coefficients: expected a multiple of %zu classes, found %zu",
                                 s->classes, s->coefficient_count);
        return NULL;
    }
    s->starts = KELP_ARENA_ARRAY(&s->head.arena, per_class + 1, int64_t);
    if (s->starts == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < per_class; i++) {
        if (s->per_class[i] < 0 || s->per_class[i] > INT32_MAX)
            return KELP_ML_ERROR(node, "vectors_per_class[%zu] is out of range: found %lld", i,
                                 (long long)s->per_class[i]);
        s->starts[i] = (int64_t)s->vector_count;
        s->vector_count += (size_t)s->per_class[i];
    }
    size_t pairs = s->classes * (s->classes - 1) / 2;
    if (per_class != s->classes || s->classes < 2 || s->vector_count == 0 ||
        s->vector_values % s->vector_count != 0 ||
        s->coefficient_count != s->vector_count * (s->classes - 1) || s->rho_count != pairs ||
        (s->prob_count != 0 && s->prob_count != pairs) || b != s->prob_count)
        return KELP_ML_ERROR(
            node,
            "the attributes are inconsistent: found %zu classes, %zu vectors, %zu support values, "
            "%zu coefficients, %zu rho, %zu prob_a and %zu prob_b",
            s->classes, s->vector_count, s->vector_values, s->coefficient_count, s->rho_count,
            s->prob_count, b);
    return NULL;
}

#define CREATE(name, read)                                                                      \
    static kelp_status *name(const kelp_node *node, const kelp_op_env *env, void **out_state) { \
        svm *s = NULL;                                                                          \
        KELP_TRY(kelp_ml_state_create(env, sizeof *s, &s));                                     \
        kelp_status *status = read(s, node);                                                    \
        if (status != NULL)                                                                     \
            kelp_ml_state_destroy(s, kelp_op_env_allocator(env));                               \
        else                                                                                    \
            *out_state = s;                                                                     \
        return status;                                                                          \
    }
CREATE(regressor_create, read_regressor)
CREATE(classifier_create, read_classifier)

/* ---- kernels of vectors ---- */
static double kernel_dot(const svm *s, const double *x, const float *v, int64_t columns) {
    double sum = 0;
    if (s->kernel == RBF) {
        for (int64_t i = 0; i < columns; i++)
            sum += (x[i] - (double)v[i]) * (x[i] - (double)v[i]);
        return exp(-s->gamma * sum);
    }
    for (int64_t i = 0; i < columns; i++)
        sum += x[i] * (double)v[i];
    if (s->kernel == POLY)
        return pow(s->gamma * sum + s->coef0, s->degree);
    return s->kernel == SIGMOID ? tanh(s->gamma * sum + s->coef0) : sum;
}

static kelp_status *check_columns(const svm *s, int64_t columns, size_t rows_of_values) {
    size_t values = s->linear ? s->coefficient_count : s->vector_values;
    if (rows_of_values == 0 || values != rows_of_values * (size_t)columns)
        return KELP_ML_ERROR(s->node,
                             "input 0 has the wrong number of columns: expected %zu, found %lld",
                             rows_of_values ? values / rows_of_values : 0, (long long)columns);
    return NULL;
}

/* ---- SVMRegressor ---- */
static kelp_status *regressor_reshape(const void *state, kelp_op_args *args) {
    const svm *s = state;
    int64_t count, columns;
    size_t offset;
    KELP_TRY(kelp_ops_check(args, 1));
    KELP_TRY(kelp_ml_rows(args, args->inputs[0], &count, &columns));
    KELP_TRY(check_columns(s, columns, s->linear ? 1 : s->vector_count));
    KELP_TRY(kelp_ops_scratch(args, columns + 1, sizeof(double), &offset));
    return kelp_ops_set(args, 0, KELP_F32, 2, (const int64_t[]){count, 1});
}

static kelp_status *regressor_invoke(const void *state, kelp_op_args *args) {
    const svm *s = state;
    const kelp_tensor *x = args->inputs[0];
    int64_t columns = x->shape[x->rank - 1];
    double *row = args->scratch;
    KELP_ASSERT(s->linear ? s->vector_count == 0 : s->kernel <= SIGMOID);
    for (int64_t r = 0; r < args->outputs[0]->shape[0] && !kelp_op_env_cancelled(args->env); r++) {
        double sum = (double)s->rho[0];
        kelp_ml_read_row(x, r, columns, row);
        if (s->linear)
            sum += kernel_dot(s, row, s->coefficients, columns);
        for (size_t v = 0; v < s->vector_count; v++)
            sum += (double)s->coefficients[v] *
                   kernel_dot(s, row, s->vectors + v * (size_t)columns, columns);
        if (s->one_class)
            sum = sum > 0 ? 1 : -1;
        ((float *)args->outputs[0]->data)[r] = (float)sum;
    }
    return NULL;
}

/* ---- SVMClassifier ---- */
static size_t score_count(const svm *s) {
    if (s->linear || s->prob_count > 0)
        return s->classes;
    return s->classes > 2 ? s->classes * (s->classes - 1) / 2 : 2;
}

/* Combines the pairwise probabilities p[k, k] to k probabilities. `q` is a buffer of k * k + k. */
static void couple(size_t k, const double *p, double *q, double *out) {
    double *qp = q + k * k;
    KELP_ASSERT(k >= 2);
    for (size_t t = 0; t < k; t++) {
        out[t] = 1.0 / (double)k;
        q[t * k + t] = 0;
        for (size_t j = 0; j < k; j++)
            if (j != t) {
                q[t * k + t] += p[j * k + t] * p[j * k + t];
                q[t * k + j] = -p[j * k + t] * p[t * k + j];
            }
    }
    for (int iteration = 0; iteration < 100; iteration++) {
        double pqp = 0, worst = 0;
        for (size_t t = 0; t < k; t++) {
            qp[t] = 0;
            for (size_t j = 0; j < k; j++)
                qp[t] += q[t * k + j] * out[j];
            pqp += out[t] * qp[t];
        }
        for (size_t t = 0; t < k; t++)
            worst = fmax(worst, fabs(qp[t] - pqp));
        if (worst < 0.005 / (double)k)
            return;
        for (size_t t = 0; t < k; t++) {
            double diff = (-qp[t] + pqp) / q[t * k + t];
            out[t] += diff;
            pqp = (pqp + diff * (diff * q[t * k + t] + 2 * qp[t])) / (1 + diff) / (1 + diff);
            for (size_t j = 0; j < k; j++) {
                qp[j] = (qp[j] + diff * q[t * k + j]) / (1 + diff);
                out[j] /= 1 + diff;
            }
        }
    }
}

/* The arrays of one row in scratch memory. */
typedef struct svm_buffers {
    double *row, *kernels, *pairs, *votes, *p, *q, *scores;
} svm_buffers;

static size_t buffer_doubles(const svm *s, int64_t columns) {
    size_t k = s->classes;
    return (size_t)columns + s->vector_count + k * k + k + k * k + k * k + k + k * k + 4;
}

static svm_buffers buffers_of(const svm *s, int64_t columns, double *at) {
    size_t k = s->classes;
    svm_buffers r = {.row = at};
    r.kernels = r.row + columns;
    r.pairs = r.kernels + s->vector_count;
    r.votes = r.pairs + k * k;
    r.p = r.votes + k;
    r.q = r.p + k * k;
    r.scores = r.q + k * k + k;
    KELP_ASSERT((size_t)(r.scores - at) + k * k < buffer_doubles(s, columns));
    return r;
}

static void run_pairs(const svm *s, const svm_buffers *r, int64_t columns) {
    size_t n = 0;
    for (size_t v = 0; v < s->vector_count; v++)
        r->kernels[v] = kernel_dot(s, r->row, s->vectors + v * (size_t)columns, columns);
    KELP_ASSERT(!s->linear && s->rho_count == s->classes * (s->classes - 1) / 2);
    memset(r->votes, 0, s->classes * sizeof *r->votes);
    for (size_t i = 0; i + 1 < s->classes; i++)
        for (size_t j = i + 1; j < s->classes; j++, n++) {
            double sum = (double)s->rho[n];
            for (int64_t k = s->starts[i]; k < s->starts[i] + s->per_class[i]; k++)
                sum += (double)s->coefficients[(int64_t)(s->vector_count * (j - 1)) + k] *
                       r->kernels[k];
            for (int64_t k = s->starts[j]; k < s->starts[j] + s->per_class[j]; k++)
                sum += (double)s->coefficients[(int64_t)(s->vector_count * i) + k] * r->kernels[k];
            r->pairs[n] = sum;
            r->votes[sum > 0 ? i : j]++;
        }
}

static void probabilities(const svm *s, const svm_buffers *r) {
    size_t k = s->classes, n = 0;
    for (size_t i = 0; i + 1 < k; i++)
        for (size_t j = i + 1; j < k; j++, n++) {
            double value = r->pairs[n] * (double)s->prob_a[n] + (double)s->prob_b[n];
            double v = 1.0 - kelp_ml_logistic(value); /* 1 / (1 + exp(value)) */
            v = fmin(fmax(v, 1.0e-7), 1 - 1.0e-7);
            r->p[i * k + j] = v;
            r->p[j * k + i] = 1 - v;
        }
    couple(k, r->p, r->q, r->scores);
}

static size_t largest(const double *values, size_t count) {
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (values[i] > values[best])
            best = i;
    return best;
}

/* Returns the class, and computes r->scores[score_count(s)]. */
static size_t classify(const svm *s, const svm_buffers *r, int64_t columns) {
    size_t class;
    if (s->linear) {
        for (size_t i = 0; i < s->classes; i++)
            r->scores[i] = (double)s->rho[0] +
                           kernel_dot(s, r->row, s->coefficients + i * (size_t)columns, columns);
        class = largest(r->scores, s->classes);
        kelp_ml_transform_apply(s->transform, r->scores, s->classes);
        return class;
    }
    run_pairs(s, r, columns);
    if (s->prob_count > 0) {
        probabilities(s, r);
        class = largest(r->votes, s->classes);
        kelp_ml_transform_apply(s->transform, r->scores, s->classes);
        return class;
    }
    class = largest(r->votes, s->classes);
    if (s->classes > 2) {
        memcpy(r->scores, r->pairs, score_count(s) * sizeof *r->scores);
        kelp_ml_transform_apply(s->transform, r->scores, score_count(s));
        return class;
    }
    kelp_ml_second_score(s->transform, s->transform == KELP_ML_NONE, r->pairs[0], r->scores);
    return class;
}

static kelp_status *classifier_reshape(const void *state, kelp_op_args *args) {
    const svm *s = state;
    int64_t count, columns;
    size_t offset;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    KELP_TRY(kelp_ml_rows(args, args->inputs[0], &count, &columns));
    KELP_TRY(check_columns(s, columns, s->linear ? s->classes : s->vector_count));
    KELP_TRY(kelp_ops_scratch(args, (int64_t)buffer_doubles(s, columns), sizeof(double), &offset));
    KELP_TRY(kelp_ops_set(args, 0, s->labels.strings != NULL ? KELP_STRING : KELP_I64, 1, &count));
    return kelp_ops_set(args, 1, KELP_F32, 2, (const int64_t[]){count, (int64_t)score_count(s)});
}

static kelp_status *classifier_invoke(const void *state, kelp_op_args *args) {
    const svm *s = state;
    const kelp_tensor *x = args->inputs[0];
    kelp_tensor *y = kelp_ops_out(args, 0), *z = kelp_ops_out(args, 1);
    int64_t columns = x->shape[x->rank - 1], count = x->rank == 2 ? x->shape[0] : 1;
    svm_buffers buffers = buffers_of(s, columns, args->scratch);
    size_t scores = score_count(s);
    for (int64_t r = 0; r < count && !kelp_op_env_cancelled(args->env); r++) {
        kelp_ml_read_row(x, r, columns, buffers.row);
        size_t class = classify(s, &buffers, columns);
        if (y != NULL)
            kelp_ml_label_write(&s->labels, class, y, r);
        for (size_t i = 0; z != NULL && i < scores; i++)
            ((float *)z->data)[r * (int64_t)scores + (int64_t)i] = (float)buffers.scores[i];
    }
    return NULL;
}

#define SVM_KERNEL(name, prefix)                                                  \
    const kelp_op_kernel kelp_op_##name = {.struct_size = sizeof(kelp_op_kernel), \
                                           .create = prefix##_create,             \
                                           .destroy = kelp_ml_state_destroy,      \
                                           .reshape = prefix##_reshape,           \
                                           .invoke = prefix##_invoke}
SVM_KERNEL(SVMRegressor, regressor);
SVM_KERNEL(SVMClassifier, classifier);
