/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of all requests except inference: health, metadata, configuration, statistics, the model
 * repository, metrics. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "frontends/common/metadata.h"
#include "frontends/tensor/base64.h"
#include "frontends/v2/exchange.h"
#include "frontends/v2/openapi.h"

#include <kelp/server.h>

#define OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define PROTOBUF_TYPE \
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

/* ---- health ---- */

/* Responds without a body, as Triton does: scripts compare all that curl prints with "200". */
static void respond_health(kelp_v2_exchange *exchange, TRITONSERVER_Error *take_error, bool good,
                           kelp_http_status otherwise) {
    if (take_error != NULL) {
        kelp_v2_fail(exchange, kelp_v2_status(take_error));
        return;
    }
    kelp_http_exchange_respond(&exchange->base, good ? KELP_HTTP_OK : otherwise);
    kelp_v2_send(exchange);
}

void kelp_v2_live(kelp_v2_exchange *exchange) {
    bool live = false;
    TRITONSERVER_Error *error =
        TRITONSERVER_ServerIsLive(kelp_v2_service_of(exchange)->core, &live);
    respond_health(exchange, error, live, KELP_HTTP_BAD_REQUEST);
}

static bool is_draining(kelp_v2_exchange *exchange) {
    return atomic_load_explicit(&kelp_v2_service_of(exchange)->draining, memory_order_relaxed);
}

void kelp_v2_ready(kelp_v2_exchange *exchange) {
    bool ready = false;
    if (is_draining(exchange)) {
        respond_health(exchange, NULL, false, KELP_HTTP_SERVICE_UNAVAILABLE);
        return;
    }
    TRITONSERVER_Error *error =
        TRITONSERVER_ServerIsReady(kelp_v2_service_of(exchange)->core, &ready);
    respond_health(exchange, error, ready, KELP_HTTP_BAD_REQUEST);
}

/* Responds for a model that is not ready: 404 if it does not exist. */
static void respond_unready(kelp_v2_exchange *exchange) {
    TRITONSERVER_Message *message = NULL;
    TRITONSERVER_Error *error = TRITONSERVER_ServerModelMetadata(
        kelp_v2_service_of(exchange)->core, exchange->model, exchange->version, &message);
    if (error != NULL && TRITONSERVER_ErrorCode(error) == TRITONSERVER_ERROR_NOT_FOUND) {
        kelp_v2_respond_failure(exchange, kelp_v2_status(error));
        return;
    }
    TRITONSERVER_ErrorDelete(error);
    if (message != NULL)
        TRITONSERVER_ErrorDelete(TRITONSERVER_MessageDelete(message));
    kelp_v2_respond_error(exchange, KELP_HTTP_BAD_REQUEST, KELP_STR("Model version not ready"));
}

void kelp_v2_model_ready(kelp_v2_exchange *exchange) {
    bool ready = false;
    kelp_status *status = kelp_v2_status(TRITONSERVER_ServerModelIsReady(
        kelp_v2_service_of(exchange)->core, exchange->model, exchange->version, &ready));
    if (status != NULL)
        kelp_v2_respond_failure(exchange, status);
    else if (is_draining(exchange))
        kelp_v2_respond_error(exchange, KELP_HTTP_SERVICE_UNAVAILABLE,
                              KELP_STR("the server is stopping"));
    else if (ready)
        kelp_http_exchange_respond(&exchange->base, KELP_HTTP_OK);
    else
        respond_unready(exchange);
    kelp_v2_send(exchange);
}

/* ---- metadata, configuration, statistics ---- */

void kelp_v2_model_metadata(kelp_v2_exchange *exchange) {
    TRITONSERVER_Message *message = NULL;
    TRITONSERVER_Error *error = TRITONSERVER_ServerModelMetadata(
        kelp_v2_service_of(exchange)->core, exchange->model, exchange->version, &message);
    kelp_v2_respond_message(exchange, error, message);
    kelp_v2_send(exchange);
}

void kelp_v2_model_config(kelp_v2_exchange *exchange) {
    TRITONSERVER_Message *message = NULL;
    TRITONSERVER_Error *error = TRITONSERVER_ServerModelConfig(
        kelp_v2_service_of(exchange)->core, exchange->model, exchange->version, 1, &message);
    kelp_v2_respond_message(exchange, error, message);
    kelp_v2_send(exchange);
}

