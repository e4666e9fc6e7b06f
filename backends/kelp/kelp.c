/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `kelp` backend: serves models of all providers through Triton's backend interface. It is
 * built into the server (src/server/builtin), and is the only module that uses both.
 *
 * A model is loaded once; each instance is a fork that shares the weights. Requests are executed
 * one after another. Outputs are written directly into the response's buffers if their shapes are
 * known before the inference.
 *
 * Parameters of a model (config.pbtxt, `parameters`): "provider" (cpu, onnxruntime, null; default
 * cpu), "kernel_library" and "kernel" (a kernel as the model; other parameters are its scalars),
 * "providers" (of subgraphs: "onnxruntime,cpu", "remote:ADDRESS,cpu"; default the backend's setting
 * of that name), "intra_op_threads" (0: all usable CPUs), "precision" (f32 or bf16; default the
 * backend's setting of that name, else f32), "map_files" (true or false; default the backend's
 * setting of that name, else false).
 */
#include "config.h"

#include <kelp/remote.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct model_state {
    kelp_runtime *runtime;
    kelp_compute_model *model;
    const kelp_compute_metadata *metadata;
    char *kernel; /* the artifact; the model uses it */
} model_state;

typedef struct instance_state {
    const kelp_compute_metadata *metadata;
    kelp_compute_model *compute;
    kelp_tensor *inputs, *outputs;
    bool *requested;               /* by output */
    kelp_backend_request *request; /* the current request */
} instance_state;

/* ---- backend ---- */

static void forward_log(void *userp, int level, const char *file, int line, const char *text,
                        size_t length) {
    (void)userp;
    static const TRITONSERVER_LogLevel levels[] = {TRITONSERVER_LOG_ERROR, TRITONSERVER_LOG_WARN,
                                                   TRITONSERVER_LOG_INFO, TRITONSERVER_LOG_VERBOSE};
    kelp_backend_log(levels[level < 0 || level > 3 ? 3 : level], file, line, "%.*s", (int)length,
                     text);
}

static kelp_status *create_runtime(int64_t threads, kelp_runtime **out) {
    kelp_runtime_options options = {
        .struct_size = sizeof options, .threads = (int)threads, .log = forward_log, .log_level = 2};
    return kelp_runtime_create(&options, out);
}

/* Loads the plug-in libraries of the setting "plugin", separated by ':'. */
static kelp_status *load_plugins(const kelp_backend_host *host, kelp_runtime *runtime) {
    const char *paths = kelp_backend_host_setting(host, "plugin", "");
    char path[4096];
    while (*paths != '\0') {
        size_t length = strcspn(paths, ":");
        if (length >= sizeof path)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "the path of a plug-in library is longer than %zu bytes",
                              sizeof path - 1);
        memcpy(path, paths, length);
        path[length] = '\0';
        if (length > 0)
            KELP_TRY(kelp_runtime_load_plugin(runtime, path));
        paths += length + (paths[length] == ':');
    }
    return NULL;
}

static kelp_status *new_runtime(const kelp_backend_host *host, int64_t threads,
                                kelp_runtime **out) {
    KELP_TRY(create_runtime(threads, out));
    kelp_status *status = load_plugins(host, *out);
    if (status != NULL) {
        kelp_runtime_release(*out);
        *out = NULL;
    }
    return status;
}

/* Creates the runtime, with one thread pool, for all models that do not configure their own. */
static kelp_status *create(kelp_backend_host *host, void **out_state) {
    kelp_runtime *runtime = NULL;
    KELP_TRY(new_runtime(host, 0, &runtime));
    *out_state = runtime;
    return NULL;
}

static void destroy(void *state) {
    kelp_runtime_release(state);
}

/* ---- model ---- */

static void model_destroy(void *data) {
    model_state *state = data;
    kelp_compute_destroy(state->model);
    kelp_runtime_release(state->runtime);
    free(state->kernel);
    free(state);
}

/* Returns the first of the model's operator libraries (model_operations.op_library_filename). */
static const kelp_backend_value *first_library(const kelp_backend_model *model) {
    const kelp_backend_value *operations =
        kelp_backend_value_get(kelp_backend_model_config(model), "model_operations");
    return kelp_backend_value_first(kelp_backend_value_get(operations, "op_library_filename"));
}

