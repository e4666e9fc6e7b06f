/* SPDX-License-Identifier: Apache-2.0 */
/* A backend whose models wait for each other when they are finalized. */
#include <pthread.h>
#include <time.h>
#include <triton/core/tritonbackend.h>

#define EXPORT __attribute__((visibility("default")))

enum { MODELS = 3, PATIENCE_S = 60 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int inside, most;

/* Returns the maximum number of models that were finalized at the same time. */
EXPORT int meeting_most(void);
EXPORT int meeting_most(void) {
    pthread_mutex_lock(&lock);
    int number = most;
    pthread_mutex_unlock(&lock);
    return number;
}

EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model) {
    struct timespec until;
    int result = 0;
    (void)model;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&lock);
    most = ++inside > most ? inside : most;
    pthread_cond_broadcast(&changed);
    while (most < MODELS && result == 0)
        result = pthread_cond_timedwait(&changed, &lock, &until);
    inside--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                              TRITONBACKEND_Request **requests,
                                                              const uint32_t request_count) {
    (void)instance, (void)requests, (void)request_count;
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "not executable");
}
