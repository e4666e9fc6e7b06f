/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gemm: Y = alpha · A' · B' + beta · C. Constant weights are packed (panels.h). Transposed weights
 * that are narrower than a panel are transposed when the engine is created. Source: ONNX operator
 * specification, Gemm-13.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/ops/kernel.h"
#include "cpu/ops/matmul/panels.h"
#include "cpu/ops/matmul/product.h"
#include "cpu/ops/elementwise/activation.h"
#include "cpu/ops/converted.h"

/* Constant weights, packed or transposed. Without it, B is read in place, or transposed by each
 * invoke. */
typedef struct gemm_state {
    kelp_panels *panels;
    kelp_op_packed transposed_b;
} gemm_state;

typedef struct gemm_plan {
    int64_t m, n, k;
    bool transpose_a, transpose_b;
    size_t a_offset, b_offset;            /* of transposed copies in scratch */
    int64_t c_row, c_column;              /* strides of C */
    const kelp_gemm_algorithm *algorithm; /* of float matrices */
    size_t scratch;                       /* offset of its scratch memory */
} gemm_plan;

static void transpose(const kelp_op_env *env, const kelp_tensor *tensor, void *to) {
    KELP_ASSERT(tensor->rank == 2);
    int64_t shape[2] = {tensor->shape[1], tensor->shape[0]};
    int64_t from[2] = {1, tensor->shape[1]}, strides[2] = {tensor->shape[0], 1};
    kelp_ops_copy(env, kelp_ops_element_bytes(tensor->dtype), 2, shape, to, strides, tensor->data,
                  from);
}

static kelp_status *transpose_weights(const kelp_op_env *env, const kelp_tensor *b,
                                      gemm_state *state) {
    kelp_op_packing packing = {.layout = "transposed/1", .inputs = 1u << 1, .replaces = 1u << 1};
    kelp_op_pack_site site = kelp_op_env_pack_site(env);
    void *memory = NULL;
    packing.size_bytes = kelp_tensor_bytes(b);
    KELP_TRY(
        kelp_op_pack(&site, kelp_op_env_allocator(env), &packing, &state->transposed_b, &memory));
    if (memory != NULL)
        transpose(env, b, memory);
    return NULL;
}

static kelp_status *gemm_create(const kelp_node *node, const kelp_op_env *env, void **out_state) {
    const kelp_gemm_kernels *gemm = kelp_gemm_kernels_get();
    const kelp_tensor *b = kelp_panels_constant(node);
    bool transposed = kelp_node_attr_i64(node, "transB", 0) != 0;
    gemm_state *state = NULL;
    if (b == NULL)
        return NULL;
    bool panels = b->shape[transposed ? 0 : 1] >= gemm->tile_columns;
    if (!panels && !transposed)
        return NULL;
    kelp_allocator allocator = kelp_op_env_allocator(env);
    KELP_TRY(KELP_NEW(allocator, gemm_state, &state));
    kelp_status *status = panels ? kelp_panels_create(env, b, transposed, &state->panels)
                                 : transpose_weights(env, b, state);
    if (status != NULL) {
        kelp_free(allocator, state, sizeof *state);
        return status;
    }
    *out_state = state;
    return NULL;
}

static void gemm_destroy(void *state, kelp_allocator allocator) {
    gemm_state *s = state;
    if (s == NULL)
        return;
    kelp_panels_destroy(s->panels, allocator);
    kelp_op_unpack(&s->transposed_b, allocator);
    kelp_free(allocator, s, sizeof *s);
}

static kelp_status *choose_algorithm(kelp_op_args *args, bool is_packed) {
    gemm_plan *p = args->plan;
    kelp_gemm_shape shape = {.m = p->m, .n = p->n, .k = p->k, .count = 1, .is_packed = is_packed};
    p->algorithm = kelp_gemm_choose(&shape);
    args->algorithm = p->algorithm->name;
    return p->algorithm->scratch_floats == NULL
               ? NULL
               : kelp_ops_scratch(args, p->algorithm->scratch_floats(&shape), sizeof(float),
                                  &p->scratch);
}

