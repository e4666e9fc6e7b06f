/* SPDX-License-Identifier: Apache-2.0 */
/* Downloads over HTTP with libcurl: texts in memory, and files that are resumed and checked. Used
 * by one thread. */
#ifndef KELP_CLI_PULL_FETCH_H_
#define KELP_CLI_PULL_FETCH_H_

#include "base/buf.h"

#include <stdatomic.h>

typedef struct kelp_fetch kelp_fetch;

/* The maximum number of headers of a request. */
#define KELP_FETCH_HEADERS 8
/* The size of an ETag with its terminator; longer ones are ignored. */
#define KELP_FETCH_ETAG_BYTES 256

/* What is requested, and how the client identifies itself. Zeroed but for `url`. Strings are
 * borrowed. */
typedef struct kelp_fetch_request {
    const char *url;
    const char *headers[KELP_FETCH_HEADERS]; /* "Name: value"; NULL after the last */
    const char *sigv4;  /* "aws:amz:REGION:s3": signs requests with AWS's version 4; NULL: not */
    const char *user;   /* "NAME:PASSWORD", of HTTP or of the signature; NULL: none */
    const char *name;   /* for messages and progress; the URL if NULL */
    const char *digest; /* 64 hexadecimal digits of SHA-256 that a file must have; NULL: any */
    const char *known_etag; /* a file that still has it is not downloaded; NULL: none is known */
    uint64_t offset;        /* of a file; set by kelp_fetch_file */
    const char *validator;  /* the ETag that a resumed file must have; set by kelp_fetch_file */
} kelp_fetch_request;

/* A file that exists after kelp_fetch_file. */
typedef struct kelp_fetch_file_info {
    char digest[65];                  /* 64 hexadecimal digits of SHA-256; empty if `unchanged` */
    char etag[KELP_FETCH_ETAG_BYTES]; /* empty: the server sent none, or none was needed */
    bool unchanged;                   /* it still has `known_etag`, and was not downloaded */
} kelp_fetch_file_info;

/* Loads libcurl. With `quiet`, no progress is shown. Once `*stop` (NULL: never) is true, downloads
 * end with CANCELLED within about a second. FAILED_PRECONDITION if libcurl is not installed. */
kelp_status *kelp_fetch_create(bool quiet, atomic_bool *stop, kelp_fetch **out) KELP_MUST_USE;
void kelp_fetch_destroy(kelp_fetch *fetch);

/* Appends the body of a response of at most 16 MiB, and returns its status code. `out_challenge`,
 * if not NULL, receives the header WWW-Authenticate. Retries failures of the network and codes 429
 * and 5xx. Fails with UNAVAILABLE if there is no response. */
kelp_status *kelp_fetch_text(kelp_fetch *fetch, const kelp_fetch_request *request, kelp_buf *out,
                             long *out_code, kelp_buf *out_challenge) KELP_MUST_USE;
/* Downloads a file to `path`, whose directories are created. An interrupted download is continued,
 * also by another process: the part is in PATH.part, and its ETag in PATH.part.etag. A file that
 * has the digest already is not downloaded. The file appears when it is complete and checked.
 * Fails with NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE, or DATA_LOSS if the digest differs. */
kelp_status *kelp_fetch_file(kelp_fetch *fetch, const kelp_fetch_request *request, const char *path,
                             kelp_fetch_file_info *out) KELP_MUST_USE;
/* Returns an error for a status code that is not 200, with the beginning of the body. */
kelp_status *kelp_fetch_failure(const char *what, const char *name, long code,
                                const kelp_buf *body) KELP_MUST_USE;

#endif
