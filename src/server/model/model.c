/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded models: made, counted, retired, finalized; see model.h. */
#include "server/model/model.h"

#include "base/clock.h"
#include "base/fs.h"
#include "server/core/log.h"
#include "server/config/schema.h"
#include "server/repository/agents.h"
#include "server/repository/scan.h"
#include "server/server.h"

#include <inttypes.h>
#include <stdio.h>

kelp_status *kelp_model_config_message(const kelp_model_config *config, kelp_message **out) {
    kelp_buf json;
    kelp_buf_init(&json, kelp_allocator_system());
    kelp_status *status = kelp_model_config_to_json(config, 1, &json);
    if (!status)
        status = kelp_message_create(&json, out);
    kelp_buf_deinit(&json);
    return status;
}

static kelp_status *write_config(kelp_model *model) {
    kelp_message *message = NULL;
    KELP_TRY(kelp_model_config_message(model->config, &message));
    kelp_message_destroy(model->config_json);
    model->config_json = message;
    return NULL;
}

kelp_status *kelp_model_complete_config(kelp_model *model, const char *json, size_t length) {
    if (!model->initializing)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the configuration of model '%s' can be set only while the model is "
                          "initialized",
                          model->name);
    kelp_model_config *completed = NULL;
    KELP_TRY(kelp_model_config_complete(model->config, json, length, &completed));
    kelp_model_config_release(model->config);
    model->config = completed;
    return write_config(model);
}

static kelp_status *check_scheduling(const kelp_model *model) {
    const char *what = NULL;
    if (model->config->scheduling == KELP_SCHEDULING_ENSEMBLE)
        what = "is an ensemble";
    else if (model->config->scheduling == KELP_SCHEDULING_SEQUENCE)
        what = "batches sequences";
    if (what)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "model '%s' %s, which is not supported", model->name,
                          what);
    return NULL;
}

static kelp_status *acquire_backend(kelp_model *model) {
    kelp_server *server = model->server;
    const kelp_backend_query query = {.name = model->config->backend,
                                      .library = model->config->runtime,
                                      .version_directory = model->version_directory,
                                      .model_directory = model->directory,
                                      .options = server->options};
    KELP_TRY(kelp_backend_acquire(&query, &model->backend));
    KELP_TRY(kelp_server_keep_backend(server, model->backend));
    kelp_model_config *preferred = NULL;
    KELP_TRY(kelp_model_config_prefer(model->config, model->backend->attribute.groups,
                                      model->backend->attribute.group_count, 0, &preferred));
    kelp_model_config_release(model->config);
    model->config = preferred;
    if (model->backend->python_based) {
        /* Which tells the library of "python" that the code is the backend's, not the model's. */
        kelp_config_value *runtime = kelp_config_set(preferred->arena, preferred->tree, "runtime");
        if (!runtime)
            return kelp_status_oom();
        runtime->text = KELP_STR("model.py");
        preferred->runtime = "model.py";
    }
    return write_config(model);
}

/* Answers of other files or another configuration must not be taken for this model's. */
static kelp_status *prepare_cache(kelp_model *model) {
    if (!model->config->response_cache)
        return NULL;
    if (model->decoupled)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "model '%s': response_cache cannot be enabled for a decoupled model",
                          model->name);
    if (!model->server->cache) {
        KELP_SERVER_LOG(KELP_LOG_WARNING,
                        "model '%s' enables response_cache, but the server has no cache: it is "
                        "served without",
                        model->name);
        return NULL;
    }
    int64_t signature = 0;
    KELP_TRY(kelp_scan_signature(model->directory, &signature));
    model->fingerprint =
        kelp_hash_bytes(model->config_json->text, model->config_json->length) ^ (uint64_t)signature;
    model->cached = true;
    return NULL;
}

/* As the configuration says, else as the backend says. */
static kelp_status *choose_execution(kelp_model *model, kelp_execution *out) {
    static const char key[] = "kelp_execute_on";
    const char *where = kelp_model_config_parameter(model->config, key);
    const kelp_backend *backend = model->backend;
    *out = (kelp_execution){0};
    if (where && strcmp(where, "caller") == 0)
        out->on_caller = true;
    else if (where && strcmp(where, "instance") != 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "model '%s': parameter '%s': expected caller or instance, found '%s'",
                          model->name, key, where);
    else if (!where && backend->fn.inline_execute)
        out->on_caller = true;
    else if (!where && backend->may_block &&
             !backend->may_block((TRITONBACKEND_Model *)model, NULL))
        *out = (kelp_execution){.on_caller = true, .may_block = backend->may_block};
    return NULL;
}

