/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/options/grpc.h"

#include "base/checked.h"
#include "cli/serve/options/options.h"

#include <stddef.h>

#define MS_NS UINT64_C(1000000)

#define AT(member) offsetof(kelp_serve_options, grpc.member)
static const kelp_arg_spec specs[] = {
    {.group = "gRPC",
     .name = "allow-grpc",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(allow_grpc),
     .help = "serve gRPC, on the HTTP port and on --grpc-port (true)"},
    {.name = "grpc-address",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(address),
     .value = "ADDRESS",
     .help = "address of --grpc-port, or unix:/path (that of --http-address)"},
    {.name = "grpc-port",
     .kind = KELP_ARG_I64,
     .offset = AT(port),
     .value = "PORT",
     .min = 0,
     .max = 65535,
     .help = "another port for gRPC, 0 for a free one (none; without HTTP 8001)"},
    {.name = "reuse-grpc-port",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(reuse_port),
     .help = "allow several servers on --grpc-port (false)"},
    {.name = "grpc-infer-response-compression-level",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(compression),
     .value = "LEVEL",
     .choices = "none|low|medium|high",
     .help = "compress responses for clients that accept it, at the same level for low to high "
             "(none)"},
    {.name = "grpc-use-ssl",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(use_ssl),
     .help = "TLS on --grpc-port, with --grpc-server-cert and --grpc-server-key (false)"},
    {.name = "grpc-use-ssl-mutual",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(use_ssl_mutual),
     .help = "TLS on --grpc-port, and certificates of clients, with --grpc-root-cert (false)"},
    {.name = "grpc-server-cert",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(server_cert),
     .value = "FILE",
     .choices = "@file",
     .help = "PEM file of the server's certificate and its intermediates"},
    {.name = "grpc-server-key",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(server_key),
     .value = "FILE",
     .choices = "@file",
     .help = "PEM file of the certificate's private key, without a passphrase"},
    {.name = "grpc-root-cert",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(root_cert),
     .value = "FILE",
     .choices = "@file",
     .help = "PEM file of the authorities that sign certificates of clients"},
    {.name = "grpc-keepalive-time",
     .kind = KELP_ARG_I64,
     .offset = AT(keepalive_time_ms),
     .value = "MS",
     .min = 1,
     .max = INT32_MAX,
     .help = "time without a byte from the client before the server sends PING (7200000)"},
    {.name = "grpc-keepalive-timeout",
     .kind = KELP_ARG_I64,
     .offset = AT(keepalive_timeout_ms),
     .value = "MS",
     .min = 1,
     .max = INT32_MAX,
     .help = "time for a response to PING, after which the connection is closed (20000)"},
    {.name = "grpc-keepalive-permit-without-calls",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(keepalive_permit_without_calls),
     .help = "send PING also without calls (false)"},
    {.name = "grpc-http2-max-pings-without-data",
     .kind = KELP_ARG_I64,
     .offset = AT(max_pings_without_data),
     .value = "N",
     .min = 0,
     .max = INT32_MAX,
     .help = "PINGs of the server between two messages that it sends, 0 for any number (2)"},
    {.name = "grpc-http2-min-recv-ping-interval-without-data",
     .kind = KELP_ARG_I64,
     .offset = AT(min_recv_ping_interval_ms),
     .value = "MS",
     .min = 0,
     .max = INT32_MAX,
     .help = "minimum time between PINGs of a client that receives no message (300000)"},
    {.name = "grpc-http2-max-ping-strikes",
     .kind = KELP_ARG_I64,
     .offset = AT(max_ping_strikes),
     .value = "N",
     .min = 0,
     .max = INT32_MAX,
     .help = "PINGs below the minimum time before the connection is closed, 0 for any number (2)"},
    {.name = "grpc-max-connection-age",
     .kind = KELP_ARG_I64,
     .offset = AT(max_connection_age_ms),
     .value = "MS",
     .min = 0,
     .max = INT32_MAX,
     .help = "time after which a connection accepts no further calls, 0 for none (0)"},
    {.name = "grpc-max-connection-age-grace",
     .kind = KELP_ARG_I64,
     .offset = AT(max_connection_age_grace_ms),
     .value = "MS",
     .min = 0,
     .max = INT32_MAX,
     .help = "time for the calls of such a connection to end, 0 for any time (0)"},
};
#undef AT

const kelp_arg_table kelp_serve_grpc_table = {specs, KELP_COUNT(specs)};

void kelp_serve_grpc_defaults(kelp_serve_grpc *o) {
    o->allow_grpc = true;
    o->port = -1;
    o->compression = "none";
    const kelp_http_keepalive keepalive = kelp_http_keepalive_default();
    o->keepalive_time_ms = (int64_t)(keepalive.time_ns / MS_NS);
    o->keepalive_timeout_ms = (int64_t)(keepalive.timeout_ns / MS_NS);
    o->max_pings_without_data = keepalive.max_pings_without_data;
    o->min_recv_ping_interval_ms = (int64_t)(keepalive.min_ping_interval_ns / MS_NS);
    o->max_ping_strikes = keepalive.max_ping_strikes;
}

static uint64_t limit_ns(int64_t value_ms) {
    return value_ms > 0 ? (uint64_t)value_ms * MS_NS : KELP_HTTP_NEVER_NS;
}

kelp_http_keepalive kelp_serve_grpc_keepalive(const kelp_serve_grpc *o) {
    return (kelp_http_keepalive){
        .time_ns = (uint64_t)o->keepalive_time_ms * MS_NS,
        .timeout_ns = (uint64_t)o->keepalive_timeout_ms * MS_NS,
        .without_requests = o->keepalive_permit_without_calls,
        .max_pings_without_data = (uint32_t)o->max_pings_without_data,
        .min_ping_interval_ns = (uint64_t)o->min_recv_ping_interval_ms * MS_NS,
        .max_ping_strikes = (uint32_t)o->max_ping_strikes,
        .max_age_ns = limit_ns(o->max_connection_age_ms),
        .max_age_grace_ns = limit_ns(o->max_connection_age_grace_ms),
    };
}

kelp_status *kelp_serve_grpc_tls(const kelp_serve_grpc *o, kelp_tls_options *out) {
    *out = (kelp_tls_options){0};
    if (!o->use_ssl && !o->use_ssl_mutual)
        return NULL;
    const char *option = o->use_ssl ? "--grpc-use-ssl" : "--grpc-use-ssl-mutual";
    if (o->server_cert == NULL || o->server_key == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '%s' requires '%s'", option,
                          o->server_cert == NULL ? "--grpc-server-cert" : "--grpc-server-key");
    if (o->use_ssl_mutual && o->root_cert == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--grpc-use-ssl-mutual' requires '--grpc-root-cert'");
    if (o->port < 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '%s' requires '--grpc-port'", option);
    *out = (kelp_tls_options){.cert_path = o->server_cert, .key_path = o->server_key};
    if (o->use_ssl_mutual) {
        out->ca_path = o->root_cert;
        out->client_auth = KELP_TLS_CLIENT_AUTH_REQUIRED;
    }
    return NULL;
}
