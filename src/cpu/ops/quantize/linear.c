/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QuantizeLinear, DequantizeLinear: scales and zero points per tensor, per axis, or per block of an
 * axis. Source: ONNX operator specification.
 */
#include "base/assert.h"
#include "tensor/real.h"
#include "cpu/kernels/int8/int8_kernels.h"
#include "cpu/ops/kernel.h"

#include <math.h>

/* ---- elements of quantized types ---- */
static bool is_packed(kelp_dtype dtype) {
    return dtype == KELP_U4 || dtype == KELP_I4 || dtype == KELP_U2 || dtype == KELP_I2;
}

static bool is_narrow_float(kelp_dtype dtype) {
    return (dtype >= KELP_F8E4M3FN && dtype <= KELP_F8E5M2FNUZ) || dtype == KELP_F4E2M1 ||
           dtype == KELP_F6E2M3 || dtype == KELP_F6E3M2;
}

static bool range_of(kelp_dtype dtype, double *low, double *high) {
    static const struct {
        kelp_dtype dtype;
        double low, high;
    } rows[] = {{KELP_U8, 0, 255},         {KELP_I8, -128, 127}, {KELP_U16, 0, 65535},
                {KELP_I16, -32768, 32767}, {KELP_U4, 0, 15},     {KELP_I4, -8, 7},
                {KELP_U2, 0, 3},           {KELP_I2, -2, 1}};
    for (size_t i = 0; i < KELP_COUNT(rows); i++) {
        if (rows[i].dtype == dtype) {
            *low = rows[i].low;
            *high = rows[i].high;
            return true;
        }
    }
    return false;
}

static unsigned code_at(const kelp_tensor *tensor, int64_t index) {
    uint32_t bits = kelp_dtype_bits(tensor->dtype), each = 8 / bits;
    KELP_ASSERT(bits <= 8 && index >= 0);
    const uint8_t *data = tensor->data;
    return (data[(size_t)index / each] >> (size_t)index % each * bits) & ((1u << bits) - 1);
}

static double quantized_at(const kelp_tensor *tensor, int64_t index) {
    kelp_dtype dtype = tensor->dtype;
    if (is_narrow_float(dtype))
        return (double)kelp_narrow_to_f32(dtype, (uint8_t)code_at(tensor, index));
    if (!is_packed(dtype))
        return kelp_ops_read_f64(tensor, index);
    int code = (int)code_at(tensor, index);
    int top = 1 << (kelp_dtype_bits(dtype) - 1);
    bool negative = (dtype == KELP_I4 || dtype == KELP_I2) && code >= top;
    return negative ? code - 2 * top : code;
}

static void put_code(kelp_tensor *tensor, int64_t index, unsigned code) {
    uint32_t bits = kelp_dtype_bits(tensor->dtype), each = 8 / bits;
    uint8_t *byte = (uint8_t *)tensor->data + (size_t)index / each,
            mask = (uint8_t)((1u << bits) - 1);
    unsigned shift = (unsigned)((size_t)index % each * bits);
    *byte = (uint8_t)((*byte & ~(mask << shift)) | (code & mask) << shift);
}

static void put_quantized(kelp_tensor *tensor, int64_t index, float value, double zero,
                          bool saturate) {
    double low = 0, high = 0;
    if (is_narrow_float(tensor->dtype)) {
        if (tensor->dtype == KELP_F4E2M1 || tensor->dtype >= KELP_F6E2M3)
            value += (float)zero;
        put_code(tensor, index, kelp_f32_to_narrow(tensor->dtype, value, saturate));
        return;
    }
    bool is_integer = range_of(tensor->dtype, &low, &high);
    KELP_ASSERT(is_integer);
    (void)is_integer;
    double rounded = rint((double)value) + zero;
    double clamped = rounded < low ? low : rounded > high ? high : rounded;
    int64_t whole = clamped == clamped ? (int64_t)clamped : 0; /* NaN becomes 0 */
    if (is_packed(tensor->dtype))
        put_code(tensor, index, (unsigned)whole);
    else
        kelp_real_store_f64(tensor->dtype, tensor->data, index, 1, &(double){(double)whole});
}

