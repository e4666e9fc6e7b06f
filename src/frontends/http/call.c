/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: their pool, their references, and the replies that all handlers share. */
#include "frontends/http/call.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/json.h"
#include "base/thread.h"
#include "frontends/http/connection.h"

#define POOL_MAX 64
#define KEEP_BYTES ((size_t)256 * 1024)

/* ---- life ---- */

static kelp_status *call_create(kelp_http_thread *thread, kelp_http_call **out) {
    kelp_allocator allocator = thread->server->allocator;
    kelp_http_call *call;
    KELP_TRY(KELP_NEW(allocator, kelp_http_call, &call));
    call->allocator = allocator;
    call->server = thread->server;
    call->thread = thread;
    call->version = -1;
    kelp_http1_body_init(&call->body, allocator);
    kelp_buf_init(&call->unpacked, allocator);
    kelp_buf_init(&call->text, allocator);
    kelp_arena_init(&call->arena, allocator, 0);
    kelp_arena_init(&call->outputs, allocator, 0);
    *out = call;
    return NULL;
}

void kelp_http_call_destroy(kelp_http_call *call) {
    if (!call)
        return;
    kelp_http1_body_deinit(&call->body);
    kelp_buf_deinit(&call->unpacked);
    kelp_buf_deinit(&call->text);
    kelp_arena_deinit(&call->arena);
    kelp_arena_deinit(&call->outputs);
    kelp_free(call->allocator, call->pieces, call->piece_capacity * sizeof(*call->pieces));
    kelp_free(call->allocator, call, sizeof(*call));
}

kelp_status *kelp_http_call_acquire(kelp_http_thread *thread, kelp_http_call **out) {
    pthread_mutex_lock(&thread->mutex);
    kelp_http_call *call = thread->pool;
    if (call) {
        thread->pool = call->next;
        thread->pool_count--;
    }
    thread->outstanding++;
    pthread_mutex_unlock(&thread->mutex);
    if (!call) {
        kelp_status *status = call_create(thread, &call);
        if (status) {
            pthread_mutex_lock(&thread->mutex);
            thread->outstanding--;
            pthread_mutex_unlock(&thread->mutex);
            return status;
        }
    }
    atomic_store_explicit(&call->refs, 1, memory_order_relaxed);
    call->next = NULL;
    *out = call;
    return NULL;
}

static void trim_arena(kelp_arena *arena) {
    if (arena->total_bytes > KEEP_BYTES) {
        kelp_allocator allocator = arena->allocator;
        kelp_arena_deinit(arena);
        kelp_arena_init(arena, allocator, 0);
    } else {
        kelp_arena_clear(arena);
    }
}

static void trim_buf(kelp_buf *buf) {
    if (buf->capacity > KEEP_BYTES)
        kelp_buf_deinit(buf);
    kelp_buf_clear(buf);
}

/* Nobody uses the call any more: empties it, and keeps it for the next request. */
static void call_recycle(kelp_http_call *call) {
    kelp_http_thread *thread = call->thread;
    if (call->response)
        kelp_status_free(kelp_http_status_of(TRITONSERVER_InferenceResponseDelete(call->response)));
    if (call->request)
        kelp_status_free(kelp_http_status_of(TRITONSERVER_InferenceRequestDelete(call->request)));
    kelp_http1_body_clear(&call->body, KEEP_BYTES);
    trim_buf(&call->unpacked);
    trim_buf(&call->text);
    trim_arena(&call->arena);
    trim_arena(&call->outputs);
    kelp_http_call fresh = {
        .allocator = call->allocator,
        .server = call->server,
        .thread = thread,
        .version = -1,
        .body = call->body,
        .unpacked = call->unpacked,
        .text = call->text,
        .arena = call->arena,
        .outputs = call->outputs,
        .pieces = call->pieces,
        .piece_capacity = call->piece_capacity,
    };
    *call = fresh;

    pthread_mutex_lock(&thread->mutex);
    bool keep = thread->pool_count < POOL_MAX;
    if (keep) {
        call->next = thread->pool;
        thread->pool = call;
        thread->pool_count++;
    } else {
        pthread_mutex_unlock(&thread->mutex);
        kelp_http_call_destroy(call);
        pthread_mutex_lock(&thread->mutex);
    }
    /* Last, since the owner of the thread frees everything once all calls are back. */
    if (--thread->outstanding == 0)
        pthread_cond_broadcast(&thread->all_back);
    pthread_mutex_unlock(&thread->mutex);
}

void kelp_http_call_unref(kelp_http_call *call) {
    if (atomic_fetch_sub_explicit(&call->refs, 1, memory_order_acq_rel) == 1)
        call_recycle(call);
}

/* ---- failures ---- */

kelp_status *kelp_http_status_of(TRITONSERVER_Error *take_error) {
    if (!take_error)
        return NULL;
    static const kelp_code codes[] = {
        [TRITONSERVER_ERROR_UNKNOWN] = KELP_UNKNOWN,
        [TRITONSERVER_ERROR_INTERNAL] = KELP_INTERNAL,
        [TRITONSERVER_ERROR_NOT_FOUND] = KELP_NOT_FOUND,
        [TRITONSERVER_ERROR_INVALID_ARG] = KELP_INVALID_ARGUMENT,
        [TRITONSERVER_ERROR_UNAVAILABLE] = KELP_UNAVAILABLE,
        [TRITONSERVER_ERROR_UNSUPPORTED] = KELP_UNIMPLEMENTED,
        [TRITONSERVER_ERROR_ALREADY_EXISTS] = KELP_ALREADY_EXISTS,
        [TRITONSERVER_ERROR_CANCELLED] = KELP_CANCELLED,
    };
    size_t code = (size_t)TRITONSERVER_ErrorCode(take_error);
    kelp_status *status = KELP_ERROR(code < KELP_COUNT(codes) ? codes[code] : KELP_UNKNOWN, "%s",
                                     TRITONSERVER_ErrorMessage(take_error));
    TRITONSERVER_ErrorDelete(take_error);
    return status;
}

