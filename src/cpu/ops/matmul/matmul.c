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

/* Computes rows of the result for other types. */
#define MULTIPLY(name, type)                                                                      \
    typedef type any_##name __attribute__((aligned(1), may_alias)); /* may be unaligned */        \
    static void multiply_##name(void *userp, int64_t begin, int64_t end, int worker) {            \
        const kelp_op_args *args = userp;                                                         \
        const matmul_plan *p = args->plan;                                                        \
        (void)worker;                                                                             \
        for (int64_t row = begin; row < end; row++) {                                             \
            int64_t at = row / p->b.m, i = row % p->b.m;                                          \
            const any_##name *a =                                                                 \
                (const any_##name *)args->inputs[0]->data +                                       \
                (kelp_batch_offset(&p->b, p->b.a_strides, at) * p->b.m + i) * p->b.k;             \
            const any_##name *b = (const any_##name *)args->inputs[1]->data +                     \
                                  kelp_batch_offset(&p->b, p->b.b_strides, at) * p->b.k * p->b.n; \
            type *c = (type *)args->outputs[0]->data + row * p->b.n;                              \
            memset(c, 0, (size_t)p->b.n * sizeof *c);                                             \
            for (int64_t k = 0; k < p->b.k; k++)                                                  \
                for (int64_t j = 0; j < p->b.n; j++)                                              \
                    c[j] = (type)(c[j] + a[k] * b[k * p->b.n + j]);                               \
        }                                                                                         \
    }
MULTIPLY(f64, double)
/* unsigned arithmetic, since overflow of signed integers is undefined */
MULTIPLY(u32, uint32_t)
MULTIPLY(u64, uint64_t)

static kelp_status *multiply_rows(kelp_op_args *args, void (*range)(void *userp, int64_t begin,
                                                                    int64_t end, int worker)) {
    const matmul_plan *p = args->plan;
    int64_t work = KELP_MAX((int64_t)1, p->b.k * p->b.n);
    kelp_op_parallel(args->env, p->b.batch * p->b.m, kelp_cpu_grain(4 * KELP_GRAIN_ELEMENTS, work),
                     range, args);
    return NULL;
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
    case KELP_F64:
        return multiply_rows(args, multiply_f64);
    case KELP_I64:
    case KELP_U64:
        return multiply_rows(args, multiply_u64);
    default:
        return multiply_rows(args, multiply_u32);
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
