/* SPDX-License-Identifier: Apache-2.0 */
/* The session of nghttp2: options, settings, and callbacks that pass frames to streams. */
#include "base/assert.h"
#include "base/checked.h"
#include "frontends/h2/internal.h"

#define MAX_STREAMS 256
#define STREAM_WINDOW_BYTES (4 * 1024 * 1024)
#define CONNECTION_WINDOW_BYTES (16 * 1024 * 1024)
#define MAX_HEAD_BYTES (64 * 1024)
#define RESPONSE_TABLE_BYTES 1024 /* of HPACK; the headers of responses are few */
/* Streams that the client resets: at most a burst, then a rate (CVE-2023-44487). */
#define RESET_BURST 1000
#define RESETS_PER_SECOND 200
/* Streams that the client makes the server reset, by invalid frames (CVE-2025-8671). */
#define MAX_ERRORS_PER_SECOND 100
/* Frames without effect that follow each other, such as PING. */
#define MAX_IDLE_FRAMES_PER_SECOND 1000

static kelp_http2_stream *find(nghttp2_session *session, int32_t id) {
    return nghttp2_session_get_stream_user_data(session, id);
}

/* ---- misuse ---- */

static void terminate(kelp_http2_connection *c, uint32_t error) {
    if (nghttp2_session_terminate_session(c->session, error) != 0)
        c->failed = true;
}

/* Counts an event. Returns false for the first one above a burst and a rate. */
static bool allows(const kelp_http2_connection *c, kelp_http2_counter *counter, uint32_t burst,
                   uint32_t per_second) {
    uint64_t now_ns = kelp_event_loop_now_ns(c->base.thread->loop);
    uint64_t seconds = (now_ns - counter->since_ns) / KELP_HTTP_SECOND_NS;
    if (seconds > 0) {
        counter->count -= (uint32_t)KELP_MIN(seconds * per_second, (uint64_t)counter->count);
        counter->since_ns = now_ns;
    }
    return ++counter->count != burst + 1;
}

