/* SPDX-License-Identifier: Apache-2.0 */
/* LinearClassifier, LinearRegressor, Scaler, Normalizer, Binarizer, Imputer. */
#include "base/assert.h"
#include "cpu/kernels/vector/vector_kernels.h"
#include "cpu/ops/ml/ml.h"

#include <math.h>

#define TARGETS 64 /* that are computed at a time */

/* ---- linear models ---- */
static kelp_status *linear_sizes(const kelp_op_args *args, size_t targets, int64_t columns) {
    const float *values = NULL;
    size_t coefficients = kelp_node_attr_f32s(args->node, "coefficients", &values);
    size_t intercepts = kelp_node_attr_f32s(args->node, "intercepts", &values);
    size_t expected = 0;
    if (!kelp_size_mul(targets, (size_t)columns, &expected) || coefficients != expected)
        return KELP_ML_ERROR(args->node,
                             "coefficients: expected %zu for %zu rows of %lld, found %zu", expected,
                             targets, (long long)columns, coefficients);
    if (intercepts != 0 && intercepts != targets)
        return KELP_ML_ERROR(args->node, "intercepts: expected %zu, found %zu", targets,
                             intercepts);
    return NULL;
}

static void linear_row(const kelp_node *node, const kelp_tensor *x, int64_t row, int64_t columns,
                       size_t targets, double *scores) {
    const float *coefficients = NULL, *intercepts = NULL;
    kelp_node_attr_f32s(node, "coefficients", &coefficients);
    size_t intercept_count = kelp_node_attr_f32s(node, "intercepts", &intercepts);
    KELP_ASSERT(intercept_count == 0 || intercept_count == targets);
    for (size_t t = 0; t < targets && x->dtype == KELP_F32; t += TARGETS) {
        const float *values = (const float *)x->data + row * columns;
        size_t count = KELP_MIN(targets - t, (size_t)TARGETS);
        float sums[TARGETS];
        kelp_vector_kernels_get()->dots(values, coefficients + (int64_t)t * columns, columns,
                                        (int64_t)count, columns, sums);
        for (size_t i = 0; i < count; i++)
            scores[t + i] = (double)sums[i] + (intercept_count > 0 ? (double)intercepts[t + i] : 0);
    }
    for (size_t t = 0; t < targets && x->dtype != KELP_F32; t++) {
        double sum = intercept_count > 0 ? (double)intercepts[t] : 0;
        for (int64_t i = 0; i < columns; i++)
            sum +=
                kelp_ml_read(x, row * columns + i) * (double)coefficients[(int64_t)t * columns + i];
        scores[t] = sum;
    }
}

static kelp_status *regressor_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    kelp_ml_transform transform = KELP_ML_NONE;
    int64_t count, columns, targets = kelp_node_attr_i64(args->node, "targets", 1);
    KELP_TRY(kelp_ops_check(args, 1));
    KELP_TRY(kelp_ml_rows(args, args->inputs[0], &count, &columns));
    KELP_TRY(kelp_ml_transform_read(args->node, &transform));
    if (targets < 1)
        return KELP_ML_ERROR(args->node, "targets: expected 1 or more, found %lld",
                             (long long)targets);
    KELP_TRY(linear_sizes(args, (size_t)targets, columns));
    size_t offset;
    KELP_TRY(kelp_ops_scratch(args, targets + 1, sizeof(double), &offset));
    return kelp_ops_set(args, 0, KELP_F32, 2, (const int64_t[]){count, targets});
}

static kelp_status *regressor_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    const kelp_tensor *x = args->inputs[0], *y = args->outputs[0];
    size_t targets = (size_t)y->shape[1];
    double *scores = args->scratch;
    kelp_ml_transform transform = KELP_ML_NONE;
    KELP_TRY(kelp_ml_transform_read(args->node, &transform));
    for (int64_t r = 0; r < y->shape[0]; r++) {
        linear_row(args->node, x, r, x->shape[x->rank - 1], targets, scores);
        kelp_ml_transform_apply(transform, scores, targets);
        for (size_t t = 0; t < targets; t++)
            ((float *)y->data)[r * y->shape[1] + (int64_t)t] = (float)scores[t];
    }
    return NULL;
}

