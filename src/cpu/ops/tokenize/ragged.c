/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ai.onnx.contrib RaggedTensorToSparse, RaggedTensorToDense and StringRaggedTensorToDense. A ragged
 * tensor is a list of values and, for N rows, N + 1 offsets into it: row i has the values
 * offsets[i] … offsets[i + 1] - 1. Source: onnxruntime-extensions, operators/text.
 */
#include "base/assert.h"
#include "cpu/ops/tokenize/tokenize.h"

typedef struct rows {
    const int64_t *offsets;
    int64_t count, columns; /* columns: of the longest row */
} rows;

/* Reads the offsets, which are input `index`. */
static kelp_status *read_rows(const kelp_op_args *args, int32_t index, rows *out) {
    const kelp_tensor *x = args->inputs[index];
    *out = (rows){.offsets = x->data, .count = kelp_tensor_elements(x) - 1};
    for (int64_t i = 0; i <= out->count; i++) {
        int64_t before = i > 0 ? out->offsets[i - 1] : 0;
        if (out->offsets[i] < before)
            return KELP_TEXT_ERROR(args->node,
                                   "offset %lld is out of range: expected %lld or more, found %lld",
                                   (long long)i, (long long)before, (long long)out->offsets[i]);
        if (i > 0)
            out->columns = KELP_MAX(out->columns, out->offsets[i] - before);
    }
    return NULL;
}

static kelp_status *check_offsets(const kelp_op_args *args, int32_t index) {
    const kelp_tensor *x = args->inputs[index];
    if (x->dtype != KELP_I64)
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank != 1 || x->shape[0] < 1)
        return kelp_ops_bad_shapes(args, x, NULL, "expected a list of one offset or more");
    return NULL;
}

/* ---- RaggedTensorToSparse ---- */
static kelp_status *sparse_reshape(const void *state, kelp_op_args *args) {
    rows r;
    int64_t *places = NULL, *shape = NULL, at = 0;
    (void)state;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    KELP_TRY(check_offsets(args, 0));
    if (!kelp_results_begin(args))
        return NULL;
    KELP_TRY(read_rows(args, 0, &r));
    if (r.offsets[0] != 0)
        return KELP_TEXT_ERROR(args->node, "offset 0 is invalid: expected 0, found %lld",
                               (long long)r.offsets[0]);
    const int64_t pairs[2] = {r.offsets[r.count], 2}, two = 2;
    KELP_TRY(kelp_run_array(args->env, (size_t)pairs[0], 2 * sizeof *places, (void **)&places));
    KELP_TRY(kelp_run_array(args->env, 2, sizeof *shape, (void **)&shape));
    for (int64_t row = 0; row < r.count; row++)
        for (int64_t column = 0; column < r.offsets[row + 1] - r.offsets[row]; column++) {
            places[at++] = row;
            places[at++] = column;
        }
    shape[0] = r.count;
    shape[1] = r.columns;
    KELP_TRY(kelp_results_set(args, 0, KELP_I64, 2, pairs, places));
    return kelp_results_set(args, 1, KELP_I64, 1, &two, shape);
}
KELP_KERNEL(RaggedTensorToSparse, KELP_OP_SERIAL, sizeof(kelp_results), 0, sparse_reshape,
            kelp_results_invoke);

/* ---- to dense ---- */
/* Copies the elements of `bytes` bytes of all rows, and fills the rest with `missing`. */
static kelp_status *fill(kelp_op_args *args, const rows *r, size_t bytes, const void *missing) {
    const kelp_tensor *values = args->inputs[1];
    const int64_t shape[2] = {r->count, r->columns};
    size_t total;
    char *out = NULL, *to;
    if (r->offsets[r->count] > kelp_tensor_elements(values))
        return KELP_TEXT_ERROR(args->node,
                               "the last offset is out of range: expected at most %lld, the number "
                               "of values, found %lld",
                               (long long)kelp_tensor_elements(values),
                               (long long)r->offsets[r->count]);
    if (!kelp_size_mul((size_t)r->count, (size_t)r->columns, &total))
        return kelp_status_oom();
    KELP_TRY(kelp_run_array(args->env, total, bytes, (void **)&out));
    to = out;
    for (int64_t row = 0; row < r->count; row++) {
        int64_t begin = r->offsets[row], count = r->offsets[row + 1] - begin;
        if (count > 0)
            memcpy(to, (const char *)values->data + (size_t)begin * bytes, (size_t)count * bytes);
        to += (size_t)count * bytes;
        for (int64_t column = count; column < r->columns; column++, to += bytes)
            memcpy(to, missing, bytes);
    }
    return kelp_results_set(args, 0, values->dtype, 2, shape, out);
}

/* Inputs: shape (unused), values, the value for missing elements, offsets. */
static kelp_status *dense_reshape(const void *state, kelp_op_args *args) {
    rows r;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 4));
    KELP_TRY(kelp_text_check(args, 3, KELP_I64));
    KELP_TRY(check_offsets(args, 3));
    if (kelp_tensor_elements(args->inputs[2]) < 1)
        return kelp_ops_bad_shapes(args, args->inputs[2], NULL, "expected one value");
    if (!kelp_results_begin(args))
        return NULL;
    KELP_TRY(read_rows(args, 3, &r));
    return fill(args, &r, sizeof(int64_t), args->inputs[2]->data);
}
KELP_KERNEL(RaggedTensorToDense, KELP_OP_SERIAL, sizeof(kelp_results), 0, dense_reshape,
            kelp_results_invoke);

/* Inputs: shape (unused), values, offsets, and texts of which only the number counts: it must be
 * that of the offsets, and missing elements are empty. */
static kelp_status *string_dense_reshape(const void *state, kelp_op_args *args) {
    static const kelp_string empty = {"", 0};
    rows r;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 4));
    if (args->inputs[0]->dtype != KELP_I64)
        return kelp_ops_bad_type(args, args->inputs[0]->dtype);
    for (int32_t i = 1; i <= 3; i += 2)
        if (args->inputs[i]->dtype != KELP_STRING)
            return kelp_ops_bad_type(args, args->inputs[i]->dtype);
    KELP_TRY(check_offsets(args, 2));
    if (kelp_tensor_elements(args->inputs[3]) != kelp_tensor_elements(args->inputs[2]))
        return kelp_ops_bad_shapes(args, args->inputs[2], args->inputs[3],
                                   "expected inputs 2 and 3 of the same size");
    if (!kelp_results_begin(args))
        return NULL;
    KELP_TRY(read_rows(args, 2, &r));
    return fill(args, &r, sizeof empty, &empty);
}
KELP_KERNEL(StringRaggedTensorToDense, KELP_OP_SERIAL, sizeof(kelp_results), 0,
            string_dense_reshape, kelp_results_invoke);
