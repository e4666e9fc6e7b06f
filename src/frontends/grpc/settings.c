/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of the logging and trace extensions. */
#include "base/wire/protobuf_write.h"
#include "frontends/grpc/codec/decode.h"
#include "frontends/grpc/exchange.h"

enum { SETTINGS = 1, TRACE_MODEL = 2, ENTRY_KEY = 1, ENTRY_VALUE };
enum { LOG_BOOL = 1, LOG_NUMBER, LOG_TEXT };
enum { TRACE_VALUE = 1 };

/* A change of a setting, as an entry of the map. */
typedef struct entry {
    kelp_str name, value;
} entry;

static kelp_status *read_entry(kelp_str bytes, entry *out) {
    kelp_protobuf wire = kelp_protobuf_of(bytes);
    kelp_protobuf_field field;
    bool more;
    *out = (entry){0};
    KELP_TRY(kelp_grpc_next(&wire, "settings", &field, &more));
    while (more) {
        if (field.type != KELP_PROTOBUF_BYTES)
            return kelp_grpc_malformed("settings");
        if (field.number == ENTRY_KEY)
            out->name = field.bytes;
        else if (field.number == ENTRY_VALUE)
            out->value = field.bytes;
        KELP_TRY(kelp_grpc_next(&wire, "settings", &field, &more));
    }
    return NULL;
}

/* Collects the changes of a request, and the name of the model; "" if there is none. */
static kelp_status *read_request(kelp_grpc_request *request, kelp_grpc_slices *out,
                                 const char **out_model) {
    kelp_protobuf wire = kelp_protobuf_of(kelp_grpc_message_of(request));
    kelp_protobuf_field field;
    bool more;
    *out = (kelp_grpc_slices){0};
    *out_model = "";
    KELP_TRY(kelp_grpc_next(&wire, "request", &field, &more));
    while (more) {
        if (field.number == SETTINGS)
            KELP_TRY(kelp_grpc_add_slice(&request->arena, out, &field, "settings"));
        else if (field.number == TRACE_MODEL)
            KELP_TRY(kelp_grpc_text(&request->arena, &field, "model_name", out_model));
        KELP_TRY(kelp_grpc_next(&wire, "request", &field, &more));
    }
    return NULL;
}

/* Appends an entry whose value begins at `value` in the buffer, without a key. */
static void end_entry(kelp_buf *out, const char *name, size_t value) {
    kelp_protobuf_wrap(out, ENTRY_VALUE, value);
    kelp_protobuf_put_text(out, ENTRY_KEY, name);
    kelp_protobuf_wrap(out, SETTINGS, value);
}

static void finish(kelp_grpc_exchange *exchange, kelp_status *take_status) {
    if (take_status != NULL)
        kelp_grpc_finish(exchange, take_status);
    else
        kelp_grpc_reply_end(exchange);
}

/* ---- logging ---- */

static void put_log_text(kelp_buf *out, const char *name, const char *text) {
    size_t start = out->length;
    kelp_protobuf_put_text(out, LOG_TEXT, text);
    end_entry(out, name, start);
}

static void put_log_number(kelp_buf *out, const char *name, uint32_t choice, uint32_t value) {
    size_t start = out->length;
    kelp_protobuf_put_i64(out, choice, value);
    end_entry(out, name, start);
}

static kelp_status *to_logging_change(kelp_str bytes, kelp_logging_change *out) {
    entry e;
    kelp_protobuf_field field;
    bool more;
    KELP_TRY(read_entry(bytes, &e));
    *out = (kelp_logging_change){.name = e.name, .kind = KELP_LOGGING_TEXT};
    kelp_protobuf wire = kelp_protobuf_of(e.value);
    KELP_TRY(kelp_grpc_next(&wire, "settings", &field, &more));
    while (more) {
        if (field.number == LOG_BOOL) {
            out->kind = KELP_LOGGING_BOOL;
            out->boolean = field.value != 0;
        } else if (field.number == LOG_NUMBER) {
            out->kind = KELP_LOGGING_NUMBER;
            out->number = field.value;
        } else if (field.number == LOG_TEXT && field.type == KELP_PROTOBUF_BYTES) {
            out->kind = KELP_LOGGING_TEXT;
            out->text = field.bytes;
        }
        KELP_TRY(kelp_grpc_next(&wire, "settings", &field, &more));
    }
    return NULL;
}

static kelp_status *update_logging(kelp_logging *logging, kelp_grpc_request *request) {
    kelp_grpc_slices settings;
    const char *model;
    KELP_TRY(read_request(request, &settings, &model));
    if (settings.count == 0)
        return NULL;
    kelp_logging_change *changes =
        KELP_ARENA_ARRAY(&request->arena, settings.count, kelp_logging_change);
    if (changes == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < settings.count; i++)
        KELP_TRY(to_logging_change(settings.items[i], &changes[i]));
    return kelp_logging_update(logging, changes, settings.count);
}

