/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/compute_inline.h: kelp/compute.h's life cycle where the model is known at compile time.
 *
 * The calls are ordinary static inline functions around the author's own, with no table between
 * them, no heap, no library to link and no thread: for firmware as well as for the innermost loop
 * of an application. Payloads are any two C types. Errors are codes (kelp_code of kelp/status.h);
 * whoever calls attaches the words.
 *
 *     typedef struct mean { float sum; } mean;
 *     static inline kelp_code mean_step(mean *self, const float *input, float *output) { … }
 *     static const kelp_inline_limits mean_limits = {.max_batch = 8};
 *     KELP_COMPUTE_INLINE(mean, mean, float, float, mean_limits,
 *                         kelp_inline_nothing, mean_step, kelp_inline_nothing, mean_reset)
 *
 * makes mean_init, mean_infer_one, mean_infer_batch, mean_drain and mean_reset_model. Functions of
 * the author return KELP_OK or another kelp_code. The state lives where the caller puts it; one
 * thread at a time. Source: the traits of limen-core 0.1, which have no dynamic dispatch either.
 */
#ifndef KELP_COMPUTE_INLINE_H_
#define KELP_COMPUTE_INLINE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kelp/status.h>

/* What a model takes; zeroed fields are no limit. The compiler drops checks of constant zeros. */
typedef struct kelp_inline_limits {
    size_t max_batch;        /* items a call */
    size_t max_input_bytes;  /* of an input payload */
    size_t max_output_bytes; /* of an output payload */
} kelp_inline_limits;

typedef enum kelp_inline_mode {
    KELP_INLINE_STOP_AT_FIRST = 0, /* the first error ends the call; earlier outputs stay written */
    KELP_INLINE_EACH = 1           /* all items run; the call's result is KELP_OK */
} kelp_inline_mode;

/* Where an author has nothing to do in init, drain or reset. */
#define kelp_inline_nothing(model) ((void)(model), KELP_OK)

/* `prefix`: what the functions' names begin with. `Model`, `Input`, `Output`: types. `limits`: a
 * constant kelp_inline_limits. `init_fn`, `drain_fn`, `reset_fn`: kelp_code (Model *). `step_fn`:
 * kelp_code (Model *, const Input *, Output *).
 *
 * prefix_infer_batch: `codes` (may be NULL) receives the result of each item that ran; *out_done
 * (may be NULL) how many succeeded. KELP_INVALID_ARGUMENT when the counts differ, KELP_OUT_OF_RANGE
 * above max_batch: then nothing has run. */
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
