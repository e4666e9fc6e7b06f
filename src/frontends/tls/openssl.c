/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/tls/openssl.h"

#include "base/checked.h"
#include "base/dl.h"

#include <pthread.h>
#include <string.h>

#define OPENSSL_LIBRARY "libssl.so.3"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static kelp_openssl functions; /* set once, with `mutex` */
static bool loaded;

/* The library is never closed, because it registers exit handlers. */
static kelp_status *load(void) {
    static const char *const names[] = {"TLS_server_method",
                                        "SSL_CTX_new",
                                        "SSL_CTX_free",
                                        "SSL_CTX_up_ref",
                                        "SSL_CTX_ctrl",
                                        "SSL_CTX_set_options",
                                        "SSL_CTX_use_certificate_chain_file",
                                        "SSL_CTX_use_PrivateKey_file",
                                        "SSL_CTX_set_default_passwd_cb",
                                        "SSL_CTX_check_private_key",
                                        "SSL_CTX_load_verify_locations",
                                        "SSL_load_client_CA_file",
                                        "SSL_CTX_set_client_CA_list",
                                        "SSL_CTX_set_verify",
                                        "SSL_CTX_set_alpn_select_cb",
                                        "SSL_CTX_set_session_id_context",
                                        "SSL_new",
                                        "SSL_free",
                                        "SSL_set_bio",
                                        "SSL_set_accept_state",
                                        "SSL_do_handshake",
                                        "SSL_read",
                                        "SSL_write",
                                        "SSL_shutdown",
                                        "SSL_get_error",
                                        "SSL_has_pending",
                                        "SSL_get_verify_result",
                                        "BIO_meth_new",
                                        "BIO_meth_free",
                                        "BIO_meth_set_read",
                                        "BIO_meth_set_write",
                                        "BIO_meth_set_ctrl",
                                        "BIO_new",
                                        "BIO_set_init",
                                        "BIO_set_data",
                                        "BIO_get_data",
                                        "BIO_set_flags",
                                        "BIO_clear_flags",
                                        "ERR_get_error",
                                        "ERR_clear_error",
                                        "ERR_reason_error_string",
                                        "X509_verify_cert_error_string",
                                        "OPENSSL_thread_stop"};
    void *addresses[KELP_COUNT(names)];
    kelp_dl library;
    kelp_status *status = kelp_dl_open(OPENSSL_LIBRARY, &library);
    if (status != NULL)
        return KELP_ANNOTATE(status, "TLS needs the library '%s', of Debian package libssl3",
                             OPENSSL_LIBRARY);
    for (size_t i = 0; i < KELP_COUNT(names); i++) {
        addresses[i] = kelp_dl_symbol(&library, names[i]);
        if (addresses[i] == NULL)
            return KELP_ERROR(KELP_FAILED_PRECONDITION, "the library '%s' lacks the function '%s'",
                              OPENSSL_LIBRARY, names[i]);
    }
    _Static_assert(sizeof functions == sizeof addresses, "one function for each name, in order");
    memcpy(&functions, addresses, sizeof functions);
    loaded = true;
    return NULL;
}

kelp_status *kelp_openssl_load(const kelp_openssl **out) {
    pthread_mutex_lock(&mutex);
    kelp_status *status = loaded ? NULL : load();
    pthread_mutex_unlock(&mutex);
    *out = &functions;
    return status;
}
