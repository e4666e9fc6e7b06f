/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP client that sends the requests of OTLP/HTTP, one at a time, on one thread. */
#ifndef KELP_FRONTENDS_OTLP_CLIENT_H_
#define KELP_FRONTENDS_OTLP_CLIENT_H_

#include "base/buf.h"

#define KELP_OTLP_MAX_REASON 384

typedef struct kelp_otlp_client kelp_otlp_client;

/* Where and how requests are sent. All text is copied. */
typedef struct kelp_otlp_client_options {
    const char *url;            /* of the schemes http and https; http if it has none */
    const char *const *headers; /* "Name: value" */
    size_t header_count;
    const char *ca_file;   /* certificates of authorities, or NULL: those of the system */
    const char *cert_file; /* the client's certificate in PEM, or NULL */
    const char *key_file;  /* its key, or NULL */
    const char *version;   /* of Kelp, for the header User-Agent */
    bool gzip;             /* compress the bodies */
    uint32_t timeout_ms;   /* of a request; 0: none */
} kelp_otlp_client_options;

/* The result of a request. */
typedef struct kelp_otlp_reply {
    unsigned status;                   /* of HTTP; 0: there was no response */
    uint64_t retry_after_ns;           /* 0: the response does not say it */
    kelp_str body;                     /* valid until the next request */
    char reason[KELP_OTLP_MAX_REASON]; /* why there was no response */
} kelp_otlp_reply;

/* Creates a client. FAILED_PRECONDITION without libcurl, UNIMPLEMENTED for `gzip` without zlib. */
kelp_status *kelp_otlp_client_create(kelp_allocator allocator,
                                     const kelp_otlp_client_options *options,
                                     kelp_otlp_client **out) KELP_MUST_USE;
void kelp_otlp_client_destroy(kelp_otlp_client *client); /* NULL is allowed */
/* Sends a body and waits for the response. Fails if there is no memory for the request. */
kelp_status *kelp_otlp_client_send(kelp_otlp_client *client, kelp_str body,
                                   kelp_otlp_reply *out) KELP_MUST_USE;
/* Ends the current request and all later ones at this time (kelp_now_ns). Any thread. */
void kelp_otlp_client_limit(kelp_otlp_client *client, uint64_t deadline_ns);

#endif
