/* SPDX-License-Identifier: Apache-2.0 */
/* Instances of a model: made and initialized on the loading thread, run by the scheduler. */
#include "base/clock.h"
#include "base/json.h"
#include "base/thread.h"
#include "server/core/log.h"
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>

/* {"POLICY":{settings}} */
static kelp_status *make_host_policy(const kelp_server_options *options, const char *name,
                                     kelp_message **out) {
    kelp_buf json;
    kelp_json_writer writer;
    kelp_buf_init(&json, kelp_allocator_system());
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

/* What tells instances of this group from others. Free with kelp_free. */
static kelp_status *make_key(const kelp_model_config *config, size_t group, char **out,
                             size_t *out_capacity) {
    kelp_buf text;
    size_t length;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_status *status = kelp_model_config_group_key(config, group, &text);
    if (!status && !kelp_buf_cstr(&text))
        status = kelp_status_oom();
    if (!status)
        *out = kelp_buf_take(&text, &length, out_capacity);
    kelp_buf_deinit(&text);
    return status;
}

/* The object, of which the backend does not know yet; added to `instances`, which has room, also
 * when it fails. */
static kelp_status *make_instance(kelp_model *model, kelp_model_config *config, size_t group_index,
                                  int32_t index, kelp_instance **instances, size_t *inout_count) {
    kelp_allocator heap = kelp_allocator_system();
    const kelp_config_instance_group *group = &config->instance_groups[group_index];
    kelp_instance *instance = NULL;
    KELP_TRY(KELP_NEW(heap, kelp_instance, &instance));
    kelp_stats_init(&instance->stats);
    instances[(*inout_count)++] = instance;
    instance->model = model;
    instance->stats.latency = model->latency;
    instance->config = config;
    kelp_model_config_retain(config);
    KELP_TRY(make_key(config, group_index, &instance->key, &instance->key_capacity));
    instance->kind = group->kind;
    instance->passive = group->passive;
    instance->profiles = group->profiles;
    instance->profile_count = group->profile_count;
    char name[320];
    snprintf(name, sizeof name, "%s_%d", group->name, index);
    KELP_TRY(kelp_strdup(heap, name, &instance->name));
    const char *policy = group->host_policy[0]                                 ? group->host_policy
                         : group->kind == TRITONSERVER_INSTANCEGROUPKIND_MODEL ? "model"
                                                                               : "cpu";
    return make_host_policy(model->server->options, policy, &instance->host_policy);
}

static kelp_status *begin_instance(kelp_instance *instance) {
    kelp_model *model = instance->model;
    /* As Triton does it, whose backends keep their state also when they fail afterwards. */
    instance->begun = true;
    if (model->backend->fn.instance_init)
        KELP_TRY(kelp_from_error(
            model->backend->fn.instance_init((TRITONBACKEND_ModelInstance *)instance)));
    KELP_SERVER_LOG(KELP_LOG_VERBOSE, "created model instance named '%s' on device type '%s'",
                    instance->name, TRITONSERVER_InstanceGroupKindString(instance->kind));
    if (!instance->passive)
        KELP_TRY(kelp_scheduler_add(&model->scheduler, instance,
                                    model->config->has_warmup ? kelp_instance_warm_up : NULL));
    instance->initialized = true;
    return NULL;
}

/* Instances that several threads begin. */
typedef struct beginners {
    kelp_instance **instances;
    size_t count;
    atomic_size_t next;
    kelp_status **failures; /* as the instances */
} beginners;

static void *begin_some(void *userp) {
    beginners *all = userp;
    size_t index;
    while ((index = atomic_fetch_add(&all->next, 1)) < all->count)
        all->failures[index] = begin_instance(all->instances[index]);
    return NULL;
}

/* All at once, on a thread each up to a number; the first failure, in the instances' order. */
static kelp_status *begin_in_parallel(kelp_instance **instances, size_t count) {
    enum { MOST = 64 };
    kelp_allocator heap = kelp_allocator_system();
    pthread_t threads[MOST];
    size_t started = 0;
    beginners all = {.instances = instances, .count = count};
    KELP_TRY(kelp_alloc_zero(heap, count, sizeof *all.failures, (void **)&all.failures));
    while (started + 1 < count && started < MOST) {
        kelp_status *status = kelp_thread_start(&threads[started], "kelp-begin", begin_some, &all);
        if (status) {
            kelp_status_free(status); /* fewer threads begin the same instances */
            break;
        }
        started++;
    }
    begin_some(&all);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    kelp_status *status = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!status)
            status = all.failures[i];
        else
            kelp_status_free(all.failures[i]);
    }
    kelp_free(heap, all.failures, count * sizeof *all.failures);
    return status;
}

