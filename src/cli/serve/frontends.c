/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/frontends.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "frontends/common/services.h"
#include "frontends/grpc/service.h"
#include "frontends/server/listener.h"
#include "frontends/v2/service.h"

#include <limits.h>
#include <stdio.h>

#define DEFAULT_GRPC_PORT 8001
#define MAX_KEPT_BYTES (UINT64_C(64) << 20)

/* The front end writes to the log of the server. */
static void log_to_core(void *userp, kelp_log_level level, const char *file, int line,
                        const char *text, size_t length) {
    static const TRITONSERVER_LogLevel levels[] = {TRITONSERVER_LOG_ERROR, TRITONSERVER_LOG_WARN,
                                                   TRITONSERVER_LOG_INFO, TRITONSERVER_LOG_VERBOSE};
    (void)userp;
    char message[2048];
    snprintf(message, sizeof message, "%.*s", (int)KELP_MIN(length, sizeof message - 1), text);
    TRITONSERVER_Error *error =
        TRITONSERVER_LogMessage(levels[(unsigned)level & 3u], file, line, message);
    if (error != NULL)
        TRITONSERVER_ErrorDelete(error);
}

static const kelp_logger core_logger = {
    .fn = log_to_core, .level = KELP_LOG_VERBOSE, .verbosity = INT_MAX};

static void add_endpoint(kelp_serve_frontends *frontends, const char *name, const char *address,
                         int64_t port, bool reuse_port, uint32_t services) {
    KELP_ASSERT(frontends->endpoint_count < KELP_HTTP_MAX_ENDPOINTS);
    KELP_ASSERT(port >= 0 && port <= UINT16_MAX);
    bool is_unix = !strncmp(address, "unix:", 5);
    frontends->endpoints[frontends->endpoint_count++] = (kelp_serve_endpoint){
        .base = {.address = address,
                 .port = (uint16_t)port,
                 .reuse_port = reuse_port,
                 .services = services,
                 .tls = frontends->tls.cert_path != NULL && !is_unix ? &frontends->tls : NULL},
        .name = name};
}

/* Adds an endpoint for each socket of a service that a service manager passed. Returns false if
 * there is none. */
static bool add_passed(kelp_serve_frontends *frontends, const char *service, const char *name,
                       uint32_t services) {
    bool found = false;
    for (size_t i = 0; i < frontends->sockets.count; i++) {
        const kelp_serve_socket *socket = &frontends->sockets.items[i];
        if (strcmp(socket->service, service) != 0)
            continue;
        add_endpoint(frontends, name, socket->address, socket->port, false, services);
        frontends->endpoints[frontends->endpoint_count - 1].base.fd = socket->fd;
        found = true;
    }
    return found;
}

/* Adds the endpoints of gRPC, which is on the port of HTTP too. */
static void add_grpc(const kelp_serve_options *o, kelp_serve_frontends *frontends) {
    size_t first = frontends->endpoint_count;
    if (!add_passed(frontends, "grpc", "gRPC", KELP_SERVICE_GRPC) &&
        (o->grpc.port >= 0 || !o->http.allow_http))
        add_endpoint(frontends, "gRPC", o->grpc.address != NULL ? o->grpc.address : o->http.address,
                     o->grpc.port >= 0 ? o->grpc.port : DEFAULT_GRPC_PORT, o->grpc.reuse_port,
                     KELP_SERVICE_GRPC);
    for (size_t i = first; i < frontends->endpoint_count && frontends->grpc_tls.cert_path != NULL;
         i++)
        frontends->endpoints[i].base.tls = &frontends->grpc_tls;
}

/* Checks that there is an endpoint for each socket that was passed. */
static kelp_status *check_used(const kelp_serve_options *o, const kelp_serve_sockets *sockets) {
    const struct {
        const char *service;
        bool used;
    } rows[] = {{"http", o->http.allow_http},
                {"grpc", o->grpc.allow_grpc},
                {"metrics", o->metrics.allow_metrics}};
    for (size_t i = 0; i < KELP_COUNT(rows); i++) {
        if (!rows[i].used && kelp_serve_sockets_count(sockets, rows[i].service) > 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "a socket named '%s' was passed, but option '--allow-%s' is false",
                              rows[i].service, rows[i].service);
    }
    return NULL;
}

