/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: identity, context, and the way back to their maker. */
#include "base/buf.h"
#include "server/core/values.h"
#include "server/core/log.h"
#include "server/server.h"
#include "server/request/trace.h"

struct kelp_trace {
    uint64_t id;
    uint64_t parent_id;
    TRITONSERVER_InferenceTraceLevel level;
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn;
    TRITONSERVER_InferenceTraceTensorActivityFn_t tensor_fn;
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn;
    void *userp;
    kelp_text model_name;
    int64_t model_version;
    kelp_text request_id;
    kelp_text context;
};

static kelp_trace *of(TRITONSERVER_InferenceTrace *handle) {
    return (kelp_trace *)handle;
}

void kelp_trace_report(kelp_trace *trace, TRITONSERVER_InferenceTraceActivity activity,
                       uint64_t timestamp_ns) {
    const unsigned timestamps = TRITONSERVER_TRACE_LEVEL_MIN | TRITONSERVER_TRACE_LEVEL_MAX |
                                TRITONSERVER_TRACE_LEVEL_TIMESTAMPS;
    if (trace->activity_fn && ((unsigned)trace->level & timestamps))
        trace->activity_fn((TRITONSERVER_InferenceTrace *)trace, activity, timestamp_ns,
                           trace->userp);
}

kelp_status *kelp_trace_begin(kelp_trace *trace, const kelp_request *request) {
    KELP_TRY(kelp_text_set(&trace->model_name, request->model->name));
    KELP_TRY(kelp_text_set(&trace->request_id, kelp_text_get(&request->id)));
    trace->model_version = request->model->version;
    return NULL;
}

static bool wants_tensors(const kelp_trace *trace) {
    return trace->tensor_fn && ((unsigned)trace->level & TRITONSERVER_TRACE_LEVEL_TENSORS);
}

/* An input in one piece: its only block, or a copy of all in `inout_copy`, which is the caller's to
 * free. */
static kelp_status *in_one_piece(const kelp_input *input, kelp_buf *inout_copy,
                                 const void **out_base) {
    const kelp_data *data = &input->data;
    if (data->count <= 1) {
        *out_base = data->count ? data->blocks[0].base : NULL;
        return NULL;
    }
    kelp_buf_clear(inout_copy);
    for (size_t i = 0; i < data->count; i++)
        kelp_buf_append(inout_copy, data->blocks[i].base, data->blocks[i].attributes.size_bytes);
    *out_base = kelp_buf_cstr(inout_copy);
    return *out_base ? NULL : kelp_status_oom();
}

void kelp_trace_inputs(kelp_trace *trace, const kelp_request *request) {
    if (!wants_tensors(trace))
        return;
    kelp_buf copy;
    kelp_buf_init(&copy, kelp_allocator_system());
    for (size_t i = 0; i < request->input_count; i++) {
        const kelp_input *input = request->inputs[i];
        const void *base = NULL;
        kelp_status *status = in_one_piece(input, &copy, &base);
        if (status) {
            kelp_server_log_status("cannot trace an input", status);
            continue;
        }
        const kelp_buffer_attributes *where =
            input->data.count == 1 ? &input->data.blocks[0].attributes : NULL;
        trace->tensor_fn((TRITONSERVER_InferenceTrace *)trace,
                         TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT, kelp_text_get(&input->name),
                         input->datatype, base, input->data.size_bytes, input->shape, input->rank,
                         where ? where->memory_type : TRITONSERVER_MEMORY_CPU,
                         where ? where->memory_type_id : 0, trace->userp);
    }
    kelp_buf_deinit(&copy);
}

void kelp_trace_outputs(kelp_trace *trace, const kelp_response *response) {
    for (size_t i = 0; wants_tensors(trace) && i < response->output_count; i++) {
        const kelp_output *output = response->outputs[i];
        trace->tensor_fn((TRITONSERVER_InferenceTrace *)trace,
                         TRITONSERVER_TRACE_TENSOR_BACKEND_OUTPUT, kelp_text_get(&output->name),
                         output->datatype, output->buffer, output->attributes.size_bytes,
                         output->shape, output->rank, output->attributes.memory_type,
                         output->attributes.memory_type_id, trace->userp);
    }
}

