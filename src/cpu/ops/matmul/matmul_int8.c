/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MatMulInteger, QLinearMatMul, and kelp::QMatMul, which passes create (A, its scale and zero
 * point, B, its scale and zero point, bias, scale and zero point of an intermediate quantization,
 * addend, scale and zero point of the result; attribute activation). com.microsoft
 * MatMulIntegerToFloat, DynamicQuantizeMatMul and QGemm. Constant B is packed once. Source: ONNX
 * operator specification; ONNX Runtime, ContribOperators.md.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/ops/activation.h"
#include "cpu/ops/matmul/batch.h"
#include "cpu/ops/operand.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/ops/kernel.h"
#include "cpu/ops/matmul/int8_epilogue.h"
#include "cpu/ops/matmul/int8_rows.h"
#include "cpu/ops/quantize/dynamic.h"
#include "cpu/ops/variant.h"

typedef enum matmul_kind { INTEGER, LINEAR, FUSED, TO_FLOAT, DYNAMIC, GEMM, KINDS } matmul_kind;

static const struct {
    kelp_op_variant variant;
    kelp_int8_operands operands;
} kinds[KINDS] = {
    [INTEGER] = {KELP_VARIANT_INT8_INTEGER, {-1, 2, 1, -1, 3, -1, -1, -1, -1, -1, -1}},
    [LINEAR] = {KELP_VARIANT_INT8_LINEAR, {1, 2, 3, 4, 5, -1, -1, -1, -1, 6, 7}},
    [FUSED] = {KELP_VARIANT_INT8_FUSED, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
    [TO_FLOAT] = {KELP_VARIANT_INT8_TO_FLOAT, {2, 4, 1, 3, 5, 6, -1, -1, -1, -1, -1}},
    [DYNAMIC] = {KELP_VARIANT_INT8_DYNAMIC, {-1, -1, 1, 2, 3, 4, -1, -1, -1, -1, -1}},
    [GEMM] = {KELP_VARIANT_INT8_GEMM, {1, 2, 3, 4, 5, 6, -1, -1, -1, 7, 8}},
};

#define GEMM_INPUTS 6 /* required inputs of QGemm */

typedef struct matmul_state {
    kelp_int8_weights weights;
    kelp_op_packed packed;
} matmul_state;

typedef struct matmul_plan {
    kelp_batch b;
    const kelp_int8_gemm_algorithm *algorithm;
    kelp_act act;
    matmul_kind kind; /* of the node */
    bool rows; /* the fast algorithm does not support these scales or bias: it only computes sums */
    bool transpose_a, transpose_b;
    kelp_rows_floats floats;
    size_t jobs, flipped, weights, weights_bytes, a_zeros, finish, sums;
    const kelp_op_args *args;
} matmul_plan;

static matmul_kind kind_of(const kelp_node *node) {
    kelp_op_variant variant = kelp_op_variant_of(node);
    int kind = 0;
    while (kind < KINDS - 1 && kinds[kind].variant != variant)
        kind++;
    return (matmul_kind)kind;
}

static const kelp_int8_operands *operands_of(const kelp_node *node) {
    return &kinds[kind_of(node)].operands;
}

/* Returns true if QGemm transposes the operand. */
static bool is_transposed(const kelp_node *node, const char *attribute) {
    return kind_of(node) == GEMM && kelp_node_attr_i64(node, attribute, 0) != 0;
}

static kelp_tensor transposed_view(const kelp_tensor *tensor, bool transposed) {
    kelp_tensor view = *tensor;
    KELP_ASSERT(!transposed || tensor->rank == 2);
    if (transposed) {
        view.shape[0] = tensor->shape[1];
        view.shape[1] = tensor->shape[0];
    }
    return view;
}

/* ---- constant B ---- */
static kelp_status *matmul_create(const kelp_node *node, const kelp_op_env *env, void **out_state) {
    const kelp_int8_operands *map = operands_of(node);
    const kelp_tensor *b = kelp_ops_constant(node, map->b),
                      *zero = kelp_ops_constant(node, map->b_zero);
    if (b == NULL || b->rank != 2 || !kelp_ops_is_byte(b->dtype) ||
        (kelp_ops_has_input(node, map->b_zero) && zero == NULL))
        return NULL;
    bool transposed = is_transposed(node, "transB");
    int64_t zeros = zero != NULL ? kelp_tensor_elements(zero) : 1;
    int64_t k = b->shape[transposed ? 1 : 0], n = b->shape[transposed ? 0 : 1];
    if ((zeros != 1 && zeros != n) || (zero != NULL && zero->dtype != b->dtype))
        return NULL; /* not packed; reshape reports errors */
    kelp_allocator allocator = kelp_op_env_allocator(env);
    kelp_op_pack_site site = kelp_op_env_pack_site(env);
    kelp_op_packing packing = {
        .layout = KELP_INT8_LAYOUT, .inputs = 1u << map->b, .replaces = 1u << map->b};
    matmul_state *state = NULL;
    void *memory = NULL;
    if (!kelp_int8_weights_size(k, n, &packing.size_bytes))
        return kelp_status_oom();
    KELP_TRY(KELP_NEW(allocator, matmul_state, &state));
    *out_state = state;
    KELP_TRY(kelp_op_pack(&site, allocator, &packing, &state->packed, &memory));
    kelp_int8_matrix matrix = {b->data, b->dtype, k, n, transposed ? 1 : n, transposed ? k : 1,
                               zero,    0};
    if (memory != NULL)
        kelp_int8_weights_pack(kelp_int8_kernels_get(), &matrix, memory, &state->weights);
    else
        kelp_int8_weights_view(k, n, state->packed.data, &state->weights);
    return NULL;
}

static void matmul_destroy(void *state, kelp_allocator allocator) {
    matmul_state *s = state;
    if (s == NULL)
        return;
    kelp_op_unpack(&s->packed, allocator);
    kelp_free(allocator, s, sizeof *s);
}

/* ---- shapes ---- */
static int64_t elements_of(const kelp_tensor *tensor) {
    return tensor != NULL ? kelp_tensor_elements(tensor) : 1;
}

/* Checks the zero points of A: one, or one for each row of a matrix or of all matrices; and of B,
 * for columns. */
static kelp_status *check_zeros(const kelp_op_args *args, const kelp_int8_operands *map,
                                const kelp_tensor *a, const kelp_tensor *b) {
    const kelp_tensor *a_zero = kelp_int8_operand(args, map->a_zero),
                      *b_zero = kelp_int8_operand(args, map->b_zero);
    if (a_zero != NULL && a_zero->dtype != a->dtype)
        return kelp_ops_bad_type(args, a_zero->dtype);
    if (b_zero != NULL && b_zero->dtype != b->dtype)
        return kelp_ops_bad_type(args, b_zero->dtype);
    if (!kelp_rows_fit(elements_of(a_zero), a, true) ||
        !kelp_rows_fit(elements_of(b_zero), b, false))
        return kelp_ops_bad_shapes(args, a_zero, b_zero,
                                   "expected one zero point, or one for each row of A or column of "
                                   "B");
    return NULL;
}

static kelp_status *reserve(kelp_op_args *args, const kelp_int8_operands *map, matmul_plan *p,
                            const void *state) {
    const kelp_tensor *a = args->inputs[0], *a_zero = kelp_int8_operand(args, map->a_zero);
    KELP_TRY(kelp_ops_scratch(args, p->b.batch, sizeof(kelp_int8_gemm), &p->jobs));
    if (a->dtype != KELP_U8 || p->transpose_a)
        KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(a), 1, &p->flipped));
    if (elements_of(a_zero) > 1)
        KELP_TRY(kelp_ops_scratch(args, p->b.batch * p->b.m, sizeof(int32_t), &p->a_zeros));
    if (state != NULL)
        return NULL;
    if (!kelp_int8_weights_size(p->b.k, p->b.n, &p->weights_bytes) ||
        !kelp_size_align(p->weights_bytes, 64, &p->weights_bytes))
        return kelp_status_oom();
    return kelp_ops_scratch(args, p->b.batch, p->weights_bytes, &p->weights);
}

