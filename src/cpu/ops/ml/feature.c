/* SPDX-License-Identifier: Apache-2.0 */
/* ArrayFeatureExtractor selects columns; FeatureVectorizer concatenates columns. */
#include "base/assert.h"
#include "cpu/ops/ml/ml.h"

/* ---- ArrayFeatureExtractor ---- */
static kelp_status *extractor_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *y = args->inputs[1];
    if (y->dtype != KELP_I64)
        return kelp_ops_bad_type(args, y->dtype);
    if (kelp_ops_element_bytes(x->dtype) == 0)
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank < 1 || kelp_tensor_elements(y) < 1)
        return kelp_ops_bad_shapes(args, x, y, "expected rank 1 or more, and at least one index");
    int64_t shape[KELP_MAX_RANK];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->rank - 1] = kelp_tensor_elements(y);
    if (x->rank == 1) {
        shape[1] = shape[0];
        shape[0] = 1;
    }
    return kelp_ops_set(args, 0, x->dtype, KELP_MAX(x->rank, 2), shape);
}

static kelp_status *extractor_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    const kelp_tensor *x = args->inputs[0], *y = args->inputs[1];
    size_t item = kelp_ops_element_bytes(x->dtype);
    int64_t columns = x->shape[x->rank - 1], count = kelp_tensor_elements(y);
    int64_t rows = kelp_ops_product(x->shape, 0, x->rank - 1);
    const int64_t *indices = y->data;
    for (int64_t k = 0; k < count; k++)
        if (indices[k] < 0 || indices[k] >= columns)
            return KELP_ML_ERROR(args->node, "index %lld is outside [0, %lld)",
                                 (long long)indices[k], (long long)columns);
    KELP_ASSERT(kelp_tensor_elements(args->outputs[0]) == rows * count);
    char *to = args->outputs[0]->data;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < count; k++, to += item)
            memcpy(to, (const char *)x->data + (size_t)(r * columns + indices[k]) * item, item);
    return NULL;
}
KELP_KERNEL(ArrayFeatureExtractor, 0, 0, 0, extractor_reshape, extractor_invoke);

/* ---- FeatureVectorizer ---- */
static kelp_status *dimensions(const kelp_op_args *args, int32_t input, int64_t *out_rows,
                               int64_t *out_columns, int64_t *out_wanted) {
    const int64_t *widths = NULL;
    size_t count = kelp_node_attr_i64s(args->node, "inputdimensions", &widths);
    KELP_TRY(kelp_ops_check_inputs(args, input + 1));
    KELP_TRY(kelp_ml_rows(args, args->inputs[input], out_rows, out_columns));
    if (args->inputs[input]->rank == 1) { /* one row per element */
        *out_rows = args->inputs[input]->shape[0];
        *out_columns = 1;
    }
    if (count != 0 && count != (size_t)args->input_count)
        return KELP_ML_ERROR(args->node, "inputdimensions: expected %d values, found %zu",
                             args->input_count, count);
    *out_wanted = count ? widths[input] : *out_columns;
    if (*out_wanted < 0)
        return KELP_ML_ERROR(args->node, "inputdimensions[%d]: %lld is negative", input,
                             (long long)*out_wanted);
    return NULL;
}

static kelp_status *vectorizer_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    int64_t rows = 0, columns = 0, wanted = 0, first_rows = 0, total = 0;
    KELP_TRY(kelp_ops_check(args, 1));
    for (int32_t i = 0; i < args->input_count; i++) {
        KELP_TRY(dimensions(args, i, &rows, &columns, &wanted));
        first_rows = i == 0 ? rows : first_rows;
        if (rows != first_rows)
            return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[i], "rows differ");
        if (!kelp_i64_add(total, wanted, &total))
            return KELP_ML_ERROR(args->node, "%s", "inputdimensions: the sum overflows");
    }
    return kelp_ops_set(args, 0, KELP_F32, 2, (const int64_t[]){rows, total});
}

/* Missing columns of an input are zero; surplus columns are left out. */
static kelp_status *vectorizer_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    kelp_tensor *y = args->outputs[0];
    int64_t rows = 0, columns = 0, wanted = 0, at = 0;
    memset(y->data, 0, kelp_tensor_bytes(y));
    for (int32_t i = 0; i < args->input_count; i++) {
        KELP_TRY(dimensions(args, i, &rows, &columns, &wanted));
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns && c < wanted; c++)
                ((float *)y->data)[r * y->shape[1] + at + c] =
                    (float)kelp_ml_read(args->inputs[i], r * columns + c);
        at += wanted;
    }
    KELP_ASSERT(at == y->shape[1]);
    return NULL;
}
KELP_KERNEL(FeatureVectorizer, 0, 0, 0, vectorizer_reshape, vectorizer_invoke);
