/* SPDX-License-Identifier: Apache-2.0 */
/* Parses HTTP/1.1 requests: RFC 9112 sections 2 to 7. */
#include "frontends/http/http1.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#define BODY_KEEP_BYTES ((size_t)64 * 1024)
/* Memory for a body before any of it has arrived. Smaller than the blocks for which the allocator
 * uses huge pages. */
#define BODY_FIRST_BYTES (BODY_KEEP_BYTES - KELP_HTTP_BODY_ALIGNMENT)
#define BODY_STEP_BYTES ((size_t)1024 * 1024)
#define CHUNK_STEP_MIN_BYTES ((size_t)4096)
#define MAX_BLANK_BYTES 64       /* of blank lines before a request */
#define MAX_CHUNK_SIZE_DIGITS 16 /* hexadecimal, of a 64-bit number */
#define DELETE 0x7f
#define LOWER_CASE 0x20 /* the bit that makes an ASCII letter lower case */
#define DEFAULT_HEAD_BYTES ((size_t)64 * 1024)
#define DEFAULT_HEADER_COUNT 128
#define DEFAULT_BODY_BYTES ((uint64_t)64 * 1024 * 1024)

/* ---- creation ---- */

void kelp_http1_parser_init(kelp_http1_parser *parser, kelp_allocator allocator,
                            const kelp_http1_limits *limits) {
    *parser = (kelp_http1_parser){.allocator = allocator};
    if (limits != NULL)
        parser->limits = *limits;
    if (!parser->limits.head_bytes)
        parser->limits.head_bytes = DEFAULT_HEAD_BYTES;
    if (!parser->limits.header_count)
        parser->limits.header_count = DEFAULT_HEADER_COUNT;
    if (!parser->limits.body_bytes)
        parser->limits.body_bytes = DEFAULT_BODY_BYTES;
    kelp_buf_init(&parser->head, allocator);
    kelp_http_body_init(&parser->body, allocator);
    kelp_http1_parser_clear(parser);
}

void kelp_http1_parser_deinit(kelp_http1_parser *parser) {
    kelp_buf_deinit(&parser->head);
    kelp_http_body_deinit(&parser->body);
    kelp_free(parser->allocator, parser->headers,
              parser->header_capacity * sizeof *parser->headers);
    parser->headers = NULL;
    parser->header_capacity = 0;
}

void kelp_http1_parser_clear(kelp_http1_parser *parser) {
    if (parser->head.capacity > BODY_KEEP_BYTES / 4)
        kelp_buf_deinit(&parser->head);
    kelp_buf_clear(&parser->head);
    kelp_http_body_clear(&parser->body, BODY_KEEP_BYTES);
    parser->stage = KELP_HTTP1_STAGE_HEAD;
    parser->request = (kelp_http_request){0};
    parser->framing = (kelp_http1_framing){0};
    parser->body_limit_bytes = parser->limits.body_bytes;
    parser->align_offset = 0;
    parser->error_status = KELP_HTTP_OK;
    parser->error_text = NULL;
    parser->line_bytes = parser->skipped_bytes = 0;
    parser->remaining = 0;
    parser->chunk_digits = 0;
    parser->chunk_extension = parser->line_cr = false;
}

bool kelp_http1_parser_idle(const kelp_http1_parser *parser) {
    return parser->stage == KELP_HTTP1_STAGE_HEAD && parser->head.length == 0;
}

static kelp_http1_event fail(kelp_http1_parser *parser, kelp_http_status status, const char *text) {
    parser->stage = KELP_HTTP1_STAGE_FAILED;
    parser->error_status = status;
    parser->error_text = text;
    return KELP_HTTP1_FAILED;
}

/* ---- head ---- */

/* RFC 9110 section 5.6.2: digits, letters and !#$%&'*+-.^_`|~, a bit for each. */
static bool is_token_char(unsigned char c) {
    static const uint64_t bits[4] = {UINT64_C(0x03ff6cfa00000000), UINT64_C(0x57ffffffc7fffffe)};
    return bits[c / 64] >> c % 64 & 1;
}

