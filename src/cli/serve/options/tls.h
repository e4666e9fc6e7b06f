/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `kelp serve` for TLS. */
#ifndef KELP_CLI_SERVE_OPTIONS_TLS_H_
#define KELP_CLI_SERVE_OPTIONS_TLS_H_

#include "cli/args.h"
#include "frontends/tls/context.h"

typedef struct kelp_serve_tls {
    const char *cert, *key; /* NULL: no TLS */
    const char *ca;
    const char *client_auth; /* NULL: required if there is a file of authorities */
} kelp_serve_tls;

extern const kelp_arg_table kelp_serve_tls_table;
/* Converts the options; without TLS, out->cert_path is NULL. INVALID_ARGUMENT names an option that
 * is missing. */
kelp_status *kelp_serve_tls_convert(const kelp_serve_tls *o, kelp_tls_options *out) KELP_MUST_USE;

#endif
