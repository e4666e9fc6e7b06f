/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp::MatMulBf16: MatMul, MatMulBias (A, B, bias[, residual]; attribute activation) and Gemm
 * (attribute transB; C is a row) of floats with a constant matrix B. Operands are rounded to
 * bfloat16; sums and all other values are floats. The pass kelp_pass_bf16 creates it for engines of
 * KELP_PRECISION_BF16.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/ops/activation.h"
#include "cpu/kernels/gemm/gemm_bf16.h"
#include "cpu/ops/kernel.h"
#include "cpu/ops/matmul/batch.h"
#include "cpu/kernels/gemm/gemm.h"

typedef struct matmul_plan {
    kelp_batch b;
    kelp_act act;
    const kelp_bf16_gemm_algorithm *algorithm;
    size_t scratch;
} matmul_plan;

typedef struct matmul_weights {
    int64_t k, n;
    kelp_op_packed panels; /* kelp_bf16_pair */
} matmul_weights;

static kelp_status *matmul_create(const kelp_node *node, const kelp_op_env *env, void **out_state) {
    const kelp_value *value = kelp_node_input_count(node) > 1 ? kelp_node_input(node, 1) : NULL;
    const kelp_tensor *b = value != NULL ? kelp_value_constant(value) : NULL;
    if (b == NULL || b->rank != 2 || b->dtype != KELP_F32)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "operator 'MatMulBf16' expects a constant matrix of floats as input 1");
    bool transposed = kelp_node_attr_i64(node, "transB", 0) != 0;
    int64_t k = b->shape[transposed ? 1 : 0], n = b->shape[transposed ? 0 : 1];
    kelp_op_packing packing = {.layout = "bf16/1", .inputs = 1u << 1, .replaces = 1u << 1};
    kelp_allocator allocator = kelp_op_env_allocator(env);
    kelp_op_pack_site site = kelp_op_env_pack_site(env);
    matmul_weights *weights = NULL;
    void *memory = NULL;
    size_t pairs;
    if (!kelp_bf16_packed_size(k, n, &pairs) ||
        !kelp_size_mul(pairs, sizeof(kelp_bf16_pair), &packing.size_bytes))
        return kelp_status_oom();
    KELP_TRY(KELP_NEW(allocator, matmul_weights, &weights));
    *out_state = weights;
    weights->k = k;
    weights->n = n;
    KELP_TRY(kelp_op_pack(&site, allocator, &packing, &weights->panels, &memory));
    if (memory != NULL && transposed)
        kelp_bf16_pack_transposed(kelp_bf16_kernels_get(), b->data, k, k, n, memory);
    else if (memory != NULL)
        kelp_bf16_pack(kelp_bf16_kernels_get(), b->data, n, k, n, memory);
    return NULL;
}

static void matmul_destroy(void *state, kelp_allocator allocator) {
    matmul_weights *weights = state;
    if (weights == NULL)
        return;
    kelp_op_unpack(&weights->panels, allocator);
    kelp_free(allocator, weights, sizeof *weights);
}

static kelp_status *matmul_reshape(const void *state, kelp_op_args *args) {
    const matmul_weights *weights = state;
    matmul_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK], all;
    int32_t rank = 0;
    KELP_ASSERT(weights != NULL); /* create requires constant weights */
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *a = args->inputs[0];
    const kelp_tensor *bias = kelp_ops_in(args, 2), *residual = kelp_ops_in(args, 3);
    if (a->dtype != KELP_F32)
        return kelp_ops_bad_type(args, a->dtype);
    kelp_tensor b = {.dtype = KELP_F32, .rank = 2, .shape = {weights->k, weights->n}};
    KELP_TRY(kelp_batch_init(&p->b, args, a, &b, &rank, shape));
    if ((bias != NULL && (kelp_tensor_elements(bias) != p->b.n || bias->dtype != KELP_F32)) ||
        (residual != NULL &&
         (kelp_tensor_elements(residual) != p->b.m * p->b.n || residual->dtype != KELP_F32)))
        return kelp_ops_bad_shapes(
            args, a, args->inputs[1],
            "expected a bias of the columns of B, and a residual of the size of the result");
    KELP_TRY(kelp_act_read(args, &p->act));
    kelp_gemm_shape product = {.m = p->b.m,
                               .n = p->b.n,
                               .k = p->b.k,
                               .count = 1,
                               .is_packed = true,
                               .has_residual = residual != NULL,
                               .act = p->act};
    p->algorithm = kelp_bf16_gemm_choose(&product);
    args->algorithm = p->algorithm->name;
    if (!kelp_i64_mul(p->algorithm->scratch_pairs(&product), kelp_op_env_threads(args->env), &all))
        return kelp_ops_bad_shapes(args, a, args->inputs[1], "the matrices are too large");
    KELP_TRY(kelp_ops_scratch(args, all, sizeof(kelp_bf16_pair), &p->scratch));
    return kelp_ops_set(args, 0, KELP_F32, rank, shape);
}

static kelp_status *matmul_invoke(const void *state, kelp_op_args *args) {
    const matmul_weights *weights = state;
    const matmul_plan *p = args->plan;
    const kelp_tensor *bias = kelp_ops_in(args, 2), *residual = kelp_ops_in(args, 3);
    KELP_ASSERT(p->b.batch == 1 && p->b.k == weights->k && p->b.n == weights->n);
    p->algorithm->run(
        args->env,
        &(kelp_bf16_gemm){.a = args->inputs[0]->data,
                          .panels = weights->panels.data,
                          .c = args->outputs[0]->data,
                          .m = p->b.m,
                          .n = p->b.n,
                          .k = p->b.k,
                          .lda = p->b.k,
                          .ldc = p->b.n,
                          .bias = bias != NULL ? bias->data : NULL,
                          .residual = residual != NULL ? residual->data : NULL,
                          .act = p->act,
                          .scratch = (kelp_bf16_pair *)kelp_ops_scratch_at(args, p->scratch)});
    return NULL;
}

const kelp_op_kernel kelp_op_MatMulBf16 = {.struct_size = sizeof(kelp_op_kernel),
                                           .plan_bytes = sizeof(matmul_plan),
                                           .unaligned_inputs = 2,
                                           .create = matmul_create,
                                           .destroy = matmul_destroy,
                                           .reshape = matmul_reshape,
                                           .invoke = matmul_invoke};
