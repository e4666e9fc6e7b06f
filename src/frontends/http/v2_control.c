/* SPDX-License-Identifier: Apache-2.0 */
/* Everything but inference: health, metadata, configuration, statistics, the model repository,
 * metrics. */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/json.h"
#include "frontends/http/connection.h"

static void finish_status(kelp_http_call *call, kelp_status *take_status) {
    kelp_http_reply_status(call, take_status);
    kelp_http_call_finish(call);
}

/* ---- health ---- */

static void reply_health(kelp_http_call *call, TRITONSERVER_Error *take_error, const char *name,
                         bool good) {
    if (take_error) {
        finish_status(call, kelp_http_status_of(take_error));
        return;
    }
    kelp_buf_clear(&call->text);
    kelp_buf_printf(&call->text, "{\"%s\":%s}", name, good ? "true" : "false");
    kelp_http_reply_json(call, good ? 200 : 400);
    kelp_http_call_finish(call);
}

void kelp_v2_live(kelp_http_call *call) {
    bool live = false;
    TRITONSERVER_Error *error = TRITONSERVER_ServerIsLive(kelp_http_core(call->server), &live);
    reply_health(call, error, "live", live);
}

void kelp_v2_ready(kelp_http_call *call) {
    bool ready = false;
    TRITONSERVER_Error *error = TRITONSERVER_ServerIsReady(kelp_http_core(call->server), &ready);
    reply_health(call, error, "ready", ready);
}

void kelp_v2_model_ready(kelp_http_call *call) {
    bool ready = false;
    kelp_status *status = kelp_http_status_of(TRITONSERVER_ServerModelIsReady(
        kelp_http_core(call->server), call->model, call->version, &ready));
    if (status)
        kelp_http_reply_status(call, status);
    else if (ready)
        kelp_http_reply_empty(call, 200);
    else
        kelp_http_reply_error_text(call, 400, KELP_STR("Model version not ready"));
    kelp_http_call_finish(call);
}

/* ---- what the server says about itself and its models ---- */

void kelp_v2_server_metadata(kelp_http_call *call) {
    TRITONSERVER_Message *message = NULL;
    TRITONSERVER_Error *error = TRITONSERVER_ServerMetadata(kelp_http_core(call->server), &message);
    kelp_http_reply_message(call, error, message);
    kelp_http_call_finish(call);
}

void kelp_v2_model_metadata(kelp_http_call *call) {
    TRITONSERVER_Message *message = NULL;
    TRITONSERVER_Error *error = TRITONSERVER_ServerModelMetadata(
        kelp_http_core(call->server), call->model, call->version, &message);
    kelp_http_reply_message(call, error, message);
    kelp_http_call_finish(call);
}

void kelp_v2_model_config(kelp_http_call *call) {
    TRITONSERVER_Message *message = NULL;
    TRITONSERVER_Error *error = TRITONSERVER_ServerModelConfig(
        kelp_http_core(call->server), call->model, call->version, 1, &message);
    kelp_http_reply_message(call, error, message);
    kelp_http_call_finish(call);
}

void kelp_v2_model_statistics(kelp_http_call *call) {
    TRITONSERVER_Message *message = NULL;
    TRITONSERVER_Error *error = TRITONSERVER_ServerModelStatistics(
        kelp_http_core(call->server), call->model, call->version, &message);
    kelp_http_reply_message(call, error, message);
    kelp_http_call_finish(call);
}

void kelp_v2_metrics(kelp_http_call *call) {
    TRITONSERVER_Metrics *metrics = NULL;
    const char *text = NULL;
    size_t length = 0;
    kelp_status *status =
        kelp_http_status_of(TRITONSERVER_ServerMetrics(kelp_http_core(call->server), &metrics));
    if (!status) {
        status = kelp_http_status_of(
            TRITONSERVER_MetricsFormatted(metrics, TRITONSERVER_METRIC_PROMETHEUS, &text, &length));
        if (!status) {
            kelp_buf_clear(&call->text);
            kelp_buf_append(&call->text, text, length);
            kelp_http_reply_json(call, 200);
            call->content_type = "text/plain; charset=utf-8";
            status = kelp_buf_status(&call->text);
        }
        kelp_status_free(kelp_http_status_of(TRITONSERVER_MetricsDelete(metrics)));
    }
    if (status)
        kelp_http_reply_status(call, status);
    kelp_http_call_finish(call);
}

/* ---- the model repository ---- */

/* The body as an object; NULL in *out when it is empty. */
static kelp_status *parse_body(kelp_http_call *call, kelp_json **out) {
    kelp_str body;
    *out = NULL;
    KELP_TRY(kelp_http_call_body(call, &body));
    if (!kelp_str_trim(body).length)
        return NULL;
    KELP_TRY(kelp_json_parse(&call->arena, "request body", body.data, body.length, out));
    if ((*out)->type != KELP_JSON_OBJECT)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "request body: expected an object, found %s",
                          kelp_json_type_name((*out)->type));
    return NULL;
}

