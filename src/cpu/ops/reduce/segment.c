/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ai.onnx.contrib SegmentSum, SegmentExtraction and NegPos. Source: onnxruntime-extensions,
 * operators/math.
 */
#include "cpu/ops/tokenize/tokenize.h"

/* ---- SegmentSum: the sums of the rows that have the same segment ---- */
/* Segments are numbered in the order of the rows, without gaps. */
static kelp_status *check_segments(const kelp_op_args *args, const int64_t *segments,
                                   int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        bool follows = i == 0 || segments[i] == segments[i - 1] ||
                       (segments[i - 1] < INT64_MAX && segments[i] == segments[i - 1] + 1);
        if (segments[i] < 0 || !follows)
            return KELP_TEXT_ERROR(args->node,
                                   "segment %lld is invalid: expected the one before or the next "
                                   "one, found %lld",
                                   (long long)i, (long long)segments[i]);
    }
    return NULL;
}

static kelp_status *sum_reshape(const void *state, kelp_op_args *args) {
    int64_t shape[KELP_MAX_RANK];
    float *out = NULL;
    size_t total;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *ids = args->inputs[1];
    if (x->dtype != KELP_F32 || ids->dtype != KELP_I64)
        return kelp_ops_bad_type(args, x->dtype != KELP_F32 ? x->dtype : ids->dtype);
    if (x->rank < 1 || ids->rank != 1 || x->shape[0] != ids->shape[0] || x->shape[0] == 0)
        return kelp_ops_bad_shapes(args, x, ids, "expected one segment for each row");
    if (!kelp_results_begin(args))
        return NULL;
    const int64_t *segments = ids->data;
    int64_t rows = x->shape[0], row_size = kelp_ops_product(x->shape, 1, x->rank);
    KELP_TRY(check_segments(args, segments, rows));
    memcpy(shape, x->shape, (size_t)x->rank * sizeof *shape);
    if (segments[rows - 1] == INT64_MAX ||
        !kelp_size_mul((size_t)segments[rows - 1] + 1, (size_t)row_size, &total))
        return kelp_status_oom();
    shape[0] = segments[rows - 1] + 1;
    KELP_TRY(kelp_run_array(args->env, total, sizeof *out, (void **)&out));
    memset(out, 0, total * sizeof *out);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < row_size; i++)
            out[segments[row] * row_size + i] += ((const float *)x->data)[row * row_size + i];
    return kelp_results_set(args, 0, KELP_F32, x->rank, shape, out);
}
KELP_KERNEL(SegmentSum, KELP_OP_SERIAL, sizeof(kelp_results), 0, sum_reshape, kelp_results_invoke);

/* ---- SegmentExtraction: begins, ends and values of runs of equal values that are not 0 ---- */
static kelp_status *extraction_reshape(const void *state, kelp_op_args *args) {
    int64_t *places = NULL, *values = NULL, runs = 0;
    (void)state;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (x->dtype != KELP_I64)
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank < 1 || x->rank > 2 || (x->rank == 2 && x->shape[0] != 1))
        return kelp_ops_bad_shapes(args, x, NULL, "expected [N] or [1,N]");
    if (!kelp_results_begin(args))
        return NULL;
    const int64_t *from = x->data;
    int64_t count = kelp_tensor_elements(x);
    KELP_TRY(kelp_run_array(args->env, (size_t)count, 2 * sizeof *places, (void **)&places));
    KELP_TRY(kelp_run_array(args->env, (size_t)count, sizeof *values, (void **)&values));
    for (int64_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && from[end] == from[begin];)
            end++;
        if (from[begin] == 0)
            continue;
        places[2 * runs] = begin;
        places[2 * runs + 1] = end;
        values[runs++] = from[begin];
    }
    KELP_TRY(kelp_results_set(args, 0, KELP_I64, 2, (const int64_t[]){runs, 2}, places));
    return kelp_results_set(args, 1, KELP_I64, 1, &runs, values);
}
KELP_KERNEL(SegmentExtraction, KELP_OP_SERIAL, sizeof(kelp_results), 0, extraction_reshape,
            kelp_results_invoke);

/* ---- NegPos: values up to 0, and values above 0; 0 in the place of others ---- */
static kelp_status *neg_pos_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (x->dtype != KELP_F32)
        return kelp_ops_bad_type(args, x->dtype);
    KELP_TRY(kelp_ops_set_like(args, 0, x));
    return kelp_ops_set_like(args, 1, x);
}

static kelp_status *neg_pos_invoke(const void *state, kelp_op_args *args) {
    const float *x = args->inputs[0]->data;
    kelp_tensor *low = kelp_ops_out(args, 0), *high = kelp_ops_out(args, 1);
    (void)state;
    for (int64_t i = 0; i < kelp_tensor_elements(args->inputs[0]); i++) {
        bool above = x[i] > 0;
        if (low != NULL)
            ((float *)low->data)[i] = above ? 0 : x[i];
        if (high != NULL)
            ((float *)high->data)[i] = above ? x[i] : 0;
    }
    return NULL;
}
KELP_KERNEL(NegPos, KELP_OP_SERIAL, 0, 0, neg_pos_reshape, neg_pos_invoke);
