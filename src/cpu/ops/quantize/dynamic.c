/* SPDX-License-Identifier: Apache-2.0 */
/* DynamicQuantizeLinear: quantization to uint8 whose range is computed from the values. Source:
 * ONNX operator specification. */
#include "cpu/ops/quantize/dynamic.h"

#include "base/assert.h"
#include "cpu/kernels/int8/int8_kernels.h"

#include <math.h>

#define PARTS 64 /* maximum number of parts whose ranges are computed in parallel */

typedef struct dynamic_job {
    const kelp_int8_kernels *loops;
    const float *x;
    uint8_t *y;
    int64_t count, part;
    float least[PARTS], most[PARTS];
    float scale;
    int32_t zero;
} dynamic_job;

static void range_parts(void *userp, int64_t begin, int64_t end, int worker) {
    dynamic_job *job = userp;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i * job->part;
        job->least[i] = job->most[i] = 0;
        job->loops->range(job->x + first, KELP_MIN(job->part, job->count - first), &job->least[i],
                          &job->most[i]);
    }
}

static void quantize_range(void *userp, int64_t begin, int64_t end, int worker) {
    const dynamic_job *job = userp;
    (void)worker;
    job->loops->quantize(&(kelp_quantize_run){.x = job->x + begin,
                                              .y = job->y + begin,
                                              .count = end - begin,
                                              .dtype = KELP_U8,
                                              .scale = &job->scale,
                                              .zero = &job->zero});
}

void kelp_quantize_dynamic(const kelp_op_env *env, const float *x, int64_t count, uint8_t *y,
                           float *out_scale, uint8_t *out_zero) {
    dynamic_job job = {.loops = kelp_int8_kernels_get(), .x = x, .y = y, .count = count};
    float least = 0, most = 0;
    job.part = KELP_MAX((int64_t)2 * KELP_GRAIN_ELEMENTS, (count + PARTS - 1) / PARTS);
    int64_t parts = (count + job.part - 1) / job.part;
    KELP_ASSERT(parts >= 0 && parts <= PARTS);
    kelp_op_parallel(env, parts, 1, range_parts, &job);
    for (int64_t i = 0; i < parts; i++) {
        least = KELP_MIN(least, job.least[i]);
        most = KELP_MAX(most, job.most[i]);
    }
    float scale = (most - least) / 255.0f;
    if (scale == 0)
        scale = 1.0f; /* all values are 0 */
    float zero = rintf(0.0f - least / scale);
    zero = zero > 0 ? zero : 0;
    job.zero = (int32_t)(zero > 255 ? 255 : zero);
    job.scale = scale;
    if (y != NULL)
        kelp_op_parallel(env, count, 2 * KELP_GRAIN_ELEMENTS, quantize_range, &job);
    *out_scale = scale;
    *out_zero = (uint8_t)job.zero;
}

/* ---- the operator ---- */
static kelp_status *dynamic_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check_inputs(args, 1));
    const kelp_tensor *x = args->inputs[0];
    if (x->dtype != KELP_F32)
        return kelp_ops_bad_type(args, x->dtype);
    KELP_TRY(kelp_ops_set(args, 0, KELP_U8, x->rank, x->shape));
    KELP_TRY(kelp_ops_set(args, 1, KELP_F32, 0, NULL));
    return kelp_ops_set(args, 2, KELP_U8, 0, NULL);
}

static kelp_status *dynamic_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *y = kelp_ops_out(args, 0),
                      *scale = kelp_ops_out(args, 1), *zero = kelp_ops_out(args, 2);
    float found_scale;
    uint8_t found_zero;
    (void)state;
    KELP_ASSERT(x->dtype == KELP_F32);
    kelp_quantize_dynamic(args->env, x->data, kelp_tensor_elements(x), y != NULL ? y->data : NULL,
                          &found_scale, &found_zero);
    if (scale != NULL)
        *(float *)scale->data = found_scale;
    if (zero != NULL)
        *(uint8_t *)zero->data = found_zero;
    return NULL;
}
KELP_KERNEL(DynamicQuantizeLinear, 0, 0, 0, dynamic_reshape, dynamic_invoke);
