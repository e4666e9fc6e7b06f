/* SPDX-License-Identifier: Apache-2.0 */
/* float16 and bfloat16 operands as floats. */
#include "cpu/ops/wide.h"

typedef uint16_t any_u16 __attribute__((aligned(1), may_alias)); /* constants lie anywhere */

void kelp_ops_read_f32s(const kelp_tensor *tensor, int64_t first, int64_t count, float *out) {
    const char *data = tensor->data;
    if (tensor->dtype == KELP_F32) {
        memcpy(out, data + first * 4, (size_t)count * 4);
    } else if (tensor->dtype == KELP_F16) {
        const any_u16 *from = (const any_u16 *)data + first;
        for (int64_t i = 0; i < count; i++)
            out[i] = kelp_f16_to_f32(from[i]);
    } else if (tensor->dtype == KELP_BF16) {
        const any_u16 *from = (const any_u16 *)data + first;
        for (int64_t i = 0; i < count; i++)
            out[i] = kelp_bf16_to_f32(from[i]);
    } else {
        for (int64_t i = 0; i < count; i++)
            out[i] = (float)kelp_ops_read_f64(tensor, first + i);
    }
}

void kelp_ops_write_f32s(kelp_tensor *tensor, int64_t first, int64_t count, const float *from) {
    char *data = tensor->data;
    if (tensor->dtype == KELP_F32) {
        memmove(data + first * 4, from, (size_t)count * 4);
    } else if (tensor->dtype == KELP_F16) {
        uint16_t *to = (uint16_t *)(void *)data + first;
        for (int64_t i = 0; i < count; i++)
            to[i] = kelp_f32_to_f16(from[i]);
    } else if (tensor->dtype == KELP_BF16) {
        uint16_t *to = (uint16_t *)(void *)data + first;
        for (int64_t i = 0; i < count; i++)
            to[i] = kelp_f32_to_bf16(from[i]);
    } else if (tensor->dtype == KELP_F64) {
        double *to = (double *)(void *)data + first;
        for (int64_t i = 0; i < count; i++)
            to[i] = (double)from[i];
    }
}

void kelp_ops_write_f64(kelp_tensor *tensor, int64_t index, double value) {
    if (tensor->dtype == KELP_F64)
        ((double *)tensor->data)[index] = value;
    else if (tensor->dtype == KELP_F32)
        ((float *)tensor->data)[index] = (float)value;
    else
        kelp_ops_write_f32s(tensor, index, 1, &(float){kelp_f64_to_f32_odd(value)});
}

typedef struct convert_job {
    const kelp_tensor *from;
    float *wide;
    kelp_tensor *to;
    const float *narrow;
} convert_job;

static void convert_range(void *userp, int64_t begin, int64_t end, int worker) {
    const convert_job *job = userp;
    (void)worker;
    if (job->from != NULL)
        kelp_ops_read_f32s(job->from, begin, end - begin, job->wide + begin);
    else
        kelp_ops_write_f32s(job->to, begin, end - begin, job->narrow + begin);
}

void kelp_ops_widen(const kelp_op_env *env, const kelp_tensor *from, float *to) {
    convert_job job = {.from = from, .wide = to};
    kelp_op_parallel(env, kelp_tensor_elements(from), KELP_OPS_GRAIN, convert_range, &job);
}

void kelp_ops_narrow(const kelp_op_env *env, const float *from, kelp_tensor *to) {
    convert_job job = {.to = to, .narrow = from};
    kelp_op_parallel(env, kelp_tensor_elements(to), KELP_OPS_GRAIN, convert_range, &job);
}

kelp_status *kelp_ops_wide_plan(kelp_op_args *args, const kelp_tensor *tensor, size_t *out_offset) {
    *out_offset = 0;
    if (tensor == NULL || tensor->dtype == KELP_F32)
        return NULL;
    return kelp_ops_scratch(args, kelp_tensor_elements(tensor), sizeof(float), out_offset);
}

const float *kelp_ops_wide_get(const kelp_op_args *args, const kelp_tensor *tensor, size_t offset) {
    if (tensor == NULL || tensor->dtype == KELP_F32)
        return tensor != NULL ? tensor->data : NULL;
    float *copy = (float *)(void *)((char *)args->scratch + offset);
    kelp_ops_widen(args->env, tensor, copy);
    return copy;
}

float *kelp_ops_wide_put(const kelp_op_args *args, kelp_tensor *tensor, size_t offset) {
    if (tensor == NULL || tensor->dtype == KELP_F32)
        return tensor != NULL ? tensor->data : NULL;
    return (float *)(void *)((char *)args->scratch + offset);
}

void kelp_ops_wide_finish(const kelp_op_args *args, kelp_tensor *tensor, size_t offset) {
    if (tensor != NULL && tensor->dtype != KELP_F32)
        kelp_ops_narrow(args->env, (const float *)(const void *)((char *)args->scratch + offset),
                        tensor);
}
