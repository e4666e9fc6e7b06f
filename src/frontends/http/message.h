/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP semantics that all versions of HTTP share (RFC 9110): status codes, headers, request heads.
 */
#ifndef KELP_FRONTENDS_HTTP_MESSAGE_H_
#define KELP_FRONTENDS_HTTP_MESSAGE_H_

#include "base/str.h"

/* Status codes that Kelp sends. */
typedef enum kelp_http_status {
    KELP_HTTP_CONTINUE = 100,
    KELP_HTTP_OK = 200,
    KELP_HTTP_BAD_REQUEST = 400,
    KELP_HTTP_UNAUTHORIZED = 401,
    KELP_HTTP_FORBIDDEN = 403,
    KELP_HTTP_NOT_FOUND = 404,
    KELP_HTTP_METHOD_NOT_ALLOWED = 405,
    KELP_HTTP_REQUEST_TIMEOUT = 408,
    KELP_HTTP_CONFLICT = 409,
    KELP_HTTP_CONTENT_TOO_LARGE = 413,
    KELP_HTTP_TOO_MANY_REQUESTS = 429,
    KELP_HTTP_HEADERS_TOO_LARGE = 431,
    KELP_HTTP_CLIENT_CLOSED_REQUEST = 499, /* not registered; used by nginx and Triton */
    KELP_HTTP_INTERNAL_SERVER_ERROR = 500,
    KELP_HTTP_NOT_IMPLEMENTED = 501,
    KELP_HTTP_SERVICE_UNAVAILABLE = 503,
    KELP_HTTP_VERSION_NOT_SUPPORTED = 505
} kelp_http_status;

/* A header of a request or a response. */
typedef struct kelp_http_header {
    kelp_str name;
    kelp_str value; /* without surrounding spaces */
} kelp_http_header;

/* The head of a request; all text is borrowed. */
typedef struct kelp_http_request {
    kelp_str method;
    kelp_str path;  /* still percent-encoded; begins with '/' */
    kelp_str query; /* still percent-encoded, without the '?' */
    const kelp_http_header *headers;
    size_t header_count;
    unsigned version;  /* of HTTP: 10, 11 or 20 */
    uint32_t services; /* of the endpoint that received it, see kelp_http_endpoint */
} kelp_http_request;

/* Returns the reason phrase: "Not Found" for 404; "Unknown" for a code that is not in the enum. */
const char *kelp_http_reason(kelp_http_status status);
/* Returns the value of the first header of a name, or NULL. Ignores case. */
const kelp_str *kelp_http_find(const kelp_http_request *request, const char *name);
/* Returns true if the comma-separated list `value` contains `token`. Ignores case. */
bool kelp_http_has_token(kelp_str value, const char *token);
/* Decodes %XX into `out`, whose size is at least in.length bytes. Returns false for a malformed
 * escape and for an encoded NUL. */
bool kelp_http_percent_decode(kelp_str in, char *out, size_t *out_length);

#endif