void kelp_v2_model_statistics(kelp_v2_exchange *exchange) {
    TRITONSERVER_Message *message = NULL;
    TRITONSERVER_Error *error = TRITONSERVER_ServerModelStatistics(
        kelp_v2_service_of(exchange)->core, exchange->model, exchange->version, &message);
    kelp_v2_respond_message(exchange, error, message);
    kelp_v2_send(exchange);
}

/* Creates the page of metrics in a format that the client accepts and the server provides. Clients
 * of Prometheus accept protobuf only if they want native histograms. */
static kelp_status *create_metrics(const kelp_v2_exchange *exchange, TRITONSERVER_Metrics **out,
                                   kelp_str *out_type) {
    static const struct {
        const char *accepted;
        KELP_MetricsFormat format;
        kelp_str type;
    } formats[] = {
        {"application/vnd.google.protobuf",
         KELP_METRICS_PROTOBUF,
         {PROTOBUF_TYPE, sizeof(PROTOBUF_TYPE) - 1}},
        {"application/openmetrics-text",
         KELP_METRICS_OPENMETRICS,
         {OPENMETRICS_TYPE, sizeof(OPENMETRICS_TYPE) - 1}},
    };
    TRITONSERVER_Server *core = kelp_v2_service_of(exchange)->core;
    const kelp_str *accept = kelp_http_find(exchange->base.request, "accept");
    for (size_t i = 0; accept != NULL && i < KELP_COUNT(formats); i++) {
        if (memmem(accept->data, accept->length, formats[i].accepted,
                   strlen(formats[i].accepted)) == NULL)
            continue;
        *out_type = formats[i].type;
        kelp_status *status = kelp_v2_status(KELP_ServerMetrics(core, formats[i].format, out));
        if (kelp_status_code(status) != KELP_UNIMPLEMENTED) /* otherwise it is disabled */
            return status;
        kelp_status_free(status);
    }
    *out_type = KELP_STR("text/plain; charset=utf-8");
    return kelp_v2_status(TRITONSERVER_ServerMetrics(core, out));
}

static kelp_status *respond_metrics(kelp_v2_exchange *exchange, TRITONSERVER_Metrics *metrics,
                                    kelp_str type) {
    const char *text = NULL;
    size_t length = 0;
    KELP_TRY(kelp_v2_status(
        TRITONSERVER_MetricsFormatted(metrics, TRITONSERVER_METRIC_PROMETHEUS, &text, &length)));
    kelp_http_exchange_respond(&exchange->base, KELP_HTTP_OK);
    kelp_http_exchange_add_header(&exchange->base, KELP_STR("Content-Type"), type);
    kelp_buf_append(&exchange->base.text, text, length);
    return kelp_buf_status(&exchange->base.text);
}

void kelp_v2_metrics(kelp_v2_exchange *exchange) {
    TRITONSERVER_Metrics *metrics = NULL;
    kelp_str type;
    kelp_status *status = create_metrics(exchange, &metrics, &type);
    if (status == NULL) {
        status = respond_metrics(exchange, metrics, type);
        kelp_status_free(kelp_v2_status(TRITONSERVER_MetricsDelete(metrics)));
    }
    if (status != NULL)
        kelp_v2_respond_failure(exchange, status);
    kelp_v2_send(exchange);
}

/* ---- the model repository ---- */

kelp_status *kelp_v2_parse_body(kelp_v2_exchange *exchange, kelp_json **out) {
    kelp_str body;
    *out = NULL;
    KELP_TRY(kelp_http_exchange_body(&exchange->base,
                                     kelp_v2_service_of(exchange)->max_input_size_bytes, &body));
    if (!kelp_str_trim(body).length)
        return NULL;
    KELP_TRY(kelp_json_parse(&exchange->arena, "request body", body.data, body.length, out));
    if ((*out)->type != KELP_JSON_OBJECT)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "request body: expected an object, found %s",
                          kelp_json_type_name((*out)->type));
    return NULL;
}

