/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve` for the gRPC front-end. */
#ifndef KELP_CLI_SERVE_OPTIONS_GRPC_H_
#define KELP_CLI_SERVE_OPTIONS_GRPC_H_

#include "cli/args.h"

#include <triton/core/tritonserver.h>

typedef struct kelp_serve_grpc {
    bool allow_grpc;
    const char *address; /* NULL: that of HTTP */
    int64_t port;        /* -1: none besides the port of HTTP */
    const char *compression;
} kelp_serve_grpc;

extern const kelp_arg_table kelp_serve_grpc_table;
/* Sets the defaults that are not zero. */
void kelp_serve_grpc_defaults(kelp_serve_grpc *o);

#endif
