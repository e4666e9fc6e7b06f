/* SPDX-License-Identifier: Apache-2.0 */
/* The server as the C API shows it: life, health, repositories, loads and unloads. */
#include "base/fs.h"
#include "server/core/values.h"
#include "server/server.h"

static kelp_server *of(TRITONSERVER_Server *handle) {
    return (kelp_server *)handle;
}

TRITONSERVER_Error *TRITONSERVER_ServerNew(TRITONSERVER_Server **server,
                                           TRITONSERVER_ServerOptions *options) {
    if (!server || !options)
        return kelp_abi_null(__func__, server ? "options" : "server");
    return kelp_to_error(
        kelp_server_create((const kelp_server_options *)options, (kelp_server **)server));
}

TRITONSERVER_Error *TRITONSERVER_ServerDelete(TRITONSERVER_Server *server) {
    if (!server)
        return NULL;
    kelp_status *status = kelp_server_stop(of(server));
    if (!status)
        kelp_server_release(of(server));
    return kelp_to_error(status);
}

TRITONSERVER_Error *TRITONSERVER_ServerStop(TRITONSERVER_Server *server) {
    if (!server)
        return kelp_abi_null(__func__, "server");
    return kelp_to_error(kelp_server_stop(of(server)));
}

TRITONSERVER_Error *TRITONSERVER_ServerSetExitTimeout(TRITONSERVER_Server *server,
                                                      unsigned int timeout) {
    if (!server)
        return kelp_abi_null(__func__, "server");
    pthread_mutex_lock(&of(server)->table_lock);
    of(server)->options->exit_timeout_s = timeout;
    pthread_mutex_unlock(&of(server)->table_lock);
    return NULL;
}

/* ---- health ---- */

TRITONSERVER_Error *TRITONSERVER_ServerIsLive(TRITONSERVER_Server *server, bool *live) {
    if (!server || !live)
        return kelp_abi_null(__func__, server ? "live" : "server");
    *live = false;
    if (atomic_load(&of(server)->state) >= KELP_SERVER_STOPPING)
        return kelp_to_error(KELP_ERROR(KELP_UNAVAILABLE, "Server exiting"));
    *live = true;
    return NULL;
}

/* Whether an instance says that it can run requests; a backend without an opinion can. */
static bool instances_ready(kelp_model *model) {
    bool all = true;
    pthread_rwlock_rdlock(&model->change_lock);
    for (size_t i = 0; model->backend->ready && all && i < model->instance_count; i++) {
        if (model->instances[i]->gone)
            continue;
        TRITONSERVER_Error *error =
            model->backend->ready((TRITONBACKEND_ModelInstance *)model->instances[i]);
        all = !error;
        TRITONSERVER_ErrorDelete(error);
    }
    pthread_rwlock_unlock(&model->change_lock);
    return all;
}

/* Models whose backends are to be asked, each with a reference: the table is not locked while they
 * answer. */
typedef struct model_list {
    kelp_model **items;
    size_t count;
    size_t capacity;
} model_list;

/* Whether every version is ready or was unloaded on purpose; gathers those whose backend has a say.
 */
static kelp_status *versions_ready(kelp_server *server, model_list *ask, bool *out_ready) {
    kelp_status *status = NULL;
    bool all = true;
    pthread_mutex_lock(&server->table_lock);
    for (const kelp_entry *entry = server->first_entry; entry && all && !status;
         entry = entry->next) {
        for (size_t i = 0; i < entry->version_count && all && !status; i++) {
            const kelp_version *version = &entry->versions[i];
            if (!version->model) {
                all = version->state == KELP_VERSION_UNAVAILABLE &&
                      strcmp(kelp_text_get(&version->reason), "unloaded") == 0;
            } else if (version->model->backend->ready) {
                status = kelp_grow(kelp_allocator_system(), (void **)&ask->items, &ask->capacity,
                                   ask->count + 1, sizeof *ask->items);
                if (!status) {
                    kelp_model_retain(version->model);
                    ask->items[ask->count++] = version->model;
                }
            }
        }
    }
    pthread_mutex_unlock(&server->table_lock);
    *out_ready = all;
    return status;
}

/* A model that is on its way out does not speak against the server. */
static bool model_ready(kelp_model *model) {
    if (!kelp_model_enter(model))
        return true;
    bool is = instances_ready(model);
    kelp_model_leave(model);
    return is;
}

