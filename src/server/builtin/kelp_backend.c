/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in `kelp` backend: models of any compute provider behind Triton's backend interface.
 * The one place where compute and server meet.
 *
 * A model is loaded once; each instance is a fork of it that shares the weights. Requests are
 * executed one after another, outputs are written straight into the response's buffers when their
 * shapes are known before running.
 *
 * Model parameters (config.pbtxt, `parameters`): "provider" (cpu, onnxruntime, null; default cpu),
 * "kernel_library" and "kernel" (a kernel is the model; further parameters are its scalars),
 * "providers" (of parts of the model: "onnxruntime,cpu", "remote:PATH,cpu"; default the backend's
 * setting of that name), "intra_op_threads" (0: all usable CPUs), "precision" (f32 or bf16; default
 * the backend's setting of that name, else f32).
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "server/builtin/builtin.h"
#include "server/builtin/kelp_config.h"

#include <kelp/compute.h>
#include <kelp/remote.h>

#include <stdio.h>
#include <string.h>

#define BACKEND_TRY(expr)                    \
    do {                                     \
        TRITONSERVER_Error *error_ = (expr); \
        if (__builtin_expect(!!error_, 0))   \
            return error_;                   \
    } while (0)

typedef struct model_state {
    kelp_allocator allocator;
    kelp_runtime *runtime;
    kelp_compute_model *model;
    const kelp_compute_metadata *metadata;
    bool batches; /* max_batch_size > 0: the first extent counts requests */
} model_state;

/* Room for one input or output, grown and kept. */
typedef struct scratch {
    void *data;
    size_t size_bytes;
} scratch;

typedef struct instance_state {
    model_state *model;
    TRITONBACKEND_ModelInstance *handle;
    kelp_compute_model *compute;
    kelp_tensor *inputs, *outputs;
    scratch *gathered;              /* per input */
    scratch *packed;                /* per output: strings on their way out */
    bool *wanted;                   /* per output */
    TRITONBACKEND_Request *request; /* that runs */
} instance_state;

/* A kelp_status is what TRITONSERVER_Error points to. Deeper causes become part of the message,
 * because that is all that a client sees. */
static TRITONSERVER_Error *to_error(kelp_status *take_status) {
    if (take_status == NULL || kelp_status_cause(take_status) == NULL)
        return (TRITONSERVER_Error *)take_status;
    char text[4096];
    kelp_status_format(take_status, text, sizeof text);
    kelp_status *flat =
        kelp_status_new(kelp_status_code(take_status), kelp_status_file(take_status),
                        kelp_status_line(take_status), "%s", text);
    kelp_status_free(take_status);
    return (TRITONSERVER_Error *)flat;
}

static kelp_status *grow(kelp_allocator allocator, scratch *room, size_t needed) {
    if (needed <= room->size_bytes)
        return NULL;
    kelp_free(allocator, room->data, room->size_bytes);
    *room = (scratch){NULL, 0};
    KELP_TRY(kelp_alloc(allocator, needed, &room->data));
    room->size_bytes = needed;
    return NULL;
}

/* ---- model ---- */
static void forward_log(void *userp, int level, const char *file, int line, const char *text,
                        size_t length) {
    (void)userp;
    static const TRITONSERVER_LogLevel levels[] = {TRITONSERVER_LOG_ERROR, TRITONSERVER_LOG_WARN,
                                                   TRITONSERVER_LOG_INFO, TRITONSERVER_LOG_VERBOSE};
    char message[2048];
    snprintf(message, sizeof message, "%.*s", (int)length, text);
    TRITONSERVER_ErrorDelete(
        TRITONSERVER_LogMessage(levels[level < 0 || level > 3 ? 3 : level], file, line, message));
}

static kelp_status *create_runtime(int threads, kelp_runtime **out) {
    kelp_runtime_options options = {
        .struct_size = sizeof options, .threads = threads, .log = forward_log, .log_level = 2};
    return kelp_runtime_create(&options, out);
}

/* The setting "plugin": libraries of operators and providers, ':' between them. */
static kelp_status *load_plugins(TRITONBACKEND_Backend *backend, kelp_runtime *runtime) {
    kelp_arena arena;
    const char *paths = NULL;
    char path[4096];
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_status *status = kelp_builtin_setting(backend, &arena, "plugin", &paths);
    while (status == NULL && paths != NULL && *paths != '\0') {
        size_t length = strcspn(paths, ":");
        if (length >= sizeof path) {
            status = KELP_ERROR(KELP_INVALID_ARGUMENT, "the path of a plugin is longer than %zu",
                                sizeof path - 1);
        } else if (length > 0) {
            memcpy(path, paths, length);
            path[length] = '\0';
            status = kelp_runtime_load_plugin(runtime, path);
        }
        paths += length + (paths[length] == ':');
    }
    kelp_arena_deinit(&arena);
    return status;
}

/* One runtime, and so one pool of threads, for all models that do not ask for their own. */
static TRITONSERVER_Error *backend_init(TRITONBACKEND_Backend *backend) {
    kelp_runtime *runtime = NULL;
    BACKEND_TRY(to_error(create_runtime(0, &runtime)));
    TRITONSERVER_Error *error = to_error(load_plugins(backend, runtime));
    if (error == NULL)
        error = TRITONBACKEND_BackendSetState(backend, runtime);
    if (error != NULL)
        kelp_runtime_release(runtime);
    return error;
}

static TRITONSERVER_Error *backend_fini(TRITONBACKEND_Backend *backend) {
    void *runtime = NULL;
    BACKEND_TRY(TRITONBACKEND_BackendState(backend, &runtime));
    kelp_runtime_release(runtime);
    return NULL;
}

static void model_destroy(model_state *state) {
    kelp_compute_destroy(state->model);
    kelp_runtime_release(state->runtime);
    kelp_free(state->allocator, state, sizeof *state);
}

/* The backend's, or one of the model's own: with threads of its own, or workers that it names,
 * since providers are registered before engines are made. */
static kelp_status *take_runtime(TRITONBACKEND_Model *model, const kelp_builtin_config *config,
                                 kelp_runtime **out) {
    TRITONBACKEND_Backend *backend = NULL;
    void *shared = NULL;
    KELP_TRY((kelp_status *)TRITONBACKEND_ModelBackend(model, &backend));
    bool remote = config->providers != NULL && strstr(config->providers, "remote:") != NULL;
    if (config->threads == 0 && !remote) {
        KELP_TRY((kelp_status *)TRITONBACKEND_BackendState(backend, &shared));
        *out = kelp_runtime_retain(shared);
        return NULL;
    }
    KELP_TRY(create_runtime(config->threads, out));
    KELP_TRY(load_plugins(backend, *out));
    return kelp_remote_register_named(*out, config->providers);
}

static TRITONSERVER_Error *load(TRITONBACKEND_Model *model, const kelp_builtin_config *config,
                                model_state *state) {
    const char *name = NULL, *path = NULL;
    uint64_t version = 0;
    TRITONBACKEND_ArtifactType type;
    BACKEND_TRY(TRITONBACKEND_ModelName(model, &name));
    BACKEND_TRY(TRITONBACKEND_ModelVersion(model, &version));
    BACKEND_TRY(TRITONBACKEND_ModelRepository(model, &type, &path));
    char file[4096];
    int length = snprintf(file, sizeof file, "%s/%llu/%s", path, (unsigned long long)version,
                          config->file_name);
    if (length < 0 || (size_t)length >= sizeof file)
        return to_error(KELP_ERROR(KELP_INVALID_ARGUMENT, "model '%s': its path is longer than %zu",
                                   name, sizeof file));
    kelp_status *status = take_runtime(model, config, &state->runtime);
    kelp_artifact artifact = {.path = file,
                              .label = name,
                              .providers = config->providers,
                              .precision = config->precision};
    if (config->kernel != NULL)
        artifact = (kelp_artifact){
            .data = config->kernel, .size_bytes = strlen(config->kernel), .label = name};
    if (status == NULL)
        status = kelp_compute_load(state->runtime, config->provider, &artifact, &state->model);
    if (status == NULL)
        state->metadata = kelp_compute_metadata_of(state->model);
    return to_error(status);
}

static TRITONSERVER_Error *model_init(TRITONBACKEND_Model *model) {
    kelp_allocator allocator = kelp_allocator_system();
    kelp_arena arena;
    kelp_arena_init(&arena, allocator, 0);
    model_state *state = NULL;
    kelp_builtin_config config;
    TRITONSERVER_Error *error = (TRITONSERVER_Error *)KELP_NEW(allocator, model_state, &state);
    if (error == NULL) {
        state->allocator = allocator;
        error = to_error(kelp_builtin_config_read(model, &arena, &config));
    }
    if (error == NULL)
        error = load(model, &config, state);
    if (error == NULL)
        error = to_error(kelp_builtin_config_complete(model, &arena, &config, state->metadata));
    if (error == NULL) {
        state->batches = config.max_batch_size > 0;
        error = TRITONBACKEND_ModelSetState(model, state);
    }
    kelp_arena_deinit(&arena);
    if (error != NULL && state != NULL)
        model_destroy(state);
    return error;
}

static TRITONSERVER_Error *model_fini(TRITONBACKEND_Model *model) {
    void *state = NULL;
    BACKEND_TRY(TRITONBACKEND_ModelState(model, &state));
    if (state != NULL)
        model_destroy(state);
    return NULL;
}

/* ---- instance ---- */
static void instance_destroy(instance_state *state) {
    const kelp_compute_metadata *metadata = state->model->metadata;
    kelp_allocator allocator = state->model->allocator;
    for (size_t i = 0; state->gathered != NULL && i < metadata->input_count; i++)
        kelp_free(allocator, state->gathered[i].data, state->gathered[i].size_bytes);
    for (size_t i = 0; state->packed != NULL && i < metadata->output_count; i++)
        kelp_free(allocator, state->packed[i].data, state->packed[i].size_bytes);
    kelp_free(allocator, state->gathered, metadata->input_count * sizeof *state->gathered);
    kelp_free(allocator, state->packed, metadata->output_count * sizeof *state->packed);
    kelp_free(allocator, state->inputs, metadata->input_count * sizeof *state->inputs);
    kelp_free(allocator, state->outputs, metadata->output_count * sizeof *state->outputs);
    kelp_free(allocator, state->wanted, metadata->output_count * sizeof *state->wanted);
    kelp_compute_destroy(state->compute);
    kelp_free(allocator, state, sizeof *state);
}

/* Nobody waits for a run whose request was cancelled. */
static bool is_cancelled(void *userp) {
    bool cancelled = false;
    TRITONSERVER_ErrorDelete(
        TRITONBACKEND_RequestIsCancelled(((instance_state *)userp)->request, &cancelled));
    return cancelled;
}

static kelp_status *instance_create(model_state *model, instance_state **out) {
    kelp_allocator allocator = model->allocator;
    size_t inputs = model->metadata->input_count, outputs = model->metadata->output_count;
    instance_state *state = NULL;
    KELP_TRY(KELP_NEW(allocator, instance_state, &state));
    state->model = model;
    kelp_status *status =
        kelp_alloc_zero(allocator, inputs, sizeof *state->inputs, (void **)&state->inputs);
    if (status == NULL)
        status =
            kelp_alloc_zero(allocator, outputs, sizeof *state->outputs, (void **)&state->outputs);
    if (status == NULL)
        status =
            kelp_alloc_zero(allocator, inputs, sizeof *state->gathered, (void **)&state->gathered);
    if (status == NULL)
        status =
            kelp_alloc_zero(allocator, outputs, sizeof *state->packed, (void **)&state->packed);
    if (status == NULL)
        status =
            kelp_alloc_zero(allocator, outputs, sizeof *state->wanted, (void **)&state->wanted);
    if (status == NULL)
        status = kelp_compute_fork(model->model, &state->compute);
    if (status == NULL)
        status = kelp_compute_init(state->compute);
    if (status == NULL)
        kelp_compute_set_interrupt(state->compute, is_cancelled, state);
    if (status != NULL) {
        instance_destroy(state);
        return status;
    }
    *out = state;
    return NULL;
}

static TRITONSERVER_Error *instance_init(TRITONBACKEND_ModelInstance *instance) {
    TRITONBACKEND_Model *model = NULL;
    void *model_data = NULL;
    instance_state *state = NULL;
    BACKEND_TRY(TRITONBACKEND_ModelInstanceModel(instance, &model));
    BACKEND_TRY(TRITONBACKEND_ModelState(model, &model_data));
    BACKEND_TRY(to_error(instance_create(model_data, &state)));
    state->handle = instance;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceSetState(instance, state);
    if (error != NULL)
        instance_destroy(state);
    return error;
}

static TRITONSERVER_Error *instance_fini(TRITONBACKEND_ModelInstance *instance) {
    void *state = NULL;
    BACKEND_TRY(TRITONBACKEND_ModelInstanceState(instance, &state));
    if (state != NULL)
        instance_destroy(state);
    return NULL;
}

/* ---- inputs ---- */

/* One pointer to the whole input: where it lies when it is one host buffer, else gathered. */
static TRITONSERVER_Error *input_bytes(instance_state *state, TRITONBACKEND_Input *input,
                                       size_t index, uint64_t byte_size, uint32_t buffer_count,
                                       const char **out) {
    const void *buffer = NULL;
    uint64_t length = 0;
    TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
    int64_t memory_id = 0;
    *out = NULL;
    if (byte_size == 0)
        return NULL;
    if (buffer_count == 1) {
        BACKEND_TRY(
            TRITONBACKEND_InputBuffer(input, 0, &buffer, &length, &memory_type, &memory_id));
        if (memory_type != TRITONSERVER_MEMORY_GPU) {
            *out = buffer;
            return NULL;
        }
    }
    BACKEND_TRY(to_error(grow(state->model->allocator, &state->gathered[index], byte_size)));
    char *to = state->gathered[index].data;
    for (uint32_t i = 0; i < buffer_count; i++) {
        memory_type = TRITONSERVER_MEMORY_CPU;
        BACKEND_TRY(
            TRITONBACKEND_InputBuffer(input, i, &buffer, &length, &memory_type, &memory_id));
        if (memory_type == TRITONSERVER_MEMORY_GPU)
            return to_error(KELP_ERROR(KELP_UNIMPLEMENTED, "input '%s' lies in GPU memory",
                                       state->model->metadata->inputs[index].name));
        memcpy(to, buffer, length);
        to += length;
    }
    *out = state->gathered[index].data;
    return NULL;
}

/* Triton's BYTES: for each element a 32-bit length, least significant byte first, and the bytes. */
static kelp_status *parse_strings(instance_state *state, size_t index, const char *bytes,
                                  uint64_t byte_size, kelp_tensor *tensor) {
    int64_t count = kelp_tensor_elements(tensor);
    const char *name = state->model->metadata->inputs[index].name;
    /* the gathered bytes, if any, must stay: strings point into them */
    scratch *room = &state->gathered[index];
    size_t offset = bytes == room->data ? (byte_size + 15) & ~(size_t)15 : 0;
    if (offset > 0) {
        size_t needed = offset + (size_t)count * sizeof(kelp_string);
        if (needed > room->size_bytes) {
            scratch larger = {NULL, 0};
            KELP_TRY(grow(state->model->allocator, &larger, needed));
            memcpy(larger.data, bytes, byte_size);
            kelp_free(state->model->allocator, room->data, room->size_bytes);
            *room = larger;
            bytes = room->data;
        }
    } else {
        KELP_TRY(grow(state->model->allocator, room, (size_t)count * sizeof(kelp_string) + 1));
    }
    kelp_string *strings = (kelp_string *)(void *)((char *)room->data + offset);
    uint64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t length;
        if (byte_size - at < 4)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "input '%s' is cut short at string %lld of %lld", name, (long long)i,
                              (long long)count);
        memcpy(&length, bytes + at, 4);
        at += 4;
        if (length > byte_size - at)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "input '%s': string %lld has %u bytes, but %llu are left", name,
                              (long long)i, length, (unsigned long long)(byte_size - at));
        strings[i] = (kelp_string){bytes + at, length};
        at += length;
    }
    tensor->data = strings;
    return NULL;
}