static kelp_status *matmul_shapes(kelp_op_args *args, const void *state, int32_t *out_rank,
                                  int64_t *out_shape) {
    matmul_plan *p = args->plan;
    const kelp_int8_operands *map = operands_of(args->node);
    KELP_TRY(kelp_int8_check_operands(args, map));
    if (kind_of(args->node) == GEMM)
        KELP_TRY(kelp_ops_check_inputs(args, GEMM_INPUTS));
    const kelp_tensor *a = args->inputs[0], *b = args->inputs[map->b];
    p->kind = kind_of(args->node);
    if (p->kind == GEMM && (a->rank != 2 || b->rank != 2))
        return kelp_ops_bad_shapes(args, a, b, "expected two matrices");
    p->transpose_a = is_transposed(args->node, "transA");
    p->transpose_b = is_transposed(args->node, "transB");
    kelp_tensor a_view = transposed_view(a, p->transpose_a),
                b_view = transposed_view(b, p->transpose_b);
    KELP_TRY(kelp_batch_init(&p->b, args, &a_view, &b_view, out_rank, out_shape));
    if (p->kind == DYNAMIC ? a->dtype != KELP_F32 : !kelp_ops_is_byte(a->dtype))
        return kelp_ops_bad_type(args, a->dtype);
    if (!kelp_ops_is_byte(b->dtype))
        return kelp_ops_bad_type(args, b->dtype);
    KELP_TRY(check_zeros(args, map, &a_view, &b_view));
    p->algorithm = kelp_int8_gemm_choose(
        &(kelp_gemm_shape){.m = p->b.m, .n = p->b.n, .k = p->b.k, .count = p->b.batch});
    args->algorithm = p->algorithm->name;
    return reserve(args, map, p, state);
}

