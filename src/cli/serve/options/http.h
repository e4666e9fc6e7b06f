/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve` for the HTTP front-end. */
#ifndef KELP_CLI_SERVE_OPTIONS_HTTP_H_
#define KELP_CLI_SERVE_OPTIONS_HTTP_H_

#include "cli/args.h"

#include <triton/core/tritonserver.h>

typedef struct kelp_serve_http {
    bool allow_http;
    const char *address;
    int64_t port;
    int64_t threads;
    bool reuse_port;
    int64_t max_input_size;
    const char *socket_mode; /* octal, or NULL */
    bool status_page;
} kelp_serve_http;

extern const kelp_arg_table kelp_serve_http_table;
void kelp_serve_http_defaults(kelp_serve_http *o);
/* Stores the permissions of --http-socket-mode; 0 without the option. INVALID_ARGUMENT. */
kelp_status *kelp_serve_http_socket_mode(const kelp_serve_http *o, unsigned *out) KELP_MUST_USE;

#endif