static kelp_dtype dtype_of(TRITONSERVER_DataType type) {
    return kelp_dtype_parse(TRITONSERVER_DataTypeString(type));
}

static TRITONSERVER_Error *read_input(instance_state *state, TRITONBACKEND_Request *request,
                                      size_t index) {
    const kelp_io_info *info = &state->model->metadata->inputs[index];
    TRITONBACKEND_Input *input = NULL;
    TRITONSERVER_DataType type;
    const int64_t *shape = NULL;
    uint32_t rank = 0, buffer_count = 0;
    uint64_t byte_size = 0;
    const char *bytes = NULL;
    BACKEND_TRY(TRITONBACKEND_RequestInput(request, info->name, &input));
    BACKEND_TRY(TRITONBACKEND_InputProperties(input, NULL, &type, &shape, &rank, &byte_size,
                                              &buffer_count));
    kelp_tensor *tensor = &state->inputs[index];
    BACKEND_TRY(to_error(kelp_tensor_init(tensor, dtype_of(type), (int32_t)rank, shape, NULL)));
    BACKEND_TRY(input_bytes(state, input, index, byte_size, buffer_count, &bytes));
    if (tensor->dtype == KELP_STRING)
        return to_error(parse_strings(state, index, bytes, byte_size, tensor));
    if (byte_size < kelp_tensor_bytes(tensor))
        return to_error(KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s' has %llu bytes, expected %zu",
                                   info->name, (unsigned long long)byte_size,
                                   kelp_tensor_bytes(tensor)));
    union { /* the engine only reads what is marked so */
        const char *from;
        void *to;
    } data = {bytes};
    tensor->data = data.to;
    tensor->flags = KELP_TENSOR_READ_ONLY;
    return NULL;
}

