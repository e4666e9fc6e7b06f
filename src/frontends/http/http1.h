/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 messages (RFC 9110, RFC 9112) without I/O: bytes in, a request out; a reply in, bytes
 * out.
 *
 * The parser is incremental: it may be fed one byte at a time, and it stops at the end of a
 * request, so that pipelined bytes stay with the caller. A body is collected in one buffer whose
 * size is known from Content-Length, and the caller may read from its socket straight into that
 * buffer (kelp_http1_body_space, kelp_http1_body_commit). One thread at a time.
 *
 * What is more lenient than the RFC, because inference clients need it: Content-Length together
 * with "Transfer-Encoding: chunked" (chunked wins, and the connection closes after the reply),
 * lines that end in LF alone, and no Host.
 */
#ifndef KELP_FRONTENDS_HTTP_HTTP1_H_
#define KELP_FRONTENDS_HTTP_HTTP1_H_

#include "base/buf.h"
#include "base/str.h"

#include <kelp/allocator.h>

typedef struct kelp_http1_header {
    kelp_str name;
    kelp_str value; /* without the spaces around it */
} kelp_http1_header;

/* The head of a request; everything is borrowed from the parser and lives until
 * kelp_http1_parser_clear. */
typedef struct kelp_http1_request {
    kelp_str method;
    kelp_str path;  /* raw: still percent-encoded, begins with '/' */
    kelp_str query; /* raw, without the '?' */
    int minor;      /* HTTP/1.minor: 0 or 1 */
    const kelp_http1_header *headers;
    size_t header_count;
    bool keep_alive; /* what the client asks for */
    bool chunked;
    bool has_content_length;
    bool expect_continue; /* "Expect: 100-continue" */
    uint64_t content_length;
} kelp_http1_request;

/* 0 in any of them takes the default. */
typedef struct kelp_http1_limits {
    size_t head_bytes;     /* request line and headers together, and the trailers; 64 KiB */
    uint32_t header_count; /* 128 */
    uint64_t body_bytes;   /* 64 MiB; may be changed for a request at KELP_HTTP1_HEAD */
} kelp_http1_limits;

/* A body: `length` bytes at kelp_http1_body_data. The memory is base[0, capacity), 64-byte aligned.
 */
typedef struct kelp_http1_body {
    kelp_allocator allocator;
    char *base;
    size_t capacity;
    size_t skew; /* unused bytes in front, so that a chosen offset of the body is aligned */
    size_t length;
} kelp_http1_body;

void kelp_http1_body_init(kelp_http1_body *body, kelp_allocator allocator);
void kelp_http1_body_deinit(kelp_http1_body *body);
/* Empties the body; memory of more than `keep_bytes` is given back. */
void kelp_http1_body_clear(kelp_http1_body *body, size_t keep_bytes);
static inline char *kelp_http1_body_data(const kelp_http1_body *body) {
    return body->base ? body->base + body->skew : NULL;
}

typedef enum kelp_http1_event {
    KELP_HTTP1_MORE,     /* all bytes were taken; the request goes on */
    KELP_HTTP1_HEAD,     /* the head is there: look at it, set limits for the body, feed the rest */
    KELP_HTTP1_COMPLETE, /* the request is there; bytes that were not consumed belong to the next
                            one */
    KELP_HTTP1_FAILED    /* see error_code and error_text; the connection cannot go on */
} kelp_http1_event;

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

typedef struct kelp_http1_parser {
    kelp_allocator allocator;
    kelp_http1_limits limits;
    kelp_http1_stage stage;
    kelp_http1_request request;
    kelp_http1_body body;
    uint64_t body_limit_bytes; /* for this request */
    size_t align_offset;       /* this offset of the body is put on a 64-byte boundary */
    int error_code;            /* an HTTP status */
    const char *error_text;
    /* private */
    kelp_buf head;
    kelp_http1_header *headers;
    size_t header_capacity;
    size_t line_bytes;    /* of the unfinished line */
    size_t skipped_bytes; /* blank lines before a request, extensions, trailers */
    uint64_t remaining;   /* of the body or the chunk */
    uint32_t chunk_digits;
    bool chunk_extension;
    bool line_cr; /* the unfinished line ends in CR */
} kelp_http1_parser;

/* `limits` NULL takes the defaults. Allocates nothing yet. */
void kelp_http1_parser_init(kelp_http1_parser *parser, kelp_allocator allocator,
                            const kelp_http1_limits *limits);
void kelp_http1_parser_deinit(kelp_http1_parser *parser);
/* Ready for the next request of the connection; keeps small buffers. */
void kelp_http1_parser_clear(kelp_http1_parser *parser);
/* Nothing of a request has arrived yet. */
bool kelp_http1_parser_idle(const kelp_http1_parser *parser);

/* Takes bytes; *out_consumed says how many. After KELP_HTTP1_HEAD it must be called again, with 0
 * bytes if there are no more, since a request without a body is complete at once. After COMPLETE
 * and FAILED it takes nothing until cleared. */
kelp_http1_event kelp_http1_feed(kelp_http1_parser *parser, const char *data, size_t length,
                                 size_t *out_consumed);
/* Where body bytes may be read to directly, and how many; NULL when the parser is elsewhere. */
char *kelp_http1_body_space(kelp_http1_parser *parser, size_t *out_length);
/* Says that `length` bytes were put there. MORE or COMPLETE. */
kelp_http1_event kelp_http1_body_commit(kelp_http1_parser *parser, size_t length);

/* The value of the first header of that name (any case), or NULL. */
const kelp_str *kelp_http1_find(const kelp_http1_request *request, const char *name);
/* True when the comma-separated list `value` has `token` (any case). */
bool kelp_http1_has_token(kelp_str value, const char *token);

/* Decodes %XX into `out` (room for in.length bytes). False on a bad escape and on an encoded NUL.
 */
bool kelp_http1_percent_decode(kelp_str in, char *out, size_t *out_length);

/* ---- replies ---- */
/* "Not Found" for 404; "Unknown" for codes that are not used here. */
const char *kelp_http1_reason(int code);
void kelp_http1_put_status(kelp_buf *out, int code);
void kelp_http1_put_header(kelp_buf *out, const char *name, const char *value);
void kelp_http1_put_header_u64(kelp_buf *out, const char *name, uint64_t value);
/* Connection and Content-Length where they are needed, and the blank line. `minor` is the
 * request's. */
void kelp_http1_end_head(kelp_buf *out, int minor, bool keep_alive, uint64_t content_length);

#endif