TRITONSERVER_Error *TRITONSERVER_ServerIsReady(TRITONSERVER_Server *server, bool *ready) {
    if (!server || !ready)
        return kelp_abi_null(__func__, server ? "ready" : "server");
    kelp_server *s = of(server);
    int state = atomic_load(&s->state);
    *ready = false;
    if (state >= KELP_SERVER_STOPPING)
        return kelp_to_error(KELP_ERROR(KELP_UNAVAILABLE, "Server exiting"));
    if (state != KELP_SERVER_READY)
        return NULL;
    bool all = true;
    model_list ask = {0};
    kelp_status *status = NULL;
    if (s->options->strict_readiness)
        status = versions_ready(s, &ask, &all);
    for (size_t i = 0; i < ask.count; i++) {
        all = all && model_ready(ask.items[i]);
        kelp_model_release(ask.items[i]);
    }
    kelp_free(kelp_allocator_system(), ask.items, ask.capacity * sizeof *ask.items);
    *ready = all && !status;
    return kelp_to_error(status);
}

TRITONSERVER_Error *TRITONSERVER_ServerModelIsReady(TRITONSERVER_Server *server,
                                                    const char *model_name,
                                                    const int64_t model_version, bool *ready) {
    if (!server || !model_name || !ready)
        return kelp_abi_null(__func__, !server ? "server" : !model_name ? "model_name" : "ready");
    kelp_model *model = NULL;
    *ready = false;
    kelp_status *status = kelp_server_check_ready(of(server));
    if (!status)
        status = kelp_server_find_model(of(server), model_name, model_version, &model, NULL);
    if (kelp_status_code(status) == KELP_UNAVAILABLE &&
        atomic_load(&of(server)->state) == KELP_SERVER_READY) {
        kelp_status_free(status); /* known, and not ready */
        return NULL;
    }
    if (status)
        return kelp_to_error(status);
    if (kelp_model_enter(model)) {
        *ready = instances_ready(model);
        kelp_model_leave(model);
    }
    kelp_model_release(model);
    return NULL;
}

/* ---- repositories ---- */

/* false when it was not registered; table_lock held. */
static bool forget_repository(kelp_server *server, const char *path) {
    kelp_settings_remove(&server->mappings, path);
    return kelp_string_list_remove(&server->repositories, path);
}

static bool is_mapped_to(const kelp_settings *mappings, const char *name) {
    for (size_t i = 0; i < mappings->count; i++)
        if (strcmp(mappings->items[i].value, name) == 0)
            return true;
    return false;
}

/* Each parameter is named by a folder of the repository and holds the name to serve it under;
 * table_lock held. */
static kelp_status *add_mappings(kelp_server *server, const char *repository,
                                 const kelp_parameter **mappings, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const kelp_parameter *mapping = mappings[i];
        if (!mapping || mapping->type != TRITONSERVER_PARAMETER_STRING)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "name mapping %u of repository '%s': expected a STRING parameter", i,
                              repository);
        if (is_mapped_to(&server->mappings, mapping->string))
            return KELP_ERROR(KELP_ALREADY_EXISTS,
                              "failed to register '%s', there is a conflicting mapping for '%s'",
                              repository, mapping->string);
        KELP_TRY(kelp_settings_set(&server->mappings, repository, mapping->name, mapping->string));
    }
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerRegisterModelRepository(TRITONSERVER_Server *server, const char *repository_path,
                                           const TRITONSERVER_Parameter **name_mapping,
                                           const uint32_t mapping_count) {
    if (!server || !repository_path || (!name_mapping && mapping_count))
        return kelp_abi_null(__func__, !server            ? "server"
                                       : !repository_path ? "repository_path"
                                                          : "name_mapping");
    kelp_server *s = of(server);
    if (s->options->control_mode != TRITONSERVER_MODEL_CONTROL_EXPLICIT)
        return kelp_to_error(KELP_ERROR(KELP_UNIMPLEMENTED,
                                        "repository registration is not allowed if model control "
                                        "mode is not EXPLICIT"));
    if (kelp_fs_kind_of(repository_path) != KELP_FS_DIRECTORY)
        return kelp_to_error(
            KELP_ERROR(KELP_INVALID_ARGUMENT, "repository '%s' is no folder", repository_path));
    pthread_mutex_lock(&s->table_lock);
    kelp_status *status =
        kelp_string_list_has(&s->repositories, repository_path)
            ? KELP_ERROR(KELP_ALREADY_EXISTS, "model repository '%s' has already been registered",
                         repository_path)
            : kelp_string_list_add(&s->repositories, repository_path);
    if (!status) {
        status = add_mappings(s, repository_path, (const kelp_parameter **)(void *)name_mapping,
                              mapping_count);
        if (status)
            forget_repository(s, repository_path);
    }
    pthread_mutex_unlock(&s->table_lock);
    return kelp_to_error(status);
}

