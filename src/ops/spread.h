/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that only move elements made to take those of less than a byte: these are spread, one a
 * byte, the kernel runs on bytes, and what it gives is packed again.
 */
#ifndef KELP_OPS_SPREAD_H_
#define KELP_OPS_SPREAD_H_

#include "ops/kernel.h"

#define KELP_SPREAD_INPUTS 4

/* In the plan, behind the kernel's own. */
typedef struct kelp_spread {
    bool used;
    kelp_tensor in[KELP_SPREAD_INPUTS], out;
    const kelp_tensor *inputs[KELP_SPREAD_INPUTS];
    kelp_tensor *outputs[1];
    size_t in_bytes[KELP_SPREAD_INPUTS], out_bytes; /* where they begin in scratch */
    size_t scratch;                                 /* where the kernel's own begins */
} kelp_spread;

/* `inner` straight away when input 0 has whole bytes. The output, which is the only one, has its
 * type. `plan_bytes` is the kernel's own; the wrapped one's is KELP_SPREAD_PLAN(plan_bytes). */
#define KELP_SPREAD_PLAN(plan_bytes) (((plan_bytes) + 15) / 16 * 16 + sizeof(kelp_spread))
kelp_status *kelp_spread_reshape(const void *state, kelp_op_args *args,
                                 kelp_status *(*inner)(const void *state, kelp_op_args *args),
                                 size_t plan_bytes) KELP_MUST_USE;
kelp_status *kelp_spread_invoke(const void *state, kelp_op_args *args,
                                kelp_status *(*inner)(const void *state, kelp_op_args *args),
                                size_t plan_bytes) KELP_MUST_USE;

/* Both phases of kernel `name` as name_reshape_any and name_invoke_any. */
#define KELP_SPREAD_PHASES(name, plan, reshape_fn, invoke_fn)                       \
    static kelp_status *name##_reshape_any(const void *state, kelp_op_args *args) { \
        return kelp_spread_reshape(state, args, reshape_fn, plan);                  \
    }                                                                               \
    static kelp_status *name##_invoke_any(const void *state, kelp_op_args *args) {  \
        return kelp_spread_invoke(state, args, invoke_fn, plan);                    \
    }

#endif