/* ---- invoke ---- */
static void pack_range(void *userp, int64_t begin, int64_t end, int worker) {
    const matmul_plan *p = userp;
    const kelp_op_args *args = p->args;
    const kelp_int8_operands *map = operands_of(args->node);
    const kelp_tensor *b = args->inputs[map->b], *zero = kelp_int8_operand(args, map->b_zero);
    kelp_int8_gemm *jobs = kelp_ops_scratch_at(args, p->jobs);
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = kelp_batch_offset(&p->b, p->b.b_strides, i);
        int64_t zeros = elements_of(zero);
        kelp_int8_matrix matrix = {.data = (const char *)b->data + at * p->b.k * p->b.n,
                                   .dtype = b->dtype,
                                   .k = p->b.k,
                                   .n = p->b.n,
                                   .row_stride = p->transpose_b ? 1 : p->b.n,
                                   .column_stride = p->transpose_b ? p->b.k : 1,
                                   .zero = zero,
                                   .zero_first = zeros > p->b.n ? at * p->b.n : 0};
        kelp_int8_weights_pack(kelp_int8_kernels_get(), &matrix,
                               (char *)kelp_ops_scratch_at(args, p->weights) +
                                   (size_t)i * p->weights_bytes,
                               &jobs[i].b);
    }
}

