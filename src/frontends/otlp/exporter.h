/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exporter of spans, as OTLP/HTTP with protobuf: a bounded queue, and a thread that sends
 * batches and retries. Nothing but the thread waits for the collector: spans that find the queue
 * full are dropped. Dropped spans are counted in a metric and reported in the log, at most once a
 * minute.
 *
 * A batch is sent when it is complete, or when its first span has waited for delay_ms. After a
 * failed connection or the status 429, 502, 503 or 504, it is sent again, with growing intervals,
 * or after the time that the collector names.
 *
 * Sources: "OTLP Specification 1.9.0", sections OTLP/HTTP; "OpenTelemetry Specification", trace/sdk
 * "Batching processor".
 */
#ifndef KELP_FRONTENDS_OTLP_EXPORTER_H_
#define KELP_FRONTENDS_OTLP_EXPORTER_H_

#include "base/log.h"
#include "frontends/otlp/client.h"

typedef struct kelp_otlp_exporter kelp_otlp_exporter;

/* An attribute of the resource, which all spans share. */
typedef struct kelp_otlp_attribute {
    const char *key, *value;
} kelp_otlp_attribute;

typedef struct kelp_otlp_options {
    kelp_otlp_client_options client;
    uint32_t max_queue;         /* spans that wait; at least 1 */
    uint32_t max_batch;         /* spans of a request; at least 1 */
    uint32_t delay_ms;          /* the time that a span waits for a complete batch */
    uint32_t export_timeout_ms; /* a batch that was not accepted for so long is dropped */
    const kelp_otlp_attribute *resource;
    size_t resource_count;
} kelp_otlp_options;

/* Creates an exporter and its thread. `logger` is borrowed, everything else copied. Fails as
 * kelp_otlp_client_create. */
kelp_status *kelp_otlp_exporter_create(kelp_allocator allocator, const kelp_logger *logger,
                                       const kelp_otlp_options *options,
                                       kelp_otlp_exporter **out) KELP_MUST_USE;
/* Queues a copy of a complete message Span, or drops it. Thread-safe. */
void kelp_otlp_exporter_put(kelp_otlp_exporter *exporter, kelp_str span);
/* Counts a span that could not be recorded. Thread-safe. */
void kelp_otlp_exporter_lost(kelp_otlp_exporter *exporter);
/* Exports what is queued, for at most `timeout_ns`, and stops the thread. Later spans are dropped.
 */
void kelp_otlp_exporter_stop(kelp_otlp_exporter *exporter, uint64_t timeout_ns);
/* Stops and frees the exporter. NULL is allowed. */
void kelp_otlp_exporter_destroy(kelp_otlp_exporter *exporter);

#endif
