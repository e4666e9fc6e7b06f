/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/tls/stream.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#define WRITE_MAX_BYTES ((size_t)256 * 1024)   /* of plaintext in a call */
#define OUTPUT_KEEP_BYTES ((size_t)512 * 1024) /* of a thread */
#define DIRECT_MIN_BYTES ((size_t)8 * 1024)    /* of a piece that is not copied before encryption */

struct kelp_tls_stream {
    kelp_tls_buffers *buffers;
    const kelp_openssl *fn;
    SSL *ssl;
    int fd;
    kelp_str in;       /* ciphertext that OpenSSL has not taken, during a call */
    kelp_buf input;    /* the same between calls */
    kelp_buf output;   /* ciphertext that the socket has not taken */
    size_t output_at;  /* what it has taken of that */
    size_t accepted;   /* plaintext in `output`, which write() has not reported */
    bool input_ends;   /* the client has shut down its side */
    bool input_blocks; /* during a call: the socket is empty */
    bool refilled;     /* during a call: `in` is in the buffer of the thread, not in `input` */
    bool has_input;
    bool failed;
};

/* Set once: the functions for the BIO, and its method, which is never freed. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const kelp_openssl *functions;
static BIO_METHOD *method;

/* ---- the socket ---- */

/* Reads ciphertext into the buffer of the thread. */
static void refill(kelp_tls_stream *s) {
    ssize_t n;
    do
        n = recv(s->fd, s->buffers->input, KELP_TLS_INPUT_BYTES, 0);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        s->in = (kelp_str){s->buffers->input, (size_t)n};
        s->refilled = true;
        s->input_blocks = (size_t)n < KELP_TLS_INPUT_BYTES; /* usually the socket is empty */
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        s->input_blocks = true;
    } else {
        s->input_ends = true;
        s->failed = s->failed || n < 0;
    }
}

/* Sends ciphertext. Returns the number of bytes that the socket took. */
static size_t send_some(kelp_tls_stream *s, const char *data, size_t length) {
    size_t sent = 0;
    while (sent < length) {
        ssize_t n = send(s->fd, data + sent, length - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
            s->failed = true;
        if (n <= 0)
            break;
        sent += (size_t)n;
    }
    return sent;
}

void kelp_tls_stream_flush(kelp_tls_stream *s) {
    kelp_buf *shared = &s->buffers->output;
    if (s->output.length > 0) {
        s->output_at +=
            send_some(s, s->output.data + s->output_at, s->output.length - s->output_at);
        if (s->output_at < s->output.length)
            return;
        kelp_buf_deinit(&s->output);
        s->output_at = 0;
    }
    size_t sent = shared->length > 0 ? send_some(s, shared->data, shared->length) : 0;
    if (sent < shared->length)
        kelp_buf_append(&s->output, shared->data + sent, shared->length - sent);
    if (s->output.failed)
        s->failed = true;
    if (shared->capacity > OUTPUT_KEEP_BYTES)
        kelp_buf_deinit(shared);
    kelp_buf_clear(shared);
}

/* ---- the BIO ---- */

static int on_read(BIO *bio, char *data, int length) {
    kelp_tls_stream *s = functions->BIO_get_data(bio);
    functions->BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY);
    if (s->in.length == 0 && !s->input_blocks && !s->input_ends)
        refill(s);
    if (s->in.length == 0 && s->input_ends)
        return 0;
    if (s->in.length == 0) {
        functions->BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
        return -1;
    }
    size_t n = KELP_MIN(s->in.length, (size_t)length);
    memcpy(data, s->in.data, n);
    s->in.data += n;
    s->in.length -= n;
    return (int)n;
}

static int on_write(BIO *bio, const char *data, int length) {
    kelp_tls_stream *s = functions->BIO_get_data(bio);
    /* Ciphertext that waits already precedes this one. */
    kelp_buf *output = s->output.length > 0 ? &s->output : &s->buffers->output;
    kelp_buf_append(output, data, (size_t)length);
    return output->failed ? -1 : length;
}

