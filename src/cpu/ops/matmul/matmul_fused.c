/* SPDX-License-Identifier: Apache-2.0 */
/*
 * com.microsoft FusedMatMul: MatMul of operands that attributes transpose, times alpha. Transposed
 * operands are copied first. Source: ONNX Runtime, ContribOperators.md.
 */
#include "base/assert.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/ops/kernel.h"
#include "cpu/ops/converted.h"

/* An operand of the multiplication. */
typedef struct side {
    int32_t rank;
    int64_t shape[KELP_MAX_RANK], from[KELP_MAX_RANK]; /* once transposed; strides of the input */
    bool transposed;
    size_t offset; /* of the copy, if transposed */
} side;

typedef struct fused_plan {
    side a, b;
    int64_t m, n, k, batch;
    int32_t batch_rank;
    int64_t batch_shape[KELP_MAX_RANK];
    size_t jobs;
    float alpha;
} fused_plan;

/* Computes the shape and strides of an operand. `moves_batch`: the first axis is moved after the
 * other axes of the batch; `transposes`: then the last two axes are swapped. */
static void read_side(const kelp_tensor *x, bool transposes, bool moves_batch, side *out) {
    int64_t strides[KELP_MAX_RANK];
    kelp_ops_strides(x->rank, x->shape, strides);
    memcpy(out->shape, x->shape, sizeof out->shape);
    memcpy(out->from, strides, sizeof strides);
    out->rank = x->rank;
    if (moves_batch && x->rank > 2) {
        for (int32_t i = 0; i < x->rank - 2; i++) {
            out->shape[i] = x->shape[i + 1];
            out->from[i] = strides[i + 1];
        }
        out->shape[x->rank - 2] = x->shape[0];
        out->from[x->rank - 2] = strides[0];
    }
    if (transposes && x->rank > 1) {
        int64_t dim = out->shape[x->rank - 1], stride = out->from[x->rank - 1];
        out->shape[x->rank - 1] = out->shape[x->rank - 2];
        out->from[x->rank - 1] = out->from[x->rank - 2];
        out->shape[x->rank - 2] = dim;
        out->from[x->rank - 2] = stride;
    }
    out->transposed = (moves_batch && x->rank > 2) || (transposes && x->rank > 1);
}

static kelp_status *fused_reshape(const void *state, kelp_op_args *args) {
    fused_plan *p = args->plan;
    const kelp_node *node = args->node;
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *a = args->inputs[0], *b = args->inputs[1];
    if (a->dtype != KELP_F32 || b->dtype != KELP_F32)
        return kelp_ops_bad_type(args, a->dtype);
    if (a->rank < 1 || b->rank < 1)
        return kelp_ops_bad_shapes(args, a, b, "an operand is a scalar");
    read_side(a, kelp_node_attr_i64(node, "transA", 0) != 0,
              kelp_node_attr_i64(node, "transBatchA", 0) != 0, &p->a);
    read_side(b, kelp_node_attr_i64(node, "transB", 0) != 0,
              kelp_node_attr_i64(node, "transBatchB", 0) != 0, &p->b);
    p->alpha = kelp_node_attr_f32(node, "alpha", 1.0f);
    int32_t a_axes = KELP_MIN(a->rank, 2), b_axes = KELP_MIN(b->rank, 2);
    p->m = a->rank > 1 ? p->a.shape[a->rank - 2] : 1;
    p->k = p->a.shape[a->rank - 1];
    p->n = b->rank > 1 ? p->b.shape[b->rank - 1] : 1;
    int32_t rank = p->batch_rank = a->rank - a_axes;
    memcpy(p->batch_shape, p->a.shape, sizeof p->batch_shape);
    if (p->k != p->b.shape[b->rank > 1 ? b->rank - 2 : 0] ||
        !kelp_ops_broadcast_shape(&p->batch_rank, p->batch_shape, b->rank - b_axes, p->b.shape))
        return kelp_ops_bad_shapes(
            args, a, b, "the inner dimensions differ, or the batch dimensions do not broadcast");
    int64_t shape[KELP_MAX_RANK];
    rank = p->batch_rank;
    memcpy(shape, p->batch_shape, sizeof shape);
    p->batch = kelp_ops_product(shape, 0, rank);
    if (a->rank > 1)
        shape[rank++] = p->m;
    if (b->rank > 1)
        shape[rank++] = p->n;
    KELP_TRY(kelp_ops_set(args, 0, KELP_F32, rank, shape));
    if (p->a.transposed)
        KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(a), sizeof(float), &p->a.offset));
    if (p->b.transposed)
        KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(b), sizeof(float), &p->b.offset));
    return kelp_ops_scratch(args, p->batch, sizeof(kelp_gemm), &p->jobs);
}

/* Returns the data of an operand, copied to scratch memory if it is transposed. */
static const float *operand(const kelp_op_args *args, int32_t index, const side *s) {
    if (!s->transposed)
        return args->inputs[index]->data;
    float *to = kelp_ops_scratch_at(args, s->offset);
    int64_t strides[KELP_MAX_RANK];
    kelp_ops_strides(s->rank, s->shape, strides);
    kelp_ops_copy(args->env, sizeof(float), s->rank, s->shape, to, strides,
                  args->inputs[index]->data, s->from);
    return to;
}

/* Returns the index of the matrix of an operand for index `index` of the batch. */
static int64_t matrix_of(const fused_plan *p, const side *s, int64_t index) {
    int32_t axes = KELP_MIN(s->rank, 2), shift = p->batch_rank - (s->rank - axes);
    int64_t stride = 1, offset = 0;
    KELP_ASSERT(shift >= 0 && index >= 0 && index < p->batch);
    for (int32_t i = p->batch_rank - 1; i >= shift; i--) {
        int64_t at = index % p->batch_shape[i], dim = s->shape[i - shift];
        index /= p->batch_shape[i];
        offset += dim == 1 ? 0 : at * stride;
        stride *= dim;
    }
    return offset;
}

static void scale_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_op_args *args = userp;
    const fused_plan *p = args->plan;
    float *y = args->outputs[0]->data;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        y[i] *= p->alpha;
}

static kelp_status *fused_invoke(const void *state, kelp_op_args *args) {
    const fused_plan *p = args->plan;
    kelp_gemm *jobs = kelp_ops_scratch_at(args, p->jobs);
    const float *a = operand(args, 0, &p->a), *b = operand(args, 1, &p->b);
    (void)state;
    KELP_ASSERT(p->batch * p->m * p->n == kelp_tensor_elements(args->outputs[0]));
    for (int64_t i = 0; i < p->batch; i++)
        jobs[i] = (kelp_gemm){.a = a + matrix_of(p, &p->a, i) * p->m * p->k,
                              .b = b + matrix_of(p, &p->b, i) * p->k * p->n,
                              .c = (float *)args->outputs[0]->data + i * p->m * p->n,
                              .m = p->m,
                              .n = p->n,
                              .k = p->k,
                              .lda = p->k,
                              .ldb = p->n,
                              .ldc = p->n};
    kelp_gemm_run(args->env, jobs, p->batch);
    if (p->alpha != 1.0f)
        kelp_op_parallel(args->env, kelp_tensor_elements(args->outputs[0]), KELP_GRAIN_ELEMENTS,
                         scale_range, args);
    return NULL;
}
KELP_CONVERTED_PHASES(fused, kelp_widened, sizeof(fused_plan), fused_reshape, fused_invoke)
KELP_KERNEL(MsFusedMatMul, 0, KELP_CONVERTED_PLAN(sizeof(fused_plan)), 0, fused_reshape_any,
            fused_invoke_any);
