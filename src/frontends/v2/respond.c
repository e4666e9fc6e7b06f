/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for responses that all handlers share. */
#include "base/checked.h"
#include "base/text/json.h"
#include "frontends/common/log.h"
#include "frontends/v2/exchange.h"

#define MAX_MESSAGE_BYTES 2048

void kelp_v2_respond_json(kelp_v2_exchange *exchange, kelp_http_status status) {
    kelp_http_exchange_respond(&exchange->base, status);
    kelp_http_exchange_add_header(&exchange->base, KELP_STR("Content-Type"),
                                  KELP_STR("application/json"));
}

void kelp_v2_respond_error(kelp_v2_exchange *exchange, kelp_http_status status, kelp_str message) {
    kelp_v2_respond_json(exchange, status);
    kelp_buf *text = &exchange->base.text;
    kelp_buf_append_cstr(text, "{\"error\":");
    kelp_json_escape(text, message);
    kelp_buf_append_char(text, '}');
    if (text->failed)
        kelp_buf_clear(text);
}

void kelp_v2_respond_failure(kelp_v2_exchange *exchange, kelp_status *take_status) {
    kelp_log_failure("HTTP", take_status);
    char text[MAX_MESSAGE_BYTES];
    size_t length = kelp_status_format(take_status, text, sizeof text);
    kelp_http_status status = kelp_v2_http_status(take_status);
    kelp_trace_finish(exchange->trace, status, text);
    kelp_v2_respond_error(exchange, status, (kelp_str){text, KELP_MIN(length, sizeof(text) - 1)});
    kelp_status_free(take_status);
}

static kelp_status *respond_text(kelp_v2_exchange *exchange, TRITONSERVER_Message *message) {
    const char *text = NULL;
    size_t length = 0;
    KELP_TRY(kelp_v2_status(TRITONSERVER_MessageSerializeToJson(message, &text, &length)));
    kelp_v2_respond_json(exchange, KELP_HTTP_OK);
    kelp_buf_append(&exchange->base.text, text, length);
    return kelp_buf_status(&exchange->base.text);
}

void kelp_v2_respond_message(kelp_v2_exchange *exchange, TRITONSERVER_Error *take_error,
                             TRITONSERVER_Message *take_message) {
    kelp_status *status = kelp_v2_status(take_error);
    if (status == NULL) {
        status = respond_text(exchange, take_message);
        kelp_status_free(kelp_v2_status(TRITONSERVER_MessageDelete(take_message)));
    }
    if (status != NULL)
        kelp_v2_respond_failure(exchange, status);
}

void kelp_v2_send(kelp_v2_exchange *exchange) {
    kelp_http_exchange_send(&exchange->base);
}

void kelp_v2_fail(kelp_v2_exchange *exchange, kelp_status *take_status) {
    kelp_v2_respond_failure(exchange, take_status);
    kelp_trace_stamp(exchange->trace, "HTTP_SEND_START");
    kelp_v2_send(exchange);
}
