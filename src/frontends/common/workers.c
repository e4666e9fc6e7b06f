/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/common/workers.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sync/thread.h"

struct kelp_workers {
    kelp_allocator allocator;
    unsigned max_threads;
    pthread_mutex_t mutex;
    pthread_cond_t ended; /* the last thread */
    unsigned threads;
    kelp_work *first; /* waits */
    kelp_work *last;
};

kelp_status *kelp_workers_create(kelp_allocator allocator, unsigned max_threads,
                                 kelp_workers **out) {
    KELP_ASSERT(max_threads > 0);
    kelp_workers *workers;
    KELP_TRY(KELP_NEW(allocator, kelp_workers, &workers));
    workers->allocator = allocator;
    workers->max_threads = max_threads;
    pthread_mutex_init(&workers->mutex, NULL);
    pthread_cond_init(&workers->ended, NULL);
    *out = workers;
    return NULL;
}

void kelp_workers_wait(kelp_workers *workers) {
    pthread_mutex_lock(&workers->mutex);
    while (workers->threads > 0)
        pthread_cond_wait(&workers->ended, &workers->mutex);
    KELP_ASSERT(workers->first == NULL);
    pthread_mutex_unlock(&workers->mutex);
}

void kelp_workers_destroy(kelp_workers *workers) {
    if (workers == NULL)
        return;
    kelp_workers_wait(workers);
    pthread_cond_destroy(&workers->ended);
    pthread_mutex_destroy(&workers->mutex);
    kelp_free(workers->allocator, workers, sizeof *workers);
}

static void *run_all(void *userp) {
    kelp_workers *workers = userp;
    pthread_mutex_lock(&workers->mutex);
    while (workers->first != NULL) {
        kelp_work *work = workers->first;
        workers->first = work->next;
        pthread_mutex_unlock(&workers->mutex);
        work->run(work);
        pthread_mutex_lock(&workers->mutex);
    }
    if (--workers->threads == 0)
        pthread_cond_broadcast(&workers->ended);
    pthread_mutex_unlock(&workers->mutex);
    return NULL;
}

/* Starts a thread for the work that waits. The mutex is held. */
static kelp_status *start_thread(kelp_workers *workers) {
    pthread_t id;
    KELP_TRY(kelp_thread_start(&id, "kelp-work", run_all, workers));
    pthread_detach(id);
    workers->threads++;
    return NULL;
}

kelp_status *kelp_workers_submit(kelp_workers *workers, kelp_work *work) {
    kelp_status *status = NULL;
    KELP_ASSERT(work->run != NULL);
    pthread_mutex_lock(&workers->mutex);
    if (workers->threads < workers->max_threads)
        status = start_thread(workers);
    if (workers->threads > 0) { /* they take it, although no further one could be started */
        kelp_status_free(status);
        status = NULL;
        work->next = NULL;
        if (workers->first != NULL)
            workers->last->next = work;
        else
            workers->first = work;
        workers->last = work;
    }
    pthread_mutex_unlock(&workers->mutex);
    return status;
}