/* ---- scales of elements ---- */
typedef struct linear_plan {
    int64_t inner, length, block;
    int64_t scales; /* along the axis; 0: one for the whole tensor */
    bool saturate;
    kelp_dtype precision; /* of the division; INVALID: the scale's type */
    bool fast;            /* types that vectorized kernels support */
    size_t zeros;         /* offset in scratch memory of zero points as int32 */
} linear_plan;

/* Returns the index of the scale of element `at`. */
static int64_t scale_index(const linear_plan *p, int64_t at) {
    if (p->scales == 0)
        return 0;
    int64_t index = at / p->inner % p->length;
    if (p->block == 0)
        return index;
    return (at / p->inner / p->length * p->scales + index / p->block) * p->inner + at % p->inner;
}

/* Returns the number of elements from `at` on that have the same scale (*out_stride 0) or
 * consecutive scales (*out_stride 1). */
static int64_t run_at(const linear_plan *p, int64_t at, int64_t end, int *out_stride) {
    int64_t length = end - at, index, inside;
    *out_stride = 0;
    if (p->scales == 0)
        return length;
    index = at / p->inner % p->length;
    inside = p->inner - at % p->inner;
    if (p->inner > 1) {
        *out_stride = p->block > 0;
    } else if (p->block == 0) {
        *out_stride = 1;
        inside = p->length - index;
    } else {
        inside = KELP_MIN(p->block - index % p->block, p->length - index);
    }
    return KELP_MIN(length, inside);
}

/* Returns the zero points as int32; NULL without them. */
static const int32_t *zeros_of(const kelp_op_args *args) {
    const linear_plan *p = args->plan;
    return kelp_ops_in(args, 2) != NULL ? (int32_t *)kelp_ops_scratch_at(args, p->zeros) : NULL;
}

static void widen_zeros(const kelp_op_args *args) {
    const linear_plan *p = args->plan;
    const kelp_tensor *zero = kelp_ops_in(args, 2);
    int32_t *to = kelp_ops_scratch_at(args, p->zeros);
    for (int64_t i = 0; zero != NULL && i < kelp_tensor_elements(zero); i++)
        to[i] = (int32_t)kelp_ops_read_i64(zero, i);
}

static bool is_vector_type(kelp_dtype dtype) {
    return dtype == KELP_U8 || dtype == KELP_I8 || dtype == KELP_U16 || dtype == KELP_I16;
}

static kelp_status *plan_fast(kelp_op_args *args, linear_plan *p, bool fast) {
    const kelp_tensor *zero = kelp_ops_in(args, 2);
    p->fast = fast && args->inputs[1]->dtype == KELP_F32;
    if (!p->fast || zero == NULL)
        return NULL;
    return kelp_ops_scratch(args, kelp_tensor_elements(zero), sizeof(int32_t), &p->zeros);
}

static kelp_status *read_layout(const kelp_op_args *args, linear_plan *p) {
    const kelp_tensor *x = args->inputs[0], *scale = args->inputs[1];
    const kelp_tensor *zero = kelp_ops_in(args, 2);
    int32_t axis = 0;
    p->block = kelp_node_attr_i64(args->node, "block_size", 0);
    p->saturate = kelp_node_attr_i64(args->node, "saturate", 1) != 0;
    p->scales = 0;
    p->precision = kelp_ops_attr_dtype(args->node, "precision", 0);
    if (!kelp_ops_is_float(scale->dtype) && scale->dtype != KELP_F8E8M0 && scale->dtype != KELP_I32)
        return kelp_ops_bad_type(args, scale->dtype);
    if (zero != NULL && (kelp_tensor_elements(zero) != kelp_tensor_elements(scale)))
        return kelp_ops_bad_shapes(args, scale, zero, "expected one zero point for each scale");
    if (p->block == 0 && kelp_tensor_elements(scale) == 1 && scale->rank <= 1)
        return NULL;
    KELP_TRY(kelp_ops_axis(args, kelp_node_attr_i64(args->node, "axis", 1), x->rank, &axis));
    p->length = x->shape[axis];
    p->inner = kelp_ops_product(x->shape, axis + 1, x->rank);
    bool fits = p->block == 0 ? scale->rank == 1 && scale->shape[0] == p->length
                              : scale->rank == x->rank && p->block > 0;
    for (int32_t i = 0; fits && p->block > 0 && i < x->rank; i++)
        fits = scale->shape[i] ==
               (i == axis ? x->shape[i] / p->block + (x->shape[i] % p->block != 0) : x->shape[i]);
    if (!fits)
        return kelp_ops_bad_shapes(args, x, scale,
                                   "the scales do not match the axis or its blocks");
    p->scales = p->block == 0 ? p->length : scale->shape[axis];
    return NULL;
}

