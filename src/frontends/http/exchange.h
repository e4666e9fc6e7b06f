/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exchanges: HTTP requests with their responses, independent of the version of HTTP. This header is
 * the interface of a transport (HTTP/1.1, HTTP/2) to a protocol (v2, gRPC).
 *
 * A protocol implements kelp_http_handler. When a request is complete, the transport passes an
 * exchange to handler->on_request. The handler fills in the response and calls
 * kelp_http_exchange_send, before it returns or later. The transport sends text and pieces without
 * copying them, and recycles the exchange when it is unreferenced.
 *
 * Threads: an exchange belongs to the event-loop thread of its connection. The functions marked
 * "any thread" are the exceptions.
 *
 * References: the transport holds one until the response is sent. The handler holds more
 * (kelp_http_exchange_retain) while other threads use the exchange. Exchanges are pooled per
 * thread, so that a warm server allocates nothing for a small request.
 */
#ifndef KELP_FRONTENDS_HTTP_EXCHANGE_H_
#define KELP_FRONTENDS_HTTP_EXCHANGE_H_

#include "base/buf.h"
#include "base/sync/loop.h"
#include "frontends/http/body.h"
#include "frontends/http/encoding.h"
#include "frontends/http/keepalive.h"
#include "frontends/http/message.h"
#include "frontends/request_log/entry.h"

#include <stdatomic.h>

typedef struct kelp_http_client kelp_http_client;
typedef struct kelp_http_exchange kelp_http_exchange;
typedef struct kelp_http_handler kelp_http_handler;
typedef struct kelp_http_stream kelp_http_stream;
typedef struct kelp_http_thread kelp_http_thread;

#define KELP_HTTP_MAX_RESPONSE_HEADERS 8
#define KELP_HTTP_MAX_TRAILERS 4
/* The maximum number of handlers of a server. */
#define KELP_HTTP_MAX_HANDLERS 4
/* The maximum size of a buffer that a recycled exchange keeps. */
#define KELP_HTTP_KEEP_BYTES ((size_t)256 * 1024)

/* Bytes of a response that are sent without a copy. */
typedef struct kelp_http_piece {
    const void *data;
    size_t length;
} kelp_http_piece;

/* The rules for receiving the body of a request. */
typedef struct kelp_http_body_rules {
    uint64_t max_bytes;    /* a larger body is rejected with 413 */
    size_t aligned_offset; /* the offset in the body that is aligned to KELP_HTTP_BODY_ALIGNMENT */
    bool streamed;         /* HTTP/2 only: pass the body to handler->on_body as it arrives */
} kelp_http_body_rules;

/* A protocol: callbacks from the transport. All but `clear` and `deinit` run on the event-loop
 * thread of the exchange. */
struct kelp_http_handler {
    /* Size of the handler's exchange type, whose first member is a kelp_http_exchange. */
    size_t exchange_bytes;
    size_t index;         /* among the handlers of the server; set by kelp_http_server_create */
    const char *protocol; /* in the access log, "gRPC"; NULL: the version of HTTP */
    /* The policy for HTTP/2 connections from their first request to the handler on. NULL: none. */
    const kelp_http_keepalive *keepalive;
    /* Returns true if the handler processes a request with this head. NULL: every request. Any
     * thread. */
    bool (*accepts)(const kelp_http_handler *handler, const kelp_http_request *request);
    /* Initializes the handler's part of a new exchange, which is zeroed. */
    void (*init)(kelp_http_exchange *exchange);
    /* Releases the resources of the handler's part before the exchange is freed. */
    void (*deinit)(kelp_http_exchange *exchange);
    /* Resets the handler's part after the last reference was dropped. Any thread. */
    void (*clear)(kelp_http_exchange *exchange);
    /* Sets the rules of the body after the head has arrived. The exchange does not exist yet. */
    void (*on_head)(kelp_http_handler *handler, const kelp_http_request *request,
                    kelp_http_body_rules *inout_rules);
    /* Processes a request; kelp_http_exchange_send ends the processing. The request is complete,
     * unless its body is streamed: then only the head has arrived, and on_body follows. */
    void (*on_request)(kelp_http_exchange *exchange);
    /* Processes bytes of a streamed body, which are valid during the call; `last` ends the body,
     * and may come without bytes. The client sends at most a window of bytes that were not passed
     * to kelp_http_exchange_consume. Not called after the response was sent, nor after on_cancel.
     * NULL if no body is streamed. */
    void (*on_body)(kelp_http_exchange *exchange, kelp_str bytes, bool last);
    /* Fills in the response to a request that the transport rejects, and does not send it. */
    void (*on_error)(kelp_http_exchange *exchange, kelp_http_status status, const char *text);
    /* Continues a response after a part was written: the handler may fill in and send the next
     * part, now or later. Text and pieces are empty. NULL if the handler never sends parts. */
    void (*on_sent)(kelp_http_exchange *exchange);
    /* Cancels the request, because the client closed the connection or shut down its sending side.
     * The handler must still call kelp_http_exchange_send. May be called more than once. */
    void (*on_cancel)(kelp_http_exchange *exchange);
    /* Called, perhaps more than once, when the server stops while the streamed body of the exchange
     * is incomplete. The handler gives the client KELP_HTTP_STOP_REQUEST_NS for the rest. NULL
     * without streamed bodies. */
    void (*on_drain)(kelp_http_exchange *exchange);
    /* Frees the handler after the last exchange was freed. */
    void (*destroy)(kelp_http_handler *handler);
};

