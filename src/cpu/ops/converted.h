/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of one type made to take others: operands are converted into scratch, the kernel runs on
 * those, and what it gives of its own type is converted back, once.
 */
#ifndef KELP_CPU_OPS_CONVERTED_H_
#define KELP_CPU_OPS_CONVERTED_H_

#include "cpu/ops/kernel.h"

#define KELP_CONVERTED_INPUTS 8
#define KELP_CONVERTED_OUTPUTS 3

typedef struct kelp_conversion {
    bool (*takes)(kelp_dtype dtype);
    kelp_dtype as;
    size_t element_bytes;
    void (*there)(const kelp_op_env *env, const kelp_tensor *from, void *to);
    void (*back)(const kelp_op_env *env, const void *from, kelp_tensor *to);
} kelp_conversion;
/* float16 and bfloat16 as float. */
extern const kelp_conversion kelp_widened;
/* Elements of less than a byte as bytes, for kernels that only move them. */
extern const kelp_conversion kelp_spread;

/* Whole tensors as floats and back, on all threads. */
void kelp_ops_load_f32(const kelp_op_env *env, const kelp_tensor *from, float *to);
void kelp_ops_store_f32(const kelp_op_env *env, const float *from, kelp_tensor *to);

/* An operand as floats for kernels that compute in float: in place when it is float32, else loaded
 * to scratch memory, which `plan` reserves in reshape and `get` fills in invoke. NULL for an
 * operand that is left out. The caller checks the type. */
kelp_status *kelp_ops_plan_f32(kelp_op_args *args, const kelp_tensor *tensor,
                               size_t *out_offset) KELP_MUST_USE;
const float *kelp_ops_get_f32(const kelp_op_args *args, const kelp_tensor *tensor, size_t offset);

/* In the plan, behind the kernel's own. */
typedef struct kelp_converted {
    bool used;
    kelp_tensor in[KELP_CONVERTED_INPUTS], out[KELP_CONVERTED_OUTPUTS];
    const kelp_tensor *inputs[KELP_CONVERTED_INPUTS];
    kelp_tensor *outputs[KELP_CONVERTED_OUTPUTS];
    size_t in_at[KELP_CONVERTED_INPUTS], out_at[KELP_CONVERTED_OUTPUTS]; /* in scratch */
    size_t scratch; /* where the kernel's own begins */
} kelp_converted;

typedef kelp_status *(*kelp_op_phase)(const void *state, kelp_op_args *args);

/* `inner` straight away when the conversion takes no input. All that it takes must have one type,
 * which is that of every output that the kernel makes of its own type. `plan_bytes` is the kernel's
 * own; the wrapped one's is KELP_CONVERTED_PLAN(plan_bytes). */
#define KELP_CONVERTED_PLAN(plan_bytes) (((plan_bytes) + 15) / 16 * 16 + sizeof(kelp_converted))
kelp_status *kelp_converted_reshape(const kelp_conversion *conversion, const void *state,
                                    kelp_op_args *args, kelp_op_phase inner,
                                    size_t plan_bytes) KELP_MUST_USE;
kelp_status *kelp_converted_invoke(const kelp_conversion *conversion, const void *state,
                                   kelp_op_args *args, kelp_op_phase inner,
                                   size_t plan_bytes) KELP_MUST_USE;

/* Both phases of kernel `name` as name_reshape_any and name_invoke_any. */
#define KELP_CONVERTED_PHASES(name, conversion, plan, reshape_fn, invoke_fn)         \
    static kelp_status *name##_reshape_any(const void *state, kelp_op_args *args) {  \
        return kelp_converted_reshape(&(conversion), state, args, reshape_fn, plan); \
    }                                                                                \
    static kelp_status *name##_invoke_any(const void *state, kelp_op_args *args) {   \
        return kelp_converted_invoke(&(conversion), state, args, invoke_fn, plan);   \
    }

#endif
