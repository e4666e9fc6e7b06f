/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft MatMulNBits: A · Bᵀ with B in blocks of 2, 4 or 8 bits. Few rows of B at a time are
 * unpacked into the cache, so that only the packed bytes are read from memory. A block of 4-bit
 * elements is unpacked as all low halves, then all high halves, and A is reordered likewise.
 * Source: ONNX Runtime, ContribOperators.md.
 */
#include "base/assert.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/kernels/layout/layout_kernels.h"
#include "cpu/kernels/nbits/nbits_kernels.h"
#include "cpu/kernels/vector/vector_kernels.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/matmul/matmul_nbits.h"

enum {
    A = KELP_NBITS_A,
    B = KELP_NBITS_B,
    SCALES = KELP_NBITS_SCALES,
    ZEROS = KELP_NBITS_ZEROS,
    GROUPS = KELP_NBITS_GROUPS,
    BIAS = KELP_NBITS_BIAS
};
#define DIRECT_ROWS 4 /* maximum rows of A that are multiplied by packed elements directly */

typedef struct bits_plan {
    int64_t m, n, k, bits, block, blocks, padded; /* padded: blocks * block */
    int64_t tile, worker_elements; /* rows of B at a time; floats of a worker's scratch memory */
    bool direct;
    size_t a_ordered, sums, rows; /* offsets in scratch memory */
    const kelp_op_args *args;
    const float *a;
} bits_plan;

static kelp_status *check_operands(kelp_op_args *args, const bits_plan *p) {
    const kelp_tensor *b = args->inputs[B], *scales = args->inputs[SCALES];
    const kelp_tensor *zeros = kelp_ops_in(args, ZEROS), *bias = kelp_ops_in(args, BIAS);
    int64_t rows = p->n, packed = (p->blocks * p->bits + 7) / 8;
    if (b->dtype != KELP_U8 ||
        kelp_tensor_elements(b) != rows * p->blocks * (p->block * p->bits / 8) ||
        scales->dtype != KELP_F32 || kelp_tensor_elements(scales) != rows * p->blocks)
        return kelp_ops_bad_shapes(args, b, scales,
                                   "B and its scales do not match N, K, bits and block_size");
    if (zeros != NULL &&
        !(zeros->dtype == KELP_U8 && kelp_tensor_elements(zeros) == rows * packed) &&
        !(zeros->dtype == KELP_F32 && kelp_tensor_elements(zeros) == rows * p->blocks))
        return kelp_ops_bad_shapes(args, b, zeros, "the zero points do not match the blocks of B");
    if (bias != NULL && (bias->dtype != KELP_F32 || kelp_tensor_elements(bias) != rows))
        return kelp_ops_bad_shapes(args, b, bias, "expected a bias of N values");
    const kelp_tensor *groups = kelp_ops_in(args, GROUPS);
    if (groups != NULL &&
        (groups->dtype != KELP_I32 ||
         (kelp_tensor_elements(groups) != p->k && kelp_tensor_elements(groups) != p->padded)))
        return kelp_ops_bad_shapes(args, b, groups, "expected int32 g_idx of K values");
    return NULL;
}

kelp_status *kelp_nbits_read(const kelp_node *node, kelp_nbits *out) {
    out->n = kelp_node_attr_i64(node, "N", 0);
    out->k = kelp_node_attr_i64(node, "K", 0);
    out->bits = kelp_node_attr_i64(node, "bits", 4);
    out->block = kelp_node_attr_i64(node, "block_size", 0);
    if ((out->bits != 2 && out->bits != 4 && out->bits != 8) || out->block < 16 ||
        out->block > 1 << 20 || (out->block & (out->block - 1)) != 0 || out->n < 1 || out->k < 1 ||
        out->n > INT32_MAX || out->k > INT32_MAX)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "operator 'MatMulNBits': an attribute is out of range: found bits %lld, "
            "block_size %lld, N %lld, K %lld: expected bits 2, 4 or 8, and a power of "
            "2 from 16 to 1048576 as block_size",
            (long long)out->bits, (long long)out->block, (long long)out->n, (long long)out->k);
    out->blocks = (out->k + out->block - 1) / out->block;
    return NULL;
}