/* Returns A as unsigned bytes, quantized if the operator does so. */
static const uint8_t *unsigned_a(const kelp_op_args *args, const matmul_plan *p, int32_t *out_zero,
                                 float *out_scale) {
    const kelp_int8_operands *map = operands_of(args->node);
    const kelp_tensor *a = args->inputs[0], *scale = kelp_int8_operand(args, map->a_scale);
    *out_scale = scale != NULL ? kelp_int8_scale(scale, 0) : 1.0f;
    if (p->kind == DYNAMIC) {
        uint8_t found;
        kelp_quantize_dynamic(args->env, a->data, kelp_tensor_elements(a),
                              kelp_ops_scratch_at(args, p->flipped), out_scale, &found);
        *out_zero = found;
        return kelp_ops_scratch_at(args, p->flipped);
    }
    if (p->kind == GEMM)
        *out_scale *= kelp_node_attr_f32(args->node, "alpha", 1.0f);
    *out_zero = kelp_int8_zero(kelp_int8_operand(args, map->a_zero), 0);
    if (a->dtype == KELP_U8 && !p->transpose_a)
        return a->data;
    uint8_t flip = a->dtype == KELP_I8 ? 0x80 : 0;
    *out_zero += flip;
    if (p->transpose_a) {
        kelp_int8_kernels_get()->transpose(kelp_ops_scratch_at(args, p->flipped), p->b.k, a->data,
                                           p->b.m, p->b.k, p->b.m, flip);
        return kelp_ops_scratch_at(args, p->flipped);
    }
    kelp_int8_flip(args->env, a->data, kelp_ops_scratch_at(args, p->flipped),
                   kelp_tensor_elements(a));
    return kelp_ops_scratch_at(args, p->flipped);
}

/* Returns the zero points of the rows of A; NULL if all have the same. */
static const int32_t *zeros_of_rows(const kelp_op_args *args, const matmul_plan *p) {
    const kelp_tensor *zero = kelp_int8_operand(args, operands_of(args->node)->a_zero);
    int64_t count = elements_of(zero), rows = p->b.batch * p->b.m;
    int32_t *out = kelp_ops_scratch_at(args, p->a_zeros),
            flip = args->inputs[0]->dtype == KELP_I8 ? 128 : 0;
    if (count <= 1)
        return NULL;
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = kelp_rows_index(&p->b, p->b.a_strides, i / p->b.m, p->b.m, i % p->b.m, count);
        out[i] = kelp_int8_zero(zero, at) + flip;
    }
    return out;
}

static void make_jobs(const void *state, const kelp_op_args *args, matmul_plan *p, void *y,
                      float *out_scale) {
    const matmul_state *s = state;
    kelp_int8_gemm *jobs = kelp_ops_scratch_at(args, p->jobs);
    int32_t zero;
    const uint8_t *a = unsigned_a(args, p, &zero, out_scale);
    const int32_t *zeros = zeros_of_rows(args, p);
    KELP_ASSERT(s == NULL || (p->b.k == s->weights.k && p->b.n == s->weights.n));
    size_t each = kelp_ops_element_bytes(p->rows ? KELP_I32 : args->outputs[0]->dtype);
    p->args = args;
    for (int64_t i = 0; i < p->b.batch; i++) {
        int64_t at = kelp_batch_offset(&p->b, p->b.a_strides, i);
        jobs[i] = (kelp_int8_gemm){.a = a + at * p->b.m * p->b.k,
                                   .m = p->b.m,
                                   .lda = p->b.k,
                                   .a_zero = zero,
                                   .a_zeros = zeros != NULL ? zeros + i * p->b.m : NULL,
                                   .finish = {.dtype = KELP_I32},
                                   .y = (char *)y + (size_t)(i * p->b.m * p->b.n) * each,
                                   .ldy = p->b.n};
        if (s != NULL)
            jobs[i].b = s->weights;
    }
    if (s == NULL)
        kelp_op_parallel(args->env, p->b.batch,
                         kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->b.k * p->b.n), pack_range, p);
}

/* ---- MatMulInteger ---- */
static kelp_status *integer_reshape(const void *state, kelp_op_args *args) {
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = 0;
    KELP_TRY(matmul_shapes(args, state, &rank, shape));
    return kelp_ops_set(args, 0, KELP_I32, rank, shape);
}

