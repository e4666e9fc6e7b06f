/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load of a model. It creates all versions and then publishes them together. Until then the
 * previous versions serve; they continue to serve if the load fails.
 */
#include "base/assert.h"
#include "server/config/model_files.h"
#include "server/core/log.h"
#include "server/repository/agents.h"
#include "server/repository/repository.h"
#include "server/repository/scan.h"
#include "server/repository/upload.h"

/* Returns the version with a number, and inserts it if needed. The lock and those of all pools are
 * held. */
static kelp_status *version_get(kelp_allocator allocator, kelp_entry *entry, int64_t number,
                                kelp_version **out) {
    size_t at = 0;
    while (at < entry->version_count && entry->versions[at].number < number)
        at++;
    if (at == entry->version_count || entry->versions[at].number != number) {
        KELP_TRY(kelp_grow(allocator, (void **)&entry->versions, &entry->version_capacity,
                           entry->version_count + 1, sizeof *entry->versions));
        memmove(&entry->versions[at + 1], &entry->versions[at],
                (entry->version_count - at) * sizeof *entry->versions);
        entry->versions[at] = (kelp_version){.number = number, .state = KELP_VERSION_UNKNOWN};
        entry->version_count++;
    }
    *out = &entry->versions[at];
    return NULL;
}

/* The state of a load. Arrays have an element for each version. */
typedef struct load {
    kelp_repository *repository;
    kelp_entry *entry;
    const char *directory;            /* of the model's files, in the repository or an override */
    const kelp_load_options *uploads; /* may be NULL */
    const char *directory_name; /* in the repository; a name that the configuration may contain */
    kelp_model_config *config;
    kelp_agent_chain *agents; /* NULL if the configuration has no agents */
    int64_t *versions;
    size_t version_count;
    kelp_model **models;  /* new models; NULL if the creation failed or a model stays */
    kelp_model **staying; /* entered models of which only the instances change, or NULL */
    kelp_status **failures;
    int64_t signature;
} load;

static void load_deinit(load *job) {
    kelp_allocator heap = job->repository->host->base.allocator;
    for (size_t i = 0; i < job->version_count; i++) {
        if (job->models != NULL && job->models[i] != NULL) {
            kelp_model_finalize(job->models[i]);
            kelp_model_release(&job->models[i]->base);
        }
        if (job->failures != NULL)
            kelp_status_free(job->failures[i]);
        if (job->staying != NULL && job->staying[i] != NULL) {
            kelp_model_leave(&job->staying[i]->base);
            kelp_model_release(&job->staying[i]->base);
        }
    }
    if (job->staying != NULL)
        kelp_free(heap, job->staying, job->version_count * sizeof *job->staying);
    if (job->models != NULL)
        kelp_free(heap, job->models, job->version_count * sizeof *job->models);
    if (job->failures != NULL)
        kelp_free(heap, job->failures, job->version_count * sizeof *job->failures);
    if (job->versions != NULL)
        kelp_free(heap, job->versions, job->version_count * sizeof *job->versions);
    kelp_agent_chain_release(job->agents);
    kelp_model_config_release(job->config);
}

/* Reads the configuration; see kelp_config_load_options.draft. */
static kelp_status *read_config(load *job, const kelp_config_load_options *config_options) {
    const kelp_model_host *host = job->repository->host;
    kelp_model_config_release(job->config);
    job->config = NULL;
    KELP_TRY(kelp_model_config_load(host->base.allocator, config_options, &job->config));
    return kelp_upload_check(&host->options->backend_config, job->entry->name, job->config,
                             config_options->override_json, job->uploads);
}

/* Selects the versions. */
static kelp_status *read_versions(load *job) {
    kelp_allocator heap = job->repository->host->base.allocator;
    int64_t *present = NULL;
    size_t present_count = 0;
    kelp_status *warning = NULL;
    KELP_TRY(kelp_model_files_versions(heap, job->directory, true, &present, &present_count));
    kelp_status *status =
        kelp_scan_select(heap, job->entry->name, &job->config->version_policy, present,
                         present_count, &job->versions, &job->version_count, &warning);
    kelp_free(heap, present, present_count * sizeof *present);
    if (warning != NULL) {
        KELP_SERVER_LOG(KELP_LOG_WARNING, "%s", kelp_status_message(warning));
        kelp_status_free(warning);
    }
    return status;
}