/* Adds the endpoints of the options. */
static kelp_status *add_endpoints(const kelp_serve_options *o, kelp_serve_frontends *frontends) {
    KELP_TRY(kelp_serve_tls_convert(&o->tls, &frontends->tls));
    KELP_TRY(kelp_serve_grpc_tls(&o->grpc, &frontends->grpc_tls));
    KELP_TRY(check_used(o, &frontends->sockets));
    frontends->endpoint_count = 0;
    /* If gRPC has certificates of its own, the port of HTTP must not be a way around them. */
    bool grpc_on_http = o->grpc.allow_grpc && frontends->grpc_tls.cert_path == NULL;
    uint32_t http = KELP_SERVICE_HTTP | KELP_SERVICE_METRICS |
                    (grpc_on_http ? KELP_SERVICE_GRPC : 0u) |
                    (o->http.status_page ? KELP_SERVICE_PAGE : 0u);
    if (o->http.allow_http && !add_passed(frontends, "http", "HTTP", http))
        add_endpoint(frontends, "HTTP", o->http.address, o->http.port, o->http.reuse_port, http);
    if (o->grpc.allow_grpc)
        add_grpc(o, frontends);
    if (o->metrics.allow_metrics &&
        !add_passed(frontends, "metrics", "Metrics", KELP_SERVICE_METRICS) && o->metrics.port >= 0)
        add_endpoint(frontends, "Metrics",
                     o->metrics.address != NULL ? o->metrics.address : o->http.address,
                     o->metrics.port, o->http.reuse_port, KELP_SERVICE_METRICS);
    return NULL;
}

/* Creates the rules for clients. */
static kelp_status *create_access(const kelp_serve_options *o,
                                  kelp_serve_frontends *inout_frontends) {
    KELP_TRY(kelp_serve_access_create(&o->access, &core_logger, &inout_frontends->http_access,
                                      &inout_frontends->grpc_access));
    if (o->access.forward_pattern != NULL)
        KELP_TRY(kelp_forward_create(kelp_allocator_system(), o->access.forward_pattern,
                                     &inout_frontends->forward));
    if (o->access.grpc_forward_pattern != NULL)
        KELP_TRY(kelp_forward_create(kelp_allocator_system(), o->access.grpc_forward_pattern,
                                     &inout_frontends->grpc_forward));
    return NULL;
}

static void destroy_access(kelp_serve_frontends *frontends) {
    kelp_access_destroy(frontends->http_access);
    kelp_access_destroy(frontends->grpc_access);
    kelp_forward_destroy(frontends->forward);
    kelp_forward_destroy(frontends->grpc_forward);
    frontends->grpc_forward = NULL;
    frontends->http_access = frontends->grpc_access = NULL;
    frontends->forward = NULL;
}

kelp_status *kelp_serve_check_addresses(const kelp_serve_options *o,
                                        const kelp_serve_sockets *sockets) {
    kelp_serve_frontends frontends = {.sockets = *sockets};
    kelp_logger logger = {0};
    kelp_http_listener listeners[KELP_HTTP_MAX_ENDPOINTS];
    size_t open = 0;
    unsigned mode;
    KELP_TRY(kelp_serve_http_socket_mode(&o->http, &mode));
    if (o->log.access_file != NULL)
        KELP_TRY(kelp_request_log_check(o->log.access_file));
    kelp_status *status = add_endpoints(o, &frontends);
    if (status == NULL)
        status = create_access(o, &frontends);
    destroy_access(&frontends);
    while (open < frontends.endpoint_count && status == NULL) {
        const kelp_http_endpoint *endpoint = &frontends.endpoints[open].base;
        status = kelp_http_listener_open_endpoint(&listeners[open], kelp_allocator_system(),
                                                  &logger, endpoint);
        open++;
        kelp_tls_context *tls = NULL;
        if (status == NULL && endpoint->tls != NULL)
            status = kelp_tls_context_create(endpoint->tls, kelp_allocator_system(), &logger, &tls);
        kelp_tls_context_destroy(tls);
    }
    for (size_t i = 0; i < open; i++)
        kelp_http_listener_close(&listeners[i]);
    return status;
}

