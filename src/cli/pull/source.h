/* SPDX-License-Identifier: Apache-2.0 */
/* The stores that models are pulled from. */
#ifndef KELP_CLI_PULL_SOURCE_H_
#define KELP_CLI_PULL_SOURCE_H_

#include "cli/pull/fetch.h"

/* A pull. Strings are borrowed. */
typedef struct kelp_pull {
    kelp_fetch *fetch;
    const char *address; /* after the scheme */
    const char *scheme;  /* "http", "https", "s3" or "oci" */
    const char *output;  /* a file or a directory */
    const char *digest;  /* 64 hexadecimal digits, or NULL */
    bool plain_http;     /* registries without TLS */
    size_t file_count;   /* of those that were pulled */
} kelp_pull;

/* Pull a file over HTTP, an object or the objects of a prefix from S3, an artifact from an OCI
 * registry. */
kelp_status *kelp_pull_http(kelp_pull *pull) KELP_MUST_USE;
kelp_status *kelp_pull_s3(kelp_pull *pull) KELP_MUST_USE;
kelp_status *kelp_pull_oci(kelp_pull *pull) KELP_MUST_USE;

/* Downloads a file to `relative` in the output, or to the output if it is NULL, and prints its path
 * and digest. Names that leave the output are rejected. */
kelp_status *kelp_pull_file(kelp_pull *pull, const kelp_fetch_request *request,
                            const char *relative) KELP_MUST_USE;
/* Returns the path of a single file: the output, or a file of that name in it if it is a directory
 * or ends with '/'. */
kelp_status *kelp_pull_single(kelp_pull *pull, const kelp_fetch_request *request,
                              const char *name) KELP_MUST_USE;
/* Appends text with percent-encoding of all but unreserved characters and those of `kept`. */
void kelp_pull_encode(const char *text, size_t length, const char *kept, kelp_buf *out);
/* Appends percent-decoded text. INVALID_ARGUMENT if it is malformed or contains NUL. */
kelp_status *kelp_pull_decode(const char *text, size_t length, kelp_buf *out) KELP_MUST_USE;

#endif
