/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft GatherBlockQuantized: slices of quantized data, dequantized with a scale and a zero
 * point for each block of an axis. An index out of range gives zeros.
 * Source: ONNX Runtime, ContribOperators.md.
 */
#include "base/assert.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

enum { DATA, INDICES, SCALES, ZEROS };
#define CHUNK 256 /* floats between dequantizing and storing */

typedef struct gather_plan {
    int64_t outer, size, inner;     /* before, on and after the axis of the indices */
    int64_t blocked, after, block;  /* on and after the quantized axis; its block */
    int64_t shape[KELP_MAX_RANK];   /* of the elements of data */
    int64_t strides[KELP_MAX_RANK]; /* of scales; 0: one scale for all */
    int64_t zero_strides[KELP_MAX_RANK];
    int32_t rank, axis; /* axis: the quantized one */
    int bits;
    float default_zero, values[256]; /* value of each code */
    const kelp_op_args *args;
} gather_plan;

static bool is_narrow_float(kelp_dtype dtype) {
    return (dtype >= KELP_F8E4M3FN && dtype <= KELP_F8E5M2FNUZ) || dtype == KELP_F4E2M1;
}

static void set_values(gather_plan *p, kelp_dtype dtype) {
    for (int code = 0; code < 1 << p->bits; code++) {
        bool negative = dtype == KELP_I4 && code >= 8;
        p->values[code] = is_narrow_float(dtype) ? kelp_narrow_to_f32(dtype, (uint8_t)code)
                                                 : (float)(negative ? code - 16 : code);
    }
}

static kelp_status *read_types(kelp_op_args *args, gather_plan *p) {
    const kelp_tensor *data = args->inputs[DATA], *indices = args->inputs[INDICES];
    const kelp_tensor *scales = args->inputs[SCALES], *zeros = kelp_ops_in(args, ZEROS);
    int64_t bits = kelp_node_attr_i64(args->node, "bits", 4);
    bool narrow = is_narrow_float(data->dtype);
    if (data->dtype == KELP_U8 && bits != 2 && bits != 4 && bits != 8)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'GatherBlockQuantized': attribute 'bits' is %lld: expected 2, "
                          "4 or 8",
                          (long long)bits);
    if (!narrow && data->dtype != KELP_U8 && data->dtype != KELP_U4 && data->dtype != KELP_I4)
        return kelp_ops_bad_type(args, data->dtype);
    if (indices->dtype != KELP_I32 && indices->dtype != KELP_I64)
        return kelp_ops_bad_type(args, indices->dtype);
    if (scales->dtype != KELP_F32 && scales->dtype != KELP_F16 && scales->dtype != KELP_BF16)
        return kelp_ops_bad_type(args, scales->dtype);
    if (zeros != NULL && (narrow || zeros->dtype != data->dtype))
        return kelp_ops_bad_type(args, zeros->dtype);
    p->bits = data->dtype == KELP_U8 ? (int)bits : (int)kelp_dtype_bits(data->dtype);
    p->default_zero = data->dtype == KELP_U8 ? (float)(1 << (p->bits - 1)) : 0.0f;
    set_values(p, data->dtype);
    return NULL;
}

/* Reads the dimensions of the elements: a byte of `data` may hold several of the last one. */
static kelp_status *read_shape(kelp_op_args *args, gather_plan *p, int32_t *out_gather) {
    const kelp_tensor *data = args->inputs[DATA];
    p->block = kelp_node_attr_i64(args->node, "block_size", 128);
    bool whole = p->block == 0 && is_narrow_float(data->dtype);
    p->rank = data->rank;
    KELP_TRY(
        kelp_ops_axis(args, kelp_node_attr_i64(args->node, "gather_axis", 0), p->rank, out_gather));
    KELP_TRY(
        kelp_ops_axis(args, kelp_node_attr_i64(args->node, "quantize_axis", 1), p->rank, &p->axis));
    bool packed = data->dtype == KELP_U8 && p->bits < 8;
    if ((!whole && (p->block < 16 || (p->block & (p->block - 1)) != 0)) ||
        (packed && *out_gather == p->rank - 1))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'GatherBlockQuantized': an attribute is out of range: found "
                          "block_size %lld and gather_axis %d: expected a power of 2 from 16 on, "
                          "and another axis than that of packed elements",
                          (long long)p->block, *out_gather);
    memcpy(p->shape, data->shape, sizeof p->shape);
    if (packed)
        p->shape[p->rank - 1] *= 8 / p->bits;
    p->blocked = p->shape[p->axis];
    p->after = kelp_ops_product(p->shape, p->axis + 1, p->rank);
    if (whole)
        p->block = KELP_MAX((int64_t)1, p->blocked);
    p->outer = kelp_ops_product(p->shape, 0, *out_gather);
    p->size = p->shape[*out_gather];
    p->inner = kelp_ops_product(p->shape, *out_gather + 1, p->rank);
    return NULL;
}

