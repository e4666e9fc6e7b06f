/* SPDX-License-Identifier: Apache-2.0 */
/* Responses of HTTP/2 streams. */
#include "base/assert.h"
#include "base/checked.h"
#include "frontends/h2/internal.h"

#define MAX_NVS (KELP_HTTP_MAX_RESPONSE_HEADERS + KELP_HTTP_MAX_TRAILERS + 2)
#define NUMBER_BYTES 24
#define FRAME_HEAD_BYTES 9
/* Smaller pieces are copied, because an element of the iov costs more. */
#define COPY_MAX_BYTES 1024
/* Limits of the bytes that are generated before a write. */
#define OUTPUT_MAX_BYTES ((uint64_t)2 * 1024 * 1024)
#define OUTPUT_MAX_SEGMENTS 256

/* ---- headers ---- */

static nghttp2_nv nv_of(kelp_str name, kelp_str value) {
    /* nghttp2 copies both, and converts the name to lower case. */
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.data, (uint8_t *)(uintptr_t)value.data,
                        name.length, value.length, NGHTTP2_NV_FLAG_NONE};
}

static size_t put_headers(const kelp_http_header *headers, size_t count, nghttp2_nv *out) {
    for (size_t i = 0; i < count; i++)
        out[i] = nv_of(headers[i].name, headers[i].value);
    return count;
}

/* Submits the trailers. The last DATA frame did not end the stream. */
static int submit_trailers(const kelp_http2_stream *s) {
    nghttp2_nv nvs[KELP_HTTP_MAX_TRAILERS];
    size_t count = put_headers(s->exchange->trailers, s->exchange->trailer_count, nvs);
    return nghttp2_submit_trailer(s->connection->session, s->id, nvs, count);
}

/* ---- the body ---- */

/* Returns the number of bytes for the next DATA frame. Implements
 * nghttp2_data_source_read_callback.
 */
static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length,
                       uint32_t *flags, nghttp2_data_source *source, void *userp) {
    (void)session;
    (void)id;
    (void)buffer;
    kelp_http2_connection *c = userp;
    kelp_http2_stream *s = source->ptr;
    const kelp_http2_output *output = &c->shared->output;
    if (output->unsent_bytes >= OUTPUT_MAX_BYTES || output->count >= OUTPUT_MAX_SEGMENTS) {
        c->paused = true;
        return NGHTTP2_ERR_PAUSE;
    }
    uint64_t left = s->part_bytes - s->generated_bytes;
    if (s->responding && !s->last_part && left == 0) { /* a part without a body */
        if (!kelp_http2_output_end_part(&c->shared->output, s))
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        s->responding = false;
    }
    if (!s->responding) {
        s->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    size_t n = (size_t)KELP_MIN(left, length);
    *flags = NGHTTP2_DATA_FLAG_NO_COPY;
    if (s->last_part && n == left) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (s->exchange->trailer_count > 0) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            if (submit_trailers(s) != 0)
                return NGHTTP2_ERR_CALLBACK_FAILURE;
        }
    }
    return (ssize_t)n;
}

/* Appends the next `length` bytes of the part. */
static bool put_part(kelp_http2_stream *s, kelp_http2_output *output, size_t length) {
    const kelp_http_exchange *exchange = s->exchange;
    while (length > 0) {
        kelp_http_piece piece = {exchange->text.data, exchange->text.length};
        if (s->piece > 0)
            piece = exchange->pieces[s->piece - 1];
        if (s->piece_offset == piece.length) {
            s->piece++;
            s->piece_offset = 0;
            continue;
        }
        const char *data = (const char *)piece.data + s->piece_offset;
        size_t n = KELP_MIN(length, piece.length - s->piece_offset);
        if (n <= COPY_MAX_BYTES ? !kelp_http2_output_copy(output, data, n)
                                : !kelp_http2_output_borrow(output, data, n, s))
            return false;
        s->piece_offset += n;
        s->generated_bytes += n;
        length -= n;
    }
    return true;
}

