/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve` for the gRPC front-end. */
#ifndef KELP_CLI_SERVE_OPTIONS_GRPC_H_
#define KELP_CLI_SERVE_OPTIONS_GRPC_H_

#include "cli/args.h"

#include <triton/core/tritonserver.h>

typedef struct kelp_serve_grpc {
    bool allow_grpc;
} kelp_serve_grpc;

extern const kelp_arg_table kelp_serve_grpc_table;

#endif
