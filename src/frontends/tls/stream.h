/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS on a non-blocking socket. OpenSSL reads and writes through buffers of the thread, so that one
 * system call transfers many records, and idle connections keep no buffers. Used by one thread.
 */
#ifndef KELP_FRONTENDS_TLS_STREAM_H_
#define KELP_FRONTENDS_TLS_STREAM_H_

#include "base/buf.h"
#include "frontends/tls/context.h"

#include <sys/types.h>
#include <sys/uio.h>

typedef struct kelp_tls_stream kelp_tls_stream;

#define KELP_TLS_INPUT_BYTES ((size_t)64 * 1024)
#define KELP_TLS_RECORD_BYTES ((size_t)16 * 1024)

/* Buffers that the streams of a thread share. */
typedef struct kelp_tls_buffers {
    kelp_allocator allocator;
    char *input;     /* KELP_TLS_INPUT_BYTES of received ciphertext */
    char *record;    /* KELP_TLS_RECORD_BYTES of plaintext, from small pieces */
    kelp_buf output; /* ciphertext to send */
} kelp_tls_buffers;

/* The result of a handshake. */
typedef enum kelp_tls_handshake {
    KELP_TLS_HANDSHAKE_DONE,
    KELP_TLS_HANDSHAKE_AGAIN, /* after the next event */
    KELP_TLS_HANDSHAKE_FAILED
} kelp_tls_handshake;

kelp_status *kelp_tls_buffers_init(kelp_tls_buffers *buffers,
                                   kelp_allocator allocator) KELP_MUST_USE;
void kelp_tls_buffers_deinit(kelp_tls_buffers *buffers);

/* Creates the server's side of a stream. `received` is ciphertext that was read already; copied. */
kelp_status *kelp_tls_stream_create(kelp_tls_context *context, kelp_tls_buffers *buffers, int fd,
                                    kelp_str received, kelp_tls_stream **out) KELP_MUST_USE;
/* Frees the stream without closing the socket. NULL is ignored. */
void kelp_tls_stream_destroy(kelp_tls_stream *s);
/* Continues the handshake. *out_reason is the reason of a failure; static text. */
kelp_tls_handshake kelp_tls_stream_handshake(kelp_tls_stream *s, const char **out_reason);
/* Reads like readv: returns 0 at the end, and -1 with errno EAGAIN if nothing has arrived. */
ssize_t kelp_tls_stream_read(kelp_tls_stream *s, const struct iovec *iov, size_t count);
/* Writes like writev. After EAGAIN, the caller must repeat the call with the same bytes, perhaps
 * followed by others, because they are encrypted already. */
ssize_t kelp_tls_stream_write(kelp_tls_stream *s, const struct iovec *iov, size_t count);
/* Returns true if another read may return bytes although no event of the socket follows. */
bool kelp_tls_stream_has_input(const kelp_tls_stream *s);
/* Returns true if ciphertext waits until the socket is writable. */
bool kelp_tls_stream_has_output(const kelp_tls_stream *s);
/* Sends waiting ciphertext. */
void kelp_tls_stream_flush(kelp_tls_stream *s);
/* Tells the client that no more data follows. */
void kelp_tls_stream_shutdown(kelp_tls_stream *s);

#endif
