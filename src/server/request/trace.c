/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of traces, and reports to their callbacks. */
#include "server/request/trace.h"

#include "base/buf.h"
#include "base/text/json.h"
#include "server/core/heap.h"
#include "server/core/log.h"

void kelp_trace_report(kelp_trace *trace, TRITONSERVER_InferenceTraceActivity activity,
                       uint64_t timestamp_ns) {
    const unsigned timestamps = TRITONSERVER_TRACE_LEVEL_MIN | TRITONSERVER_TRACE_LEVEL_MAX |
                                TRITONSERVER_TRACE_LEVEL_TIMESTAMPS;
    if (trace->activity_fn != NULL && ((unsigned)trace->level & timestamps))
        trace->activity_fn((TRITONSERVER_InferenceTrace *)trace, activity, timestamp_ns,
                           trace->userp);
}

/* Writes the context with the name of an activity. A context that is not an object is left out. */
static void put_activity(const char *context, uint64_t timestamp_ns, const char *name,
                         kelp_buf *out) {
    kelp_str old = kelp_str_trim(kelp_str_from(context));
    bool is_object = old.length >= 2 && old.data[0] == '{' && old.data[old.length - 1] == '}';
    kelp_str members =
        is_object ? kelp_str_trim((kelp_str){old.data + 1, old.length - 2}) : (kelp_str){0};
    kelp_buf_append_char(out, '{');
    kelp_buf_append_str(out, members);
    kelp_buf_printf(out, "%s\"%llu\":", members.length > 0 ? "," : "",
                    (unsigned long long)timestamp_ns);
    kelp_json_escape(out, kelp_str_from(name));
    kelp_buf_append_char(out, '}');
}

/* The custom activity that this thread reports, with the context of its trace meanwhile. Other
 * threads may report activities of the same trace at the same time. */
static _Thread_local struct custom_activity {
    const kelp_trace *trace; /* NULL: none */
    const char *context;
} reported;

const char *kelp_trace_context(const kelp_trace *trace) {
    return reported.trace == trace ? reported.context : kelp_text_get(&trace->context);
}

kelp_status *kelp_trace_report_custom(kelp_trace *trace, uint64_t timestamp_ns, const char *name) {
    kelp_buf text;
    kelp_buf_init(&text, kelp_process_allocator());
    put_activity(kelp_text_get(&trace->context), timestamp_ns, name, &text);
    const char *json = kelp_buf_cstr(&text);
    kelp_status *status = json == NULL ? kelp_status_oom() : NULL;
    if (status == NULL) {
        const struct custom_activity outer = reported;
        reported = (struct custom_activity){trace, json};
        kelp_trace_report(trace, TRITONSERVER_TRACE_CUSTOM_ACTIVITY, timestamp_ns);
        reported = outer;
    }
    kelp_buf_deinit(&text);
    return status;
}

kelp_status *kelp_trace_begin(kelp_trace *trace, const kelp_request *request) {
    KELP_TRY(kelp_text_set(kelp_process_allocator(), &trace->model_name, request->model->name));
    KELP_TRY(
        kelp_text_set(kelp_process_allocator(), &trace->request_id, kelp_text_get(&request->id)));
    trace->model_version = request->model->version;
    return NULL;
}

static bool includes_tensors(const kelp_trace *trace) {
    return trace->tensor_fn != NULL && ((unsigned)trace->level & TRITONSERVER_TRACE_LEVEL_TENSORS);
}

/* Returns the data of an input as one block: its only block, or a copy in `inout_copy`. */
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
    return *out_base != NULL ? NULL : kelp_status_oom();
}

void kelp_trace_inputs(kelp_trace *trace, const kelp_request *request) {
    if (!includes_tensors(trace))
        return;
    kelp_buf copy;
    kelp_buf_init(&copy, request->home->allocator);
    for (size_t i = 0; i < request->input_count; i++) {
        const kelp_input *input = request->inputs[i];
        const void *base = NULL;
        kelp_status *status = in_one_piece(input, &copy, &base);
        if (status != NULL) {
            kelp_server_log_status("cannot trace an input", status);
            continue;
        }
        const kelp_buffer_attributes *where =
            input->data.count == 1 ? &input->data.blocks[0].attributes : NULL;
        trace->tensor_fn((TRITONSERVER_InferenceTrace *)trace,
                         TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT, kelp_text_get(&input->name),
                         input->datatype, base, input->data.size_bytes, input->shape, input->rank,
                         where != NULL ? where->memory_type : TRITONSERVER_MEMORY_CPU,
                         where != NULL ? where->memory_type_id : 0, trace->userp);
    }
    kelp_buf_deinit(&copy);
}

void kelp_trace_outputs(kelp_trace *trace, const kelp_response *response) {
    for (size_t i = 0; includes_tensors(trace) && i < response->output_count; i++) {
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

kelp_status *kelp_trace_create(const kelp_trace *options, kelp_trace **out) {
    static atomic_ullong next_id = 1;
    KELP_TRY(KELP_NEW(kelp_process_allocator(), kelp_trace, out));
    **out = *options;
    (*out)->id = atomic_fetch_add(&next_id, 1);
    return NULL;
}

kelp_status *kelp_trace_spawn(const kelp_trace *parent, kelp_trace **out) {
    const kelp_trace options = {.parent_id = parent->id,
                                .level = parent->level,
                                .activity_fn = parent->activity_fn,
                                .tensor_fn = parent->tensor_fn,
                                .release_fn = parent->release_fn,
                                .userp = parent->userp};
    return kelp_trace_create(&options, out);
}

void kelp_trace_destroy(kelp_trace *trace) {
    kelp_allocator heap = kelp_process_allocator();
    if (trace == NULL)
        return;
    kelp_text_deinit(heap, &trace->model_name);
    kelp_text_deinit(heap, &trace->request_id);
    kelp_text_deinit(heap, &trace->context);
    kelp_free(heap, trace, sizeof *trace);
}

kelp_status *kelp_trace_set_context(kelp_trace *trace, const char *context) {
    return kelp_text_set(kelp_process_allocator(), &trace->context, context);
}