/* The sending of a response, with one implementation per version of HTTP. */
struct kelp_http_stream {
    /* Sends text and pieces of the stream's exchange, after status and headers the first time.
     * After the last part, drops the transport's reference. */
    void (*send)(kelp_http_stream *stream, bool last);
    /* Lets the client send more of a streamed body. NULL if the version does not stream bodies. */
    void (*consume)(kelp_http_stream *stream, size_t length);
};

/* A request and its response. */
struct kelp_http_exchange {
    kelp_event_loop_task task; /* first; see kelp_http_exchange_post */
    kelp_http_exchange *next;
    kelp_allocator allocator;
    kelp_http_thread *thread;
    kelp_http_handler *handler;
    kelp_http_stream *stream; /* NULL after the connection was closed */
    kelp_http_client *client; /* counts the request; NULL for a request that is rejected */
    uint64_t start_ns;        /* when the first bytes of the request arrived (kelp_now_ns) */
    uint64_t received_ns;     /* when the request was passed to the handler */
    atomic_int refs;
    void (*work)(kelp_http_exchange *exchange); /* posted, or on a separate thread */
    void (*then)(kelp_http_exchange *exchange); /* posted after `work` on a separate thread */
    kelp_request_entry entry;                   /* in the access log */

    /* the request */
    const kelp_http_request *request; /* valid while on_request runs */
    kelp_http_body body;
    kelp_http_body decoded;      /* the body without its content coding */
    bool request_coding_unknown; /* the response must list the known codings */

    /* the response: status and headers, then `text`, then `pieces`, then the trailers */
    kelp_http_status status; /* 0: nothing is filled in */
    kelp_http_header headers[KELP_HTTP_MAX_RESPONSE_HEADERS];
    size_t header_count;
    size_t kept_header_count; /* of those, see kelp_http_exchange_keep_headers */
    kelp_http_header trailers[KELP_HTTP_MAX_TRAILERS];
    size_t trailer_count;
    kelp_buf text;
    kelp_http_piece *pieces;
    size_t piece_count;
    size_t piece_capacity;
};

/* ---- the request ---- */
/* Returns the content coding of the body. Fails with UNIMPLEMENTED for an unknown one. Valid while
 * on_request runs. */
kelp_status *kelp_http_exchange_coding(kelp_http_exchange *exchange,
                                       kelp_http_coding *out) KELP_MUST_USE;
/* Returns the body without its content coding, in *out. Fails with OUT_OF_RANGE for a decoded body
 * of more than `max_bytes`, INVALID_ARGUMENT for corrupt data. The result is valid until the
 * exchange is cleared. Decoding a large body takes long; `work` of kelp_http_exchange_run_blocking
 * may do it. */
