/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and finalization of models. */
#include "server/model/model.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/fs.h"
#include "server/config/model_files.h"
#include "server/config/view.h"
#include "server/core/error.h"
#include "server/core/log.h"

#include <inttypes.h>
#include <stdio.h>

/* Handing a request to another thread and back takes 10 us of CPU time: a fifth of the limit. */
enum { DEFAULT_CALLER_LIMIT_US = 50, MAX_CALLER_LIMIT_US = 1000000 };

kelp_status *kelp_model_config_message(const kelp_model_config *config, kelp_message **out) {
    kelp_buf json;
    kelp_buf_init(&json, config->allocator);
    kelp_status *status = kelp_model_config_to_json(config, 1, &json);
    if (status == NULL)
        status = kelp_message_create(&json, out);
    kelp_buf_deinit(&json);
    return status;
}

static kelp_status *write_config(kelp_model *model) {
    kelp_message *message = NULL;
    KELP_TRY(kelp_model_config_message(model->base.config, &message));
    kelp_message_destroy(model->config_json);
    model->config_json = message;
    return NULL;
}

kelp_status *kelp_model_complete_config(kelp_model *model, const char *json, size_t length) {
    KELP_ASSERT(model->base.config != NULL);
    if (!model->initializing)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "the configuration of model '%s' can be set only while the model is "
                          "initialized",
                          model->base.name);
    kelp_model_config *completed = NULL;
    KELP_TRY(kelp_model_config_complete(model->base.config, json, length, &completed));
    kelp_model_config_release(model->base.config);
    model->base.config = completed;
    return write_config(model);
}

static kelp_status *acquire_backend(kelp_model *model) {
    kelp_model_host *host = kelp_model_host_of(model);
    const kelp_server_backend_query query = {.name = model->base.config->backend,
                                             .library = model->base.config->runtime,
                                             .version_directory = model->version_directory,
                                             .model_directory = model->directory,
                                             .options = host->options};
    KELP_TRY(kelp_server_backend_acquire(&query, &model->backend));
    KELP_TRY(kelp_server_backend_set_add(&host->backends, model->backend));
    kelp_model_config *preferred = NULL;
    KELP_TRY(kelp_model_config_prefer(model->base.config, model->backend->attribute.groups,
                                      model->backend->attribute.group_count, 0, &preferred));
    kelp_model_config_release(model->base.config);
    model->base.config = preferred;
    if (model->backend->python_based) {
        /* Makes the library of "python" execute the backend's model.py. */
        kelp_config_value *runtime = kelp_config_set(preferred->arena, preferred->tree, "runtime");
        if (runtime == NULL)
            return kelp_status_oom();
        runtime->text = KELP_STR("model.py");
        preferred->runtime = "model.py";
    }
    return write_config(model);
}

/* Computes the fingerprint, which changes with the model's files and configuration, so that the
 * cache returns no responses of other files. */
static kelp_status *prepare_cache(kelp_model *model) {
    if (!model->base.config->response_cache)
        return NULL;
    if (model->base.decoupled || model->base.config->decoupled)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "model '%s': response cache does not currently support models with the "
                          "decoupled transaction policy",
                          model->base.name);
    if (kelp_model_host_of(model)->cache == NULL) {
        KELP_SERVER_LOG(KELP_LOG_WARNING,
                        "model '%s' enables response_cache, but the server has no cache: its "
                        "responses are not cached",
                        model->base.name);
        return NULL;
    }
    int64_t signature = 0;
    KELP_TRY(kelp_model_files_signature(model->base.host->allocator, model->directory, &signature));
    model->base.fingerprint =
        kelp_hash_bytes(model->config_json->text, model->config_json->length) ^ (uint64_t)signature;
    model->base.cache = kelp_model_host_of(model)->cache;
    return NULL;
}

