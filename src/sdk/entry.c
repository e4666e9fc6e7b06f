/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points of a backend, which KELP_TRITON_BACKEND calls. The SDK's objects are the states
 * of the server's objects (…SetState), and own the states of the backend.
 */
#include "sdk/sdk.h"

#include <stdlib.h>

/* ---- the library ---- */

static kelp_status *check_definition(const kelp_backend_definition *definition,
                                     bool exports_batching) {
    uint32_t major = 0, minor = 0;
    KELP_TRY(sdk_status(TRITONBACKEND_ApiVersion(&major, &minor)));
    if (major != TRITONBACKEND_API_VERSION_MAJOR || minor < TRITONBACKEND_API_VERSION_MINOR)
        return KELP_ERROR(
            KELP_UNIMPLEMENTED,
            "backend '%s' requires version %d.%d of the backend API: the server has %u.%u",
            definition->name, TRITONBACKEND_API_VERSION_MAJOR, TRITONBACKEND_API_VERSION_MINOR,
            major, minor);
    if (definition->struct_size != sizeof *definition)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "backend '%s': struct_size of its definition is wrong: expected %zu, found %zu",
            definition->name, sizeof *definition, definition->struct_size);
    if ((definition->execute == NULL) == (definition->execute_one == NULL))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "backend '%s': exactly one of execute and execute_one must be defined",
                          definition->name);
    if ((definition->batch_include != NULL) != exports_batching)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "backend '%s': KELP_TRITON_BACKEND_WITH_BATCHING and a definition with "
                          "batch_include must be used together",
                          definition->name);
    return NULL;
}

static void host_free(kelp_backend_host *host) {
    if (host->state != NULL && host->definition->destroy != NULL)
        host->definition->destroy(host->state);
    kelp_sdk_watch_deinit(&host->watch);
    kelp_arena_deinit(&host->arena);
    free(host);
}

static kelp_status *read_settings(kelp_backend_host *host) {
    TRITONBACKEND_ArtifactType type;
    TRITONSERVER_Message *message = NULL;
    const kelp_json *settings = NULL;
    KELP_TRY(sdk_status(TRITONBACKEND_BackendArtifacts(host->raw, &type, &host->directory)));
    KELP_TRY(sdk_status(TRITONBACKEND_BackendConfig(host->raw, &message)));
    KELP_TRY(
        kelp_sdk_message_parse(message, false, &host->arena, "backend configuration", &settings));
    host->settings = kelp_json_get(settings, "cmdline");
    return NULL;
}

static kelp_status *host_open(kelp_backend_host *host) {
    const kelp_backend_definition *definition = host->definition;
    KELP_TRY(read_settings(host));
    if (definition->flags & KELP_BACKEND_DEVICE_BLOCKING)
        KELP_TRY(sdk_status(TRITONBACKEND_BackendSetExecutionPolicy(
            host->raw, TRITONBACKEND_EXECUTION_DEVICE_BLOCKING)));
    if (definition->create != NULL)
        KELP_TRY(definition->create(host, &host->state));
    return kelp_backend_status(TRITONBACKEND_BackendSetState(host->raw, host));
}

TRITONSERVER_Error *kelp_backend_entry_initialize(const kelp_backend_definition *definition,
                                                  bool exports_batching,
                                                  TRITONBACKEND_Backend *backend) {
    kelp_status *status = check_definition(definition, exports_batching);
    if (status != NULL)
        return kelp_backend_error(status);
    kelp_backend_host *host = calloc(1, sizeof *host);
    if (host == NULL)
        return kelp_backend_error(kelp_status_oom());
    host->definition = definition;
    host->raw = backend;
    kelp_arena_init(&host->arena, kelp_allocator_system(), 0);
    kelp_sdk_watch_init(&host->watch);
    status = host_open(host);
    if (status != NULL)
        host_free(host);
    return kelp_backend_error(status);
}

TRITONSERVER_Error *kelp_backend_entry_finalize(TRITONBACKEND_Backend *backend) {
    void *host = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_BackendState(backend, &host);
    if (error == NULL && host != NULL) {
        TRITONSERVER_ErrorDelete(TRITONBACKEND_BackendSetState(backend, NULL));
        host_free(host);
    }
    return error;
}

TRITONSERVER_Error *kelp_backend_entry_attributes(TRITONBACKEND_Backend *backend,
                                                  TRITONBACKEND_BackendAttribute *attributes) {
    void *state = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_BackendState(backend, &state);
    kelp_backend_host *host = state;
    if (error != NULL || host == NULL || !(host->definition->flags & KELP_BACKEND_PARALLEL_LOADING))
        return error;
    return TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attributes, true);
}

/* ---- models ---- */

static void model_free(kelp_backend_model *model) {
    if (model->state != NULL && model->host->definition->model_destroy != NULL)
        model->host->definition->model_destroy(model->state);
    kelp_arena_deinit(&model->arena);
    free(model);
}