static kelp_status *bits_reshape(const void *state, kelp_op_args *args) {
    bits_plan *p = args->plan;
    kelp_nbits attributes;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 3));
    KELP_TRY(kelp_nbits_read(args->node, &attributes));
    const kelp_tensor *a = args->inputs[A];
    p->n = attributes.n;
    p->k = attributes.k;
    p->bits = attributes.bits;
    p->block = attributes.block;
    p->blocks = attributes.blocks;
    if (a->dtype != KELP_F32)
        return kelp_ops_bad_type(args, a->dtype);
    if (a->rank < 1 || a->shape[a->rank - 1] != p->k)
        return kelp_ops_bad_shapes(args, a, args->inputs[B], "the last dimension of A must be K");
    p->m = kelp_ops_product(a->shape, 0, a->rank - 1);
    p->padded = p->blocks * p->block;
    KELP_TRY(check_operands(args, p));
    int64_t a_floats;
    if (!kelp_i64_mul(p->m, p->padded, &a_floats))
        return kelp_ops_bad_shapes(args, a, args->inputs[B], "A is too large");
    KELP_TRY(kelp_ops_scratch(args, a_floats, sizeof(float), &p->a_ordered));
    p->tile = kelp_gemm_kernels_get()->tile_columns;
    p->direct = p->bits >= 4 && kelp_ops_in(args, GROUPS) == NULL && p->m <= DIRECT_ROWS &&
                p->block * p->bits / 8 % kelp_nbits_kernels_get()->lanes == 0;
    if (!kelp_i64_mul(2 * p->tile, p->padded, &p->worker_elements))
        return kelp_ops_bad_shapes(args, a, args->inputs[B], "K is too large");
    KELP_TRY(kelp_ops_scratch(args, p->direct ? p->m * p->blocks : 0, sizeof(float), &p->sums));
    KELP_TRY(kelp_ops_scratch(args, p->direct ? 0 : p->worker_elements,
                              sizeof(float) * (size_t)kelp_op_env_threads(args->env), &p->rows));
    int64_t shape[KELP_MAX_RANK];
    memcpy(shape, a->shape, sizeof shape);
    shape[a->rank - 1] = p->n;
    return kelp_ops_set(args, 0, KELP_F32, a->rank, shape);
}

/* Reorders rows of A like the elements of B, and pads them to whole blocks. */
static void order_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_layout_kernels *layout = kelp_layout_kernels_get();
    const bits_plan *p = userp;
    uintptr_t writable = (uintptr_t)p->a;
    int64_t half = p->block / 2, whole = p->bits == 4 ? p->k / p->block : 0;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        const float *from = (const float *)p->args->inputs[A]->data + row * p->k;
        float *to = (float *)writable + row * p->padded;
        memset(to + p->padded - p->block, 0, (size_t)p->block * sizeof *to);
        if (p->bits != 4) {
            memcpy(to, from, (size_t)p->k * sizeof *to);
            continue;
        }
        layout->split_rows(to, to + half, p->block, from, p->block, whole, half, half);
        for (int64_t i = whole * p->block; i < p->k; i++) {
            int64_t at = i - whole * p->block;
            to[whole * p->block + at / 2 + at % 2 * half] = from[i];
        }
    }
}

static float zero_of(const bits_plan *p, int64_t row, int64_t block) {
    const kelp_tensor *zeros = kelp_ops_in(p->args, ZEROS);
    if (zeros == NULL)
        return (float)(1 << (p->bits - 1));
    if (zeros->dtype == KELP_F32)
        return ((const float *)zeros->data)[row * p->blocks + block];
    int64_t bit = block * p->bits;
    const uint8_t *bytes =
        (const uint8_t *)zeros->data + row * ((p->blocks * p->bits + 7) / 8) + bit / 8;
    return (float)(*bytes >> (bit % 8) & ((1 << p->bits) - 1));
}

/* Unpacks a row whose elements each name the block of their scale and zero point. */
static void unpack_groups(const bits_plan *p, int64_t row, float *to) {
    const int32_t *groups = kelp_ops_in(p->args, GROUPS)->data;
    int64_t each = 8 / p->bits, half = p->block / 2;
    const uint8_t *from = (const uint8_t *)p->args->inputs[B]->data + row * p->padded / each;
    const float *scales = (const float *)p->args->inputs[SCALES]->data + row * p->blocks;
    for (int64_t i = 0; i < p->padded; i++) {
        int32_t group = i < p->k ? groups[i] : 0;
        int64_t in = i % p->block, at = p->bits == 4 ? i - in + in / 2 + in % 2 * half : i;
        int value = from[i / each] >> i % each * p->bits & ((1 << p->bits) - 1);
        to[at] = ((float)value - zero_of(p, row, group)) * scales[group];
    }
}