/* Backends that do not say that they stand it get one instance after the other. */
static bool in_parallel(const kelp_model *model, size_t count) {
    const char *forced = getenv("TRITON_PARALLEL_INSTANCE_LOADING");
    return count > 1 &&
           (model->backend->attribute.parallel_loading || (forced && strcmp(forced, "1") == 0));
}

static kelp_status *begin_all(kelp_model *model, kelp_instance **instances, size_t count) {
    if (in_parallel(model, count))
        return begin_in_parallel(instances, count);
    for (size_t i = 0; i < count; i++)
        KELP_TRY(begin_instance(instances[i]));
    return NULL;
}

/* How many instances the groups ask for; an error when they cannot be had. */
static kelp_status *count_wanted(const kelp_model *model, const kelp_model_config *config,
                                 size_t *out_total) {
    enum { MOST = 4096 };
    size_t total = 0;
    bool executes = false;
    for (size_t i = 0; i < config->instance_group_count; i++) {
        const kelp_config_instance_group *group = &config->instance_groups[i];
        if (group->kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "instance group %s of model %s has kind KIND_GPU but no GPUs are "
                              "available",
                              group->name, model->name);
        total += group->count > 0 ? (size_t)group->count : 0;
        executes |= group->count > 0 && !group->passive;
        if (total > MOST)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "model '%s' asks for more than %d instances",
                              model->name, MOST);
    }
    *out_total = total;
    return executes ? NULL
                    : KELP_ERROR(KELP_INVALID_ARGUMENT, "model '%s' has no instance that executes",
                                 model->name);
}

kelp_status *kelp_model_create_instances(kelp_model *model) {
    kelp_model_config *config = model->config;
    size_t total = 0;
    KELP_TRY(count_wanted(model, config, &total));
    KELP_TRY(kelp_alloc_zero(kelp_allocator_system(), total, sizeof *model->instances,
                             (void **)&model->instances));
    model->instance_capacity = total;
    for (size_t i = 0; i < config->instance_group_count; i++)
        for (int32_t k = 0; k < config->instance_groups[i].count; k++)
            KELP_TRY(make_instance(model, config, i, k, model->instances, &model->instance_count));
    return begin_all(model, model->instances, model->instance_count);
}

/* Tells the backend that the instance goes; once. */
static void end_instance(kelp_instance *instance) {
    const kelp_backend *backend = instance->model->backend;
    if (instance->begun && backend->fn.instance_fini)
        kelp_server_log_status(
            "failed to finalize a model instance",
            kelp_from_error(backend->fn.instance_fini((TRITONBACKEND_ModelInstance *)instance)));
    instance->begun = false;
}

static void free_instance(kelp_instance *instance) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_stats_deinit(&instance->stats);
    kelp_message_destroy(instance->host_policy);
    kelp_model_config_release(instance->config);
    kelp_free_string(heap, instance->name);
    kelp_free(heap, instance->key, instance->key_capacity);
    kelp_free(heap, instance, sizeof *instance);
}

void kelp_model_destroy_instances(kelp_model *model) {
    kelp_allocator heap = kelp_allocator_system();
    if (model->scheduling)
        kelp_scheduler_stop(&model->scheduler, model->instances, model->instance_count);
    for (size_t i = 0; i < model->instance_count; i++) {
        end_instance(model->instances[i]);
        free_instance(model->instances[i]);
    }
    kelp_free(heap, model->instances, model->instance_capacity * sizeof *model->instances);
    model->instances = NULL;
    model->instance_count = model->instance_capacity = 0;
}

/* ---- an update while requests run ---- */

/* The instances that this thread executes, the innermost first. */
typedef struct frame {
    const kelp_instance *instance;
    struct frame *outer;
} frame;
static _Thread_local frame *executing;

struct kelp_model_update {
    kelp_model *model;
    kelp_model_config *config;
    kelp_message *json;
    bool *stays; /* as the model's instances before */
    size_t before;
    kelp_instance **fresh; /* with room for all that are wanted */
    size_t fresh_count, wanted;
};

static void update_destroy(kelp_model_update *u) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_free(heap, u->stays, (u->before + 1) * sizeof *u->stays);
    kelp_free(heap, u->fresh, u->wanted * sizeof *u->fresh);
    kelp_message_destroy(u->json);
    kelp_model_config_release(u->config);
    kelp_free(heap, u, sizeof *u);
}

