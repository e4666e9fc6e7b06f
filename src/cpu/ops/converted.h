/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs kernels of one element type on others: inputs are converted to scratch memory, the kernel
 * runs on the copies, and its outputs of that type are converted back.
 */
#ifndef KELP_CPU_OPS_CONVERTED_H_
#define KELP_CPU_OPS_CONVERTED_H_

#include "cpu/kernels/math/load.h"
#include "cpu/ops/kernel.h"

/* Maximum numbers of inputs and outputs of a node whose inputs are converted. */
#define KELP_CONVERTED_INPUTS 8
#define KELP_CONVERTED_OUTPUTS 3

/* A conversion between the element types of a node and the one of its kernel. */
typedef struct kelp_conversion {
    bool (*accepts)(kelp_dtype dtype); /* true for types that are converted */
    kelp_dtype dtype;                  /* the kernel's type */
    size_t element_bytes;              /* of the kernel's type */
    void (*load)(const kelp_op_env *env, const kelp_tensor *from, void *to);
    void (*store)(const kelp_op_env *env, const void *from, kelp_tensor *to);
} kelp_conversion;
/* Converts float16 and bfloat16 to float32. */
extern const kelp_conversion kelp_widened;
/* Converts elements smaller than a byte to bytes, for kernels that only move elements. */
extern const kelp_conversion kelp_unpacked;

/* Converts all elements to or from float32, on all threads. */
void kelp_ops_load_f32(const kelp_op_env *env, const kelp_tensor *from, float *to);
void kelp_ops_store_f32(const kelp_op_env *env, const float *from, kelp_tensor *to);

/* Gets an operand as float32, for kernels that compute in float: in place if it has that type, else
 * loaded to scratch memory, which `plan` reserves in reshape and `get` fills in invoke. Returns
 * NULL for an omitted operand. The caller checks the type. */
kelp_status *kelp_ops_plan_f32(kelp_op_args *args, const kelp_tensor *tensor,
                               size_t *out_offset) KELP_MUST_USE;
const float *kelp_ops_get_f32(const kelp_op_args *args, const kelp_tensor *tensor, size_t offset);

/* The part of the plan that follows the plan of the kernel. */
typedef struct kelp_converted {
    bool used; /* false: the kernel runs on the operands of the node */
    kelp_tensor in[KELP_CONVERTED_INPUTS], out[KELP_CONVERTED_OUTPUTS];
    const kelp_tensor *inputs[KELP_CONVERTED_INPUTS];
    kelp_tensor *outputs[KELP_CONVERTED_OUTPUTS];
    size_t in_at[KELP_CONVERTED_INPUTS], out_at[KELP_CONVERTED_OUTPUTS]; /* in scratch memory */
    size_t scratch; /* offset of the kernel's own scratch memory */
} kelp_converted;

/* The phase reshape or invoke of a kernel. */
typedef kelp_status *(*kelp_op_phase)(const void *state, kelp_op_args *args);

/* Runs phase `inner` on converted operands, or on the node's own if the conversion accepts none of
 * the inputs. The accepted inputs must have one type, which the outputs of the kernel's type get.
 * `plan_bytes` is the size of the kernel's plan; the node's is KELP_CONVERTED_PLAN(plan_bytes). */
#define KELP_CONVERTED_PLAN(plan_bytes) (((plan_bytes) + 15) / 16 * 16 + sizeof(kelp_converted))
kelp_status *kelp_converted_reshape(const kelp_conversion *conversion, const void *state,
                                    kelp_op_args *args, kelp_op_phase inner,
                                    size_t plan_bytes) KELP_MUST_USE;
kelp_status *kelp_converted_invoke(const kelp_conversion *conversion, const void *state,
                                   kelp_op_args *args, kelp_op_phase inner,
                                   size_t plan_bytes) KELP_MUST_USE;

/* Defines both phases of kernel `name` as name_reshape_any and name_invoke_any. */
#define KELP_CONVERTED_PHASES(name, conversion, plan, reshape_fn, invoke_fn)         \
    static kelp_status *name##_reshape_any(const void *state, kelp_op_args *args) {  \
        return kelp_converted_reshape(&(conversion), state, args, reshape_fn, plan); \
    }                                                                                \
    static kelp_status *name##_invoke_any(const void *state, kelp_op_args *args) {   \
        return kelp_converted_invoke(&(conversion), state, args, invoke_fn, plan);   \
    }

#endif
