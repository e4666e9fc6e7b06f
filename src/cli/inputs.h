/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of a model from the words of a command line: "x=@file.npy", "y=1,2,3", shapes "x=1x8x8",
 * or made up. */
#ifndef KELP_CLI_INPUTS_H_
#define KELP_CLI_INPUTS_H_

#include "cli/args.h"
#include "cli/npy.h"

#include <kelp/engine.h>

typedef enum kelp_fill {
    KELP_FILL_NONE, /* an input that was not given is an error */
    KELP_FILL_ZERO,
    KELP_FILL_RANDOM /* floats in [0, 1), integers and booleans 0 or 1; the same each time */
} kelp_fill;

typedef struct kelp_inputs {
    kelp_array *arrays; /* in the engine's order */
    size_t count;
} kelp_inputs;

/* Makes all inputs of `engine`. Extents that the model leaves open are 1 where `shapes` does not
 * say otherwise. INVALID_ARGUMENT names the word that is wrong and, for an unknown input, those
 * that there are. */
kelp_status *kelp_inputs_init(kelp_inputs *out, const kelp_engine *engine,
                              const kelp_arg_list *values, const kelp_arg_list *shapes,
                              kelp_fill fill) KELP_MUST_USE;
void kelp_inputs_deinit(kelp_inputs *inputs);
/* Binds all of them; they stay with the caller. */
kelp_status *kelp_inputs_bind(const kelp_inputs *inputs, kelp_context *context) KELP_MUST_USE;

#endif
