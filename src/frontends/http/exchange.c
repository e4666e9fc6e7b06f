/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/http/exchange.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/sync/thread.h"
#include "frontends/http/client.h"
#include "frontends/http/thread.h"
#include "frontends/http/traceparent.h"

#include <errno.h>

#define POOL_MAX 64
/* The time without work after which a thread for work that blocks ends. */
#define HELPER_IDLE_NS KELP_HTTP_SECOND_NS

/* ---- creation ---- */

static kelp_status *exchange_create(kelp_http_thread *thread, kelp_http_handler *handler,
                                    kelp_http_exchange **out) {
    kelp_allocator allocator = thread->allocator;
    KELP_ASSERT(handler->exchange_bytes >= sizeof(kelp_http_exchange));
    kelp_http_exchange *exchange;
    KELP_TRY(kelp_alloc_zero(allocator, 1, handler->exchange_bytes, (void **)&exchange));
    exchange->allocator = allocator;
    exchange->thread = thread;
    exchange->handler = handler;
    kelp_http_body_init(&exchange->body, allocator);
    exchange->body.budget = thread->budget;
    kelp_http_body_init(&exchange->decoded, allocator);
    exchange->decoded.budget = thread->budget;
    kelp_buf_init(&exchange->text, allocator);
    kelp_buf_init(&exchange->entry.line, allocator);
    handler->init(exchange);
    *out = exchange;
    return NULL;
}

void kelp_http_exchange_destroy(kelp_http_exchange *exchange) {
    exchange->handler->deinit(exchange);
    kelp_http_body_deinit(&exchange->body);
    kelp_http_body_deinit(&exchange->decoded);
    kelp_buf_deinit(&exchange->text);
    kelp_buf_deinit(&exchange->entry.line);
    kelp_free(exchange->allocator, exchange->pieces,
              exchange->piece_capacity * sizeof *exchange->pieces);
    kelp_free(exchange->allocator, exchange, exchange->handler->exchange_bytes);
}

kelp_status *kelp_http_exchange_acquire(kelp_http_thread *thread, kelp_http_handler *handler,
                                        kelp_http_exchange **out) {
    kelp_http_exchange_pool *pool = &thread->pools[handler->index];
    pthread_mutex_lock(&thread->mutex);
    kelp_http_exchange *exchange = pool->first;
    if (exchange != NULL) {
        pool->first = exchange->next;
        pool->count--;
    }
    thread->outstanding++;
    pthread_mutex_unlock(&thread->mutex);
    if (exchange == NULL) {
        kelp_status *status = exchange_create(thread, handler, &exchange);
        if (status != NULL) {
            pthread_mutex_lock(&thread->mutex);
            thread->outstanding--;
            pthread_mutex_unlock(&thread->mutex);
            return status;
        }
    }
    KELP_ASSERT(exchange->refs == 0 && exchange->thread == thread);
    atomic_store_explicit(&exchange->refs, 1, memory_order_relaxed);
    exchange->start_ns = exchange->received_ns = kelp_event_loop_now_ns(thread->loop);
    atomic_store_explicit(&thread->last_request_ns, exchange->received_ns, memory_order_relaxed);
    exchange->next = NULL;
    *out = exchange;
    return NULL;
}

static const char *protocol_of(const kelp_http_exchange *exchange) {
    unsigned version = exchange->request->version;
    if (exchange->handler->protocol != NULL)
        return exchange->handler->protocol;
    return version == 20 ? "HTTP/2" : version == 10 ? "HTTP/1.0" : "HTTP/1.1";
}

void kelp_http_exchange_begin_entry(kelp_http_exchange *exchange, const kelp_http_peer *peer) {
    const kelp_http_thread *thread = exchange->thread;
    const kelp_http_request *request = exchange->request;
    if (thread->options->request_log == NULL)
        return;
    const kelp_str *traceparent = kelp_http_find(request, "traceparent");
    const kelp_request_facts facts = {
        .protocol = protocol_of(exchange),
        .method = request->method,
        .path = request->path,
        .user_agent = kelp_http_find(request, "user-agent"),
        .trace_id = traceparent != NULL ? kelp_traceparent_trace_id(*traceparent) : (kelp_str){0},
        .age_ns = kelp_now_ns() - exchange->start_ns};
    kelp_request_entry_begin(&exchange->entry, thread->options->request_log, peer, &facts);
}