/* Reads the configuration and the versions. Repository agents run first, and may change the files
 * or their location. */
static kelp_status *read_model(load *job) {
    kelp_allocator heap = job->repository->host->base.allocator;
    const kelp_server_options *options = job->repository->host->options;
    const char *json = job->entry->override.config_json;
    kelp_config_load_options config_options = {
        .model_directory = job->directory,
        .model_name = job->entry->name,
        .directory_name = job->directory_name,
        .config_name = options->model_config_name,
        .override_json = json,
        .override_length = json != NULL ? strlen(json) : 0,
        .strict = options->strict_model_config,
        .draft = true,
        .gpu_fallback = options->gpu_fallback,
    };
    /* Polling compares the repository's own files. */
    KELP_TRY(kelp_model_files_signature(heap, job->directory, &job->signature));
    KELP_TRY(read_config(job, &config_options));
    KELP_TRY(kelp_agent_chain_load(heap, options, job->config, &config_options, &job->agents,
                                   &job->directory));
    if (job->agents != NULL) {
        config_options.model_directory = job->directory;
        config_options.draft = false;
        KELP_TRY(read_config(job, &config_options));
    }
    return read_versions(job);
}

static void mark_loading(load *job) {
    kelp_repository *repository = job->repository;
    pthread_mutex_lock(&repository->lock);
    kelp_request_pools_lock(&repository->host->base.pools);
    for (size_t i = 0; i < job->version_count; i++) {
        kelp_version *version = NULL;
        kelp_status *status =
            version_get(repository->host->base.allocator, job->entry, job->versions[i], &version);
        if (status != NULL)
            job->failures[i] = status;
        else if (version->model == NULL)
            version->state = KELP_VERSION_LOADING;
    }
    kelp_request_pools_unlock(&repository->host->base.pools);
    pthread_mutex_unlock(&repository->lock);
}

/* Tests whether a serving model equals the one that would be created, except for its instances. */
static kelp_status *can_stay(const load *job, const kelp_model *model, bool *out_can_stay) {
    int64_t files = 0;
    *out_can_stay = false;
    if (job->agents != NULL || model->agents != NULL || model->ensemble != NULL ||
        strcmp(model->directory, job->directory) != 0)
        return NULL;
    KELP_TRY(kelp_model_files_of_version(model->base.host->allocator, job->directory,
                                         model->base.version, &files));
    if (files != model->files || kelp_instances_need_threads(model, model->shown) !=
                                     kelp_instances_need_threads(model, job->config))
        return NULL;
    return kelp_model_config_same_model(model->origin, job->config, out_can_stay);
}

/* Finds the serving models that stay. */
static kelp_status *find_staying(load *job) {
    kelp_status *status = NULL;
    for (size_t i = 0; i < job->version_count && status == NULL; i++) {
        bool stays = false;
        pthread_mutex_lock(&job->repository->lock);
        const kelp_version *version = kelp_entry_version(job->entry, job->versions[i]);
        kelp_model *model = version != NULL ? version->model : NULL;
        if (model != NULL && kelp_model_enter(&model->base))
            kelp_model_retain(&model->base);
        else
            model = NULL;
        pthread_mutex_unlock(&job->repository->lock);
        if (model == NULL)
            continue;
        status = can_stay(job, model, &stays);
        if (stays) {
            job->staying[i] = model;
        } else {
            kelp_model_leave(&model->base);
            kelp_model_release(&model->base);
        }
    }
    return status;
}

