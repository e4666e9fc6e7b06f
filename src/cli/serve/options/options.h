/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve`. Each group has its table, defaults and conversion in a file of its own
 * in this directory. Strings point into argv. */
#ifndef KELP_CLI_SERVE_OPTIONS_OPTIONS_H_
#define KELP_CLI_SERVE_OPTIONS_OPTIONS_H_

#include "cli/serve/options/access.h"
#include "cli/serve/options/backends.h"
#include "cli/serve/options/caches.h"
#include "cli/serve/options/grpc.h"
#include "cli/serve/options/http.h"
#include "cli/serve/options/log.h"
#include "cli/serve/options/metrics.h"
#include "cli/serve/options/models.h"
#include "cli/serve/options/server.h"
#include "cli/serve/options/tls.h"
#include "cli/serve/options/trace.h"

typedef struct kelp_serve_options {
    kelp_arg_list positionals; /* first */
    kelp_serve_models models;
    kelp_serve_backends backends;
    kelp_serve_caches caches;
    kelp_serve_server server;
    kelp_serve_http http;
    kelp_serve_access access;
    kelp_serve_grpc grpc;
    kelp_serve_tls tls;
    kelp_serve_metrics metrics;
    kelp_serve_log log;
    kelp_serve_trace trace;
    char *with_repository; /* temporary repository of the models that arguments name, or NULL */
} kelp_serve_options;

/* The tables of all groups, for an initializer. */
#define KELP_SERVE_TABLES                                                           \
    &kelp_serve_models_table, &kelp_serve_backends_table, &kelp_serve_caches_table, \
        &kelp_serve_server_table, &kelp_serve_http_table, &kelp_serve_access_table, \
        &kelp_serve_grpc_table, &kelp_serve_tls_table, &kelp_serve_metrics_table,   \
        &kelp_serve_log_table, &kelp_serve_trace_table
/* Initializes a zeroed kelp_serve_options. */
void kelp_serve_defaults(void *options);

/* Returns true if failures of models are written to standard error. */
bool kelp_serve_logs_errors(const kelp_serve_options *o);

/* Converts an error of Triton's API to a status. NULL for NULL. */
kelp_status *kelp_serve_status(TRITONSERVER_Error *take_error, const char *doing) KELP_MUST_USE;
/* Does the same for a function that sets an option of the server. */
kelp_status *kelp_serve_set(TRITONSERVER_Error *take_error) KELP_MUST_USE;

#endif