TRITONSERVER_Error *TRITONSERVER_ServerUnregisterModelRepository(TRITONSERVER_Server *server,
                                                                 const char *repository_path) {
    if (!server || !repository_path)
        return kelp_abi_null(__func__, server ? "repository_path" : "server");
    kelp_server *s = of(server);
    if (s->options->control_mode != TRITONSERVER_MODEL_CONTROL_EXPLICIT)
        return kelp_to_error(KELP_ERROR(KELP_UNIMPLEMENTED,
                                        "repository unregistration is not allowed if model control "
                                        "mode is not EXPLICIT"));
    pthread_mutex_lock(&s->table_lock);
    bool removed = forget_repository(s, repository_path);
    pthread_mutex_unlock(&s->table_lock);
    return removed ? NULL
                   : kelp_to_error(KELP_ERROR(KELP_NOT_FOUND,
                                              "failed to unregister '%s', repository not found",
                                              repository_path));
}

TRITONSERVER_Error *TRITONSERVER_ServerPollModelRepository(TRITONSERVER_Server *server) {
    if (!server)
        return kelp_abi_null(__func__, "server");
    if (of(server)->options->control_mode != TRITONSERVER_MODEL_CONTROL_POLL)
        return kelp_to_error(KELP_ERROR(KELP_UNAVAILABLE, "polling is disabled"));
    kelp_status *status = kelp_server_check_ready(of(server));
    return kelp_to_error(status ? status : kelp_server_poll(of(server)));
}

/* ---- loads ---- */

static kelp_status *check_control(kelp_server *server) {
    KELP_TRY(kelp_server_check_ready(server));
    if (server->options->control_mode != TRITONSERVER_MODEL_CONTROL_EXPLICIT)
        return KELP_ERROR(KELP_UNAVAILABLE,
                          "explicit model load / unload is not allowed if polling is enabled");
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerLoadModel(TRITONSERVER_Server *server,
                                                 const char *model_name) {
    if (!server || !model_name)
        return kelp_abi_null(__func__, server ? "model_name" : "server");
    kelp_status *status = check_control(of(server));
    return kelp_to_error(status ? status : kelp_server_load(of(server), model_name, NULL));
}

/* "config" and "file:…" parameters of a load. */
static kelp_status *read_parameters(const kelp_parameter **parameters, uint64_t count,
                                    const kelp_parameter **files, kelp_load_options *out) {
    for (uint64_t i = 0; i < count; i++) {
        const kelp_parameter *parameter = parameters[i];
        if (!parameter)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "load parameter %llu is NULL",
                              (unsigned long long)i);
        if (strcmp(parameter->name, "config") == 0) {
            if (parameter->type != TRITONSERVER_PARAMETER_STRING)
                return KELP_ERROR(KELP_INVALID_ARGUMENT,
                                  "Config parameter 'config' must have string type for its value");
            out->config_json = parameter->string;
        } else if (strncmp(parameter->name, "file:", 5) == 0) {
            if (parameter->type != TRITONSERVER_PARAMETER_BYTES)
                return KELP_ERROR(KELP_INVALID_ARGUMENT,
                                  "File parameter '%s' must have bytes type for its value",
                                  parameter->name);
            files[out->file_count++] = parameter;
        } else {
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "Unrecognized load parameter '%s' with type '%s'", parameter->name,
                              TRITONSERVER_ParameterTypeString(parameter->type));
        }
    }
    out->files = files;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerLoadModelWithParameters(TRITONSERVER_Server *server, const char *model_name,
                                           const TRITONSERVER_Parameter **parameters,
                                           const uint64_t parameter_count) {
    if (!server || !model_name || (!parameters && parameter_count))
        return kelp_abi_null(__func__, !server       ? "server"
                                       : !model_name ? "model_name"
                                                     : "parameters");
    kelp_allocator heap = kelp_allocator_system();
    const kelp_parameter **files = NULL;
    kelp_load_options options = {0};
    kelp_status *status = check_control(of(server));
    if (!status)
        status = kelp_alloc_zero(heap, parameter_count, sizeof *files, (void **)&files);
    if (!status)
        status = read_parameters((const kelp_parameter **)(void *)parameters, parameter_count,
                                 files, &options);
    if (!status)
        status = kelp_server_load(of(server), model_name, &options);
    kelp_free(heap, files, parameter_count * sizeof *files);
    return kelp_to_error(status);
}

TRITONSERVER_Error *TRITONSERVER_ServerUnloadModel(TRITONSERVER_Server *server,
                                                   const char *model_name) {
    if (!server || !model_name)
        return kelp_abi_null(__func__, server ? "model_name" : "server");
    kelp_status *status = check_control(of(server));
    return kelp_to_error(status ? status : kelp_server_unload(of(server), model_name));
}

TRITONSERVER_Error *TRITONSERVER_ServerUnloadModelAndDependents(TRITONSERVER_Server *server,
                                                                const char *model_name) {
    /* Models are loaded for others only by ensembles, which are not served. */
    return TRITONSERVER_ServerUnloadModel(server, model_name);
}