/* One row of coefficients for two classes yields the scores of both. */
static kelp_status *classifier_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    kelp_ml_labels labels;
    kelp_ml_transform transform = KELP_ML_NONE;
    const float *values = NULL;
    int64_t count = 0, columns = 0;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    KELP_TRY(kelp_ml_rows(args, args->inputs[0], &count, &columns));
    KELP_TRY(kelp_ml_labels_read(args->node, "classlabels_strings", "classlabels_ints", &labels));
    KELP_TRY(kelp_ml_transform_read(args->node, &transform));
    size_t coefficients = kelp_node_attr_f32s(args->node, "coefficients", &values);
    size_t targets = columns > 0 ? coefficients / (size_t)columns : 0;
    if (targets != labels.count && !(targets == 1 && labels.count == 2))
        return KELP_ML_ERROR(args->node,
                             "coefficients: expected one for each of %lld columns and %zu classes, "
                             "found %zu",
                             (long long)columns, labels.count, coefficients);
    KELP_TRY(linear_sizes(args, targets, columns));
    size_t offset;
    KELP_TRY(kelp_ops_scratch(args, (int64_t)labels.count + 1, sizeof(double), &offset));
    KELP_TRY(kelp_ops_set(args, 0, labels.strings != NULL ? KELP_STRING : KELP_I64, 1, &count));
    return kelp_ops_set(args, 1, KELP_F32, 2, (const int64_t[]){count, (int64_t)labels.count});
}

static size_t linear_class(double *scores, size_t targets, const kelp_ml_labels *labels,
                           kelp_ml_transform transform) {
    if (targets == 1 && labels->count == 2) {
        bool second = scores[0] > 0;
        kelp_ml_second_score(transform, false, scores[0], scores);
        return second;
    }
    size_t best = 0;
    for (size_t t = 1; t < targets; t++)
        if (scores[t] > scores[best])
            best = t;
    kelp_ml_transform_apply(transform, scores, targets);
    return best;
}

static kelp_status *classifier_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    kelp_ml_labels labels;
    kelp_ml_transform transform = KELP_ML_NONE;
    const float *values = NULL;
    const kelp_tensor *x = args->inputs[0];
    kelp_tensor *y = kelp_ops_out(args, 0), *z = kelp_ops_out(args, 1);
    int64_t columns = x->shape[x->rank - 1], count = x->rank == 2 ? x->shape[0] : 1;
    KELP_TRY(kelp_ml_labels_read(args->node, "classlabels_strings", "classlabels_ints", &labels));
    KELP_TRY(kelp_ml_transform_read(args->node, &transform));
    KELP_ASSERT(columns > 0);
    size_t targets = kelp_node_attr_f32s(args->node, "coefficients", &values) / (size_t)columns;
    double *scores = args->scratch;
    for (int64_t r = 0; r < count; r++) {
        linear_row(args->node, x, r, columns, targets, scores);
        size_t class = linear_class(scores, targets, &labels, transform);
        if (y != NULL)
            kelp_ml_label_write(&labels, class, y, r);
        for (size_t t = 0; z != NULL && t < labels.count; t++)
            ((float *)z->data)[r * (int64_t)labels.count + (int64_t)t] = (float)scores[t];
    }
    return NULL;
}

KELP_KERNEL(LinearRegressor, 0, 0, 0, regressor_reshape, regressor_invoke);
KELP_KERNEL(LinearClassifier, 0, 0, 0, classifier_reshape, classifier_invoke);

