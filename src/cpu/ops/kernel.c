/* SPDX-License-Identifier: Apache-2.0 */
/* Checks, shapes and broadcasting that the kernels share. */
#include "cpu/ops/kernel.h"

#include "base/assert.h"
#include "tensor/convert.h"

kelp_status *kelp_ops_check_inputs(const kelp_op_args *args, int32_t count) {
    KELP_ASSERT(args->node != NULL && args->input_count >= 0);
    for (int32_t i = 0; i < count; i++)
        if (kelp_ops_in(args, i) == NULL)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "operator '%s' needs %d inputs: input %d is missing",
                              kelp_node_op_type(args->node), count, i);
    return NULL;
}

kelp_status *kelp_ops_check(const kelp_op_args *args, int32_t count) {
    if (kelp_ops_out(args, 0) == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "operator '%s' needs output 0: it is omitted",
                          kelp_node_op_type(args->node));
    return kelp_ops_check_inputs(args, count);
}

kelp_status *kelp_ops_set(kelp_op_args *args, int32_t index, kelp_dtype dtype, int32_t rank,
                          const int64_t *shape) {
    kelp_tensor *out = kelp_ops_out(args, index);
    if (out == NULL)
        return NULL;
    return kelp_tensor_init(out, dtype, rank, shape, NULL);
}

kelp_status *kelp_ops_set_like(kelp_op_args *args, int32_t index, const kelp_tensor *like) {
    return kelp_ops_set(args, index, like->dtype, like->rank, like->shape);
}

kelp_status *kelp_ops_bad_type(const kelp_op_args *args, kelp_dtype dtype) {
    return KELP_ERROR(KELP_UNIMPLEMENTED, "operator '%s' does not support %s",
                      kelp_node_op_type(args->node), kelp_dtype_name(dtype));
}

kelp_status *kelp_ops_bad_shapes(const kelp_op_args *args, const kelp_tensor *a,
                                 const kelp_tensor *b, const char *why) {
    char first[256] = "", second[256] = "";
    if (a != NULL)
        kelp_shape_format(a->rank, a->shape, first, sizeof first);
    if (b != NULL)
        kelp_shape_format(b->rank, b->shape, second, sizeof second);
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "operator '%s': %s: found %s%s%s",
                      kelp_node_op_type(args->node), why, first, b ? " and " : "", second);
}

bool kelp_ops_defer(kelp_op_args *args, int32_t index) {
    const kelp_tensor *tensor = kelp_ops_in(args, index);
    if (tensor != NULL && tensor->data == NULL && kelp_tensor_elements(tensor) > 0)
        args->deferred = true;
    return args->deferred;
}

kelp_dtype kelp_ops_attr_dtype(const kelp_node *node, const char *name, int64_t fallback) {
    int64_t number = kelp_node_attr_i64(node, name, fallback);
    return number > 0 && number < KELP_DTYPE_COUNT ? (kelp_dtype)number : KELP_DTYPE_INVALID;
}

kelp_status *kelp_ops_axis(const kelp_op_args *args, int64_t axis, int32_t rank, int32_t *out) {
    if (axis < -(int64_t)rank || axis >= rank)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator '%s': axis %lld is outside a tensor of rank %d",
                          kelp_node_op_type(args->node), (long long)axis, rank);
    *out = (int32_t)(axis < 0 ? axis + rank : axis);
    return NULL;
}

int64_t kelp_ops_read_i64(const kelp_tensor *tensor, int64_t index) {
    const char *data = tensor->data;
    KELP_ASSERT(index >= 0 && index < kelp_tensor_elements(tensor));
    switch (tensor->dtype) {
#define CASE(type_name, type)                                              \
    case type_name: {                                                      \
        type value;                                                        \
        memcpy(&value, data + (size_t)index * sizeof value, sizeof value); \
        return (int64_t)value;                                             \
    }
        CASE(KELP_I64, int64_t)
        CASE(KELP_I32, int32_t)
        CASE(KELP_I16, int16_t)
        CASE(KELP_I8, int8_t)
        CASE(KELP_U64, uint64_t)
        CASE(KELP_U32, uint32_t)
        CASE(KELP_U16, uint16_t)
        CASE(KELP_U8, uint8_t)
        CASE(KELP_BOOL, uint8_t)
#undef CASE
    default:
        return (int64_t)kelp_ops_read_f64(tensor, index);
    }
}

