/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of OTLP/HTTP: ExportTraceServiceRequest and ExportTraceServiceResponse. Source:
 * opentelemetry/proto/collector/trace/v1/trace_service.proto. */
#ifndef KELP_FRONTENDS_OTLP_REQUEST_H_
#define KELP_FRONTENDS_OTLP_REQUEST_H_

#include "frontends/otlp/exporter.h"

/* A request that is encoded. The memory is reused. */
typedef struct kelp_otlp_request {
    kelp_buf head; /* the scope and the resource, encoded */
    size_t scope_bytes;
    kelp_buf body;
} kelp_otlp_request;

/* Encodes what all requests share. On failure, deinit applies. */
kelp_status *kelp_otlp_request_init(kelp_otlp_request *request, kelp_allocator allocator,
                                    const kelp_otlp_options *options) KELP_MUST_USE;
void kelp_otlp_request_deinit(kelp_otlp_request *request);
void kelp_otlp_request_begin(kelp_otlp_request *request);
/* Adds a complete message Span. */
void kelp_otlp_request_add(kelp_otlp_request *request, kelp_str span);
/* Returns the body, valid until the next request. */
kelp_status *kelp_otlp_request_end(kelp_otlp_request *request, kelp_str *out) KELP_MUST_USE;

/* Returns the number of spans that a successful response rejects, and copies its message, truncated
 * to `size` with the NUL. 0 for a malformed response. */
uint64_t kelp_otlp_rejected(kelp_str response, char *out_message, size_t size);

#endif
