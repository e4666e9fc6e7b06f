/* SPDX-License-Identifier: Apache-2.0 */
/* Instances of a model: made and initialized on the loading thread, run by the scheduler. */
#include "base/clock.h"
#include "base/json.h"
#include "base/thread.h"
#include "server/abi/log.h"
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

/* The object, of which the backend does not know yet. */
static kelp_status *make_instance(kelp_model *model, const kelp_config_instance_group *group,
                                  int32_t index) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_instance *instance = NULL;
    KELP_TRY(KELP_NEW(heap, kelp_instance, &instance));
    kelp_stats_init(&instance->stats);
    model->instances[model->instance_count++] = instance;
    instance->model = model;
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
    kelp_model *model;
    atomic_size_t next;
    kelp_status **failures; /* as the model's instances */
} beginners;

static void *begin_some(void *userp) {
    beginners *all = userp;
    size_t index;
    while ((index = atomic_fetch_add(&all->next, 1)) < all->model->instance_count)
        all->failures[index] = begin_instance(all->model->instances[index]);
    return NULL;
}

/* All at once, on a thread each up to a number; the first failure, in the instances' order. */
static kelp_status *begin_in_parallel(kelp_model *model) {
    enum { MOST = 64 };
    kelp_allocator heap = kelp_allocator_system();
    pthread_t threads[MOST];
    size_t started = 0, count = model->instance_count;
    beginners all = {.model = model};
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
static bool in_parallel(const kelp_model *model) {
    const char *forced = getenv("TRITON_PARALLEL_INSTANCE_LOADING");
    return model->instance_count > 1 &&
           (model->backend->attribute.parallel_loading || (forced && strcmp(forced, "1") == 0));
}

kelp_status *kelp_model_create_instances(kelp_model *model) {
    enum { MOST = 4096 };
    const kelp_model_config *config = model->config;
    size_t total = 0;
    for (size_t i = 0; i < config->instance_group_count; i++) {
        const kelp_config_instance_group *group = &config->instance_groups[i];
        if (group->kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "instance group %s of model %s has kind KIND_GPU but no GPUs are "
                              "available",
                              group->name, model->name);
        total += group->count > 0 ? (size_t)group->count : 0;
        if (total > MOST)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "model '%s' asks for more than %d instances",
                              model->name, MOST);
    }
    KELP_TRY(kelp_alloc_zero(kelp_allocator_system(), total, sizeof *model->instances,
                             (void **)&model->instances));
    model->instance_capacity = total;
    for (size_t i = 0; i < config->instance_group_count; i++)
        for (int32_t k = 0; k < config->instance_groups[i].count; k++)
            KELP_TRY(make_instance(model, &config->instance_groups[i], k));
    if (in_parallel(model))
        KELP_TRY(begin_in_parallel(model));
    for (size_t i = 0; i < model->instance_count; i++)
        if (!model->instances[i]->begun)
            KELP_TRY(begin_instance(model->instances[i]));
    for (size_t i = 0; i < model->instance_count; i++)
        if (!model->instances[i]->passive)
            return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "model '%s' has no instance that executes",
                      model->name);
}

void kelp_model_destroy_instances(kelp_model *model) {
    kelp_allocator heap = kelp_allocator_system();
    if (model->scheduling)
        kelp_scheduler_stop(&model->scheduler, model->instances, model->instance_count);
    for (size_t i = 0; i < model->instance_count; i++) {
        kelp_instance *instance = model->instances[i];
        if (instance->begun && model->backend->fn.instance_fini)
            kelp_server_log_status("failed to finalize a model instance",
                                   kelp_from_error(model->backend->fn.instance_fini(
                                       (TRITONBACKEND_ModelInstance *)instance)));
        kelp_stats_deinit(&instance->stats);
        kelp_message_destroy(instance->host_policy);
        kelp_free_string(heap, instance->name);
        kelp_free(heap, instance, sizeof *instance);
    }
    kelp_free(heap, model->instances, model->instance_capacity * sizeof *model->instances);
    model->instances = NULL;
    model->instance_count = model->instance_capacity = 0;
}

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
    kelp_status *error =
        kelp_from_error(backend->fn.execute((TRITONBACKEND_ModelInstance *)instance,
                                            (TRITONBACKEND_Request **)(void *)requests, count));
    if (error)
        fail_all(instance, requests, submissions, count, error);
    else if (backend->never_reports)
        count_batch(instance, batch_size, start_ns);
    for (uint32_t i = 0; !error && backend->never_releases && i < count; i++)
        kelp_server_log_status("cannot release a request",
                               kelp_request_release(requests[i], TRITONSERVER_REQUEST_RELEASE_ALL));
    kelp_status_free(error);
}
