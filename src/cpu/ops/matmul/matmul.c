/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MatMul with NumPy's broadcasting, and the fused MatMulBias (A, B, bias[, residual]; attribute
 * activation). Constant float matrices are packed (panels.h). Source: ONNX operator specification.
 */
#include "base/assert.h"
#include "cpu/ops/activation.h"
#include "cpu/ops/matmul/batch.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/ops/kernel.h"
#include "cpu/ops/matmul/panels.h"
#include "cpu/ops/matmul/product.h"
#include "cpu/ops/converted.h"

typedef struct matmul_plan {
    kelp_batch b;
    kelp_act act;
    const kelp_gemm_algorithm *algorithm; /* of float matrices */
    size_t scratch;                       /* the algorithm's, after the jobs */
} matmul_plan;

/* Smaller weights are read unpacked: they stay in cache and need few TLB entries. */
#define PACK_MIN_ELEMENTS 1024

static kelp_status *matmul_create(const kelp_node *node, const kelp_op_env *env, void **out_state) {
    const kelp_tensor *b = kelp_panels_constant(node);
    kelp_panels *panels = NULL;
    if (b == NULL || kelp_tensor_elements(b) < PACK_MIN_ELEMENTS)
        return NULL;
    KELP_TRY(kelp_panels_create(env, b, false, &panels));
    *out_state = panels;
    return NULL;
}

static void matmul_destroy(void *state, kelp_allocator allocator) {
    kelp_panels_destroy(state, allocator);
}

static kelp_status *matmul_shapes(kelp_op_args *args) {
    matmul_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = 0;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *a = args->inputs[0], *b = args->inputs[1];
    if (a->dtype != b->dtype)
        return kelp_ops_bad_shapes(args, a, b, "the types differ");
    KELP_TRY(kelp_batch_init(&p->b, args, a, b, &rank, shape));
    return kelp_ops_set(args, 0, a->dtype, rank, shape);
}

/* Plans a GEMM of float matrices: packs the panels and reserves scratch memory. */
static kelp_status *plan_gemm(const void *state, kelp_op_args *args) {
    matmul_plan *p = args->plan;
    kelp_gemm_shape shape = {
        .m = p->b.m, .n = p->b.n, .k = p->b.k, .count = p->b.batch, .is_packed = state != NULL};
    p->algorithm = kelp_gemm_choose(&shape);
    args->algorithm = p->algorithm->name;
    if (p->algorithm->scratch_floats != NULL)
        KELP_TRY(kelp_ops_scratch(args, p->algorithm->scratch_floats(&shape), sizeof(float),
                                  &p->scratch));
    return kelp_panels_plan(args->env, state, p->b.batch > 0 ? p->b.m : 0);
}

static kelp_status *matmul_reshape(const void *state, kelp_op_args *args) {
    KELP_TRY(matmul_shapes(args));
    matmul_plan *p = args->plan;
    switch (args->inputs[0]->dtype) {
    case KELP_F32:
        KELP_TRY(kelp_ops_scratch(args, p->b.batch, sizeof(kelp_gemm), &(size_t){0}));
        return plan_gemm(state, args);
    case KELP_F64:
    case KELP_I32:
    case KELP_I64:
    case KELP_U32:
    case KELP_U64:
        return NULL;
    default:
        return kelp_ops_bad_type(args, args->inputs[0]->dtype);
    }
}

static void fill_job(const void *state, const kelp_op_args *args, int64_t index, kelp_gemm *out) {
    const matmul_plan *p = args->plan;
    KELP_ASSERT(index >= 0 && index < p->b.batch);
    const char *a = args->inputs[0]->data, *b = args->inputs[1]->data;
    *out = (kelp_gemm){.a = a + kelp_batch_offset(&p->b, p->b.a_strides, index) * p->b.m * p->b.k *
                                    (int64_t)sizeof(float),
                       .b = b + kelp_batch_offset(&p->b, p->b.b_strides, index) * p->b.k * p->b.n *
                                    (int64_t)sizeof(float),
                       .c = (float *)args->outputs[0]->data + index * p->b.m * p->b.n,
                       .m = p->b.m,
                       .n = p->b.n,
                       .k = p->b.k,
                       .lda = p->b.k,
                       .ldb = p->b.n,
                       .ldc = p->b.n,
                       .act = p->act};
    if (p->algorithm->scratch_floats != NULL)
        out->scratch = kelp_ops_scratch_at(args, p->scratch);
    kelp_panels_use(state, out);
}