static bool is_token(kelp_str s) {
    for (size_t i = 0; i < s.length; i++)
        if (!is_token_char((unsigned char)s.data[i]))
            return false;
    return s.length > 0;
}

static bool is_control(unsigned char c) {
    return c < ' ' || c == DELETE;
}

static bool is_field_value(kelp_str s) {
    for (size_t i = 0; i < s.length; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (is_control(c) && c != '\t')
            return false;
    }
    return true;
}

static bool parse_target(kelp_http_request *request, kelp_str target) {
    for (size_t i = 0; i < target.length; i++) {
        unsigned char c = (unsigned char)target.data[i];
        if (is_control(c) || c == ' ')
            return false;
    }
    size_t scheme = kelp_str_starts(target, KELP_STR("http://"))    ? 7
                    : kelp_str_starts(target, KELP_STR("https://")) ? 8
                                                                    : 0;
    if (scheme) { /* absolute form, RFC 9112 section 3.2.2 */
        const char *slash = memchr(target.data + scheme, '/', target.length - scheme);
        size_t skip = slash != NULL ? (size_t)(slash - target.data) : target.length;
        target.data += skip;
        target.length -= skip;
        if (!target.length)
            target = KELP_STR("/");
    }
    const char *question = target.length ? memchr(target.data, '?', target.length) : NULL;
    request->path = target;
    if (question != NULL) {
        request->path.length = (size_t)(question - target.data);
        request->query = (kelp_str){question + 1, target.length - request->path.length - 1};
    }
    return request->path.length > 0 &&
           (request->path.data[0] == '/' || kelp_str_is(request->path, "*"));
}

static kelp_http1_event parse_request_line(kelp_http1_parser *parser, kelp_str line) {
    kelp_http_request *request = &parser->request;
    kelp_http1_framing *framing = &parser->framing;
    const char *first = memchr(line.data, ' ', line.length);
    if (first == NULL)
        return fail(parser, KELP_HTTP_BAD_REQUEST,
                    "the request line is not 'METHOD target HTTP/1.1'");
    request->method = (kelp_str){line.data, (size_t)(first - line.data)};
    kelp_str rest = {first + 1, line.length - request->method.length - 1};
    const char *second = rest.length ? memchr(rest.data, ' ', rest.length) : NULL;
    if (!is_token(request->method) || second == NULL)
        return fail(parser, KELP_HTTP_BAD_REQUEST,
                    "the request line is not 'METHOD target HTTP/1.1'");
    kelp_str target = {rest.data, (size_t)(second - rest.data)};
    kelp_str version = {second + 1, rest.length - target.length - 1};
    if (version.length != 8 || !kelp_str_starts(version, KELP_STR("HTTP/")) ||
        version.data[6] != '.' || version.data[7] < '0' || version.data[7] > '9')
        return fail(parser, KELP_HTTP_BAD_REQUEST,
                    "the request line does not end in an HTTP version");
    if (version.data[5] != '1')
        return fail(parser, KELP_HTTP_VERSION_NOT_SUPPORTED,
                    "only HTTP/1.1 and HTTP/1.0 are supported on this port");
    framing->minor = version.data[7] == '0' ? 0 : 1;
    framing->keep_alive = framing->minor == 1;
    if (!parse_target(request, target))
        return fail(parser, KELP_HTTP_BAD_REQUEST, "the request target is malformed");
    return KELP_HTTP1_MORE;
}

