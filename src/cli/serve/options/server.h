/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve` for the server process. */
#ifndef KELP_CLI_SERVE_OPTIONS_SERVER_H_
#define KELP_CLI_SERVE_OPTIONS_SERVER_H_

#include "cli/args.h"

#include <triton/core/tritonserver.h>

/* Without --drain-secs: the time without a new request that ends a drain, and the longest drain. */
#define KELP_SERVE_QUIET_MS 250
#define KELP_SERVE_MAX_DRAIN_SECS 5

typedef struct kelp_serve_server {
    const char *id;
    bool exit_on_error;
    int64_t exit_timeout_secs;
    int64_t drain_secs; /* -1: until there are no requests */
    bool strict_readiness;
    int64_t max_connections, max_requests;
    int64_t max_client_share;     /* percent of both for one address */
    const char *allow_client_shm; /* "auto", "true" or "false" */
} kelp_serve_server;

extern const kelp_arg_table kelp_serve_server_table;
void kelp_serve_server_defaults(kelp_serve_server *o);
/* Sets the options of the server. INVALID_ARGUMENT names the option. */
kelp_status *kelp_serve_server_apply(const kelp_serve_server *o,
                                     TRITONSERVER_ServerOptions *options) KELP_MUST_USE;

#endif