void kelp_v2_repository_index(kelp_v2_exchange *exchange) {
    kelp_json *body;
    kelp_status *status = kelp_v2_parse_body(exchange, &body);
    const kelp_json *ready = status != NULL ? NULL : kelp_json_get(body, "ready");
    if (ready != NULL && ready->type != KELP_JSON_BOOL)
        status = KELP_ERROR(KELP_INVALID_ARGUMENT, "'ready': expected true or false, found %s",
                            kelp_json_type_name(ready->type));
    if (status != NULL) {
        kelp_v2_fail(exchange, status);
        return;
    }
    TRITONSERVER_Message *message = NULL;
    TRITONSERVER_Error *error = TRITONSERVER_ServerModelIndex(
        kelp_v2_service_of(exchange)->core,
        ready != NULL && ready->boolean ? (uint32_t)TRITONSERVER_INDEX_FLAG_READY : 0, &message);
    kelp_v2_respond_message(exchange, error, message);
    kelp_v2_send(exchange);
}

static kelp_status *text_of(kelp_v2_exchange *exchange, const char *name, kelp_str s,
                            const char **out) {
    if (s.length && memchr(s.data, 0, s.length) != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "parameter '%s': a NUL character is not allowed",
                          name);
    if (!kelp_utf8_count(s, NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "parameter '%s': the text is not valid UTF-8",
                          name);
    *out = kelp_arena_strndup(&exchange->arena, s.data != NULL ? s.data : "", s.length);
    return *out != NULL ? NULL : kelp_status_oom();
}

/* Creates a load parameter from a member of "parameters". The bytes of a file are in the arena,
 * which outlives the load. */
static kelp_status *make_parameter(kelp_v2_exchange *exchange, const kelp_json *member,
                                   TRITONSERVER_Parameter **out) {
    static const char file_prefix[] = "file:";
    const char *name, *text;
    KELP_TRY(text_of(exchange, "name", member->key, &name));
    if (strncmp(name, file_prefix, sizeof file_prefix - 1) == 0) {
        if (member->type != KELP_JSON_STRING)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "parameter '%s': expected base64 text, found %s", name,
                              kelp_json_type_name(member->type));
        size_t length;
        char *bytes = kelp_arena_alloc(&exchange->arena, member->string.length, 16);
        if (bytes == NULL)
            return kelp_status_oom();
        if (!kelp_v2_base64_decode(member->string, bytes, &length))
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "parameter '%s': invalid base64", name);
        *out = TRITONSERVER_ParameterBytesNew(name, bytes, length);
    } else if (member->type == KELP_JSON_STRING) {
        KELP_TRY(text_of(exchange, name, member->string, &text));
        *out = TRITONSERVER_ParameterNew(name, TRITONSERVER_PARAMETER_STRING, text);
    } else if (member->type == KELP_JSON_INT) {
        *out = TRITONSERVER_ParameterNew(name, TRITONSERVER_PARAMETER_INT, &member->i64);
    } else if (member->type == KELP_JSON_BOOL) {
        *out = TRITONSERVER_ParameterNew(name, TRITONSERVER_PARAMETER_BOOL, &member->boolean);
    } else {
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "parameter '%s': expected a string, an integer or a boolean, found %s",
                          name, kelp_json_type_name(member->type));
    }
    return *out != NULL ? NULL : kelp_status_oom();
}

/* Returns the parameters of a load or unload, NULL in *out if there are none. */
static kelp_status *get_parameters(const kelp_v2_exchange *exchange, const kelp_json **out) {
    const kelp_json *members = kelp_json_get(exchange->document, "parameters");
    *out = members;
    if (members != NULL && members->type != KELP_JSON_OBJECT)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "'parameters': expected an object, found %s",
                          kelp_json_type_name(members->type));
    return NULL;
}

