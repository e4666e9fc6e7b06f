/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/options/tls.h"

#include "base/checked.h"
#include "cli/serve/options/options.h"

#include <stddef.h>
#include <string.h>

#define AT(member) offsetof(kelp_serve_options, tls.member)
static const kelp_arg_spec specs[] = {
    {.group = "TLS",
     .name = "tls-cert",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(cert),
     .value = "FILE",
     .choices = "@file",
     .help = "PEM file of the certificate and its intermediates; every address requires TLS, "
             "except Unix sockets"},
    {.name = "tls-key",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(key),
     .value = "FILE",
     .choices = "@file",
     .help = "PEM file of the certificate's private key, without a passphrase"},
    {.name = "tls-ca",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(ca),
     .value = "FILE",
     .choices = "@file",
     .help = "PEM file of the authorities that sign certificates of clients"},
    {.name = "tls-client-auth",
     .kind = KELP_OPTION_TEXT,
     .offset = AT(client_auth),
     .value = "MODE",
     .choices = "none|optional|required",
     .help = "certificates of clients (required with --tls-ca, otherwise none)"},
};
#undef AT

const kelp_arg_table kelp_serve_tls_table = {specs, KELP_COUNT(specs)};

kelp_status *kelp_serve_tls_convert(const kelp_serve_tls *o, kelp_tls_options *out) {
    const char *auth = o->client_auth;
    if (auth == NULL)
        auth = o->ca != NULL ? "required" : "none";
    *out = (kelp_tls_options){.cert_path = o->cert, .key_path = o->key, .ca_path = o->ca};
    if (!strcmp(auth, "required"))
        out->client_auth = KELP_TLS_CLIENT_AUTH_REQUIRED;
    else if (!strcmp(auth, "optional"))
        out->client_auth = KELP_TLS_CLIENT_AUTH_OPTIONAL;
    if ((o->cert == NULL) != (o->key == NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '%s' requires '%s'",
                          o->cert != NULL ? "--tls-cert" : "--tls-key",
                          o->cert != NULL ? "--tls-key" : "--tls-cert");
    if (o->cert == NULL && (o->ca != NULL || o->client_auth != NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "option '%s' requires '--tls-cert'",
                          o->ca != NULL ? "--tls-ca" : "--tls-client-auth");
    if (out->client_auth != KELP_TLS_CLIENT_AUTH_NONE && o->ca == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "option '--tls-client-auth %s' requires '--tls-ca'", o->client_auth);
    return NULL;
}
