/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of the server and its models, as JSON: metadata, configuration, statistics, index.
 */
#include "base/assert.h"
#include "base/text/json.h"
#include "server/server.h"

#include <inttypes.h>
#include <stdio.h>

/* A JSON text that becomes a message. */
typedef struct composer {
    kelp_buf text;
    kelp_json_writer writer;
} composer;

static kelp_json_writer *begin(composer *c, const kelp_server *server) {
    kelp_buf_init(&c->text, server->host.base.allocator);
    kelp_json_writer_init(&c->writer, &c->text);
    return &c->writer;
}

static kelp_status *finish(composer *c, kelp_status *status, kelp_message **out) {
    if (status == NULL)
        status = kelp_message_create(&c->text, out);
    kelp_buf_deinit(&c->text);
    return status;
}

static void put(kelp_json_writer *writer, const char *key, const char *value) {
    kelp_json_key(writer, key);
    kelp_json_put_cstr(writer, value);
}

static void put_version(kelp_json_writer *writer, int64_t version) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, version);
    kelp_json_put_cstr(writer, text);
}

kelp_status *kelp_server_describe(kelp_server *server, kelp_message **out) {
    static const char *const extensions[] = {"classification",
                                             "sequence",
                                             "model_repository",
                                             "model_repository(unload_dependents)",
                                             "schedule_policy",
                                             "model_configuration",
                                             "system_shared_memory",
                                             "binary_tensor_data",
                                             "parameters",
                                             "statistics",
                                             "trace",
                                             "logging"};
    composer c;
    kelp_json_writer *writer = begin(&c, server);
    kelp_json_begin_object(writer);
    put(writer, "name", server->host.options->server_id);
    put(writer, "version", KELP_SERVER_VERSION);
    kelp_json_key(writer, "extensions");
    kelp_json_begin_array(writer);
    for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++)
        kelp_json_put_cstr(writer, extensions[i]);
    kelp_json_end_array(writer);
    kelp_json_end_object(writer);
    return finish(&c, NULL, out);
}

/* ---- models ---- */

kelp_status *kelp_server_model_properties(kelp_server *server, const char *name, int64_t version,
                                          bool *out_batches, bool *out_decoupled) {
    kelp_model *model = NULL;
    KELP_TRY(kelp_repository_find(&server->repository, name, version, &model, NULL));
    *out_batches = model->base.config->max_batch_size > 0;
    *out_decoupled = model->base.decoupled;
    kelp_model_release(&model->base);
    return NULL;
}

static void put_tensors(kelp_json_writer *writer, const char *key, const kelp_config_io *ios,
                        size_t count, bool batched) {
    kelp_json_key(writer, key);
    kelp_json_begin_array(writer);
    for (size_t i = 0; i < count; i++) {
        kelp_json_begin_object(writer);
        put(writer, "name", ios[i].name);
        put(writer, "datatype", TRITONSERVER_DataTypeString(ios[i].data_type));
        kelp_json_key(writer, "shape");
        kelp_json_begin_array(writer);
        if (batched && !ios[i].is_shape_tensor)
            kelp_json_put_i64(writer, -1);
        for (uint32_t k = 0; k < ios[i].rank; k++)
            kelp_json_put_i64(writer, ios[i].dims[k]);
        kelp_json_end_array(writer);
        kelp_json_end_object(writer);
    }
    kelp_json_end_array(writer);
}

/* Writes the versions that are ready, in ascending order. */
static void put_versions(kelp_json_writer *writer, kelp_repository *repository,
                         const kelp_model *model) {
    kelp_json_key(writer, "versions");
    kelp_json_begin_array(writer);
    pthread_mutex_lock(&repository->lock);
    const kelp_entry *entry = model->entry;
    KELP_ASSERT(entry != NULL); /* a model that was found is in the table */
    for (size_t i = 0; i < entry->version_count; i++)
        if (entry->versions[i].model != NULL)
            put_version(writer, entry->versions[i].number);
    pthread_mutex_unlock(&repository->lock);
    kelp_json_end_array(writer);
}