static kelp_status *load(kelp_v2_exchange *exchange) {
    const kelp_json *members;
    TRITONSERVER_Server *core = kelp_v2_service_of(exchange)->core;
    KELP_TRY(get_parameters(exchange, &members));
    size_t count = members != NULL ? members->count : 0;
    if (count == 0)
        return kelp_v2_status(TRITONSERVER_ServerLoadModel(core, exchange->model));
    TRITONSERVER_Parameter **parameters =
        KELP_ARENA_ARRAY(&exchange->arena, count, TRITONSERVER_Parameter *);
    if (parameters == NULL)
        return kelp_status_oom();
    kelp_status *status = NULL;
    size_t created = 0;
    for (const kelp_json *m = members->child; m != NULL && status == NULL; m = m->next) {
        KELP_ASSERT(created < count);
        status = make_parameter(exchange, m, &parameters[created]);
        created += status != NULL ? 0 : 1;
    }
    if (status == NULL)
        status = kelp_v2_status(TRITONSERVER_ServerLoadModelWithParameters(
            core, exchange->model, (const TRITONSERVER_Parameter **)parameters, created));
    for (size_t i = 0; i < created; i++)
        TRITONSERVER_ParameterDelete(parameters[i]);
    return status;
}

static kelp_status *unload(kelp_v2_exchange *exchange) {
    const kelp_json *members;
    KELP_TRY(get_parameters(exchange, &members));
    const kelp_json *dependents = kelp_json_get(members, "unload_dependents");
    if (dependents != NULL && dependents->type != KELP_JSON_BOOL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "'unload_dependents': expected true or false, found %s",
                          kelp_json_type_name(dependents->type));
    TRITONSERVER_Server *core = kelp_v2_service_of(exchange)->core;
    if (dependents != NULL && dependents->boolean)
        return kelp_v2_status(TRITONSERVER_ServerUnloadModelAndDependents(core, exchange->model));
    return kelp_v2_status(TRITONSERVER_ServerUnloadModel(core, exchange->model));
}

static void run_control(kelp_work *work) {
    kelp_v2_exchange *exchange =
        (kelp_v2_exchange *)((char *)work - offsetof(kelp_v2_exchange, work));
    kelp_status *status = exchange->control(exchange);
    if (status != NULL)
        kelp_v2_respond_failure(exchange, status);
    else
        kelp_http_exchange_respond(&exchange->base, KELP_HTTP_OK);
    kelp_http_exchange_post(&exchange->base, kelp_http_exchange_send);
}

/* Parses the body, which may be read only while the handler runs; then loads or unloads on a thread
 * of the loaders. */
static void parse_and_run(kelp_v2_exchange *exchange,
                          kelp_status *(*control)(kelp_v2_exchange *exchange)) {
    exchange->work.run = run_control;
    exchange->control = control;
    kelp_status *status = kelp_v2_parse_body(exchange, &exchange->document);
    if (status == NULL)
        status = kelp_workers_submit(kelp_v2_service_of(exchange)->loaders, &exchange->work);
    if (status != NULL)
        kelp_v2_fail(exchange, status);
}

void kelp_v2_repository_load(kelp_v2_exchange *exchange) {
    parse_and_run(exchange, load);
}

void kelp_v2_repository_unload(kelp_v2_exchange *exchange) {
    parse_and_run(exchange, unload);
}

void kelp_v2_server_metadata(kelp_v2_exchange *exchange) {
    const kelp_v2_service *service = kelp_v2_service_of(exchange);
    const kelp_v2_extensions extensions = {.shm = service->shm,
                                           .logging = service->logging != NULL,
                                           .trace = service->tracing != NULL,
                                           .generate = true};
    kelp_v2_respond_json(exchange, KELP_HTTP_OK);
    kelp_status *status =
        kelp_v2_put_metadata(service->core, &extensions, &exchange->arena, &exchange->base.text);
    if (status != NULL)
        kelp_v2_respond_failure(exchange, status);
    kelp_v2_send(exchange);
}

void kelp_v2_openapi(kelp_v2_exchange *exchange) {
    kelp_http_exchange *base = &exchange->base;
    const kelp_openapi *openapi = kelp_v2_service_of(exchange)->openapi;
    kelp_status *status = NULL;
    size_t part = 0;
    kelp_str text;
    kelp_v2_respond_json(exchange, KELP_HTTP_OK);
    while (status == NULL && kelp_openapi_next(openapi, base->request->services, &part, &text))
        status = kelp_http_exchange_add_piece(base, text.data, text.length);
    if (status != NULL)
        kelp_v2_respond_failure(exchange, status);
    kelp_v2_send(exchange);
}
