/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference: a call is decoded, submitted, and answered when the server's callback brings the
 * response. Callbacks run on threads of models, or on the loop's own thread inside
 * TRITONSERVER_ServerInferAsync; only the latter goes on at once, all others post to the loop.
 */
#include "frontends/http/connection.h"

static void complete(kelp_http_call *call) {
    call->in_flight = false;
    if (!call->connection) { /* the client has gone */
        kelp_http_call_unref(call);
        return;
    }
    kelp_status *status =
        call->response ? kelp_v2_encode_response(call)
                       : KELP_ERROR(KELP_INTERNAL, "model '%s' gave no response", call->model);
    if (!status)
        status = kelp_v2_compress_reply(call);
    if (status)
        kelp_http_reply_status(call, status);
    kelp_http_call_finish(call);
}

static void on_posted(kelp_loop_task *task) {
    complete((kelp_http_call *)task);
}

/* Any thread. */
static void on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
                        void *userp) {
    kelp_http_call *call = userp;
    if (response && !call->response)
        call->response = response;
    else if (response) /* one reply is all that HTTP has room for */
        kelp_status_free(kelp_http_status_of(TRITONSERVER_InferenceResponseDelete(response)));
    if (!(flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL))
        return;
    if (kelp_http_current_thread() == call->thread && call->submitting) {
        call->done_inline = true;
        return;
    }
    call->task.fn = on_posted;
    kelp_loop_post(call->thread->loop, &call->task);
}

/* Any thread. The request is deleted with the call, so that cancelling it stays safe meanwhile. */
static void on_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags, void *userp) {
    (void)request;
    if (flags & TRITONSERVER_REQUEST_RELEASE_ALL)
        kelp_http_call_unref(userp);
}

static kelp_status *refuse_decoupled(kelp_http_call *call) {
    uint32_t flags = 0;
    void *detail = NULL;
    KELP_HTTP_TRY(TRITONSERVER_ServerModelTransactionProperties(
        kelp_http_core(call->server), call->model, call->version, &flags, &detail));
    if (flags & TRITONSERVER_TXN_DECOUPLED)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "model '%s' is decoupled: it may answer a request several times, which "
                          "this "
                          "HTTP endpoint cannot carry",
                          call->model);
    return NULL;
}

static kelp_status *decode(kelp_http_call *call) {
    kelp_str body;
    KELP_TRY(kelp_http_call_body(call, &body));
    const kelp_str *value = kelp_http1_find(call->head, "inference-header-content-length");
    uint64_t json_length = body.length;
    if (value && !kelp_parse_u64(*value, &json_length))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "Inference-Header-Content-Length: expected a number of bytes, found "
                          "'%.*s'",
                          KELP_STR_ARG(*value));
    if (json_length > body.length)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "Inference-Header-Content-Length is %llu, but the body has only %zu "
                          "bytes",
                          (unsigned long long)json_length, body.length);
    if (value && json_length == 0)
        return kelp_v2_decode_raw(call, body);
    kelp_str json = {body.data, (size_t)json_length};
    kelp_str binary = {body.data + json.length, body.length - json.length};
    return kelp_v2_decode_request(call, json, binary);
}

static kelp_status *submit(kelp_http_call *call) {
    TRITONSERVER_Server *core = kelp_http_core(call->server);
    const kelp_str *accepted = kelp_http1_find(call->head, "accept-encoding");
    if (accepted)
        call->reply_coding = kelp_http_coding_accepted(*accepted);
    KELP_TRY(refuse_decoupled(call));
    KELP_HTTP_TRY(
        TRITONSERVER_InferenceRequestNew(&call->request, core, call->model, call->version));
    KELP_TRY(decode(call));
    KELP_HTTP_TRY(TRITONSERVER_InferenceRequestSetReleaseCallback(call->request, on_release, call));
    KELP_HTTP_TRY(TRITONSERVER_InferenceRequestSetResponseCallback(
        call->request, kelp_http_response_allocator(call->server), call, on_response, call));
    atomic_fetch_add_explicit(&call->refs, 1, memory_order_relaxed);
    call->submitting = true;
    call->in_flight = true;
    TRITONSERVER_Error *error = TRITONSERVER_ServerInferAsync(core, call->request, NULL);
    call->submitting = false;
    if (error) { /* no callback runs: its reference is ours again, and is not the last */
        call->in_flight = false;
        atomic_fetch_sub_explicit(&call->refs, 1, memory_order_relaxed);
    }
    return kelp_http_status_of(error);
}

void kelp_v2_infer(kelp_http_call *call) {
    kelp_status *status = submit(call);
    if (status) {
        kelp_http_reply_status(call, status);
        kelp_http_call_finish(call);
    } else if (call->done_inline) {
        complete(call);
    }
}

void kelp_v2_infer_cancel(kelp_http_call *call) {
    if (call->in_flight) /* a model that does not look, or has just finished, is no failure */
        kelp_status_free(kelp_http_status_of(TRITONSERVER_InferenceRequestCancel(call->request)));
}
