/* SPDX-License-Identifier: Apache-2.0 */
/* State, transforms, labels and rows of the ai.onnx.ml operators. */
#include "cpu/ops/ml/ml.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <math.h>

/* ---- state ---- */
kelp_status *kelp_ml_state_create(const kelp_op_env *env, size_t size_bytes, void *out_state) {
    kelp_arena arena;
    KELP_ASSERT(size_bytes >= sizeof(kelp_ml_state));
    kelp_arena_init(&arena, kelp_op_env_allocator(env), 0);
    kelp_ml_state *state = kelp_arena_array(&arena, 1, size_bytes);
    if (state == NULL) {
        kelp_arena_deinit(&arena);
        return kelp_status_oom();
    }
    state->arena = arena;
    memcpy(out_state, &state, sizeof state);
    return NULL;
}

void kelp_ml_state_destroy(void *state, kelp_allocator allocator) {
    (void)allocator;
    if (state == NULL)
        return;
    kelp_arena arena = ((kelp_ml_state *)state)->arena; /* a copy, as the state is in the arena */
    kelp_arena_deinit(&arena);
}

/* ---- scores ---- */
kelp_status *kelp_ml_transform_read(const kelp_node *node, kelp_ml_transform *out) {
    static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    const char *name = kelp_node_attr_string(node, "post_transform", "NONE", NULL);
    for (size_t i = 0; i < KELP_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (kelp_ml_transform)i;
            return NULL;
        }
    return KELP_ML_ERROR(
        node,
        "post_transform: expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT, "
        "found '%s'",
        name);
}

double kelp_ml_logistic(double x) {
    double v = 1.0 / (1.0 + exp(-fabs(x)));
    return x < 0 ? 1.0 - v : v;
}

void kelp_ml_second_score(kelp_ml_transform transform, bool negate, double score, double *out) {
    bool logistic = transform == KELP_ML_LOGISTIC;
    out[0] = logistic ? kelp_ml_logistic(-score) : negate ? -score : 1.0 - score;
    out[1] = logistic ? kelp_ml_logistic(score) : score;
}

/* Winitzki's approximation of the inverse error function. */
static double inverse_erf(double x) {
    double sign = x < 0 ? -1.0 : 1.0, log_part = log((1 - x) * (1 + x));
    double v = 2.0 / (3.14159 * 0.147) + 0.5 * log_part, v2 = 1.0 / 0.147 * log_part;
    return sign * sqrt(-v + sqrt(v * v - v2));
}

static void softmax(double *scores, size_t count, bool keep_zeros) {
    double max = -INFINITY, sum = 0;
    for (size_t i = 0; i < count; i++)
        max = fmax(max, scores[i]);
    for (size_t i = 0; i < count; i++) {
        bool zero = keep_zeros && scores[i] <= 0.0000001 && scores[i] >= -0.0000001;
        scores[i] = zero ? scores[i] * exp(-max) : exp(scores[i] - max);
        sum += scores[i];
    }
    for (size_t i = 0; i < count && sum != 0; i++)
        scores[i] /= sum;
}

void kelp_ml_transform_apply(kelp_ml_transform transform, double *inout_scores, size_t count) {
    switch (transform) {
    case KELP_ML_NONE:
        break;
    case KELP_ML_SOFTMAX:
    case KELP_ML_SOFTMAX_ZERO:
        softmax(inout_scores, count, transform == KELP_ML_SOFTMAX_ZERO);
        break;
    case KELP_ML_LOGISTIC:
        for (size_t i = 0; i < count; i++)
            inout_scores[i] = kelp_ml_logistic(inout_scores[i]);
        break;
    case KELP_ML_PROBIT:
        for (size_t i = 0; i < count; i++)
            inout_scores[i] = 1.41421356 * inverse_erf(2 * inout_scores[i] - 1);
        break;
    }
}

