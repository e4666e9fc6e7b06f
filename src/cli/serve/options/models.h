/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve` for the model repositories and their models. */
#ifndef KELP_CLI_SERVE_OPTIONS_MODELS_H_
#define KELP_CLI_SERVE_OPTIONS_MODELS_H_

#include "cli/args.h"

#include <triton/core/tritonserver.h>

typedef struct kelp_serve_models {
    kelp_arg_list repositories;
    kelp_arg_list files; /* from positional arguments: single models */
    const char *cache;   /* of repositories that are addresses; NULL: a temporary one */
    bool registry_plain_http;
    const char *control_mode;
    kelp_arg_list load_models;
    int64_t poll_secs;
    bool strict_model_config;
    bool disable_auto_complete;
    const char *config_name;
    int64_t load_threads;
    int64_t load_retries;
    bool namespacing;
    bool allow_uploaded_code;
} kelp_serve_models;

extern const kelp_arg_table kelp_serve_models_table;
void kelp_serve_models_defaults(kelp_serve_models *o);
/* Sets the options of the server. INVALID_ARGUMENT names the option. */
kelp_status *kelp_serve_models_apply(const kelp_serve_models *o,
                                     TRITONSERVER_ServerOptions *options) KELP_MUST_USE;

#endif
