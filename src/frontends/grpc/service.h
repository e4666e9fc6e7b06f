/* SPDX-License-Identifier: Apache-2.0 */
/* Triton's gRPC protocol (inference.GRPCInferenceService), with gRPC's health checking and
 * reflection, as a handler of the HTTP server. It uses only the public API of the server.
 * docs/grpc.md describes the protocol. */
#ifndef KELP_FRONTENDS_GRPC_SERVICE_H_
#define KELP_FRONTENDS_GRPC_SERVICE_H_

#include "frontends/common/access.h"
#include "frontends/common/forward.h"
#include "frontends/common/workers.h"
#include "frontends/http/exchange.h"
#include "frontends/settings/logging.h"
#include "frontends/shm/registry.h"
#include "frontends/trace/tracing.h"

#include <triton/core/tritonserver.h>

/* Options of the protocol. 0 selects the default of a member. */
typedef struct kelp_grpc_options {
    uint64_t max_message_bytes;   /* 4 GiB - 1: of a request, also after decompression */
    uint64_t max_queued_bytes;    /* 256 MiB of responses that a stream does not read */
    uint32_t max_stream_requests; /* 1024 requests in flight of a stream */
    /* shared by all protocols; borrowed until handler->destroy; NULL: the server lacks it */
    kelp_shm_registry *shm;
    kelp_logging *logging;
    kelp_tracing *tracing;
    kelp_workers *loaders; /* run loads and unloads; not NULL, borrowed until handler->destroy */
    kelp_access *access;   /* who may call what; NULL: everybody */
    const kelp_forward *forward; /* metadata that becomes parameters; NULL: none */
    /* of connections with calls; copied; NULL: kelp_http_keepalive_default */
    const kelp_http_keepalive *keepalive;
    bool compresses;          /* compress responses if the client accepts it */
    kelp_allocator allocator; /* the system's if .realloc is NULL */
} kelp_grpc_options;

/* Creates the handler, which accepts requests of HTTP/2 with content type application/grpc on
 * endpoints with the service KELP_SERVICE_GRPC. `core` is borrowed until handler->destroy. */
kelp_status *kelp_grpc_create(TRITONSERVER_Server *core, const kelp_grpc_options *options,
                              kelp_http_handler **out) KELP_MUST_USE;

/* Reports the server as not ready from now on, and ends streams and watches that are idle. Other
 * requests are served as before. Thread-safe. */
void kelp_grpc_drain(kelp_http_handler *handler);

#endif
