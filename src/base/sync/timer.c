/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap of timers, and the thread that waits for the first one. */
#include "base/sync/timer.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sync/thread.h"

#include <pthread.h>
#include <time.h>

struct kelp_timers {
    kelp_allocator allocator;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the first timer changed, or the service stops */
    pthread_cond_t idle;    /* a callback returned */
    pthread_t thread;
    bool has_thread;
    bool stopping;
    const kelp_timer *running; /* its callback runs */
    kelp_timer **heap;         /* the timers that are set; the earliest first */
    size_t count;
    size_t capacity; /* at least `added` */
    size_t added;
};

kelp_status *kelp_timers_create(kelp_allocator allocator, kelp_timers **out) {
    pthread_condattr_t attributes;
    kelp_timers *service = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_timers, &service));
    service->allocator = allocator;
    pthread_mutex_init(&service->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&service->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_cond_init(&service->idle, NULL);
    *out = service;
    return NULL;
}

void kelp_timers_destroy(kelp_timers *service) {
    if (service == NULL)
        return;
    pthread_mutex_lock(&service->lock);
    KELP_ASSERT(service->added == 0 && service->count == 0);
    KELP_ASSERT(!service->has_thread || !pthread_equal(service->thread, pthread_self()));
    service->stopping = true;
    pthread_cond_signal(&service->changed);
    pthread_mutex_unlock(&service->lock);
    if (service->has_thread)
        pthread_join(service->thread, NULL);
    kelp_free(service->allocator, service->heap, service->capacity * sizeof(kelp_timer *));
    pthread_cond_destroy(&service->idle);
    pthread_cond_destroy(&service->changed);
    pthread_mutex_destroy(&service->lock);
    kelp_free(service->allocator, service, sizeof *service);
}

/* ---- the heap, under the lock ---- */

static void place(kelp_timers *service, kelp_timer *timer, size_t position) {
    service->heap[position] = timer;
    timer->position = position;
}

static void move_up(kelp_timers *service, kelp_timer *timer) {
    size_t position = timer->position;
    while (position > 0 && service->heap[(position - 1) / 2]->time_ns > timer->time_ns) {
        place(service, service->heap[(position - 1) / 2], position);
        position = (position - 1) / 2;
    }
    place(service, timer, position);
}

static void move_down(kelp_timers *service, kelp_timer *timer) {
    size_t position = timer->position;
    for (;;) {
        size_t child = 2 * position + 1;
        if (child + 1 < service->count &&
            service->heap[child + 1]->time_ns < service->heap[child]->time_ns)
            child++;
        if (child >= service->count || service->heap[child]->time_ns >= timer->time_ns)
            break;
        place(service, service->heap[child], position);
        position = child;
    }
    place(service, timer, position);
}

static void unset(kelp_timer *timer) {
    kelp_timers *service = timer->service;
    if (timer->time_ns == KELP_NEVER_NS)
        return;
    KELP_ASSERT(service->count > 0 && service->heap[timer->position] == timer);
    kelp_timer *last = service->heap[--service->count];
    timer->time_ns = KELP_NEVER_NS;
    if (last == timer)
        return;
    place(service, last, timer->position);
    move_down(service, last);
    move_up(service, last);
}

/* ---- the thread ---- */

static void *timers_main(void *userp) {
    kelp_timers *service = userp;
    pthread_mutex_lock(&service->lock);
    while (!service->stopping) {
        kelp_timer *first = service->count > 0 ? service->heap[0] : NULL;
        if (first == NULL) {
            pthread_cond_wait(&service->changed, &service->lock);
            continue;
        }
        uint64_t time_ns = first->time_ns;
        if (time_ns > kelp_now_ns()) {
            const struct timespec until = {.tv_sec = (time_t)(time_ns / 1000000000),
                                           .tv_nsec = (long)(time_ns % 1000000000)};
            pthread_cond_timedwait(&service->changed, &service->lock, &until);
            continue;
        }
        unset(first);
        service->running = first;
        pthread_mutex_unlock(&service->lock);
        first->fn(first->userp);
        pthread_mutex_lock(&service->lock);
        service->running = NULL;
        pthread_cond_broadcast(&service->idle);
    }
    pthread_mutex_unlock(&service->lock);
    return NULL;
}

/* ---- timers ---- */

kelp_status *kelp_timer_add(kelp_timers *service, kelp_timer *timer, kelp_timer_fn fn,
                            void *userp) {
    KELP_ASSERT(fn != NULL);
    *timer = (kelp_timer){.fn = fn, .userp = userp, .time_ns = KELP_NEVER_NS};
    pthread_mutex_lock(&service->lock);
    kelp_status *status = kelp_grow(service->allocator, (void **)&service->heap, &service->capacity,
                                    service->added + 1, sizeof(kelp_timer *));
    if (status == NULL) {
        service->added++;
        timer->service = service;
    }
    pthread_mutex_unlock(&service->lock);
    return status;
}

void kelp_timer_remove(kelp_timer *timer) {
    kelp_timers *service = timer->service;
    pthread_mutex_lock(&service->lock);
    KELP_ASSERT(service->added > 0);
    while (service->running == timer)
        pthread_cond_wait(&service->idle, &service->lock);
    unset(timer); /* after the callback, which may have set it */
    service->added--;
    timer->service = NULL;
    pthread_mutex_unlock(&service->lock);
}

/* Starts the thread if it does not run. The lock is held. */
static kelp_status *start(kelp_timers *service) {
    if (service->has_thread)
        return NULL;
    KELP_TRY(kelp_thread_start(&service->thread, "kelp-timers", timers_main, service));
    service->has_thread = true;
    return NULL;
}

kelp_status *kelp_timer_set(kelp_timer *timer, uint64_t time_ns) {
    kelp_timers *service = timer->service;
    kelp_status *status = NULL;
    pthread_mutex_lock(&service->lock);
    if (time_ns != timer->time_ns) {
        unset(timer);
        timer->time_ns = time_ns;
        if (time_ns != KELP_NEVER_NS) {
            KELP_ASSERT(service->count < service->capacity);
            place(service, timer, service->count++);
            move_up(service, timer);
            status = start(service);
            if (service->heap[0] == timer)
                pthread_cond_signal(&service->changed);
        }
    }
    pthread_mutex_unlock(&service->lock);
    return status;
}