/* ---- Scaler ---- */
static kelp_status *scaler_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    int64_t count = 0, columns = 0;
    const float *values = NULL;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    columns = x->rank > 0 ? x->shape[x->rank - 1] : 1;
    kelp_tensor flat = *x;
    flat.rank = 1; /* checks the type only; every rank is supported */
    KELP_TRY(kelp_ml_rows(args, &flat, &count, &count));
    static const char *const names[] = {"offset", "scale"};
    for (size_t i = 0; i < 2; i++) {
        size_t length = kelp_node_attr_f32s(args->node, names[i], &values);
        if (length != 1 && length != (size_t)columns)
            return KELP_ML_ERROR(args->node, "%s: expected 1 or %lld values, found %zu", names[i],
                                 (long long)columns, length);
    }
    return kelp_ops_set(args, 0, KELP_F32, x->rank, x->shape);
}

static kelp_status *scaler_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    const kelp_tensor *x = args->inputs[0];
    const float *offset = NULL, *scale = NULL;
    size_t offsets = kelp_node_attr_f32s(args->node, "offset", &offset);
    size_t scales = kelp_node_attr_f32s(args->node, "scale", &scale);
    size_t columns = x->rank > 0 ? (size_t)x->shape[x->rank - 1] : 1;
    KELP_ASSERT((offsets == 1 || offsets == columns) && (scales == 1 || scales == columns));
    float *y = args->outputs[0]->data;
    int64_t count = kelp_tensor_elements(x);
    for (int64_t i = 0; i < count; i++) {
        size_t c = (size_t)i % columns;
        y[i] = (float)((kelp_ml_read(x, i) - (double)offset[offsets == 1 ? 0 : c]) *
                       (double)scale[scales == 1 ? 0 : c]);
    }
    return NULL;
}
KELP_KERNEL(Scaler, 0, 0, 0, scaler_reshape, scaler_invoke);

/* ---- Normalizer ---- */
static kelp_status *norm_of(const kelp_node *node, int *out) {
    static const char *const names[] = {"MAX", "L1", "L2"};
    const char *name = kelp_node_attr_string(node, "norm", "MAX", NULL);
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], name) == 0) {
            *out = i;
            return NULL;
        }
    return KELP_ML_ERROR(node, "norm: expected MAX, L1 or L2, found '%s'", name);
}

static kelp_status *normalizer_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    int64_t count = 0, columns = 0;
    int norm = 0;
    KELP_TRY(kelp_ops_check(args, 1));
    KELP_TRY(kelp_ml_rows(args, args->inputs[0], &count, &columns));
    KELP_TRY(norm_of(args->node, &norm));
    return kelp_ops_set(args, 0, KELP_F32, args->inputs[0]->rank, args->inputs[0]->shape);
}

static kelp_status *normalizer_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    const kelp_tensor *x = args->inputs[0];
    int64_t count = 0, columns = 0;
    int norm = 0;
    KELP_TRY(norm_of(args->node, &norm));
    KELP_TRY(kelp_ml_rows(args, x, &count, &columns));
    float *y = args->outputs[0]->data;
    for (int64_t r = 0; r < count; r++) {
        double size = norm == 0 ? -INFINITY : 0;
        for (int64_t i = r * columns; i < (r + 1) * columns; i++) {
            double v = kelp_ml_read(x, i);
            size = norm == 0 ? fmax(size, v) : size + (norm == 1 ? fabs(v) : v * v);
        }
        if (norm == 2)
            size = sqrt(size);
        for (int64_t i = r * columns; i < (r + 1) * columns; i++) {
            double v = kelp_ml_read(x, i);
            y[i] = (float)(size != 0 ? v / size : v);
        }
    }
    return NULL;
}
KELP_KERNEL(Normalizer, 0, 0, 0, normalizer_reshape, normalizer_invoke);

