/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/options/http.h"

#include "base/checked.h"
#include "cli/serve/options/options.h"

#include <stddef.h>
#include <stdlib.h>

#define AT(member) offsetof(kelp_serve_options, http.member)
static const kelp_arg_spec specs[] = {
    {.group = "HTTP",
     .name = "allow-http",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(allow_http),
     .help = "serve HTTP (true)"},
    {.name = "http-address",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(address),
     .value = "ADDRESS",
     .help = "address to listen on, or unix:/path (127.0.0.1)"},
    {.name = "http-port",
     .kind = KELP_ARG_I64,
     .offset = AT(port),
     .value = "PORT",
     .min = 0,
     .max = 65535,
     .help = "port to listen on, 0 for a free one (8000)"},
    {.name = "http-thread-count",
     .kind = KELP_ARG_I64,
     .offset = AT(threads),
     .value = "N",
     .min = 1,
     .max = 256,
     .help = "event loops (CPUs, at most 8)"},
    {.name = "reuse-http-port",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(reuse_port),
     .help = "allow several servers on the ports of HTTP and metrics (false)"},
    {.name = "http-max-input-size",
     .kind = KELP_ARG_I64,
     .offset = AT(max_input_size),
     .value = "BYTES",
     .min = 1,
     .max = INT64_MAX,
     .help = "maximum size of a body without binary tensors (67108864)"},
    {.name = "http-socket-mode",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(socket_mode),
     .value = "MODE",
     .help = "permissions of a Unix socket, in octal: 0660 lets the group connect (those of the "
             "umask)"},
    {.name = "status-page",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(status_page),
     .help = "serve a page with models, load and a request form at / (true; tritonserver: false)"},
};
#undef AT

const kelp_arg_table kelp_serve_http_table = {specs, KELP_COUNT(specs)};

void kelp_serve_http_defaults(kelp_serve_http *o) {
    o->allow_http = true;
    o->address = "127.0.0.1";
    o->port = 8000;
    o->status_page = true;
}

kelp_status *kelp_serve_http_socket_mode(const kelp_serve_http *o, unsigned *out) {
    char *end = NULL;
    unsigned long mode = o->socket_mode != NULL ? strtoul(o->socket_mode, &end, 8) : 0;
    *out = (unsigned)mode;
    if (o->socket_mode == NULL ||
        (end != o->socket_mode && *end == '\0' && mode > 0 && mode <= 0777))
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "option '--http-socket-mode': expected octal permissions such as 0660, found "
                      "'%s'",
                      o->socket_mode);
}
