/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of OpenSSL 3 that Kelp uses, loaded from libssl.so.3 for the first server with TLS.
 * Constants and signatures: ssl.h, bio.h, err.h and x509_vfy.h of OpenSSL 3.0. Declared here, so
 * that the build needs no headers of OpenSSL, and programs without TLS need no library.
 */
#ifndef KELP_FRONTENDS_TLS_OPENSSL_H_
#define KELP_FRONTENDS_TLS_OPENSSL_H_

#include <kelp/status.h>

typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_method_st SSL_METHOD;
typedef struct bio_st BIO;
typedef struct bio_method_st BIO_METHOD;
typedef struct stack_st_X509_NAME X509_NAMES;

#define SSL_ERROR_NONE 0
#define SSL_ERROR_SSL 1
#define SSL_ERROR_WANT_READ 2
#define SSL_ERROR_WANT_WRITE 3
#define SSL_ERROR_ZERO_RETURN 6
#define SSL_FILETYPE_PEM 1
#define SSL_VERIFY_PEER 1
#define SSL_VERIFY_FAIL_IF_NO_PEER_CERT 2
#define SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER 2L
#define SSL_MODE_RELEASE_BUFFERS 16L
#define SSL_OP_CIPHER_SERVER_PREFERENCE (UINT64_C(1) << 22)
#define SSL_OP_NO_COMPRESSION (UINT64_C(1) << 17)
#define SSL_OP_NO_RENEGOTIATION (UINT64_C(1) << 30)
#define SSL_OP_IGNORE_UNEXPECTED_EOF (UINT64_C(1) << 7)
#define SSL_CTRL_MODE 33
#define SSL_CTRL_SET_SESS_CACHE_MODE 44
#define SSL_CTRL_SET_MIN_PROTO_VERSION 123
#define TLS1_2_VERSION 0x0303L
#define SSL_TLSEXT_ERR_OK 0
#define SSL_TLSEXT_ERR_NOACK 3
#define BIO_TYPE_SOURCE_SINK 0x0400
#define BIO_CTRL_FLUSH 11
#define BIO_FLAGS_READ 1
#define BIO_FLAGS_WRITE 2
#define BIO_FLAGS_SHOULD_RETRY 8
#define X509_V_OK 0L

/* The functions, in the order of the table in openssl.c. */
typedef struct kelp_openssl {
    const SSL_METHOD *(*TLS_server_method)(void);
    SSL_CTX *(*SSL_CTX_new)(const SSL_METHOD *method);
    void (*SSL_CTX_free)(SSL_CTX *context);
    int (*SSL_CTX_up_ref)(SSL_CTX *context);
    long (*SSL_CTX_ctrl)(SSL_CTX *context, int command, long number, void *pointer);
    uint64_t (*SSL_CTX_set_options)(SSL_CTX *context, uint64_t options);
    int (*SSL_CTX_use_certificate_chain_file)(SSL_CTX *context, const char *path);
    int (*SSL_CTX_use_PrivateKey_file)(SSL_CTX *context, const char *path, int type);
    void (*SSL_CTX_set_default_passwd_cb)(SSL_CTX *context,
                                          int (*callback)(char *password, int capacity, int writing,
                                                          void *userp));
    int (*SSL_CTX_check_private_key)(const SSL_CTX *context);
    int (*SSL_CTX_load_verify_locations)(SSL_CTX *context, const char *file, const char *directory);
    X509_NAMES *(*SSL_load_client_CA_file)(const char *path);
    void (*SSL_CTX_set_client_CA_list)(SSL_CTX *context, X509_NAMES *take_names);
    void (*SSL_CTX_set_verify)(SSL_CTX *context, int mode, void *callback);
    void (*SSL_CTX_set_alpn_select_cb)(SSL_CTX *context,
                                       int (*callback)(SSL *ssl, const unsigned char **out,
                                                       unsigned char *out_length,
                                                       const unsigned char *in, unsigned in_length,
                                                       void *userp),
                                       void *userp);
    int (*SSL_CTX_set_session_id_context)(SSL_CTX *context, const unsigned char *id,
                                          unsigned length);
    SSL *(*SSL_new)(SSL_CTX *context);
    void (*SSL_free)(SSL *ssl);
    void (*SSL_set_bio)(SSL *ssl, BIO *take_read, BIO *take_write);
    void (*SSL_set_accept_state)(SSL *ssl);
    int (*SSL_do_handshake)(SSL *ssl);
    int (*SSL_read)(SSL *ssl, void *data, int length);
    int (*SSL_write)(SSL *ssl, const void *data, int length);
    int (*SSL_shutdown)(SSL *ssl);
    int (*SSL_get_error)(const SSL *ssl, int result);
    int (*SSL_has_pending)(const SSL *ssl);
    long (*SSL_get_verify_result)(const SSL *ssl);
    BIO_METHOD *(*BIO_meth_new)(int type, const char *name);
    void (*BIO_meth_free)(BIO_METHOD *method);
    int (*BIO_meth_set_read)(BIO_METHOD *method, int (*read)(BIO *bio, char *data, int length));
    int (*BIO_meth_set_write)(BIO_METHOD *method,
                              int (*write)(BIO *bio, const char *data, int length));
    int (*BIO_meth_set_ctrl)(BIO_METHOD *method,
                             long (*ctrl)(BIO *bio, int command, long number, void *pointer));
    BIO *(*BIO_new)(const BIO_METHOD *method);
    void (*BIO_set_init)(BIO *bio, int init);
    void (*BIO_set_data)(BIO *bio, void *data);
    void *(*BIO_get_data)(BIO *bio);
    void (*BIO_set_flags)(BIO *bio, int flags);
    void (*BIO_clear_flags)(BIO *bio, int flags);
    unsigned long (*ERR_get_error)(void);
    void (*ERR_clear_error)(void);
    const char *(*ERR_reason_error_string)(unsigned long error);
    const char *(*X509_verify_cert_error_string)(long result);
    void (*OPENSSL_thread_stop)(void);
} kelp_openssl;

/* Returns the functions. Fails if the library is not installed. Any thread. */
kelp_status *kelp_openssl_load(const kelp_openssl **out) KELP_MUST_USE;

#endif