/* ---- outputs ---- */
static TRITONSERVER_Error *find_wanted(instance_state *state, TRITONBACKEND_Request *request) {
    uint32_t count = 0;
    BACKEND_TRY(TRITONBACKEND_RequestOutputCount(request, &count));
    const kelp_compute_metadata *metadata = state->model->metadata;
    for (size_t i = 0; i < metadata->output_count; i++)
        state->wanted[i] = false;
    for (uint32_t k = 0; k < count; k++) {
        const char *name = NULL;
        BACKEND_TRY(TRITONBACKEND_RequestOutputName(request, k, &name));
        for (size_t i = 0; i < metadata->output_count; i++)
            if (strcmp(metadata->outputs[i].name, name) == 0)
                state->wanted[i] = true;
    }
    return NULL;
}

static TRITONSERVER_Error *open_output(instance_state *state, TRITONBACKEND_Response *response,
                                       size_t index, size_t byte_size, void **out_buffer) {
    const kelp_tensor *tensor = &state->outputs[index];
    const kelp_io_info *info = &state->model->metadata->outputs[index];
    const char *type_name = kelp_dtype_triton_name(tensor->dtype);
    if (type_name == NULL)
        return to_error(KELP_ERROR(KELP_UNIMPLEMENTED,
                                   "output '%s' has type %s, which the inference protocol lacks",
                                   info->name, kelp_dtype_name(tensor->dtype)));
    TRITONBACKEND_Output *output = NULL;
    BACKEND_TRY(TRITONBACKEND_ResponseOutput(response, &output, info->name,
                                             TRITONSERVER_StringToDataType(type_name),
                                             tensor->shape, (uint32_t)tensor->rank));
    TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
    int64_t memory_id = 0;
    BACKEND_TRY(
        TRITONBACKEND_OutputBuffer(output, out_buffer, byte_size, &memory_type, &memory_id));
    if (memory_type == TRITONSERVER_MEMORY_GPU)
        return to_error(
            KELP_ERROR(KELP_UNIMPLEMENTED, "output '%s' was placed in GPU memory", info->name));
    return NULL;
}