static kelp_status *create_grpc(const kelp_serve_options *o, TRITONSERVER_Server *core,
                                kelp_serve_frontends *inout_frontends) {
    kelp_http_keepalive keepalive = kelp_serve_grpc_keepalive(&o->grpc);
    kelp_grpc_options options = {.keepalive = &keepalive,
                                 .shm = inout_frontends->shm,
                                 .logging = inout_frontends->logging,
                                 .tracing = inout_frontends->tracing,
                                 .access = inout_frontends->grpc_access,
                                 .forward = inout_frontends->grpc_forward,
                                 .loaders = inout_frontends->loaders,
                                 .compresses = strcmp(o->grpc.compression, "none") != 0};
    return kelp_grpc_create(core, &options, &inout_frontends->grpc);
}

static kelp_status *create_http(const kelp_serve_options *o, TRITONSERVER_Server *core,
                                kelp_serve_trim *trim, kelp_serve_frontends *inout_frontends) {
    kelp_http_endpoint endpoints[KELP_HTTP_MAX_ENDPOINTS];
    unsigned mode = 0;
    KELP_TRY(kelp_serve_http_socket_mode(&o->http, &mode));
    for (size_t i = 0; i < inout_frontends->endpoint_count; i++) {
        endpoints[i] = inout_frontends->endpoints[i].base;
        endpoints[i].socket_mode = mode;
    }
    uint32_t max_connections = (uint32_t)o->server.max_connections;
    uint32_t max_requests = (uint32_t)o->server.max_requests;
    uint32_t share = (uint32_t)o->server.max_client_share;
    kelp_http_server_options options = {
        .endpoints = endpoints,
        .endpoint_count = inout_frontends->endpoint_count,
        .threads = (uint32_t)o->http.threads,
        .max_connections = max_connections,
        .max_client_connections = kelp_http_share(max_connections, share),
        .max_requests = max_requests,
        .max_client_requests = kelp_http_share(max_requests, share),
        .request_log = inout_frontends->access_log.log,
        .max_kept_bytes = MAX_KEPT_BYTES,
        .freed_much = kelp_serve_trim_note,
        .freed_much_userp = trim,
        .logger = {.fn = log_to_core,
                   .level = o->log.verbose ? KELP_LOG_VERBOSE : KELP_LOG_INFO,
                   .verbosity = (int)o->log.verbose},
    };
    kelp_v2_options v2 = {.max_input_size_bytes = (uint64_t)o->http.max_input_size,
                          .loaders = inout_frontends->loaders,
                          .load_models = !strcmp(o->models.control_mode, "explicit"),
                          .access = inout_frontends->http_access,
                          .forward = inout_frontends->forward,
                          .cors_origins = o->access.cors_origins.items,
                          .cors_origin_count = o->access.cors_origins.count,
                          .shm = inout_frontends->shm,
                          .logging = inout_frontends->logging,
                          .tracing = inout_frontends->tracing};
    KELP_TRY(kelp_v2_create(core, &v2, &inout_frontends->handler));
    kelp_http_handler *handlers[2];
    size_t count = 0;
    if (o->grpc.allow_grpc) {
        kelp_status *status = create_grpc(o, core, inout_frontends);
        if (status != NULL) {
            inout_frontends->handler->destroy(inout_frontends->handler);
            return status;
        }
        handlers[count++] = inout_frontends->grpc;
    }
    handlers[count++] = inout_frontends->handler; /* accepts every request */
    KELP_TRY(kelp_http_server_create(handlers, count, &options, &inout_frontends->http));
    trim->http = inout_frontends->http;
    return NULL;
}

/* Returns true if only processes of this machine can connect to the address. */
static bool is_local(const char *address) {
    return !strncmp(address, "unix:", 5) || !strncmp(address, "127.", 4) ||
           !strcmp(address, "::1") || !strcmp(address, "localhost");
}

