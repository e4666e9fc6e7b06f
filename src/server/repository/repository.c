/* SPDX-License-Identifier: Apache-2.0 */
/* Start and stop of a server's models. */
#include "server/repository/repository.h"

#include "base/assert.h"
#include "server/core/log.h"
#include "server/repository/scan.h"

#include <errno.h>
#include <time.h>

void kelp_repository_init(kelp_repository *repository, kelp_model_host *host) {
    kelp_allocator allocator = host->base.allocator;
    pthread_condattr_t attributes;
    *repository = (kelp_repository){.host = host};
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&repository->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&repository->lock, NULL);
    kelp_map_init(&repository->entries, allocator);
    kelp_string_list_init(&repository->paths, allocator);
    kelp_settings_init(&repository->mappings, allocator);
}

void kelp_repository_warn_of_layout(const kelp_repository *repository, const char *path) {
    kelp_buf text;
    kelp_buf_init(&text, repository->host->base.allocator);
    kelp_status *status = kelp_scan_describe_layout(repository->host->base.allocator, path, &text);
    if (status == NULL && text.length > 0)
        KELP_SERVER_LOG(KELP_LOG_WARNING, "%.*s", (int)text.length, text.data);
    kelp_status_free(status); /* the scan reports a directory that cannot be read */
    kelp_buf_deinit(&text);
}

kelp_status *kelp_repository_start(kelp_repository *repository) {
    KELP_TRY(kelp_string_list_append(&repository->paths, &repository->host->options->repositories));
    if (repository->paths.count == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "the server has no model repository");
    for (size_t i = 0; i < repository->paths.count; i++)
        kelp_repository_warn_of_layout(repository, repository->paths.items[i]);
    KELP_TRY(kelp_repository_start_reaper(repository));
    return kelp_repository_load_startup(repository);
}

/* Lists the names of the models of an ensemble's steps. */
static kelp_status *add_members(const kelp_model *model, kelp_string_list *inout_names) {
    for (size_t i = 0; model != NULL && i < model->base.config->step_count; i++)
        if (!kelp_string_list_has(inout_names, model->base.config->steps[i].model_name))
            KELP_TRY(kelp_string_list_add(inout_names, model->base.config->steps[i].model_name));
    return NULL;
}

/* Lists the names of the members of all ensembles that may have requests. */
static kelp_status *list_members(kelp_repository *repository, kelp_string_list *inout_names) {
    kelp_status *status = NULL;
    pthread_mutex_lock(&repository->lock);
    for (const kelp_entry *entry = repository->first_entry; entry != NULL; entry = entry->next)
        for (size_t i = 0; i < entry->version_count && status == NULL; i++) {
            status = add_members(entry->versions[i].model, inout_names);
            if (status == NULL)
                status = add_members(entry->versions[i].leaving, inout_names);
        }
    pthread_mutex_unlock(&repository->lock);
    return status;
}

/* Returns a version that serves, or NULL. Models of the names `kept` are skipped unless they are
 * ensembles. Waits for loads in progress. The lock is held. */
static kelp_version *next_serving(kelp_repository *repository, const kelp_string_list *kept) {
    KELP_ASSERT_HELD(&repository->lock);
    for (;;) {
        bool busy = false;
        for (kelp_entry *entry = repository->first_entry; entry != NULL; entry = entry->next) {
            busy |= entry->busy;
            bool keeps = kept != NULL && kelp_string_list_has(kept, entry->name);
            for (size_t i = 0; i < entry->version_count; i++)
                if (entry->versions[i].model != NULL &&
                    (!keeps || entry->versions[i].model->ensemble != NULL))
                    return &entry->versions[i];
        }
        if (!busy)
            return NULL;
        pthread_cond_wait(&repository->changed, &repository->lock);
    }
}

/* Retires all models, except those of the names `kept` that are no ensembles. */
static void retire_all(kelp_repository *repository, const kelp_string_list *kept) {
    kelp_version *version;
    pthread_mutex_lock(&repository->lock);
    while ((version = next_serving(repository, kept)) != NULL)
        kelp_version_retire(repository, version);
    pthread_mutex_unlock(&repository->lock);
}

