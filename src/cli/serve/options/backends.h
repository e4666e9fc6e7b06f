/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve` for backends, model instances and the rate limiter. */
#ifndef KELP_CLI_SERVE_OPTIONS_BACKENDS_H_
#define KELP_CLI_SERVE_OPTIONS_BACKENDS_H_

#include "cli/args.h"

#include <triton/core/tritonserver.h>

typedef struct kelp_serve_backends {
    const char *backend_directory;
    kelp_arg_list backend_config;
    const char *onnx_engine;
    bool auto_batch;
    kelp_arg_list host_policies;
    const char *gpu_fallback;
    const char *rate_limit;
    kelp_arg_list rate_resources;
    const char *precision, *providers, *plugin;
    kelp_arg_list with_backends;
} kelp_serve_backends;

extern const kelp_arg_table kelp_serve_backends_table;
void kelp_serve_backends_defaults(kelp_serve_backends *o);
/* Sets the options of the server. INVALID_ARGUMENT names the option. */
kelp_status *kelp_serve_backends_apply(const kelp_serve_backends *o,
                                       TRITONSERVER_ServerOptions *options) KELP_MUST_USE;

#endif
