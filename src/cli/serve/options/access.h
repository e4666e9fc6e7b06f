/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve` for who may use what. */
#ifndef KELP_CLI_SERVE_OPTIONS_ACCESS_H_
#define KELP_CLI_SERVE_OPTIONS_ACCESS_H_

#include "cli/args.h"
#include "frontends/common/access.h"

typedef struct kelp_serve_access {
    kelp_arg_list restricted_apis;
    kelp_arg_list restricted_protocols;
    const char *token_file;
    bool exempt_health;
    const char *forward_pattern, *grpc_forward_pattern;
    kelp_arg_list cors_origins;
} kelp_serve_access;

extern const kelp_arg_table kelp_serve_access_table;
/* Creates the rules of HTTP and gRPC. `logger` is borrowed. On failure, the caller destroys what
 * was created. INVALID_ARGUMENT names the option. */
kelp_status *kelp_serve_access_create(const kelp_serve_access *o, const kelp_logger *logger,
                                      kelp_access **out_http, kelp_access **out_grpc) KELP_MUST_USE;

#endif
