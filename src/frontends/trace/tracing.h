/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of sampled requests, in the file format of Triton: a JSON array of the activities of each
 * request with their times. All protocols of a server share the settings, which clients can change.
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

#include "base/log.h"
#include "base/str.h"

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

/* Creates the settings. `core` and `file`, the path of the trace file ("" for none), are borrowed.
 * Fails with INVALID_ARGUMENT if tracing is on without a file or with a rate of 0. */
kelp_status *kelp_tracing_create(kelp_allocator allocator, TRITONSERVER_Server *core,
                                 const kelp_logger *logger, const char *file,
                                 const kelp_trace_values *values, kelp_tracing **out) KELP_MUST_USE;
/* Writes what remains and frees the settings. No record may exist. NULL is allowed. */
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
const char *kelp_tracing_file(const kelp_tracing *tracing);

/* ---- requests ---- */
/* Decides whether a request is traced. Returns its record with a reference of the caller, and the
 * trace for TRITONSERVER_ServerInferAsync; otherwise NULL for both. `tracing` may be NULL. A trace
 * that is not submitted is ended with kelp_trace_abandon. */
kelp_trace_record *kelp_tracing_sample(kelp_tracing *tracing, const char *model,
                                       TRITONSERVER_InferenceTrace **out_trace);
/* Adds an activity of the front end at the current time. NULL is allowed. */
void kelp_trace_stamp(kelp_trace_record *record, const char *activity);
/* Adds an activity of the front end at an earlier time, of kelp_now_ns. NULL is allowed. */
void kelp_trace_stamp_at(kelp_trace_record *record, const char *activity, uint64_t time_ns);
/* Deletes a trace that was not submitted. NULL is allowed. */
void kelp_trace_abandon(kelp_trace_record *record, TRITONSERVER_InferenceTrace *trace);
/* Drops the caller's reference. The record is written after the server has released its traces,
 * too. NULL is allowed. */
void kelp_trace_record_release(kelp_trace_record *record);

#endif