kelp_status *kelp_server_describe_model(kelp_server *server, const char *name, int64_t version,
                                        kelp_message **out) {
    kelp_model *model = NULL;
    KELP_TRY(kelp_repository_find(&server->repository, name, version, &model, NULL));
    const kelp_model_config *config = model->base.config;
    composer c;
    kelp_json_writer *writer = begin(&c, server);
    kelp_json_begin_object(writer);
    put(writer, "name", model->base.name);
    put_versions(writer, &server->repository, model);
    put(writer, "platform", config->platform[0] ? config->platform : config->backend);
    put_tensors(writer, "inputs", config->inputs, config->input_count, config->max_batch_size > 0);
    put_tensors(writer, "outputs", config->outputs, config->output_count,
                config->max_batch_size > 0);
    kelp_json_end_object(writer);
    kelp_model_release(&model->base);
    return finish(&c, NULL, out);
}

kelp_status *kelp_server_model_config(kelp_server *server, const char *name, int64_t version,
                                      uint32_t config_version, kelp_message **out) {
    kelp_model *model = NULL;
    composer c;
    KELP_TRY(kelp_repository_find(&server->repository, name, version, &model, NULL));
    begin(&c, server);
    pthread_rwlock_rdlock(&model->change_lock);
    kelp_model_config *config = model->shown;
    KELP_ASSERT(config != NULL);
    kelp_model_config_retain(config);
    pthread_rwlock_unlock(&model->change_lock);
    kelp_status *status = kelp_model_config_to_json(config, config_version, &c.text);
    kelp_model_config_release(config);
    kelp_model_release(&model->base);
    return finish(&c, status, out);
}

/* ---- statistics ---- */

static kelp_status *put_model_stats(kelp_json_writer *writer, kelp_model *model) {
    kelp_stats total;
    if (!kelp_model_enter(&model->base))
        return NULL; /* the model is being unloaded */
    kelp_stats_init(&total, model->base.host->allocator);
    kelp_status *status = kelp_model_add_stats(model, &total);
    if (status == NULL)
        kelp_stats_write(&total, model->base.name, model->base.version, writer);
    kelp_stats_deinit(&total);
    kelp_model_leave(&model->base);
    return status;
}

static kelp_status *find_models(kelp_server *server, const char *name, int64_t version,
                                kelp_model_list *list) {
    const kelp_entry *only = NULL;
    *list = (kelp_model_list){0};
    if (name[0]) {
        kelp_model *model = NULL;
        KELP_TRY(kelp_repository_find(&server->repository, name, version, &model, NULL));
        only = model->entry;
        kelp_model_release(&model->base);
    }
    return kelp_repository_list(&server->repository, only, version, list);
}

kelp_status *kelp_server_model_stats(kelp_server *server, const char *name, int64_t version,
                                     kelp_message **out) {
    kelp_model_list list;
    composer c;
    kelp_status *status = find_models(server, name, version, &list);
    if (status != NULL && name[0]) /* the first part of the message is Triton's */
        status = KELP_ANNOTATE(status, "requested model%s '%s'%s",
                               version == -1 ? "" : " version is not available for model", name,
                               version == -1 ? " is not available" : "");
    kelp_json_writer *writer = begin(&c, server);
    kelp_json_begin_object(writer);
    kelp_json_key(writer, "model_stats");
    kelp_json_begin_array(writer);
    for (size_t i = 0; i < list.count && status == NULL; i++)
        status = put_model_stats(writer, list.items[i]);
    kelp_json_end_array(writer);
    kelp_json_end_object(writer);
    kelp_model_list_deinit(&list);
    return finish(&c, status, out);
}

/* ---- index ---- */

/* Why the ensembles among some models cannot serve at present. Elements without a reason are NULL.
 */