/* Loads the model's operator libraries, which are plug-in libraries (kelp/plugin.h). Relative paths
 * are relative to the model's directory. */
static kelp_status *load_libraries(const kelp_backend_model *model, kelp_runtime *runtime) {
    for (const kelp_backend_value *library = first_library(model); library != NULL;
         library = kelp_backend_value_next(library)) {
        const char *name = kelp_backend_value_text(library, "");
        char path[4096];
        int length = name[0] == '/' ? snprintf(path, sizeof path, "%s", name)
                                    : snprintf(path, sizeof path, "%s/%s",
                                               kelp_backend_model_directory(model), name);
        if (length < 0 || (size_t)length >= sizeof path)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "model '%s': the path of op_library_filename is longer than %zu bytes",
                kelp_backend_model_name(model), sizeof path - 1);
        kelp_status *status = kelp_runtime_load_plugin(runtime, path);
        if (status != NULL)
            return KELP_ANNOTATE(status, "model '%s': cannot load op_library_filename '%s'",
                                 kelp_backend_model_name(model), name);
    }
    return NULL;
}

/* Returns the backend's runtime, or a new one if the model has its own threads, operator libraries
 * or remote providers, which must be registered before engines are created. */
static kelp_status *acquire_runtime(const kelp_backend_model *model,
                                    const kelp_model_settings *settings, kelp_runtime **out) {
    const kelp_backend_host *host = kelp_backend_model_host(model);
    bool remote = settings->providers != NULL && strstr(settings->providers, "remote:") != NULL;
    if (settings->threads == 0 && !remote && first_library(model) == NULL) {
        *out = kelp_runtime_retain(kelp_backend_host_state(host));
        return NULL;
    }
    KELP_TRY(new_runtime(host, settings->threads, out));
    KELP_TRY(load_libraries(model, *out));
    return kelp_remote_register_named(*out, settings->providers);
}

static kelp_status *load(const kelp_backend_model *model, const kelp_model_settings *settings,
                         model_state *state) {
    const char *name = kelp_backend_model_name(model);
    char file[4096];
    int length =
        snprintf(file, sizeof file, "%s/%llu/%s", kelp_backend_model_directory(model),
                 (unsigned long long)kelp_backend_model_version(model), settings->file_name);
    if (length < 0 || (size_t)length >= sizeof file)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "model '%s': the path of its file is longer than %zu bytes", name,
                          sizeof file);
    KELP_TRY(acquire_runtime(model, settings, &state->runtime));
    kelp_artifact artifact = {.path = file,
                              .label = name,
                              .providers = settings->providers,
                              .precision = settings->precision,
                              .keep_contents = !settings->map_files};
    if (state->kernel != NULL)
        artifact = (kelp_artifact){
            .data = state->kernel, .size_bytes = strlen(state->kernel), .label = name};
    KELP_TRY(kelp_compute_load(state->runtime, settings->provider, &artifact, &state->model));
    state->metadata = kelp_compute_metadata_of(state->model);
    return NULL;
}

static kelp_status *model_create(kelp_backend_model *model, void **out_state) {
    kelp_model_settings settings;
    model_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return kelp_status_oom();
    kelp_status *status = kelp_model_settings_read(model, &settings);
    state->kernel = settings.kernel;
    if (status == NULL)
        status = load(model, &settings, state);
    if (status == NULL)
        status = kelp_model_complete(model, state->metadata);
    if (status != NULL)
        model_destroy(state);
    else
        *out_state = state;
    return status;
}

/* ---- instance ---- */

static void instance_destroy(void *data) {
    instance_state *state = data;
    kelp_compute_destroy(state->compute);
    free(state->inputs);
    free(state->outputs);
    free(state->requested);
    free(state);
}

/* Interrupts an inference if its request was cancelled. */
static bool is_cancelled(void *userp) {
    return kelp_backend_request_is_cancelled(((const instance_state *)userp)->request);
}