/* Marks an instance that can be one of the group. */
static bool keep_one(kelp_model_update *u, const char *key) {
    for (size_t i = 0; i < u->before; i++) {
        const kelp_instance *instance = u->model->instances[i];
        if (!u->stays[i] && !instance->gone && strcmp(instance->key, key) == 0)
            return u->stays[i] = true;
    }
    return false;
}

static kelp_status *plan_group(kelp_model_update *u, size_t group) {
    char *key = NULL;
    size_t capacity = 0;
    kelp_status *status = NULL;
    KELP_TRY(make_key(u->config, group, &key, &capacity));
    for (int32_t k = 0; k < u->config->instance_groups[group].count && !status; k++)
        if (!keep_one(u, key))
            status = make_instance(u->model, u->config, group, k, u->fresh, &u->fresh_count);
    kelp_free(kelp_allocator_system(), key, capacity);
    return status;
}

static kelp_status *plan_update(kelp_model_update *u, const kelp_model_config *config) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_model *model = u->model;
    kelp_model_config *grouped = NULL;
    KELP_TRY(kelp_alloc_zero(heap, u->before + 1, sizeof *u->stays, (void **)&u->stays));
    KELP_TRY(kelp_model_config_regroup(model->shown, config, &grouped));
    kelp_status *status =
        kelp_model_config_prefer(grouped, model->backend->attribute.groups,
                                 model->backend->attribute.group_count, 0, &u->config);
    kelp_model_config_release(grouped);
    if (status)
        return status;
    KELP_TRY(kelp_model_config_message(u->config, &u->json));
    size_t wanted = 0;
    KELP_TRY(count_wanted(model, u->config, &wanted));
    KELP_TRY(kelp_alloc_zero(heap, wanted, sizeof *u->fresh, (void **)&u->fresh));
    u->wanted = wanted;
    for (size_t i = 0; i < u->config->instance_group_count; i++)
        KELP_TRY(plan_group(u, i));
    for (const frame *f = executing; f; f = f->outer)
        for (size_t i = 0; i < u->before; i++)
            if (model->instances[i] == f->instance && !u->stays[i])
                return KELP_ERROR(
                    KELP_FAILED_PRECONDITION,
                    "instance '%s' cannot be taken away from inside its own execution",
                    f->instance->name);
    /* Room for them now, so that nothing fails once they have begun. */
    pthread_rwlock_wrlock(&model->change_lock);
    status = kelp_grow(heap, (void **)&model->instances, &model->instance_capacity,
                       model->instance_count + u->fresh_count, sizeof *model->instances);
    pthread_rwlock_unlock(&model->change_lock);
    return status;
}

/* Stops one that nobody asks any more, and ends it. */
static void retire_instance(kelp_instance *instance) {
    if (instance->initialized && !instance->passive)
        kelp_scheduler_remove(&instance->model->scheduler, instance);
    else if (instance->has_thread)
        pthread_join(instance->thread, NULL);
    instance->has_thread &= instance->initialized; /* a helper of the scheduler's goes on */
    end_instance(instance);
    kelp_status_free(kelp_stats_set_usage(&instance->stats, NULL, 0));
}

/* What has begun to execute stays in memory, for reports that come late. */
static void abandon(kelp_model_update *u) {
    kelp_model *model = u->model;
    bool room = model->instance_count + u->fresh_count <= model->instance_capacity;
    for (size_t i = 0; i < u->fresh_count; i++) {
        retire_instance(u->fresh[i]);
        u->fresh[i]->gone = true;
        if (!room) /* so that none has begun */
            free_instance(u->fresh[i]);
    }
    pthread_rwlock_wrlock(&model->change_lock);
    for (size_t i = 0; room && i < u->fresh_count; i++)
        model->instances[model->instance_count++] = u->fresh[i];
    pthread_rwlock_unlock(&model->change_lock);
}

static void commit(kelp_model_update *u) {
    kelp_model *model = u->model;
    kelp_message *json = model->config_json;
    kelp_model_config *shown = model->shown;
    pthread_rwlock_wrlock(&model->change_lock);
    for (size_t i = 0; i < u->before; i++)
        model->instances[i]->gone |= !u->stays[i];
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
    KELP_TRY(KELP_NEW(kelp_allocator_system(), kelp_model_update, &u));
    u->model = model;
    u->before = model->instance_count;
    kelp_status *status = plan_update(u, config);
    if (!status)
        status = begin_all(model, u->fresh, u->fresh_count);
    if (status)
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
    if (!take_update)
        return;
    abandon(take_update);
    update_destroy(take_update);
}