/* Returns the status of an RPC, or NULL. */
static const kelp_str *find_rpc_status(const kelp_http_exchange *exchange) {
    for (size_t i = 0; i < exchange->trailer_count; i++)
        if (kelp_str_is(exchange->trailers[i].name, "grpc-status"))
            return &exchange->trailers[i].value;
    for (size_t i = 0; i < exchange->header_count; i++)
        if (kelp_str_is(exchange->headers[i].name, "grpc-status"))
            return &exchange->headers[i].value;
    return NULL;
}

void kelp_http_exchange_end_entry(kelp_http_exchange *exchange) {
    if (exchange->entry.log == NULL)
        return;
    bool aborted = exchange->stream == NULL;
    bool unanswered = aborted && exchange->status == 0;
    const kelp_request_result result = {
        .status = (unsigned)(unanswered ? KELP_HTTP_CLIENT_CLOSED_REQUEST : exchange->status),
        .rpc_status = find_rpc_status(exchange),
        .received_bytes = exchange->body.length,
        .duration_ns = kelp_now_ns() - exchange->start_ns,
        .aborted = aborted,
    };
    kelp_request_entry_end(&exchange->entry, &result);
}

/* Counts the bytes of a response, or of a part of it. */
static void count_sent(kelp_http_exchange *exchange) {
    if (exchange->entry.log != NULL && !exchange->entry.bodyless)
        exchange->entry.sent_bytes += kelp_http_exchange_content_length(exchange);
}

static void trim_buf(kelp_buf *buf) {
    if (buf->capacity > KELP_HTTP_KEEP_BYTES)
        kelp_buf_deinit(buf);
    kelp_buf_clear(buf);
}

/* Empties an unreferenced exchange, and returns it to the pool. */
static void exchange_recycle(kelp_http_exchange *exchange) {
    kelp_http_thread *thread = exchange->thread;
    kelp_http_exchange_pool *pool = &thread->pools[exchange->handler->index];
    kelp_http_exchange_end_entry(exchange);
    exchange->handler->clear(exchange);
    kelp_http_body_clear(&exchange->body, KELP_HTTP_KEEP_BYTES);
    kelp_http_body_clear(&exchange->decoded, KELP_HTTP_KEEP_BYTES);
    trim_buf(&exchange->text);
    exchange->request_coding_unknown = false;
    exchange->status = (kelp_http_status)0;
    exchange->piece_count = 0;
    exchange->header_count = exchange->kept_header_count = 0;
    exchange->trailer_count = 0;
    exchange->request = NULL;
    exchange->stream = NULL;
    if (exchange->client != NULL)
        kelp_http_client_end_request(exchange->client);
    exchange->client = NULL;

    pthread_mutex_lock(&thread->mutex);
    bool keep = pool->count < POOL_MAX;
    if (keep) {
        exchange->next = pool->first;
        pool->first = exchange;
        pool->count++;
    } else {
        pthread_mutex_unlock(&thread->mutex);
        kelp_http_exchange_destroy(exchange);
        pthread_mutex_lock(&thread->mutex);
    }
    /* This must be last: after outstanding reaches 0, the owner of the thread frees everything. */
    KELP_ASSERT(thread->outstanding > 0);
    if (--thread->outstanding == 0)
        pthread_cond_broadcast(&thread->all_recycled);
    pthread_mutex_unlock(&thread->mutex);
}

void kelp_http_exchange_retain(kelp_http_exchange *exchange) {
    KELP_ASSERT(exchange->refs > 0);
    atomic_fetch_add_explicit(&exchange->refs, 1, memory_order_relaxed);
}

void kelp_http_exchange_release(kelp_http_exchange *exchange) {
    KELP_ASSERT(exchange->refs > 0);
    if (atomic_fetch_sub_explicit(&exchange->refs, 1, memory_order_acq_rel) == 1)
        exchange_recycle(exchange);
}

/* ---- the request ---- */

kelp_status *kelp_http_exchange_coding(kelp_http_exchange *exchange, kelp_http_coding *out) {
    KELP_ASSERT(exchange->request && kelp_http_exchange_on_thread(exchange));
    const kelp_str *value = kelp_http_find(exchange->request, "content-encoding");
    *out = value != NULL ? kelp_http_coding_of(*value) : KELP_HTTP_IDENTITY;
    if (*out != KELP_HTTP_CODING_UNKNOWN)
        return NULL;
    exchange->request_coding_unknown = true;
    return KELP_ERROR(KELP_UNIMPLEMENTED,
                      "unsupported Content-Encoding '%.*s': expected gzip, deflate or identity",
                      KELP_STR_ARG(*value));
}