static kelp_status *instance_open(const model_state *model, instance_state *state) {
    state->metadata = model->metadata;
    state->inputs = calloc(model->metadata->input_count + 1, sizeof *state->inputs);
    state->outputs = calloc(model->metadata->output_count + 1, sizeof *state->outputs);
    state->requested = calloc(model->metadata->output_count + 1, sizeof *state->requested);
    if (state->inputs == NULL || state->outputs == NULL || state->requested == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_compute_fork(model->model, &state->compute));
    KELP_TRY(kelp_compute_init(state->compute));
    kelp_compute_set_interrupt(state->compute, is_cancelled, state);
    return NULL;
}

static kelp_status *instance_create(kelp_backend_instance *instance, void **out_state) {
    instance_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return kelp_status_oom();
    kelp_status *status =
        instance_open(kelp_backend_model_state(kelp_backend_instance_model(instance)), state);
    if (status != NULL)
        instance_destroy(state);
    else
        *out_state = state;
    return status;
}

/* ---- execution ---- */

static void find_requested(instance_state *state, const kelp_backend_request *request) {
    const kelp_compute_metadata *metadata = state->metadata;
    size_t count = kelp_backend_request_output_count(request);
    memset(state->requested, 0, metadata->output_count * sizeof *state->requested);
    for (size_t k = 0; k < count; k++) {
        const char *name = kelp_backend_request_output_name(request, k);
        for (size_t i = 0; i < metadata->output_count; i++)
            if (name != NULL && strcmp(metadata->outputs[i].name, name) == 0)
                state->requested[i] = true;
    }
}

/* Binds the outputs to the response's buffers if all shapes are known. */
static kelp_status *place_outputs(instance_state *state, kelp_backend_response *response,
                                  bool *out_placed) {
    const kelp_compute_metadata *metadata = state->metadata;
    *out_placed = true;
    for (size_t i = 0; i < metadata->output_count; i++) {
        state->outputs[i].data = NULL;
        if (state->outputs[i].rank < 0 || state->outputs[i].dtype == KELP_STRING)
            *out_placed = false;
    }
    for (size_t i = 0; *out_placed && i < metadata->output_count; i++) {
        if (state->requested[i])
            KELP_TRY(kelp_backend_output_tensor(response, metadata->outputs[i].name,
                                                &state->outputs[i]));
    }
    return NULL;
}

static kelp_status *put_outputs(instance_state *state, kelp_backend_response *response) {
    for (size_t i = 0; i < state->metadata->output_count; i++)
        if (state->requested[i])
            KELP_TRY(kelp_backend_put_tensor(response, state->metadata->outputs[i].name,
                                             &state->outputs[i]));
    return NULL;
}

static kelp_status *execute(kelp_backend_instance *instance, kelp_backend_request *request) {
    instance_state *state = kelp_backend_instance_state(instance);
    const kelp_compute_metadata *metadata = state->metadata;
    kelp_infer_item item = {.inputs = state->inputs, .outputs = state->outputs};
    kelp_backend_response *response = NULL;
    bool placed = false;
    for (size_t i = 0; i < metadata->input_count; i++)
        KELP_TRY(kelp_backend_input(request, metadata->inputs[i].name, KELP_DTYPE_INVALID,
                                    KELP_ANY_RANK, &state->inputs[i]));
    find_requested(state, request);
    state->request = request; /* is_cancelled reads it, also during shape inference */
    KELP_TRY(kelp_backend_respond(request, &response));
    KELP_TRY(kelp_compute_infer_shapes(state->compute, &item));
    KELP_TRY(place_outputs(state, response, &placed));
    kelp_backend_compute_begins(instance);
    kelp_status *status = kelp_compute_infer_one(state->compute, &item);
    kelp_backend_compute_ends(instance);
    if (status == NULL && !placed)
        status = put_outputs(state, response);
    return status;
}

extern const kelp_backend_definition kelp_backend_kelp;
const kelp_backend_definition kelp_backend_kelp = {
    .struct_size = sizeof kelp_backend_kelp,
    .name = "kelp",
    .flags = KELP_BACKEND_DOES_NOT_BLOCK,
    .create = create,
    .destroy = destroy,
    .model_create = model_create,
    .model_destroy = model_destroy,
    .instance_create = instance_create,
    .instance_destroy = instance_destroy,
    .execute_one = execute,
};
