/* SPDX-License-Identifier: Apache-2.0 */
/* Retirement of models, and the threads that finalize them. */
#include "base/assert.h"
#include "base/checked.h"
#include "base/sync/thread.h"
#include "server/core/log.h"
#include "server/repository/agents.h"
#include "server/repository/repository.h"

#include <dlfcn.h>
#include <malloc.h>

void kelp_repository_retire(kelp_model *model) {
    kelp_agent_chain_unload(model->agents);
    if (model->sequencer != NULL)
        kelp_instance_pool_retire(&model->scheduler.pool);
    kelp_model_retire(&model->base);
}

void kelp_version_retire(kelp_repository *repository, kelp_version *version) {
    KELP_ASSERT_HELD(&repository->lock);
    kelp_model *model = version->model;
    kelp_request_pools_lock(&repository->host->base.pools);
    version->model = NULL;
    version->leaving = model;
    version->state = KELP_VERSION_UNLOADING;
    kelp_text_clear(&version->reason);
    kelp_request_pools_unlock(&repository->host->base.pools);
    /* Without the lock, because kelp_repository_reap takes it. */
    pthread_mutex_unlock(&repository->lock);
    kelp_repository_retire(model);
    pthread_mutex_lock(&repository->lock);
}

void kelp_repository_reap(kelp_repository *repository, kelp_model *model) {
    pthread_mutex_lock(&repository->lock);
    KELP_ASSERT(repository->live_models > 0);
    model->next_retired = repository->retired;
    repository->retired = model;
    pthread_cond_broadcast(&repository->changed);
    pthread_mutex_unlock(&repository->lock);
}

/* Marks the version of a finalized model as unavailable, unless another model serves it. */
static void mark_unloaded(kelp_repository *repository, const kelp_model *model) {
    KELP_ASSERT_HELD(&repository->lock);
    kelp_version *version = kelp_entry_version(model->entry, model->base.version);
    if (version == NULL || version->leaving != model)
        return;
    kelp_request_pools_lock(&repository->host->base.pools);
    version->leaving = NULL;
    version->state = KELP_VERSION_UNAVAILABLE;
    kelp_server_log_status("cannot store a reason", kelp_text_set(repository->host->base.allocator,
                                                                  &version->reason, "unloaded"));
    kelp_request_pools_unlock(&repository->host->base.pools);
    KELP_SERVER_LOG(KELP_LOG_INFO, "successfully unloaded '%s' version %lld", model->base.name,
                    (long long)model->base.version);
}

/* Finalizes a model. The lock is held, and released meanwhile. */
static void finalize(kelp_repository *repository, kelp_model *model) {
    pthread_mutex_unlock(&repository->lock);
    kelp_model_finalize(model);
    kelp_agent_chain_release(model->agents);
    model->agents = NULL;
    pthread_mutex_lock(&repository->lock);
    mark_unloaded(repository, model);
    KELP_ASSERT(repository->live_models > 0);
    repository->live_models--;
    repository->live_ensembles -= model->ensemble != NULL;
    pthread_cond_broadcast(&repository->changed);
    pthread_mutex_unlock(&repository->lock);
    kelp_model_release(&model->base);
    pthread_mutex_lock(&repository->lock);
}

/* Returns the memory of finalized models to the system. The lock is held, and released meanwhile.
 */
static void trim(kelp_repository *repository) {
    pthread_mutex_unlock(&repository->lock);
#ifdef __GLIBC__
    /* If another allocator replaces malloc, such as that of a sanitizer, glibc's must not be used:
     * it would end the process when a thread exits. */
    Dl_info used, libc;
    void *function = dlsym(RTLD_DEFAULT, "malloc");
    void *trim_function = dlsym(RTLD_DEFAULT, "malloc_trim");
    if (function != NULL && trim_function != NULL && dladdr(function, &used) &&
        dladdr(trim_function, &libc) && used.dli_fbase == libc.dli_fbase)
        (void)malloc_trim(0);
#endif
    pthread_mutex_lock(&repository->lock);
}

static void *reaper_main(void *userp) {
    kelp_repository *repository = userp;
    bool trims = false;
    pthread_mutex_lock(&repository->lock);
    for (;;) {
        kelp_model *model = repository->retired;
        if (model != NULL) {
            repository->retired = model->next_retired;
            finalize(repository, model);
            trims = true;
            continue;
        }
        if (repository->reaper_stop)
            break;
        if (trims) {
            trim(repository);
            trims = false;
            continue;
        }
        pthread_cond_wait(&repository->changed, &repository->lock);
    }
    pthread_mutex_unlock(&repository->lock);
    return NULL;
}

kelp_status *kelp_repository_start_reaper(kelp_repository *repository) {
    KELP_ASSERT(repository->reaper_count < KELP_MAX_REAPERS);
    KELP_TRY(kelp_thread_start(&repository->reapers[repository->reaper_count], "kelp-reaper",
                               reaper_main, repository));
    repository->reaper_count++;
    return NULL;
}

void kelp_repository_start_reapers(kelp_repository *repository) {
    pthread_mutex_lock(&repository->lock);
    size_t wanted = KELP_MIN(repository->live_models, (size_t)KELP_MAX_REAPERS);
    pthread_mutex_unlock(&repository->lock);
    kelp_status *status = NULL;
    while (repository->reaper_count > 0 && repository->reaper_count < wanted && status == NULL)
        status = kelp_repository_start_reaper(repository);
    kelp_status_free(status); /* fewer reapers finalize the same models */
}

void kelp_repository_stop_reaper(kelp_repository *repository) {
    pthread_mutex_lock(&repository->lock);
    repository->reaper_stop = true;
    pthread_cond_broadcast(&repository->changed);
    pthread_mutex_unlock(&repository->lock);
    while (repository->reaper_count > 0)
        pthread_join(repository->reapers[--repository->reaper_count], NULL);
}