void kelp_v2_repository_index(kelp_http_call *call) {
    kelp_json *body;
    kelp_status *status = parse_body(call, &body);
    const kelp_json *ready = status ? NULL : kelp_json_get(body, "ready");
    if (ready && ready->type != KELP_JSON_BOOL)
        status = KELP_ERROR(KELP_INVALID_ARGUMENT, "'ready': expected true or false, found %s",
                            kelp_json_type_name(ready->type));
    if (status) {
        finish_status(call, status);
        return;
    }
    TRITONSERVER_Message *message = NULL;
    TRITONSERVER_Error *error = TRITONSERVER_ServerModelIndex(
        kelp_http_core(call->server),
        ready && ready->boolean ? (uint32_t)TRITONSERVER_INDEX_FLAG_READY : 0, &message);
    kelp_http_reply_message(call, error, message);
    kelp_http_call_finish(call);
}

static kelp_status *text_of(kelp_http_call *call, const char *name, kelp_str s, const char **out) {
    if (s.length && memchr(s.data, 0, s.length))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "parameter '%s': a NUL character is not allowed",
                          name);
    *out = kelp_arena_strndup(&call->arena, s.data ? s.data : "", s.length);
    return *out ? NULL : kelp_status_oom();
}

/* One member of "parameters" as the server takes it. The bytes of a file stay in the arena, which
 * outlives the load. */
static kelp_status *make_parameter(kelp_http_call *call, const kelp_json *member,
                                   TRITONSERVER_Parameter **out) {
    const char *name, *text;
    KELP_TRY(text_of(call, "name", member->key, &name));
    if (strncmp(name, "file:", 5) == 0) {
        if (member->type != KELP_JSON_STRING)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "parameter '%s': expected base64 text, found %s", name,
                              kelp_json_type_name(member->type));
        size_t length;
        char *bytes = kelp_arena_alloc(&call->arena, member->string.length, 16);
        if (!bytes)
            return kelp_status_oom();
        if (!kelp_base64_decode(member->string, bytes, &length))
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "parameter '%s' is not valid base64", name);
        *out = TRITONSERVER_ParameterBytesNew(name, bytes, length);
    } else if (member->type == KELP_JSON_STRING) {
        KELP_TRY(text_of(call, name, member->string, &text));
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
    return *out ? NULL : kelp_status_oom();
}

static kelp_status *load(kelp_http_call *call) {
    const kelp_json *members = kelp_json_get(call->document, "parameters");
    size_t count = members ? members->count : 0;
    TRITONSERVER_Server *core = kelp_http_core(call->server);
    if (members && members->type != KELP_JSON_OBJECT)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "'parameters': expected an object, found %s",
                          kelp_json_type_name(members->type));
    if (count == 0)
        return kelp_http_status_of(TRITONSERVER_ServerLoadModel(core, call->model));
    TRITONSERVER_Parameter **parameters =
        KELP_ARENA_ARRAY(&call->arena, count, TRITONSERVER_Parameter *);
    if (!parameters)
        return kelp_status_oom();
    kelp_status *status = NULL;
    size_t made = 0;
    for (const kelp_json *m = members->child; m && !status; m = m->next) {
        status = make_parameter(call, m, &parameters[made]);
        made += status ? 0 : 1;
    }
    if (!status)
        status = kelp_http_status_of(TRITONSERVER_ServerLoadModelWithParameters(
            core, call->model, (const TRITONSERVER_Parameter **)parameters, made));
    for (size_t i = 0; i < made; i++)
        TRITONSERVER_ParameterDelete(parameters[i]);
    return status;
}

static kelp_status *unload(kelp_http_call *call) {
    const kelp_json *dependents =
        kelp_json_get(kelp_json_get(call->document, "parameters"), "unload_dependents");
    if (dependents && dependents->type != KELP_JSON_BOOL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "'unload_dependents': expected true or false, found %s",
                          kelp_json_type_name(dependents->type));
    TRITONSERVER_Server *core = kelp_http_core(call->server);
    if (dependents && dependents->boolean)
        return kelp_http_status_of(TRITONSERVER_ServerUnloadModelAndDependents(core, call->model));
    return kelp_http_status_of(TRITONSERVER_ServerUnloadModel(core, call->model));
}

/* On a thread of its own: a load takes as long as it takes. */
static void load_blocking(kelp_http_call *call) {
    kelp_status *status = load(call);
    if (status)
        kelp_http_reply_status(call, status);
    else
        kelp_http_reply_empty(call, 200);
}

static void unload_blocking(kelp_http_call *call) {
    kelp_status *status = unload(call);
    if (status)
        kelp_http_reply_status(call, status);
    else
        kelp_http_reply_empty(call, 200);
}

/* The request is read here, since its head goes away with the connection. */
static void parse_and_block(kelp_http_call *call, void (*blocking)(kelp_http_call *call)) {
    kelp_status *status = parse_body(call, &call->document);
    if (status)
        finish_status(call, status);
    else
        kelp_http_call_block(call, blocking);
}

void kelp_v2_repository_load(kelp_http_call *call) {
    parse_and_block(call, load_blocking);
}

void kelp_v2_repository_unload(kelp_http_call *call) {
    parse_and_block(call, unload_blocking);
}
