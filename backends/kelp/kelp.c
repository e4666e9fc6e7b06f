/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `kelp` backend: serves models of all providers through Triton's backend interface. It is
 * built into the server (src/server/builtin), and is the only module that uses both.
 *
 * A model is loaded once; each instance is a fork that shares the weights. Models of a provider
 * without forks have one instance, which uses the model itself. The requests of an execution run as
 * one batch (execution.c). Before an instance is destroyed, its model is drained.
 *
 * Parameters of a model (config.pbtxt, `parameters`): "provider" (cpu, onnxruntime, null; default
 * cpu), "kernel_library" and "kernel" (a kernel as the model; other parameters are its scalars),
 * "providers" (of subgraphs: "onnxruntime,cpu", "remote:ADDRESS,cpu"; default the backend's setting
 * of that name), "intra_op_threads" (0: all usable CPUs), "precision" (f32 or bf16; default the
 * backend's setting of that name, else f32), "map_files" (true or false; default the backend's
 * setting of that name, else false).
 */
#include "execution.h"

#include "config.h"

#include <kelp/remote.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sched.h>
#include <stdatomic.h>

/* The limit of batches that `--auto-batch` gives to models. */
#define AUTO_BATCH 64

typedef struct backend_state {
    kelp_runtime *runtime; /* of all models that do not need their own */
    cpu_set_t cpus;        /* that the threads of `runtime` may use */
} backend_state;

typedef struct model_state {
    kelp_runtime *runtime;
    kelp_compute_model *model;
    const kelp_compute_metadata *metadata;
    const char *provider;
    size_t max_items;      /* per batch; 0: unlimited */
    atomic_bool is_in_use; /* an instance uses `model` itself, because it cannot be forked */
    kelp_ragged ragged;    /* batches */
    char *kernel;          /* the artifact; the model uses it */
} model_state;