int kelp_http2_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                         size_t length, nghttp2_data_source *source, void *userp) {
    (void)session;
    kelp_http2_connection *c = userp;
    kelp_http2_stream *s = source->ptr;
    kelp_http2_output *output = &c->shared->output;
    KELP_ASSERT(frame->data.padlen == 0 && c->generating);
    if (!kelp_http2_output_copy(output, head, FRAME_HEAD_BYTES) || !put_part(s, output, length))
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (!s->last_part && s->generated_bytes == s->part_bytes) {
        s->responding = false;
        if (!kelp_http2_output_end_part(output, s))
            return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return 0;
}

/* ---- submitting ---- */

/* Submits status and headers, and the source of the body if there is one. */
static int submit_response(kelp_http2_stream *s) {
    const kelp_http_exchange *exchange = s->exchange;
    nghttp2_nv nvs[MAX_NVS];
    char status[NUMBER_BYTES], length[NUMBER_BYTES];
    size_t count = 0;
    size_t digits = kelp_format_u64((uint64_t)exchange->status, status);
    nvs[count++] = nv_of(KELP_STR(":status"), (kelp_str){status, digits});
    count += put_headers(exchange->headers, exchange->header_count, nvs + count);
    bool whole = s->last_part && s->part_bytes == 0; /* HEADERS end the stream */
    if (s->last_part && exchange->trailer_count == 0) {
        digits = kelp_format_u64(kelp_http_exchange_content_length(exchange), length);
        nvs[count++] = nv_of(KELP_STR("content-length"), (kelp_str){length, digits});
    }
    if (whole)
        count += put_headers(exchange->trailers, exchange->trailer_count, nvs + count);
    nghttp2_data_provider provider = {.source.ptr = s, .read_callback = on_read};
    return nghttp2_submit_response(s->connection->session, s->id, nvs, count,
                                   whole ? NULL : &provider);
}

void kelp_http2_stream_send(kelp_http_stream *stream, bool last) {
    kelp_http2_stream *s = (kelp_http2_stream *)stream;
    kelp_http2_connection *c = s->connection;
    KELP_ASSERT(s->exchange && !s->responding && !s->closed);
    s->responding = true;
    s->last_part = last;
    if (c->closed) /* the stream ends in one of the next rounds */
        return;
    s->part_bytes = s->bodyless ? 0 : kelp_http_exchange_content_length(s->exchange);
    s->generated_bytes = 0;
    s->piece = s->piece_offset = 0;
    int result = 0;
    if (!s->head_sent)
        result = submit_response(s);
    else if (s->deferred)
        result = nghttp2_session_resume_data(c->session, s->id);
    s->head_sent = true;
    s->deferred = false;
    if (result != 0)
        c->failed = true;
    kelp_http2_connection_wake(c);
}

void kelp_http2_stream_consume(kelp_http_stream *stream, size_t length) {
    kelp_http2_stream *s = (kelp_http2_stream *)stream;
    kelp_http2_connection *c = s->connection;
    KELP_ASSERT(length <= s->unconsumed_bytes);
    s->unconsumed_bytes -= length;
    if (nghttp2_session_consume(c->session, s->id, length) != 0)
        c->failed = true;
    kelp_http2_connection_wake(c);
}

void kelp_http2_stream_on_written(kelp_http2_stream *s) {
    kelp_http_exchange *exchange = s->exchange;
    s->progress_ns = kelp_event_loop_now_ns(s->connection->base.thread->loop);
    if (s->finished) {
        s->exchange = NULL;
        kelp_http_exchange_end_entry(exchange);
        kelp_http_exchange_release(exchange);
        kelp_http2_stream_recycle(s);
        return;
    }
    kelp_buf_clear(&exchange->text);
    exchange->piece_count = 0;
    exchange->handler->on_sent(exchange); /* may send the next part */
}
