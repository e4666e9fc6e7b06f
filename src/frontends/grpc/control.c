/* SPDX-License-Identifier: Apache-2.0 */
/* Methods besides inference: health, metadata, configuration, statistics, the model repository. */
#include "base/assert.h"
#include "base/wire/protobuf_write.h"
#include "frontends/grpc/codec/decode.h"
#include "frontends/grpc/exchange.h"
#include "frontends/grpc/codec/json.h"
#include "frontends/common/metadata.h"
#include "frontends/common/status.h"

#include <stddef.h>

enum { RESULT = 1 }; /* the field of ServerLive, ServerReady and ModelReady */
enum { MODEL_NAME = 1, MODEL_VERSION };
enum { INDEX_REPOSITORY = 1, INDEX_READY };
enum { LOAD_MODEL = 2, LOAD_PARAMETERS };

static TRITONSERVER_Server *core_of(const kelp_grpc_exchange *exchange) {
    return kelp_grpc_service_of(exchange)->core;
}

/* ---- health ---- */

/* Replies with true or false. */
static void reply_bool(kelp_grpc_exchange *exchange, kelp_status *take_status, bool value) {
    if (take_status != NULL) {
        kelp_grpc_finish(exchange, take_status);
        return;
    }
    kelp_buf *out = kelp_grpc_begin(exchange);
    if (value)
        kelp_protobuf_put_i64(out, RESULT, 1);
    kelp_grpc_reply_end(exchange);
}

kelp_status *kelp_grpc_is_ready(const kelp_grpc_exchange *exchange, bool *out) {
    const kelp_grpc_service *service = kelp_grpc_service_of(exchange);
    *out = false;
    if (atomic_load_explicit(&service->draining, memory_order_relaxed))
        return NULL;
    return kelp_v2_status(TRITONSERVER_ServerIsReady(service->core, out));
}

void kelp_grpc_server_live(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    (void)request;
    bool live = false;
    kelp_status *status = kelp_v2_status(TRITONSERVER_ServerIsLive(core_of(exchange), &live));
    reply_bool(exchange, status, live);
}

void kelp_grpc_server_ready(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    (void)request;
    bool ready;
    kelp_status *status = kelp_grpc_is_ready(exchange, &ready);
    reply_bool(exchange, status, ready);
}

/* ---- metadata, configuration, statistics ---- */

/* Reads name and version of a model. */
static kelp_status *read_model(kelp_grpc_request *request, const char **out_name,
                               int64_t *out_version) {
    kelp_protobuf wire = kelp_protobuf_of(kelp_grpc_message_of(request));
    kelp_protobuf_field field;
    const char *version = "";
    bool more;
    *out_name = "";
    KELP_TRY(kelp_grpc_next(&wire, "request", &field, &more));
    while (more) {
        if (field.number == MODEL_NAME)
            KELP_TRY(kelp_grpc_text(&request->arena, &field, "name", out_name));
        else if (field.number == MODEL_VERSION)
            KELP_TRY(kelp_grpc_text(&request->arena, &field, "version", &version));
        KELP_TRY(kelp_grpc_next(&wire, "request", &field, &more));
    }
    KELP_TRY(kelp_grpc_parse_version(version, out_version));
    kelp_request_entry_set_model(&request->exchange->base.entry, *out_name, *out_version);
    return NULL;
}

void kelp_grpc_model_ready(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    const char *name;
    int64_t version;
    bool ready = false;
    kelp_status *status = read_model(request, &name, &version);
    if (status == NULL)
        status = kelp_v2_status(
            TRITONSERVER_ServerModelIsReady(core_of(exchange), name, version, &ready));
    if (kelp_status_code(status) == KELP_NOT_FOUND) { /* an unknown model is not ready */
        kelp_status_free(status);
        status = NULL;
        ready = false;
    }
    if (atomic_load_explicit(&kelp_grpc_service_of(exchange)->draining, memory_order_relaxed))
        ready = false;
    reply_bool(exchange, status, ready);
}

/* Appends JSON text as the message `type`; if `number` is not 0, as this field of the reply. An
 * array becomes the field `number` for each of its items. */