static bool is_whole(kelp_dtype dtype) {
    return dtype == KELP_BOOL || dtype == KELP_I8 || dtype == KELP_I16 || dtype == KELP_I32 ||
           dtype == KELP_I64 || dtype == KELP_U8 || dtype == KELP_U16 || dtype == KELP_U32;
}

double kelp_ops_read_f64(const kelp_tensor *tensor, int64_t index) {
    const char *data = tensor->data;
    KELP_ASSERT(index >= 0 && index < kelp_tensor_elements(tensor));
    if (tensor->dtype == KELP_F32) {
        float value;
        memcpy(&value, data + (size_t)index * 4, 4);
        return (double)value;
    }
    if (tensor->dtype == KELP_F64) {
        double value;
        memcpy(&value, data + (size_t)index * 8, 8);
        return value;
    }
    if (tensor->dtype == KELP_F16 || tensor->dtype == KELP_BF16) {
        uint16_t bits;
        memcpy(&bits, data + (size_t)index * 2, 2);
        return (double)(tensor->dtype == KELP_F16 ? kelp_f16_to_f32(bits) : kelp_bf16_to_f32(bits));
    }
    if ((tensor->dtype >= KELP_F8E4M3FN && tensor->dtype <= KELP_F8E5M2FNUZ) ||
        tensor->dtype == KELP_F8E8M0)
        return (double)kelp_narrow_to_f32(tensor->dtype, ((const uint8_t *)data)[index]);
    if (tensor->dtype == KELP_U64)
        return (double)(uint64_t)kelp_ops_read_i64(tensor, index);
    return is_whole(tensor->dtype) ? (double)kelp_ops_read_i64(tensor, index) : 0;
}

kelp_status *kelp_ops_i64s(const kelp_op_args *args, const kelp_tensor *tensor, int64_t *out,
                           size_t capacity, size_t *out_count) {
    int64_t count = kelp_tensor_elements(tensor);
    if ((tensor->dtype != KELP_I64 && tensor->dtype != KELP_I32) || tensor->rank > 1 ||
        count > (int64_t)capacity)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "operator '%s' expects a list of at most %zu int64 or int32: found %lld of "
            "%s, rank %d",
            kelp_node_op_type(args->node), capacity, (long long)count,
            kelp_dtype_name(tensor->dtype), tensor->rank);
    KELP_ASSERT(tensor->data != NULL || count == 0);
    for (int64_t i = 0; i < count; i++)
        out[i] = kelp_ops_read_i64(tensor, i);
    *out_count = (size_t)count;
    return NULL;
}

kelp_status *kelp_ops_axes(kelp_op_args *args, int32_t input, int32_t rank, uint32_t *out_mask,
                           bool *out_found) {
    int64_t axes[KELP_MAX_RANK];
    const int64_t *list = NULL;
    size_t count = 0;
    const kelp_tensor *tensor = input >= 0 ? kelp_ops_in(args, input) : NULL;
    if (tensor != NULL) {
        if (kelp_ops_defer(args, input))
            return NULL;
        KELP_TRY(kelp_ops_i64s(args, tensor, axes, KELP_MAX_RANK, &count));
        list = axes;
    } else {
        count = kelp_node_attr_i64s(args->node, "axes", &list);
    }
    *out_mask = 0;
    *out_found = count > 0;
    for (size_t i = 0; i < count; i++) {
        int32_t axis = 0;
        KELP_TRY(kelp_ops_axis(args, list[i], rank, &axis));
        if ((*out_mask >> axis) & 1u)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "operator '%s': axis %lld occurs twice",
                              kelp_node_op_type(args->node), (long long)list[i]);
        *out_mask |= 1u << axis;
    }
    return NULL;
}

