/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/tls/context.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#define FILES 3

/* What changes when a file does. */
typedef struct file_version {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
} file_version;

struct kelp_tls_context {
    kelp_allocator allocator;
    const kelp_logger *logger;
    const kelp_openssl *fn;
    char *paths[FILES]; /* of certificate, key and authorities; the last may be NULL */
    kelp_tls_client_auth client_auth;
    file_version versions[FILES]; /* of the files that were loaded, or could not be */
    pthread_mutex_t mutex;
    SSL_CTX *ssl; /* with `mutex` */
};

/* ---- loading ---- */

/* Returns why OpenSSL failed, and clears its errors. */
static const char *openssl_reason(const kelp_openssl *fn) {
    const char *reason = NULL;
    for (unsigned long error; (error = fn->ERR_get_error()) != 0;)
        if (reason == NULL)
            reason = fn->ERR_reason_error_string(error);
    return reason != NULL ? reason : "unknown error";
}

static kelp_status *bad_file(const kelp_tls_context *context, const char *what, const char *path) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "cannot use the TLS %s '%s': %s", what, path,
                      openssl_reason(context->fn));
}

/* Rejects keys with a passphrase, for which OpenSSL would ask on the terminal. */
static int no_password(char *password, int capacity, int writing, void *userp) {
    (void)password;
    (void)capacity;
    (void)writing;
    (void)userp;
    return -1;
}

/* Selects the first of the server's protocols that the client knows. */
static int select_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_length,
                           const unsigned char *in, unsigned in_length, void *userp) {
    static const char *const protocols[] = {"h2", "http/1.1"};
    (void)ssl;
    (void)userp;
    for (size_t i = 0; i < KELP_COUNT(protocols); i++) {
        size_t length = strlen(protocols[i]);
        for (unsigned at = 0; at < in_length; at += 1u + in[at])
            if (in[at] == length && in_length - at > length &&
                memcmp(in + at + 1, protocols[i], length) == 0) {
                *out = in + at + 1;
                *out_length = in[at];
                return SSL_TLSEXT_ERR_OK;
            }
    }
    return SSL_TLSEXT_ERR_NOACK;
}

static kelp_status *load_authorities(const kelp_tls_context *context, SSL_CTX *ssl) {
    const kelp_openssl *fn = context->fn;
    const char *path = context->paths[2];
    if (context->client_auth == KELP_TLS_CLIENT_AUTH_NONE)
        return NULL;
    if (fn->SSL_CTX_load_verify_locations(ssl, path, NULL) != 1)
        return bad_file(context, "authorities", path);
    X509_NAMES *names = fn->SSL_load_client_CA_file(path);
    if (names == NULL)
        return bad_file(context, "authorities", path);
    fn->SSL_CTX_set_client_CA_list(ssl, names);
    int mode = SSL_VERIFY_PEER;
    if (context->client_auth == KELP_TLS_CLIENT_AUTH_REQUIRED)
        mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    fn->SSL_CTX_set_verify(ssl, mode, NULL);
    return NULL;
}