/* Reads the limit of kelp_execute_on "auto". */
static kelp_status *read_caller_limit(const kelp_model *model, uint64_t *out_ns) {
    static const char key[] = "kelp_caller_limit_us";
    const char *text = kelp_model_config_parameter(model->base.config, key);
    uint64_t limit_us = DEFAULT_CALLER_LIMIT_US;
    if (text != NULL && (!kelp_parse_u64(kelp_str_from(text), &limit_us) || limit_us == 0 ||
                         limit_us > MAX_CALLER_LIMIT_US))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "model '%s': parameter '%s': expected a number of microseconds from 1 to "
                          "%d, found '%s'",
                          model->base.name, key, MAX_CALLER_LIMIT_US, text);
    *out_ns = limit_us * 1000;
    return NULL;
}

/* Selects the execution mode: by the configuration, or else by the backend. */
static kelp_status *choose_execution(kelp_model *model, kelp_execution *out) {
    static const char key[] = "kelp_execute_on";
    const char *where = kelp_model_config_parameter(model->base.config, key);
    const kelp_server_backend *backend = model->backend;
    *out = (kelp_execution){.execute = kelp_instance_execute,
                            .stats = &model->base.stats,
                            .timers = kelp_model_host_of(model)->timers};
    if (model->base.config->scheduling == KELP_SCHEDULING_SEQUENCE) {
        out->execute = kelp_instance_execute_sequences;
        return NULL; /* on the instance that has the sequence */
    }
    if (where == NULL)
        where = "auto";
    if (strcmp(where, "caller") == 0) {
        out->mode = KELP_EXECUTE_ON_CALLER;
    } else if (strcmp(where, "auto") == 0) {
        KELP_TRY(read_caller_limit(model, &out->caller_limit_ns));
        if (backend->fn.inline_execute) {
            out->mode = KELP_EXECUTE_ON_CALLER;
        } else if (backend->may_block != NULL &&
                   !backend->may_block((TRITONBACKEND_Model *)model, NULL)) {
            out->mode = KELP_EXECUTE_ON_CALLER;
            out->may_block = backend->may_block;
        }
    } else if (strcmp(where, "instance") != 0) {
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "model '%s': parameter '%s': expected auto, caller or instance, found "
                          "'%s'",
                          model->base.name, key, where);
    }
    if (kelp_instances_need_threads(model, model->base.config)) {
        out->mode = KELP_EXECUTE_ON_INSTANCE;
        out->caller_limit_ns = 0;
        out->may_block = NULL;
    }
    return NULL;
}

static void log_execution(const kelp_model *model, const kelp_execution *execution) {
    char limit[64] = "";
    if (execution->mode == KELP_EXECUTE_ON_CALLER && execution->caller_limit_ns > 0)
        snprintf(limit, sizeof limit, " if it takes at most %" PRIu64 " us",
                 execution->caller_limit_ns / 1000);
    KELP_SERVER_LOG(
        KELP_LOG_INFO, "model '%s': %zu %s; a request runs on the %s%s", model->base.name,
        model->instance_count, model->instance_count == 1 ? "instance" : "instances",
        execution->mode == KELP_EXECUTE_ON_CALLER ? "calling thread" : "thread of an instance",
        limit);
}

static kelp_status *create_latency(kelp_model *model) {
    const kelp_latency_rules *rules = &kelp_model_host_of(model)->latency_rules;
    kelp_latency_options options = {.cached = model->base.cache != NULL};
    if (rules->histograms || rules->summaries)
        KELP_TRY(kelp_model_config_latency(model->base.config, &options));
    KELP_TRY(
        kelp_latency_create(model->base.host->allocator, rules, &options, &model->base.latency));
    model->base.stats.latency = model->base.latency;
    return NULL;
}

static kelp_status *warn_of_unused_fields(const kelp_model *model, bool is_builtin) {
    kelp_buf fields;
    kelp_buf_init(&fields, model->base.host->allocator);
    kelp_model_config_list_unused(model->base.config, is_builtin, &fields);
    kelp_status *status = kelp_buf_status(&fields);
    if (status == NULL && fields.length > 0)
        KELP_SERVER_LOG(KELP_LOG_WARNING, "model '%s': these fields have no effect: %.*s",
                        model->base.name, (int)fields.length, fields.data);
    kelp_buf_deinit(&fields);
    for (size_t i = 0; i < model->base.config->instance_group_count; i++) {
        const kelp_config_instance_group *group = &model->base.config->instance_groups[i];
        if (group->resource_count > 0 && kelp_model_host_of(model)->rate_limiter == NULL)
            KELP_SERVER_LOG(KELP_LOG_WARNING,
                            "model '%s': rate_limiter of instance group '%s' has no effect without "
                            "--rate-limit=execution_count",
                            model->base.name, group->name);
    }
    return status;
}