/* Checks scales and zero points, and computes their strides in elements. */
static kelp_status *read_scales(kelp_op_args *args, gather_plan *p) {
    const kelp_tensor *data = args->inputs[DATA], *scales = args->inputs[SCALES];
    const kelp_tensor *zeros = kelp_ops_in(args, ZEROS);
    int64_t stride = 1, zero_stride = 1, each = data->dtype == KELP_U8 ? 8 / p->bits : 1;
    bool fits = scales->rank == p->rank && (zeros == NULL || zeros->rank == p->rank);
    for (int32_t i = p->rank - 1; fits && i >= 0; i--) {
        int64_t size = i == p->axis ? (p->blocked + p->block - 1) / p->block : p->shape[i];
        int64_t zero_size = i == p->rank - 1 ? (size + each - 1) / each : size;
        bool one = is_narrow_float(data->dtype) && i != p->axis && scales->shape[i] == 1;
        fits = (scales->shape[i] == size || one) && (zeros == NULL || zeros->shape[i] == zero_size);
        p->strides[i] = one ? 0 : stride;
        p->zero_strides[i] = zero_stride;
        stride *= scales->shape[i];
        zero_stride *= i == p->rank - 1 ? zero_size * each : size;
    }
    return fits ? NULL
                : kelp_ops_bad_shapes(args, data, fits ? zeros : scales,
                                      "scales and zero points do not match the blocks of data");
}

static kelp_status *gather_reshape(const void *state, kelp_op_args *args) {
    gather_plan *p = args->plan;
    int32_t axis = 0, rank = 0;
    int64_t shape[KELP_MAX_RANK];
    (void)state;
    KELP_TRY(kelp_ops_check(args, 3));
    const kelp_tensor *indices = args->inputs[INDICES];
    KELP_TRY(read_types(args, p));
    KELP_TRY(read_shape(args, p, &axis));
    KELP_TRY(read_scales(args, p));
    if (p->rank - 1 + indices->rank > KELP_MAX_RANK)
        return kelp_ops_bad_shapes(args, args->inputs[DATA], indices,
                                   "the result has too many dimensions");
    for (int32_t i = 0; i < p->rank; i++) {
        if (i != axis)
            shape[rank++] = p->shape[i];
        for (int32_t k = 0; i == axis && k < indices->rank; k++)
            shape[rank++] = indices->shape[k];
    }
    return kelp_ops_set(args, 0, args->inputs[SCALES]->dtype, rank, shape);
}

/* ---- invoke ---- */
static unsigned code_at(const gather_plan *p, const void *data, int64_t index) {
    int64_t each = 8 / p->bits;
    return ((const uint8_t *)data)[index / each] >> index % each * p->bits & ((1 << p->bits) - 1);
}

/* Dequantizes up to `count` elements from `first` on, all of one scale; returns their number. */
static int64_t dequantize(const gather_plan *p, int64_t first, int64_t count, float *to) {
    const kelp_tensor *scales = p->args->inputs[SCALES], *zeros = kelp_ops_in(p->args, ZEROS);
    const void *data = p->args->inputs[DATA]->data;
    int64_t scale_at = 0, zero_at = 0, at = first, in_block = 0;
    float scale, zero = p->default_zero;
    for (int32_t i = p->rank - 1; i >= 0; i--) {
        int64_t index = at % p->shape[i];
        if (i == p->axis) {
            in_block = index % p->block;
            count = KELP_MIN(count,
                             p->after > 1 ? 1 : KELP_MIN(p->block - in_block, p->blocked - index));
            index /= p->block;
        }
        scale_at += index * p->strides[i];
        zero_at += index * p->zero_strides[i];
        at /= p->shape[i];
    }
    kelp_real_load_f32(scales->dtype, scales->data, scale_at, 1, &scale);
    if (zeros != NULL)
        zero = p->values[code_at(p, zeros->data, zero_at)];
    for (int64_t i = 0; i < count; i++)
        to[i] = (p->values[code_at(p, data, first + i)] - zero) * scale;
    return count;
}

/* Computes slices of the output. */
static void gather_range(void *userp, int64_t begin, int64_t end, int worker) {
    const gather_plan *p = userp;
    const kelp_tensor *indices = p->args->inputs[INDICES];
    kelp_tensor *y = p->args->outputs[0];
    int64_t count = kelp_tensor_elements(indices);
    float line[CHUNK];
    (void)worker;
    for (int64_t slice = begin; slice < end; slice++) {
        int64_t index = kelp_ops_read_i64(indices, slice % count);
        index = index < 0 ? index + p->size : index;
        bool inside = index >= 0 && index < p->size;
        int64_t from = (slice / count * p->size + index) * p->inner;
        if (!inside)
            memset(line, 0, sizeof line);
        for (int64_t i = 0; i < p->inner;) {
            int64_t each = KELP_MIN((int64_t)CHUNK, p->inner - i);
            if (inside)
                each = dequantize(p, from + i, each, line);
            kelp_tensor_store_f32(y, slice * p->inner + i, each, line);
            i += each;
        }
    }
}

static kelp_status *gather_invoke(const void *state, kelp_op_args *args) {
    gather_plan *p = args->plan;
    (void)state;
    KELP_ASSERT(p->rank == args->inputs[DATA]->rank && p->block >= 1);
    p->args = args;
    kelp_op_parallel(args->env, p->outer * kelp_tensor_elements(args->inputs[INDICES]),
                     kelp_cpu_grain(KELP_GRAIN_ELEMENTS, 2 * p->inner), gather_range, p);
    return NULL;
}
KELP_KERNEL(MsGatherBlockQuantized, 0, sizeof(gather_plan), 0, gather_reshape, gather_invoke);
