/* SPDX-License-Identifier: Apache-2.0 */
/* Activities and tensors as elements of a trace file in Triton's format, separated by commas. */
#ifndef KELP_FRONTENDS_TRACE_RECORD_TEXT_H_
#define KELP_FRONTENDS_TRACE_RECORD_TEXT_H_

#include "base/buf.h"

#include <triton/core/tritonserver.h>

/* What the server knows about the request of a trace. Texts are borrowed from the trace. */
typedef struct kelp_trace_model {
    const char *name, *request; /* empty: no ID */
    int64_t version;
    uint64_t parent; /* the ID of the trace around it; 0: none */
} kelp_trace_model;

/* Reads the model of a trace. */
kelp_trace_model kelp_trace_model_of(TRITONSERVER_InferenceTrace *trace);

/* A tensor of a request. */
typedef struct kelp_trace_tensor {
    const char *activity, *name;
    TRITONSERVER_DataType type;
    const void *base;
    size_t size_bytes;
    const int64_t *shape;
    uint64_t rank;
} kelp_trace_tensor;

void kelp_trace_text_add_timestamp(kelp_buf *out, uint64_t id, const char *name, uint64_t time_ns);
/* Appends the model of a trace, and for a part of a request also the trace of the request. */
void kelp_trace_text_add_model(kelp_buf *out, TRITONSERVER_InferenceTrace *trace, uint64_t id);
void kelp_trace_text_add_tensor(kelp_buf *out, uint64_t id, const kelp_trace_tensor *tensor);

#endif