/* Creates one version. */
static kelp_status *make_model(load *job, size_t index) {
    kelp_status *status = NULL;
    for (unsigned attempt = 0; attempt <= job->repository->host->options->model_load_retries;
         attempt++) {
        kelp_status_free(status);
        kelp_model_config_retain(job->config);
        status = kelp_model_create(job->repository->host, job->entry->name, job->entry->space,
                                   job->versions[index], job->directory, job->config,
                                   &job->models[index]);
        if (status == NULL) {
            job->models[index]->entry = job->entry;
            break;
        }
    }
    return status;
}

/* Updates the instances of the models that stay, after the other models are created: all or none.
 */
static kelp_status *update_staying(load *job) {
    kelp_allocator heap = job->repository->host->base.allocator;
    kelp_model_update **updates = NULL;
    kelp_status *status = NULL;
    KELP_TRY(kelp_alloc_zero(heap, job->version_count, sizeof *updates, (void **)&updates));
    for (size_t i = 0; i < job->version_count && status == NULL; i++) {
        if (job->staying[i] == NULL)
            continue;
        status = kelp_model_prepare_update(job->staying[i], job->config, &updates[i]);
        if (status != NULL)
            status = KELP_ANNOTATE(status, "cannot update the instances of model '%s' version %lld",
                                   job->entry->name, (long long)job->versions[i]);
    }
    for (size_t i = 0; i < job->version_count; i++) {
        if (status != NULL)
            kelp_model_cancel_update(updates[i]);
        else if (updates[i] != NULL)
            kelp_model_commit_update(updates[i]);
    }
    kelp_free(heap, updates, job->version_count * sizeof *updates);
    return status;
}

/* Creates all versions. One failure fails the load; all failures are stored for the index. */
static kelp_status *make_models(load *job) {
    KELP_ASSERT(job->entry->busy && job->models == NULL);
    kelp_allocator heap = job->repository->host->base.allocator;
    KELP_TRY(kelp_alloc_zero(heap, job->version_count, sizeof *job->models, (void **)&job->models));
    KELP_TRY(
        kelp_alloc_zero(heap, job->version_count, sizeof *job->failures, (void **)&job->failures));
    KELP_TRY(
        kelp_alloc_zero(heap, job->version_count, sizeof *job->staying, (void **)&job->staying));
    KELP_TRY(find_staying(job));
    mark_loading(job);
    kelp_buf text;
    kelp_buf_init(&text, heap);
    kelp_code code = KELP_OK;
    for (size_t i = 0; i < job->version_count; i++) {
        if (job->staying[i] == NULL && job->failures[i] == NULL)
            job->failures[i] = make_model(job, i);
        if (job->failures[i] == NULL)
            continue;
        char reason[2048];
        kelp_status_format(job->failures[i], reason, sizeof reason);
        kelp_buf_printf(&text, "version %lld is at UNAVAILABLE state: %s;\n",
                        (long long)job->versions[i], reason);
        if (code == KELP_OK)
            code = kelp_status_code(job->failures[i]);
    }
    kelp_status *status = NULL;
    char name[1024];
    if (code != KELP_OK)
        status = KELP_ERROR(code, "load failed for model '%s': %s",
                            kelp_entry_format(job->entry, name, sizeof name),
                            kelp_buf_cstr(&text) ? text.data : "");
    kelp_buf_deinit(&text);
    return status != NULL ? status : update_staying(job);
}

/* Publishes the new models, and retires the previous models and those of versions that are no
 * longer selected. The lock is held. */