typedef struct reasons {
    kelp_model_list models;
    kelp_status **items; /* one for each model */
} reasons;

/* Checks the ensembles. The table is not locked, because a check enters and leaves models. */
static kelp_status *find_reasons(kelp_repository *repository, reasons *out) {
    *out = (reasons){0};
    KELP_TRY(kelp_repository_list(repository, NULL, -1, &out->models));
    KELP_TRY(kelp_alloc_zero(out->models.allocator, out->models.count, sizeof *out->items,
                             (void **)&out->items));
    for (size_t i = 0; i < out->models.count; i++)
        if (out->models.items[i]->ensemble != NULL)
            out->items[i] = kelp_ensemble_check(out->models.items[i]->ensemble);
    return NULL;
}

static void reasons_deinit(reasons *list) {
    for (size_t i = 0; list->items != NULL && i < list->models.count; i++)
        kelp_status_free(list->items[i]);
    kelp_free(list->models.allocator, list->items, list->models.count * sizeof *list->items);
    kelp_model_list_deinit(&list->models);
}

/* Returns the reason why a version that is loaded cannot serve, or NULL. */
static const kelp_status *reason_of(const reasons *list, const kelp_version *version) {
    for (size_t i = 0; version->model != NULL && i < list->models.count; i++)
        if (list->models.items[i] == version->model)
            return list->items[i];
    return NULL;
}

static void put_entry(kelp_json_writer *writer, const kelp_entry *entry, bool only_ready,
                      const reasons *unready) {
    if (entry->version_count == 0 && entry->present && !only_ready) {
        kelp_json_begin_object(writer);
        put(writer, "name", entry->name);
        if (entry->conflict) {
            put(writer, "state", kelp_version_state_name(KELP_VERSION_UNAVAILABLE));
            put(writer, "reason", "model appears in two or more repositories");
        } else if (kelp_text_get(&entry->failure)[0]) {
            put(writer, "version", "");
            put(writer, "state", kelp_version_state_name(KELP_VERSION_UNAVAILABLE));
            put(writer, "reason", kelp_text_get(&entry->failure));
        }
        kelp_json_end_object(writer);
    }
    for (size_t i = 0; i < entry->version_count; i++) {
        const kelp_version *version = &entry->versions[i];
        const kelp_status *reason = reason_of(unready, version);
        if (!entry->present && version->state == KELP_VERSION_UNAVAILABLE)
            continue; /* no repository has the model any more */
        if (only_ready && (version->state != KELP_VERSION_READY || reason != NULL))
            continue;
        kelp_json_begin_object(writer);
        put(writer, "name", entry->name);
        kelp_json_key(writer, "version");
        put_version(writer, version->number);
        put(writer, "state",
            kelp_version_state_name(reason != NULL ? KELP_VERSION_UNAVAILABLE : version->state));
        if (reason != NULL)
            put(writer, "reason", kelp_status_message(reason));
        else if (kelp_text_get(&version->reason)[0])
            put(writer, "reason", kelp_text_get(&version->reason));
        kelp_json_end_object(writer);
    }
}

kelp_status *kelp_server_index(kelp_server *server, bool only_ready, kelp_message **out) {
    kelp_repository *repository = &server->repository;
    composer c;
    KELP_TRY(kelp_server_check_ready(server));
    if (!only_ready)
        KELP_TRY(kelp_repository_scan(repository));
    reasons unready;
    kelp_status *status = find_reasons(repository, &unready);
    kelp_json_writer *writer = begin(&c, server);
    kelp_json_begin_array(writer);
    pthread_mutex_lock(&repository->lock);
    for (const kelp_entry *entry = repository->first_entry; entry != NULL && status == NULL;
         entry = entry->next)
        put_entry(writer, entry, only_ready, &unready);
    pthread_mutex_unlock(&repository->lock);
    kelp_json_end_array(writer);
    reasons_deinit(&unready);
    return finish(&c, status, out);
}
