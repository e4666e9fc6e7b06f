/* SPDX-License-Identifier: Apache-2.0 */
/* Creation, initialization and destruction of instances, on the threads that load the model. */
#include "base/assert.h"
#include "base/text/json.h"
#include "base/sync/thread.h"
#include "server/core/error.h"
#include "server/core/log.h"
#include "server/model/model.h"

#include <stdio.h>
#include <stdlib.h>

/* Creates {"POLICY":{settings}}. */
static kelp_status *write_host_policy(kelp_allocator allocator, const kelp_server_options *options,
                                      const char *name, kelp_message **out) {
    kelp_buf json;
    kelp_json_writer writer;
    kelp_buf_init(&json, allocator);
    kelp_json_writer_init(&writer, &json);
    kelp_json_begin_object(&writer);
    kelp_json_key(&writer, name);
    kelp_json_begin_object(&writer);
    for (size_t i = 0; i < options->host_policies.count; i++) {
        const kelp_setting *setting = &options->host_policies.items[i];
        if (strcmp(setting->owner, name) != 0)
            continue;
        kelp_json_key(&writer, setting->name);
        kelp_json_put_cstr(&writer, setting->value);
    }
    kelp_json_end_object(&writer);
    kelp_json_end_object(&writer);
    kelp_status *status = kelp_message_create(&json, out);
    kelp_buf_deinit(&json);
    return status;
}

kelp_status *kelp_instance_key(const kelp_model_config *config, size_t group, char **out,
                               size_t *out_capacity) {
    kelp_buf text;
    size_t length;
    kelp_buf_init(&text, config->allocator);
    kelp_status *status = kelp_model_config_group_key(config, group, &text);
    if (status == NULL && kelp_buf_cstr(&text) == NULL)
        status = kelp_status_oom();
    if (status == NULL)
        *out = kelp_buf_take(&text, &length, out_capacity);
    kelp_buf_deinit(&text);
    return status;
}

static kelp_status *configure(kelp_instance *instance, size_t group_index, int32_t index) {
    const kelp_model_host *host = kelp_model_host_of(instance->model);
    kelp_allocator allocator = host->base.allocator;
    const kelp_config_instance_group *group = &instance->config->instance_groups[group_index];
    instance->group = group;
    instance->kind = group->kind;
    instance->passive = group->passive;
    instance->profiles = group->profiles;
    instance->profile_count = group->profile_count;
    char name[320];
    snprintf(name, sizeof name, "%s_%d", group->name, index);
    KELP_TRY(kelp_strdup(allocator, name, &instance->name));
    KELP_TRY(
        kelp_instance_key(instance->config, group_index, &instance->key, &instance->key_capacity));
    KELP_TRY(kelp_host_policy_cpus(host->options, group, &instance->cpus));
    return write_host_policy(allocator, host->options, kelp_host_policy_of(group),
                             &instance->host_policy);
}

kelp_status *kelp_instance_create(kelp_model *model, kelp_model_config *config, size_t group_index,
                                  int32_t index, kelp_instance **out) {
    kelp_allocator allocator = model->base.host->allocator;
    kelp_instance *instance = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_instance, &instance));
    kelp_stats_init(&instance->base.stats, allocator);
    instance->base.stats.latency = model->base.latency;
    instance->model = model;
    instance->config = config;
    kelp_model_config_retain(config);
    kelp_status *status = configure(instance, group_index, index);
    if (status != NULL)
        kelp_instance_destroy(instance);
    else
        *out = instance;
    return status;
}

bool kelp_instances_need_threads(const kelp_model *model, const kelp_model_config *config) {
    const kelp_model_host *host = kelp_model_host_of(model);
    for (size_t i = 0; i < config->instance_group_count; i++) {
        const kelp_config_instance_group *group = &config->instance_groups[i];
        if (kelp_host_policy_restricts(host->options, group) ||
            (group->resource_count > 0 && host->rate_limiter != NULL))
            return true;
    }
    return false;
}

/* Initializes an instance on a thread that runs on the CPUs of the instance. */
static kelp_status *initialize_here(kelp_instance *instance) {
    KELP_ASSERT(!instance->begun && !instance->initialized);
    kelp_model *model = instance->model;
    kelp_rate_limiter *limiter = kelp_model_host_of(model)->rate_limiter;
    if (limiter != NULL && !instance->passive && instance->group->resource_count > 0)
        KELP_TRY(kelp_rate_limiter_add(limiter, instance->group, instance->device_id,
                                       instance->name, &instance->base.ticket));
    /* Before the call, as in Triton: a backend may have stored its state before it fails. */
    instance->begun = true;
    if (model->backend->fn.instance_init != NULL)
        KELP_TRY(kelp_from_error(
            model->backend->fn.instance_init((TRITONBACKEND_ModelInstance *)instance)));
    KELP_SERVER_LOG(KELP_LOG_VERBOSE, "created model instance named '%s' on device type '%s'",
                    instance->name, TRITONSERVER_InstanceGroupKindString(instance->kind));
    if (!instance->passive)
        KELP_TRY(
            kelp_instance_pool_add(&model->scheduler.pool, &instance->base,
                                   model->base.config->has_warmup ? kelp_instance_warm_up : NULL));
    instance->initialized = true;
    return NULL;
}

static kelp_status *initialize(kelp_instance *instance) {
    kelp_cpu_set previous;
    kelp_status *status = kelp_cpu_set_enter(&instance->cpus, &previous);
    if (status == NULL)
        status = initialize_here(instance);
    kelp_cpu_set_leave(&previous);
    return status;
}

