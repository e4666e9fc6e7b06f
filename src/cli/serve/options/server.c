/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/options/server.h"

#include "base/checked.h"
#include "cli/serve/options/options.h"
#include "frontends/http/server.h"

#include <stddef.h>

#define AT(member) offsetof(kelp_serve_options, server.member)
static const kelp_arg_spec specs[] = {
    {.group = "Server",
     .name = "id",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(id),
     .value = "NAME",
     .help = "name of the server in its metadata"},
    {.name = "exit-on-error",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(exit_on_error),
     .help = "exit if a model does not load at startup (true); false serves the other models"},
    {.name = "exit-timeout-secs",
     .kind = KELP_ARG_I64,
     .offset = AT(exit_timeout_secs),
     .value = "N",
     .min = 0,
     .max = 86400,
     .help = "time limit for requests in flight at shutdown, in seconds (30)"},
    {.name = "drain-secs",
     .kind = KELP_ARG_I64,
     .offset = AT(drain_secs),
     .value = "N",
     .min = 0,
     .max = 86400,
     .help = "after SIGTERM, keep serving for N seconds and return 503 for readiness, so that "
             "load balancers notice (until no request has begun for 0.25 s, at most 5)"},
    {.name = "strict-readiness",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(strict_readiness),
     .help = "the server is ready only if all models are ready (true)"},
    {.name = "max-connections",
     .kind = KELP_ARG_I64,
     .offset = AT(max_connections),
     .value = "N",
     .min = 1,
     .max = 1000000,
     .help = "connections of clients; further ones are closed (16384)"},
    {.name = "max-requests",
     .kind = KELP_ARG_I64,
     .offset = AT(max_requests),
     .value = "N",
     .min = 1,
     .max = 10000000,
     .help = "requests in flight, in equal parts per event loop; further ones get 503 (65536)"},
    {.name = "max-client-share",
     .kind = KELP_ARG_I64,
     .offset = AT(max_client_share),
     .value = "PERCENT",
     .min = 1,
     .max = 100,
     .help = "share of --max-connections and --max-requests that one client address may use; 100 "
             "behind a proxy (75)"},
    {.name = "allow-client-shm",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(allow_client_shm),
     .value = "BOOL",
     .choices = "auto|true|false",
     .help = "let clients register shared memory (auto: if only local clients can connect)"},
};
#undef AT

const kelp_arg_table kelp_serve_server_table = {specs, KELP_COUNT(specs)};

void kelp_serve_server_defaults(kelp_serve_server *o) {
    o->exit_on_error = true;
    o->allow_client_shm = "auto";
    o->exit_timeout_secs = 30;
    o->drain_secs = -1;
    o->max_connections = KELP_HTTP_MAX_CONNECTIONS;
    o->max_requests = KELP_HTTP_MAX_REQUESTS;
    o->max_client_share = KELP_HTTP_MAX_CLIENT_SHARE;
    o->strict_readiness = true;
}

kelp_status *kelp_serve_server_apply(const kelp_serve_server *o,
                                     TRITONSERVER_ServerOptions *options) {
    if (o->id != NULL)
        KELP_TRY(kelp_serve_set(TRITONSERVER_ServerOptionsSetServerId(options, o->id)));
    KELP_TRY(kelp_serve_set(TRITONSERVER_ServerOptionsSetExitOnError(options, o->exit_on_error)));
    KELP_TRY(kelp_serve_set(
        TRITONSERVER_ServerOptionsSetExitTimeout(options, (unsigned)o->exit_timeout_secs)));
    return kelp_serve_set(
        TRITONSERVER_ServerOptionsSetStrictReadiness(options, o->strict_readiness));
}
