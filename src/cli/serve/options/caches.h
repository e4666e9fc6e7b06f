/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve` for response caches and repository agents. */
#ifndef KELP_CLI_SERVE_OPTIONS_CACHES_H_
#define KELP_CLI_SERVE_OPTIONS_CACHES_H_

#include "cli/args.h"

#include <triton/core/tritonserver.h>

typedef struct kelp_serve_caches {
    kelp_arg_list cache_config;
    int64_t response_cache_bytes; /* of the local cache; -1: not given */
    const char *cache_directory;
    const char *repoagent_directory;
} kelp_serve_caches;

extern const kelp_arg_table kelp_serve_caches_table;
void kelp_serve_caches_defaults(kelp_serve_caches *o);
/* Sets the options of the server. INVALID_ARGUMENT names the option. */
kelp_status *kelp_serve_caches_apply(const kelp_serve_caches *o,
                                     TRITONSERVER_ServerOptions *options) KELP_MUST_USE;

#endif
