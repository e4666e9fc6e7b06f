/* SPDX-License-Identifier: Apache-2.0 */
/* The types of the HTTP/2 connection, shared by its sources. */
#ifndef KELP_FRONTENDS_H2_INTERNAL_H_
#define KELP_FRONTENDS_H2_INTERNAL_H_

#include "frontends/h2/keepalive.h"
#include "frontends/h2/memory.h"
#include "frontends/h2/output.h"
#include "frontends/http/thread.h"

typedef struct kelp_http2_connection kelp_http2_connection;

/* What the connections of a thread share. */
struct kelp_http2_thread {
    kelp_allocator allocator;
    kelp_http2_memory memory; /* for nghttp2 */
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    kelp_http2_output output;   /* of the connection that is being flushed */
    kelp_http2_stream *streams; /* unused ones */
    size_t stream_count;
};

#define KELP_HTTP2_RECENT 16

/* Identifiers of the last streams that ended in some way. */
typedef struct kelp_http2_recent {
    int32_t ids[KELP_HTTP2_RECENT];
    uint32_t next;
} kelp_http2_recent;

/* Events within a second. */
typedef struct kelp_http2_counter {
    uint64_t since_ns;
    uint32_t count;
} kelp_http2_counter;

/* A request, and its response. */
struct kelp_http2_stream {
    kelp_http_stream base; /* first */
    kelp_http2_connection *connection;
    kelp_http2_stream *previous; /* of the connection */
    kelp_http2_stream *next;     /* of the connection, or of the unused ones */
    int32_t id;
    uint64_t start_ns;
    uint64_t progress_ns; /* the last time at which the client sent or received something */

    /* the request */
    kelp_http_request request;
    kelp_http_header *headers;
    size_t header_capacity;
    nghttp2_rcbuf **texts; /* of the headers; retained until on_request has returned */
    size_t text_count;
    size_t text_capacity;
    size_t head_bytes; /* as defined by SETTINGS_MAX_HEADER_LIST_SIZE */
    bool has_content_length;
    bool expects_continue;
    uint64_t content_length;
    kelp_http_handler *handler;
    uint64_t max_body_bytes;
    kelp_http_body body;
    kelp_http_status error_status; /* of a request that is rejected, or 0 */
    const char *error_text;
    kelp_http_exchange *exchange; /* NULL before on_request, and after the response was written */
    size_t unconsumed_bytes;      /* of a streamed body, for which the client got no credit */
    bool streamed;
    bool started;  /* the exchange exists or existed */
    bool received; /* the request is complete */
    bool client_reset;

    /* the response */
    uint64_t part_bytes;
    uint64_t generated_bytes; /* of the part, in frames */
    size_t piece;             /* the next one to generate; 0 is the text */
    size_t piece_offset;
    size_t queued; /* segments of the output that refer to the stream */
    bool responding;
    bool last_part;
    bool head_sent; /* the response was submitted */
    bool bodyless;  /* the response to HEAD */
    bool deferred;  /* nghttp2 waits for the next part */
    bool finished;  /* the last frame was generated */
    bool closed;    /* by nghttp2 */
};

/* A connection. */
struct kelp_http2_connection {
    kelp_http_connection base; /* first */
    kelp_http2_thread *shared;
    nghttp2_session *session;
    void *table; /* of the streams of the session; see kelp_http2_memory_relax */
    kelp_http2_stream *streams;
    size_t stream_count;
    kelp_http2_output output; /* what the socket did not take */
    kelp_event_loop_timer timer;
    kelp_event_loop_deferred flush_task;
    uint64_t active_ns;      /* the time of the last read */
    uint64_t write_ns;       /* the time of the last write */
    size_t read_bytes;       /* the maximum of the next read */
    uint32_t begun;          /* requests since the current event */
    int32_t last_id;         /* of the client's streams */
    kelp_http2_recent ended; /* by the client */
    kelp_http2_recent reset; /* by the server, while the client could still send */
    kelp_http2_counter idle_frames;
    kelp_http2_counter errors;
    kelp_http2_counter resets; /* by the client */
    kelp_http2_keepalive keepalive;
    uint32_t depth; /* of enter(); the object is freed on the outermost leave() */
    bool relaxed;   /* no memory can be returned */
    bool greeted;   /* the client has sent its settings */
    bool flush_needed;
    bool generating; /* into shared->output */
    bool paused;     /* shared->output was full */
    bool notified;   /* a GOAWAY announced the end of the connection */
    bool draining;   /* no new streams are processed */
    bool expelled;   /* the connection ends after a GOAWAY with the reason */
    bool violated;   /* the client violated the protocol; a GOAWAY names the violation */
    bool failed;     /* to be closed at once, such as without memory */
    bool lingering;  /* the sending side is shut down; received bytes are discarded */
    bool closed;     /* its streams end in this round and the next ones */
};

/* ---- connection.c ---- */
/* Sends what was submitted soon: at the end of the current call, or of the loop's round. */
void kelp_http2_connection_wake(kelp_http2_connection *c);

/* ---- stream.c ---- */
/* Returns an unused stream, and adds it to the connection; NULL if memory is exhausted. */
kelp_http2_stream *kelp_http2_stream_acquire(kelp_http2_connection *c, int32_t id);
/* Recycles a stream that is closed, if its response is written or abandoned. */
void kelp_http2_stream_recycle(kelp_http2_stream *s);
/* Frees an unused stream. */
void kelp_http2_stream_destroy(kelp_http2_stream *s, kelp_allocator allocator);
/* Appends the value of a header. Sets s->error_status if the head is too large. */
void kelp_http2_stream_add_header(kelp_http2_stream *s, nghttp2_rcbuf *name, nghttp2_rcbuf *value);
/* Processes the end of the head, received bytes of the body, and the end of the request. */
void kelp_http2_stream_on_head(kelp_http2_stream *s);
void kelp_http2_stream_on_data(kelp_http2_stream *s, const char *data, size_t length);
void kelp_http2_stream_on_end(kelp_http2_stream *s);
/* Responds to a request whose body is incomplete. `text` is borrowed until the connection ends. */
void kelp_http2_stream_reject(kelp_http2_stream *s, kelp_http_status status, const char *text);
/* Returns the time at which a body must be complete that has the bytes received so far. */
uint64_t kelp_http2_stream_body_deadline(const kelp_http2_stream *s);
/* Processes the end of a stream, or of its connection: cancels the exchange unless its response is
 * complete. */
void kelp_http2_stream_on_close(kelp_http2_stream *s);

/* ---- response.c ---- */
/* Implement kelp_http_stream. */
void kelp_http2_stream_send(kelp_http_stream *stream, bool last);
void kelp_http2_stream_consume(kelp_http_stream *stream, size_t length);
/* Processes that a part is written. */
void kelp_http2_stream_on_written(kelp_http2_stream *s);
/* Appends a DATA frame to the output. Implements nghttp2_send_data_callback. */
int kelp_http2_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                         size_t length, nghttp2_data_source *source, void *userp);

/* ---- session.c ---- */
/* Creates the callbacks of sessions. */
kelp_status *kelp_http2_callbacks_create(nghttp2_session_callbacks **out) KELP_MUST_USE;
kelp_status *kelp_http2_option_create(nghttp2_option **out) KELP_MUST_USE;
/* Creates a session, and submits the settings. */
kelp_status *kelp_http2_session_create(kelp_http2_connection *c) KELP_MUST_USE;

#endif
