/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a model of the `kelp` backend, and the completion of its configuration. */
#ifndef KELP_BACKENDS_KELP_CONFIG_H_
#define KELP_BACKENDS_KELP_CONFIG_H_

#include <kelp/backend.h>
#include <kelp/compute.h>

typedef struct kelp_model_settings {
    const char *file_name; /* in the directory of the version */
    const char *provider;
    char *kernel;          /* artifact for provider "kernels", from malloc; NULL: use the file */
    int64_t threads;       /* 0: use the backend's threads */
    const char *providers; /* for subgraphs; NULL: the default providers */
    kelp_precision precision;
    bool map_files; /* the files are only replaced, never modified in place */
} kelp_model_settings;

/* Returns `sequence_batching` of the model, or NULL. */
const kelp_backend_value *kelp_model_sequence(const kelp_backend_model *model);
/* Returns true if an instance of the model executes one sequence at a time, whose state the server
 * does not keep: a new sequence resets the instance's model. */
bool kelp_model_resets(const kelp_backend_model *model);

/* Reads parameters of the model, and settings of the backend in place of missing ones. Texts are
 * borrowed from the model, except for `kernel`, which the caller frees, even on failure. */
kelp_status *kelp_model_settings_read(const kelp_backend_model *model,
                                      kelp_model_settings *out) KELP_MUST_USE;

/* Checks the configuration against the model's inputs and outputs, and completes missing parts if
 * the server requests it. Errors contain model, tensor and field. */
kelp_status *kelp_model_complete(kelp_backend_model *model,
                                 const kelp_compute_metadata *metadata) KELP_MUST_USE;

#endif
