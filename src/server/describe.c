/* SPDX-License-Identifier: Apache-2.0 */
/* What the server says of itself and its models: metadata, configuration, statistics, index. All as
 * JSON messages. */
#include "base/json.h"
#include "server/core/values.h"
#include "server/server.h"

#include <inttypes.h>
#include <stdio.h>

static kelp_server *of(TRITONSERVER_Server *handle) {
    return (kelp_server *)handle;
}

/* A JSON text under construction, which becomes a message. */
typedef struct composer {
    kelp_buf text;
    kelp_json_writer writer;
} composer;

static kelp_json_writer *begin(composer *c) {
    kelp_buf_init(&c->text, kelp_allocator_system());
    kelp_json_writer_init(&c->writer, &c->text);
    return &c->writer;
}

static TRITONSERVER_Error *finish(composer *c, kelp_status *status, TRITONSERVER_Message **out) {
    if (!status)
        status = kelp_message_create(&c->text, (kelp_message **)out);
    kelp_buf_deinit(&c->text);
    return kelp_to_error(status);
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

TRITONSERVER_Error *TRITONSERVER_ServerMetadata(TRITONSERVER_Server *server,
                                                TRITONSERVER_Message **server_metadata) {
    static const char *const extensions[] = {"classification",
                                             "sequence",
                                             "model_repository",
                                             "model_repository(unload_dependents)",
                                             "schedule_policy",
                                             "model_configuration",
                                             "system_shared_memory",
                                             "cuda_shared_memory",
                                             "binary_tensor_data",
                                             "parameters",
                                             "statistics",
                                             "trace",
                                             "logging"};
    if (!server || !server_metadata)
        return kelp_abi_null(__func__, server ? "server_metadata" : "server");
    composer c;
    kelp_json_writer *writer = begin(&c);
    kelp_json_begin_object(writer);
    put(writer, "name", of(server)->options->server_id);
    put(writer, "version", KELP_SERVER_VERSION);
    kelp_json_key(writer, "extensions");
    kelp_json_begin_array(writer);
    for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++)
        kelp_json_put_cstr(writer, extensions[i]);
    kelp_json_end_array(writer);
    kelp_json_end_object(writer);
    return finish(&c, NULL, server_metadata);
}

/* A model that stays for as long as this call looks at it. */
static TRITONSERVER_Error *look_up(const char *function, TRITONSERVER_Server *server,
                                   const char *name, int64_t version, const void *out,
                                   kelp_model **out_model) {
    if (!server || !name || !out)
        return kelp_abi_null(function, !server ? "server" : !name ? "model_name" : "an output");
    return kelp_to_error(kelp_server_find_model(of(server), name, version, out_model, NULL));
}

