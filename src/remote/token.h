/* SPDX-License-Identifier: Apache-2.0 */
/* The token that authenticates clients of a worker. */
#ifndef KELP_REMOTE_TOKEN_H_
#define KELP_REMOTE_TOKEN_H_

#include <kelp/status.h>

#include <stdbool.h>
#include <stddef.h>

#define KELP_TOKEN_BYTES 4096u

/* A token; the bytes after its end are 0. */
typedef struct kelp_token {
    size_t length; /* 0: no token */
    char bytes[KELP_TOKEN_BYTES];
} kelp_token;

/* Reads a file without the white space at its end. NULL `path` gives no token. Fails with
 * INVALID_ARGUMENT unless the file has 1 to KELP_TOKEN_BYTES bytes. */
kelp_status *kelp_token_read(const char *path, kelp_token *out) KELP_MUST_USE;
/* Compares in a time that does not depend on the bytes. */
bool kelp_token_equals(const kelp_token *a, const kelp_token *b);

#endif
