/* SPDX-License-Identifier: Apache-2.0 */
/* SwiGLU: a * sigmoid(alpha * a) * b. Source: ONNX operator specification; Shazeer, "GLU Variants
 * Improve Transformer", 2020. */
#include "base/assert.h"
#include "cpu/kernels/gemm/gemm.h"
#include "cpu/ops/converted.h"
#include "cpu/ops/kernel.h"
#include "tensor/real.h"

#include <math.h>

#define CHUNK 512

static kelp_status *swiglu_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 2));
    const kelp_tensor *a = args->inputs[0], *b = args->inputs[1];
    if (!kelp_ops_is_float(a->dtype) || b->dtype != a->dtype)
        return kelp_ops_bad_type(args, b->dtype);
    if (a->rank != b->rank || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) != 0)
        return kelp_ops_bad_shapes(args, a, b, "expected two tensors of the same shape");
    return kelp_ops_set_like(args, 0, a);
}

static void wide_chunk(const kelp_elementwise_kernels *elementwise, float alpha, const float *a,
                       const float *b, float *y, int64_t count) {
    float gate[CHUNK];
    for (int64_t i = 0; i < count; i++)
        gate[i] = alpha * a[i];
    elementwise->act[KELP_ACT_SIGMOID](gate, gate, count);
    elementwise->bin[KELP_BIN_MUL](gate, gate, a, count, 1, 1);
    elementwise->bin[KELP_BIN_MUL](y, gate, b, count, 1, 1);
}

static void swiglu_range(void *userp, int64_t begin, int64_t end, int worker) {
    const kelp_op_args *args = userp;
    const kelp_tensor *a = args->inputs[0], *b = args->inputs[1];
    kelp_tensor *y = args->outputs[0];
    float alpha = kelp_node_attr_f32(args->node, "alpha", 1.0f);
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    float left[CHUNK], right[CHUNK];
    (void)worker;
    if (a->dtype == KELP_F64) {
        for (int64_t i = begin; i < end; i++) {
            double x = ((const double *)a->data)[i];
            ((double *)y->data)[i] =
                x / (1.0 + exp(-(double)alpha * x)) * ((const double *)b->data)[i];
        }
        return;
    }
    for (int64_t i = begin; i < end; i += CHUNK) {
        int64_t count = KELP_MIN((int64_t)CHUNK, end - i);
        if (a->dtype == KELP_F32) {
            wide_chunk(elementwise, alpha, (const float *)a->data + i, (const float *)b->data + i,
                       (float *)y->data + i, count);
            continue;
        }
        kelp_math_load_tensor(a, i, count, left);
        kelp_math_load_tensor(b, i, count, right);
        wide_chunk(elementwise, alpha, left, right, left, count);
        kelp_math_store_tensor(y, i, count, left);
    }
}

static kelp_status *swiglu_invoke(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_ASSERT(args->inputs[0]->dtype == args->outputs[0]->dtype);
    kelp_op_parallel(args->env, kelp_tensor_elements(args->inputs[0]), KELP_GRAIN_ELEMENTS,
                     swiglu_range, args);
    return NULL;
}
KELP_KERNEL(SwiGLU, KELP_OP_INPLACE_0, 0, 0, swiglu_reshape, swiglu_invoke);
