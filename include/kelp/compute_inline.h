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
 *     static const kelp_inline_info mean_info = {.max_batch = 8};
 *     KELP_COMPUTE_INLINE(mean, mean, float, float, mean_info, kelp_inline_no_bytes,
 *                         kelp_inline_nothing, mean_step, kelp_inline_nothing, mean_reset);
 *
 * defines mean_capabilities, mean_metadata, mean_load, mean_init, mean_infer_one, mean_infer_batch,
 * mean_drain and mean_reset_model. The caller owns the model. A model is used by one thread at a
 * time.
 *
 * Source: traits of limen-core 0.1, which also have no dynamic dispatch.
 */
#ifndef KELP_COMPUTE_INLINE_H_
#define KELP_COMPUTE_INLINE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kelp/status.h>
#include <kelp/tensor.h>

/* Description of a model by its author. Fields that are 0 mean unlimited, host memory, or nothing.
 * The compiler drops checks of constant zeros. */
typedef struct kelp_inline_info {
    size_t max_batch;                   /* maximum number of items per call */
    size_t max_input_bytes;             /* maximum size of an input */
    size_t max_output_bytes;            /* maximum size of an output */
    kelp_memory_class preferred_input;  /* preferred memory of inputs */
    kelp_memory_class preferred_output; /* preferred memory of outputs */
    bool device_streams;                /* work may be in flight when infer returns; drain waits */
    uint64_t dtype_mask;                /* supported element types; the author defines the bits */
} kelp_inline_info;

/* Capabilities of the code that runs a model, as kelp_compute_capabilities. */
typedef struct kelp_inline_capabilities {
    bool device_streams; /* work may be in flight when infer returns; drain waits */
    size_t max_batch;    /* maximum number of items per call; 0: unlimited */
    uint64_t dtype_mask; /* supported element types */
} kelp_inline_capabilities;

/* Description of a model, for the code that places and limits its inputs and outputs. */
typedef struct kelp_inline_metadata {
    kelp_memory_class preferred_input;  /* preferred memory of inputs */
    kelp_memory_class preferred_output; /* preferred memory of outputs */
    size_t max_input_bytes;             /* maximum size of an input; 0: unlimited */
    size_t max_output_bytes;            /* maximum size of an output; 0: unlimited */
    size_t input_bytes;                 /* size of the type Input */
    size_t output_bytes;                /* size of the type Output */
} kelp_inline_metadata;

/* Behaviour of a batch after a failed item. */
typedef enum kelp_inline_mode {
    KELP_INLINE_STOP_AT_FIRST = 0, /* stops and returns its code; earlier outputs are valid */
    KELP_INLINE_EACH = 1           /* runs all items and returns KELP_OK */
} kelp_inline_mode;

/* Stands for an init, drain or reset function that does nothing. */
#define kelp_inline_nothing(model) ((void)(model), KELP_OK)

/* Stands for a load function of a model that has no artifact. Fails with KELP_INVALID_ARGUMENT if
 * there are bytes. */
#define kelp_inline_no_bytes(model, bytes, size_bytes) \
    ((void)(model), (void)(bytes), (size_bytes) == 0 ? KELP_OK : KELP_INVALID_ARGUMENT)

/* Defines the functions of a model.
 *
 *   prefix                          beginning of the functions' names
 *   Model, Input, Output            types
 *   info                            a constant kelp_inline_info
 *   load_fn                         kelp_code (Model *, const void *bytes, size_t size_bytes)
 *   init_fn, drain_fn, reset_fn     kelp_code (Model *)
 *   step_fn                         kelp_code (Model *, const Input *, Output *): runs one item
 *
 * prefix_load loads the model from an artifact, before init. The bytes are borrowed: they stay
 * valid and unchanged as long as the model is used, for example in read-only memory. Fails with
 * KELP_INVALID_ARGUMENT, without a call of load_fn, if `bytes` is NULL and `size_bytes` is not 0.
 * prefix_infer_one fails with KELP_OUT_OF_RANGE if a limit in bytes is exceeded. prefix_infer_batch
 * fails, before running any item, with KELP_INVALID_ARGUMENT if the counts differ and
 * KELP_OUT_OF_RANGE if they exceed max_batch. `codes` (may be NULL) receives the code of each item
 * that ran; `*out_done` (may be NULL) the number of items that succeeded. */
#define KELP_COMPUTE_INLINE(prefix, Model, Input, Output, info, load_fn, init_fn, step_fn,         \
                            drain_fn, reset_fn)                                                    \
    static inline kelp_inline_capabilities prefix##_capabilities(void) {                           \
        return (kelp_inline_capabilities){(info).device_streams, (info).max_batch,                 \
                                          (info).dtype_mask};                                      \
    }                                                                                              \
    static inline kelp_inline_metadata prefix##_metadata(void) {                                   \
        return (kelp_inline_metadata){(info).preferred_input, (info).preferred_output,             \
                                      (info).max_input_bytes, (info).max_output_bytes,             \
                                      sizeof(Input),          sizeof(Output)};                     \
    }                                                                                              \
    static inline kelp_code prefix##_load(Model *model, const void *bytes, size_t size_bytes) {    \
        if (bytes == NULL && size_bytes != 0)                                                      \
            return KELP_INVALID_ARGUMENT;                                                          \
        return load_fn(model, bytes, size_bytes);                                                  \
    }                                                                                              \
    static inline kelp_code prefix##_init(Model *model) {                                          \
        return init_fn(model);                                                                     \
    }                                                                                              \
    static inline kelp_code prefix##_infer_one(Model *model, const Input *input, Output *output) { \
        if (((info).max_input_bytes != 0 && sizeof(Input) > (info).max_input_bytes) ||             \
            ((info).max_output_bytes != 0 && sizeof(Output) > (info).max_output_bytes))            \
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
        else if ((info).max_batch != 0 && input_count > (info).max_batch)                          \
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
