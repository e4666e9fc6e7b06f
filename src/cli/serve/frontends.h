/* SPDX-License-Identifier: Apache-2.0 */
/* The front-ends of a serving process. */
#ifndef KELP_CLI_SERVE_FRONTENDS_H_
#define KELP_CLI_SERVE_FRONTENDS_H_

#include "cli/serve/access_log.h"
#include "cli/serve/activation.h"
#include "cli/serve/options/options.h"
#include "cli/serve/trim.h"
#include "frontends/common/access.h"
#include "frontends/common/forward.h"
#include "frontends/common/workers.h"
#include "frontends/http/server.h"
#include "frontends/settings/logging.h"
#include "frontends/shm/registry.h"
#include "frontends/trace/tracing.h"

/* An address that the process listens on. */
typedef struct kelp_serve_endpoint {
    kelp_http_endpoint base;
    const char *name; /* "HTTP" */
} kelp_serve_endpoint;

/* The front-ends that run. Zeroed: none. */
typedef struct kelp_serve_frontends {
    kelp_serve_endpoint endpoints[KELP_HTTP_MAX_ENDPOINTS];
    size_t endpoint_count;
    kelp_serve_sockets sockets; /* of a service manager, taken before the start */
    kelp_tls_options tls;       /* of the endpoints */
    kelp_tls_options grpc_tls;  /* of the port of gRPC; without a certificate, `tls` applies */
    kelp_http_handler *handler;
    kelp_access *http_access, *grpc_access;
    kelp_forward *forward;
    kelp_forward *grpc_forward;
    kelp_http_handler *grpc; /* NULL if gRPC is not served */
    kelp_http_server *http;  /* NULL if there is no endpoint */
    /* of all protocols: */
    kelp_shm_registry *shm;
    kelp_logging *logging;
    kelp_tracing *tracing;
    kelp_workers *loaders;         /* run loads and unloads */
    kelp_serve_trace_values trace; /* parsed before the start */
    kelp_serve_access_log access_log;
    bool held; /* models still hold requests after the stop, which use what all share */
} kelp_serve_frontends;

/* Checks the options, the files of TLS and of the access log, and that the addresses are free, so
 * that a failure precedes the loading of models. A later failure to listen is possible. */
kelp_status *kelp_serve_check_addresses(const kelp_serve_options *o,
                                        const kelp_serve_sockets *sockets) KELP_MUST_USE;
/* Starts the front-ends that the options allow. On failure, stop and destroy apply. `trim` is
 * borrowed. */
kelp_status *kelp_serve_start(const kelp_serve_options *o, TRITONSERVER_Server *core,
                              kelp_serve_trim *trim,
                              kelp_serve_frontends *inout_frontends) KELP_MUST_USE;
/* Returns the port of an endpoint; 0 for a Unix socket. */
uint16_t kelp_serve_port(const kelp_serve_frontends *frontends, size_t endpoint);
/* Readiness requests get status 503 from this call on. */
void kelp_serve_set_draining(kelp_serve_frontends *frontends);
/* Returns the time (kelp_now_ns) at which the latest request began; 0 if there was none. */
uint64_t kelp_serve_last_request_ns(const kelp_serve_frontends *frontends);
/* Stops the front-ends after the requests in flight. UNAVAILABLE if models still hold some. */
kelp_status *kelp_serve_stop(kelp_serve_frontends *frontends, uint64_t timeout_ns) KELP_MUST_USE;
/* Frees the front-ends, after the server has stopped. */
void kelp_serve_destroy(kelp_serve_frontends *frontends);

#endif