kelp_status *kelp_http_exchange_decode(kelp_http_exchange *exchange, kelp_http_coding coding,
                                       uint64_t max_bytes, kelp_str *out) {
    KELP_ASSERT(coding != KELP_HTTP_CODING_UNKNOWN);
    const char *data = kelp_http_body_data(&exchange->body);
    *out = (kelp_str){data != NULL ? data : "", exchange->body.length};
    if (coding == KELP_HTTP_IDENTITY)
        return NULL;
    KELP_TRY(kelp_http_decode(coding, out->data, out->length, max_bytes, &exchange->decoded));
    data = kelp_http_body_data(&exchange->decoded);
    *out = (kelp_str){data != NULL ? data : "", exchange->decoded.length};
    return NULL;
}

kelp_status *kelp_http_exchange_body(kelp_http_exchange *exchange, uint64_t max_bytes,
                                     kelp_str *out) {
    kelp_http_coding coding = KELP_HTTP_IDENTITY;
    KELP_TRY(kelp_http_exchange_coding(exchange, &coding));
    return kelp_http_exchange_decode(exchange, coding, max_bytes, out);
}

void kelp_http_exchange_consume(kelp_http_exchange *exchange, size_t length) {
    KELP_ASSERT(kelp_http_exchange_on_thread(exchange));
    if (exchange->stream != NULL && length > 0)
        exchange->stream->consume(exchange->stream, length);
}

/* ---- the response ---- */

void kelp_http_exchange_respond(kelp_http_exchange *exchange, kelp_http_status status) {
    kelp_buf_clear(&exchange->text);
    exchange->piece_count = 0;
    exchange->header_count = exchange->kept_header_count;
    exchange->trailer_count = 0;
    exchange->status = status;
    if (exchange->request_coding_unknown)
        kelp_http_exchange_add_header(exchange, KELP_STR("Accept-Encoding"),
                                      KELP_STR("gzip, deflate"));
}

void kelp_http_exchange_keep_headers(kelp_http_exchange *exchange) {
    exchange->kept_header_count = exchange->header_count;
}

void kelp_http_exchange_add_header(kelp_http_exchange *exchange, kelp_str name, kelp_str value) {
    KELP_ASSERT(exchange->header_count < KELP_HTTP_MAX_RESPONSE_HEADERS);
    KELP_ASSERT(name.length > 0);
    exchange->headers[exchange->header_count++] = (kelp_http_header){name, value};
}

void kelp_http_exchange_add_trailer(kelp_http_exchange *exchange, kelp_str name, kelp_str value) {
    KELP_ASSERT(exchange->trailer_count < KELP_HTTP_MAX_TRAILERS);
    KELP_ASSERT(name.length > 0);
    exchange->trailers[exchange->trailer_count++] = (kelp_http_header){name, value};
}

kelp_status *kelp_http_exchange_add_piece(kelp_http_exchange *exchange, const void *data,
                                          size_t length) {
    if (length == 0)
        return NULL;
    KELP_TRY(kelp_grow(exchange->allocator, (void **)&exchange->pieces, &exchange->piece_capacity,
                       exchange->piece_count + 1, sizeof(*exchange->pieces)));
    exchange->pieces[exchange->piece_count++] = (kelp_http_piece){data, length};
    return NULL;
}

uint64_t kelp_http_exchange_content_length(const kelp_http_exchange *exchange) {
    uint64_t length = exchange->text.length;
    for (size_t i = 0; i < exchange->piece_count; i++)
        length += exchange->pieces[i].length;
    return length;
}

kelp_status *kelp_http_exchange_compress(kelp_http_exchange *exchange, kelp_http_coding coding) {
    if (coding == KELP_HTTP_IDENTITY)
        return NULL;
    kelp_buf packed;
    kelp_buf_init(&packed, exchange->allocator);
    kelp_http_encoder *encoder = NULL;
    kelp_status *status = kelp_http_encoder_create(exchange->allocator, coding, &packed, &encoder);
    if (status == NULL)
        status = kelp_http_encoder_put(encoder, exchange->text.data, exchange->text.length);
    for (size_t i = 0; status == NULL && i < exchange->piece_count; i++)
        status =
            kelp_http_encoder_put(encoder, exchange->pieces[i].data, exchange->pieces[i].length);
    if (status == NULL)
        status = kelp_http_encoder_end(encoder);
    kelp_http_encoder_destroy(encoder);
    if (status != NULL) {
        kelp_buf_deinit(&packed);
        return status;
    }
    kelp_buf_deinit(&exchange->text);
    exchange->text = packed;
    exchange->piece_count = 0;
    kelp_http_exchange_add_header(exchange, KELP_STR("Content-Encoding"),
                                  kelp_str_from(kelp_http_coding_name(coding)));
    return NULL;
}