static kelp_status *set_logging(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    kelp_logging *logging = kelp_grpc_service_of(exchange)->logging;
    if (logging == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "log settings are not supported");
    KELP_TRY(update_logging(logging, request));
    kelp_logging_values values = kelp_logging_get(logging);
    kelp_buf *out = kelp_grpc_begin(exchange);
    put_log_text(out, "log_file", values.file);
    put_log_number(out, "log_info", LOG_BOOL, values.info);
    put_log_number(out, "log_warning", LOG_BOOL, values.warning);
    put_log_number(out, "log_error", LOG_BOOL, values.error);
    put_log_number(out, "log_verbose_level", LOG_NUMBER, values.verbose);
    put_log_text(out, "log_format", kelp_logging_format_name(values.format));
    return NULL;
}

void kelp_grpc_log_settings(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    finish(exchange, set_logging(exchange, request));
}

/* ---- tracing ---- */

static void put_trace_text(kelp_buf *out, const char *name, const char *text) {
    size_t start = out->length;
    kelp_protobuf_put_text(out, TRACE_VALUE, text);
    end_entry(out, name, start);
}

/* Appends a number as text, as in Triton. */
static void put_trace_number(kelp_buf *out, const char *name, int64_t value) {
    size_t start = out->length;
    kelp_buf_append_i64(out, value);
    kelp_protobuf_wrap(out, TRACE_VALUE, start);
    end_entry(out, name, start);
}

static void put_trace_level(kelp_buf *out, unsigned level) {
    size_t start = out->length;
    if (level == 0)
        kelp_protobuf_put_text(out, TRACE_VALUE, "OFF");
    if (level & TRITONSERVER_TRACE_LEVEL_TIMESTAMPS)
        kelp_protobuf_put_text(out, TRACE_VALUE, "TIMESTAMPS");
    if (level & TRITONSERVER_TRACE_LEVEL_TENSORS)
        kelp_protobuf_put_text(out, TRACE_VALUE, "TENSORS");
    end_entry(out, "trace_level", start);
}

/* Appends the mode and its settings. */
static void put_trace_mode(kelp_buf *out, const kelp_tracing_options *options,
                           const kelp_trace_values *values) {
    if (options->otlp == NULL) {
        put_trace_number(out, "log_frequency", values->log_frequency);
        put_trace_text(out, "trace_file", options->file);
        put_trace_text(out, "trace_mode", "triton");
        return;
    }
    put_trace_text(out, "trace_mode", "opentelemetry");
    for (size_t i = 0; i < options->shown_count; i++) {
        const kelp_trace_shown *shown = &options->shown[i];
        size_t start = out->length;
        for (size_t k = 0; k < shown->count; k++)
            kelp_protobuf_put_text(out, TRACE_VALUE, shown->values[k]);
        end_entry(out, shown->name, start);
    }
}

/* A setting without values is reset. */
static kelp_status *to_trace_change(kelp_arena *arena, kelp_str bytes, kelp_trace_change *out) {
    entry e;
    kelp_protobuf_field field;
    kelp_grpc_slices values = {0};
    bool more;
    KELP_TRY(read_entry(bytes, &e));
    kelp_protobuf wire = kelp_protobuf_of(e.value);
    KELP_TRY(kelp_grpc_next(&wire, "settings", &field, &more));
    while (more) {
        if (field.number == TRACE_VALUE)
            KELP_TRY(kelp_grpc_add_slice(arena, &values, &field, "values of a setting"));
        KELP_TRY(kelp_grpc_next(&wire, "settings", &field, &more));
    }
    *out = (kelp_trace_change){
        .name = e.name, .reset = values.count == 0, .values = values.items, .count = values.count};
    return NULL;
}

static kelp_status *update_trace(kelp_tracing *tracing, kelp_grpc_request *request,
                                 const char **out_model) {
    kelp_grpc_slices settings;
    KELP_TRY(read_request(request, &settings, out_model));
    if (settings.count == 0)
        return NULL;
    kelp_trace_change *changes =
        KELP_ARENA_ARRAY(&request->arena, settings.count, kelp_trace_change);
    if (changes == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < settings.count; i++)
        KELP_TRY(to_trace_change(&request->arena, settings.items[i], &changes[i]));
    return kelp_tracing_update(tracing, *out_model, changes, settings.count);
}

static kelp_status *set_trace(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    kelp_tracing *tracing = kelp_grpc_service_of(exchange)->tracing;
    kelp_trace_values values;
    const char *model;
    if (tracing == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "trace settings are not supported");
    KELP_TRY(update_trace(tracing, request, &model));
    KELP_TRY(kelp_tracing_get(tracing, model, &values));
    kelp_buf *out = kelp_grpc_begin(exchange);
    put_trace_level(out, values.level);
    put_trace_number(out, "trace_rate", values.rate);
    put_trace_number(out, "trace_count", values.count);
    put_trace_mode(out, kelp_tracing_start_options(tracing), &values);
    return NULL;
}

void kelp_grpc_trace_setting(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    finish(exchange, set_trace(exchange, request));
}