static kelp_status *model_open(kelp_backend_model *model) {
    TRITONBACKEND_Backend *backend = NULL;
    TRITONBACKEND_ArtifactType type;
    void *host = NULL;
    KELP_TRY(sdk_status(TRITONBACKEND_ModelBackend(model->raw, &backend)));
    KELP_TRY(sdk_status(TRITONBACKEND_BackendState(backend, &host)));
    if (host == NULL)
        return KELP_ERROR(KELP_INTERNAL, "the backend was not initialized");
    model->host = host;
    KELP_TRY(sdk_status(TRITONBACKEND_ModelName(model->raw, &model->name)));
    KELP_TRY(sdk_status(TRITONBACKEND_ModelVersion(model->raw, &model->version)));
    KELP_TRY(sdk_status(TRITONBACKEND_ModelRepository(model->raw, &type, &model->directory)));
    KELP_TRY(sdk_status(TRITONBACKEND_ModelServer(model->raw, &model->server)));
    KELP_TRY(kelp_sdk_model_read_config(model));
    if (model->host->definition->model_create != NULL)
        KELP_TRY(model->host->definition->model_create(model, &model->state));
    return kelp_backend_status(TRITONBACKEND_ModelSetState(model->raw, model));
}

TRITONSERVER_Error *kelp_backend_entry_model_initialize(TRITONBACKEND_Model *raw) {
    kelp_backend_model *model = calloc(1, sizeof *model);
    if (model == NULL)
        return kelp_backend_error(kelp_status_oom());
    model->raw = raw;
    kelp_arena_init(&model->arena, kelp_allocator_system(), 0);
    kelp_status *status = model_open(model);
    if (status != NULL)
        model_free(model);
    return kelp_backend_error(status);
}

TRITONSERVER_Error *kelp_backend_entry_model_finalize(TRITONBACKEND_Model *raw) {
    void *model = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelState(raw, &model);
    if (error == NULL && model != NULL) {
        TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelSetState(raw, NULL));
        model_free(model);
    }
    return error;
}

/* ---- instances ---- */

static void instance_free(kelp_backend_instance *instance) {
    if (instance->state != NULL && instance->model->host->definition->instance_destroy != NULL)
        instance->model->host->definition->instance_destroy(instance->state);
    while (instance->free != NULL) {
        kelp_backend_request *request = instance->free;
        instance->free = request->next;
        kelp_sdk_request_free(request);
    }
    free(instance->batch);
    pthread_mutex_destroy(&instance->lock);
    free(instance);
}

static kelp_status *instance_open(kelp_backend_instance *instance) {
    TRITONBACKEND_Model *raw_model = NULL;
    void *model = NULL;
    KELP_TRY(sdk_status(TRITONBACKEND_ModelInstanceModel(instance->raw, &raw_model)));
    KELP_TRY(sdk_status(TRITONBACKEND_ModelState(raw_model, &model)));
    if (model == NULL)
        return KELP_ERROR(KELP_INTERNAL, "the model was not initialized");
    instance->model = model;
    KELP_TRY(sdk_status(TRITONBACKEND_ModelInstanceName(instance->raw, &instance->name)));
    KELP_TRY(sdk_status(TRITONBACKEND_ModelInstanceKind(instance->raw, &instance->kind)));
    KELP_TRY(sdk_status(TRITONBACKEND_ModelInstanceDeviceId(instance->raw, &instance->device)));
    const kelp_backend_definition *definition = instance->model->host->definition;
    if (definition->instance_create != NULL)
        KELP_TRY(definition->instance_create(instance, &instance->state));
    return kelp_backend_status(TRITONBACKEND_ModelInstanceSetState(instance->raw, instance));
}

TRITONSERVER_Error *kelp_backend_entry_instance_initialize(TRITONBACKEND_ModelInstance *raw) {
    kelp_backend_instance *instance = calloc(1, sizeof *instance);
    if (instance == NULL)
        return kelp_backend_error(kelp_status_oom());
    instance->raw = raw;
    pthread_mutex_init(&instance->lock, NULL);
    kelp_status *status = instance_open(instance);
    if (status != NULL)
        instance_free(instance);
    return kelp_backend_error(status);
}

static TRITONSERVER_Error *instance_of(TRITONBACKEND_ModelInstance *raw,
                                       kelp_backend_instance **out) {
    void *state = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceState(raw, &state);
    if (error == NULL && state == NULL)
        error =
            TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "the instance was not initialized");
    *out = state;
    return error;
}

TRITONSERVER_Error *kelp_backend_entry_instance_finalize(TRITONBACKEND_ModelInstance *raw) {
    void *instance = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceState(raw, &instance);
    if (error == NULL && instance != NULL) {
        TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceSetState(raw, NULL));
        instance_free(instance);
    }
    return error;
}

TRITONSERVER_Error *kelp_backend_entry_instance_ready(TRITONBACKEND_ModelInstance *raw) {
    kelp_backend_instance *instance;
    TRITONSERVER_Error *error = instance_of(raw, &instance);
    if (error != NULL)
        return error;
    const kelp_backend_definition *definition = instance->model->host->definition;
    return definition->ready != NULL ? kelp_backend_error(definition->ready(instance)) : NULL;
}