static kelp_status *put_text(kelp_grpc_exchange *exchange, kelp_arena *arena, kelp_str text,
                             const char *type, uint32_t number) {
    kelp_json *json;
    KELP_TRY(kelp_json_parse(arena, type, text.data, text.length, &json));
    kelp_buf *out = kelp_grpc_begin(exchange);
    const kelp_json *item = json->type == KELP_JSON_ARRAY ? json->child : json;
    for (; item != NULL; item = json->type == KELP_JSON_ARRAY ? item->next : NULL) {
        size_t start = out->length;
        KELP_TRY(kelp_grpc_put_json(out, type, item));
        if (number != 0)
            kelp_protobuf_wrap(out, number, start);
    }
    return NULL;
}

/* Replies with a message of the server. */
static void reply_message(kelp_grpc_exchange *exchange, kelp_grpc_request *request,
                          TRITONSERVER_Error *take_error, TRITONSERVER_Message *take_message,
                          const char *type, uint32_t number) {
    kelp_status *status = kelp_v2_status(take_error);
    if (status == NULL) {
        const char *text = NULL;
        size_t length = 0;
        status = kelp_v2_status(TRITONSERVER_MessageSerializeToJson(take_message, &text, &length));
        if (status == NULL)
            status = put_text(exchange, &request->arena, (kelp_str){text, length}, type, number);
        kelp_status_free(kelp_v2_status(TRITONSERVER_MessageDelete(take_message)));
    }
    if (status != NULL)
        kelp_grpc_finish(exchange, status);
    else
        kelp_grpc_reply_end(exchange);
}

void kelp_grpc_server_metadata(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    const kelp_grpc_service *service = kelp_grpc_service_of(exchange);
    const kelp_v2_extensions extensions = {.shm = service->shm,
                                           .logging = service->logging != NULL,
                                           .trace = service->tracing != NULL};
    kelp_buf text;
    kelp_buf_init(&text, service->allocator);
    kelp_status *status = kelp_v2_put_metadata(service->core, &extensions, &request->arena, &text);
    if (status == NULL)
        status = put_text(exchange, &request->arena, (kelp_str){text.data, text.length},
                          "ServerMetadataResponse", 0);
    kelp_buf_deinit(&text);
    if (status != NULL)
        kelp_grpc_finish(exchange, status);
    else
        kelp_grpc_reply_end(exchange);
}

/* A function of the server that describes a version of a model. */
typedef TRITONSERVER_Error *(*describe_fn)(TRITONSERVER_Server *core, const char *name,
                                           int64_t version, TRITONSERVER_Message **out);

/* Replies with the description of the model that the request names. */
static void describe_model(kelp_grpc_exchange *exchange, kelp_grpc_request *request,
                           describe_fn describe, const char *type, uint32_t field) {
    const char *name;
    int64_t version;
    TRITONSERVER_Message *message = NULL;
    kelp_status *status = read_model(request, &name, &version);
    if (status != NULL) {
        kelp_grpc_finish(exchange, status);
        return;
    }
    TRITONSERVER_Error *error = describe(core_of(exchange), name, version, &message);
    reply_message(exchange, request, error, message, type, field);
}

void kelp_grpc_model_metadata(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    describe_model(exchange, request, TRITONSERVER_ServerModelMetadata, "ModelMetadataResponse", 0);
}

static TRITONSERVER_Error *describe_config(TRITONSERVER_Server *core, const char *name,
                                           int64_t version, TRITONSERVER_Message **out) {
    return TRITONSERVER_ServerModelConfig(core, name, version, 1, out);
}

void kelp_grpc_model_config(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    enum { CONFIG = 1 };
    describe_model(exchange, request, describe_config, "ModelConfig", CONFIG);
}

void kelp_grpc_model_statistics(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    describe_model(exchange, request, TRITONSERVER_ServerModelStatistics, "ModelStatisticsResponse",
                   0);
}

/* ---- the model repository ---- */

