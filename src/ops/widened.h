/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of floats made to take float16 and bfloat16: operands are copied to floats, the kernel
 * runs on those, and what it gives is rounded once.
 */
#ifndef KELP_OPS_WIDENED_H_
#define KELP_OPS_WIDENED_H_

#include "ops/kernel.h"

#define KELP_WIDENED_INPUTS 8
#define KELP_WIDENED_OUTPUTS 3

/* In the plan, behind the kernel's own. */
typedef struct kelp_widened {
    bool used;
    kelp_tensor in[KELP_WIDENED_INPUTS], out[KELP_WIDENED_OUTPUTS];
    const kelp_tensor *inputs[KELP_WIDENED_INPUTS];
    kelp_tensor *outputs[KELP_WIDENED_OUTPUTS];
    size_t in_wide[KELP_WIDENED_INPUTS], out_wide[KELP_WIDENED_OUTPUTS];
    size_t scratch; /* where the kernel's own begins */
} kelp_widened;

typedef kelp_status *(*kelp_op_phase)(const void *state, kelp_op_args *args);

/* `inner` straight away when no input is float16 or bfloat16. All such inputs must have one type,
 * which is that of every output that the kernel makes of floats. `plan_bytes` is the kernel's own;
 * the wrapped one's is KELP_WIDENED_PLAN(plan_bytes). */
#define KELP_WIDENED_PLAN(plan_bytes) (((plan_bytes) + 15) / 16 * 16 + sizeof(kelp_widened))
kelp_status *kelp_widened_reshape(const void *state, kelp_op_args *args, kelp_op_phase inner,
                                  size_t plan_bytes) KELP_MUST_USE;
kelp_status *kelp_widened_invoke(const void *state, kelp_op_args *args, kelp_op_phase inner,
                                 size_t plan_bytes) KELP_MUST_USE;

/* Both phases of kernel `name` as name_reshape_any and name_invoke_any. */
#define KELP_WIDENED_PHASES(name, plan, reshape_fn, invoke_fn)                      \
    static kelp_status *name##_reshape_any(const void *state, kelp_op_args *args) { \
        return kelp_widened_reshape(state, args, reshape_fn, plan);                 \
    }                                                                               \
    static kelp_status *name##_invoke_any(const void *state, kelp_op_args *args) {  \
        return kelp_widened_invoke(state, args, invoke_fn, plan);                   \
    }

#endif
