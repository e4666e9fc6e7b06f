/* SPDX-License-Identifier: Apache-2.0 */
/* GlobalAveragePool: the mean of each channel's plane. Source: ONNX operator specification. */
#include "ops/kernel.h"

#define LANES 16

typedef struct plane_plan {
    int64_t planes, size;
    const kelp_op_args *args;
} plane_plan;

static kelp_status *global_reshape(const void *state, kelp_op_args *args) {
    plane_plan *p = args->plan;
    int64_t shape[KELP_MAX_RANK];
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (x->dtype != KELP_F32 && x->dtype != KELP_F64)
        return kelp_ops_bad_type(args, x->dtype);
    if (x->rank < 2)
        return kelp_ops_bad_shapes(args, x, NULL, "expected batch and channels");
    for (int32_t i = 0; i < x->rank; i++)
        shape[i] = i < 2 ? x->shape[i] : 1;
    p->planes = x->shape[0] * x->shape[1];
    p->size = kelp_ops_product(x->shape, 2, x->rank);
    return kelp_ops_set(args, 0, x->dtype, x->rank, shape);
}

/* Many sums side by side, which one register holds. */
static float mean_of(const float *x, int64_t count) {
    float lanes[LANES] = {0};
    double sum = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int k = 0; k < LANES; k++)
            lanes[k] += x[i + k];
    for (int k = 0; k < LANES; k++)
        sum += (double)lanes[k];
    for (; i < count; i++)
        sum += (double)x[i];
    return (float)(sum / (double)count);
}

static void planes(void *userp, int64_t begin, int64_t end, int worker) {
    const plane_plan *p = userp;
    const kelp_tensor *x = p->args->inputs[0], *y = p->args->outputs[0];
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        if (x->dtype == KELP_F32) {
            ((float *)y->data)[at] = mean_of((const float *)x->data + at * p->size, p->size);
            continue;
        }
        double sum = 0;
        for (int64_t i = 0; i < p->size; i++)
            sum += ((const double *)x->data)[at * p->size + i];
        ((double *)y->data)[at] = sum / (double)p->size;
    }
}

static kelp_status *global_invoke(const void *state, kelp_op_args *args) {
    plane_plan *p = args->plan;
    (void)state;
    p->args = args;
    kelp_op_parallel(args->env, p->planes, KELP_OPS_GRAIN / KELP_MAX((int64_t)1, p->size) + 1,
                     planes, p);
    return NULL;
}
KELP_KERNEL(GlobalAveragePool, 0, sizeof(plane_plan), 0, global_reshape, global_invoke);
