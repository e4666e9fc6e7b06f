/* SPDX-License-Identifier: Apache-2.0 */
/* Clip, with optional bounds: attributes up to version 6, inputs since version 11. Source: ONNX
 * operator specification. */
#include "base/assert.h"
#include "cpu/kernels/elementwise/elementwise_kernels.h"
#include "cpu/ops/converted.h"

#include <float.h>

/* Floats that are clipped at a time. */
#define BLOCK 512

static kelp_status *clip_reshape(const void *state, kelp_op_args *args) {
    (void)state;
    KELP_TRY(kelp_ops_check(args, 1));
    const kelp_tensor *x = args->inputs[0];
    for (int32_t i = 1; i <= 2; i++) {
        const kelp_tensor *bound = kelp_ops_in(args, i);
        if (bound != NULL && (bound->dtype != x->dtype || kelp_tensor_elements(bound) != 1))
            return kelp_ops_bad_shapes(args, bound, NULL,
                                       "a bound must be one value of the input's type");
    }
    if (x->dtype == KELP_STRING || x->dtype == KELP_BOOL || kelp_ops_element_bytes(x->dtype) == 0 ||
        kelp_ops_element_bytes(x->dtype) > 8)
        return kelp_ops_bad_type(args, x->dtype);
    if (kelp_ops_version(args) < 11 && !kelp_ops_is_float(x->dtype))
        return kelp_ops_bad_type(args, x->dtype); /* the attributes are floats */
    return kelp_ops_set_like(args, 0, x);
}

typedef struct clip_job {
    const void *x, *low, *high;
    void *y;
    kelp_dtype dtype;
} clip_job;

/* as NumPy: min(max(x, low), high); NaN is preserved */
#define CLIP(suffix, type)                                                           \
    static void clip_##suffix(void *userp, int64_t begin, int64_t end, int worker) { \
        const clip_job *job = userp;                                                 \
        const type *x = job->x;                                                      \
        type *y = job->y;                                                            \
        (void)worker;                                                                \
        type low = job->low ? *(const type *)job->low : 0;                           \
        type high = job->high ? *(const type *)job->high : 0;                        \
        bool has_low = job->low != NULL, has_high = job->high != NULL;               \
        for (int64_t i = begin; i < end; i++) {                                      \
            type v = x[i];                                                           \
            v = has_low && v < low ? low : v;                                        \
            y[i] = has_high && v > high ? high : v;                                  \
        }                                                                            \
    }
CLIP(f64, double)
CLIP(i8, int8_t)
CLIP(i16, int16_t)
CLIP(i32, int32_t)
CLIP(i64, int64_t)
CLIP(u8, uint8_t)
CLIP(u16, uint16_t)
CLIP(u32, uint32_t)
CLIP(u64, uint64_t)

static void clip_floats(const float *x, float *y, int64_t count, const clip_job *job) {
    const kelp_elementwise_kernels *elementwise = kelp_elementwise_kernels_get();
    if (job->low != NULL)
        elementwise->bin[KELP_BIN_MAX](y, x, job->low, count, 1, 0);
    if (job->high != NULL)
        elementwise->bin[KELP_BIN_MIN](y, job->low != NULL ? y : x, job->high, count, 1, 0);
    if (job->low == NULL && job->high == NULL && y != x)
        memcpy(y, x, (size_t)count * sizeof *y);
}

static void clip_f32(void *userp, int64_t begin, int64_t end, int worker) {
    const clip_job *job = userp;
    (void)worker;
    for (int64_t i = begin; i < end; i += BLOCK)
        clip_floats((const float *)job->x + i, (float *)job->y + i,
                    KELP_MIN((int64_t)BLOCK, end - i), job);
}

/* 16-bit floats are clipped as float32 in blocks; the bounds are float32. */
static void clip_half(void *userp, int64_t begin, int64_t end, int worker) {
    const clip_job *job = userp;
    float block[BLOCK];
    (void)worker;
    for (int64_t i = begin; i < end; i += BLOCK) {
        int64_t count = KELP_MIN((int64_t)BLOCK, end - i);
        kelp_math_load(job->dtype, job->x, i, count, block);
        clip_floats(block, block, count, job);
        kelp_math_store(job->dtype, job->y, i, count, block);
    }
}

static kelp_status *clip_invoke(const void *state, kelp_op_args *args) {
    const kelp_tensor *x = args->inputs[0], *low = kelp_ops_in(args, 1),
                      *high = kelp_ops_in(args, 2);
    float old_low = kelp_node_attr_f32(args->node, "min", -FLT_MAX);
    float old_high = kelp_node_attr_f32(args->node, "max", FLT_MAX);
    double wide_low = (double)old_low, wide_high = (double)old_high;
    float bounds[2];
    clip_job job = {x->data, low ? low->data : NULL, high ? high->data : NULL,
                    args->outputs[0]->data, x->dtype};
    (void)state;
    KELP_ASSERT(low == NULL || low->dtype == x->dtype);
    KELP_ASSERT(high == NULL || high->dtype == x->dtype);
    for (int i = 0; i < 2 && kelp_math_is_half(x->dtype); i++) {
        const void **bound = i == 0 ? &job.low : &job.high;
        if (*bound == NULL)
            continue;
        kelp_math_load(x->dtype, *bound, 0, 1, &bounds[i]);
        *bound = &bounds[i];
    }
    if (kelp_ops_version(args) < 11) {
        job.low = x->dtype == KELP_F64 ? (const void *)&wide_low : &old_low;
        job.high = x->dtype == KELP_F64 ? (const void *)&wide_high : &old_high;
    }
    switch (x->dtype) {
#define CASE(name, suffix)                                                                       \
    case name:                                                                                   \
        kelp_op_parallel(args->env, kelp_tensor_elements(x), KELP_GRAIN_ELEMENTS, clip_##suffix, \
                         &job);                                                                  \
        return NULL;
        CASE(KELP_F32, f32)
        CASE(KELP_F16, half)
        CASE(KELP_BF16, half)
        CASE(KELP_F64, f64)
        CASE(KELP_I8, i8)
        CASE(KELP_I16, i16)
        CASE(KELP_I32, i32)
        CASE(KELP_I64, i64)
        CASE(KELP_U8, u8)
        CASE(KELP_U16, u16)
        CASE(KELP_U32, u32)
        CASE(KELP_U64, u64)
#undef CASE
    default:
        return kelp_ops_bad_type(args, x->dtype);
    }
}
KELP_KERNEL(Clip, KELP_OP_INPLACE_0, 0, 0, clip_reshape, clip_invoke);