void kelp_trace_release(kelp_trace *trace) {
    trace->release_fn((TRITONSERVER_InferenceTrace *)trace, trace->userp);
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
    static atomic_ullong next_id = 1;
    kelp_trace *made = NULL;
    if (!trace || !release_fn)
        return kelp_abi_null(__func__, trace ? "release_fn" : "trace");
    kelp_status *status = KELP_NEW(kelp_allocator_system(), kelp_trace, &made);
    if (status)
        return kelp_to_error(status);
    made->id = atomic_fetch_add(&next_id, 1);
    made->parent_id = parent_id;
    made->level = level;
    made->activity_fn = activity_fn;
    made->tensor_fn = tensor_activity_fn;
    made->release_fn = release_fn;
    made->userp = trace_userp;
    *trace = (TRITONSERVER_InferenceTrace *)made;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceDelete(TRITONSERVER_InferenceTrace *trace) {
    if (trace) {
        kelp_text_deinit(&of(trace)->model_name);
        kelp_text_deinit(&of(trace)->request_id);
        kelp_text_deinit(&of(trace)->context);
        kelp_free(kelp_allocator_system(), trace, sizeof(kelp_trace));
    }
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceReportActivity(TRITONSERVER_InferenceTrace *trace,
                                                              uint64_t timestamp,
                                                              const char *name) {
    if (!trace || !name)
        return kelp_abi_null(__func__, trace ? "name" : "trace");
    /* The callback has no room for the name, so it comes where a reader of the trace finds it: as
     * the context. */
    kelp_status *status = kelp_text_set(&of(trace)->context, name);
    if (!status)
        kelp_trace_report(of(trace), TRITONSERVER_TRACE_CUSTOM_ACTIVITY, timestamp);
    return kelp_to_error(status);
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceId(TRITONSERVER_InferenceTrace *trace,
                                                  uint64_t *id) {
    if (!trace || !id)
        return kelp_abi_null(__func__, trace ? "id" : "trace");
    *id = of(trace)->id;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceParentId(TRITONSERVER_InferenceTrace *trace,
                                                        uint64_t *parent_id) {
    if (!trace || !parent_id)
        return kelp_abi_null(__func__, trace ? "parent_id" : "trace");
    *parent_id = of(trace)->parent_id;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceModelName(TRITONSERVER_InferenceTrace *trace,
                                                         const char **model_name) {
    if (!trace || !model_name)
        return kelp_abi_null(__func__, trace ? "model_name" : "trace");
    *model_name = kelp_text_get(&of(trace)->model_name);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceModelVersion(TRITONSERVER_InferenceTrace *trace,
                                                            int64_t *model_version) {
    if (!trace || !model_version)
        return kelp_abi_null(__func__, trace ? "model_version" : "trace");
    *model_version = of(trace)->model_version;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceRequestId(TRITONSERVER_InferenceTrace *trace,
                                                         const char **request_id) {
    if (!trace || !request_id)
        return kelp_abi_null(__func__, trace ? "request_id" : "trace");
    *request_id = kelp_text_get(&of(trace)->request_id);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceTraceSpawnChildTrace(TRITONSERVER_InferenceTrace *trace,
                                           TRITONSERVER_InferenceTrace **child_trace) {
    if (!trace || !child_trace)
        return kelp_abi_null(__func__, trace ? "child_trace" : "trace");
    const kelp_trace *parent = of(trace);
    return TRITONSERVER_InferenceTraceTensorNew(child_trace, parent->level, parent->id,
                                                parent->activity_fn, parent->tensor_fn,
                                                parent->release_fn, parent->userp);
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceSetContext(TRITONSERVER_InferenceTrace *trace,
                                                          const char *trace_context) {
    if (!trace || !trace_context)
        return kelp_abi_null(__func__, trace ? "trace_context" : "trace");
    return kelp_to_error(kelp_text_set(&of(trace)->context, trace_context));
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceContext(TRITONSERVER_InferenceTrace *trace,
                                                       const char **trace_context) {
    if (!trace || !trace_context)
        return kelp_abi_null(__func__, trace ? "trace_context" : "trace");
    *trace_context = kelp_text_get(&of(trace)->context);
    return NULL;
}
