/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the server's side of TLS against a client of OpenSSL in memory. The input is a program:
 * each pair of bytes is a step, such as to pass a part of the ciphertext to the server's socket.
 * What one side receives is what the other has sent, unless ciphertext was damaged. */
#include "base/assert.h"
#include "base/checked.h"
#include "frontends/tls/stream.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_STEPS 200
#define MAX_DATA ((size_t)70000)

/* ---- the client: functions of OpenSSL that the server does not use ---- */

static struct {
    const SSL_METHOD *(*TLS_client_method)(void);
    void (*SSL_set_connect_state)(SSL *ssl);
    const BIO_METHOD *(*BIO_s_mem)(void);
    int (*BIO_write)(BIO *bio, const void *data, int length);
    int (*BIO_read)(BIO *bio, void *data, int length);
} client_functions;
static const kelp_openssl *fn;
static SSL_CTX *client_context;
static kelp_tls_context *server_context;
static kelp_tls_buffers buffers;

static void *symbol(const char *name) {
    void *library = dlopen("libssl.so.3", RTLD_NOW);
    void *found = library != NULL ? dlsym(library, name) : NULL;
    if (found == NULL)
        abort();
    return found;
}

/* Returns false if the machine has no OpenSSL. */
static bool start(void) {
    static bool started, found;
    char directory[] = P_tmpdir "/kelp-fuzz-tls-XXXXXX", command[512], cert[128], key[128];
    if (started)
        return found;
    started = true;
    kelp_status *status = kelp_openssl_load(&fn);
    if (status != NULL || mkdtemp(directory) == NULL) {
        kelp_status_free(status);
        return false;
    }
    snprintf(cert, sizeof cert, "%s/cert.pem", directory);
    snprintf(key, sizeof key, "%s/key.pem", directory);
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
             "-subj /CN=localhost -keyout %s -out %s 2>/dev/null",
             key, cert);
    if (system(command) != 0)
        return false;
    kelp_tls_options options = {.cert_path = cert, .key_path = key};
    static const kelp_logger logger;
    status = kelp_tls_context_create(&options, kelp_allocator_system(), &logger, &server_context);
    if (status == NULL)
        status = kelp_tls_buffers_init(&buffers, kelp_allocator_system());
    if (status != NULL)
        abort();
    unlink(cert);
    unlink(key);
    rmdir(directory);
    *(void **)&client_functions.TLS_client_method = symbol("TLS_client_method");
    *(void **)&client_functions.SSL_set_connect_state = symbol("SSL_set_connect_state");
    *(void **)&client_functions.BIO_s_mem = symbol("BIO_s_mem");
    *(void **)&client_functions.BIO_write = symbol("BIO_write");
    *(void **)&client_functions.BIO_read = symbol("BIO_read");
    client_context = fn->SSL_CTX_new(client_functions.TLS_client_method());
    found = client_context != NULL;
    return found;
}

/* ---- a connection ---- */

typedef struct peers {
    kelp_tls_stream *server;
    int server_fd, client_fd;
    SSL *client;
    BIO *client_in, *client_out;
    kelp_buf ciphertext; /* of the client, not yet sent */
    size_t ciphertext_at;
    bool established, damaged, ended;
    uint32_t client_sent, client_received, server_sent, server_received; /* bytes */
    size_t unwritten; /* bytes that the server must write again */
} peers;

static unsigned char pattern(uint32_t at) {
    return (unsigned char)(at * 7 + (at >> 8));
}

static void fill(char *data, size_t length, uint32_t at) {
    for (size_t i = 0; i < length; i++)
        data[i] = (char)pattern(at + (uint32_t)i);
}

static void check(const peers *p, const char *data, size_t length, uint32_t *inout_at) {
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)data[i] != pattern((*inout_at)++) && !p->damaged)
            abort();
}

/* Takes the ciphertext that the client has produced. */
static void take_ciphertext(peers *p) {
    static char data[20000];
    for (int n; (n = client_functions.BIO_read(p->client_out, data, sizeof data)) > 0;)
        kelp_buf_append(&p->ciphertext, data, (size_t)n);
}

static void client_step(peers *p) {
    static char data[MAX_DATA];
    for (ssize_t n; (n = recv(p->client_fd, data, 5000, MSG_DONTWAIT)) > 0;)
        (void)client_functions.BIO_write(p->client_in, data, (int)n);
    for (int n; (n = fn->SSL_read(p->client, data, sizeof data)) > 0;)
        check(p, data, (size_t)n, &p->client_received);
    fn->ERR_clear_error();
    take_ciphertext(p);
}

static void client_write(peers *p, size_t length) {
    static char data[MAX_DATA];
    fill(data, length, p->client_sent);
    int n = fn->SSL_write(p->client, data, (int)length);
    p->client_sent += n > 0 ? (uint32_t)n : 0;
    fn->ERR_clear_error();
    take_ciphertext(p);
}

