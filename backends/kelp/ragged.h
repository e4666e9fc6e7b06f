/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models with ragged batches: inputs with `allow_ragged_batch` are concatenated to one dimension,
 * `batch_input` adds inputs that describe the requests of the batch, and `batch_output` splits
 * outputs by the shapes of an input. All requests of a batch run as one inference.
 */
#ifndef KELP_BACKENDS_KELP_RAGGED_H_
#define KELP_BACKENDS_KELP_RAGGED_H_

#include <kelp/backend.h>
#include <kelp/compute.h>

/* The source of an input of the model. */
typedef struct kelp_ragged_input {
    bool flat;          /* concatenated to one dimension, not along the batch dimension */
    size_t batch_input; /* the number of a `batch_input`, or SIZE_MAX: the requests */
} kelp_ragged_input;

/* The batches of a model. Immutable; shared by its instances. */
typedef struct kelp_ragged {
    kelp_ragged_input *inputs; /* by input of the model; NULL: the model has no ragged batches */
    const char **like; /* by output of the model: the input whose shape each part has, or NULL */
} kelp_ragged;

/* Returns true if the model's configuration has ragged inputs, `batch_input` or `batch_output`. */
bool kelp_ragged_is_configured(const kelp_backend_model *model);
/* Returns true if the dims of an input or output of the configuration are those of one request, and
 * not of the model. */
bool kelp_ragged_has_own_shape(const kelp_backend_model *model, const kelp_backend_value *tensor,
                               const char *name);
/* Reads the configuration, if it has any of these. INVALID_ARGUMENT if a name is not in the model,
 * or an input has another type. On failure, the caller still deinitializes `out`. */
kelp_status *kelp_ragged_init(kelp_ragged *out, const kelp_backend_model *model,
                              const kelp_compute_metadata *metadata) KELP_MUST_USE;
void kelp_ragged_deinit(kelp_ragged *ragged);

/* Runs the requests as one inference. `inputs` and `outputs` have an entry for each input and
 * output of the model. Sets the outputs, in memory of the model. */
kelp_status *kelp_ragged_infer(const kelp_ragged *ragged, kelp_compute_model *model,
                               kelp_backend_request **requests, size_t count, kelp_tensor *inputs,
                               kelp_tensor *outputs) KELP_MUST_USE;
/* Adds the outputs to the responses of the requests. */
kelp_status *kelp_ragged_respond(const kelp_ragged *ragged, const kelp_compute_metadata *metadata,
                                 kelp_backend_request **requests, size_t count,
                                 const kelp_tensor *outputs) KELP_MUST_USE;

#endif