typedef struct instance_state {
    kelp_execution execution; /* with the instance's model */
    model_state *model;
    bool is_ready; /* the instance's model is initialized */
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

static kelp_status *new_runtime(const kelp_backend_host *host, int64_t threads,
                                kelp_runtime **out) {
    KELP_TRY(create_runtime(threads, out));
    kelp_status *status =
        kelp_runtime_load_plugins(*out, kelp_backend_host_setting(host, "plugin", ""));
    if (status != NULL) {
        kelp_runtime_release(*out);
        *out = NULL;
    }
    return status;
}

/* Creates the runtime, with one thread pool, for all models that do not configure their own. */
static kelp_status *create(kelp_backend_host *host, void **out_state) {
    backend_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return kelp_status_oom();
    if (sched_getaffinity(0, sizeof state->cpus, &state->cpus) != 0)
        CPU_ZERO(&state->cpus);
    kelp_status *status = new_runtime(host, 0, &state->runtime);
    if (status != NULL)
        free(state);
    else
        *out_state = state;
    return status;
}

static void destroy(void *data) {
    backend_state *state = data;
    kelp_runtime_release(state->runtime);
    free(state);
}

/* ---- model ---- */

static void model_destroy(void *data) {
    model_state *state = data;
    kelp_compute_destroy(state->model);
    kelp_runtime_release(state->runtime);
    kelp_ragged_deinit(&state->ragged);
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

/* Returns true if the calling thread may not use all CPUs of the backend, because of a host policy.
 */
static bool is_restricted(const backend_state *backend) {
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 && !CPU_EQUAL(&cpus, &backend->cpus);
}

/* Returns the backend's runtime, or a new one if the model has its own threads or CPUs, operator
 * libraries or remote providers, which must be registered before engines are created. */
static kelp_status *acquire_runtime(const kelp_backend_model *model,
                                    const kelp_model_settings *settings, kelp_runtime **out) {
    const kelp_backend_host *host = kelp_backend_model_host(model);
    const backend_state *backend = kelp_backend_host_state(host);
    bool remote = settings->providers != NULL && strstr(settings->providers, "remote:") != NULL;
    if (settings->threads == 0 && !remote && first_library(model) == NULL &&
        !is_restricted(backend)) {
        *out = kelp_runtime_retain(backend->runtime);
        return NULL;
    }
    KELP_TRY(new_runtime(host, settings->threads, out));
    KELP_TRY(load_libraries(model, *out));
    return kelp_remote_register_named(*out, settings->providers);
}

static kelp_status *open_model(const char *provider, const kelp_artifact *artifact,
                               model_state *state) {
    const kelp_compute_backend *backend = NULL;
    KELP_TRY(kelp_compute_find(state->runtime, provider, &backend));
    state->provider = backend->name;
    state->max_items = backend->capabilities(backend->self).max_batch;
    kelp_status *status = kelp_compute_load(state->runtime, provider, artifact, &state->model);
    if (status != NULL && artifact->batched)
        return KELP_ANNOTATE(status, "model '%s' with max_batch_size > 0", artifact->label);
    KELP_TRY(status);
    state->metadata = kelp_compute_metadata_of(state->model);
    return NULL;
}

/* Returns the limit of batches that the settings of the server give to models with a batch
 * dimension; 0 for none, or if the configuration does not leave it to the backend whether this
 * model has one. */
static kelp_status *default_batch(const kelp_backend_model *model, long *out) {
    size_t inputs = 0, outputs = 0;
    bool wanted = false;
    const kelp_backend_host *host = kelp_backend_model_host(model);
    const char *setting = kelp_backend_host_setting(host, "auto-batch", "false");
    const char *size = kelp_backend_host_setting(host, "default-max-batch-size", "0");
    char *end = NULL;
    *out = 0;
    kelp_backend_model_inputs(model, &inputs);
    kelp_backend_model_outputs(model, &outputs);
    KELP_TRY(kelp_backend_model_wants_config(model, &wanted));
    if (!wanted || kelp_backend_model_max_batch(model) != 0 || inputs != 0 || outputs != 0 ||
        kelp_model_sequence(model) != NULL)
        return NULL;
    long value = strtol(size, &end, 10);
    if (end == size || *end != '\0' || value < 0 || value > INT32_MAX)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "setting 'default-max-batch-size': expected a number from 0 to %d, found "
                          "'%s'",
                          INT32_MAX, size);
    *out = value == 0 && strcmp(setting, "true") == 0 ? AUTO_BATCH : value;
    return NULL;
}

/* Loads the model. If it may get a batch dimension, it gets one if the first dimensions of its
 * inputs and outputs are dynamic. */
static kelp_status *open_batched(kelp_backend_model *model, const char *provider,
                                 kelp_artifact *artifact, model_state *state) {
    long size = 0;
    KELP_TRY(default_batch(model, &size));
    if (size == 0)
        return open_model(provider, artifact, state);
    artifact->batched = true;
    kelp_status *status = open_model(provider, artifact, state);
    if (status == NULL) {
        char json[128];
        const kelp_backend_value *config = kelp_backend_model_config(model);
        bool batches = size > 1 && kelp_backend_value_get(config, "dynamic_batching") == NULL;
        int length = snprintf(json, sizeof json, "{\"max_batch_size\":%ld%s}", size,
                              batches ? ",\"dynamic_batching\":{}" : "");
        return kelp_backend_model_set_config(model, json, (size_t)length);
    }
    kelp_status_free(status);
    artifact->batched = false;
    return open_model(provider, artifact, state);
}

static kelp_status *load(kelp_backend_model *model, const kelp_model_settings *settings,
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
    const backend_state *backend = kelp_backend_host_state(kelp_backend_model_host(model));
    kelp_backend_log(TRITONSERVER_LOG_INFO, __FILE__, __LINE__,
                     "model '%s': operators use %s pool of %d threads", name,
                     state->runtime == backend->runtime ? "the common" : "the model's own",
                     kelp_runtime_threads(state->runtime));
    kelp_artifact artifact = {.path = file,
                              .label = name,
                              .providers = settings->providers,
                              .precision = settings->precision,
                              .keep_contents = !settings->map_files,
                              .batched = kelp_backend_model_max_batch(model) > 0 &&
                                         !kelp_ragged_is_configured(model)};
    if (state->kernel != NULL) {
        artifact.path = NULL;
        artifact.data = state->kernel;
        artifact.size_bytes = strlen(state->kernel);
    }
    return open_batched(model, settings->provider, &artifact, state);
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
    if (status == NULL)
        status = kelp_ragged_init(&state->ragged, model, state->metadata);
    if (status != NULL)
        model_destroy(state);
    else
        *out_state = state;
    return status;
}

/* ---- instance ---- */

static void instance_destroy(void *data) {
    instance_state *state = data;
    kelp_compute_model *compute = state->execution.model;
    if (state->is_ready) {
        KELP_BACKEND_LOG_STATUS("cannot drain a model", kelp_compute_drain(compute));
        kelp_compute_set_interrupt(compute, NULL, NULL);
    }
    if (compute == NULL || compute != state->model->model)
        kelp_compute_destroy(compute);
    else
        atomic_store(&state->model->is_in_use, false);
    kelp_execution_deinit(&state->execution);
    free(state);
}

/* Forks the model, or uses the model itself if it cannot be forked and has no other instance. */
static kelp_status *acquire_compute(const kelp_backend_instance *instance, model_state *model,
                                    kelp_compute_model **out) {
    if (model->model->vtbl->fork != NULL)
        return kelp_compute_fork(model->model, out);
    if (atomic_exchange(&model->is_in_use, true))
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "model '%s' can have one instance only, because provider '%s' has no "
                          "fork: set instance_group [ { count: 1 } ]",
                          kelp_backend_model_name(kelp_backend_instance_model(instance)),
                          model->provider);
    *out = model->model;
    return NULL;
}

static kelp_status *instance_open(const kelp_backend_instance *instance, instance_state *state) {
    kelp_compute_model *compute = NULL;
    KELP_TRY(acquire_compute(instance, state->model, &compute));
    state->execution.model = compute;
    state->execution.ragged = &state->model->ragged;
    KELP_TRY(kelp_compute_init(compute));
    state->is_ready = true;
    return kelp_execution_init(&state->execution, kelp_backend_instance_model(instance),
                               state->model->max_items);
}

static kelp_status *instance_create(kelp_backend_instance *instance, void **out_state) {
    instance_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return kelp_status_oom();
    state->model = kelp_backend_model_state(kelp_backend_instance_model(instance));
    kelp_status *status = instance_open(instance, state);
    if (status != NULL)
        instance_destroy(state);
    else
        *out_state = state;
    return status;
}

static kelp_status *execute(kelp_backend_instance *instance, kelp_backend_request **requests,
                            size_t request_count) {
    instance_state *state = kelp_backend_instance_state(instance);
    return kelp_execution_run(&state->execution, instance, requests, request_count);
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
    .execute = execute,
};