int kelp_http_code_of(const kelp_status *status) {
    switch (kelp_status_code(status)) {
    case KELP_OK:
        return 200;
    case KELP_INTERNAL:
        return 500;
    case KELP_NOT_FOUND:
        return 404;
    case KELP_UNAVAILABLE:
    case KELP_RESOURCE_EXHAUSTED:
        return 503;
    case KELP_UNIMPLEMENTED:
        return 501;
    case KELP_ALREADY_EXISTS:
        return 409;
    case KELP_CANCELLED:
        return 499;
    case KELP_OUT_OF_RANGE: /* here: more bytes than a limit */
        return 413;
    default:
        return 400;
    }
}

/* ---- replies ---- */

void kelp_http_reply_empty(kelp_http_call *call, int status) {
    kelp_buf_clear(&call->text);
    call->piece_count = 0;
    call->has_header_length = false;
    call->coding = KELP_HTTP_IDENTITY;
    call->status = status;
    call->content_type = NULL;
}

void kelp_http_reply_json(kelp_http_call *call, int status) {
    call->piece_count = 0;
    call->has_header_length = false;
    call->coding = KELP_HTTP_IDENTITY;
    call->status = status;
    call->content_type = "application/json";
}

void kelp_http_reply_error_text(kelp_http_call *call, int status, kelp_str message) {
    kelp_buf_clear(&call->text);
    kelp_buf_append_cstr(&call->text, "{\"error\":");
    kelp_json_escape(&call->text, message);
    kelp_buf_append_char(&call->text, '}');
    if (call->text.failed)
        kelp_buf_clear(&call->text);
    kelp_http_reply_json(call, status);
}

void kelp_http_reply_status(kelp_http_call *call, kelp_status *take_status) {
    char text[2048];
    size_t length = kelp_status_format(take_status, text, sizeof(text));
    kelp_http_reply_error_text(call, kelp_http_code_of(take_status),
                               (kelp_str){text, KELP_MIN(length, sizeof(text) - 1)});
    kelp_status_free(take_status);
}

void kelp_http_reply_message(kelp_http_call *call, TRITONSERVER_Error *take_error,
                             TRITONSERVER_Message *take_message) {
    kelp_status *status = kelp_http_status_of(take_error);
    if (!status) {
        const char *text = NULL;
        size_t length = 0;
        status =
            kelp_http_status_of(TRITONSERVER_MessageSerializeToJson(take_message, &text, &length));
        if (!status) {
            kelp_buf_clear(&call->text);
            kelp_buf_append(&call->text, text, length);
            kelp_http_reply_json(call, 200);
            status = kelp_buf_status(&call->text);
        }
        kelp_status_free(kelp_http_status_of(TRITONSERVER_MessageDelete(take_message)));
    }
    if (status)
        kelp_http_reply_status(call, status);
}

kelp_status *kelp_http_add_piece(kelp_http_call *call, const void *data, size_t length) {
    if (length == 0)
        return NULL;
    KELP_TRY(kelp_grow(call->allocator, (void **)&call->pieces, &call->piece_capacity,
                       call->piece_count + 1, sizeof(*call->pieces)));
    call->pieces[call->piece_count++] = (kelp_http_piece){data, length};
    return NULL;
}

void kelp_http_call_finish(kelp_http_call *call) {
    if (call->connection)
        kelp_http_connection_reply(call->connection);
    else
        kelp_http_call_unref(call);
}

kelp_status *kelp_http_call_body(kelp_http_call *call, kelp_str *out) {
    const kelp_str *value = kelp_http1_find(call->head, "content-encoding");
    kelp_http_coding coding = value ? kelp_http_coding_of(*value) : KELP_HTTP_IDENTITY;
    const char *data = kelp_http1_body_data(&call->body);
    *out = (kelp_str){data ? data : "", call->body.length};
    if (coding == KELP_HTTP_IDENTITY)
        return NULL;
    if (coding == KELP_HTTP_CODING_UNKNOWN) {
        call->tell_codings = true;
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "Content-Encoding '%.*s' is not understood; gzip and deflate are",
                          KELP_STR_ARG(*value));
    }
    KELP_TRY(kelp_http_decode(coding, out->data, out->length,
                              kelp_http_max_input_size(call->server), &call->unpacked));
    *out = (kelp_str){call->unpacked.data ? call->unpacked.data : "", call->unpacked.length};
    return NULL;
}

/* ---- work that blocks ---- */

static void blocking_done(kelp_loop_task *task) {
    kelp_http_call_finish((kelp_http_call *)task);
}

static void *blocking_main(void *userp) {
    kelp_http_call *call = userp;
    call->blocking(call);
    call->task.fn = blocking_done;
    kelp_loop_post(call->thread->loop, &call->task);
    return NULL;
}

void kelp_http_call_block(kelp_http_call *call, void (*blocking)(kelp_http_call *call)) {
    call->blocking = blocking;
    pthread_t id;
    kelp_status *status = kelp_thread_start(&id, "kelp-http-load", blocking_main, call);
    if (status) {
        kelp_http_reply_status(call, status);
        kelp_http_call_finish(call);
        return;
    }
    pthread_detach(id);
}