static kelp_status *integer_invoke(const void *state, kelp_op_args *args) {
    matmul_plan *p = args->plan;
    float scale;
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL;
    make_jobs(state, args, p, args->outputs[0]->data, &scale);
    p->algorithm->run(args->env, kelp_ops_scratch_at(args, p->jobs), p->b.batch);
    return NULL;
}

/* ---- operators with scales ---- */
static bool is_single(const kelp_tensor *tensor) {
    return tensor == NULL || kelp_tensor_elements(tensor) == 1;
}

/* Returns true for a QLinearMatMul with other than one scale for A and the result, and one, or one
 * for each column, for B. */
static bool has_rows(const kelp_op_args *args, const matmul_plan *p) {
    int64_t scales = elements_of(args->inputs[4]), zeros = elements_of(args->inputs[5]);
    return !is_single(args->inputs[1]) || !is_single(args->inputs[2]) ||
           !is_single(args->inputs[6]) || !is_single(args->inputs[7]) ||
           args->inputs[1]->dtype != KELP_F32 || !kelp_ops_is_byte(args->inputs[7]->dtype) ||
           (scales != 1 && scales != p->b.n) || (zeros != 1 && zeros != p->b.n);
}

/* Checks the bias. Sets `*out_whole` if it is one of QGemm that has not one value for each column.
 */
static kelp_status *check_bias(const kelp_op_args *args, const kelp_tensor *bias,
                               const matmul_plan *p, bool *out_whole) {
    *out_whole = false;
    if (bias == NULL)
        return NULL;
    if (bias->dtype != (p->kind == GEMM ? KELP_I32 : KELP_F32))
        return kelp_ops_bad_type(args, bias->dtype);
    if (p->kind != GEMM || kelp_tensor_elements(bias) == p->b.n)
        return NULL;
    int32_t rank = 2;
    int64_t shape[KELP_MAX_RANK] = {p->b.m, p->b.n};
    *out_whole = true;
    return bias->rank <= 2 && kelp_ops_broadcast_shape(&rank, shape, bias->rank, bias->shape) &&
                   shape[0] == p->b.m && shape[1] == p->b.n
               ? NULL
               : kelp_ops_bad_shapes(args, args->inputs[0], bias,
                                     "the bias does not broadcast to the result");
}

static kelp_status *linear_reshape(const void *state, kelp_op_args *args) {
    matmul_plan *p = args->plan;
    const kelp_int8_operands *map = operands_of(args->node);
    const kelp_tensor *bias = kelp_int8_operand(args, map->bias);
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = 0;
    kelp_dtype dtype = KELP_DTYPE_INVALID;
    if (kind_of(args->node) == LINEAR) {
        KELP_TRY(kelp_ops_check(args, 8));
        if (kelp_rows_are_floats(args))
            return kelp_rows_floats_plan(args, &p->floats);
    }
    KELP_TRY(matmul_shapes(args, state, &rank, shape));
    if (p->kind == LINEAR && has_rows(args, p)) {
        p->rows = true;
        KELP_TRY(kelp_rows_check(args));
        KELP_TRY(kelp_ops_scratch(args, p->b.batch * p->b.m * p->b.n, sizeof(int32_t), &p->sums));
        return kelp_ops_set(args, 0, args->inputs[7]->dtype, rank, shape);
    }
    if (p->kind == FUSED)
        KELP_TRY(kelp_act_read(args, &p->act));
    kelp_int8_operands checked = *map;
    KELP_TRY(check_bias(args, bias, p, &p->rows));
    if (p->rows) {
        checked.bias = -1;
        KELP_TRY(kelp_ops_scratch(args, p->b.m * p->b.n, sizeof(int32_t), &p->sums));
    }
    KELP_TRY(kelp_int8_epilogue_plan(args, &checked, p->b.n, &dtype, &p->finish));
    return kelp_ops_set(args, 0, dtype, rank, shape);
}

