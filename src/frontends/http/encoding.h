/* SPDX-License-Identifier: Apache-2.0 */
/* Content codings (RFC 9110 section 8.4): gzip, and deflate in zlib's format. They require zlib at
 * build time. */
#ifndef KELP_FRONTENDS_HTTP_ENCODING_H_
#define KELP_FRONTENDS_HTTP_ENCODING_H_

#include "base/buf.h"
#include "frontends/http/body.h"

/* A content coding. */
typedef enum kelp_http_coding {
    KELP_HTTP_IDENTITY,
    KELP_HTTP_GZIP,
    KELP_HTTP_DEFLATE,
    KELP_HTTP_CODING_UNKNOWN
} kelp_http_coding;

/* Parses a Content-Encoding value of one coding. Returns CODING_UNKNOWN for unsupported codings. */
kelp_http_coding kelp_http_coding_of(kelp_str value);
/* Returns "gzip", "deflate" or "identity". */
const char *kelp_http_coding_name(kelp_http_coding coding);
/* Returns the supported coding with the highest weight in an Accept-Encoding value; gzip if weights
 * are equal, IDENTITY if no supported coding is accepted. */
kelp_http_coding kelp_http_coding_accepted(kelp_str accept_encoding);

/* Appends the decoded bytes to `out`. Fails with OUT_OF_RANGE for more than `limit_bytes`, after it
 * has appended so many; INVALID_ARGUMENT for corrupt data; RESOURCE_EXHAUSTED if memory or the
 * budget of `out` is exhausted. */
kelp_status *kelp_http_decode(kelp_http_coding coding, const char *data, size_t length,
                              uint64_t limit_bytes, kelp_http_body *out) KELP_MUST_USE;

/* A streaming compressor, which appends to `out`. */
typedef struct kelp_http_encoder kelp_http_encoder;
kelp_status *kelp_http_encoder_create(kelp_allocator allocator, kelp_http_coding coding,
                                      kelp_buf *out, kelp_http_encoder **out_encoder) KELP_MUST_USE;
void kelp_http_encoder_destroy(kelp_http_encoder *encoder);
kelp_status *kelp_http_encoder_put(kelp_http_encoder *encoder, const void *data,
                                   size_t length) KELP_MUST_USE;
kelp_status *kelp_http_encoder_end(kelp_http_encoder *encoder) KELP_MUST_USE;

#endif