/* ---- execution ---- */

bool kelp_backend_entry_may_block(const kelp_backend_definition *definition,
                                  TRITONBACKEND_Model *raw, TRITONBACKEND_Request *raw_request) {
    void *model = NULL;
    if (!(definition->flags & KELP_BACKEND_DOES_NOT_BLOCK))
        return true;
    if (definition->may_block == NULL || raw_request == NULL)
        return false;
    if (!sdk_ok(TRITONBACKEND_ModelState(raw, &model)) || model == NULL)
        return true;
    kelp_backend_request request = {.raw = raw_request};
    request.batch = kelp_sdk_request_batch(model, raw_request);
    kelp_arena_init(&request.arena, kelp_allocator_system(), 0);
    bool may_block = definition->may_block(model, &request);
    kelp_arena_deinit(&request.arena);
    return may_block;
}

/* Opens each request, or none on failure. */
static kelp_status *open_batch(kelp_backend_instance *instance, TRITONBACKEND_Request **raws,
                               size_t count, uint64_t start_ns) {
    if (count > instance->batch_capacity) {
        kelp_backend_request **grown =
            realloc(instance->batch, count * sizeof(kelp_backend_request *));
        if (grown == NULL)
            return kelp_status_oom();
        instance->batch = grown;
        instance->batch_capacity = count;
    }
    for (size_t i = 0; i < count; i++) {
        instance->batch[i] = kelp_sdk_request_open(instance, raws[i], start_ns);
        if (instance->batch[i] != NULL)
            continue;
        while (i > 0)
            kelp_sdk_request_free(instance->batch[--i]);
        return kelp_status_oom();
    }
    return NULL;
}

static void log_unreported(const kelp_backend_instance *instance, const kelp_status *status) {
    kelp_backend_log_status(kelp_status_file(status), kelp_status_line(status),
                            kelp_backend_model_name(instance->model), kelp_status_clone(status));
}

/* Reports an execution, before the SDK sends its responses (see kelp_sdk_request_report). */
static void report_batch(kelp_backend_instance *instance, uint64_t batch, uint64_t start_ns) {
    uint64_t end_ns = instance->report_ns = kelp_backend_now_ns();
    uint64_t begin_ns = instance->begin_ns ? instance->begin_ns : start_ns;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceReportBatchStatistics(
        instance->raw, batch, start_ns, begin_ns, instance->end_ns ? instance->end_ns : end_ns,
        end_ns));
}

/* Executes all requests in one execution. */
static void execute_batch(kelp_backend_instance *instance, size_t count, uint64_t start_ns) {
    const kelp_backend_definition *definition = instance->model->host->definition;
    KELP_ASSERT(definition->execute != NULL && count <= instance->batch_capacity);
    uint64_t batch = 0;
    bool reported = false;
    for (size_t i = 0; i < count; i++)
        batch += (uint64_t)instance->batch[i]->batch;
    instance->begin_ns = instance->end_ns = instance->report_ns = 0;
    kelp_status *status = definition->execute(instance, instance->batch, count);
    report_batch(instance, batch, start_ns);
    for (size_t i = 0; i < count; i++)
        reported |= kelp_sdk_request_complete(instance->batch[i], status);
    if (status != NULL && !reported)
        log_unreported(instance, status);
    kelp_status_free(status);
}

/* Executes each request by itself. */
static void execute_each(kelp_backend_instance *instance, size_t count, uint64_t start_ns) {
    const kelp_backend_definition *definition = instance->model->host->definition;
    KELP_ASSERT(definition->execute_one != NULL && count <= instance->batch_capacity);
    for (size_t i = 0; i < count; i++) {
        kelp_backend_request *request = instance->batch[i];
        uint64_t batch = (uint64_t)request->batch;
        if (i > 0)
            start_ns = kelp_backend_now_ns();
        instance->begin_ns = instance->end_ns = instance->report_ns = 0;
        request->start_ns = request->begin_ns = start_ns;
        kelp_status *status = definition->execute_one(instance, request);
        report_batch(instance, batch, start_ns);
        if (!kelp_sdk_request_complete(request, status) && status != NULL)
            log_unreported(instance, status);
        kelp_status_free(status);
    }
}

TRITONSERVER_Error *kelp_backend_entry_execute(TRITONBACKEND_ModelInstance *raw,
                                               TRITONBACKEND_Request **requests,
                                               uint32_t request_count) {
    kelp_backend_instance *instance;
    uint64_t start_ns = kelp_backend_now_ns();
    TRITONSERVER_Error *error = instance_of(raw, &instance);
    if (error != NULL)
        return error; /* no request was opened: the server fails all of them */
    kelp_status *status = open_batch(instance, requests, request_count, start_ns);
    if (status != NULL)
        return kelp_backend_error(status);
    if (instance->model->host->definition->execute_one != NULL)
        execute_each(instance, request_count, start_ns);
    else
        execute_batch(instance, request_count, start_ns);
    return NULL;
}
