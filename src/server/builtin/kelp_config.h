/* SPDX-License-Identifier: Apache-2.0 */
/* What the built-in `kelp` backend takes from a model's configuration, and what it adds to one that
 * says too little. */
#ifndef KELP_SERVER_BUILTIN_KELP_CONFIG_H_
#define KELP_SERVER_BUILTIN_KELP_CONFIG_H_

#include "base/json.h"

#include <kelp/compute.h>
#include <triton/core/tritonbackend.h>

typedef struct kelp_builtin_config {
    const char *model_name;
    const char *file_name; /* inside the version's folder */
    const char *provider;
    const char *kernel;    /* the text of provider "kernels"; NULL: the model is a file */
    int threads;           /* 0: those of the backend */
    const char *providers; /* of parts of the model; NULL: Kelp runs all of it */
    kelp_precision precision;
    int64_t max_batch_size;
    bool decoupled;
    const kelp_json *tree;
} kelp_builtin_config;

/* Everything lives in the arena. */
kelp_status *kelp_builtin_config_read(TRITONBACKEND_Model *model, kelp_arena *arena,
                                      kelp_builtin_config *out) KELP_MUST_USE;

/* The setting `name` of the backend (`--backend-config kelp,NAME=VALUE`), or NULL. */
kelp_status *kelp_builtin_setting(TRITONBACKEND_Backend *backend, kelp_arena *arena,
                                  const char *name, const char **out) KELP_MUST_USE;

/* Holds the configuration against the model's inputs and outputs: what is missing is filled in
 * (when the server asks for completion), what contradicts is an error that names model, tensor and
 * field. */
kelp_status *kelp_builtin_config_complete(TRITONBACKEND_Model *model, kelp_arena *arena,
                                          kelp_builtin_config *config,
                                          const kelp_compute_metadata *metadata) KELP_MUST_USE;

#endif