TRITONSERVER_Error *TRITONSERVER_ServerModelBatchProperties(TRITONSERVER_Server *server,
                                                            const char *model_name,
                                                            const int64_t model_version,
                                                            uint32_t *flags, void **voidp) {
    kelp_model *model = NULL;
    TRITONSERVER_Error *error = look_up(__func__, server, model_name, model_version, flags, &model);
    if (error)
        return error;
    *flags = model->config->max_batch_size > 0 ? TRITONSERVER_BATCH_FIRST_DIM
                                               : TRITONSERVER_BATCH_UNKNOWN;
    if (voidp)
        *voidp = NULL;
    kelp_model_release(model);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerModelTransactionProperties(TRITONSERVER_Server *server,
                                                                  const char *model_name,
                                                                  const int64_t model_version,
                                                                  uint32_t *txn_flags,
                                                                  void **voidp) {
    kelp_model *model = NULL;
    TRITONSERVER_Error *error =
        look_up(__func__, server, model_name, model_version, txn_flags, &model);
    if (error)
        return error;
    *txn_flags = model->decoupled ? TRITONSERVER_TXN_DECOUPLED : TRITONSERVER_TXN_ONE_TO_ONE;
    if (voidp)
        *voidp = NULL;
    kelp_model_release(model);
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

/* Every version that is ready, ascending. */
static void put_versions(kelp_json_writer *writer, kelp_server *server, const kelp_model *model) {
    kelp_json_key(writer, "versions");
    kelp_json_begin_array(writer);
    pthread_mutex_lock(&server->table_lock);
    const kelp_entry *entry = model->entry;
    for (size_t i = 0; i < entry->version_count; i++)
        if (entry->versions[i].model)
            put_version(writer, entry->versions[i].number);
    pthread_mutex_unlock(&server->table_lock);
    kelp_json_end_array(writer);
}

TRITONSERVER_Error *TRITONSERVER_ServerModelMetadata(TRITONSERVER_Server *server,
                                                     const char *model_name,
                                                     const int64_t model_version,
                                                     TRITONSERVER_Message **model_metadata) {
    kelp_model *model = NULL;
    TRITONSERVER_Error *error =
        look_up(__func__, server, model_name, model_version, model_metadata, &model);
    if (error)
        return error;
    const kelp_model_config *config = model->config;
    composer c;
    kelp_json_writer *writer = begin(&c);
    kelp_json_begin_object(writer);
    put(writer, "name", model->name);
    put_versions(writer, of(server), model);
    put(writer, "platform", config->platform[0] ? config->platform : config->backend);
    put_tensors(writer, "inputs", config->inputs, config->input_count, config->max_batch_size > 0);
    put_tensors(writer, "outputs", config->outputs, config->output_count,
                config->max_batch_size > 0);
    kelp_json_end_object(writer);
    kelp_model_release(model);
    return finish(&c, NULL, model_metadata);
}

TRITONSERVER_Error *TRITONSERVER_ServerModelConfig(TRITONSERVER_Server *server,
                                                   const char *model_name,
                                                   const int64_t model_version,
                                                   const uint32_t config_version,
                                                   TRITONSERVER_Message **model_config) {
    kelp_model *model = NULL;
    TRITONSERVER_Error *error =
        look_up(__func__, server, model_name, model_version, model_config, &model);
    if (error)
        return error;
    composer c;
    begin(&c);
    pthread_rwlock_rdlock(&model->change_lock);
    kelp_model_config *config = model->shown;
    kelp_model_config_retain(config);
    pthread_rwlock_unlock(&model->change_lock);
    kelp_status *status = kelp_model_config_to_json(config, config_version, &c.text);
    kelp_model_config_release(config);
    kelp_model_release(model);
    return finish(&c, status, model_config);
}

/* ---- statistics ---- */

static kelp_status *put_model_stats(kelp_json_writer *writer, kelp_model *model) {
    kelp_stats total;
    kelp_status *status = NULL;
    if (!kelp_model_enter(model))
        return NULL; /* its instances are going */
    kelp_stats_init(&total);
    status = kelp_stats_add(&total, &model->stats);
    pthread_rwlock_rdlock(&model->change_lock);
    for (size_t i = 0; i < model->instance_count && !status; i++)
        status = kelp_stats_add(&total, &model->instances[i]->stats);
    pthread_rwlock_unlock(&model->change_lock);
    if (!status)
        kelp_stats_write(&total, model->name, model->version, writer);
    kelp_stats_deinit(&total);
    kelp_model_leave(model);
    return status;
}

/* The models that statistics are asked of, each with a reference. */
typedef struct model_list {
    kelp_model **items;
    size_t count;
    size_t capacity;
} model_list;

static kelp_status *add_models(const kelp_entry *entry, int64_t version, model_list *list) {
    for (size_t i = 0; i < entry->version_count; i++) {
        kelp_model *model = entry->versions[i].model;
        if (!model || (version != -1 && entry->versions[i].number != version))
            continue;
        KELP_TRY(kelp_grow(kelp_allocator_system(), (void **)&list->items, &list->capacity,
                           list->count + 1, sizeof *list->items));
        kelp_model_retain(model);
        list->items[list->count++] = model;
    }
    return NULL;
}

static kelp_status *find_models(kelp_server *server, const char *name, int64_t version,
                                model_list *list) {
    kelp_status *status = NULL;
    const kelp_entry *only = NULL;
    if (name[0]) {
        kelp_model *model = NULL;
        KELP_TRY(kelp_server_find_model(server, name, version, &model, NULL));
        only = model->entry;
        kelp_model_release(model);
    }
    pthread_mutex_lock(&server->table_lock);
    for (const kelp_entry *entry = server->first_entry; entry && !status; entry = entry->next)
        if (!only || entry == only)
            status = add_models(entry, version, list);
    pthread_mutex_unlock(&server->table_lock);
    return status;
}

TRITONSERVER_Error *TRITONSERVER_ServerModelStatistics(TRITONSERVER_Server *server,
                                                       const char *model_name,
                                                       const int64_t model_version,
                                                       TRITONSERVER_Message **model_stats) {
    if (!server || !model_name || !model_stats)
        return kelp_abi_null(__func__, !server       ? "server"
                                       : !model_name ? "model_name"
                                                     : "model_stats");
    model_list list = {0};
    kelp_status *status = find_models(of(server), model_name, model_version, &list);
    composer c;
    kelp_json_writer *writer = begin(&c);
    kelp_json_begin_object(writer);
    kelp_json_key(writer, "model_stats");
    kelp_json_begin_array(writer);
    for (size_t i = 0; i < list.count; i++) {
        if (!status)
            status = put_model_stats(writer, list.items[i]);
        kelp_model_release(list.items[i]);
    }
    kelp_json_end_array(writer);
    kelp_json_end_object(writer);
    kelp_free(kelp_allocator_system(), list.items, list.capacity * sizeof *list.items);
    return finish(&c, status, model_stats);
}

/* ---- index ---- */

static void put_entry(kelp_json_writer *writer, const kelp_entry *entry, bool only_ready) {
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
        if (only_ready && version->state != KELP_VERSION_READY)
            continue;
        kelp_json_begin_object(writer);
        put(writer, "name", entry->name);
        kelp_json_key(writer, "version");
        put_version(writer, version->number);
        put(writer, "state", kelp_version_state_name(version->state));
        if (kelp_text_get(&version->reason)[0])
            put(writer, "reason", kelp_text_get(&version->reason));
        kelp_json_end_object(writer);
    }
}

TRITONSERVER_Error *TRITONSERVER_ServerModelIndex(TRITONSERVER_Server *server, uint32_t flags,
                                                  TRITONSERVER_Message **model_index) {
    if (!server || !model_index)
        return kelp_abi_null(__func__, server ? "model_index" : "server");
    kelp_server *s = of(server);
    bool only_ready = (flags & TRITONSERVER_INDEX_FLAG_READY) != 0;
    kelp_status *status = kelp_server_check_ready(s);
    if (!status && !only_ready)
        status = kelp_server_scan(s);
    composer c;
    kelp_json_writer *writer = begin(&c);
    kelp_json_begin_array(writer);
    pthread_mutex_lock(&s->table_lock);
    for (const kelp_entry *entry = s->first_entry; entry; entry = entry->next)
        put_entry(writer, entry, only_ready);
    pthread_mutex_unlock(&s->table_lock);
    kelp_json_end_array(writer);
    return finish(&c, status, model_index);
}