/* Completes `dynamic_batching`, which the server's setting "auto-batch" adds to all models. */
static kelp_status *complete_batching(kelp_model *model) {
    const char *setting =
        kelp_settings_get(&kelp_model_host_of(model)->options->backend_config, "", "auto-batch");
    kelp_model_config *completed = NULL;
    KELP_TRY(kelp_model_config_complete_batching(
        model->base.config, setting != NULL && strcmp(setting, "true") == 0, &completed));
    kelp_model_config_release(model->base.config);
    model->base.config = completed;
    return write_config(model);
}

/* Calls ModelInitialize, during which the backend may complete the configuration. The threads that
 * the backend creates run on the CPUs of the instances. */
static kelp_status *call_initialize(kelp_model *model) {
    kelp_cpu_set cpus, previous;
    if (model->backend->fn.model_init == NULL)
        return NULL;
    KELP_TRY(kelp_host_policy_cpus_of_all(kelp_model_host_of(model)->options, model->base.config,
                                          &cpus));
    KELP_TRY(kelp_cpu_set_enter(&cpus, &previous));
    model->initializing = true;
    TRITONSERVER_Error *error = model->backend->fn.model_init((TRITONBACKEND_Model *)model);
    model->initializing = false;
    kelp_cpu_set_leave(&previous);
    return kelp_from_error(error);
}

static kelp_status *initialize_model(kelp_model *model) {
    KELP_TRY(kelp_scheduler_check(model->base.config));
    KELP_TRY(acquire_backend(model));
    KELP_TRY(warn_of_unused_fields(model, model->backend->builtin));
    model->base.backend_name = model->backend->name;
    model->auto_complete = !kelp_model_host_of(model)->options->strict_model_config;
    model->begun = true; /* before the call, as in instance.c */
    KELP_TRY(call_initialize(model));
    KELP_TRY(complete_batching(model));
    KELP_TRY(kelp_scheduler_check(model->base.config));
    return kelp_model_config_validate(model->base.config);
}

/* Creates the data flow. The members serve already. */
static kelp_status *initialize_ensemble(kelp_model *model) {
    kelp_model_config *completed = NULL;
    KELP_TRY(kelp_model_config_validate(model->base.config));
    KELP_TRY(warn_of_unused_fields(model, true));
    model->base.backend_name = "ensemble";
    KELP_TRY(write_config(model));
    KELP_TRY(kelp_ensemble_create(&model->base, &model->ensemble));
    model->base.decoupled = kelp_ensemble_is_decoupled(model->ensemble);
    KELP_TRY(
        kelp_model_config_set_decoupled(model->base.config, model->base.decoupled, &completed));
    model->shown = completed;
    KELP_TRY(kelp_model_load_labels(model));
    KELP_TRY(prepare_cache(model));
    return create_latency(model);
}

static kelp_status *initialize(kelp_model *model) {
    kelp_execution execution;
    if (model->base.config->scheduling == KELP_SCHEDULING_ENSEMBLE)
        return initialize_ensemble(model);
    KELP_TRY(initialize_model(model));
    model->base.decoupled = model->base.config->decoupled;
    model->base.order.enabled = model->base.config->dynamic_batching.preserve_ordering;
    model->orders_executions =
        model->base.config->sequence != NULL && model->base.config->sequence->preserve_ordering;
    KELP_TRY(kelp_model_load_labels(model));
    KELP_TRY(prepare_cache(model));
    KELP_TRY(create_latency(model));
    KELP_TRY(choose_execution(model, &execution));
    KELP_TRY(kelp_model_create_batcher(model));
    execution.batcher = model->batcher.initialize != NULL ? &model->batcher : NULL;
    KELP_TRY(kelp_sequencer_create(model, &model->sequencer));
    KELP_TRY(kelp_scheduler_init(&model->scheduler, model->base.host->allocator, model->base.config,
                                 execution));
    model->scheduling = true;
    KELP_TRY(kelp_model_create_instances(model));
    log_execution(model, &execution);
    return NULL;
}

