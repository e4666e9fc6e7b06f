/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of sampled requests, in one of two modes. Mode triton writes files in the format of
 * Triton: a JSON array of the activities of each request with their times. Mode opentelemetry
 * exports spans to a collector, and continues the traces of clients that send a trace context. All
 * protocols of a server share the settings, which clients can change.
 *
 * The global settings apply to models without settings of their own. A value that is not set for a
 * model comes from the global settings, a value that is not set there from the start options.
 *
 * A file is written by a separate thread. A request waits for nothing; if the thread falls behind,
 * traces are dropped.
 *
 * Thread-safe. While tracing is off, kelp_tracing_sample costs one load.
 *
 * Source: the trace extension of Triton's protocols, and the documentation of its trace files.
 */
#ifndef KELP_FRONTENDS_TRACE_TRACING_H_
#define KELP_FRONTENDS_TRACE_TRACING_H_

#include "base/arena.h"
#include "base/log.h"
#include "frontends/otlp/context.h"
#include "frontends/otlp/exporter.h"

#include <kelp/allocator.h>
#include <triton/core/tritonserver.h>

typedef struct kelp_tracing kelp_tracing;
/* The trace of a request. */
typedef struct kelp_trace_record kelp_trace_record;

/* The maximum number of models with settings of their own. */
#define KELP_TRACING_MAX_MODELS 1024

/* The settings of a model. */
typedef struct kelp_trace_values {
    unsigned level;         /* bits of TRITONSERVER_TRACE_LEVEL_{TIMESTAMPS,TENSORS}; 0: off */
    uint32_t rate;          /* one of so many requests is traced */
    int32_t count;          /* traces that remain; -1: unlimited */
    uint32_t log_frequency; /* traces per file, whose names end in an index; 0: one file */
} kelp_trace_values;

/* The decision of mode opentelemetry about requests. Source: OpenTelemetry Specification,
 * trace/sdk "Sampling". */
typedef struct kelp_trace_sampler {
    /* The flag of a client's trace context decides. Otherwise, and for requests without a context,
     * the ratio. Requests without a context must also be selected by the settings. */
    bool parent_based;
    double ratio; /* of the trace IDs that are sampled */
} kelp_trace_sampler;

/* A setting of mode opentelemetry that clients can read, but not change. */
typedef struct kelp_trace_shown {
    const char *name;
    const char *const *values;
    size_t count;
} kelp_trace_shown;

/* The start options. Everything is borrowed. */
typedef struct kelp_tracing_options {
    kelp_trace_values values;
    const char *file;              /* of mode triton: the path of the trace file, or "" */
    const kelp_otlp_options *otlp; /* mode opentelemetry; NULL: mode triton */
    kelp_trace_sampler sampler;
    const kelp_trace_shown *shown;
    size_t shown_count;
} kelp_tracing_options;

/* Creates the settings. `core` and `logger` are borrowed. Fails with INVALID_ARGUMENT if tracing is
 * on without a file or with a rate of 0 in mode triton, or at the level TENSORS in mode
 * opentelemetry; and as kelp_otlp_exporter_create. */
kelp_status *kelp_tracing_create(kelp_allocator allocator, TRITONSERVER_Server *core,
                                 const kelp_logger *logger, const kelp_tracing_options *options,
                                 kelp_tracing **out) KELP_MUST_USE;
/* Exports what remains, for a few seconds at most. Later spans are dropped. NULL is allowed. */
void kelp_tracing_stop(kelp_tracing *tracing);
/* Stops, writes what remains and frees the settings. No record may exist. NULL is allowed. */
void kelp_tracing_destroy(kelp_tracing *tracing);

/* ---- settings ---- */
/* A change of a setting: "trace_level", "trace_rate", "trace_count", "log_frequency". */
typedef struct kelp_trace_change {
    kelp_str name;
    bool reset; /* to the next more general value */
    const kelp_str *values;
    size_t count;
} kelp_trace_change;

/* Applies all changes or none, to a model or, if `model` is "", globally. Fails with
 * INVALID_ARGUMENT for an unknown model, name or value, UNIMPLEMENTED for "trace_file". */
kelp_status *kelp_tracing_update(kelp_tracing *tracing, const char *model,
                                 const kelp_trace_change *changes, size_t count) KELP_MUST_USE;
/* Returns the settings of a model, or the global settings. Fails with INVALID_ARGUMENT for an
 * unknown model. */
kelp_status *kelp_tracing_get(kelp_tracing *tracing, const char *model,
                              kelp_trace_values *out) KELP_MUST_USE;
/* Returns the start options. */
const kelp_tracing_options *kelp_tracing_start_options(const kelp_tracing *tracing);

/* ---- requests ---- */
/* What a front end knows about a request. */
typedef struct kelp_trace_origin {
    const char *model;
    kelp_trace_context parent; /* of the client; zeroed: none */
    bool grpc;                 /* otherwise HTTP */
    kelp_str method, path;     /* of HTTP */
    const char *route;         /* the pattern of the path: '*' is a model, '#' a version; or NULL */
    unsigned http_version;     /* as in kelp_http_request */
    uint64_t start_ns;         /* when its first bytes arrived (kelp_now_ns); 0: now */
} kelp_trace_origin;

/* Reads the trace context of the client, if the mode uses it and tracing is on. Otherwise stores a
 * zeroed one. `tracing` may be NULL; `out->state` is in the arena. */
void kelp_tracing_read_parent(kelp_tracing *tracing, const kelp_http_request *request,
                              kelp_arena *arena, kelp_trace_context *out);
/* Decides whether a request is traced. Returns its record with a reference of the caller, or NULL.
 * `tracing` may be NULL. */
kelp_trace_record *kelp_tracing_sample(kelp_tracing *tracing, const kelp_trace_origin *origin);
/* Returns the trace for TRITONSERVER_ServerInferAsync; NULL for NULL. If the submission fails,
 * kelp_trace_take_back takes it again. */
TRITONSERVER_InferenceTrace *kelp_trace_submit(kelp_trace_record *record);
void kelp_trace_take_back(kelp_trace_record *record, TRITONSERVER_InferenceTrace *trace);
/* Adds an activity of the front end at the current time. NULL is allowed. */
void kelp_trace_stamp(kelp_trace_record *record, const char *activity);
/* Adds an activity of the front end at an earlier time, of kelp_now_ns. NULL is allowed. */
void kelp_trace_stamp_at(kelp_trace_record *record, const char *activity, uint64_t time_ns);
/* Sets the result in mode opentelemetry: the status of HTTP or the code of gRPC, 0 if it is not
 * known; and the message of a failure, or NULL. Only the first code and message count. A NULL
 * record is allowed. */
void kelp_trace_finish(kelp_trace_record *record, unsigned code, const char *message);
/* Drops the caller's reference. The record is written after the server has released its traces,
 * too. NULL is allowed. */
void kelp_trace_record_release(kelp_trace_record *record);

#endif