/* Before running: the outputs whose shapes are known are written in place. */
static TRITONSERVER_Error *place_outputs(instance_state *state, TRITONBACKEND_Response *response,
                                         bool *out_placed) {
    const kelp_compute_metadata *metadata = state->model->metadata;
    *out_placed = true;
    for (size_t i = 0; i < metadata->output_count; i++)
        if (state->outputs[i].rank < 0 || state->outputs[i].dtype == KELP_STRING)
            *out_placed = false;
    for (size_t i = 0; *out_placed && i < metadata->output_count; i++) {
        state->outputs[i].data = NULL;
        if (state->wanted[i])
            BACKEND_TRY(open_output(state, response, i, kelp_tensor_bytes(&state->outputs[i]),
                                    &state->outputs[i].data));
    }
    if (!*out_placed)
        for (size_t i = 0; i < metadata->output_count; i++)
            state->outputs[i].data = NULL;
    return NULL;
}

static TRITONSERVER_Error *copy_output(instance_state *state, TRITONBACKEND_Response *response,
                                       size_t index) {
    const kelp_tensor *tensor = &state->outputs[index];
    size_t byte_size = kelp_tensor_bytes(tensor);
    const kelp_string *strings = tensor->data;
    int64_t count = kelp_tensor_elements(tensor);
    if (tensor->dtype == KELP_STRING) {
        byte_size = 0;
        for (int64_t i = 0; i < count; i++)
            byte_size += 4 + strings[i].length;
    }
    void *buffer = NULL;
    BACKEND_TRY(open_output(state, response, index, byte_size, &buffer));
    if (tensor->dtype != KELP_STRING) {
        if (byte_size > 0)
            memcpy(buffer, tensor->data, byte_size);
        return NULL;
    }
    char *to = buffer;
    for (int64_t i = 0; i < count; i++) {
        uint32_t length = (uint32_t)strings[i].length;
        memcpy(to, &length, 4);
        if (length > 0)
            memcpy(to + 4, strings[i].data, length);
        to += 4 + length;
    }
    return NULL;
}

