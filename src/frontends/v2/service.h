/* SPDX-License-Identifier: Apache-2.0 */
/* The KServe v2 inference protocol with Triton's extensions, as a handler of the HTTP server. It
 * uses only the public API of the server. docs/http.md describes the protocol. */
#ifndef KELP_FRONTENDS_V2_SERVICE_H_
#define KELP_FRONTENDS_V2_SERVICE_H_

#include "frontends/common/access.h"
#include "frontends/common/forward.h"
#include "frontends/common/workers.h"
#include "frontends/http/exchange.h"
#include "frontends/settings/logging.h"
#include "frontends/shm/registry.h"
#include "frontends/trace/tracing.h"

#include <triton/core/tritonserver.h>

/* Options of the protocol. 0 selects the default of a member. */
typedef struct kelp_v2_options {
    uint64_t max_input_size_bytes; /* 64 MiB: JSON, raw, and decompressed bodies */
    uint64_t max_body_size_bytes;  /* 4 GiB: bodies with binary tensors */
    /* Extensions, borrowed until handler->destroy; NULL: not provided. */
    kelp_shm_registry *shm;
    kelp_logging *logging;
    kelp_tracing *tracing;
    kelp_workers *loaders; /* run loads and unloads; not NULL, borrowed until handler->destroy */
    bool load_models;      /* the description of the endpoints has those that load models */
    kelp_access *access;   /* who may use what; NULL: everybody */
    const kelp_forward *forward; /* headers that become parameters; NULL: none */
    /* Origins of web pages that may use the server (CORS), or "*" */
    const char *const *cors_origins;
    size_t cors_origin_count;
    kelp_allocator allocator; /* the system's if .realloc is NULL */
} kelp_v2_options;

/* Creates the handler. `core` is borrowed until handler->destroy. */
kelp_status *kelp_v2_create(TRITONSERVER_Server *core, const kelp_v2_options *options,
                            kelp_http_handler **out) KELP_MUST_USE;

/* Responds to readiness requests with 503 from now on, so that load balancers send no more requests
 * before the server stops. Other requests are served as before. Thread-safe. */
void kelp_v2_drain(kelp_http_handler *handler);

#endif
