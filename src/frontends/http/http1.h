/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 messages (RFC 9112), without I/O: parses requests and writes response heads.
 *
 * The parser is incremental: the caller may feed one byte at a time. It stops at the end of a
 * request, and does not consume pipelined bytes after it. A body is collected in one buffer; the
 * caller may read from its socket directly into that buffer (kelp_http1_body_space,
 * kelp_http1_body_commit). A parser is used by one thread at a time.
 *
 * The parser accepts messages that the RFC forbids, but inference clients send: Content-Length
 * together with "Transfer-Encoding: chunked" (chunked wins, and the connection closes after the
 * response), and lines that end in LF alone.
 */
#ifndef KELP_FRONTENDS_HTTP_HTTP1_H_
#define KELP_FRONTENDS_HTTP_HTTP1_H_

#include "base/buf.h"
#include "frontends/http/body.h"
#include "frontends/http/message.h"

#include <kelp/allocator.h>

/* Message framing and connection control of a request. */
typedef struct kelp_http1_framing {
    int minor;       /* HTTP/1.minor: 0 or 1 */
    bool keep_alive; /* requested by the client */
    bool chunked;
    bool has_content_length;
    bool expect_continue; /* "Expect: 100-continue" */
    uint64_t content_length;
} kelp_http1_framing;

/* Limits of a request; 0 selects the default. */
typedef struct kelp_http1_limits {
    size_t head_bytes;     /* request line and headers together, and the trailers; 64 KiB */
    uint32_t header_count; /* 128 */
    uint64_t body_bytes;   /* 64 MiB; may be changed for a request at KELP_HTTP1_HEAD */
} kelp_http1_limits;

/* The result of feeding bytes. */
typedef enum kelp_http1_event {
    KELP_HTTP1_MORE,     /* all bytes were consumed; the request is incomplete */
    KELP_HTTP1_HEAD,     /* the head is complete: set the limits of the body, then feed the rest */
    KELP_HTTP1_COMPLETE, /* the request is complete; unconsumed bytes belong to the next request */
    KELP_HTTP1_FAILED    /* the reason is in error_status and error_text; close the connection */
} kelp_http1_event;

/* The part of the request that the parser expects next. */
typedef enum kelp_http1_stage {
    KELP_HTTP1_STAGE_HEAD,
    KELP_HTTP1_STAGE_BODY_START,
    KELP_HTTP1_STAGE_BODY,
    KELP_HTTP1_STAGE_CHUNK_SIZE,
    KELP_HTTP1_STAGE_CHUNK_DATA,
    KELP_HTTP1_STAGE_CHUNK_END,
    KELP_HTTP1_STAGE_TRAILERS,
    KELP_HTTP1_STAGE_COMPLETE,
    KELP_HTTP1_STAGE_FAILED
} kelp_http1_stage;

/* A parser of requests. */
typedef struct kelp_http1_parser {
    kelp_allocator allocator;
    kelp_http1_limits limits;
    kelp_http1_stage stage;
    kelp_http_request request; /* borrowed from the parser until kelp_http1_parser_clear */
    kelp_http1_framing framing;
    kelp_http_body body;
    uint64_t body_limit_bytes; /* for this request */
    size_t align_offset;       /* the offset in the body that is aligned */
    kelp_http_status error_status;
    const char *error_text;
    /* private */
    kelp_buf head;
    kelp_http_header *headers;
    size_t header_capacity;
    size_t line_bytes;    /* of the incomplete line */
    size_t skipped_bytes; /* blank lines before a request, extensions, trailers */
    uint64_t remaining;   /* of the body or the chunk */
    uint32_t chunk_digits;
    bool chunk_extension;
    bool line_cr; /* the incomplete line ends in CR */
} kelp_http1_parser;

/* Initializes a parser without allocating. `limits` may be NULL for the defaults. */
void kelp_http1_parser_init(kelp_http1_parser *parser, kelp_allocator allocator,
                            const kelp_http1_limits *limits);
/* Frees the buffers. An idle parser can be used again. */
void kelp_http1_parser_deinit(kelp_http1_parser *parser);
/* Prepares the parser for the next request of the connection; keeps small buffers. */
void kelp_http1_parser_clear(kelp_http1_parser *parser);
/* Returns true while no byte of a request has arrived. */
bool kelp_http1_parser_idle(const kelp_http1_parser *parser);

/* Consumes bytes and stores their number in *out_consumed. After KELP_HTTP1_HEAD the caller must
 * call again, with 0 bytes if there are no more, since a request without a body is complete at
 * once. After COMPLETE and FAILED it consumes nothing until kelp_http1_parser_clear. */
kelp_http1_event kelp_http1_feed(kelp_http1_parser *parser, const char *data, size_t length,
                                 size_t *out_consumed);
/* Returns memory for the next bytes of the body, and its size; NULL outside of a body. */
char *kelp_http1_body_space(kelp_http1_parser *parser, size_t *out_length);
/* Records that `length` bytes were written to the memory of kelp_http1_body_space. Returns MORE or
 * COMPLETE. */
kelp_http1_event kelp_http1_body_commit(kelp_http1_parser *parser, size_t length);

/* ---- response heads ---- */
/* Appends the status line, or a header. */
void kelp_http1_put_status(kelp_buf *out, kelp_http_status status);
void kelp_http1_put_header(kelp_buf *out, kelp_str name, kelp_str value);
/* Appends Content-Length, Connection where `minor` of the request needs it, and the blank line. */
void kelp_http1_end_head(kelp_buf *out, int minor, bool keep_alive, uint64_t content_length);
/* Ends the head of a response of unknown length: chunked in HTTP/1.1, delimited by the end of the
 * connection in HTTP/1.0. */
void kelp_http1_end_head_chunked(kelp_buf *out, int minor, bool keep_alive);
/* Appends the size of a chunk. The bytes of the chunk and KELP_HTTP1_CHUNK_END follow. */
void kelp_http1_put_chunk_size(kelp_buf *out, uint64_t size_bytes);
#define KELP_HTTP1_CHUNK_END KELP_STR("\r\n")
#define KELP_HTTP1_LAST_CHUNK KELP_STR("0\r\n\r\n")
#define KELP_HTTP1_CHUNK_END_AND_LAST KELP_STR("\r\n0\r\n\r\n")

#endif
