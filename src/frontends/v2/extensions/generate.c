/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generate extension: `generate` for models that send one response, and `generate_stream` for
 * any number of responses as server-sent events.
 *
 * Responses are encoded on the thread of the model and queued. The event-loop thread sends the
 * queue as one part, and the next part after that one was written. A model is not blocked by a slow
 * client: when the queue is full, the request is cancelled.
 *
 * Source: the generate extension of Triton's HTTP protocol, and the HTML standard (9.2, server-sent
 * events).
 */
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"
#include "frontends/v2/exchange.h"

#include <kelp/server.h>
#include <pthread.h>

/* The maximum number of bytes that wait for a slow client. */
#define MAX_QUEUED_BYTES ((size_t)16 * 1024 * 1024)
#define MAX_MESSAGE_BYTES 2048

struct kelp_v2_generation {
    bool stream;
    /* on the event-loop thread */
    bool started; /* the first part was sent */
    bool sending; /* a part is being written */
    bool ended;   /* the last part was sent */

    pthread_mutex_t lock;    /* guards what follows */
    kelp_buf queue;          /* encoded responses that were not sent */
    uint64_t responses;      /* of the model, including failed ones */
    kelp_http_status status; /* of the first response */
    kelp_status *failure;    /* why the stream ends early, or NULL */
    bool final;              /* there will be no more responses */
    bool posted;             /* the event-loop thread will look at the queue */
};

typedef struct kelp_v2_generation generation;

/* ---- responses, on any thread ---- */

static void append_error(kelp_trace_record *trace, kelp_buf *out, const kelp_status *status) {
    char text[MAX_MESSAGE_BYTES];
    size_t length = kelp_status_format(status, text, sizeof text);
    kelp_trace_finish(trace, 0, text);
    kelp_buf_append_cstr(out, "{\"error\":");
    kelp_json_escape(out, (kelp_str){text, KELP_MIN(length, sizeof(text) - 1)});
    kelp_buf_append_char(out, '}');
}

/* Appends a response, or the failure to encode it, and returns its HTTP status. */
static kelp_http_status encode(const kelp_v2_exchange *exchange,
                               TRITONSERVER_InferenceResponse *response, kelp_buf *out) {
    const generation *g = exchange->generation;
    kelp_http_status result = KELP_HTTP_OK;
    if (g->stream)
        kelp_buf_append_cstr(out, "data: ");
    size_t begin = out->length;
    kelp_status *status = kelp_v2_encode_generate(response, out);
    if (status != NULL) {
        result = kelp_v2_http_status(status);
        out->length = out->failed ? out->length : begin;
        append_error(exchange->trace, out, status);
        kelp_status_free(status);
    }
    if (g->stream)
        kelp_buf_append_cstr(out, "\n\n");
    return result;
}

/* Queues an encoded response. The lock is held. */
static void enqueue(generation *g, const kelp_buf *encoded, kelp_http_status status) {
    if (g->responses++ == 0)
        g->status = status;
    if (g->failure != NULL || (!g->stream && g->responses > 1))
        return;
    if (g->queue.length > 0 && g->queue.length + encoded->length > MAX_QUEUED_BYTES) {
        g->failure = KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                                "the client reads too slowly: expected at most %zu bytes of "
                                "responses that wait",
                                MAX_QUEUED_BYTES);
        return;
    }
    kelp_buf_append(&g->queue, encoded->data, encoded->length);
    if (encoded->failed || g->queue.failed)
        g->failure = kelp_status_oom();
}

/* Returns true if further responses are of no interest. The lock is held. */
static bool is_over(const generation *g) {
    return g->failure != NULL || (!g->stream && g->responses > 1);
}

static void on_posted(kelp_http_exchange *base) {
    kelp_v2_exchange *exchange = (kelp_v2_exchange *)base;
    generation *g = exchange->generation;
    pthread_mutex_lock(&g->lock);
    g->posted = false;
    pthread_mutex_unlock(&g->lock);
    kelp_v2_generation_continue(exchange);
    kelp_http_exchange_release(base);
}

