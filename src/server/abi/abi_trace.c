/* SPDX-License-Identifier: Apache-2.0 */
/* The C API: traces. */
#include "base/assert.h"
#include "server/core/error.h"
#include "server/request/trace.h"

static kelp_trace *of(TRITONSERVER_InferenceTrace *handle) {
    return (kelp_trace *)handle;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceNew(
    TRITONSERVER_InferenceTrace **trace, TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void *trace_userp) {
    return TRITONSERVER_InferenceTraceTensorNew(trace, level, parent_id, activity_fn, NULL,
                                                release_fn, trace_userp);
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceTensorNew(
    TRITONSERVER_InferenceTrace **trace, TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceTensorActivityFn_t tensor_activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void *trace_userp) {
    if (trace == NULL || release_fn == NULL)
        return kelp_null_error(__func__, trace != NULL ? "release_fn" : "trace");
    const kelp_trace options = {.parent_id = parent_id,
                                .level = level,
                                .activity_fn = activity_fn,
                                .tensor_fn = tensor_activity_fn,
                                .release_fn = release_fn,
                                .userp = trace_userp};
    return kelp_to_error(kelp_trace_create(&options, (kelp_trace **)trace));
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceDelete(TRITONSERVER_InferenceTrace *trace) {
    kelp_trace_destroy(of(trace));
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceReportActivity(TRITONSERVER_InferenceTrace *trace,
                                                              uint64_t timestamp,
                                                              const char *name) {
    if (trace == NULL || name == NULL)
        return kelp_null_error(__func__, trace != NULL ? "name" : "trace");
    return kelp_to_error(kelp_trace_report_custom(of(trace), timestamp, name));
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceId(TRITONSERVER_InferenceTrace *trace,
                                                  uint64_t *id) {
    if (trace == NULL || id == NULL)
        return kelp_null_error(__func__, trace != NULL ? "id" : "trace");
    *id = of(trace)->id;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceParentId(TRITONSERVER_InferenceTrace *trace,
                                                        uint64_t *parent_id) {
    if (trace == NULL || parent_id == NULL)
        return kelp_null_error(__func__, trace != NULL ? "parent_id" : "trace");
    *parent_id = of(trace)->parent_id;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceModelName(TRITONSERVER_InferenceTrace *trace,
                                                         const char **model_name) {
    if (trace == NULL || model_name == NULL)
        return kelp_null_error(__func__, trace != NULL ? "model_name" : "trace");
    *model_name = kelp_text_get(&of(trace)->model_name);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceModelVersion(TRITONSERVER_InferenceTrace *trace,
                                                            int64_t *model_version) {
    if (trace == NULL || model_version == NULL)
        return kelp_null_error(__func__, trace != NULL ? "model_version" : "trace");
    *model_version = of(trace)->model_version;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceRequestId(TRITONSERVER_InferenceTrace *trace,
                                                         const char **request_id) {
    if (trace == NULL || request_id == NULL)
        return kelp_null_error(__func__, trace != NULL ? "request_id" : "trace");
    *request_id = kelp_text_get(&of(trace)->request_id);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceTraceSpawnChildTrace(TRITONSERVER_InferenceTrace *trace,
                                           TRITONSERVER_InferenceTrace **child_trace) {
    if (trace == NULL || child_trace == NULL)
        return kelp_null_error(__func__, trace != NULL ? "child_trace" : "trace");
    const kelp_trace *parent = of(trace);
    KELP_ASSERT(parent->release_fn != NULL); /* checked when the parent was created */
    return kelp_to_error(kelp_trace_spawn(parent, (kelp_trace **)child_trace));
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceSetContext(TRITONSERVER_InferenceTrace *trace,
                                                          const char *trace_context) {
    if (trace == NULL || trace_context == NULL)
        return kelp_null_error(__func__, trace != NULL ? "trace_context" : "trace");
    return kelp_to_error(kelp_trace_set_context(of(trace), trace_context));
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceContext(TRITONSERVER_InferenceTrace *trace,
                                                       const char **trace_context) {
    if (trace == NULL || trace_context == NULL)
        return kelp_null_error(__func__, trace != NULL ? "trace_context" : "trace");
    *trace_context = kelp_trace_context(of(trace));
    return NULL;
}
