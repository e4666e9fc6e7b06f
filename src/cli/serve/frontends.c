/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/frontends.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
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

static kelp_status *start_http(const kelp_serve_options *o, TRITONSERVER_Server *core,
                               kelp_serve_frontends *inout_frontends) {
    KELP_ASSERT(o->http.port >= 0 && o->http.port <= UINT16_MAX);
    kelp_http_endpoint endpoint = {
        .address = o->http.address, .port = (uint16_t)o->http.port, .services = UINT32_MAX};
    kelp_http_server_options options = {
        .endpoints = &endpoint,
        .endpoint_count = 1,
        .threads = (uint32_t)o->http.threads,
        .reuse_port = o->http.reuse_port,
        .logger = {.fn = log_to_core,
                   .level = o->log.verbose ? KELP_LOG_VERBOSE : KELP_LOG_INFO,
                   .verbosity = (int)o->log.verbose},
    };
    kelp_v2_options v2 = {.max_input_size_bytes = (uint64_t)o->http.max_input_size};
    KELP_TRY(kelp_v2_create(core, &v2, &inout_frontends->handler));
    KELP_TRY(
        kelp_http_server_create(&inout_frontends->handler, 1, &options, &inout_frontends->http));
    return kelp_http_server_start(inout_frontends->http);
}

kelp_status *kelp_serve_start(const kelp_serve_options *o, TRITONSERVER_Server *core,
                              kelp_serve_frontends *inout_frontends) {
    return o->http.allow_http ? start_http(o, core, inout_frontends) : NULL;
}

void kelp_serve_append_addresses(const kelp_serve_options *o, const kelp_serve_frontends *frontends,
                                 kelp_buf *out) {
    const char *address = o->http.address;
    if (frontends->http == NULL)
        return;
    if (!strncmp(address, "unix:", 5))
        kelp_buf_printf(out, "HTTP  %s\n", address);
    else if (!strcmp(address, "0.0.0.0") || !strcmp(address, "::"))
        kelp_buf_printf(out, "HTTP  http://127.0.0.1:%u (all addresses)\n",
                        kelp_http_server_port(frontends->http, 0));
    else
        kelp_buf_printf(
            out, strchr(address, ':') != NULL ? "HTTP  http://[%s]:%u\n" : "HTTP  http://%s:%u\n",
            address, kelp_http_server_port(frontends->http, 0));
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
