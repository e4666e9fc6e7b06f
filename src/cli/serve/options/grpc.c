/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/options/grpc.h"

#include "base/checked.h"
#include "cli/serve/options/options.h"

#include <stddef.h>

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
    {.name = "grpc-infer-response-compression-level",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(compression),
     .value = "LEVEL",
     .choices = "none|low|medium|high",
     .help = "compress responses for clients that accept it, at the same level for low to high "
             "(none)"},
};
#undef AT

const kelp_arg_table kelp_serve_grpc_table = {specs, KELP_COUNT(specs)};

void kelp_serve_grpc_defaults(kelp_serve_grpc *o) {
    o->allow_grpc = true;
    o->port = -1;
    o->compression = "none";
}
