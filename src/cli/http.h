/* SPDX-License-Identifier: Apache-2.0 */
/* A client of HTTP for commands that talk to a server, on libcurl. One thread at a time uses a
 * client, which keeps its connection. */
#ifndef KELP_CLI_HTTP_H_
#define KELP_CLI_HTTP_H_

#include "cli/args.h"

#include <stddef.h>

/* Options that the commands share. */
typedef struct kelp_cli_http_options {
    kelp_arg_list headers; /* "NAME: VALUE" */
    const char *ca_file;
} kelp_cli_http_options;

/* The rows of a kelp_cli_http_options at offset `at`. */
#define KELP_CLI_HTTP_OPTIONS(at)                                                       \
    {.group = "Server",                                                                 \
     .name = "header",                                                                  \
     .kind = KELP_OPTION_LIST,                                                          \
     .offset = (at) + offsetof(kelp_cli_http_options, headers),                         \
     .value = "'NAME: VALUE'",                                                          \
     .help = "add a header to each request, such as a token; may be repeated"},         \
    {                                                                                   \
        .name = "ca-file", .kind = KELP_OPTION_TEXT,                                    \
        .offset = (at) + offsetof(kelp_cli_http_options, ca_file), .value = "FILE",     \
        .choices = "@file", .help = "certificates to verify the server with, for https" \
    }

typedef struct kelp_cli_http kelp_cli_http;

/* Creates a client. FAILED_PRECONDITION if libcurl is not installed. The options are borrowed. */
kelp_status *kelp_cli_http_create(const kelp_cli_http_options *options,
                                  kelp_cli_http **out) KELP_MUST_USE;
/* NULL is ignored. */
void kelp_cli_http_destroy(kelp_cli_http *client);

/* Return true for "http://…" and "https://…". */
bool kelp_cli_http_is_url(const char *text);

/* Sends a GET request. `*out_body` is valid until the next request. Fails with UNAVAILABLE if there
 * is no response. */
kelp_status *kelp_cli_http_get(kelp_cli_http *client, const char *url, unsigned *out_code,
                               kelp_str *out_body) KELP_MUST_USE;
/* Sends a POST request, else the same. `json_length` is the length of the JSON before tensor data
 * in the body; 0 if there is none. */
kelp_status *kelp_cli_http_post(kelp_cli_http *client, const char *url, kelp_str body,
                                size_t json_length, unsigned *out_code,
                                kelp_str *out_body) KELP_MUST_USE;
/* Returns an error for a response with another code than 200: the message of its JSON member
 * "error", or the code. */
kelp_status *kelp_cli_http_expect(const char *url, unsigned code, kelp_str body) KELP_MUST_USE;

#endif