/* ---- executing ---- */

void kelp_instance_refuse(kelp_instance *instance, kelp_request *request,
                          const kelp_status *error) {
    atomic_store_explicit(&request->state, KELP_REQUEST_EXECUTING, memory_order_release);
    kelp_stats_refusal(&instance->stats, kelp_status_code(error), request->request_start_ns);
    kelp_request_fail(request, error);
}

/* Answers those that were cancelled while they waited; returns how many are left to run. */
static uint32_t drop_cancelled(kelp_instance *instance, kelp_request **requests, uint32_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        kelp_request *request = requests[i];
        atomic_store_explicit(&request->state, KELP_REQUEST_EXECUTING, memory_order_release);
        if (!atomic_load_explicit(&request->factory->cancelled, memory_order_relaxed)) {
            requests[kept++] = request;
            continue;
        }
        kelp_status *error = KELP_ERROR(KELP_CANCELLED, "Request cancelled");
        kelp_instance_refuse(instance, request, error);
        kelp_status_free(error);
    }
    return kept;
}

/* Marks requests to be counted when they are released; the size of the batch. */
static uint64_t begin_counting(kelp_instance *instance, kelp_request **requests, uint32_t count,
                               uint64_t now_ns) {
    uint64_t batch_size = 0;
    for (uint32_t i = 0; i < count; i++) {
        requests[i]->execute_start_ns = now_ns;
        requests[i]->counted_by = instance;
        batch_size += requests[i]->batch_size;
    }
    return batch_size;
}

static void count_batch(kelp_instance *instance, uint64_t batch_size, uint64_t start_ns) {
    uint64_t now_ns = kelp_now_ns();
    kelp_request_times times = {.execute_start_ns = start_ns,
                                .compute_start_ns = start_ns,
                                .compute_end_ns = now_ns,
                                .execute_end_ns = now_ns};
    kelp_server_log_status("cannot count an execution",
                           kelp_stats_batch(&instance->stats, batch_size, &times));
}

/* Which submission a request is executed for. Not a reference: factories are kept until the server
 * goes. */
typedef struct submission {
    kelp_factory *factory;
    unsigned long long serial;
} submission;

/* Answers what Execute left when it failed. Requests that it had released all the same are their
 * owners' again, who may have deleted them: the submissions say which. */
static void fail_all(kelp_instance *instance, kelp_request **requests,
                     const submission *submissions, uint32_t count, const kelp_status *error) {
    for (uint32_t i = 0; i < count; i++) {
        kelp_factory *factory = submissions[i].factory;
        if (atomic_load_explicit(&factory->released, memory_order_acquire) ||
            atomic_load_explicit(&factory->serial, memory_order_relaxed) != submissions[i].serial)
            continue;
        kelp_request_times times = {.request_start_ns = requests[i]->request_start_ns};
        requests[i]->counted_by = NULL;
        kelp_stats_request(&instance->stats, false, requests[i]->batch_size, &times);
        kelp_request_fail(requests[i], error);
    }
}

void kelp_instance_execute(kelp_instance *instance, kelp_request **requests, uint32_t count) {
    kelp_backend *backend = instance->model->backend;
    submission submissions[KELP_SCHEDULER_MOST_JOINED];
    uint64_t batch_size = 0, start_ns = 0;
    count = drop_cancelled(instance, requests, count);
    if (count == 0)
        return;
    if (backend->never_reports) {
        start_ns = kelp_now_ns();
        batch_size = begin_counting(instance, requests, count, start_ns);
    }
    for (uint32_t i = 0; i < count; i++) {
        submissions[i].factory = requests[i]->factory;
        submissions[i].serial =
            atomic_load_explicit(&requests[i]->factory->serial, memory_order_relaxed);
    }
    frame here = {instance, executing};
    executing = &here;
    kelp_status *error =
        kelp_from_error(backend->fn.execute((TRITONBACKEND_ModelInstance *)instance,
                                            (TRITONBACKEND_Request **)(void *)requests, count));
    executing = here.outer;
    if (error)
        fail_all(instance, requests, submissions, count, error);
    else if (backend->never_reports)
        count_batch(instance, batch_size, start_ns);
    for (uint32_t i = 0; !error && backend->never_releases && i < count; i++)
        kelp_server_log_status("cannot release a request",
                               kelp_request_release(requests[i], TRITONSERVER_REQUEST_RELEASE_ALL));
    kelp_status_free(error);
}