/* ---- other types ---- */
static void find_matrices(const void *userp, int64_t index, kelp_product_block *inout_block) {
    const kelp_op_args *args = userp;
    const kelp_batch *b = &((const matmul_plan *)args->plan)->b;
    int64_t size = (int64_t)kelp_ops_element_bytes(args->inputs[0]->dtype);
    inout_block->a = (const char *)args->inputs[0]->data +
                     kelp_batch_offset(b, b->a_strides, index) * b->m * b->k * size;
    inout_block->b = (const char *)args->inputs[1]->data +
                     kelp_batch_offset(b, b->b_strides, index) * b->k * b->n * size;
    inout_block->c = (char *)args->outputs[0]->data + index * b->m * b->n * size;
}

static void multiply_others(const kelp_op_args *args) {
    const kelp_batch *b = &((const matmul_plan *)args->plan)->b;
    kelp_products products = {.type = kelp_product_type_of(args->inputs[0]->dtype),
                              .count = b->batch,
                              .shape = {.a_row = b->k,
                                        .a_column = 1,
                                        .ldb = b->n,
                                        .ldc = b->n,
                                        .m = b->m,
                                        .n = b->n,
                                        .k = b->k},
                              .matrices = find_matrices,
                              .userp = args};
    kelp_products_run(args->env, &products);
}

static kelp_status *matmul_invoke(const void *state, kelp_op_args *args) {
    const matmul_plan *p = args->plan;
    kelp_gemm *jobs = args->scratch;
    KELP_ASSERT(args->inputs[0]->dtype == args->inputs[1]->dtype);
    switch (args->inputs[0]->dtype) {
    case KELP_F32:
        for (int64_t i = 0; i < p->b.batch; i++)
            fill_job(state, args, i, &jobs[i]);
        p->algorithm->run(args->env, jobs, p->b.batch);
        return NULL;
    default:
        multiply_others(args);
        return NULL;
    }
}

#define MATMUL_KERNEL(name, unaligned, reshape_fn, invoke_fn)                                      \
    const kelp_op_kernel kelp_op_##name = {.struct_size = sizeof(kelp_op_kernel),                  \
                                           .flags = KELP_OP_STATE_OPTIONAL,                        \
                                           .plan_bytes = KELP_CONVERTED_PLAN(sizeof(matmul_plan)), \
                                           .unaligned_inputs = (unaligned),                        \
                                           .create = matmul_create,                                \
                                           .destroy = matmul_destroy,                              \
                                           .reshape = (reshape_fn),                                \
                                           .invoke = (invoke_fn)}
KELP_CONVERTED_PHASES(matmul, kelp_widened, sizeof(matmul_plan), matmul_reshape, matmul_invoke)
MATMUL_KERNEL(MatMul, 3, matmul_reshape_any, matmul_invoke_any);

/* ---- MatMulBias ---- */
static kelp_status *matmul_bias_reshape(const void *state, kelp_op_args *args) {
    KELP_TRY(matmul_shapes(args));
    matmul_plan *p = args->plan;
    const kelp_tensor *bias = kelp_ops_in(args, 2), *residual = kelp_ops_in(args, 3);
    if (args->inputs[0]->dtype != KELP_F32 || args->inputs[1]->rank != 2 ||
        (bias != NULL && (kelp_tensor_elements(bias) != p->b.n || bias->dtype != KELP_F32)) ||
        (residual != NULL &&
         (kelp_tensor_elements(residual) != p->b.m * p->b.n || residual->dtype != KELP_F32)))
        return kelp_ops_bad_shapes(args, args->inputs[0], args->inputs[1],
                                   "expected float matrices, a bias of the columns of B, and a "
                                   "residual of the size of the result");
    KELP_TRY(kelp_act_read(args, &p->act));
    return plan_gemm(state, args);
}

static kelp_status *matmul_bias_invoke(const void *state, kelp_op_args *args) {
    const matmul_plan *p = args->plan;
    kelp_gemm job;
    KELP_ASSERT(args->inputs[0]->dtype == KELP_F32);
    fill_job(state, args, 0, &job);
    job.bias = kelp_ops_in(args, 2) ? args->inputs[2]->data : NULL;
    job.residual = kelp_ops_in(args, 3) ? args->inputs[3]->data : NULL;
    p->algorithm->run(args->env, &job, 1);
    return NULL;
}
KELP_CONVERTED_PHASES(bias, kelp_widened, sizeof(matmul_plan), matmul_bias_reshape,
                      matmul_bias_invoke)
MATMUL_KERNEL(MatMulBias, 2, bias_reshape_any, bias_invoke_any);