/* ---- Binarizer ---- */
static kelp_status *binarizer_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    kelp_dtype dtype = args->inputs[0]->dtype;
    if (dtype != KELP_F32 && dtype != KELP_F64 && dtype != KELP_I32 && dtype != KELP_I64)
        return kelp_ops_bad_type(args, dtype);
    return kelp_ops_set_like(args, 0, args->inputs[0]);
}

static void write_number(kelp_tensor *y, int64_t i, double value) {
    switch (y->dtype) {
    case KELP_F32:
        ((float *)y->data)[i] = (float)value;
        break;
    case KELP_F64:
        ((double *)y->data)[i] = value;
        break;
    case KELP_I32:
        ((int32_t *)y->data)[i] = (int32_t)value;
        break;
    default:
        ((int64_t *)y->data)[i] = (int64_t)value;
        break;
    }
}

static kelp_status *binarizer_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    double threshold = (double)kelp_node_attr_f32(args->node, "threshold", 0.0f);
    int64_t count = kelp_tensor_elements(args->inputs[0]);
    for (int64_t i = 0; i < count; i++)
        write_number(args->outputs[0], i, kelp_ml_read(args->inputs[0], i) > threshold ? 1 : 0);
    return NULL;
}
KELP_KERNEL(Binarizer, 0, 0, 0, binarizer_reshape, binarizer_invoke);

/* ---- Imputer ---- */
static kelp_status *imputer_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    const float *floats = NULL;
    const int64_t *ints = NULL;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    bool integer = x->dtype == KELP_I32 || x->dtype == KELP_I64;
    if (!integer && x->dtype != KELP_F32 && x->dtype != KELP_F64)
        return kelp_ops_bad_type(args, x->dtype);
    size_t values = integer ? kelp_node_attr_i64s(args->node, "imputed_value_int64s", &ints)
                            : kelp_node_attr_f32s(args->node, "imputed_value_floats", &floats);
    int64_t columns = x->rank > 0 ? x->shape[x->rank - 1] : 1;
    if (values != 1 && values != (size_t)columns)
        return KELP_ML_ERROR(args->node, "%s: expected 1 or %lld values, found %zu",
                             integer ? "imputed_value_int64s" : "imputed_value_floats",
                             (long long)columns, values);
    return kelp_ops_set_like(args, 0, x);
}

static kelp_status *imputer_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    const kelp_tensor *x = args->inputs[0];
    kelp_tensor *y = args->outputs[0];
    const float *floats = NULL;
    const int64_t *ints = NULL;
    bool integer = x->dtype == KELP_I32 || x->dtype == KELP_I64;
    size_t values = integer ? kelp_node_attr_i64s(args->node, "imputed_value_int64s", &ints)
                            : kelp_node_attr_f32s(args->node, "imputed_value_floats", &floats);
    int64_t replaced_int = kelp_node_attr_i64(args->node, "replaced_value_int64", 0);
    double replaced = (double)kelp_node_attr_f32(args->node, "replaced_value_float", 0.0f);
    int64_t count = kelp_tensor_elements(x);
    size_t columns = x->rank > 0 ? (size_t)x->shape[x->rank - 1] : 1;
    KELP_ASSERT(values == 1 || values == columns);
    memcpy(y->data, x->data, kelp_tensor_bytes(x));
    for (int64_t i = 0; i < count; i++) {
        size_t c = values == 1 ? 0 : (size_t)i % columns;
        if (integer && kelp_ops_read_i64(x, i) == replaced_int) {
            if (x->dtype == KELP_I32)
                ((int32_t *)y->data)[i] = (int32_t)ints[c];
            else
                ((int64_t *)y->data)[i] = ints[c];
        } else if (!integer) {
            double v = kelp_ml_read(x, i);
            if (v == replaced || (isnan(v) && isnan(replaced)))
                write_number(y, i, (double)floats[c]);
        }
    }
    return NULL;
}
KELP_KERNEL(Imputer, 0, 0, 0, imputer_reshape, imputer_invoke);