/* ---- execute ---- */
typedef struct timing {
    uint64_t begin, compute_begin, compute_end, end;
} timing;

static TRITONSERVER_Error *run(instance_state *state, TRITONBACKEND_Request *request,
                               TRITONBACKEND_Response *response, timing *times) {
    const kelp_compute_metadata *metadata = state->model->metadata;
    for (size_t i = 0; i < metadata->input_count; i++)
        BACKEND_TRY(read_input(state, request, i));
    BACKEND_TRY(find_wanted(state, request));
    kelp_infer_item item = {.inputs = state->inputs, .outputs = state->outputs};
    bool placed = false;
    BACKEND_TRY(to_error(kelp_compute_infer_shapes(state->compute, &item)));
    BACKEND_TRY(place_outputs(state, response, &placed));
    times->compute_begin = kelp_now_ns();
    state->request = request;
    kelp_status *status = kelp_compute_infer_one(state->compute, &item);
    times->compute_end = kelp_now_ns();
    BACKEND_TRY(to_error(status));
    for (size_t i = 0; !placed && i < metadata->output_count; i++)
        if (state->wanted[i])
            BACKEND_TRY(copy_output(state, response, i));
    return NULL;
}

static void execute_one(instance_state *state, TRITONBACKEND_Request *request, timing *times) {
    TRITONBACKEND_Response *response = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ResponseNew(&response, request);
    times->begin = times->compute_begin = times->compute_end = kelp_now_ns();
    if (error == NULL)
        error = run(state, request, response, times);
    bool success = error == NULL;
    if (times->compute_end == times->begin)
        times->compute_begin = times->compute_end = kelp_now_ns();
    if (response != NULL) {
        TRITONSERVER_ErrorDelete(
            TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error));
        TRITONSERVER_ErrorDelete(error);
    } else {
        TRITONSERVER_ErrorDelete(TRITONSERVER_LogMessage(TRITONSERVER_LOG_ERROR, __FILE__, __LINE__,
                                                         TRITONSERVER_ErrorMessage(error)));
        TRITONSERVER_ErrorDelete(error);
    }
    times->end = kelp_now_ns();
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceReportStatistics(
        state->handle, request, success, times->begin, times->compute_begin, times->compute_end,
        times->end));
    TRITONSERVER_ErrorDelete(
        TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

static TRITONSERVER_Error *execute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, const uint32_t request_count) {
    void *data = NULL;
    BACKEND_TRY(TRITONBACKEND_ModelInstanceState(instance, &data));
    instance_state *state = data;
    for (uint32_t i = 0; i < request_count; i++) {
        timing times = {0};
        uint64_t batch = 1;
        execute_one(state, requests[i], &times);
        if (state->model->batches && state->inputs[0].rank > 0 && state->inputs[0].shape[0] > 0)
            batch = (uint64_t)state->inputs[0].shape[0];
        TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceReportBatchStatistics(
            instance, batch, times.begin, times.compute_begin, times.compute_end, times.end));
    }
    return NULL;
}

static const char *const aliases[] = {"onnxruntime", "onnxruntime_onnx", "tensorrt",
                                      "tensorrt_plan", NULL};

const kelp_builtin_backend kelp_builtin_kelp = {
    .name = "kelp",
    .aliases = aliases,
    .initialize = backend_init,
    .finalize = backend_fini,
    .model_init = model_init,
    .model_fini = model_fini,
    .instance_init = instance_init,
    .instance_fini = instance_fini,
    .execute = execute,
    .inline_execute = true,
};
