/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/frontends.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "frontends/common/services.h"
#include "frontends/http/listener.h"
#include "frontends/v2/service.h"

#include <stdio.h>

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

static void add_endpoint(kelp_serve_frontends *frontends, const char *name, const char *address,
                         int64_t port, uint32_t services) {
    KELP_ASSERT(frontends->endpoint_count < KELP_HTTP_MAX_ENDPOINTS);
    KELP_ASSERT(port >= 0 && port <= UINT16_MAX);
    frontends->endpoints[frontends->endpoint_count++] = (kelp_serve_endpoint){
        .base = {.address = address, .port = (uint16_t)port, .services = services}, .name = name};
}

/* Adds the endpoints of the options. */
static void add_endpoints(const kelp_serve_options *o, kelp_serve_frontends *frontends) {
    frontends->endpoint_count = 0;
    if (o->http.allow_http)
        add_endpoint(frontends, "HTTP", o->http.address, o->http.port,
                     KELP_SERVICE_HTTP | KELP_SERVICE_METRICS);
    if (o->metrics.allow_metrics && o->metrics.port >= 0)
        add_endpoint(frontends, "Metrics",
                     o->metrics.address != NULL ? o->metrics.address : o->http.address,
                     o->metrics.port, KELP_SERVICE_METRICS);
}

kelp_status *kelp_serve_check_addresses(const kelp_serve_options *o) {
    kelp_serve_frontends frontends = {0};
    kelp_logger logger = {0};
    kelp_status *status = NULL;
    kelp_http_listener listeners[KELP_HTTP_MAX_ENDPOINTS];
    size_t open = 0;
    unsigned mode;
    KELP_TRY(kelp_serve_http_socket_mode(&o->http, &mode));
    add_endpoints(o, &frontends);
    while (open < frontends.endpoint_count && status == NULL) {
        const kelp_http_endpoint *endpoint = &frontends.endpoints[open].base;
        status = kelp_http_listener_open(&listeners[open], kelp_allocator_system(), &logger,
                                         endpoint->address, endpoint->port, o->http.reuse_port);
        open++;
    }
    for (size_t i = 0; i < open; i++)
        kelp_http_listener_close(&listeners[i]);
    return status;
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
    kelp_http_server_options options = {
        .endpoints = endpoints,
        .endpoint_count = inout_frontends->endpoint_count,
        .threads = (uint32_t)o->http.threads,
        .reuse_port = o->http.reuse_port,
        .freed_large = kelp_serve_trim_note,
        .freed_large_userp = trim,
        .logger = {.fn = log_to_core,
                   .level = o->log.verbose ? KELP_LOG_VERBOSE : KELP_LOG_INFO,
                   .verbosity = (int)o->log.verbose},
    };
    kelp_v2_options v2 = {.max_input_size_bytes = (uint64_t)o->http.max_input_size,
                          .load_threads = (uint32_t)o->models.load_threads};
    KELP_TRY(kelp_v2_create(core, &v2, &inout_frontends->handler));
    return kelp_http_server_create(&inout_frontends->handler, 1, &options, &inout_frontends->http);
}

kelp_status *kelp_serve_start(const kelp_serve_options *o, TRITONSERVER_Server *core,
                              kelp_serve_trim *trim, kelp_serve_frontends *inout_frontends) {
    add_endpoints(o, inout_frontends);
    if (inout_frontends->endpoint_count == 0)
        return NULL;
    KELP_TRY(create_http(o, core, trim, inout_frontends));
    return kelp_http_server_start(inout_frontends->http);
}

uint16_t kelp_serve_port(const kelp_serve_frontends *frontends, size_t endpoint) {
    return kelp_http_server_port(frontends->http, endpoint);
}

void kelp_serve_set_draining(kelp_serve_frontends *frontends) {
    if (frontends->http != NULL)
        kelp_v2_drain(frontends->handler);
}

uint64_t kelp_serve_last_request_ns(const kelp_serve_frontends *frontends) {
    return frontends->http != NULL ? kelp_http_server_last_request_ns(frontends->http) : 0;
}

kelp_status *kelp_serve_stop(kelp_serve_frontends *frontends, uint64_t timeout_ns) {
    return frontends->http != NULL ? kelp_http_server_stop(frontends->http, timeout_ns) : NULL;
}

void kelp_serve_destroy(kelp_serve_frontends *frontends) {
    kelp_http_server_destroy(frontends->http);
    *frontends = (kelp_serve_frontends){0};
}
