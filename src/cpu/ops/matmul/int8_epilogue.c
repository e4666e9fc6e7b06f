/* SPDX-License-Identifier: Apache-2.0 */
/* Scales of columns, computed from the scales of the operands. Source: ONNX operator specification,
 * QLinearMatMul and QLinearConv. */
#include "cpu/ops/matmul/int8_epilogue.h"

#include "base/assert.h"
#include "cpu/ops/operand.h"

int32_t kelp_int8_zero(const kelp_tensor *zero, int64_t index) {
    if (zero == NULL)
        return 0;
    KELP_ASSERT(kelp_ops_is_byte(zero->dtype));
    KELP_ASSERT(index >= 0 && index < kelp_tensor_elements(zero));
    return zero->dtype == KELP_I8 ? ((const int8_t *)zero->data)[index]
                                  : ((const uint8_t *)zero->data)[index];
}

float kelp_int8_scale(const kelp_tensor *scale, int64_t index) {
    return (float)kelp_ops_read_f64(scale, index);
}

static kelp_status *check_pair(const kelp_op_args *args, int scale_at, int zero_at, kelp_dtype type,
                               int64_t columns) {
    const kelp_tensor *scale = kelp_int8_operand(args, scale_at),
                      *zero = kelp_int8_operand(args, zero_at);
    if (scale != NULL && !kelp_ops_is_float(scale->dtype))
        return kelp_ops_bad_type(args, scale->dtype);
    if (zero != NULL &&
        (!kelp_ops_is_byte(zero->dtype) || (type != KELP_DTYPE_INVALID && zero->dtype != type)))
        return kelp_ops_bad_type(args, zero->dtype);
    int64_t scales = scale != NULL ? kelp_tensor_elements(scale) : 1,
            zeros = zero != NULL ? kelp_tensor_elements(zero) : 1;
    if ((scales != 1 && scales != columns) || (zeros != 1 && zeros != columns))
        return kelp_ops_bad_shapes(args, scale, zero,
                                   "expected one scale and zero point, or one for each column");
    return NULL;
}

static kelp_status *check_row(const kelp_op_args *args, int at, int64_t columns, bool whole) {
    const kelp_tensor *row = kelp_int8_operand(args, at);
    if (row == NULL)
        return NULL;
    if (row->dtype != KELP_F32 && (!whole || row->dtype != KELP_I32))
        return kelp_ops_bad_type(args, row->dtype);
    if (kelp_tensor_elements(row) != columns)
        return kelp_ops_bad_shapes(args, row, NULL, "expected one value for each column");
    return NULL;
}

kelp_status *kelp_int8_check_operands(const kelp_op_args *args, const kelp_int8_operands *p) {
    KELP_TRY(kelp_ops_check(args, 1));
    return kelp_ops_in(args, p->b) != NULL ? NULL : kelp_ops_check_inputs(args, p->b + 1);
}

kelp_status *kelp_int8_epilogue_plan(kelp_op_args *args, const kelp_int8_operands *p,
                                     int64_t columns, kelp_dtype *out_dtype, size_t *out_offset) {
    const kelp_tensor *y_zero = kelp_int8_operand(args, p->y_zero);
    KELP_TRY(check_pair(args, p->a_scale, p->a_zero, KELP_DTYPE_INVALID, 1));
    KELP_TRY(check_pair(args, p->b_scale, p->b_zero, args->inputs[p->b]->dtype, columns));
    KELP_TRY(check_pair(args, p->step_scale, p->step_zero, KELP_DTYPE_INVALID, 1));
    KELP_TRY(check_pair(args, p->y_scale, p->y_zero, KELP_DTYPE_INVALID, 1));
    KELP_TRY(check_row(args, p->bias, columns, true));
    KELP_TRY(check_row(args, p->addend, columns, false));
    *out_dtype = kelp_int8_operand(args, p->y_scale) == NULL ? KELP_F32
                 : y_zero != NULL                            ? y_zero->dtype
                                                             : KELP_U8;
    return kelp_ops_scratch(args, 3 * columns, sizeof(float), out_offset);
}

static void range_of(kelp_dtype dtype, int32_t zero, float *out_min, float *out_max) {
    *out_min = (float)((dtype == KELP_I8 ? -128 : 0) - zero);
    *out_max = (float)((dtype == KELP_I8 ? 127 : 255) - zero);
}

/* Adds a bias of integers. The kernel subtracts a_zero * balance from the sums: a_zero becomes 1,
 * and balance includes the bias. */
static void fold_bias(const int32_t *bias, int64_t columns, int32_t *balance, kelp_int8_gemm *g) {
    KELP_ASSERT(g->b.balance != NULL);
    for (int64_t j = 0; j < columns; j++)
        balance[j] = (int32_t)((uint32_t)g->a_zero * (uint32_t)g->b.balance[j] - (uint32_t)bias[j]);
    g->a_zero = 1;
    g->b.balance = balance;
}

void kelp_int8_epilogue_make(const kelp_op_args *args, const kelp_int8_operands *p, float a_scale,
                             kelp_act act, size_t offset, kelp_int8_gemm *product) {
    const kelp_tensor *b_scale = kelp_int8_operand(args, p->b_scale),
                      *bias = kelp_int8_operand(args, p->bias),
                      *step = kelp_int8_operand(args, p->step_scale),
                      *step_zero = kelp_int8_operand(args, p->step_zero),
                      *addend = kelp_int8_operand(args, p->addend),
                      *y_scale = kelp_int8_operand(args, p->y_scale),
                      *y_zero = kelp_int8_operand(args, p->y_zero);
    int64_t columns = product->b.n;
    float *scale = (float *)kelp_ops_scratch_at(args, offset), *biases = scale + columns;
    kelp_int8_finish *f = &product->finish;
    float unit = 1.0f;
    KELP_ASSERT(y_scale != NULL || args->outputs[0]->dtype == KELP_F32);
    KELP_ASSERT(bias == NULL || kelp_tensor_elements(bias) == columns);
    *f = (kelp_int8_finish){.dtype = args->outputs[0]->dtype, .scale = scale, .act = act};
    if (y_scale != NULL) {
        f->out_scale = kelp_int8_scale(y_scale, 0);
        f->out_zero = kelp_int8_zero(y_zero, 0);
    }
    if (step != NULL) {
        unit = f->step = kelp_int8_scale(step, 0);
        range_of(step_zero != NULL ? step_zero->dtype : KELP_U8, kelp_int8_zero(step_zero, 0),
                 &f->low, &f->high);
    } else if (y_scale != NULL && addend == NULL && act == KELP_ACT_NONE) {
        f->direct = true;
        unit = f->out_scale;
        range_of(f->dtype, f->out_zero, &f->low, &f->high);
    }
    bool many = b_scale != NULL && kelp_tensor_elements(b_scale) > 1;
    bool whole = bias != NULL && bias->dtype == KELP_I32;
    for (int64_t j = 0; j < columns; j++) {
        float b = b_scale != NULL ? kelp_int8_scale(b_scale, many ? j : 0) : 1.0f;
        scale[j] = a_scale * b / unit;
        if (bias != NULL && !whole)
            biases[j] = ((const float *)bias->data)[j] / unit;
    }
    if (whole)
        fold_bias(bias->data, columns, (int32_t *)(void *)(biases + columns), product);
    f->bias = bias != NULL && !whole ? biases : NULL;
    f->addend = addend != NULL ? addend->data : NULL;
}
