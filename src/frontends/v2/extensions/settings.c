/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoints of the logging and trace extensions. */
#include "base/assert.h"
#include "base/text/json.h"
#include "frontends/v2/exchange.h"

/* Returns true if the server has the extension; otherwise responds as for an unknown path. */
static bool require(kelp_v2_exchange *exchange, const void *extension) {
    if (extension != NULL)
        return true;
    kelp_v2_respond_error(exchange, KELP_HTTP_NOT_FOUND, KELP_STR("Not Found"));
    kelp_v2_send(exchange);
    return false;
}

/* Sends the response, or the failure. */
static void finish(kelp_v2_exchange *exchange, kelp_status *take_status) {
    if (take_status != NULL)
        kelp_v2_respond_failure(exchange, take_status);
    kelp_v2_send(exchange);
}

static void put_text(kelp_json_writer *json, const char *key, const char *text) {
    kelp_json_key(json, key);
    kelp_json_put_cstr(json, text);
}

/* ---- logging ---- */

static kelp_status *respond_logging(kelp_v2_exchange *exchange) {
    kelp_logging_values values = kelp_logging_get(kelp_v2_service_of(exchange)->logging);
    kelp_json_writer json;
    kelp_v2_respond_json(exchange, KELP_HTTP_OK);
    kelp_json_writer_init(&json, &exchange->base.text);
    kelp_json_begin_object(&json);
    put_text(&json, "log_file", values.file);
    kelp_json_key(&json, "log_info");
    kelp_json_put_bool(&json, values.info);
    kelp_json_key(&json, "log_warning");
    kelp_json_put_bool(&json, values.warning);
    kelp_json_key(&json, "log_error");
    kelp_json_put_bool(&json, values.error);
    kelp_json_key(&json, "log_verbose_level");
    kelp_json_put_u64(&json, values.verbose);
    put_text(&json, "log_format", kelp_logging_format_name(values.format));
    kelp_json_end_object(&json);
    return kelp_buf_status(&exchange->base.text);
}

static kelp_status *to_logging_change(const kelp_json *member, kelp_logging_change *out) {
    *out = (kelp_logging_change){.name = member->key};
    if (member->type == KELP_JSON_BOOL) {
        out->kind = KELP_LOGGING_BOOL;
        out->boolean = member->boolean;
    } else if (member->type == KELP_JSON_STRING) {
        out->kind = KELP_LOGGING_TEXT;
        out->text = member->string;
    } else if (member->type == KELP_JSON_UINT ||
               (member->type == KELP_JSON_INT && member->i64 >= 0)) {
        out->kind = KELP_LOGGING_NUMBER;
        out->number = member->u64;
    } else if (member->type == KELP_JSON_DOUBLE && member->f64 >= 0 && member->f64 <= UINT32_MAX &&
               member->f64 == (double)(uint32_t)member->f64) { /* 1.0 is an integer */
        out->kind = KELP_LOGGING_NUMBER;
        out->number = (uint32_t)member->f64;
    } else {
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "log setting '%.*s': expected a boolean, a string or a non-negative "
                          "integer, found %s",
                          KELP_STR_ARG(member->key), kelp_json_type_name(member->type));
    }
    return NULL;
}

static kelp_status *update_logging(kelp_v2_exchange *exchange) {
    kelp_json *body;
    size_t count = 0;
    KELP_TRY(kelp_v2_parse_body(exchange, &body));
    if (body == NULL || body->count == 0)
        return NULL;
    kelp_logging_change *changes =
        KELP_ARENA_ARRAY(&exchange->arena, body->count, kelp_logging_change);
    if (changes == NULL)
        return kelp_status_oom();
    for (const kelp_json *m = body->child; m != NULL; m = m->next)
        if (m->type != KELP_JSON_NULL) /* no change */
            KELP_TRY(to_logging_change(m, &changes[count++]));
    return kelp_logging_update(kelp_v2_service_of(exchange)->logging, changes, count);
}

void kelp_v2_get_logging(kelp_v2_exchange *exchange) {
    if (require(exchange, kelp_v2_service_of(exchange)->logging))
        finish(exchange, respond_logging(exchange));
}

void kelp_v2_set_logging(kelp_v2_exchange *exchange) {
    if (!require(exchange, kelp_v2_service_of(exchange)->logging))
        return;
    kelp_status *status = update_logging(exchange);
    finish(exchange, status != NULL ? status : respond_logging(exchange));
}

/* ---- tracing ---- */