/* Adds the version of the model to the access log. The lock is held. */
static void note_version(kelp_v2_exchange *exchange, TRITONSERVER_InferenceResponse *response) {
    kelp_request_entry *entry = &exchange->base.entry;
    const char *model;
    if (entry->log != NULL && entry->version < 0)
        kelp_status_free(
            kelp_v2_status(TRITONSERVER_InferenceResponseModel(response, &model, &entry->version)));
}

/* Takes a response of the model. Called on any thread, also on several at a time. */
static void on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
                        void *userp) {
    kelp_v2_exchange *exchange = userp;
    generation *g = exchange->generation;
    kelp_http_status status = KELP_HTTP_OK;
    kelp_buf encoded;
    kelp_buf_init(&encoded, exchange->base.allocator);
    kelp_trace_stamp(exchange->trace, "INFER_RESPONSE_COMPLETE");
    if (response != NULL) {
        status = encode(exchange, response, &encoded);
        pthread_mutex_lock(&g->lock);
        note_version(exchange, response);
        pthread_mutex_unlock(&g->lock);
        kelp_status_free(kelp_v2_status(TRITONSERVER_InferenceResponseDelete(response)));
    }
    pthread_mutex_lock(&g->lock);
    bool was_over = is_over(g);
    if (response != NULL)
        enqueue(g, &encoded, status);
    g->final = g->final || (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
    bool cancel = is_over(g) && !was_over && !g->final;
    bool post = !g->posted;
    g->posted = true;
    if (post) /* while the lock is held, so that the exchange exists */
        kelp_http_exchange_retain(&exchange->base);
    if (cancel)
        kelp_http_exchange_retain(&exchange->base);
    pthread_mutex_unlock(&g->lock);
    kelp_buf_deinit(&encoded);
    if (cancel) { /* without the lock, because it may call on_response */
        kelp_status_free(kelp_v2_status(TRITONSERVER_InferenceRequestCancel(exchange->request)));
        kelp_http_exchange_release(&exchange->base);
    }
    if (post)
        kelp_http_exchange_post(&exchange->base, on_posted);
}

/* ---- sending, on the event-loop thread ---- */

/* Starts the HTTP response with the status of the model's first response. */
static void start(kelp_v2_exchange *exchange, kelp_http_status status) {
    generation *g = exchange->generation;
    kelp_buf text = exchange->base.text; /* the start of the response would empty it */
    kelp_buf_init(&exchange->base.text, text.allocator);
    kelp_http_exchange_respond(&exchange->base, status);
    kelp_http_exchange_add_header(&exchange->base, KELP_STR("Content-Type"),
                                  g->stream ? KELP_STR("text/event-stream; charset=utf-8")
                                            : KELP_STR("application/json"));
    if (g->stream)
        kelp_http_exchange_add_header(&exchange->base, KELP_STR("Cache-Control"),
                                      KELP_STR("no-cache"));
    exchange->base.text = text;
    g->started = true;
    kelp_trace_stamp(exchange->trace, "HTTP_SEND_START");
}

/* Sends the last part. */
static void end(kelp_v2_exchange *exchange) {
    exchange->generation->ended = true;
    exchange->in_flight = false;
    kelp_v2_send(exchange);
}

static void send_single(kelp_v2_exchange *exchange) {
    generation *g = exchange->generation;
    kelp_status *failure = g->failure;
    g->failure = NULL;
    if (failure == NULL && g->responses != 1)
        failure = KELP_ERROR(KELP_INTERNAL,
                             "generate expects model to produce exactly 1 response, use generate "
                             "stream for model that generates various number of responses: found "
                             "%llu",
                             (unsigned long long)g->responses);
    if (failure != NULL) {
        kelp_v2_respond_failure(exchange, failure);
    } else {
        kelp_buf text = exchange->base.text;
        exchange->base.text = g->queue;
        g->queue = text;
        start(exchange, g->status);
    }
    end(exchange);
}

static void append_failure(const kelp_v2_exchange *exchange, kelp_buf *text) {
    const generation *g = exchange->generation;
    if (g->failure == NULL)
        return;
    kelp_buf_append_cstr(text, "data: ");
    append_error(exchange->trace, text, g->failure);
    kelp_buf_append_cstr(text, "\n\n");
}

static void send_events(kelp_v2_exchange *exchange, bool final) {
    generation *g = exchange->generation;
    kelp_buf *text = &exchange->base.text;
    pthread_mutex_lock(&g->lock);
    KELP_ASSERT(text->length == 0);
    kelp_buf taken = g->queue;
    g->queue = *text;
    *text = taken;
    kelp_http_status status = g->status;
    pthread_mutex_unlock(&g->lock);
    if (final)
        append_failure(exchange, text);
    if (!g->started && (final || text->length > 0))
        start(exchange, status);
    if (final) {
        end(exchange);
    } else if (text->length > 0) {
        g->sending = true;
        kelp_http_exchange_send_part(&exchange->base);
    }
}

void kelp_v2_generation_continue(kelp_v2_exchange *exchange) {
    generation *g = exchange->generation;
    pthread_mutex_lock(&g->lock);
    bool final = g->final;
    pthread_mutex_unlock(&g->lock);
    if (g->ended)
        return;
    if (exchange->base.stream == NULL) { /* the connection is closed */
        if (final)
            end(exchange);
    } else if (g->stream && !g->sending) {
        send_events(exchange, final);
    } else if (!g->stream && final) {
        send_single(exchange);
    }
}

void kelp_v2_generation_sent(kelp_v2_exchange *exchange) {
    exchange->generation->sending = false;
    kelp_v2_generation_continue(exchange);
}

/* ---- the request ---- */

void kelp_v2_generation_clear(kelp_v2_exchange *exchange) {
    generation *g = exchange->generation;
    if (g == NULL)
        return;
    pthread_mutex_destroy(&g->lock);
    kelp_buf_deinit(&g->queue);
    kelp_status_free(g->failure);
    exchange->generation = NULL;
}

static kelp_status *create(kelp_v2_exchange *exchange, bool stream) {
    generation *g = KELP_ARENA_ARRAY(&exchange->arena, 1, generation);
    if (g == NULL)
        return kelp_status_oom();
    g->stream = stream;
    g->status = KELP_HTTP_OK;
    kelp_buf_init(&g->queue, exchange->base.allocator);
    pthread_mutex_init(&g->lock, NULL);
    exchange->generation = g;
    return NULL;
}

/* Submits a decoded request, or sends the failure. */
static void finish(kelp_v2_exchange *exchange, kelp_status *take_status) {
    kelp_status *status = take_status;
    if (status == NULL)
        status =
            kelp_v2_submit(exchange, kelp_v2_service_of(exchange)->stream_allocator, on_response);
    if (status != NULL) {
        exchange->generation->ended = true;
        kelp_v2_fail(exchange, status);
    }
}

static kelp_status *decode(kelp_v2_exchange *exchange) {
    KELP_TRY(kelp_http_exchange_decode(&exchange->base, exchange->request_coding,
                                       kelp_v2_service_of(exchange)->max_input_size_bytes,
                                       &exchange->json));
    return kelp_v2_decode_generate(exchange, exchange->json);
}

static kelp_status *prepare(kelp_v2_exchange *exchange, bool stream) {
    const kelp_v2_service *service = kelp_v2_service_of(exchange);
    kelp_v2_begin_trace(exchange);
    KELP_TRY(kelp_v2_status(TRITONSERVER_InferenceRequestNew(&exchange->request, service->core,
                                                             exchange->model, exchange->version)));
    KELP_TRY(kelp_v2_forward_headers(exchange));
    KELP_TRY(kelp_http_exchange_coding(&exchange->base, &exchange->request_coding));
    if (kelp_v2_takes_long(exchange))
        KELP_TRY(kelp_v2_status(KELP_InferenceRequestCheckQueue(exchange->request)));
    return create(exchange, stream);
}

static void run(kelp_v2_exchange *exchange, bool stream) {
    static const kelp_v2_decoding decoding = {decode, finish};
    kelp_status *status = prepare(exchange, stream);
    if (status != NULL)
        kelp_v2_fail(exchange, status);
    else
        kelp_v2_decode_and_finish(exchange, &decoding);
}

void kelp_v2_generate(kelp_v2_exchange *exchange) {
    run(exchange, false);
}

void kelp_v2_generate_stream(kelp_v2_exchange *exchange) {
    run(exchange, true);
}
