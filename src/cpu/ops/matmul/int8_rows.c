/* SPDX-License-Identifier: Apache-2.0 */
/* General, element-wise implementation of QLinearMatMul. Source: ONNX operator specification. */
#include "cpu/ops/matmul/int8_rows.h"

#include "base/assert.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/ops/kernel.h"
#include "cpu/ops/matmul/int8_epilogue.h"
#include "tensor/real.h"

#include <math.h>

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };

static bool is_float8(kelp_dtype dtype) {
    return dtype >= KELP_F8E4M3FN && dtype <= KELP_F8E5M2FNUZ;
}
static bool is_narrow(kelp_dtype dtype) {
    return dtype == KELP_U8 || dtype == KELP_I8 || is_float8(dtype);
}

bool kelp_rows_fit(int64_t count, const kelp_tensor *of, bool rows) {
    int64_t one, all = kelp_tensor_elements(of);
    KELP_ASSERT(of->rank > 0);
    if (rows)
        one = of->rank > 1 ? of->shape[of->rank - 2] : 1;
    else
        one = of->rank > 1 ? of->shape[of->rank - 1] : 1;
    int64_t other = rows ? of->shape[of->rank - 1] : of->shape[of->rank > 1 ? of->rank - 2 : 0];
    return count == 1 || count == one || (other > 0 && count == all / other);
}

int64_t kelp_rows_index(const kelp_batch *batch, const int64_t *strides, int64_t job, int64_t dim,
                        int64_t at, int64_t count) {
    KELP_ASSERT(at >= 0 && at < dim);
    if (count <= 1)
        return 0;
    return (kelp_batch_offset(batch, strides, job) * dim + at) % count;
}

kelp_status *kelp_rows_check(const kelp_op_args *args) {
    static const struct {
        int scale, zero, operand;
    } pairs[] = {{A_SCALE, A_ZERO, A}, {B_SCALE, B_ZERO, B}, {Y_SCALE, Y_ZERO, -1}};
    for (size_t i = 0; i < KELP_COUNT(pairs); i++) {
        const kelp_tensor *scale = args->inputs[pairs[i].scale],
                          *zero = args->inputs[pairs[i].zero];
        const kelp_tensor *of = pairs[i].operand >= 0 ? args->inputs[pairs[i].operand] : NULL;
        if (!kelp_ops_is_float(scale->dtype))
            return kelp_ops_bad_type(args, scale->dtype);
        if (!is_narrow(zero->dtype) || (of != NULL && zero->dtype != of->dtype))
            return kelp_ops_bad_type(args, zero->dtype);
        int64_t scales = kelp_tensor_elements(scale), zeros = kelp_tensor_elements(zero);
        bool rows = of != NULL
                        ? kelp_rows_fit(scales, of, i == 0) && kelp_rows_fit(zeros, of, i == 0)
                        : scales > 0 && zeros > 0;
        if (!rows)
            return kelp_ops_bad_shapes(args, scale, zero,
                                       "a scale or a zero point does not match its operand");
    }
    return NULL;
}

/* ---- the result ---- */
typedef struct finish_job {
    const kelp_op_args *args;
    const kelp_batch *batch;
    const int32_t *sums;
    const float *float_sums;
} finish_job;

static void put(kelp_tensor *y, int64_t at, double value, const kelp_tensor *zero,
                int64_t zero_at) {
    uint8_t *to = (uint8_t *)y->data + at;
    if (is_float8(y->dtype)) {
        float base = kelp_narrow_to_f32(y->dtype, ((const uint8_t *)zero->data)[zero_at]);
        *to = kelp_f32_to_narrow(y->dtype, (float)value + base, true);
        return;
    }
    double min = y->dtype == KELP_I8 ? -128 : 0, max = y->dtype == KELP_I8 ? 127 : 255;
    value = rint(value) + (double)kelp_int8_zero(zero, zero_at);
    value = value > min ? value : min; /* also replaces NaN */
    *to = (uint8_t)(int32_t)(value > max ? max : value);
}

