/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content codings (RFC 9110 section 8.4): gzip and deflate (which means zlib's format), by zlib
 * when the build has it. Also base64 (RFC 4648 section 4), which the repository extension puts
 * files in.
 */
#ifndef KELP_FRONTENDS_HTTP_ENCODING_H_
#define KELP_FRONTENDS_HTTP_ENCODING_H_

#include "base/buf.h"

typedef enum kelp_http_coding {
    KELP_HTTP_IDENTITY,
    KELP_HTTP_GZIP,
    KELP_HTTP_DEFLATE,
    KELP_HTTP_CODING_UNKNOWN
} kelp_http_coding;

/* Of a Content-Encoding value; one coding only. UNKNOWN also for those that this build cannot do.
 */
kelp_http_coding kelp_http_coding_of(kelp_str value);
/* "gzip", "deflate". */
const char *kelp_http_coding_name(kelp_http_coding coding);
/* The coding of the reply that an Accept-Encoding value prefers (weights respected; gzip before
 * deflate when equal); IDENTITY when none of ours is wanted. */
kelp_http_coding kelp_http_coding_accepted(kelp_str accept_encoding);

/* Appends the decoded bytes to `out`; more than `limit_bytes` of them is OUT_OF_RANGE, broken data
 * INVALID_ARGUMENT. */
kelp_status *kelp_http_decode(kelp_http_coding coding, const char *data, size_t length,
                              uint64_t limit_bytes, kelp_buf *out) KELP_MUST_USE;

/* A compressor fed piece by piece; `out` receives the coded bytes. */
typedef struct kelp_http_encoder kelp_http_encoder;
kelp_status *kelp_http_encoder_create(kelp_allocator allocator, kelp_http_coding coding,
                                      kelp_buf *out, kelp_http_encoder **out_encoder) KELP_MUST_USE;
void kelp_http_encoder_destroy(kelp_http_encoder *encoder);
kelp_status *kelp_http_encoder_put(kelp_http_encoder *encoder, const void *data,
                                   size_t length) KELP_MUST_USE;
kelp_status *kelp_http_encoder_end(kelp_http_encoder *encoder) KELP_MUST_USE;

/* Decodes padded or unpadded base64 into `out`, which has room for in.length bytes. False on a
 * character that is none. */
bool kelp_base64_decode(kelp_str in, char *out, size_t *out_length);

#endif