/* Passes bytes to the server's socket. */
static void deliver(peers *p, size_t length) {
    size_t left = p->ciphertext.length - p->ciphertext_at;
    ssize_t n = send(p->client_fd, p->ciphertext.data + p->ciphertext_at, KELP_MIN(length, left),
                     MSG_DONTWAIT | MSG_NOSIGNAL);
    p->ciphertext_at += n > 0 ? (size_t)n : 0;
}

static void server_read(peers *p, size_t first, size_t second) {
    static char data[MAX_DATA];
    if (!p->established) {
        const char *reason;
        kelp_tls_handshake result = kelp_tls_stream_handshake(p->server, &reason);
        p->established = result == KELP_TLS_HANDSHAKE_DONE;
        p->ended = result == KELP_TLS_HANDSHAKE_FAILED;
        KELP_ASSERT((reason != NULL) == p->ended);
        return;
    }
    struct iovec space[] = {{data, first}, {data + first, second}};
    ssize_t n = kelp_tls_stream_read(p->server, space, 2);
    KELP_ASSERT(n <= (ssize_t)(first + second));
    if (n > 0)
        check(p, data, (size_t)n, &p->server_received);
    p->ended = n == 0 || (n < 0 && errno != EAGAIN);
}

static void server_write(peers *p, size_t first, size_t second) {
    static char data[MAX_DATA];
    if (!p->established)
        return;
    if (p->unwritten > 0) { /* the same bytes */
        first = p->unwritten;
        second = 0;
    }
    fill(data, first + second, p->server_sent);
    struct iovec pieces[] = {{data, first}, {data + first, second}};
    ssize_t n = kelp_tls_stream_write(p->server, pieces, 2);
    p->unwritten = n < 0 && errno == EAGAIN ? first + second : 0;
    if (n > 0)
        p->server_sent += (uint32_t)n;
    else if (p->unwritten == 0 && first + second > 0)
        p->ended = true;
}

static void step(peers *p, unsigned operation, size_t amount) {
    switch (operation % 10) {
    case 0:
        client_write(p, amount * 3);
        break;
    case 1:
        client_write(p, amount * 270);
        break;
    case 2:
        deliver(p, amount);
        break;
    case 3:
        deliver(p, amount * 100);
        break;
    case 4:
        server_read(p, amount * 7 % 300, amount * 200);
        break;
    case 5:
        server_write(p, amount, amount * 13);
        break;
    case 6:
        server_write(p, amount * 100, amount * 170);
        break;
    case 7:
        client_step(p);
        break;
    case 8:
        if (p->ciphertext_at < p->ciphertext.length && amount % 4 == 0) {
            p->ciphertext.data[p->ciphertext_at] ^= (char)(amount | 1);
            p->damaged = true;
        } else if (amount % 4 == 1) {
            (void)fn->SSL_shutdown(p->client);
            fn->ERR_clear_error();
            take_ciphertext(p);
        } else if (amount % 64 == 2) {
            shutdown(p->client_fd, SHUT_WR);
        }
        break;
    default:
        if (amount % 16 == 0)
            kelp_tls_stream_shutdown(p->server);
        else
            kelp_tls_stream_flush(p->server);
    }
}

static void connect_peers(peers *p, kelp_str received) {
    int fds[2], small = 4096;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0)
        abort();
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    p->server_fd = fds[0];
    p->client_fd = fds[1];
    p->client = fn->SSL_new(client_context);
    p->client_in = fn->BIO_new(client_functions.BIO_s_mem());
    p->client_out = fn->BIO_new(client_functions.BIO_s_mem());
    fn->SSL_set_bio(p->client, p->client_in, p->client_out);
    client_functions.SSL_set_connect_state(p->client);
    kelp_buf_init(&p->ciphertext, kelp_allocator_system());
    (void)fn->SSL_do_handshake(p->client);
    take_ciphertext(p);
    size_t first = KELP_MIN(received.length, p->ciphertext.length);
    p->ciphertext_at = first; /* the connection has read them to detect TLS */
    if (kelp_tls_stream_create(server_context, &buffers, p->server_fd,
                               (kelp_str){p->ciphertext.data, first}, &p->server) != NULL)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || !start())
        return 0;
    peers p = {0};
    connect_peers(&p, (kelp_str){(const char *)data, data[0] + (size_t)1});
    if (data[1] % 8 != 0) /* most inputs begin after the handshake */
        for (int i = 0; i < 4 && !p.established && !p.ended; i++) {
            deliver(&p, MAX_DATA);
            server_read(&p, 0, 0);
            client_step(&p);
        }
    for (size_t i = 2; i + 1 < size && i < (size_t)2 * MAX_STEPS && !p.ended; i += 2)
        step(&p, data[i], data[i + 1]);
    (void)kelp_tls_stream_has_input(p.server);
    (void)kelp_tls_stream_has_output(p.server);
    kelp_tls_stream_destroy(p.server);
    fn->SSL_free(p.client);
    kelp_buf_deinit(&p.ciphertext);
    kelp_buf_deinit(&buffers.output);
    close(p.server_fd);
    close(p.client_fd);
    return 0;
}
