/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of a model from a command line: "x=@file.npy", "x=@photo.jpg", "@all.npz", "y=1,2,3",
 * shapes "x=1x8x8", or random values. */
#ifndef KELP_CLI_INPUTS_H_
#define KELP_CLI_INPUTS_H_

#include "cli/args.h"
#include "cli/image.h"
#include "cli/npy.h"

#include <kelp/engine.h>

typedef enum kelp_input_fill {
    KELP_FILL_NONE, /* a missing input is an error */
    KELP_FILL_ZERO,
    KELP_FILL_RANDOM /* floats in [0, 1), integers and booleans 0 or 1; the same in every run */
} kelp_input_fill;

typedef struct kelp_inputs {
    kelp_array *arrays; /* in the order of the model */
    size_t count;
} kelp_inputs;

/* Creates all inputs of a model, which are described by `infos`. Dynamic dimensions are 1 unless
 * `shapes` specifies them. INVALID_ARGUMENT quotes the invalid word, and lists the inputs if the
 * name is unknown. */
kelp_status *kelp_inputs_init(kelp_inputs *out, const kelp_io_info *infos, size_t count,
                              const kelp_arg_list *values, const kelp_arg_list *shapes,
                              const kelp_image_options *image, kelp_input_fill fill) KELP_MUST_USE;
void kelp_inputs_deinit(kelp_inputs *inputs);
/* Binds all inputs. The caller keeps ownership. */
kelp_status *kelp_inputs_bind(const kelp_inputs *inputs, kelp_context *context) KELP_MUST_USE;

#endif
