/* SPDX-License-Identifier: Apache-2.0 */
/* The stores that models are pulled from: HTTP servers, S3, OCI registries. A pull lists the files
 * of an address and passes each to a function, which downloads it. Used by one thread. */
#ifndef KELP_CLI_PULL_SOURCE_H_
#define KELP_CLI_PULL_SOURCE_H_

#include "cli/pull/fetch.h"

typedef struct kelp_pull kelp_pull;
typedef struct kelp_pull_store kelp_pull_store;

/* A file of an address. Strings are borrowed. */
typedef struct kelp_pull_item {
    const kelp_fetch_request *request;
    const char *path; /* below the address, and safe; the name of a single file */
    bool is_single;   /* the address is that of this file */
    /* Differs from that of an earlier file at this path if the content may differ; NULL: not known
     * before the download. */
    const char *version;
} kelp_pull_item;

/* Receives a file of a pull. */
typedef kelp_status *(*kelp_pull_fn)(void *userp, kelp_fetch *fetch, const kelp_pull_item *item);

/* The pull of an address. `fetch`, `take`, `userp` and `plain_http` are set by the user, and
 * `digest` may be. */
struct kelp_pull {
    kelp_fetch *fetch;
    kelp_pull_fn take;
    void *userp;
    bool plain_http;              /* registries without TLS */
    const kelp_pull_store *store; /* the scheme, and how it is listed */
    char *address;                /* after "SCHEME://" */
    char digest[65];              /* that the file or manifest must have; empty: any */
};

/* Returns true for text of the form "SCHEME://…", of any scheme. */
bool kelp_pull_is_address(const char *text);
/* Parses an address: http(s)://, s3:// or oci://, optionally with "#sha256=HEX" at its end.
 * INVALID_ARGUMENT if it is none. */
kelp_status *kelp_pull_init(kelp_pull *pull, const char *address) KELP_MUST_USE;
void kelp_pull_deinit(kelp_pull *pull);
/* Copies 64 hexadecimal digits to the digest. Returns false for other text. */
bool kelp_pull_set_digest(kelp_pull *pull, const char *digits);
/* Returns "http", "https", "s3" or "oci". */
const char *kelp_pull_scheme(const kelp_pull *pull);
/* Appends the percent-decoded last component of the path, without a query, tag or digest. It may
 * be empty. */
kelp_status *kelp_pull_name(const kelp_pull *pull, kelp_buf *out) KELP_MUST_USE;
/* Passes all files to `take`. Fails like kelp_fetch_file, with NOT_FOUND if there are none, and
 * with INVALID_ARGUMENT if a name leads out of the address. */
kelp_status *kelp_pull_run(kelp_pull *pull) KELP_MUST_USE;

/* ---- for the stores ---- */

struct kelp_pull_store {
    const char *scheme;
    kelp_status *(*list)(kelp_pull *pull);
};

kelp_status *kelp_pull_http(kelp_pull *pull) KELP_MUST_USE;
kelp_status *kelp_pull_s3(kelp_pull *pull) KELP_MUST_USE;
kelp_status *kelp_pull_oci(kelp_pull *pull) KELP_MUST_USE;

/* Checks the name of a file, and passes it to `take`. */
kelp_status *kelp_pull_take(kelp_pull *pull, const kelp_pull_item *item) KELP_MUST_USE;
/* Returns the digest for a request, or NULL. */
const char *kelp_pull_digest(const kelp_pull *pull);
/* Appends text with percent-encoding of all but unreserved characters and those of `kept`. */
void kelp_pull_encode(const char *text, size_t length, const char *kept, kelp_buf *out);
/* Appends percent-decoded text. INVALID_ARGUMENT if it is malformed or contains NUL. */
kelp_status *kelp_pull_decode(const char *text, size_t length, kelp_buf *out) KELP_MUST_USE;

#endif
