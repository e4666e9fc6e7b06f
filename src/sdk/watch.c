/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that ends calls whose timeout has expired, and cancels calls whose parent request was
 * cancelled. A server does not report either to a backend. The thread is started by the first call
 * with a timeout or a parent, and sleeps while there is no such call in flight.
 */
#include "sdk/call.h"

#include <signal.h>
#include <time.h>

/* The interval at which parent requests are checked. */
enum { CANCEL_POLL_NS = 10000000 };

void kelp_sdk_watch_init(kelp_sdk_watch *watch) {
    pthread_condattr_t attributes;
    *watch = (kelp_sdk_watch){.wake_ns = UINT64_MAX};
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void kelp_sdk_watch_deinit(kelp_sdk_watch *watch) {
    pthread_mutex_lock(&watch->lock);
    watch->stopping = true;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->lock);
    if (watch->running)
        pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
}

static void unlink_call(kelp_sdk_watch *watch, kelp_backend_call *call) {
    KELP_ASSERT_HELD(&watch->lock);
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        watch->calls = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
    call->previous = call->next = NULL;
    call->watched = false;
}

/* A call that has to end now: its timeout has expired, or nothing waits for the result. */
typedef struct verdict {
    kelp_backend_call *call; /* NULL: none; a reference, removed from the watch */
    bool expired;            /* else cancelled */
} verdict;

/* Returns the time at which a call has to be checked next; UINT64_MAX: never. */
static uint64_t next_check_ns(const kelp_backend_call *call, uint64_t now_ns) {
    uint64_t deadline_ns = call->deadline_ns != 0 ? call->deadline_ns : UINT64_MAX;
    bool polls = call->parent != NULL && !call->cancelled;
    return polls ? KELP_MIN(deadline_ns, now_ns + CANCEL_POLL_NS) : deadline_ns;
}

/* Cancels calls of cancelled requests, and returns a call that has to end at once. Otherwise sets
 * the time of the next check. */
static verdict check_calls(kelp_sdk_watch *watch, uint64_t now_ns) {
    verdict found = {0};
    KELP_ASSERT_HELD(&watch->lock);
    watch->wake_ns = UINT64_MAX;
    for (kelp_backend_call *call = watch->calls; call != NULL; call = call->next) {
        bool cancelled = false;
        if (call->parent != NULL && !call->cancelled)
            (void)sdk_ok(TRITONBACKEND_ResponseFactoryIsCancelled(call->parent, &cancelled));
        if (cancelled) {
            call->cancelled = true;
            kelp_backend_call_cancel(call);
        }
        bool expired = call->deadline_ns != 0 && call->deadline_ns <= now_ns;
        if (expired || (cancelled && call->timeout_ns != 0)) {
            found = (verdict){call, expired};
            kelp_sdk_call_retain(call);
            unlink_call(watch, call);
            return found;
        }
        watch->wake_ns = KELP_MIN(watch->wake_ns, next_check_ns(call, now_ns));
    }
    return found;
}

static void wait_for_next_check(kelp_sdk_watch *watch) {
    const struct timespec until = {.tv_sec = (time_t)(watch->wake_ns / 1000000000),
                                   .tv_nsec = (long)(watch->wake_ns % 1000000000)};
    KELP_ASSERT_HELD(&watch->lock);
    if (watch->wake_ns == UINT64_MAX)
        pthread_cond_wait(&watch->changed, &watch->lock);
    else
        pthread_cond_timedwait(&watch->changed, &watch->lock, &until);
}

static void *watch_main(void *userp) {
    kelp_sdk_watch *watch = userp;
    pthread_mutex_lock(&watch->lock);
    while (!watch->stopping) {
        verdict found = check_calls(watch, kelp_backend_now_ns());
        if (found.call == NULL) {
            wait_for_next_check(watch);
            continue;
        }
        pthread_mutex_unlock(&watch->lock);
        double seconds = (double)found.call->timeout_ns / 1e9;
        kelp_sdk_call_abort(
            found.call,
            found.expired
                ? KELP_ERROR(KELP_DEADLINE_EXCEEDED,
                             "the other model did not finish within the timeout of %g s", seconds)
                : KELP_ERROR(KELP_CANCELLED, "the request was cancelled"));
        kelp_sdk_call_release(found.call);
        pthread_mutex_lock(&watch->lock);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

kelp_status *kelp_sdk_watch_start(kelp_sdk_watch *watch) {
    sigset_t all, before;
    int error = 0;
    pthread_mutex_lock(&watch->lock);
    if (!watch->running) {
        /* The signals of the process are for its own threads. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(&watch->thread, NULL, watch_main, watch);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        watch->running = error == 0;
    }
    pthread_mutex_unlock(&watch->lock);
    return error == 0
               ? NULL
               : KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "cannot start a thread: %s", strerror(error));
}

void kelp_sdk_watch_add(kelp_sdk_watch *watch, kelp_backend_call *call) {
    pthread_mutex_lock(&watch->lock);
    pthread_mutex_lock(&call->lock);
    bool ended = call->ended;
    pthread_mutex_unlock(&call->lock);
    if (!ended) {
        call->watched = true;
        call->next = watch->calls;
        if (call->next != NULL)
            call->next->previous = call;
        watch->calls = call;
        /* Under load, the thread checks often enough: no call wakes it up. */
        if (next_check_ns(call, kelp_backend_now_ns()) < watch->wake_ns)
            pthread_cond_signal(&watch->changed);
    }
    pthread_mutex_unlock(&watch->lock);
}

void kelp_sdk_watch_remove(kelp_sdk_watch *watch, kelp_backend_call *call) {
    pthread_mutex_lock(&watch->lock);
    if (call->watched)
        unlink_call(watch, call);
    pthread_mutex_unlock(&watch->lock);
}