/* ---- QuantizeLinear ---- */
static kelp_status *quantize_reshape(const void *state, kelp_op_args *args) {
    linear_plan *p = args->plan;
    double low, high;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *zero = kelp_ops_in(args, 2);
    kelp_dtype to = kelp_ops_attr_dtype(args->node, "output_dtype", 0);
    if (zero != NULL)
        to = zero->dtype;
    else if (to == KELP_DTYPE_INVALID)
        to = KELP_U8;
    if (!kelp_ops_is_float(x->dtype) && x->dtype != KELP_I32)
        return kelp_ops_bad_type(args, x->dtype);
    if (!is_narrow_float(to) && !range_of(to, &low, &high))
        return kelp_ops_bad_type(args, to);
    KELP_TRY(read_layout(args, p));
    bool single = p->precision == KELP_DTYPE_INVALID || p->precision == KELP_F32;
    KELP_TRY(plan_fast(args, p, single && x->dtype == KELP_F32 && is_vector_type(to)));
    return kelp_ops_set(args, 0, to, x->rank, x->shape);
}

static void quantize_runs(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_op_args *args = userp;
    const linear_plan *p = args->plan;
    const kelp_int8_kernels *loops = kelp_int8_kernels_get();
    const int32_t *zeros = zeros_of(args);
    kelp_tensor *y = args->outputs[0];
    size_t each = kelp_ops_element_bytes(y->dtype);
    (void)worker;
    for (int64_t i = begin, length; i < end; i += length) {
        kelp_quantize_run run = {.x = (const float *)args->inputs[0]->data + i,
                                 .y = (char *)y->data + (size_t)i * each,
                                 .dtype = y->dtype};
        int64_t at = scale_index(p, i);
        run.count = length = run_at(p, i, end, &run.stride);
        run.scale = (const float *)args->inputs[1]->data + at;
        run.zero = zeros != NULL ? zeros + at : NULL;
        loops->quantize(&run);
    }
}

static void quantize_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_op_args *args = userp;
    const linear_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0], *scale = args->inputs[1];
    const kelp_tensor *zero = kelp_ops_in(args, 2);
    kelp_dtype precision = p->precision != KELP_DTYPE_INVALID ? p->precision : scale->dtype;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = scale_index(p, i);
        float value = (float)kelp_ops_read_f64(x, i) / (float)kelp_ops_read_f64(scale, at);
        put_quantized(args->outputs[0], i, kelp_real_round(precision, value),
                      zero != NULL ? quantized_at(zero, at) : 0, p->saturate);
    }
}

static kelp_status *quantize_invoke(const void *state, kelp_op_args *args) {
    const linear_plan *p = args->plan;
    (void)state;
    int64_t count = kelp_tensor_elements(args->inputs[0]);
    KELP_ASSERT(count == kelp_tensor_elements(args->outputs[0]));
    if (p->fast) {
        widen_zeros(args);
        kelp_op_parallel(args->env, count, 2 * KELP_GRAIN_ELEMENTS, quantize_runs, args);
    } else if (kelp_dtype_bits(args->outputs[0]->dtype) < 8) {
        /* on one thread, since packed elements share bytes; unused bits of the last byte are 0 */
        memset(args->outputs[0]->data, 0, kelp_tensor_bytes(args->outputs[0]));
        quantize_range(args, 0, count, 0);
    } else {
        kelp_op_parallel(args->env, count, KELP_GRAIN_ELEMENTS / 8, quantize_range, args);
    }
    return NULL;
}
KELP_KERNEL(QuantizeLinear, 0, sizeof(linear_plan), 0, quantize_reshape, quantize_invoke);

