/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/options/http.h"

#include "base/checked.h"
#include "cli/serve/options/options.h"

#include <stddef.h>

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
     .help = "allow several servers on one port (false)"},
    {.name = "http-max-input-size",
     .kind = KELP_ARG_I64,
     .offset = AT(max_input_size),
     .value = "BYTES",
     .min = 1,
     .max = INT64_MAX,
     .help = "maximum size of a body without binary tensors (67108864)"},
};
#undef AT

const kelp_arg_table kelp_serve_http_table = {specs, KELP_COUNT(specs)};

void kelp_serve_http_defaults(kelp_serve_http *o) {
    o->allow_http = true;
    o->address = "127.0.0.1";
    o->port = 8000;
}