static void unpack_row(const bits_plan *p, const kelp_nbits_kernels *nbits, int64_t row,
                       float *to) {
    if (kelp_ops_in(p->args, GROUPS) != NULL) {
        unpack_groups(p, row, to);
        return;
    }
    int64_t bytes = p->block * p->bits / 8;
    const uint8_t *from = (const uint8_t *)p->args->inputs[B]->data + row * p->blocks * bytes;
    const float *scales = (const float *)p->args->inputs[SCALES]->data + row * p->blocks;
    for (int64_t b = 0; b < p->blocks; b++, from += bytes, to += p->block) {
        float zero = zero_of(p, row, b), scale = scales[b];
        if (p->bits == 4) {
            nbits->nibbles(from, bytes, zero, scale, to, to + bytes);
        } else if (p->bits == 8) {
            for (int64_t i = 0; i < bytes; i++)
                to[i] = ((float)from[i] - zero) * scale;
        } else {
            for (int64_t i = 0; i < p->block; i++)
                to[i] = ((float)(from[i / 4] >> (2 * (i % 4)) & 3) - zero) * scale;
        }
    }
}

static void add_bias(const bits_plan *p, int64_t first, int64_t count, float *y) {
    const kelp_tensor *bias = kelp_ops_in(p->args, BIAS);
    for (int64_t i = 0; i < p->m && bias != NULL; i++)
        for (int64_t j = first; j < first + count; j++)
            y[i * p->n + j] += ((const float *)bias->data)[j];
}

static void tile_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_gemm_kernels *gemm = kelp_gemm_kernels_get();
    const kelp_nbits_kernels *nbits = kelp_nbits_kernels_get();
    const kelp_vector_kernels *vector = kelp_vector_kernels_get();
    const bits_plan *p = userp;
    float *rows = (float *)kelp_ops_scratch_at(p->args, p->rows) + worker * p->worker_elements;
    float *panel = rows + p->tile * p->padded, *y = p->args->outputs[0]->data;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t first = unit * p->tile, count = KELP_MIN(p->tile, p->n - first);
        for (int64_t j = 0; j < count; j++)
            unpack_row(p, nbits, first + j, rows + j * p->padded);
        if (p->m > DIRECT_ROWS) {
            kelp_gemm_pack_transposed(gemm, rows, p->padded, p->padded, count, panel);
            kelp_gemm_run_serial(gemm, &(kelp_gemm){.a = p->a,
                                                    .packed = panel,
                                                    .c = y + first,
                                                    .m = p->m,
                                                    .n = count,
                                                    .k = p->padded,
                                                    .lda = p->padded,
                                                    .ldb = count,
                                                    .ldc = p->n});
        } else {
            for (int64_t i = 0; i < p->m; i++)
                vector->dots(p->a + i * p->padded, rows, p->padded, count, p->padded,
                             y + i * p->n + first);
        }
        add_bias(p, first, count, y);
    }
}

/* Computes scaled[b] = scales[b] * zero point for blocks from `first` on. */
static void scale_zeros(const bits_plan *p, int64_t row, int64_t first, int64_t count,
                        const float *scales, float *scaled) {
    const kelp_tensor *zeros = kelp_ops_in(p->args, ZEROS);
    int64_t b = 0;
    KELP_ASSERT(first % 2 == 0); /* two zero points share a byte */
    if (zeros->dtype == KELP_U8 && p->bits == 4) {
        const uint8_t *pairs =
            (const uint8_t *)zeros->data + row * ((p->blocks + 1) / 2) + first / 2;
        for (; b + 2 <= count; b += 2) {
            unsigned pair = pairs[b / 2];
            scaled[b] = scales[b] * (float)(pair & 15);
            scaled[b + 1] = scales[b + 1] * (float)(pair >> 4);
        }
    }
    for (; b < count; b++)
        scaled[b] = scales[b] * zero_of(p, row, first + b);
}

/* Returns the sum, over the blocks, of scale * zero point * sum of the block of A. */
static float zeros_of(const bits_plan *p, const kelp_vector_kernels *vector, int64_t row,
                      const float *scales, const float *sums) {
    enum { CHUNK = 256 };
    float scaled[CHUNK], all = 0, part;
    if (kelp_ops_in(p->args, ZEROS) == NULL) {
        vector->dots(scales, sums, 0, 1, p->blocks, &all);
        return all * zero_of(p, row, 0);
    }
    for (int64_t first = 0; first < p->blocks; first += CHUNK) {
        int64_t count = KELP_MIN((int64_t)CHUNK, p->blocks - first);
        scale_zeros(p, row, first, count, scales + first, scaled);
        vector->dots(scaled, sums + first, 0, 1, count, &part);
        all += part;
    }
    return all;
}