/* ---- attributes ---- */
kelp_status *kelp_ml_labels_read(const kelp_node *node, const char *strings, const char *numbers,
                                 kelp_ml_labels *out) {
    const kelp_string *texts = NULL;
    const int64_t *ints = NULL;
    size_t text_count = kelp_node_attr_strings(node, strings, &texts);
    size_t int_count = kelp_node_attr_i64s(node, numbers, &ints);
    if ((text_count > 0) == (int_count > 0))
        return KELP_ML_ERROR(node, "expected one of attributes '%s' and '%s', found %s", strings,
                             numbers, text_count ? "both" : "none");
    *out = (kelp_ml_labels){text_count ? texts : NULL, ints, text_count + int_count};
    return NULL;
}

void kelp_ml_label_write(const kelp_ml_labels *labels, size_t index, kelp_tensor *to, int64_t at) {
    KELP_ASSERT(index < labels->count);
    KELP_ASSERT(to->dtype == (labels->strings != NULL ? KELP_STRING : KELP_I64));
    if (labels->strings != NULL)
        ((kelp_string *)to->data)[at] = labels->strings[index];
    else
        ((int64_t *)to->data)[at] = labels->numbers[index];
}

kelp_status *kelp_ml_numbers(kelp_arena *arena, const kelp_node *node, const char *floats,
                             const char *tensor, const double **out, size_t *out_count) {
    const float *values = NULL;
    size_t count = kelp_node_attr_f32s(node, floats, &values);
    const kelp_tensor *typed = tensor != NULL ? kelp_node_attr_tensor(node, tensor) : NULL;
    if (typed != NULL && count > 0)
        return KELP_ML_ERROR(node, "expected one of attributes '%s' and '%s', found both", floats,
                             tensor);
    if (typed != NULL && typed->dtype != KELP_F32 && typed->dtype != KELP_F64)
        return KELP_ML_ERROR(node,
                             "attribute '%s' has the wrong type: expected float32 or float64, "
                             "found %s",
                             tensor, kelp_dtype_name(typed->dtype));
    if (typed != NULL)
        count = (size_t)kelp_tensor_elements(typed);
    double *numbers = KELP_ARENA_ARRAY(arena, count + 1, double);
    if (numbers == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < count; i++) {
        float single = 0;
        if (typed == NULL)
            numbers[i] = (double)values[i];
        else if (typed->dtype == KELP_F64)
            memcpy(&numbers[i], (const char *)typed->data + i * 8, 8);
        else {
            memcpy(&single, (const char *)typed->data + i * 4, 4);
            numbers[i] = (double)single;
        }
    }
    *out = numbers;
    *out_count = count;
    return NULL;
}

/* ---- rows ---- */
kelp_status *kelp_ml_rows(const kelp_op_args *args, const kelp_tensor *x, int64_t *out_rows,
                          int64_t *out_columns) {
    if (x->dtype != KELP_F32 && x->dtype != KELP_F64 && x->dtype != KELP_I32 &&
        x->dtype != KELP_I64)
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank != 1 && x->rank != 2)
        return kelp_ops_bad_shapes(args, x, NULL, "expected [N,C] or [C]");
    *out_rows = x->rank == 2 ? x->shape[0] : 1;
    *out_columns = x->shape[x->rank - 1];
    return NULL;
}

double kelp_ml_read(const kelp_tensor *x, int64_t index) {
    switch (x->dtype) {
    case KELP_F32:
        return (double)((const float *)x->data)[index];
    case KELP_F64:
        return ((const double *)x->data)[index];
    case KELP_I32:
        return ((const int32_t *)x->data)[index];
    case KELP_I64:
        return (double)((const int64_t *)x->data)[index];
    default:
        return 0;
    }
}

#define READ_ROW(type)                                            \
    do {                                                          \
        const type *from = (const type *)x->data + row * columns; \
        for (int64_t i = 0; i < columns; i++)                     \
            out[i] = (double)from[i];                             \
    } while (0)

void kelp_ml_read_row(const kelp_tensor *x, int64_t row, int64_t columns, double *out) {
    KELP_ASSERT((x->rank == 1 && row == 0) || (x->rank == 2 && row < x->shape[0]));
    KELP_ASSERT(x->shape[x->rank - 1] == columns);
    if (x->dtype == KELP_F32)
        READ_ROW(float);
    else if (x->dtype == KELP_F64)
        READ_ROW(double);
    else if (x->dtype == KELP_I32)
        READ_ROW(int32_t);
    else
        READ_ROW(int64_t);
}

#undef READ_ROW