int64_t kelp_ops_product(const int64_t *shape, int32_t first, int32_t last) {
    int64_t product = 1;
    KELP_ASSERT(first >= 0 && last <= KELP_MAX_RANK);
    for (int32_t i = first; i < last; i++)
        product *= shape[i];
    return product;
}

size_t kelp_ops_element_bytes(kelp_dtype dtype) {
    uint32_t bits = kelp_dtype_bits(dtype);
    return bits % 8 == 0 ? bits / 8 : 0;
}

bool kelp_ops_is_packed(kelp_dtype dtype) {
    uint32_t bits = kelp_dtype_bits(dtype);
    return bits > 0 && bits < 8 && 8 % bits == 0;
}

static void copy_bits(uint8_t *to, int64_t to_first, const uint8_t *from, int64_t from_first,
                      int64_t count, uint32_t bits) {
    uint32_t mask = (1u << bits) - 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t a = (from_first + i) * bits, b = (to_first + i) * bits;
        uint32_t value = from[a / 8] >> (a % 8) & mask;
        to[b / 8] = (uint8_t)((to[b / 8] & ~(mask << (b % 8))) | value << (b % 8));
    }
}

void kelp_ops_copy_elements(kelp_dtype dtype, void *to, int64_t to_first, const void *from,
                            int64_t from_first, int64_t count) {
    size_t size = kelp_ops_element_bytes(dtype);
    KELP_ASSERT(size > 0 || kelp_ops_is_packed(dtype));
    if (size == 0)
        copy_bits(to, to_first, from, from_first, count, kelp_dtype_bits(dtype));
    else if (count > 0)
        memcpy((char *)to + (size_t)to_first * size, (const char *)from + (size_t)from_first * size,
               (size_t)count * size);
}

void kelp_ops_clear_end(const kelp_tensor *tensor) {
    size_t bytes = kelp_tensor_bytes(tensor);
    if (bytes > 0 && kelp_ops_is_packed(tensor->dtype))
        ((uint8_t *)tensor->data)[bytes - 1] = 0;
}

bool kelp_ops_is_float(kelp_dtype dtype) {
    return dtype == KELP_F32 || dtype == KELP_F64 || dtype == KELP_F16 || dtype == KELP_BF16;
}

kelp_status *kelp_ops_scratch(kelp_op_args *args, int64_t count, size_t element_bytes,
                              size_t *out_offset) {
    size_t bytes, end;
    if (count < 0 || !kelp_size_mul((size_t)count, element_bytes, &bytes) ||
        !kelp_size_add(args->scratch_bytes, bytes, &end) || !kelp_size_align(end, 64, &end))
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "operator '%s' needs more scratch memory than the address space has",
                          kelp_node_op_type(args->node));
    *out_offset = args->scratch_bytes;
    args->scratch_bytes = end;
    return NULL;
}

/* ---- broadcasting ---- */
bool kelp_ops_broadcast_shape(int32_t *inout_rank, int64_t *inout_shape, int32_t rank,
                              const int64_t *shape) {
    int64_t merged[KELP_MAX_RANK];
    int32_t max_rank = KELP_MAX(*inout_rank, rank);
    KELP_ASSERT(max_rank <= KELP_MAX_RANK);
    for (int32_t i = 0; i < max_rank; i++) {
        int32_t a = i - (max_rank - *inout_rank), b = i - (max_rank - rank);
        int64_t x = a >= 0 ? inout_shape[a] : 1, y = b >= 0 ? shape[b] : 1;
        if (x != y && x != 1 && y != 1)
            return false;
        merged[i] = x == 1 ? y : x;
    }
    memcpy(inout_shape, merged, (size_t)max_rank * sizeof *merged);
    *inout_rank = max_rank;
    return true;
}