static void publish(load *job) {
    KELP_ASSERT_HELD(&job->repository->lock);
    KELP_ASSERT(job->entry->busy);
    kelp_repository *repository = job->repository;
    kelp_entry *entry = job->entry;
    for (size_t i = 0; i < job->version_count; i++) {
        kelp_version *version = kelp_entry_version(entry, job->versions[i]);
        kelp_model *old = version->model;
        if (job->staying[i] != NULL) {
            KELP_SERVER_LOG(KELP_LOG_INFO, "successfully updated '%s' version %lld", entry->name,
                            (long long)job->versions[i]);
            continue;
        }
        job->models[i]->agents = job->agents;
        kelp_agent_chain_retain(job->agents);
        kelp_request_pools_lock(&repository->host->base.pools);
        version->model = job->models[i];
        version->state = KELP_VERSION_READY;
        version->leaving = NULL;
        kelp_text_clear(&version->reason);
        kelp_request_pools_unlock(&repository->host->base.pools);
        job->models[i] = NULL;
        repository->live_models++;
        repository->live_ensembles += version->model->ensemble != NULL;
        KELP_SERVER_LOG(KELP_LOG_INFO, "successfully loaded '%s' version %lld", entry->name,
                        (long long)job->versions[i]);
        if (old != NULL) {
            pthread_mutex_unlock(&repository->lock);
            kelp_repository_retire(old);
            pthread_mutex_lock(&repository->lock);
        }
    }
    for (size_t i = 0; i < entry->version_count; i++) {
        bool selected = false;
        for (size_t k = 0; k < job->version_count; k++)
            selected |= job->versions[k] == entry->versions[i].number;
        if (!selected && entry->versions[i].model != NULL)
            kelp_version_retire(repository, &entry->versions[i]);
    }
    entry->signature = job->signature;
}

/* Stores the reasons of versions that do not serve, for the index. The lock is held. */
static void note_failure(load *job) {
    KELP_ASSERT_HELD(&job->repository->lock);
    kelp_repository *repository = job->repository;
    kelp_request_pools_lock(&repository->host->base.pools);
    for (size_t i = 0; job->failures != NULL && i < job->version_count; i++) {
        kelp_version *version = kelp_entry_version(job->entry, job->versions[i]);
        if (version == NULL || version->model != NULL)
            continue;
        char reason[2048] = "";
        kelp_status_format(job->failures[i], reason, sizeof reason);
        version->state = KELP_VERSION_UNAVAILABLE;
        kelp_server_log_status(
            "cannot keep a reason",
            kelp_text_set(repository->host->base.allocator, &version->reason,
                          job->failures[i] != NULL ? reason : "another version failed to load"));
    }
    kelp_request_pools_unlock(&repository->host->base.pools);
}

/* Stores the reason in the entry, if the failure occurred before the versions were known. */
static void note_early_failure(kelp_repository *repository, kelp_entry *entry,
                               const kelp_status *status) {
    char reason[2048];
    kelp_status_format(status, reason, sizeof reason);
    kelp_server_log_status("cannot keep a reason", kelp_text_set(repository->host->base.allocator,
                                                                 &entry->failure, reason));
}

kelp_status *kelp_entry_load(kelp_repository *repository, kelp_entry *entry, const char *path,
                             const kelp_load_options *options) {
    KELP_ASSERT(entry->busy);
    const char *slash = strrchr(path, '/');
    load job = {.repository = repository,
                .entry = entry,
                .uploads = options,
                .directory_name = slash != NULL ? slash + 1 : path};
    kelp_status *status =
        kelp_override_apply(repository->host->base.allocator, &entry->override, entry->name, path,
                            entry->signature, options, &job.directory);
    bool logged = false;
    if (status == NULL) {
        status = read_model(&job);
        logged = status != NULL; /* as Triton does */
        if (logged)
            status = kelp_repository_poll_failure(entry->name, path, status);
    }
    if (status == NULL)
        status = make_models(&job);
    if (status != NULL)
        kelp_agent_chain_fail(job.agents);
    else
        kelp_agent_chain_complete(job.agents);
    pthread_mutex_lock(&repository->lock);
    kelp_text_clear(&entry->failure);
    if (status != NULL)
        note_failure(&job);
    else
        publish(&job);
    if (status != NULL && entry->version_count == 0)
        note_early_failure(repository, entry, status);
    if (status != NULL && options != NULL) /* a later load must not fail because of it */
        kelp_override_clear(repository->host->base.allocator, &entry->override);
    pthread_mutex_unlock(&repository->lock);
    load_deinit(&job);
    if (status != NULL && !logged) {
        char reason[4096];
        kelp_status_format(status, reason, sizeof reason);
        KELP_SERVER_LOG(KELP_LOG_ERROR, "failed to load '%s': %s", entry->name, reason);
    }
    return status;
}