/* Counts an event of the current second. Ends the connection above the limit. */
static void count(kelp_http2_connection *c, kelp_http2_counter *counter, uint32_t limit) {
    if (!allows(c, counter, limit, limit))
        terminate(c, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* Processes a PING of the client. gRPC's clients recognize the text of the GOAWAY. */
static void on_ping(kelp_http2_connection *c) {
    static const uint8_t text[] = "too_many_pings";
    count(c, &c->idle_frames, MAX_IDLE_FRAMES_PER_SECOND);
    uint64_t now_ns = kelp_event_loop_now_ns(c->base.thread->loop);
    if (kelp_http2_keepalive_on_ping(&c->keepalive, now_ns, c->stream_count > 0))
        return;
    int32_t last = nghttp2_session_get_last_proc_stream_id(c->session);
    if (nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_ENHANCE_YOUR_CALM, text,
                              sizeof text - 1) != 0)
        c->failed = true;
    c->expelled = true;
}

static bool contains(const kelp_http2_recent *recent, int32_t id) {
    for (size_t i = 0; i < KELP_HTTP2_RECENT; i++)
        if (recent->ids[i] == id)
            return true;
    return false;
}

static void recent_add(kelp_http2_recent *recent, int32_t id) {
    recent->ids[recent->next++ % KELP_HTTP2_RECENT] = id;
}

/* Rejects frames on closed streams. nghttp2, which does not retain closed streams, ignores them. A
 * client may still send frames on a stream that the server has reset. */
static void check_closed(kelp_http2_connection *c, const nghttp2_frame_hd *head) {
    int32_t id = head->stream_id;
    if (id % 2 == 0 || id > c->last_id || nghttp2_session_find_stream(c->session, id) != NULL)
        return;
    if (contains(&c->ended, id))
        terminate(c, NGHTTP2_STREAM_CLOSED);
    else if (head->type == NGHTTP2_HEADERS && !contains(&c->reset, id))
        terminate(c, NGHTTP2_PROTOCOL_ERROR);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *userp) {
    (void)session;
    kelp_http2_connection *c = userp;
    bool ack = (head->flags & NGHTTP2_FLAG_ACK) != 0;
    switch (head->type) {
    case NGHTTP2_DATA:
        check_closed(c, head);
        if (head->length > 0 || (head->flags & NGHTTP2_FLAG_END_STREAM))
            c->idle_frames.count = 0;
        else
            count(c, &c->idle_frames, MAX_IDLE_FRAMES_PER_SECOND);
        break;
    case NGHTTP2_HEADERS:
        check_closed(c, head);
        break;
    case NGHTTP2_SETTINGS:
        c->greeted = true;
        if (!ack)
            count(c, &c->idle_frames, MAX_IDLE_FRAMES_PER_SECOND);
        break;
    case NGHTTP2_PING:
        if (!ack)
            on_ping(c);
        break;
    case NGHTTP2_RST_STREAM:    /* on_frame limits it */
    case NGHTTP2_WINDOW_UPDATE: /* its rate depends on that of responses */
    case NGHTTP2_CONTINUATION:  /* limited by nghttp2 */
        break;
    default: /* PRIORITY and others without effect */
        count(c, &c->idle_frames, MAX_IDLE_FRAMES_PER_SECOND);
    }
    if (head->type == NGHTTP2_PRIORITY && head->stream_id == 0)
        terminate(c, NGHTTP2_PROTOCOL_ERROR);
    return 0;
}

/* ---- received frames ---- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *userp) {
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    kelp_http2_connection *c = userp;
    c->last_id = frame->hd.stream_id;
    kelp_http2_stream *s = kelp_http2_stream_acquire(c, frame->hd.stream_id);
    if (s == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return nghttp2_session_set_stream_user_data(session, s->id, s);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, nghttp2_rcbuf *name,
                     nghttp2_rcbuf *value, uint8_t flags, void *userp) {
    (void)flags;
    (void)userp;
    kelp_http2_stream *s = find(session, frame->hd.stream_id);
    if (s != NULL && frame->headers.cat == NGHTTP2_HCAT_REQUEST) /* trailers are ignored */
        kelp_http2_stream_add_header(s, name, value);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *userp) {
    kelp_http2_connection *c = userp;
    uint8_t type = frame->hd.type;
    if (type != NGHTTP2_HEADERS && type != NGHTTP2_DATA && type != NGHTTP2_RST_STREAM)
        return 0;
    if (type == NGHTTP2_RST_STREAM && !allows(c, &c->resets, RESET_BURST, RESETS_PER_SECOND))
        terminate(c, NGHTTP2_INTERNAL_ERROR);
    kelp_http2_stream *s = find(session, frame->hd.stream_id);
    if (s == NULL)
        return 0;
    if (type == NGHTTP2_RST_STREAM) { /* on_close follows */
        s->client_reset = true;
        return 0;
    }
    if (type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        kelp_http2_stream_on_head(s);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        kelp_http2_stream_on_end(s);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t length, void *userp) {
    (void)flags;
    kelp_http2_connection *c = userp;
    kelp_http2_stream *s = find(session, id);
    if (s != NULL)
        kelp_http2_stream_on_data(s, (const char *)data, length);
    else if (nghttp2_session_consume(session, id, length) != 0)
        c->failed = true;
    return 0;
}

/* ---- sent frames ---- */

/* Counts a stream that the server resets because of the client. */
static void count_error(kelp_http2_connection *c, uint32_t error) {
    if (error != NGHTTP2_NO_ERROR && error != NGHTTP2_CANCEL && error != NGHTTP2_REFUSED_STREAM &&
        error != NGHTTP2_INTERNAL_ERROR)
        count(c, &c->errors, MAX_ERRORS_PER_SECOND);
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *userp) {
    kelp_http2_connection *c = userp;
    uint8_t type = frame->hd.type;
    if (type == NGHTTP2_RST_STREAM)
        count_error(c, frame->rst_stream.error_code);
    if (type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR)
        c->violated = true;
    if (type == NGHTTP2_HEADERS || type == NGHTTP2_DATA)
        kelp_http2_keepalive_on_data(&c->keepalive);
    else if (type == NGHTTP2_WINDOW_UPDATE)
        kelp_http2_keepalive_on_credit(&c->keepalive);
    if ((type != NGHTTP2_HEADERS && type != NGHTTP2_DATA) ||
        !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    kelp_http2_stream *s = find(session, frame->hd.stream_id);
    KELP_ASSERT(s != NULL && s->exchange && c->generating);
    s->finished = true;
    c->idle_frames.count = 0;
    if (!kelp_http2_output_end_part(&c->shared->output, s))
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    /* The rest of the request is not needed. */
    if (!s->received)
        return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *userp) {
    (void)error;
    kelp_http2_connection *c = userp;
    kelp_http2_stream *s = find(session, id);
    /* The client has ended or reset the stream, unless the server has reset it. */
    bool by_server = s == NULL || (!s->received && !s->client_reset);
    recent_add(by_server ? &c->reset : &c->ended, id);
    if (s != NULL)
        kelp_http2_stream_on_close(s);
    return 0;
}

/* ---- creation ---- */

static kelp_status *check(int result, const char *what) {
    if (result == 0)
        return NULL;
    if (result == NGHTTP2_ERR_NOMEM)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "out of memory for HTTP/2: %s", what);
    return KELP_ERROR(KELP_INTERNAL, "HTTP/2: cannot create %s: %s", what,
                      nghttp2_strerror(result));
}

kelp_status *kelp_http2_callbacks_create(nghttp2_session_callbacks **out) {
    KELP_TRY(check(nghttp2_session_callbacks_new(out), "callbacks"));
    nghttp2_session_callbacks *callbacks = *out;
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback2(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, kelp_http2_send_data);
    return NULL;
}

kelp_status *kelp_http2_option_create(nghttp2_option **out) {
    KELP_TRY(check(nghttp2_option_new(out), "options"));
    nghttp2_option *option = *out;
    nghttp2_option_set_max_deflate_dynamic_table_size(option, RESPONSE_TABLE_BYTES);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    /* gRPC allows metadata that ends in spaces, and clients send it. */
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1);
    /* on_frame limits resets: nghttp2 first processes the rest of what was read. */
    nghttp2_option_set_stream_reset_rate_limit(option, UINT64_MAX, 1);
    return NULL;
}

kelp_status *kelp_http2_session_create(kelp_http2_connection *c) {
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, MAX_STREAMS},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, MAX_HEAD_BYTES},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    kelp_http2_thread *shared = c->shared;
    kelp_http2_memory_begin_session(&shared->memory);
    int result = nghttp2_session_server_new3(&c->session, shared->callbacks, c, shared->option,
                                             &shared->memory.functions);
    c->table = kelp_http2_memory_end_session(&shared->memory);
    KELP_TRY(check(result, "a session"));
    KELP_TRY(check(nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings,
                                           sizeof settings / sizeof *settings),
                   "settings"));
    return check(nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0,
                                                       CONNECTION_WINDOW_BYTES),
                 "a window");
}