void kelp_bcast_init(kelp_bcast *bcast, int32_t rank, const int64_t *shape,
                     const kelp_tensor *const *operands, int32_t count) {
    KELP_ASSERT(count > 0 && count <= KELP_BCAST_MAX && rank <= KELP_MAX_RANK);
    bcast->operands = count;
    bcast->rank = 0;
    for (int32_t i = 0; i < rank; i++) {
        if (shape[i] == 1)
            continue;
        int64_t strides[KELP_BCAST_MAX];
        bool merge = bcast->rank > 0;
        int32_t last = bcast->rank - 1;
        for (int32_t k = 0; k < count; k++) {
            int32_t axis = i - (rank - operands[k]->rank);
            bool moves = axis >= 0 && operands[k]->shape[axis] != 1;
            strides[k] = 0;
            if (moves)
                strides[k] = kelp_ops_product(operands[k]->shape, axis + 1, operands[k]->rank);
            merge = merge && bcast->strides[k][last] == strides[k] * shape[i];
        }
        if (merge) {
            bcast->shape[last] *= shape[i];
        } else {
            last = bcast->rank++;
            bcast->shape[last] = shape[i];
        }
        for (int32_t k = 0; k < count; k++)
            bcast->strides[k][last] = strides[k];
    }
    if (bcast->rank == 0) {
        bcast->rank = 1;
        bcast->shape[0] = 1;
        for (int32_t k = 0; k < count; k++)
            bcast->strides[k][0] = 1;
    }
    bcast->inner = bcast->shape[bcast->rank - 1];
    bcast->outer = kelp_ops_product(bcast->shape, 0, bcast->rank - 1);
}

void kelp_bcast_row(const kelp_bcast *bcast, int64_t row, int64_t *out_offsets) {
    KELP_ASSERT(row >= 0 && row < bcast->outer);
    for (int32_t k = 0; k < bcast->operands; k++)
        out_offsets[k] = 0;
    for (int32_t i = bcast->rank - 2; i >= 0; i--) {
        int64_t at = row % bcast->shape[i];
        row /= bcast->shape[i];
        for (int32_t k = 0; k < bcast->operands; k++)
            out_offsets[k] += at * bcast->strides[k][i];
    }
}

typedef struct bcast_job {
    const kelp_bcast *bcast;
    kelp_bcast_fn *fn;
    void *userp;
} bcast_job;

static void bcast_part(const bcast_job *job, int64_t row, int64_t first, int64_t count) {
    const kelp_bcast *b = job->bcast;
    kelp_bcast_part part = {.to = row * b->inner + first, .count = count};
    kelp_bcast_row(b, row, part.from);
    for (int32_t k = 0; k < b->operands; k++) {
        part.steps[k] = (int)b->strides[k][b->rank - 1];
        part.from[k] += first * part.steps[k];
    }
    job->fn(job->userp, &part);
}

static void bcast_rows(void *userp, int64_t begin, int64_t end, int worker) {
    const bcast_job *job = userp;
    (void)worker;
    for (int64_t row = begin; row < end; row++)
        bcast_part(job, row, 0, job->bcast->inner);
}

static void bcast_row_range(void *userp, int64_t begin, int64_t end, int worker) {
    (void)worker;
    bcast_part(userp, 0, begin, end - begin);
}

void kelp_bcast_run(const kelp_op_env *env, const kelp_bcast *bcast, int64_t grain,
                    kelp_bcast_fn *fn, void *userp) {
    bcast_job job = {bcast, fn, userp};
    if (bcast->outer == 1)
        kelp_op_parallel(env, bcast->inner, grain, bcast_row_range, &job);
    else if (bcast->inner > 0)
        kelp_op_parallel(env, bcast->outer, kelp_cpu_grain(grain, bcast->inner), bcast_rows, &job);
}