static kelp_status *check_repository(kelp_arena *arena, const kelp_protobuf_field *field) {
    const char *name;
    KELP_TRY(kelp_grpc_text(arena, field, "repository_name", &name));
    return *name == '\0'
               ? NULL
               : KELP_ERROR(KELP_UNIMPLEMENTED, "'repository_name' specification is not supported");
}

void kelp_grpc_repository_index(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    enum { MODELS = 1 };
    kelp_protobuf wire = kelp_protobuf_of(kelp_grpc_message_of(request));
    kelp_protobuf_field field;
    TRITONSERVER_Message *message = NULL;
    bool more, ready = false;
    kelp_status *status = kelp_grpc_next(&wire, "RepositoryIndexRequest", &field, &more);
    while (status == NULL && more) {
        if (field.number == INDEX_READY)
            ready = field.value != 0;
        else if (field.number == INDEX_REPOSITORY)
            status = check_repository(&request->arena, &field);
        if (status == NULL)
            status = kelp_grpc_next(&wire, "RepositoryIndexRequest", &field, &more);
    }
    if (status != NULL) {
        kelp_grpc_finish(exchange, status);
        return;
    }
    TRITONSERVER_Error *error = TRITONSERVER_ServerModelIndex(
        core_of(exchange), ready ? (uint32_t)TRITONSERVER_INDEX_FLAG_READY : 0, &message);
    reply_message(exchange, request, error, message, "RepositoryIndexResponse.ModelIndex", MODELS);
}

/* A decoded load or unload. */
typedef struct load_request {
    const char *model;
    kelp_grpc_slices parameters;
    bool unloads_dependents;
} load_request;

static kelp_status *read_load_field(kelp_arena *arena, const kelp_protobuf_field *field,
                                    load_request *out) {
    switch (field->number) {
    case INDEX_REPOSITORY:
        return check_repository(arena, field);
    case LOAD_MODEL:
        return kelp_grpc_text(arena, field, "model_name", &out->model);
    case LOAD_PARAMETERS:
        return kelp_grpc_add_slice(arena, &out->parameters, field, "parameters");
    default:
        return NULL;
    }
}

static kelp_status *read_load(kelp_grpc_request *request, load_request *out) {
    kelp_protobuf wire = kelp_protobuf_of(kelp_grpc_message_of(request));
    kelp_protobuf_field field;
    bool more;
    *out = (load_request){.model = ""};
    KELP_TRY(kelp_grpc_next(&wire, "RepositoryModelLoadRequest", &field, &more));
    while (more) {
        KELP_TRY(read_load_field(&request->arena, &field, out));
        KELP_TRY(kelp_grpc_next(&wire, "RepositoryModelLoadRequest", &field, &more));
    }
    return NULL;
}

/* Creates a load parameter. The bytes of a file are in the message, which outlives the load. */
static kelp_status *make_parameter(kelp_arena *arena, kelp_str entry,
                                   TRITONSERVER_Parameter **out) {
    kelp_grpc_parameter p;
    kelp_protobuf_field text = {.type = KELP_PROTOBUF_BYTES};
    const char *value;
    bool boolean;
    int64_t integer;
    KELP_TRY(kelp_grpc_read_parameter(arena, entry, true, &p));
    if (p.kind != KELP_GRPC_BYTES_VALUE && strncmp(p.name, "file:", 5) == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "parameter '%s': expected bytes_param", p.name);
    switch (p.kind) {
    case KELP_GRPC_BYTES_VALUE:
        *out = TRITONSERVER_ParameterBytesNew(p.name, p.bytes.data, p.bytes.length);
        break;
    case KELP_GRPC_STRING_VALUE:
        text.bytes = p.bytes;
        KELP_TRY(kelp_grpc_text(arena, &text, p.name, &value));
        *out = TRITONSERVER_ParameterNew(p.name, TRITONSERVER_PARAMETER_STRING, value);
        break;
    case KELP_GRPC_BOOL_VALUE:
        boolean = p.u64 != 0;
        *out = TRITONSERVER_ParameterNew(p.name, TRITONSERVER_PARAMETER_BOOL, &boolean);
        break;
    case KELP_GRPC_INT_VALUE:
        integer = (int64_t)p.u64;
        *out = TRITONSERVER_ParameterNew(p.name, TRITONSERVER_PARAMETER_INT, &integer);
        break;
    default:
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "parameter '%s' has no value", p.name);
    }
    return *out != NULL ? NULL : kelp_status_oom();
}