static long on_control(BIO *bio, int command, long number, void *pointer) {
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static void create_method(void) {
    kelp_status_free(kelp_openssl_load(&functions)); /* it was loaded for the context */
    method = functions->BIO_meth_new(BIO_TYPE_SOURCE_SINK, "kelp");
    if (method == NULL)
        return;
    functions->BIO_meth_set_read(method, on_read);
    functions->BIO_meth_set_write(method, on_write);
    functions->BIO_meth_set_ctrl(method, on_control);
}

/* ---- calls ---- */

static void begin_call(kelp_tls_stream *s) {
    KELP_ASSERT(s->buffers->output.length == 0);
    s->in = (kelp_str){s->input.data, s->input.length};
    s->input_blocks = false;
    s->refilled = false;
    s->fn->ERR_clear_error();
}

/* Keeps ciphertext that was not taken, and sends what was written. */
static void end_call(kelp_tls_stream *s) {
    if (s->in.length == 0) {
        if (s->input.capacity > 0)
            kelp_buf_deinit(&s->input);
    } else if (!s->refilled) {
        memmove(s->input.data, s->in.data, s->in.length);
        s->input.length = s->in.length;
    } else {
        kelp_buf_clear(&s->input);
        kelp_buf_append(&s->input, s->in.data, s->in.length);
        s->failed = s->failed || s->input.failed;
    }
    s->in = (kelp_str){0};
    kelp_tls_stream_flush(s);
}

static ssize_t fail_with(int error) {
    errno = error;
    return -1;
}

kelp_tls_handshake kelp_tls_stream_handshake(kelp_tls_stream *s, const char **out_reason) {
    begin_call(s);
    int result = s->fn->SSL_do_handshake(s->ssl);
    int error = result == 1 ? SSL_ERROR_NONE : s->fn->SSL_get_error(s->ssl, result);
    *out_reason = NULL;
    if (error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_READ) {
        long verified = s->fn->SSL_get_verify_result(s->ssl);
        unsigned long code = s->fn->ERR_get_error();
        if (verified != X509_V_OK)
            *out_reason = s->fn->X509_verify_cert_error_string(verified);
        else if (code != 0)
            *out_reason = s->fn->ERR_reason_error_string(code);
        if (*out_reason == NULL)
            *out_reason = "the client closed the connection";
    }
    /* end_call() sends the alert; unread ciphertext may be the first request */
    s->has_input = s->in.length > 0 || !s->input_blocks;
    end_call(s);
    if (*out_reason != NULL)
        return KELP_TLS_HANDSHAKE_FAILED;
    if (s->failed) {
        *out_reason = "the connection failed";
        return KELP_TLS_HANDSHAKE_FAILED;
    }
    return error == SSL_ERROR_NONE ? KELP_TLS_HANDSHAKE_DONE : KELP_TLS_HANDSHAKE_AGAIN;
}

/* Decrypts into memory. Returns false if there is no more to decrypt. */
static bool decrypt(kelp_tls_stream *s, struct iovec space, size_t *inout_total) {
    size_t done = 0;
    while (done < space.iov_len) {
        size_t step = KELP_MIN(space.iov_len - done, (size_t)1 << 30);
        int n = s->fn->SSL_read(s->ssl, (char *)space.iov_base + done, (int)step);
        if (n > 0) {
            done += (size_t)n;
            *inout_total += (size_t)n;
            continue;
        }
        int error = s->fn->SSL_get_error(s->ssl, n);
        s->has_input = false;
        if (error == SSL_ERROR_ZERO_RETURN)
            s->input_ends = true;
        else if (error != SSL_ERROR_WANT_READ)
            s->failed = true;
        return false;
    }
    return true;
}

ssize_t kelp_tls_stream_read(kelp_tls_stream *s, const struct iovec *iov, size_t count) {
    size_t total = 0;
    if (s->failed)
        return fail_with(ECONNRESET);
    begin_call(s);
    s->has_input = true;
    for (size_t i = 0; i < count; i++)
        if (!decrypt(s, iov[i], &total))
            break;
    end_call(s);
    if (total > 0)
        return (ssize_t)total;
    if (s->failed)
        return fail_with(ECONNRESET);
    return s->input_ends ? 0 : fail_with(EAGAIN);
}

/* Encrypts bytes. Returns false after a failure. */
static bool encrypt(kelp_tls_stream *s, const char *data, size_t length) {
    if (length == 0)
        return true;
    int n = s->fn->SSL_write(s->ssl, data, (int)length);
    if (n != (int)length) /* the BIO takes everything */
        s->failed = true;
    return !s->failed;
}

/* Encrypts pieces, the small ones together in records. Returns the number of bytes. */
static size_t encrypt_all(kelp_tls_stream *s, const struct iovec *iov, size_t count) {
    char *record = s->buffers->record;
    size_t held = 0, total = 0;
    for (size_t i = 0; i < count && total < WRITE_MAX_BYTES; i++) {
        const char *data = iov[i].iov_base;
        size_t left = KELP_MIN(iov[i].iov_len, WRITE_MAX_BYTES - total);
        total += left;
        while (left > 0) {
            bool direct = held == 0 && left >= DIRECT_MIN_BYTES;
            size_t n = direct ? left : KELP_MIN(left, KELP_TLS_RECORD_BYTES - held);
            if (!direct)
                memcpy(record + held, data, n);
            else if (!encrypt(s, data, n))
                return total;
            held += direct ? 0 : n;
            data += n;
            left -= n;
            if (held == KELP_TLS_RECORD_BYTES) {
                if (!encrypt(s, record, held))
                    return total;
                held = 0;
            }
        }
    }
    (void)encrypt(s, record, held);
    return total;
}

ssize_t kelp_tls_stream_write(kelp_tls_stream *s, const struct iovec *iov, size_t count) {
    if (!s->failed && s->output.length > 0)
        kelp_tls_stream_flush(s);
    if (s->failed)
        return fail_with(EPIPE);
    if (s->output.length > 0)
        return fail_with(EAGAIN);
    if (s->accepted == 0) {
        begin_call(s);
        s->accepted = encrypt_all(s, iov, count);
        end_call(s);
        if (s->failed)
            return fail_with(EPIPE);
        if (s->output.length > 0)
            return fail_with(EAGAIN);
    }
    ssize_t n = (ssize_t)s->accepted;
    s->accepted = 0;
    return n;
}

bool kelp_tls_stream_has_input(const kelp_tls_stream *s) {
    return s->has_input || s->failed; /* the next read reports the failure */
}

bool kelp_tls_stream_has_output(const kelp_tls_stream *s) {
    return s->output.length > 0 && !s->failed;
}

void kelp_tls_stream_shutdown(kelp_tls_stream *s) {
    if (s->failed)
        return;
    begin_call(s);
    (void)s->fn->SSL_shutdown(s->ssl);
    end_call(s);
}

/* ---- creation ---- */

kelp_status *kelp_tls_buffers_init(kelp_tls_buffers *buffers, kelp_allocator allocator) {
    *buffers = (kelp_tls_buffers){.allocator = allocator};
    kelp_buf_init(&buffers->output, allocator);
    KELP_TRY(kelp_alloc(allocator, KELP_TLS_INPUT_BYTES, (void **)&buffers->input));
    return kelp_alloc(allocator, KELP_TLS_RECORD_BYTES, (void **)&buffers->record);
}

void kelp_tls_buffers_deinit(kelp_tls_buffers *buffers) {
    kelp_free(buffers->allocator, buffers->input, KELP_TLS_INPUT_BYTES);
    kelp_free(buffers->allocator, buffers->record, KELP_TLS_RECORD_BYTES);
    kelp_buf_deinit(&buffers->output);
}

static kelp_status *stream_init(kelp_tls_stream *s, kelp_tls_context *context, kelp_str received) {
    SSL_CTX *ssl_context = kelp_tls_context_acquire(context, &s->fn);
    pthread_once(&once, create_method);
    s->ssl = s->fn->SSL_new(ssl_context);
    s->fn->SSL_CTX_free(ssl_context); /* the stream holds a reference */
    BIO *bio = method != NULL && s->ssl != NULL ? s->fn->BIO_new(method) : NULL;
    kelp_buf_append_str(&s->input, received);
    KELP_TRY(kelp_buf_status(&s->input));
    if (bio == NULL)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "out of memory for a TLS connection");
    s->fn->BIO_set_data(bio, s);
    s->fn->BIO_set_init(bio, 1);
    s->fn->SSL_set_bio(s->ssl, bio, bio);
    s->fn->SSL_set_accept_state(s->ssl);
    return NULL;
}

kelp_status *kelp_tls_stream_create(kelp_tls_context *context, kelp_tls_buffers *buffers, int fd,
                                    kelp_str received, kelp_tls_stream **out) {
    kelp_tls_stream *s;
    KELP_TRY(KELP_NEW(buffers->allocator, kelp_tls_stream, &s));
    s->buffers = buffers;
    s->fd = fd;
    kelp_buf_init(&s->input, buffers->allocator);
    kelp_buf_init(&s->output, buffers->allocator);
    kelp_status *status = stream_init(s, context, received);
    if (status != NULL) {
        kelp_tls_stream_destroy(s);
        return status;
    }
    *out = s;
    return NULL;
}

void kelp_tls_stream_destroy(kelp_tls_stream *s) {
    if (s == NULL)
        return;
    s->fn->SSL_free(s->ssl);
    kelp_buf_deinit(&s->input);
    kelp_buf_deinit(&s->output);
    kelp_free(s->buffers->allocator, s, sizeof *s);
}