/* Writes a number as a string, as in Triton. */
static void put_number(kelp_json_writer *json, const char *key, int64_t value) {
    kelp_json_key(json, key);
    kelp_json_put_raw(json, KELP_STR("\""));
    kelp_buf_append_i64(json->out, value);
    kelp_buf_append_char(json->out, '"');
}

/* Writes the mode and its settings. */
static void put_mode(kelp_json_writer *json, const kelp_tracing_options *options,
                     const kelp_trace_values *values) {
    if (options->otlp == NULL) {
        put_number(json, "log_frequency", values->log_frequency);
        put_text(json, "trace_file", options->file);
        put_text(json, "trace_mode", "triton");
        return;
    }
    put_text(json, "trace_mode", "opentelemetry");
    for (size_t i = 0; i < options->shown_count; i++) {
        const kelp_trace_shown *shown = &options->shown[i];
        kelp_json_key(json, shown->name);
        if (shown->count > 1)
            kelp_json_begin_array(json);
        for (size_t k = 0; k < shown->count; k++)
            kelp_json_put_cstr(json, shown->values[k]);
        if (shown->count > 1)
            kelp_json_end_array(json);
    }
}

static kelp_status *respond_trace(kelp_v2_exchange *exchange) {
    kelp_tracing *tracing = kelp_v2_service_of(exchange)->tracing;
    kelp_trace_values values;
    kelp_json_writer json;
    KELP_TRY(kelp_tracing_get(tracing, exchange->model, &values));
    kelp_v2_respond_json(exchange, KELP_HTTP_OK);
    kelp_json_writer_init(&json, &exchange->base.text);
    kelp_json_begin_object(&json);
    kelp_json_key(&json, "trace_level");
    kelp_json_begin_array(&json);
    if (values.level == 0)
        kelp_json_put_cstr(&json, "OFF");
    if (values.level & TRITONSERVER_TRACE_LEVEL_TIMESTAMPS)
        kelp_json_put_cstr(&json, "TIMESTAMPS");
    if (values.level & TRITONSERVER_TRACE_LEVEL_TENSORS)
        kelp_json_put_cstr(&json, "TENSORS");
    kelp_json_end_array(&json);
    put_number(&json, "trace_rate", values.rate);
    put_number(&json, "trace_count", values.count);
    put_mode(&json, kelp_tracing_start_options(tracing), &values);
    kelp_json_end_object(&json);
    return kelp_buf_status(&exchange->base.text);
}

/* Converts a member: null, a string, or an array of strings. */
static kelp_status *to_trace_change(kelp_v2_exchange *exchange, const kelp_json *member,
                                    kelp_trace_change *out) {
    bool list = member->type == KELP_JSON_ARRAY;
    *out = (kelp_trace_change){.name = member->key, .reset = member->type == KELP_JSON_NULL};
    if (out->reset)
        return NULL;
    kelp_str *values = KELP_ARENA_ARRAY(&exchange->arena, list ? member->count + 1 : 1, kelp_str);
    if (values == NULL)
        return kelp_status_oom();
    for (const kelp_json *v = list ? member->child : member; v != NULL; v = list ? v->next : NULL) {
        if (v->type != KELP_JSON_STRING)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "trace setting '%.*s': expected a string, found %s",
                              KELP_STR_ARG(member->key), kelp_json_type_name(v->type));
        values[out->count++] = v->string;
    }
    out->values = values;
    return NULL;
}

static kelp_status *update_trace(kelp_v2_exchange *exchange) {
    kelp_json *body;
    size_t count = 0;
    KELP_TRY(kelp_v2_parse_body(exchange, &body));
    if (body == NULL || body->count == 0)
        return NULL;
    kelp_trace_change *changes = KELP_ARENA_ARRAY(&exchange->arena, body->count, kelp_trace_change);
    if (changes == NULL)
        return kelp_status_oom();
    for (const kelp_json *m = body->child; m != NULL; m = m->next)
        KELP_TRY(to_trace_change(exchange, m, &changes[count++]));
    return kelp_tracing_update(kelp_v2_service_of(exchange)->tracing, exchange->model, changes,
                               count);
}

void kelp_v2_get_trace(kelp_v2_exchange *exchange) {
    if (require(exchange, kelp_v2_service_of(exchange)->tracing))
        finish(exchange, respond_trace(exchange));
}

void kelp_v2_set_trace(kelp_v2_exchange *exchange) {
    if (!require(exchange, kelp_v2_service_of(exchange)->tracing))
        return;
    kelp_status *status = update_trace(exchange);
    finish(exchange, status != NULL ? status : respond_trace(exchange));
}
