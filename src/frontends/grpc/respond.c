/* SPDX-License-Identifier: Apache-2.0 */
/* The response: head, messages, and the status in the trailers. Source: "gRPC over HTTP2"
 * (PROTOCOL-HTTP2.md). */
#include "base/assert.h"
#include "base/checked.h"
#include "frontends/common/log.h"
#include "frontends/grpc/exchange.h"
#include "frontends/http/thread.h"

#define MAX_MESSAGE_BYTES 2048
#define MAX_TIMEOUT_DIGITS 8

static const kelp_str code_texts[] = {
    {"0", 1}, {"1", 1},  {"2", 1},  {"3", 1},  {"4", 1},  {"5", 1},  {"6", 1},  {"7", 1},  {"8", 1},
    {"9", 1}, {"10", 2}, {"11", 2}, {"12", 2}, {"13", 2}, {"14", 2}, {"15", 2}, {"16", 2},
};

/* ---- text formats ---- */

void kelp_grpc_encode_text(kelp_buf *out, kelp_str text) {
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c >= ' ' && c <= '~' && c != '%') {
            kelp_buf_append_char(out, (char)c);
        } else {
            char escape[3] = {'%', digits[c >> 4], digits[c & 15]};
            kelp_buf_append(out, escape, sizeof escape);
        }
    }
}

/* Returns the nanoseconds of a unit; 0 if it is unknown. */
static uint64_t unit_ns(char unit) {
    switch (unit) {
    case 'H':
        return UINT64_C(3600000000000);
    case 'M':
        return UINT64_C(60000000000);
    case 'S':
        return UINT64_C(1000000000);
    case 'm':
        return UINT64_C(1000000);
    case 'u':
        return UINT64_C(1000);
    case 'n':
        return 1;
    default:
        return 0;
    }
}

bool kelp_grpc_parse_timeout(kelp_str text, uint64_t *out_ns) {
    uint64_t value;
    if (text.length < 2 || text.length > MAX_TIMEOUT_DIGITS + 1 || text.data[0] == '+' ||
        !kelp_parse_u64((kelp_str){text.data, text.length - 1}, &value))
        return false;
    uint64_t unit = unit_ns(text.data[text.length - 1]);
    if (__builtin_mul_overflow(value, unit, out_ns))
        *out_ns = UINT64_MAX;
    return unit != 0;
}

/* ---- the head and messages ---- */

void kelp_grpc_start(kelp_grpc_exchange *exchange) {
    if (exchange->started)
        return;
    exchange->started = true;
    kelp_http_exchange_respond(&exchange->base, KELP_HTTP_OK);
    kelp_http_exchange_add_header(&exchange->base, KELP_STR("content-type"),
                                  KELP_STR("application/grpc"));
    kelp_http_exchange_add_header(&exchange->base, KELP_STR("grpc-accept-encoding"),
                                  KELP_STR("identity,deflate,gzip"));
    if (exchange->response_coding != KELP_HTTP_IDENTITY)
        kelp_http_exchange_add_header(
            &exchange->base, KELP_STR("grpc-encoding"),
            kelp_str_from(kelp_http_coding_name(exchange->response_coding)));
}

kelp_buf *kelp_grpc_begin(kelp_grpc_exchange *exchange) {
    static const char prefix[KELP_GRPC_PREFIX_BYTES];
    kelp_grpc_start(exchange);
    kelp_buf_clear(&exchange->base.text);
    kelp_buf_append(&exchange->base.text, prefix, sizeof prefix);
    return &exchange->base.text;
}

void kelp_grpc_end(kelp_grpc_exchange *exchange) {
    kelp_buf *text = &exchange->base.text;
    if (text->failed)
        return;
    KELP_ASSERT(text->length >= KELP_GRPC_PREFIX_BYTES);
    size_t length = text->length - KELP_GRPC_PREFIX_BYTES;
    for (int i = 1; i < KELP_GRPC_PREFIX_BYTES; i++)
        text->data[i] = (char)(length >> (8 * (KELP_GRPC_PREFIX_BYTES - 1 - i)));
}

/* ---- the status ---- */

void kelp_grpc_reply_end(kelp_grpc_exchange *exchange) {
    kelp_grpc_end(exchange);
    kelp_grpc_finish(exchange, kelp_buf_status(&exchange->base.text));
}

/* Adds the status to the head if there is no message, otherwise to the trailers. */
static void add_status(kelp_grpc_exchange *exchange) {
    kelp_http_exchange *base = &exchange->base;
    KELP_ASSERT((size_t)exchange->code < KELP_COUNT(code_texts));
    kelp_str code = code_texts[exchange->code];
    kelp_str text = {exchange->status_text.data, exchange->status_text.length};
    bool alone = !exchange->has_sent && kelp_http_exchange_content_length(base) == 0;
    if (alone) { /* begin again, without the header grpc-encoding */
        exchange->started = false;
        exchange->response_coding = KELP_HTTP_IDENTITY;
    }
    kelp_grpc_start(exchange);
    void (*add)(kelp_http_exchange *, kelp_str, kelp_str) =
        alone ? kelp_http_exchange_add_header : kelp_http_exchange_add_trailer;
    add(base, KELP_STR("grpc-status"), code);
    if (text.length > 0)
        add(base, KELP_STR("grpc-message"), text);
}

void kelp_grpc_send_status(kelp_grpc_exchange *exchange) {
    if (exchange->sending || exchange->finished || exchange->blocking)
        return;
    KELP_ASSERT(exchange->finishing);
    exchange->finished = true;
    kelp_grpc_stream_close(exchange);
    kelp_event_loop *loop = exchange->base.thread->loop;
    kelp_event_loop_timer_cancel(loop, &exchange->deadline_timer);
    kelp_event_loop_timer_cancel(loop, &exchange->poll_timer);
    kelp_event_loop_timer_cancel(loop, &exchange->message_timer);
    add_status(exchange);
    kelp_http_exchange_send(&exchange->base);
}

/* Keeps the code and the message of a failure. */
static void set_status(kelp_grpc_exchange *exchange, const kelp_status *status) {
    char text[MAX_MESSAGE_BYTES];
    exchange->code = kelp_status_code(status);
    kelp_buf_clear(&exchange->status_text);
    if (status == NULL)
        return;
    size_t length = kelp_status_format(status, text, sizeof text);
    kelp_grpc_encode_text(&exchange->status_text,
                          (kelp_str){text, KELP_MIN(length, sizeof(text) - 1)});
    if (exchange->status_text.failed)
        kelp_buf_clear(&exchange->status_text);
}

void kelp_grpc_finish(kelp_grpc_exchange *exchange, kelp_status *take_status) {
    if (!exchange->finishing) {
        exchange->finishing = true;
        if (take_status != NULL)
            kelp_log_failure("gRPC", take_status);
        set_status(exchange, take_status);
        if (take_status != NULL && !exchange->sending) /* discard a message of kelp_grpc_begin */
            kelp_buf_clear(&exchange->base.text);
        kelp_grpc_cancel_requests(exchange);
    }
    kelp_status_free(take_status);
    kelp_grpc_send_status(exchange);
}

void kelp_grpc_fill_error(kelp_grpc_exchange *exchange, kelp_status *take_status) {
    exchange->finishing = exchange->finished = true;
    set_status(exchange, take_status);
    kelp_status_free(take_status);
    add_status(exchange);
}
