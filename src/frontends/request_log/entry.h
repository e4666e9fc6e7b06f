/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of a request in the access log, a JSON object, which the transport and the protocol
 * write while they process the request.
 *
 * Text of the client is escaped, shortened to a limit, and U+FFFD replaces bytes that are not
 * UTF-8, so that each line is one valid object whatever a client sends. The memory of an entry is
 * kept for the next request.
 *
 * An entry belongs to the thread that processes the request. If `log` is NULL, the functions have
 * no effect.
 */
#ifndef KELP_FRONTENDS_REQUEST_LOG_ENTRY_H_
#define KELP_FRONTENDS_REQUEST_LOG_ENTRY_H_

#include "base/buf.h"
#include "frontends/request_log/log.h"

#include <sys/socket.h>

/* The address of a client. */
typedef struct kelp_http_peer {
    uint16_t port;
    uint8_t family; /* AF_INET, AF_INET6 or AF_UNIX */
    uint8_t address[16];
} kelp_http_peer;

/* An entry. Zeroed apart from the buffer before its first use. */
typedef struct kelp_request_entry {
    kelp_request_log *log; /* NULL: the request is not logged */
    kelp_buf line;
    uint64_t received_bytes; /* of a streamed body */
    uint64_t sent_bytes;     /* of the body of the response */
    int64_t version;         /* of the model; -1: unknown */
    bool bodyless;           /* the response to HEAD */
    bool has_model, has_id;
} kelp_request_entry;

/* What is known of a request when it begins. Texts are borrowed for the call. */
typedef struct kelp_request_facts {
    const char *protocol; /* "HTTP/1.1", "gRPC" */
    kelp_str method, path;
    const kelp_str *user_agent; /* the header, or NULL */
    kelp_str trace_id;          /* in hexadecimal; "": none */
    uint64_t age_ns;            /* since its first bytes arrived */
} kelp_request_facts;

/* The result of a request. */
typedef struct kelp_request_result {
    unsigned status;            /* of HTTP */
    const kelp_str *rpc_status; /* of gRPC, a number; NULL: the request is not an RPC */
    uint64_t received_bytes;    /* of the body, if it was not streamed */
    uint64_t duration_ns;
    bool aborted; /* the client closed the connection before it received the response */
} kelp_request_result;

/* Converts the address of a socket. */
kelp_http_peer kelp_http_peer_of(const struct sockaddr *address);

/* Begins the entry of a request. `log` may be NULL. */
void kelp_request_entry_begin(kelp_request_entry *entry, kelp_request_log *log,
                              const kelp_http_peer *peer, const kelp_request_facts *facts);
/* Adds the name of the model; `version` is -1 if the server selects it. The first one counts. */
void kelp_request_entry_set_model(kelp_request_entry *entry, const char *model, int64_t version);
/* Adds the ID of the inference request. The first one counts; "" is none. */
void kelp_request_entry_set_id(kelp_request_entry *entry, const char *id);
/* Puts the line into the log, and empties the entry. */
void kelp_request_entry_end(kelp_request_entry *entry, const kelp_request_result *result);

#endif
