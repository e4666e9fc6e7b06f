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
     .help = "not supported: there is no gRPC (false)"},
};
#undef AT

const kelp_arg_table kelp_serve_grpc_table = {specs, KELP_COUNT(specs)};