static void direct_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_nbits_kernels *nbits = kelp_nbits_kernels_get();
    const kelp_vector_kernels *vector = kelp_vector_kernels_get();
    const bits_plan *p = userp;
    const float *sums = kelp_ops_scratch_at(p->args, p->sums);
    float *y = p->args->outputs[0]->data;
    int64_t bytes = p->block * p->bits / 8;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        const uint8_t *from = (const uint8_t *)p->args->inputs[B]->data + row * p->blocks * bytes;
        const float *scales = (const float *)p->args->inputs[SCALES]->data + row * p->blocks;
        for (int64_t i = 0; i < p->m; i++) {
            const float *a = p->a + i * p->padded;
            float whole = p->bits == 4 ? nbits->nibble_dot(from, scales, a, p->blocks, bytes)
                                       : nbits->byte_dot(from, scales, a, p->blocks, bytes);
            y[i * p->n + row] = whole - zeros_of(p, vector, row, scales, sums + i * p->blocks);
        }
    }
    add_bias(p, begin, end - begin, y);
}

static void sum_blocks(const bits_plan *p) {
    float *sums = kelp_ops_scratch_at(p->args, p->sums);
    for (int64_t i = 0; i < p->m * p->blocks; i++) {
        sums[i] = 0;
        for (int64_t k = 0; k < p->block; k++)
            sums[i] += p->a[i * p->block + k];
    }
}

static kelp_status *check_groups(const kelp_op_args *args, const bits_plan *p) {
    const kelp_tensor *groups = kelp_ops_in(args, GROUPS);
    for (int64_t i = 0; groups != NULL && i < p->k; i++) {
        int32_t group = ((const int32_t *)groups->data)[i];
        if (group < 0 || group >= p->blocks)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "operator 'MatMulNBits': element %lld of g_idx is out of range: "
                              "found %d, expected 0 to %lld",
                              (long long)i, group, (long long)p->blocks - 1);
    }
    return NULL;
}

static kelp_status *bits_invoke(const void *state, kelp_op_args *args) {
    bits_plan *p = args->plan;
    (void)state;
    KELP_TRY(check_groups(args, p));
    KELP_ASSERT(p->padded == p->blocks * p->block && p->padded >= p->k);
    KELP_ASSERT(!p->direct || p->m <= DIRECT_ROWS);
    p->args = args;
    p->a = kelp_ops_scratch_at(args, p->a_ordered);
    kelp_op_parallel(args->env, p->m, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->padded), order_range,
                     p);
    if (p->direct) {
        sum_blocks(p);
        kelp_op_parallel(
            args->env, p->n,
            kelp_cpu_grain(KELP_GRAIN_BITS_ROWS, p->padded * KELP_MAX(p->m, (int64_t)1)),
            direct_range, p);
        return NULL;
    }
    int64_t work = p->tile * p->padded * (p->m + 1);
    kelp_op_parallel(args->env, (p->n + p->tile - 1) / p->tile,
                     kelp_cpu_grain(KELP_GRAIN_BITS_TILES, work), tile_range, p);
    return NULL;
}
KELP_CONVERTED_PHASES(bits, kelp_widened, sizeof(bits_plan), bits_reshape, bits_invoke)

static kelp_status *nbits_reshape(const void *state, kelp_op_args *args) {
    return state != NULL ? kelp_nbits_int8_reshape(state, args) : bits_reshape_any(state, args);
}

static kelp_status *nbits_invoke(const void *state, kelp_op_args *args) {
    return state != NULL ? kelp_nbits_int8_invoke(state, args) : bits_invoke_any(state, args);
}

#define PLAN_BYTES KELP_CONVERTED_PLAN(sizeof(bits_plan))
_Static_assert(sizeof(kelp_nbits_int8_plan) <= PLAN_BYTES, "the plan fits both algorithms");
const kelp_op_kernel kelp_op_MsMatMulNBits = {.struct_size = sizeof(kelp_op_kernel),
                                              .flags = KELP_OP_STATE_OPTIONAL,
                                              .plan_bytes = PLAN_BYTES,
                                              .create = kelp_nbits_int8_create,
                                              .destroy = kelp_nbits_int8_destroy,
                                              .reshape = nbits_reshape,
                                              .invoke = nbits_invoke};