/* Returns true if clients may register shared memory. */
static bool allows_shm(const kelp_serve_options *o, const kelp_serve_frontends *frontends) {
    if (strcmp(o->server.allow_client_shm, "auto") != 0)
        return strcmp(o->server.allow_client_shm, "true") == 0;
    for (size_t i = 0; i < frontends->endpoint_count; i++) {
        const kelp_http_endpoint *endpoint = &frontends->endpoints[i].base;
        if (endpoint->services != KELP_SERVICE_METRICS && !is_local(endpoint->address))
            return false;
    }
    return true;
}

/* Creates what all protocols share. */
static kelp_status *create_shared(const kelp_serve_options *o, TRITONSERVER_Server *core,
                                  kelp_serve_frontends *inout_frontends) {
    kelp_allocator allocator = kelp_allocator_system();
    const kelp_logging_values logging = {.file = o->log.file != NULL ? o->log.file : "",
                                         .info = o->log.info,
                                         .warning = o->log.warning,
                                         .error = o->log.error,
                                         .verbose = (uint32_t)o->log.verbose,
                                         .format =
                                             (kelp_log_format)kelp_serve_log_format(o->log.format)};
    KELP_TRY(kelp_shm_create(allocator, allows_shm(o, inout_frontends), &inout_frontends->shm));
    KELP_TRY(kelp_workers_create(allocator, (unsigned)o->models.load_threads,
                                 &inout_frontends->loaders));
    KELP_TRY(kelp_logging_create(allocator, &logging, &inout_frontends->logging));
    return kelp_tracing_create(allocator, core, &core_logger, &inout_frontends->trace.options,
                               &inout_frontends->tracing);
}

kelp_status *kelp_serve_start(const kelp_serve_options *o, TRITONSERVER_Server *core,
                              kelp_serve_trim *trim, kelp_serve_frontends *inout_frontends) {
    KELP_TRY(add_endpoints(o, inout_frontends));
    if (inout_frontends->endpoint_count == 0)
        return NULL;
    KELP_TRY(create_access(o, inout_frontends));
    if (o->log.access_file != NULL)
        KELP_TRY(kelp_serve_access_log_init(&inout_frontends->access_log, o->log.access_file,
                                            &core_logger));
    KELP_TRY(create_shared(o, core, inout_frontends));
    KELP_TRY(create_http(o, core, trim, inout_frontends));
    return kelp_http_server_start(inout_frontends->http);
}

uint16_t kelp_serve_port(const kelp_serve_frontends *frontends, size_t endpoint) {
    return kelp_http_server_port(frontends->http, endpoint);
}

void kelp_serve_set_draining(kelp_serve_frontends *frontends) {
    if (frontends->http != NULL)
        kelp_v2_drain(frontends->handler);
    if (frontends->http != NULL && frontends->grpc != NULL)
        kelp_grpc_drain(frontends->grpc);
}

uint64_t kelp_serve_last_request_ns(const kelp_serve_frontends *frontends) {
    return frontends->http != NULL ? kelp_http_server_last_request_ns(frontends->http) : 0;
}

kelp_status *kelp_serve_stop(kelp_serve_frontends *frontends, uint64_t timeout_ns) {
    kelp_status *status =
        frontends->http != NULL ? kelp_http_server_stop(frontends->http, timeout_ns) : NULL;
    frontends->held = status != NULL;
    return status;
}

void kelp_serve_destroy(kelp_serve_frontends *frontends) {
    kelp_http_server_destroy(frontends->http);
    kelp_serve_access_log_deinit(&frontends->access_log, frontends->held);
    destroy_access(frontends);
    kelp_tracing_stop(frontends->tracing);
    kelp_logging_destroy(frontends->logging);
    if (!frontends->held) {
        kelp_tracing_destroy(frontends->tracing);
        kelp_serve_trace_deinit(&frontends->trace);
        kelp_workers_destroy(frontends->loaders);
        kelp_shm_destroy(frontends->shm);
    }
    *frontends = (kelp_serve_frontends){0};
}