static kelp_status *fill(const kelp_tls_context *context, SSL_CTX *ssl) {
    static const unsigned char id[] = "kelp";
    const kelp_openssl *fn = context->fn;
    const char *cert = context->paths[0], *key = context->paths[1];
    fn->SSL_CTX_ctrl(ssl, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
    fn->SSL_CTX_ctrl(ssl, SSL_CTRL_MODE,
                     SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS, NULL);
    /* Clients resume sessions with tickets, which need no memory here. */
    fn->SSL_CTX_ctrl(ssl, SSL_CTRL_SET_SESS_CACHE_MODE, 0, NULL);
    fn->SSL_CTX_set_session_id_context(ssl, id, sizeof id - 1);
    fn->SSL_CTX_set_options(ssl, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    fn->SSL_CTX_set_alpn_select_cb(ssl, select_protocol, NULL);
    fn->SSL_CTX_set_default_passwd_cb(ssl, no_password);
    if (fn->SSL_CTX_use_certificate_chain_file(ssl, cert) != 1)
        return bad_file(context, "certificate", cert);
    if (fn->SSL_CTX_use_PrivateKey_file(ssl, key, SSL_FILETYPE_PEM) != 1)
        return bad_file(context, "key", key);
    if (fn->SSL_CTX_check_private_key(ssl) != 1)
        return bad_file(context, "key", key);
    return load_authorities(context, ssl);
}

/* Loads the files, and replaces the certificates if that succeeds. */
static kelp_status *load(kelp_tls_context *context) {
    const kelp_openssl *fn = context->fn;
    fn->ERR_clear_error();
    SSL_CTX *ssl = fn->SSL_CTX_new(fn->TLS_server_method());
    if (ssl == NULL)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "cannot create a TLS context: %s",
                          openssl_reason(fn));
    kelp_status *status = fill(context, ssl);
    if (status != NULL) {
        fn->SSL_CTX_free(ssl);
        return status;
    }
    pthread_mutex_lock(&context->mutex);
    SSL_CTX *old = context->ssl;
    context->ssl = ssl;
    pthread_mutex_unlock(&context->mutex);
    fn->SSL_CTX_free(old);
    return NULL;
}

/* ---- changes ---- */

/* Reads the versions of the files. Fails with NOT_FOUND for a file that cannot be read. */
static kelp_status *read_versions(const kelp_tls_context *context, file_version *out) {
    for (size_t i = 0; i < FILES; i++) {
        struct stat info;
        out[i] = (file_version){0};
        if (context->paths[i] == NULL)
            continue;
        if (stat(context->paths[i], &info) != 0)
            return KELP_ERROR(KELP_NOT_FOUND, "cannot read the TLS file '%s': %s",
                              context->paths[i], strerror(errno));
        out[i] = (file_version){info.st_dev, info.st_ino, info.st_size, info.st_mtim};
    }
    return NULL;
}

static bool same_versions(const file_version *a, const file_version *b) {
    for (size_t i = 0; i < FILES; i++)
        if (a[i].device != b[i].device || a[i].inode != b[i].inode || a[i].size != b[i].size ||
            a[i].modified.tv_sec != b[i].modified.tv_sec ||
            a[i].modified.tv_nsec != b[i].modified.tv_nsec)
            return false;
    return true;
}

void kelp_tls_context_reload(kelp_tls_context *context) {
    file_version versions[FILES];
    kelp_status *status = read_versions(context, versions);
    if (status != NULL) { /* the file is being replaced */
        kelp_status_free(status);
        return;
    }
    if (same_versions(versions, context->versions))
        return;
    memcpy(context->versions, versions, sizeof versions);
    status = load(context);
    if (status == NULL) {
        KELP_LOGF(context->logger, KELP_LOG_INFO, "loaded the changed TLS certificate '%s'",
                  context->paths[0]);
        return;
    }
    KELP_LOGF(context->logger, KELP_LOG_ERROR, "the previous TLS certificate remains in use: %s",
              kelp_status_message(status));
    kelp_status_free(status);
}

/* ---- creation ---- */

static kelp_status *context_init(kelp_tls_context *context, const kelp_tls_options *options) {
    bool auth = options->client_auth != KELP_TLS_CLIENT_AUTH_NONE;
    const char *paths[FILES] = {options->cert_path, options->key_path,
                                auth ? options->ca_path : NULL};
    if (paths[0] == NULL || paths[1] == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "TLS needs a certificate and a key");
    if (auth && paths[2] == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "TLS client certificates need a file of authorities");
    for (size_t i = 0; i < FILES; i++)
        if (paths[i] != NULL)
            KELP_TRY(kelp_strdup(context->allocator, paths[i], &context->paths[i]));
    KELP_TRY(kelp_openssl_load(&context->fn));
    KELP_TRY(read_versions(context, context->versions));
    return load(context);
}

kelp_status *kelp_tls_context_create(const kelp_tls_options *options, kelp_allocator allocator,
                                     const kelp_logger *logger, kelp_tls_context **out) {
    kelp_tls_context *context;
    KELP_TRY(KELP_NEW(allocator, kelp_tls_context, &context));
    context->allocator = allocator;
    context->logger = logger;
    context->client_auth = options->client_auth;
    pthread_mutex_init(&context->mutex, NULL);
    kelp_status *status = context_init(context, options);
    if (status != NULL) {
        kelp_tls_context_destroy(context);
        return status;
    }
    *out = context;
    return NULL;
}

void kelp_tls_context_destroy(kelp_tls_context *context) {
    if (context == NULL)
        return;
    if (context->ssl != NULL)
        context->fn->SSL_CTX_free(context->ssl);
    for (size_t i = 0; i < FILES; i++)
        if (context->paths[i] != NULL)
            kelp_free_string(context->allocator, context->paths[i]);
    pthread_mutex_destroy(&context->mutex);
    kelp_free(context->allocator, context, sizeof *context);
}

SSL_CTX *kelp_tls_context_acquire(kelp_tls_context *context, const kelp_openssl **out_functions) {
    *out_functions = context->fn;
    pthread_mutex_lock(&context->mutex);
    SSL_CTX *ssl = context->ssl;
    context->fn->SSL_CTX_up_ref(ssl);
    pthread_mutex_unlock(&context->mutex);
    return ssl;
}