static kelp_status *gemm_reshape(const void *userp, kelp_op_args *args) {
    const gemm_state *state = userp;
    gemm_plan *p = args->plan;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *a = args->inputs[0], *b = args->inputs[1], *c = kelp_ops_in(args, 2);
    if (a->dtype != KELP_F32 && a->dtype != KELP_F64 && a->dtype != KELP_I32 &&
        a->dtype != KELP_I64 && a->dtype != KELP_U32 && a->dtype != KELP_U64)
        return kelp_ops_bad_type(args, a->dtype);
    if (a->dtype != b->dtype || (c != NULL && c->dtype != a->dtype))
        return kelp_ops_bad_shapes(args, a, b, "the types differ");
    if (a->rank != 2 || b->rank != 2)
        return kelp_ops_bad_shapes(args, a, b, "expected two matrices");
    p->transpose_a = kelp_node_attr_i64(args->node, "transA", 0) != 0;
    p->transpose_b = kelp_node_attr_i64(args->node, "transB", 0) != 0;
    p->m = a->shape[p->transpose_a ? 1 : 0];
    p->k = a->shape[p->transpose_a ? 0 : 1];
    p->n = b->shape[p->transpose_b ? 0 : 1];
    if (p->k != b->shape[p->transpose_b ? 1 : 0])
        return kelp_ops_bad_shapes(args, a, b, "the inner dimensions differ");
    int64_t shape[2] = {p->m, p->n}, full[KELP_MAX_RANK] = {p->m, p->n};
    int32_t rank = 2;
    if (c != NULL && (c->rank > 2 || !kelp_ops_broadcast_shape(&rank, full, c->rank, c->shape) ||
                      full[0] != p->m || full[1] != p->n))
        return kelp_ops_bad_shapes(args, c, b, "C does not broadcast to the result");
    if (c != NULL) {
        int64_t columns = c->rank > 0 ? c->shape[c->rank - 1] : 1;
        p->c_column = columns == 1 ? 0 : 1;
        p->c_row = c->rank == 2 && c->shape[0] != 1 ? columns : 0;
    }
    KELP_TRY(kelp_ops_set(args, 0, a->dtype, 2, shape));
    if (p->transpose_a && a->dtype == KELP_F32)
        KELP_TRY(kelp_ops_scratch(args, p->m * p->k, sizeof(float), &p->a_offset));
    if (state != NULL)
        KELP_TRY(kelp_panels_plan(args->env, state->panels, p->m));
    if (a->dtype == KELP_F32)
        KELP_TRY(choose_algorithm(args, state != NULL && state->panels != NULL));
    if (p->transpose_b && state == NULL)
        KELP_TRY(
            kelp_ops_scratch(args, p->n * p->k, kelp_ops_element_bytes(b->dtype), &p->b_offset));
    return NULL;
}

static const void *transposed(const kelp_op_args *args, const kelp_tensor *tensor, size_t offset) {
    float *to = kelp_ops_scratch_at(args, offset);
    transpose(args->env, tensor, to);
    return to;
}

static const void *matrix_b(const gemm_state *state, const kelp_op_args *args) {
    const gemm_plan *p = args->plan;
    if (!p->transpose_b || (state != NULL && state->panels != NULL))
        return args->inputs[1]->data;
    return state != NULL ? state->transposed_b.data
                         : transposed(args, args->inputs[1], p->b_offset);
}

/* The last step, y = alpha * y + beta * C, of a product in y. */
typedef struct end_job {
    const kelp_op_args *args;
    double alpha, beta;
} end_job;

/* `wide` adds without alpha and beta, `scaled` with them. */
#define GEMM_END(suffix, type, wide, scaled)                                        \
    static void end_##suffix(void *userp, int64_t begin, int64_t end, int worker) { \
        const end_job *job = userp;                                                 \
        const gemm_plan *p = job->args->plan;                                       \
        const kelp_tensor *c = job->beta != 0 ? kelp_ops_in(job->args, 2) : NULL;   \
        bool plain = job->alpha == 1 && job->beta == 1;                             \
        const scaled alpha = (scaled)job->alpha, beta = (scaled)job->beta;          \
        (void)worker;                                                               \
        for (int64_t i = begin; i < end; i++) {                                     \
            type *y = (type *)job->args->outputs[0]->data + i * p->n;               \
            const type zero = 0, *add = &zero;                                      \
            int64_t step = c != NULL ? p->c_column : 0;                             \
            if (c != NULL)                                                          \
                add = (const type *)c->data + i * p->c_row;                         \
            for (int64_t j = 0; j < p->n && plain; j++)                             \
                y[j] = (type)((wide)y[j] + (wide)add[j * step]);                    \
            for (int64_t j = 0; j < p->n && !plain; j++)                            \
                y[j] = (type)(alpha * (scaled)y[j] + beta * (scaled)add[j * step]); \
        }                                                                           \
    }
GEMM_END(f32, float, float, float)
GEMM_END(f64, double, double, double)
GEMM_END(i32, int32_t, uint32_t, double)
GEMM_END(i64, int64_t, uint64_t, double)
GEMM_END(u32, uint32_t, uint32_t, double)
GEMM_END(u64, uint64_t, uint64_t, double)

static void gemm_f32(const gemm_state *state, const kelp_op_args *args, float alpha, float beta) {
    const gemm_plan *p = args->plan;
    const kelp_tensor *c =
        beta != 0 ? kelp_ops_in(args, 2) : NULL; /* beta 0: C has no effect, even if it is NaN */
    float *y = args->outputs[0]->data;
    bool plain_bias = c != NULL && alpha == 1.0f && beta == 1.0f && p->c_row == 0 &&
                      kelp_tensor_elements(c) == p->n;
    kelp_gemm job = {.a = p->transpose_a ? transposed(args, args->inputs[0], p->a_offset)
                                         : args->inputs[0]->data,
                     .b = matrix_b(state, args),
                     .c = y,
                     .m = p->m,
                     .n = p->n,
                     .k = p->k,
                     .lda = p->k,
                     .ldb = p->n,
                     .ldc = p->n,
                     .bias = plain_bias ? c->data : NULL};
    if (p->algorithm->scratch_floats != NULL)
        job.scratch = kelp_ops_scratch_at(args, p->scratch);
    if (state != NULL)
        kelp_panels_use(state->panels, &job);
    p->algorithm->run(args->env, &job, 1);
    if (plain_bias || (c == NULL && alpha == 1.0f))
        return;
    end_job end = {args, (double)alpha, (double)beta};
    kelp_op_parallel(args->env, p->m, kelp_cpu_grain(KELP_GRAIN_ELEMENTS, p->n), end_f32, &end);
}