static void finish_range(void *userp, int64_t begin, int64_t end, int worker) {
    const finish_job *job = userp;
    const kelp_op_args *args = job->args;
    const kelp_batch *b = job->batch;
    const kelp_tensor *a_scale = args->inputs[A_SCALE], *b_scale = args->inputs[B_SCALE];
    const kelp_tensor *y_scale = args->inputs[Y_SCALE], *y_zero = args->inputs[Y_ZERO];
    int64_t a_count = kelp_tensor_elements(a_scale), b_count = kelp_tensor_elements(b_scale);
    int64_t y_count = kelp_tensor_elements(y_scale), zeros = kelp_tensor_elements(y_zero);
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        int64_t i = row / b->m;
        float from = kelp_int8_scale(
            a_scale, kelp_rows_index(b, b->a_strides, i, b->m, row % b->m, a_count));
        float to = kelp_int8_scale(y_scale, row % y_count);
        for (int64_t j = 0; j < b->n; j++) {
            int64_t at = row * b->n + j;
            float scale = from * kelp_int8_scale(b_scale, kelp_rows_index(b, b->b_strides, i, b->n,
                                                                          j, b_count));
            scale = kelp_real_round(a_scale->dtype, scale);
            scale = kelp_real_round(a_scale->dtype, scale / to);
            double sum = job->sums != NULL ? (double)job->sums[at] : (double)job->float_sums[at];
            put(args->outputs[0], at, sum * (double)scale, y_zero, row % zeros);
        }
    }
}

void kelp_rows_finish(const kelp_op_args *args, const kelp_batch *batch, const int32_t *sums,
                      const float *float_sums) {
    finish_job job = {args, batch, sums, float_sums};
    KELP_ASSERT((sums == NULL) != (float_sums == NULL));
    kelp_op_parallel(args->env, batch->batch * batch->m,
                     kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 8, batch->n), finish_range, &job);
}

/* ---- 8-bit floats ---- */
bool kelp_rows_are_floats(const kelp_op_args *args) {
    return is_float8(args->inputs[A]->dtype) || is_float8(args->inputs[B]->dtype);
}

kelp_status *kelp_rows_floats_plan(kelp_op_args *args, kelp_rows_floats *p) {
    const kelp_tensor *a = args->inputs[A], *b = args->inputs[B];
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = 0;
    if (!is_narrow(a->dtype) || !is_narrow(b->dtype))
        return kelp_ops_bad_type(args, is_narrow(a->dtype) ? b->dtype : a->dtype);
    KELP_TRY(kelp_batch_init(&p->b, args, a, b, &rank, shape));
    KELP_TRY(kelp_rows_check(args));
    KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(a), sizeof(float), &p->a_wide));
    KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(b), sizeof(float), &p->b_wide));
    KELP_TRY(kelp_ops_scratch(args, p->b.batch * p->b.m * p->b.n, sizeof(float), &p->sums));
    KELP_TRY(kelp_ops_scratch(args, p->b.batch, sizeof(kelp_gemm), &p->jobs));
    return kelp_ops_set(args, 0, args->inputs[Y_ZERO]->dtype, rank, shape);
}

static float number_at(const kelp_tensor *tensor, int64_t at) {
    return is_float8(tensor->dtype)
               ? kelp_narrow_to_f32(tensor->dtype, ((const uint8_t *)tensor->data)[at])
               : (float)kelp_int8_zero(tensor, at);
}

/* Converts to floats and subtracts the zero points, of rows if `rows`, else of columns. */
static void widen(const kelp_tensor *from, const kelp_tensor *zero, bool rows, float *to) {
    int64_t columns = from->rank > 1 || rows ? from->shape[from->rank - 1] : 1;
    int64_t zeros = kelp_tensor_elements(zero), count = kelp_tensor_elements(from);
    int64_t height = from->rank > 1 ? from->shape[from->rank - 2] : 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = i / columns;
        int64_t index = rows ? row : row / KELP_MAX((int64_t)1, height) * columns + i % columns;
        to[i] = number_at(from, i) - number_at(zero, index % zeros);
    }
}

void kelp_rows_floats_run(const kelp_op_args *args, const kelp_rows_floats *p) {
    char *scratch = args->scratch;
    float *a = (float *)(void *)(scratch + p->a_wide), *b = (float *)(void *)(scratch + p->b_wide);
    float *sums = (float *)(void *)(scratch + p->sums);
    kelp_gemm *jobs = (kelp_gemm *)(void *)(scratch + p->jobs);
    widen(args->inputs[A], args->inputs[A_ZERO], true, a);
    widen(args->inputs[B], args->inputs[B_ZERO], false, b);
    for (int64_t i = 0; i < p->b.batch; i++)
        jobs[i] =
            (kelp_gemm){.a = a + kelp_batch_offset(&p->b, p->b.a_strides, i) * p->b.m * p->b.k,
                        .b = b + kelp_batch_offset(&p->b, p->b.b_strides, i) * p->b.k * p->b.n,
                        .c = sums + i * p->b.m * p->b.n,
                        .m = p->b.m,
                        .n = p->b.n,
                        .k = p->b.k,
                        .lda = p->b.k,
                        .ldb = p->b.n,
                        .ldc = p->b.n};
    kelp_gemm_run(args->env, jobs, p->b.batch);
    kelp_rows_finish(args, &p->b, NULL, sums);
}
