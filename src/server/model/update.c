/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of the instances of a model while requests run. */
#include "base/assert.h"
#include "server/model/model.h"

/* A prepared update. */
struct kelp_model_update {
    kelp_model *model;
    kelp_model_config *config;
    kelp_message *json;
    bool *stays;           /* one element for each previous instance */
    size_t before;         /* number of previous instances */
    kelp_instance **fresh; /* `wanted` entries */
    size_t fresh_count, wanted;
};

static void update_destroy(kelp_model_update *u) {
    kelp_allocator heap = u->model->base.host->allocator;
    kelp_free(heap, u->stays, (u->before + 1) * sizeof *u->stays);
    kelp_free(heap, u->fresh, u->wanted * sizeof *u->fresh);
    kelp_message_destroy(u->json);
    kelp_model_config_release(u->config);
    kelp_free(heap, u, sizeof *u);
}

/* Marks an instance that can stay as one of the group; returns false if there is none. */
static bool keep_one(kelp_model_update *u, const char *key) {
    KELP_ASSERT(key != NULL);
    for (size_t i = 0; i < u->before; i++) {
        const kelp_instance *instance = u->model->instances[i];
        if (!u->stays[i] && !instance->removed && strcmp(instance->key, key) == 0)
            return u->stays[i] = true;
    }
    return false;
}

static kelp_status *add_fresh(kelp_model_update *u, size_t group, int32_t index) {
    KELP_ASSERT(u->fresh_count < u->wanted);
    KELP_TRY(kelp_instance_create(u->model, u->config, group, index, &u->fresh[u->fresh_count]));
    u->fresh_count++;
    return NULL;
}

static kelp_status *plan_group(kelp_model_update *u, size_t group) {
    char *key = NULL;
    size_t capacity = 0;
    kelp_status *status = NULL;
    KELP_TRY(kelp_instance_key(u->config, group, &key, &capacity));
    for (int32_t k = 0; k < u->config->instance_groups[group].count && status == NULL; k++)
        if (!keep_one(u, key))
            status = add_fresh(u, group, k);
    kelp_free(u->config->allocator, key, capacity);
    return status;
}

static kelp_status *plan_update(kelp_model_update *u, const kelp_model_config *config) {
    kelp_model *model = u->model;
    kelp_allocator heap = model->base.host->allocator;
    kelp_model_config *grouped = NULL;
    KELP_TRY(kelp_alloc_zero(heap, u->before + 1, sizeof *u->stays, (void **)&u->stays));
    KELP_TRY(kelp_model_config_regroup(model->shown, config, &grouped));
    kelp_status *status =
        kelp_model_config_prefer(grouped, model->backend->attribute.groups,
                                 model->backend->attribute.group_count, 0, &u->config);
    kelp_model_config_release(grouped);
    if (status != NULL)
        return status;
    KELP_TRY(kelp_model_config_message(u->config, &u->json));
    size_t wanted = 0;
    KELP_TRY(kelp_instances_count(model, u->config, &wanted));
    KELP_TRY(kelp_alloc_zero(heap, wanted, sizeof *u->fresh, (void **)&u->fresh));
    u->wanted = wanted;
    for (size_t i = 0; i < u->config->instance_group_count; i++)
        KELP_TRY(plan_group(u, i));
    for (size_t i = 0; i < u->before; i++)
        if (!u->stays[i] && kelp_instance_is_executing(model->instances[i]))
            return KELP_ERROR(KELP_FAILED_PRECONDITION,
                              "instance '%s' cannot be removed by a request that it executes",
                              model->instances[i]->name);
    /* Reserve memory before the instances are initialized, so that a commit cannot fail. */
    pthread_rwlock_wrlock(&model->change_lock);
    status = kelp_grow(heap, (void **)&model->instances, &model->instance_capacity,
                       model->instance_count + u->fresh_count, sizeof *model->instances);
    pthread_rwlock_unlock(&model->change_lock);
    return status;
}

/* Stops and finalizes an instance. */
static void retire_instance(kelp_instance *instance) {
    if (instance->initialized && !instance->passive)
        kelp_instance_pool_remove(&instance->model->scheduler.pool, &instance->base);
    kelp_instance_end(instance);
    kelp_status_free(kelp_stats_set_usage(&instance->base.stats, NULL, 0));
}

/* Removes the new instances. Those that were initialized stay in memory for late reports. */
static void abandon(kelp_model_update *u) {
    kelp_model *model = u->model;
    bool reserved = model->instance_count + u->fresh_count <= model->instance_capacity;
    for (size_t i = 0; i < u->fresh_count; i++) {
        retire_instance(u->fresh[i]);
        u->fresh[i]->removed = true;
        if (!reserved) /* then no instance was initialized */
            kelp_instance_destroy(u->fresh[i]);
    }
    pthread_rwlock_wrlock(&model->change_lock);
    for (size_t i = 0; reserved && i < u->fresh_count; i++)
        model->instances[model->instance_count++] = u->fresh[i];
    pthread_rwlock_unlock(&model->change_lock);
}

static void commit(kelp_model_update *u) {
    kelp_model *model = u->model;
    kelp_message *json = model->config_json;
    kelp_model_config *shown = model->shown;
    KELP_ASSERT(model->instance_count == u->before);
    KELP_ASSERT(u->before + u->fresh_count <= model->instance_capacity);
    pthread_rwlock_wrlock(&model->change_lock);
    for (size_t i = 0; i < u->before; i++)
        model->instances[i]->removed |= !u->stays[i];
    for (size_t i = 0; i < u->fresh_count; i++)
        model->instances[model->instance_count++] = u->fresh[i];
    model->config_json = u->json;
    model->shown = u->config;
    pthread_rwlock_unlock(&model->change_lock);
    u->json = json;
    u->config = shown;
    for (size_t i = 0; i < u->before; i++)
        if (!u->stays[i] && model->instances[i]->begun)
            retire_instance(model->instances[i]);
}

kelp_status *kelp_model_prepare_update(kelp_model *model, const kelp_model_config *config,
                                       kelp_model_update **out) {
    kelp_model_update *u = NULL;
    KELP_TRY(KELP_NEW(model->base.host->allocator, kelp_model_update, &u));
    u->model = model;
    u->before = model->instance_count;
    kelp_status *status = plan_update(u, config);
    if (status == NULL)
        status = kelp_instances_begin(model, u->fresh, u->fresh_count);
    if (status != NULL)
        kelp_model_cancel_update(u);
    else
        *out = u;
    return status;
}

void kelp_model_commit_update(kelp_model_update *take_update) {
    commit(take_update);
    update_destroy(take_update);
}

void kelp_model_cancel_update(kelp_model_update *take_update) {
    if (take_update == NULL)
        return;
    abandon(take_update);
    update_destroy(take_update);
}
