/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of floats made to take float16 and bfloat16. */
#include "ops/widened.h"

#include "ops/wide.h"

static bool is_half(kelp_dtype dtype) {
    return dtype == KELP_F16 || dtype == KELP_BF16;
}

static kelp_widened *frame_of(const kelp_op_args *args, size_t plan_bytes) {
    return (kelp_widened *)(void *)((char *)args->plan + (plan_bytes + 15) / 16 * 16);
}

/* The type of the narrow inputs; invalid when there are none. */
static kelp_status *narrow_type(const kelp_op_args *args, kelp_dtype *out) {
    *out = KELP_DTYPE_INVALID;
    for (int32_t i = 0; i < args->input_count; i++) {
        const kelp_tensor *x = args->inputs[i];
        if (x == NULL || !is_half(x->dtype))
            continue;
        if (*out != KELP_DTYPE_INVALID && *out != x->dtype)
            return kelp_ops_bad_shapes(args, args->inputs[0], x, "the types differ");
        *out = x->dtype;
    }
    return NULL;
}

static kelp_status *plan_inputs(kelp_op_args *args, kelp_widened *w) {
    for (int32_t i = 0; i < args->input_count; i++) {
        const kelp_tensor *x = args->inputs[i];
        w->inputs[i] = x;
        if (x == NULL || !is_half(x->dtype))
            continue;
        KELP_TRY(kelp_ops_scratch(args, kelp_tensor_elements(x), sizeof(float), &w->in_wide[i]));
        KELP_TRY(kelp_tensor_init(&w->in[i], KELP_F32, x->rank, x->shape, NULL));
        w->inputs[i] = &w->in[i];
    }
    return NULL;
}

static kelp_status *plan_outputs(kelp_op_args *args, kelp_widened *w, kelp_dtype dtype) {
    for (int32_t i = 0; i < args->output_count; i++) {
        const kelp_tensor *y = w->outputs[i];
        if (args->outputs[i] == NULL)
            continue;
        kelp_dtype type = y->dtype == KELP_F32 ? dtype : y->dtype;
        KELP_TRY(kelp_ops_set(args, i, type, y->rank, y->shape));
        if (y->dtype == KELP_F32)
            KELP_TRY(
                kelp_ops_scratch(args, kelp_tensor_elements(y), sizeof(float), &w->out_wide[i]));
    }
    return NULL;
}

kelp_status *kelp_widened_reshape(const void *state, kelp_op_args *args, kelp_op_phase inner,
                                  size_t plan_bytes) {
    kelp_widened *w = frame_of(args, plan_bytes);
    kelp_dtype dtype;
    KELP_TRY(narrow_type(args, &dtype));
    if (dtype == KELP_DTYPE_INVALID)
        return inner(state, args);
    if (args->input_count > KELP_WIDENED_INPUTS || args->output_count > KELP_WIDENED_OUTPUTS)
        return kelp_ops_bad_type(args, dtype);
    w->used = true;
    KELP_TRY(plan_inputs(args, w));
    for (int32_t i = 0; i < args->output_count; i++)
        w->outputs[i] = args->outputs[i] != NULL ? &w->out[i] : NULL;
    kelp_op_args wide = *args;
    wide.inputs = w->inputs;
    wide.outputs = w->outputs;
    wide.scratch_bytes = 0;
    KELP_TRY(inner(state, &wide));
    KELP_TRY(kelp_ops_scratch(args, 1, wide.scratch_bytes, &w->scratch));
    args->deferred = wide.deferred;
    return args->deferred ? NULL : plan_outputs(args, w, dtype);
}

kelp_status *kelp_widened_invoke(const void *state, kelp_op_args *args, kelp_op_phase inner,
                                 size_t plan_bytes) {
    kelp_widened *w = frame_of(args, plan_bytes);
    if (!w->used)
        return inner(state, args);
    for (int32_t i = 0; i < args->input_count; i++) {
        const kelp_tensor *x = args->inputs[i];
        if (x == NULL || !is_half(x->dtype)) {
            w->inputs[i] = x;
            continue;
        }
        w->in[i].data = (char *)args->scratch + w->in_wide[i];
        kelp_ops_widen(args->env, x, w->in[i].data);
    }
    for (int32_t i = 0; i < args->output_count; i++)
        if (args->outputs[i] != NULL)
            w->out[i].data = w->out[i].dtype == KELP_F32 ? (char *)args->scratch + w->out_wide[i]
                                                         : args->outputs[i]->data;
    kelp_op_args wide = *args;
    wide.inputs = w->inputs;
    wide.outputs = w->outputs;
    wide.scratch = (char *)args->scratch + w->scratch;
    KELP_TRY(inner(state, &wide));
    for (int32_t i = 0; i < args->output_count; i++)
        if (args->outputs[i] != NULL && w->out[i].dtype == KELP_F32)
            kelp_ops_narrow(args->env, w->out[i].data, args->outputs[i]);
    return NULL;
}