/* ---- DequantizeLinear ---- */
static kelp_status *dequantize_reshape(const void *state, kelp_op_args *args) {
    linear_plan *p = args->plan;
    double low, high;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *x = args->inputs[0], *scale = args->inputs[1];
    const kelp_tensor *zero = kelp_ops_in(args, 2);
    kelp_dtype to = kelp_ops_attr_dtype(args->node, "output_dtype", 0);
    if (!is_narrow_float(x->dtype) && !range_of(x->dtype, &low, &high) && x->dtype != KELP_I32)
        return kelp_ops_bad_type(args, x->dtype);
    if (zero != NULL && zero->dtype != x->dtype)
        return kelp_ops_bad_type(args, zero->dtype);
    if (to != KELP_DTYPE_INVALID && !kelp_ops_is_float(to))
        return kelp_ops_bad_type(args, to);
    KELP_TRY(read_layout(args, p));
    if (to == KELP_DTYPE_INVALID) /* results cannot have the type of power-of-two scales */
        to = scale->dtype == KELP_F8E8M0 ? KELP_F32 : scale->dtype;
    if (!kelp_ops_is_float(to))
        return kelp_ops_bad_type(args, to);
    KELP_TRY(
        plan_fast(args, p, to == KELP_F32 && (is_vector_type(x->dtype) || x->dtype == KELP_I32)));
    return kelp_ops_set(args, 0, to, x->rank, x->shape);
}

static void dequantize_runs(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_op_args *args = userp;
    const linear_plan *p = args->plan;
    const kelp_int8_kernels *loops = kelp_int8_kernels_get();
    const int32_t *zeros = zeros_of(args);
    const kelp_tensor *x = args->inputs[0];
    size_t each = kelp_ops_element_bytes(x->dtype);
    (void)worker;
    for (int64_t i = begin, length; i < end; i += length) {
        kelp_dequantize_run run = {.x = (const char *)x->data + (size_t)i * each,
                                   .y = (float *)args->outputs[0]->data + i,
                                   .dtype = x->dtype};
        int64_t at = scale_index(p, i);
        run.count = length = run_at(p, i, end, &run.stride);
        run.scale = (const float *)args->inputs[1]->data + at;
        run.zero = zeros != NULL ? zeros + at : NULL;
        loops->dequantize(&run);
    }
}

static void dequantize_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_op_args *args = userp;
    const linear_plan *p = args->plan;
    const kelp_tensor *x = args->inputs[0], *scale = args->inputs[1];
    const kelp_tensor *zero = kelp_ops_in(args, 2);
    kelp_tensor *y = args->outputs[0];
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = scale_index(p, i);
        float value = (float)(quantized_at(x, i) - (zero != NULL ? quantized_at(zero, at) : 0));
        value *= (float)kelp_ops_read_f64(scale, at);
        kelp_real_store_f32(y->dtype, y->data, i, 1, &value);
    }
}

static kelp_status *dequantize_invoke(const void *state, kelp_op_args *args) {
    const linear_plan *p = args->plan;
    int64_t count = kelp_tensor_elements(args->inputs[0]);
    (void)state;
    KELP_ASSERT(count == kelp_tensor_elements(args->outputs[0]));
    if (p->fast) {
        widen_zeros(args);
        kelp_op_parallel(args->env, count, 2 * KELP_GRAIN_ELEMENTS, dequantize_runs, args);
    } else {
        kelp_op_parallel(args->env, count, KELP_GRAIN_ELEMENTS / 8, dequantize_range, args);
    }
    return NULL;
}
KELP_KERNEL(DequantizeLinear, 0, sizeof(linear_plan), 0, dequantize_reshape, dequantize_invoke);