/* ---- other types; integers wrap ---- */
static void find_matrices(const void *userp, int64_t index, kelp_product_block *inout_block) {
    const kelp_op_args *args = userp;
    const gemm_plan *p = args->plan;
    (void)index;
    inout_block->a = args->inputs[0]->data;
    inout_block->b =
        p->transpose_b ? kelp_ops_scratch_at(args, p->b_offset) : args->inputs[1]->data;
    inout_block->c = args->outputs[0]->data;
}

static void gemm_others(const kelp_op_args *args, const end_job *end) {
    const gemm_plan *p = args->plan;
    kelp_dtype dtype = args->outputs[0]->dtype;
    kelp_products products = {.type = kelp_product_type_of(dtype),
                              .count = 1,
                              .shape = {.a_row = p->transpose_a ? 1 : p->k,
                                        .a_column = p->transpose_a ? p->m : 1,
                                        .ldb = p->n,
                                        .ldc = p->n,
                                        .m = p->m,
                                        .n = p->n,
                                        .k = p->k},
                              .matrices = find_matrices,
                              .userp = args};
    if (p->transpose_b)
        transpose(args->env, args->inputs[1], kelp_ops_scratch_at(args, p->b_offset));
    kelp_products_run(args->env, &products);
    if (end->alpha == 1 && (kelp_ops_in(args, 2) == NULL || end->beta == 0))
        return;
    kelp_op_parallel(args->env, p->m, kelp_cpu_grain(KELP_GRAIN_ELEMENTS / 2, p->n),
                     dtype == KELP_F64   ? end_f64
                     : dtype == KELP_I32 ? end_i32
                     : dtype == KELP_U32 ? end_u32
                     : dtype == KELP_U64 ? end_u64
                                         : end_i64,
                     (void *)end);
}

static kelp_status *gemm_invoke(const void *state, kelp_op_args *args) {
    float alpha = kelp_node_attr_f32(args->node, "alpha", 1.0f);
    float beta = kelp_node_attr_f32(args->node, "beta", 1.0f);
    end_job end = {args, (double)alpha, (double)beta};
    kelp_dtype dtype = args->outputs[0]->dtype;
    KELP_ASSERT(dtype == args->inputs[0]->dtype && dtype == args->inputs[1]->dtype);
    if (dtype == KELP_F32) {
        gemm_f32(state, args, alpha, beta);
        return NULL;
    }
    gemm_others(args, &end);
    return NULL;
}

KELP_CONVERTED_PHASES(gemm, kelp_widened, sizeof(gemm_plan), gemm_reshape, gemm_invoke)
const kelp_op_kernel kelp_op_Gemm = {.struct_size = sizeof(kelp_op_kernel),
                                     .flags = KELP_OP_STATE_OPTIONAL,
                                     .plan_bytes = KELP_CONVERTED_PLAN(sizeof(gemm_plan)),
                                     .unaligned_inputs = 2,
                                     .create = gemm_create,
                                     .destroy = gemm_destroy,
                                     .reshape = gemm_reshape_any,
                                     .invoke = gemm_invoke_any};

/* com.microsoft FusedGemm supports only float types. */
static kelp_status *fused_reshape(const void *state, kelp_op_args *args) {
    kelp_fused_act act;
    KELP_TRY(kelp_fused_act_read(args->node, &act));
    KELP_TRY(gemm_reshape(state, args));
    return args->outputs[0]->dtype == KELP_F32 ? NULL
                                               : kelp_ops_bad_type(args, args->outputs[0]->dtype);
}
static kelp_status *fused_invoke(const void *state, kelp_op_args *args) {
    kelp_fused_act act;
    KELP_TRY(kelp_fused_act_read(args->node, &act));
    KELP_TRY(gemm_invoke(state, args));
    kelp_fused_act_run(args->env, act, args->outputs[0]->data,
                       kelp_tensor_elements(args->outputs[0]));
    return NULL;
}
KELP_CONVERTED_PHASES(fused, kelp_widened, sizeof(gemm_plan), fused_reshape, fused_invoke)
const kelp_op_kernel kelp_op_MsFusedGemm = {.struct_size = sizeof(kelp_op_kernel),
                                            .flags = KELP_OP_STATE_OPTIONAL,
                                            .plan_bytes = KELP_CONVERTED_PLAN(sizeof(gemm_plan)),
                                            .unaligned_inputs = 2,
                                            .create = gemm_create,
                                            .destroy = gemm_destroy,
                                            .reshape = fused_reshape_any,
                                            .invoke = fused_invoke_any};