static void destroy(kelp_model_base *base) {
    kelp_model *model = (kelp_model *)base;
    kelp_request_host *host = base->host;
    kelp_allocator allocator = host->allocator;
    KELP_ASSERT(model->backend == NULL && model->instance_count == 0);
    kelp_ensemble_destroy(model->ensemble);
    kelp_model_free_labels(model);
    kelp_response_order_deinit(&base->order);
    kelp_stats_deinit(&base->stats);
    kelp_latency_destroy(base->latency);
    kelp_message_destroy(model->config_json);
    kelp_model_config_release(base->config);
    kelp_model_config_release(model->origin);
    kelp_model_config_release(model->shown);
    pthread_rwlock_destroy(&model->change_lock);
    kelp_free_string(allocator, base->name);
    kelp_free_string(allocator, model->directory);
    kelp_free_string(allocator, model->version_directory);
    kelp_free(allocator, model, sizeof *model);
    host->ops->release(host);
}

static kelp_status *submit(kelp_model_base *base, kelp_request *request) {
    return kelp_scheduler_submit(&((kelp_model *)base)->scheduler, request);
}

/* Rejects the request soon if it is queued. */
static void cancel(kelp_model_base *base, kelp_factory *factory) {
    (void)factory;
    if (!kelp_model_enter(base))
        return; /* the model is being unloaded: the pool notices it when the request is taken */
    kelp_instance_pool_expire_soon(&((kelp_model *)base)->scheduler.pool);
    kelp_model_leave(base);
}

static void release(kelp_model_base *base, kelp_request *request) {
    kelp_instance_pool_release(&((kelp_model *)base)->scheduler.pool, request);
}

static void reschedule(kelp_model_base *base, kelp_request *request) {
    kelp_instance_pool_reschedule(&((kelp_model *)base)->scheduler.pool, request);
}

static void execute_due(kelp_model_base *base, kelp_due *due) {
    kelp_instance_pool_execute_due(&((kelp_model *)base)->scheduler.pool, base, due);
}

static kelp_status *check_queue(kelp_model_base *base, const kelp_request *request) {
    return kelp_instance_pool_check_full(&((kelp_model *)base)->scheduler.pool, request);
}

static const kelp_model_ops ops = {.destroy = destroy,
                                   .submit = submit,
                                   .check_queue = check_queue,
                                   .cancel = cancel,
                                   .execute_due = execute_due,
                                   .release = release,
                                   .reschedule = reschedule};

/* ---- ensembles ---- */

static kelp_status *submit_ensemble(kelp_model_base *base, kelp_request *request) {
    return kelp_ensemble_submit(((kelp_model *)base)->ensemble, request);
}

static void cancel_ensemble(kelp_model_base *base, kelp_factory *factory) {
    kelp_ensemble_cancel(((kelp_model *)base)->ensemble, factory);
}

static kelp_status *check_ensemble(kelp_model_base *base) {
    return kelp_ensemble_check(((kelp_model *)base)->ensemble);
}

static uint64_t fingerprint_of_ensemble(kelp_model_base *base) {
    return kelp_ensemble_fingerprint(((kelp_model *)base)->ensemble);
}

static const kelp_model_ops ensemble_ops = {.destroy = destroy,
                                            .submit = submit_ensemble,
                                            .cancel = cancel_ensemble,
                                            .check = check_ensemble,
                                            .fingerprint = fingerprint_of_ensemble};

/* ---- creation ---- */

