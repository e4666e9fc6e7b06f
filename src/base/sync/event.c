/* SPDX-License-Identifier: Apache-2.0 */
/* Implements events: a flag protected by a mutex. */
#include "base/sync/event.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"

#include <errno.h>

struct kelp_event {
    kelp_allocator allocator;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool pending;
    void (*callback)(void *userp); /* or NULL */
    void *userp;
};

kelp_status *kelp_lock_init(pthread_mutex_t *mutex, pthread_cond_t *changed) {
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a condition variable");
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    int failed = pthread_cond_init(changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (failed != 0)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a condition variable");
    if (pthread_mutex_init(mutex, NULL) != 0) {
        pthread_cond_destroy(changed);
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "no memory for a mutex");
    }
    return NULL;
}

kelp_status *kelp_event_create(kelp_allocator allocator, kelp_event **out) {
    kelp_event *event = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_event, &event));
    event->allocator = allocator;
    kelp_status *status = kelp_lock_init(&event->mutex, &event->changed);
    if (status != NULL) {
        kelp_free(allocator, event, sizeof *event);
        return status;
    }
    *out = event;
    return NULL;
}

void kelp_event_destroy(kelp_event *event) {
    if (event == NULL)
        return;
    kelp_event_wait(event, UINT64_MAX);
    KELP_ASSERT(!event->pending);
    kelp_allocator allocator = event->allocator;
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->mutex);
    kelp_free(allocator, event, sizeof *event);
}

bool kelp_event_done(kelp_event *event) {
    pthread_mutex_lock(&event->mutex);
    bool done = !event->pending;
    pthread_mutex_unlock(&event->mutex);
    return done;
}

bool kelp_event_wait(kelp_event *event, uint64_t timeout_ns) {
    uint64_t now = kelp_now_ns();
    uint64_t deadline = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
    struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u),
                             .tv_nsec = (long)(deadline % 1000000000u)};
    int code = 0;
    pthread_mutex_lock(&event->mutex);
    while (event->pending && code != ETIMEDOUT)
        code = deadline == UINT64_MAX
                   ? pthread_cond_wait(&event->changed, &event->mutex)
                   : pthread_cond_timedwait(&event->changed, &event->mutex, &until);
    bool done = !event->pending;
    pthread_mutex_unlock(&event->mutex);
    return done;
}

void kelp_event_set_pending(kelp_event *event, bool pending) {
    if (event == NULL)
        return;
    pthread_mutex_lock(&event->mutex);
    if (event->pending && !pending && event->callback != NULL)
        event->callback(event->userp);
    event->pending = pending;
    if (!pending)
        pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->mutex);
}

void kelp_event_set_callback(kelp_event *event, void (*callback)(void *userp), void *userp) {
    pthread_mutex_lock(&event->mutex);
    KELP_ASSERT(!event->pending);
    event->callback = callback;
    event->userp = userp;
    pthread_mutex_unlock(&event->mutex);
}