/* Waits until all models of a count are finalized; returns false if the time is over. */
static bool wait_for(kelp_repository *repository, const size_t *count,
                     const struct timespec *until) {
    int result = 0;
    pthread_mutex_lock(&repository->lock);
    while (*count > 0 && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&repository->changed, &repository->lock, until);
    bool finalized = *count == 0;
    pthread_mutex_unlock(&repository->lock);
    return finalized;
}

/* Returns the number of sequences that have not ended. */
static uint64_t count_sequences(kelp_repository *repository) {
    uint64_t count = 0;
    pthread_mutex_lock(&repository->lock);
    for (const kelp_entry *entry = repository->first_entry; entry != NULL; entry = entry->next)
        for (size_t i = 0; i < entry->version_count; i++)
            if (entry->versions[i].model != NULL && entry->versions[i].model->sequencer != NULL)
                count += kelp_instance_pool_live(&entry->versions[i].model->scheduler.pool);
    pthread_mutex_unlock(&repository->lock);
    return count;
}

/* Logs the models that have requests or sequences. */
static void log_in_flight(kelp_repository *repository) {
    pthread_mutex_lock(&repository->lock);
    for (const kelp_entry *entry = repository->first_entry; entry != NULL; entry = entry->next) {
        for (size_t i = 0; i < entry->version_count; i++) {
            kelp_model *model = entry->versions[i].model;
            if (model == NULL)
                continue;
            uint64_t count = model->sequencer != NULL
                                 ? kelp_instance_pool_live(&model->scheduler.pool)
                                 : kelp_model_live(&model->base);
            if (count > 0)
                KELP_SERVER_LOG(
                    KELP_LOG_INFO, "Model '%s' (version %lld) has %llu in-flight inferences",
                    entry->name, (long long)entry->versions[i].number, (unsigned long long)count);
        }
    }
    pthread_mutex_unlock(&repository->lock);
}

/* Waits until all sequences have ended, by their last request or by the idle timeout. Requests of
 * these sequences are still accepted. */
static void wait_for_sequences(kelp_repository *repository, const struct timespec *until) {
    const struct timespec step = {.tv_nsec = 2000000};
    struct timespec now;
    while (count_sequences(repository) > 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec > until->tv_sec ||
            (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec))
            return;
        nanosleep(&step, NULL);
    }
}

kelp_status *kelp_repository_stop(kelp_repository *repository) {
    struct timespec until;
    atomic_store(&repository->stopping, true);
    KELP_SERVER_LOG(KELP_LOG_INFO, "Waiting for in-flight requests to complete.");
    clock_gettime(CLOCK_MONOTONIC, &until);
    pthread_mutex_lock(&repository->lock);
    unsigned timeout_s = repository->host->options->exit_timeout_s;
    pthread_mutex_unlock(&repository->lock);
    until.tv_sec += (time_t)timeout_s;
    log_in_flight(repository);
    wait_for_sequences(repository, &until);
    kelp_repository_start_reapers(repository);
    /* The requests of ensembles need their members. */
    kelp_string_list members;
    kelp_string_list_init(&members, repository->host->base.allocator);
    kelp_server_log_status("requests of ensembles may fail", list_members(repository, &members));
    retire_all(repository, &members);
    kelp_string_list_deinit(&members);
    wait_for(repository, &repository->live_ensembles, &until);
    retire_all(repository, NULL);
    if (!wait_for(repository, &repository->live_models, &until))
        return KELP_ERROR(KELP_INTERNAL,
                          "Exit timeout expired: requests are still in flight after %u s",
                          timeout_s);
    kelp_repository_stop_reaper(repository);
    return NULL;
}

void kelp_repository_deinit(kelp_repository *repository) {
    KELP_ASSERT(repository->live_models == 0 && repository->reaper_count == 0);
    for (kelp_entry *entry = repository->first_entry, *next; entry != NULL; entry = next) {
        next = entry->next;
        kelp_entry_destroy(repository->host->base.allocator, entry);
    }
    kelp_map_deinit(&repository->entries);
    kelp_string_list_deinit(&repository->paths);
    kelp_settings_deinit(&repository->mappings);
    pthread_cond_destroy(&repository->changed);
    pthread_mutex_destroy(&repository->lock);
}