kelp_status *kelp_http_exchange_decode(kelp_http_exchange *exchange, kelp_http_coding coding,
                                       uint64_t max_bytes, kelp_str *out) KELP_MUST_USE;
/* Does both. Valid while on_request runs. */
kelp_status *kelp_http_exchange_body(kelp_http_exchange *exchange, uint64_t max_bytes,
                                     kelp_str *out) KELP_MUST_USE;

/* Returns the credit for `length` bytes of a streamed body, so that the client may send more. */
void kelp_http_exchange_consume(kelp_http_exchange *exchange, size_t length);

/* ---- the response ---- */
/* Starts a response. Discards headers, trailers, text and pieces of an earlier start. */
void kelp_http_exchange_respond(kelp_http_exchange *exchange, kelp_http_status status);
/* Adds a header. Both strings must live until the exchange is cleared. */
void kelp_http_exchange_add_header(kelp_http_exchange *exchange, kelp_str name, kelp_str value);
/* Adds a trailer, which follows the last part. HTTP/1.1 omits it. Both strings must live until the
 * exchange is cleared. */
void kelp_http_exchange_add_trailer(kelp_http_exchange *exchange, kelp_str name, kelp_str value);
/* Makes all responses to the request start with the headers that were added so far. */
void kelp_http_exchange_keep_headers(kelp_http_exchange *exchange);
/* Appends bytes, which must stay valid until the exchange is cleared. */
kelp_status *kelp_http_exchange_add_piece(kelp_http_exchange *exchange, const void *data,
                                          size_t length) KELP_MUST_USE;
/* Returns the length of text and pieces. */
uint64_t kelp_http_exchange_content_length(const kelp_http_exchange *exchange);
/* Replaces text and pieces by their compressed form. No effect for IDENTITY. */
kelp_status *kelp_http_exchange_compress(kelp_http_exchange *exchange,
                                         kelp_http_coding coding) KELP_MUST_USE;
/* Sends the response, or its last part. The transport's reference is dropped after the last byte is
 * written. */
void kelp_http_exchange_send(kelp_http_exchange *exchange);
/* Sends text and pieces as a part of the response that is not the last one, such as an event of an
 * event stream. Then handler->on_sent or on_cancel is called. Status and headers are sent with the
 * first part. */
void kelp_http_exchange_send_part(kelp_http_exchange *exchange);

/* ---- threads ---- */
/* Adds a reference. Any thread that holds one. */
void kelp_http_exchange_retain(kelp_http_exchange *exchange);
/* Drops a reference; the last one recycles the exchange. Any thread. */
void kelp_http_exchange_release(kelp_http_exchange *exchange);
/* Returns true on the event-loop thread of the exchange. Any thread. */
bool kelp_http_exchange_on_thread(const kelp_http_exchange *exchange);
/* Runs `work` on the event-loop thread of the exchange. Any thread; one call at a time. */
void kelp_http_exchange_post(kelp_http_exchange *exchange,
                             void (*work)(kelp_http_exchange *exchange));
/* Runs `work`, which may block, on a separate thread, and then `then` on the event-loop thread:
 * kelp_http_exchange_send if `work` fills in the response. Until then, the event-loop thread uses
 * the exchange only for on_cancel. Fails if the thread cannot be started. */
kelp_status *
kelp_http_exchange_run_blocking(kelp_http_exchange *exchange,
                                void (*work)(kelp_http_exchange *exchange),
                                void (*then)(kelp_http_exchange *exchange)) KELP_MUST_USE;

/* ---- for transports ---- */
/* Returns an exchange with one reference, from the thread's pool of the handler. */
kelp_status *kelp_http_exchange_acquire(kelp_http_thread *thread, kelp_http_handler *handler,
                                        kelp_http_exchange **out) KELP_MUST_USE;
/* Begins the entry of the request in the access log, if the server has one. */
void kelp_http_exchange_begin_entry(kelp_http_exchange *exchange, const kelp_http_peer *peer);
/* Ends it, after the response was written. Otherwise the exchange does so when it is recycled. */
void kelp_http_exchange_end_entry(kelp_http_exchange *exchange);
/* Frees a pooled exchange. */
void kelp_http_exchange_destroy(kelp_http_exchange *exchange);

#endif
