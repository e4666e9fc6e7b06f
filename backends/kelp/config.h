/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a model of the `kelp` backend, and the completion of its configuration. */
#ifndef KELP_BACKENDS_KELP_CONFIG_H_
#define KELP_BACKENDS_KELP_CONFIG_H_

#include <kelp/backend.h>
#include <kelp/compute.h>

typedef struct kelp_model_settings {
    const char *file_name; /* in the version's directory */
    const char *provider;
    char *kernel;          /* the model's text for provider "kernels", from malloc; NULL: a file */
    int64_t threads;       /* 0: those of the backend */
    const char *providers; /* of subgraphs; NULL: Kelp runs the whole model */
    kelp_precision precision;
} kelp_model_settings;

/* Reads parameters of the model, and settings of the backend in place of missing ones. Texts are
 * borrowed from the model, except for `kernel`, which the caller frees, also on failure. */
kelp_status *kelp_model_settings_read(const kelp_backend_model *model,
                                      kelp_model_settings *out) KELP_MUST_USE;

/* Checks the configuration against the model's inputs and outputs, and completes what is missing if
 * the server asks for it. Errors contain model, tensor and field. */
kelp_status *kelp_model_complete(kelp_backend_model *model,
                                 const kelp_compute_metadata *metadata) KELP_MUST_USE;

#endif