static kelp_status *load(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    load_request decoded;
    KELP_TRY(read_load(request, &decoded));
    size_t count = decoded.parameters.count, created = 0;
    if (count == 0)
        return kelp_v2_status(TRITONSERVER_ServerLoadModel(core_of(exchange), decoded.model));
    TRITONSERVER_Parameter **parameters =
        KELP_ARENA_ARRAY(&request->arena, count, TRITONSERVER_Parameter *);
    if (parameters == NULL)
        return kelp_status_oom();
    kelp_status *status = NULL;
    while (created < count && status == NULL) {
        status = make_parameter(&request->arena, decoded.parameters.items[created],
                                &parameters[created]);
        created += status == NULL ? 1 : 0;
    }
    if (status == NULL)
        status = kelp_v2_status(TRITONSERVER_ServerLoadModelWithParameters(
            core_of(exchange), decoded.model, (const TRITONSERVER_Parameter **)parameters,
            created));
    for (size_t i = 0; i < created; i++)
        TRITONSERVER_ParameterDelete(parameters[i]);
    return status;
}

static kelp_status *unload(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    load_request decoded;
    bool dependents = false;
    KELP_TRY(read_load(request, &decoded));
    for (size_t i = 0; i < decoded.parameters.count; i++) {
        kelp_grpc_parameter p;
        KELP_TRY(kelp_grpc_read_parameter(&request->arena, decoded.parameters.items[i], true, &p));
        if (strcmp(p.name, "unload_dependents") != 0)
            continue;
        if (p.kind != KELP_GRPC_BOOL_VALUE)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "parameter 'unload_dependents': expected bool_param");
        dependents = p.u64 != 0;
    }
    if (dependents)
        return kelp_v2_status(
            TRITONSERVER_ServerUnloadModelAndDependents(core_of(exchange), decoded.model));
    return kelp_v2_status(TRITONSERVER_ServerUnloadModel(core_of(exchange), decoded.model));
}

/* ---- blocking work, on a thread of the loaders ---- */

/* Replies after the blocking work, on the event-loop thread. */
static void finish_blocking(kelp_http_exchange *base) {
    kelp_grpc_exchange *exchange = (kelp_grpc_exchange *)base;
    kelp_status *status = exchange->work_status;
    exchange->work_status = NULL;
    exchange->blocking = false;
    if (exchange->finishing) { /* the deadline passed */
        kelp_status_free(status);
        kelp_grpc_send_status(exchange);
    } else if (status != NULL) {
        kelp_grpc_finish(exchange, status);
    } else {
        kelp_grpc_begin(exchange);
        kelp_grpc_reply_end(exchange);
    }
}

static void run_control(kelp_work *work) {
    kelp_grpc_exchange *exchange =
        (kelp_grpc_exchange *)((char *)work - offsetof(kelp_grpc_exchange, work));
    exchange->work_status = exchange->control(exchange, exchange->handled);
    kelp_http_exchange_post(&exchange->base, finish_blocking);
}

static void run_blocking(kelp_grpc_exchange *exchange,
                         kelp_status *(*control)(kelp_grpc_exchange *exchange,
                                                 kelp_grpc_request *request)) {
    exchange->blocking = true;
    exchange->work.run = run_control;
    exchange->control = control;
    kelp_status *status =
        kelp_workers_submit(kelp_grpc_service_of(exchange)->loaders, &exchange->work);
    if (status != NULL) {
        exchange->blocking = false;
        kelp_grpc_finish(exchange, status);
    }
}

void kelp_grpc_repository_load(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    KELP_ASSERT(exchange->handled == request);
    run_blocking(exchange, load);
}

void kelp_grpc_repository_unload(kelp_grpc_exchange *exchange, kelp_grpc_request *request) {
    KELP_ASSERT(exchange->handled == request);
    run_blocking(exchange, unload);
}