static kelp_status *initialize(kelp_model *model) {
    KELP_TRY(check_scheduling(model));
    KELP_TRY(acquire_backend(model));
    model->auto_complete = !model->server->options->strict_model_config;
    model->begun = true; /* see instance.c */
    if (model->backend->fn.model_init) {
        model->initializing = true;
        TRITONSERVER_Error *error = model->backend->fn.model_init((TRITONBACKEND_Model *)model);
        model->initializing = false;
        KELP_TRY(kelp_from_error(error));
    }
    KELP_TRY(check_scheduling(model));
    KELP_TRY(kelp_model_config_validate(model->config));
    model->decoupled = model->config->decoupled;
    KELP_TRY(kelp_model_load_labels(model));
    KELP_TRY(prepare_cache(model));
    KELP_TRY(kelp_latency_create(&model->server->latency_rules, model->config, model->cached,
                                 &model->latency));
    model->stats.latency = model->latency;
    kelp_execution execution;
    KELP_TRY(choose_execution(model, &execution));
    kelp_scheduler_init(&model->scheduler, model->config, execution);
    model->scheduling = true;
    return kelp_model_create_instances(model);
}

kelp_status *kelp_model_create(kelp_server *server, kelp_entry *entry, int64_t version,
                               const char *directory, kelp_model_config *take_config,
                               kelp_model **out) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_model *model = NULL;
    kelp_status *status = KELP_NEW(heap, kelp_model, &model);
    if (status) {
        kelp_model_config_release(take_config);
        return status;
    }
    uint64_t start_ns = kelp_now_ns();
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, version);
    atomic_store(&model->refs, 1);
    kelp_stats_init(&model->stats);
    model->server = server;
    kelp_server_retain(server);
    model->version = version;
    model->config = model->origin = take_config;
    kelp_model_config_retain(model->origin);
    model->entry = entry;
    pthread_rwlock_init(&model->change_lock, NULL);
    status = kelp_strdup(heap, entry->name, &model->name);
    if (!status)
        status = kelp_strdup(heap, directory, &model->directory);
    if (!status)
        status = kelp_fs_join(heap, directory, number, &model->version_directory);
    if (!status) /* first: what changes from here on is seen later */
        status = kelp_scan_files(directory, version, &model->files);
    if (!status)
        status = initialize(model);
    if (status) {
        kelp_model_finalize(model);
        kelp_model_release(model);
        return status;
    }
    model->shown = model->config;
    kelp_model_config_retain(model->shown);
    model->load_ns = kelp_now_ns() - start_ns;
    *out = model;
    return NULL;
}

void kelp_model_finalize(kelp_model *model) {
    kelp_model_destroy_instances(model);
    if (model->begun && model->backend->fn.model_fini)
        kelp_server_log_status(
            "failed to finalize a model",
            kelp_from_error(model->backend->fn.model_fini((TRITONBACKEND_Model *)model)));
    model->begun = false;
    if (model->scheduling)
        kelp_scheduler_deinit(&model->scheduler);
    model->scheduling = false;
    kelp_backend_release(model->backend);
    model->backend = NULL;
    kelp_agent_chain_release(model->agents);
    model->agents = NULL;
}

void kelp_model_retain(kelp_model *model) {
    atomic_fetch_add_explicit(&model->refs, 1, memory_order_relaxed);
}

void kelp_model_release(kelp_model *model) {
    if (atomic_fetch_sub_explicit(&model->refs, 1, memory_order_acq_rel) != 1)
        return;
    kelp_allocator heap = kelp_allocator_system();
    kelp_server *server = model->server;
    kelp_model_free_labels(model);
    kelp_stats_deinit(&model->stats);
    kelp_latency_destroy(model->latency);
    kelp_message_destroy(model->config_json);
    kelp_model_config_release(model->config);
    kelp_model_config_release(model->origin);
    kelp_model_config_release(model->shown);
    pthread_rwlock_destroy(&model->change_lock);
    kelp_free_string(heap, model->name);
    kelp_free_string(heap, model->directory);
    kelp_free_string(heap, model->version_directory);
    kelp_free(heap, model, sizeof *model);
    kelp_server_release(server);
}

bool kelp_model_enter(kelp_model *model) {
    unsigned live = atomic_load_explicit(&model->live, memory_order_relaxed);
    do {
        if (live & KELP_MODEL_RETIRED)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&model->live, &live, live + 1,
                                                    memory_order_acquire, memory_order_relaxed));
    return true;
}

void kelp_model_leave(kelp_model *model) {
    if (atomic_fetch_sub_explicit(&model->live, 1, memory_order_acq_rel) ==
        (KELP_MODEL_RETIRED | 1u))
        kelp_server_reap(model->server, model);
}

void kelp_model_retire(kelp_model *model) {
    kelp_agent_chain_unload(model->agents);
    if (atomic_fetch_or_explicit(&model->live, KELP_MODEL_RETIRED, memory_order_acq_rel) == 0)
        kelp_server_reap(model->server, model);
}