static kelp_http1_event add_header(kelp_http1_parser *parser, kelp_str line) {
    kelp_http_request *request = &parser->request;
    KELP_ASSERT(line.length > 0);
    if (line.data[0] == ' ' || line.data[0] == '\t')
        return fail(parser, KELP_HTTP_BAD_REQUEST, "a header is folded over several lines");
    const char *colon = memchr(line.data, ':', line.length);
    if (colon == NULL)
        return fail(parser, KELP_HTTP_BAD_REQUEST, "a header line has no colon");
    kelp_str name = {line.data, (size_t)(colon - line.data)};
    kelp_str value = {colon + 1, line.length - name.length - 1};
    if (!is_token(name))
        return fail(parser, KELP_HTTP_BAD_REQUEST,
                    "a header name has a character that is not allowed");
    value = kelp_str_trim(value);
    if (!is_field_value(value))
        return fail(parser, KELP_HTTP_BAD_REQUEST, "a header value has a control character");
    if (request->header_count >= parser->limits.header_count)
        return fail(parser, KELP_HTTP_HEADERS_TOO_LARGE, "the request has too many headers");
    kelp_status *status =
        kelp_grow(parser->allocator, (void **)&parser->headers, &parser->header_capacity,
                  request->header_count + 1, sizeof *parser->headers);
    if (status != NULL) {
        kelp_status_free(status);
        return fail(parser, KELP_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    }
    parser->headers[request->header_count++] = (kelp_http_header){name, value};
    request->headers = parser->headers;
    return KELP_HTTP1_MORE;
}

/* Reads the headers that delimit the message and control the connection. */
static kelp_http1_event read_framing(kelp_http1_parser *parser) {
    const kelp_http_request *request = &parser->request;
    kelp_http1_framing *framing = &parser->framing;
    bool close = false;
    size_t hosts = 0;
    for (size_t i = 0; i < request->header_count; i++) {
        kelp_str name = request->headers[i].name;
        kelp_str value = request->headers[i].value;
        if (kelp_str_equal_nocase(name, KELP_STR("content-length"))) {
            uint64_t length;
            if (!value.length || value.data[0] < '0' || value.data[0] > '9' ||
                !kelp_parse_u64(value, &length))
                return fail(parser, KELP_HTTP_BAD_REQUEST,
                            "Content-Length is not a number of bytes");
            if (framing->has_content_length && framing->content_length != length)
                return fail(parser, KELP_HTTP_BAD_REQUEST,
                            "there are two Content-Length headers that differ");
            framing->has_content_length = true;
            framing->content_length = length;
        } else if (kelp_str_equal_nocase(name, KELP_STR("transfer-encoding"))) {
            if (framing->chunked)
                return fail(parser, KELP_HTTP_BAD_REQUEST,
                            "there are two Transfer-Encoding headers");
            if (!kelp_str_equal_nocase(value, KELP_STR("chunked")))
                return fail(parser, KELP_HTTP_NOT_IMPLEMENTED,
                            "the only supported Transfer-Encoding is 'chunked'");
            framing->chunked = true;
        } else if (kelp_str_equal_nocase(name, KELP_STR("connection"))) {
            if (kelp_http_has_token(value, "close"))
                close = true;
            else if (kelp_http_has_token(value, "keep-alive"))
                framing->keep_alive = true;
        } else if (kelp_str_equal_nocase(name, KELP_STR("host"))) {
            hosts++;
        } else if (kelp_str_equal_nocase(name, KELP_STR("expect"))) {
            if (kelp_str_equal_nocase(value, KELP_STR("100-continue")) && framing->minor == 1)
                framing->expect_continue = true;
        }
    }
    if (hosts > 1 || (hosts == 0 && framing->minor > 0)) /* RFC 9112 section 3.2 */
        return fail(parser, KELP_HTTP_BAD_REQUEST,
                    hosts ? "there are two Host headers" : "there is no Host header");
    /* RFC 9112 section 6.3: a message with both headers is chunked, and the connection must be
     * closed after the response. */
    if (close || (framing->chunked && (framing->has_content_length || framing->minor == 0)))
        framing->keep_alive = false;
    return KELP_HTTP1_MORE;
}

static kelp_http1_event parse_head(kelp_http1_parser *parser) {
    const char *cursor = parser->head.data;
    const char *end = cursor + parser->head.length;
    bool first = true;
    while (cursor < end) {
        const char *newline = memchr(cursor, '\n', (size_t)(end - cursor));
        kelp_str line = {cursor, (size_t)(newline - cursor)};
        cursor = newline + 1;
        if (line.length && line.data[line.length - 1] == '\r')
            line.length--;
        if (!line.length)
            break; /* the blank line after the headers */
        kelp_http1_event event =
            first ? parse_request_line(parser, line) : add_header(parser, line);
        if (event == KELP_HTTP1_FAILED)
            return event;
        first = false;
    }
    if (read_framing(parser) == KELP_HTTP1_FAILED)
        return KELP_HTTP1_FAILED;
    parser->stage = KELP_HTTP1_STAGE_BODY_START;
    return KELP_HTTP1_HEAD;
}

/* Collects lines in parser->head up to the blank line. */
static kelp_http1_event feed_head(kelp_http1_parser *parser, const char *data, size_t length,
                                  size_t *inout_used) {
    size_t start = *inout_used; /* of the bytes that are not in `head` yet */
    size_t at = start;
    bool ended = false;
    while (at < length && !ended) {
        const char *newline = memchr(data + at, '\n', length - at);
        size_t stop = newline != NULL ? (size_t)(newline - data) : length;
        if (stop > at) {
            parser->line_bytes += stop - at;
            parser->line_cr = data[stop - 1] == '\r';
        }
        at = newline != NULL ? stop + 1 : stop;
        if (newline == NULL)
            break;
        bool blank = parser->line_bytes == 0 || (parser->line_bytes == 1 && parser->line_cr);
        bool nothing = parser->head.length + (at - start) == parser->line_bytes + 1;
        parser->line_bytes = 0;
        parser->line_cr = false;
        if (blank && nothing) { /* RFC 9112 section 2.2: blank lines before a request are ignored */
            parser->skipped_bytes += parser->head.length + (at - start);
            kelp_buf_clear(&parser->head);
            start = at;
            if (parser->skipped_bytes > MAX_BLANK_BYTES)
                return fail(parser, KELP_HTTP_BAD_REQUEST, "blank lines instead of a request");
        } else if (blank) {
            ended = true;
        }
    }
    *inout_used = at;
    if (at - start > parser->limits.head_bytes - parser->head.length)
        return fail(parser, KELP_HTTP_HEADERS_TOO_LARGE,
                    "the request line and headers are too long");
    kelp_buf_append(&parser->head, data + start, at - start);
    if (parser->head.failed)
        return fail(parser, KELP_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    return ended ? parse_head(parser) : KELP_HTTP1_MORE;
}

/* ---- body ---- */

static kelp_http1_event begin_body(kelp_http1_parser *parser) {
    const kelp_http1_framing *framing = &parser->framing;
    parser->body.skew =
        (KELP_HTTP_BODY_ALIGNMENT - parser->align_offset % KELP_HTTP_BODY_ALIGNMENT) %
        KELP_HTTP_BODY_ALIGNMENT;
    if (framing->chunked) {
        parser->stage = KELP_HTTP1_STAGE_CHUNK_SIZE;
        return KELP_HTTP1_MORE;
    }
    if (framing->content_length > parser->body_limit_bytes)
        return fail(parser, KELP_HTTP_CONTENT_TOO_LARGE, "the request body is too large");
    if (framing->content_length == 0) {
        parser->stage = KELP_HTTP1_STAGE_COMPLETE;
        return KELP_HTTP1_COMPLETE;
    }
    if (framing->content_length > SIZE_MAX / 2)
        return fail(parser, KELP_HTTP_SERVICE_UNAVAILABLE, "out of memory for the request body");
    parser->remaining = framing->content_length;
    parser->stage = KELP_HTTP1_STAGE_BODY;
    return KELP_HTTP1_MORE;
}

/* Returns the number of body bytes to reserve memory for. A client must send a part of a body
 * before it gets memory for all of it, since the announced size costs the client nothing. */
static size_t next_step(const kelp_http1_parser *parser) {
    const kelp_http_body *body = &parser->body;
    size_t step = BODY_FIRST_BYTES;
    if (body->length >= BODY_FIRST_BYTES)
        step = parser->stage == KELP_HTTP1_STAGE_BODY ? SIZE_MAX
                                                      : KELP_MAX(body->length, BODY_STEP_BYTES);
    return parser->remaining < step ? (size_t)parser->remaining : step;
}

/* Reserves memory for the next bytes of the body or chunk, unless there is some left. */
static bool reserve_body(kelp_http1_parser *parser) {
    kelp_http_body *body = &parser->body;
    KELP_ASSERT(parser->remaining > 0);
    if (body->capacity > body->skew + body->length)
        return true;
    size_t more = next_step(parser);
    if (parser->stage == KELP_HTTP1_STAGE_CHUNK_DATA) { /* many small chunks: grow geometrically */
        more = KELP_MAX(more, CHUNK_STEP_MIN_BYTES);
        more = KELP_MAX(more, body->length / 2);
    }
    size_t needed;
    return kelp_size_add(body->length, more, &needed) && kelp_http_body_reserve(body, needed);
}

static kelp_http1_event end_chunk_size(kelp_http1_parser *parser) {
    if (parser->chunk_digits == 0)
        return fail(parser, KELP_HTTP_BAD_REQUEST, "a chunk has no size");
    parser->chunk_digits = 0;
    parser->chunk_extension = false;
    parser->line_cr = false;
    if (parser->remaining == 0) {
        parser->stage = KELP_HTTP1_STAGE_TRAILERS;
        parser->line_bytes = 0;
        return KELP_HTTP1_MORE;
    }
    if (parser->remaining > parser->body_limit_bytes ||
        parser->body.length > parser->body_limit_bytes - parser->remaining)
        return fail(parser, KELP_HTTP_CONTENT_TOO_LARGE, "the request body is too large");
    parser->stage = KELP_HTTP1_STAGE_CHUNK_DATA;
    return KELP_HTTP1_MORE;
}

/* Parses chunk-size [ chunk-ext ] CRLF one byte at a time. */
static kelp_http1_event feed_chunk_size(kelp_http1_parser *parser, char c) {
    if (c == '\n')
        return end_chunk_size(parser);
    if (parser->line_cr)
        return fail(parser, KELP_HTTP_BAD_REQUEST, "a chunk size is not followed by CR LF");
    if (c == '\r') {
        parser->line_cr = true;
        return KELP_HTTP1_MORE;
    }
    if (parser->chunk_extension) {
        if (++parser->skipped_bytes > parser->limits.head_bytes)
            return fail(parser, KELP_HTTP_HEADERS_TOO_LARGE, "chunk extensions are too long");
        return KELP_HTTP1_MORE;
    }
    if (c == ';' || c == ' ' || c == '\t') {
        parser->chunk_extension = true;
        return KELP_HTTP1_MORE;
    }
    unsigned digit;
    if (c >= '0' && c <= '9')
        digit = (unsigned)(c - '0');
    else if ((c | LOWER_CASE) >= 'a' && (c | LOWER_CASE) <= 'f')
        digit = (unsigned)((c | LOWER_CASE) - 'a') + 10;
    else
        return fail(parser, KELP_HTTP_BAD_REQUEST, "a chunk size is not a hexadecimal number");
    if (parser->chunk_digits++ == 0)
        parser->remaining = 0;
    if (parser->chunk_digits > MAX_CHUNK_SIZE_DIGITS)
        return fail(parser, KELP_HTTP_BAD_REQUEST, "a chunk size is too long");
    parser->remaining = parser->remaining * 16 + digit;
    return KELP_HTTP1_MORE;
}

static kelp_http1_event feed_trailer(kelp_http1_parser *parser, char c) {
    if (c == '\n') {
        bool blank = parser->line_bytes == 0 || (parser->line_bytes == 1 && parser->line_cr);
        parser->line_bytes = 0;
        parser->line_cr = false;
        if (!blank)
            return KELP_HTTP1_MORE;
        parser->stage = KELP_HTTP1_STAGE_COMPLETE;
        return KELP_HTTP1_COMPLETE;
    }
    parser->line_bytes++;
    parser->line_cr = c == '\r';
    if (++parser->skipped_bytes > parser->limits.head_bytes)
        return fail(parser, KELP_HTTP_HEADERS_TOO_LARGE, "the trailers are too long");
    return KELP_HTTP1_MORE;
}

static kelp_http1_event feed_chunk_end(kelp_http1_parser *parser, char c) {
    if (c == '\r' && !parser->line_cr) {
        parser->line_cr = true;
        return KELP_HTTP1_MORE;
    }
    if (c != '\n')
        return fail(parser, KELP_HTTP_BAD_REQUEST, "a chunk is longer than its size");
    parser->line_cr = false;
    parser->stage = KELP_HTTP1_STAGE_CHUNK_SIZE;
    return KELP_HTTP1_MORE;
}

char *kelp_http1_body_space(kelp_http1_parser *parser, size_t *out_length) {
    *out_length = 0;
    if (parser->stage != KELP_HTTP1_STAGE_BODY && parser->stage != KELP_HTTP1_STAGE_CHUNK_DATA)
        return NULL;
    if (!reserve_body(parser)) {
        fail(parser, KELP_HTTP_SERVICE_UNAVAILABLE, "out of memory for the request body");
        return NULL;
    }
    kelp_http_body *body = &parser->body;
    size_t free_bytes = body->capacity - body->skew - body->length;
    *out_length = parser->remaining < free_bytes ? (size_t)parser->remaining : free_bytes;
    return body->base + body->skew + body->length;
}

kelp_http1_event kelp_http1_body_commit(kelp_http1_parser *parser, size_t length) {
    KELP_ASSERT(parser->stage == KELP_HTTP1_STAGE_BODY ||
                parser->stage == KELP_HTTP1_STAGE_CHUNK_DATA);
    KELP_ASSERT(length <= parser->remaining);
    parser->body.length += length;
    parser->remaining -= length;
    if (parser->remaining > 0)
        return KELP_HTTP1_MORE;
    if (parser->stage == KELP_HTTP1_STAGE_CHUNK_DATA) {
        parser->stage = KELP_HTTP1_STAGE_CHUNK_END;
        return KELP_HTTP1_MORE;
    }
    parser->stage = KELP_HTTP1_STAGE_COMPLETE;
    return KELP_HTTP1_COMPLETE;
}

static kelp_http1_event feed_body(kelp_http1_parser *parser, const char *data, size_t length,
                                  size_t *inout_used) {
    size_t space_bytes;
    char *space = kelp_http1_body_space(parser, &space_bytes);
    if (space == NULL)
        return KELP_HTTP1_FAILED;
    size_t n = KELP_MIN(space_bytes, length - *inout_used);
    if (n)
        memcpy(space, data + *inout_used, n);
    *inout_used += n;
    return kelp_http1_body_commit(parser, n);
}

kelp_http1_event kelp_http1_feed(kelp_http1_parser *parser, const char *data, size_t length,
                                 size_t *out_consumed) {
    size_t used = 0;
    kelp_http1_event event = KELP_HTTP1_MORE;
    if (parser->stage == KELP_HTTP1_STAGE_BODY_START)
        event = begin_body(parser);
    if (parser->stage == KELP_HTTP1_STAGE_COMPLETE)
        event = KELP_HTTP1_COMPLETE;
    if (parser->stage == KELP_HTTP1_STAGE_FAILED)
        event = KELP_HTTP1_FAILED;
    while (event == KELP_HTTP1_MORE && used < length) {
        switch (parser->stage) {
        case KELP_HTTP1_STAGE_HEAD:
            event = feed_head(parser, data, length, &used);
            break;
        case KELP_HTTP1_STAGE_BODY:
        case KELP_HTTP1_STAGE_CHUNK_DATA:
            event = feed_body(parser, data, length, &used);
            break;
        case KELP_HTTP1_STAGE_CHUNK_SIZE:
            event = feed_chunk_size(parser, data[used++]);
            break;
        case KELP_HTTP1_STAGE_CHUNK_END:
            event = feed_chunk_end(parser, data[used++]);
            break;
        case KELP_HTTP1_STAGE_TRAILERS:
            event = feed_trailer(parser, data[used++]);
            break;
        case KELP_HTTP1_STAGE_BODY_START:
        case KELP_HTTP1_STAGE_COMPLETE:
        case KELP_HTTP1_STAGE_FAILED:
            KELP_ASSERT(false); /* handled above */
            event = KELP_HTTP1_FAILED;
            break;
        }
    }
    *out_consumed = used;
    return event;
}