/* Instances that several threads initialize. */
typedef struct batch {
    kelp_instance **instances;
    size_t count;
    atomic_size_t next;
    kelp_status **failures; /* one for each instance */
} batch;

static void *initialize_some(void *userp) {
    batch *all = userp;
    size_t index;
    while ((index = atomic_fetch_add(&all->next, 1)) < all->count)
        all->failures[index] = initialize(all->instances[index]);
    return NULL;
}

/* Initializes instances concurrently, with a limited number of threads; returns the first failure
 * in the order of the instances. */
static kelp_status *initialize_in_parallel(kelp_allocator heap, kelp_instance **instances,
                                           size_t count) {
    enum { MAX_THREADS = 64 };
    pthread_t threads[MAX_THREADS];
    size_t started = 0;
    batch all = {.instances = instances, .count = count};
    KELP_TRY(kelp_alloc_zero(heap, count, sizeof *all.failures, (void **)&all.failures));
    while (started + 1 < count && started < MAX_THREADS) {
        kelp_status *status =
            kelp_thread_start(&threads[started], "kelp-init", initialize_some, &all);
        if (status != NULL) {
            kelp_status_free(status); /* fewer threads initialize the same instances */
            break;
        }
        started++;
    }
    initialize_some(&all);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    kelp_status *status = NULL;
    for (size_t i = 0; i < count; i++) {
        if (status == NULL)
            status = all.failures[i];
        else
            kelp_status_free(all.failures[i]);
    }
    kelp_free(heap, all.failures, count * sizeof *all.failures);
    return status;
}

/* Returns true if the backend declares support for concurrent initialization. */
static bool is_parallel(const kelp_model *model, size_t count) {
    const char *forced = getenv("TRITON_PARALLEL_INSTANCE_LOADING");
    return count > 1 && (model->backend->attribute.parallel_loading ||
                         (forced != NULL && strcmp(forced, "1") == 0));
}

kelp_status *kelp_instances_begin(kelp_model *model, kelp_instance **instances, size_t count) {
    if (is_parallel(model, count))
        return initialize_in_parallel(model->base.host->allocator, instances, count);
    for (size_t i = 0; i < count; i++)
        KELP_TRY(initialize(instances[i]));
    return NULL;
}

kelp_status *kelp_instances_count(const kelp_model *model, const kelp_model_config *config,
                                  size_t *out_total) {
    enum { MAX_INSTANCES = 4096 };
    size_t total = 0;
    bool executes = false;
    for (size_t i = 0; i < config->instance_group_count; i++) {
        const kelp_config_instance_group *group = &config->instance_groups[i];
        if (group->kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "instance group %s of model %s has kind KIND_GPU but no GPUs are "
                              "available",
                              group->name, model->base.name);
        total += group->count > 0 ? (size_t)group->count : 0;
        executes |= group->count > 0 && !group->passive;
        if (total > MAX_INSTANCES)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "model '%s' has too many instances: expected at most %d",
                              model->base.name, MAX_INSTANCES);
    }
    *out_total = total;
    return executes
               ? NULL
               : KELP_ERROR(KELP_INVALID_ARGUMENT, "model '%s' has no instance that is not passive",
                            model->base.name);
}

kelp_status *kelp_model_create_instances(kelp_model *model) {
    kelp_model_config *config = model->base.config;
    size_t total = 0;
    KELP_TRY(kelp_instances_count(model, config, &total));
    KELP_TRY(kelp_alloc_zero(model->base.host->allocator, total, sizeof *model->instances,
                             (void **)&model->instances));
    model->instance_capacity = total;
    for (size_t i = 0; i < config->instance_group_count; i++)
        for (int32_t k = 0; k < config->instance_groups[i].count; k++, model->instance_count++)
            KELP_TRY(kelp_instance_create(model, config, i, k,
                                          &model->instances[model->instance_count]));
    return kelp_instances_begin(model, model->instances, model->instance_count);
}

void kelp_instance_end(kelp_instance *instance) {
    const kelp_server_backend *backend = instance->model->backend;
    if (instance->begun && backend->fn.instance_fini != NULL)
        kelp_server_log_status(
            "failed to finalize a model instance",
            kelp_from_error(backend->fn.instance_fini((TRITONBACKEND_ModelInstance *)instance)));
    instance->begun = false;
    kelp_rate_ticket_remove(&instance->base.ticket);
}

void kelp_instance_destroy(kelp_instance *instance) {
    KELP_ASSERT(!instance->begun);
    kelp_allocator heap = instance->model->base.host->allocator;
    kelp_stats_deinit(&instance->base.stats);
    kelp_message_destroy(instance->host_policy);
    kelp_model_config_release(instance->config);
    kelp_free_string(heap, instance->name);
    kelp_free(heap, instance->key, instance->key_capacity);
    kelp_free(heap, instance, sizeof *instance);
}

void kelp_model_destroy_instances(kelp_model *model) {
    kelp_allocator heap = model->base.host->allocator;
    if (model->scheduling)
        kelp_instance_pool_stop(&model->scheduler.pool);
    for (size_t i = 0; i < model->instance_count; i++) {
        kelp_instance_end(model->instances[i]);
        kelp_instance_destroy(model->instances[i]);
    }
    kelp_free(heap, model->instances, model->instance_capacity * sizeof *model->instances);
    model->instances = NULL;
    model->instance_count = model->instance_capacity = 0;
}
