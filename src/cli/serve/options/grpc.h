/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve` for the gRPC front-end. */
#ifndef KELP_CLI_SERVE_OPTIONS_GRPC_H_
#define KELP_CLI_SERVE_OPTIONS_GRPC_H_

#include "cli/args.h"
#include "frontends/http/keepalive.h"
#include "frontends/tls/context.h"

#include <triton/core/tritonserver.h>

typedef struct kelp_serve_grpc {
    bool allow_grpc;
    const char *address; /* NULL: that of HTTP */
    int64_t port;        /* -1: none besides the port of HTTP */
    bool reuse_port;
    const char *compression;
    bool use_ssl, use_ssl_mutual;
    const char *server_cert, *server_key, *root_cert;
    int64_t keepalive_time_ms, keepalive_timeout_ms;
    bool keepalive_permit_without_calls;
    int64_t max_pings_without_data, min_recv_ping_interval_ms, max_ping_strikes;
    int64_t max_connection_age_ms, max_connection_age_grace_ms; /* 0: unlimited */
} kelp_serve_grpc;

extern const kelp_arg_table kelp_serve_grpc_table;
/* Converts the options of TLS; without TLS, out->cert_path is NULL. INVALID_ARGUMENT names an
 * option that is missing. */
kelp_status *kelp_serve_grpc_tls(const kelp_serve_grpc *o, kelp_tls_options *out) KELP_MUST_USE;
/* Returns the keepalive of the options. */
kelp_http_keepalive kelp_serve_grpc_keepalive(const kelp_serve_grpc *o);
/* Sets the defaults that are not zero. */
void kelp_serve_grpc_defaults(kelp_serve_grpc *o);

#endif