/* Returns the serial number of a new model. */
static uint64_t next_serial(void) {
    static atomic_ullong last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

static kelp_status *set_paths(kelp_model *model, const char *name, const char *directory) {
    kelp_allocator allocator = model->base.host->allocator;
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, model->base.version);
    KELP_TRY(kelp_strdup(allocator, name, &model->base.name));
    KELP_TRY(kelp_strdup(allocator, directory, &model->directory));
    return kelp_fs_join(allocator, directory, number, &model->version_directory);
}

kelp_status *kelp_model_create(kelp_model_host *host, const char *name, const char *space,
                               int64_t version, const char *directory,
                               kelp_model_config *take_config, kelp_model **out) {
    kelp_allocator allocator = host->base.allocator;
    kelp_model *model = NULL;
    kelp_status *status = KELP_NEW(allocator, kelp_model, &model);
    if (status != NULL) {
        kelp_model_config_release(take_config);
        return status;
    }
    uint64_t start_ns = kelp_now_ns();
    atomic_store(&model->base.refs, 1);
    kelp_stats_init(&model->base.stats, allocator);
    kelp_response_order_init(&model->base.order);
    model->base.ops = take_config->scheduling == KELP_SCHEDULING_ENSEMBLE ? &ensemble_ops : &ops;
    model->base.serial = next_serial();
    model->base.host = &host->base;
    host->base.ops->retain(&host->base);
    model->base.space = space;
    model->base.version = version;
    model->base.config = model->origin = take_config;
    kelp_model_config_retain(model->origin);
    pthread_rwlock_init(&model->change_lock, NULL);
    status = set_paths(model, name, directory);
    if (status ==
        NULL) /* before the files are read, so that a change during the load is detected */
        status = kelp_model_files_of_version(allocator, directory, version, &model->files);
    if (status == NULL)
        status = initialize(model);
    if (status != NULL) {
        kelp_model_finalize(model);
        kelp_model_release(&model->base);
        return status;
    }
    if (model->shown == NULL) {
        model->shown = model->base.config;
        kelp_model_config_retain(model->shown);
    }
    model->load_ns = kelp_now_ns() - start_ns;
    *out = model;
    return NULL;
}

void kelp_model_finalize(kelp_model *model) {
    kelp_model_destroy_instances(model);
    kelp_model_destroy_batcher(model);
    if (model->begun && model->backend->fn.model_fini != NULL)
        kelp_server_log_status(
            "failed to finalize a model",
            kelp_from_error(model->backend->fn.model_fini((TRITONBACKEND_Model *)model)));
    model->begun = false;
    if (model->scheduling)
        kelp_scheduler_deinit(&model->scheduler);
    model->scheduling = false;
    kelp_sequencer_destroy(model->sequencer, model->base.host->allocator);
    model->sequencer = NULL;
    kelp_server_backend_release(model->backend);
    model->backend = NULL;
}

bool kelp_model_is_ready(kelp_model *model) {
    bool all = true;
    if (model->ensemble != NULL) {
        kelp_status *status = kelp_ensemble_check(model->ensemble);
        all = status == NULL;
        kelp_status_free(status);
        return all;
    }
    pthread_rwlock_rdlock(&model->change_lock);
    KELP_ASSERT(model->backend != NULL); /* the caller has entered the model */
    for (size_t i = 0; model->backend->ready != NULL && all && i < model->instance_count; i++) {
        if (model->instances[i]->removed)
            continue;
        TRITONSERVER_Error *error =
            model->backend->ready((TRITONBACKEND_ModelInstance *)model->instances[i]);
        all = error == NULL;
        kelp_error_discard(error);
    }
    pthread_rwlock_unlock(&model->change_lock);
    return all;
}

uint32_t kelp_model_queued(kelp_model *model) {
    return model->scheduling ? kelp_instance_pool_queued(&model->scheduler.pool) : 0;
}

kelp_status *kelp_model_add_stats(kelp_model *model, kelp_stats *into) {
    kelp_status *status = kelp_stats_add(into, &model->base.stats);
    pthread_rwlock_rdlock(&model->change_lock);
    for (size_t i = 0; i < model->instance_count && status == NULL; i++)
        status = kelp_stats_add(into, &model->instances[i]->base.stats);
    pthread_rwlock_unlock(&model->change_lock);
    return status;
}
