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
    {.name = "reuse-grpc-port",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(reuse_port),
     .help = "allow several servers on --grpc-port (false)"},
    {.name = "grpc-infer-response-compression-level",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(compression),
     .value = "LEVEL",
     .choices = "none|low|medium|high",
     .help = "compress responses for clients that accept it, at the same level for low to high "
             "(none)"},
    {.name = "grpc-use-ssl",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(use_ssl),
     .help = "TLS on --grpc-port, with --grpc-server-cert and --grpc-server-key (false)"},
    {.name = "grpc-use-ssl-mutual",
     .kind = KELP_OPTION_BOOL,
     .offset = AT(use_ssl_mutual),
     .help = "TLS on --grpc-port, and certificates of clients, with --grpc-root-cert (false)"},
    {.name = "grpc-server-cert",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(server_cert),
     .value = "FILE",
     .choices = "@file",
     .help = "PEM file of the server's certificate and its intermediates"},
    {.name = "grpc-server-key",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(server_key),
     .value = "FILE",
     .choices = "@file",
     .help = "PEM file of the certificate's private key, without a passphrase"},
    {.name = "grpc-root-cert",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(root_cert),
     .value = "FILE",
     .choices = "@file",
     .help = "PEM file of the authorities that sign certificates of clients"},
};
#undef AT

const kelp_arg_table kelp_serve_grpc_table = {specs, KELP_COUNT(specs)};

void kelp_serve_grpc_defaults(kelp_serve_grpc *o) {
    o->allow_grpc = true;
    o->port = -1;
    o->compression = "none";
}

kelp_status *kelp_serve_grpc_tls(const kelp_serve_grpc *o, kelp_tls_options *out) {
    *out = (kelp_tls_options){0};
    if (!o->use_ssl && !o->use_ssl_mutual)
        return NULL;
    const char *option = o->use_ssl ? "--grpc-use-ssl" : "--grpc-use-ssl-mutual";
    if (o->server_cert == NULL || o->server_key == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '%s' requires '%s'", option,
                          o->server_cert == NULL ? "--grpc-server-cert" : "--grpc-server-key");
    if (o->use_ssl_mutual && o->root_cert == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--grpc-use-ssl-mutual' requires '--grpc-root-cert'");
    if (o->port < 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '%s' requires '--grpc-port'", option);
    *out = (kelp_tls_options){.cert_path = o->server_cert, .key_path = o->server_key};
    if (o->use_ssl_mutual) {
        out->ca_path = o->root_cert;
        out->client_auth = KELP_TLS_CLIENT_AUTH_REQUIRED;
    }
    return NULL;
}
