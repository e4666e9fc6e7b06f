/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/compute_inline.h: the life cycle of kelp/compute.h for a model known at compile time.
 *
 * A macro generates static inline functions around the author's own. They need no function table,
 * heap, library or thread, which suits firmware and inner loops. Inputs and outputs are any two C
 * types. Errors are codes (kelp_code); the caller adds messages.
 *
 *     typedef struct mean { float sum; } mean;
 *     static inline kelp_code mean_step(mean *self, const float *input, float *output) { … }
 *     static const kelp_inline_limits mean_limits = {.max_batch = 8};
 *     KELP_COMPUTE_INLINE(mean, mean, float, float, mean_limits,
 *                         kelp_inline_nothing, mean_step, kelp_inline_nothing, mean_reset)
 *
 * defines mean_init, mean_infer_one, mean_infer_batch, mean_drain and mean_reset_model. The caller
 * owns the model. A model is used by one thread at a time.
 *
 * Source: traits of limen-core 0.1, which also have no dynamic dispatch.
 */
#ifndef KELP_COMPUTE_INLINE_H_
#define KELP_COMPUTE_INLINE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kelp/status.h>

/* Limits of a model; 0 means unlimited. The compiler drops checks of constant zeros. */
typedef struct kelp_inline_limits {
    size_t max_batch;        /* maximum number of items per call */
    size_t max_input_bytes;  /* maximum size of an input */
    size_t max_output_bytes; /* maximum size of an output */
} kelp_inline_limits;

/* Behaviour of a batch after a failed item. */
typedef enum kelp_inline_mode {
    KELP_INLINE_STOP_AT_FIRST = 0, /* stops and returns its code; earlier outputs are valid */
    KELP_INLINE_EACH = 1           /* runs all items and returns KELP_OK */
} kelp_inline_mode;

/* Stands for an init, drain or reset function that does nothing. */
#define kelp_inline_nothing(model) ((void)(model), KELP_OK)

/* Defines the functions of a model.
 *
 *   prefix                          beginning of the functions' names
 *   Model, Input, Output            types
 *   limits                          a constant kelp_inline_limits
 *   init_fn, drain_fn, reset_fn     kelp_code (Model *)
 *   step_fn                         kelp_code (Model *, const Input *, Output *): runs one item
 *
 * prefix_infer_one fails with KELP_OUT_OF_RANGE if a limit in bytes is exceeded. prefix_infer_batch
 * fails, before running any item, with KELP_INVALID_ARGUMENT if the counts differ and
 * KELP_OUT_OF_RANGE if they exceed max_batch. `codes` (may be NULL) receives the code of each item
 * that ran; `*out_done` (may be NULL) the number of items that succeeded. */
#define KELP_COMPUTE_INLINE(prefix, Model, Input, Output, limits, init_fn, step_fn, drain_fn,      \
                            reset_fn)                                                              \
    static inline kelp_code prefix##_init(Model *model) {                                          \
        return init_fn(model);                                                                     \
    }                                                                                              \
    static inline kelp_code prefix##_infer_one(Model *model, const Input *input, Output *output) { \
        if (((limits).max_input_bytes != 0 && sizeof(Input) > (limits).max_input_bytes) ||         \
            ((limits).max_output_bytes != 0 && sizeof(Output) > (limits).max_output_bytes))        \
            return KELP_OUT_OF_RANGE;                                                              \
        return step_fn(model, input, output);                                                      \
    }                                                                                              \
    static inline kelp_code prefix##_infer_batch(                                                  \
        Model *model, const Input *inputs, size_t input_count, Output *outputs,                    \
        size_t output_count, kelp_inline_mode mode, kelp_code *codes, size_t *out_done) {          \
        size_t done = 0;                                                                           \
        kelp_code result = KELP_OK;                                                                \
        if (input_count != output_count)                                                           \
            result = KELP_INVALID_ARGUMENT;                                                        \
        else if ((limits).max_batch != 0 && input_count > (limits).max_batch)                      \
            result = KELP_OUT_OF_RANGE;                                                            \
        for (size_t i = 0; result == KELP_OK && i < input_count; i++) {                            \
            kelp_code code = prefix##_infer_one(model, &inputs[i], &outputs[i]);                   \
            if (codes != NULL)                                                                     \
                codes[i] = code;                                                                   \
            done += code == KELP_OK;                                                               \
            if (code != KELP_OK && mode == KELP_INLINE_STOP_AT_FIRST)                              \
                result = code;                                                                     \
        }                                                                                          \
        if (out_done != NULL)                                                                      \
            *out_done = done;                                                                      \
        return result;                                                                             \
    }                                                                                              \
    static inline kelp_code prefix##_drain(Model *model) {                                         \
        return drain_fn(model);                                                                    \
    }                                                                                              \
    static inline kelp_code prefix##_reset_model(Model *model) {                                   \
        return reset_fn(model);                                                                    \
    }                                                                                              \
    typedef kelp_code prefix##_inline_ends_with_a_semicolon

#endif