/* Computes the result from the sums, with a bias that differs from row to row. */
static void finish_gemm(const kelp_op_args *args, const matmul_plan *p, const int32_t *sums,
                        float a_scale) {
    const kelp_tensor *c = args->inputs[6], *b_scale = args->inputs[4],
                      *y_scale = kelp_ops_in(args, 7), *y_zero = kelp_ops_in(args, 8);
    kelp_tensor *y = args->outputs[0];
    const kelp_int8_kernels *loops = kelp_int8_kernels_get();
    int64_t columns = c->rank > 0 ? c->shape[c->rank - 1] : 1;
    int64_t rows = c->rank > 1 ? c->shape[0] : 1;
    bool many = kelp_tensor_elements(b_scale) > 1;
    float to = y_scale != NULL ? kelp_int8_scale(y_scale, 0) : 1.0f;
    int32_t zero = kelp_int8_zero(y_zero, 0);
    for (int64_t at = 0; at < p->b.m * p->b.n; at++) {
        int64_t i = at / p->b.n, j = at % p->b.n;
        int32_t add =
            ((const int32_t *)c->data)[(rows > 1 ? i * columns : 0) + (columns > 1 ? j : 0)];
        float v = (float)(int32_t)((uint32_t)sums[at] + (uint32_t)add) * a_scale *
                  kelp_int8_scale(b_scale, many ? j : 0);
        if (y->dtype == KELP_F32)
            ((float *)y->data)[at] = v;
        else
            loops->quantize(&(kelp_quantize_run){.x = &v,
                                                 .y = (uint8_t *)y->data + at,
                                                 .count = 1,
                                                 .dtype = y->dtype,
                                                 .scale = &to,
                                                 .zero = &zero});
    }
}

static kelp_status *linear_invoke(const void *state, kelp_op_args *args) {
    matmul_plan *p = args->plan;
    const kelp_int8_operands *map = operands_of(args->node);
    float scale;
    if (kelp_tensor_elements(args->outputs[0]) == 0)
        return NULL; /* scales of rows may be empty */
    if (kind_of(args->node) == LINEAR && kelp_rows_are_floats(args)) {
        kelp_rows_floats_run(args, &p->floats);
        return NULL;
    }
    kelp_int8_gemm *jobs = kelp_ops_scratch_at(args, p->jobs);
    void *y = p->rows ? kelp_ops_scratch_at(args, p->sums) : args->outputs[0]->data;
    make_jobs(state, args, p, y, &scale);
    if (p->b.batch > 0 && !p->rows) {
        kelp_int8_epilogue_make(args, map, scale, p->act, p->finish, &jobs[0]);
        for (int64_t i = 1; i < p->b.batch; i++)
            jobs[i].finish = jobs[0].finish;
    }
    p->algorithm->run(args->env, jobs, p->b.batch);
    if (p->rows && p->kind == LINEAR)
        kelp_rows_finish(args, &p->b, y, NULL);
    else if (p->rows)
        finish_gemm(args, p, y, scale);
    return NULL;
}

#define MATMUL_KERNEL(name, reshape_fn, invoke_fn)                                \
    const kelp_op_kernel kelp_op_##name = {.struct_size = sizeof(kelp_op_kernel), \
                                           .flags = KELP_OP_STATE_OPTIONAL,       \
                                           .plan_bytes = sizeof(matmul_plan),     \
                                           .create = matmul_create,               \
                                           .destroy = matmul_destroy,             \
                                           .reshape = (reshape_fn),               \
                                           .invoke = (invoke_fn)}
MATMUL_KERNEL(MatMulInteger, integer_reshape, integer_invoke);
MATMUL_KERNEL(QLinearMatMul, linear_reshape, linear_invoke);
MATMUL_KERNEL(QMatMul, linear_reshape, linear_invoke);
MATMUL_KERNEL(MsMatMulIntegerToFloat, linear_reshape, linear_invoke);
MATMUL_KERNEL(MsDynamicQuantizeMatMul, linear_reshape, linear_invoke);
MATMUL_KERNEL(MsQGemm, linear_reshape, linear_invoke);
