/* SPDX-License-Identifier: Apache-2.0 */
/* The certificates of a server, which are loaded again when their files change. */
#ifndef KELP_FRONTENDS_TLS_CONTEXT_H_
#define KELP_FRONTENDS_TLS_CONTEXT_H_

#include "base/log.h"
#include "frontends/tls/openssl.h"

#include <kelp/allocator.h>

typedef struct kelp_tls_context kelp_tls_context;

/* The certificates that clients present. */
typedef enum kelp_tls_client_auth {
    KELP_TLS_CLIENT_AUTH_NONE,     /* none is asked for */
    KELP_TLS_CLIENT_AUTH_OPTIONAL, /* verified if the client presents one */
    KELP_TLS_CLIENT_AUTH_REQUIRED  /* clients without one are rejected */
} kelp_tls_client_auth;

/* PEM files. Strings are borrowed for the call. */
typedef struct kelp_tls_options {
    const char *cert_path; /* the server's certificate, then intermediate ones */
    const char *key_path;  /* its private key, without a passphrase */
    const char *ca_path; /* of the authorities of clients' certificates; NULL without client_auth */
    kelp_tls_client_auth client_auth;
} kelp_tls_options;

/* Loads the files. `logger` is borrowed. Fails with NOT_FOUND or INVALID_ARGUMENT for a file, and
 * FAILED_PRECONDITION if OpenSSL is not installed. */
kelp_status *kelp_tls_context_create(const kelp_tls_options *options, kelp_allocator allocator,
                                     const kelp_logger *logger,
                                     kelp_tls_context **out) KELP_MUST_USE;
/* Frees the context; its streams may still exist. NULL is ignored. */
void kelp_tls_context_destroy(kelp_tls_context *context);
/* Loads the files again if one of them has changed. New connections use them. Logs a failure, and
 * continues to use the earlier certificates. One thread at a time. */
void kelp_tls_context_reload(kelp_tls_context *context);
/* Returns a new reference to the current certificates. Any thread. */
SSL_CTX *kelp_tls_context_acquire(kelp_tls_context *context, const kelp_openssl **out_functions);

#endif