void kelp_http_exchange_send(kelp_http_exchange *exchange) {
    KELP_ASSERT(kelp_http_exchange_on_thread(exchange));
    count_sent(exchange);
    if (exchange->stream != NULL)
        exchange->stream->send(exchange->stream, true);
    else
        kelp_http_exchange_release(exchange);
}

void kelp_http_exchange_send_part(kelp_http_exchange *exchange) {
    KELP_ASSERT(kelp_http_exchange_on_thread(exchange) && exchange->handler->on_sent);
    count_sent(exchange);
    if (exchange->stream != NULL) /* otherwise on_cancel was called */
        exchange->stream->send(exchange->stream, false);
}

/* ---- threads ---- */

bool kelp_http_exchange_on_thread(const kelp_http_exchange *exchange) {
    return kelp_http_current_thread() == exchange->thread;
}

static void on_posted(kelp_event_loop_task *task) {
    kelp_http_exchange *exchange = (kelp_http_exchange *)task;
    exchange->work(exchange);
}

void kelp_http_exchange_post(kelp_http_exchange *exchange,
                             void (*work)(kelp_http_exchange *exchange)) {
    exchange->work = work;
    exchange->task.fn = on_posted;
    kelp_event_loop_post(exchange->thread->loop, &exchange->task);
}

/* Waits until there is work, or the time without work has passed. The mutex is held. */
static void wait_for_work(kelp_http_helpers *helpers) {
    uint64_t end_ns = kelp_now_ns() + HELPER_IDLE_NS;
    struct timespec end = {(time_t)(end_ns / KELP_HTTP_SECOND_NS),
                           (long)(end_ns % KELP_HTTP_SECOND_NS)};
    int result = 0;
    helpers->idle_count++;
    while (helpers->first == NULL && !helpers->stopping && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&helpers->changed, &helpers->mutex, &end);
    helpers->idle_count--;
}

static void *helper_main(void *userp) {
    kelp_http_helpers *helpers = userp;
    pthread_mutex_lock(&helpers->mutex);
    for (;;) {
        if (helpers->first == NULL)
            wait_for_work(helpers);
        kelp_http_exchange *exchange = helpers->first;
        if (exchange == NULL)
            break;
        helpers->first = exchange->next;
        helpers->waiting_count--;
        exchange->next = NULL;
        pthread_mutex_unlock(&helpers->mutex);
        exchange->work(exchange);
        kelp_http_exchange_post(exchange, exchange->then);
        pthread_mutex_lock(&helpers->mutex);
    }
    if (--helpers->thread_count == 0)
        pthread_cond_broadcast(&helpers->changed);
    pthread_mutex_unlock(&helpers->mutex);
    return NULL;
}

/* Starts a thread if no idle one can take another exchange. The mutex is held. */
static kelp_status *need_helper(kelp_http_helpers *helpers) {
    if (helpers->waiting_count < helpers->idle_count)
        return NULL;
    pthread_t id;
    KELP_TRY(kelp_thread_start(&id, "kelp-http-work", helper_main, helpers));
    pthread_detach(id);
    helpers->thread_count++;
    return NULL;
}

kelp_status *kelp_http_exchange_run_blocking(kelp_http_exchange *exchange,
                                             void (*work)(kelp_http_exchange *exchange),
                                             void (*then)(kelp_http_exchange *exchange)) {
    kelp_http_helpers *helpers = &exchange->thread->helpers;
    exchange->work = work;
    exchange->then = then;
    pthread_mutex_lock(&helpers->mutex);
    kelp_status *status = need_helper(helpers);
    if (status == NULL) {
        exchange->next = NULL;
        if (helpers->first != NULL)
            helpers->last->next = exchange;
        else
            helpers->first = exchange;
        helpers->last = exchange;
        helpers->waiting_count++;
    }
    pthread_mutex_unlock(&helpers->mutex);
    pthread_cond_signal(&helpers->changed); /* after the unlock, for which the thread would wait */
    return status;
}
