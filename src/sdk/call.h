/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to other models, and the thread of a backend that watches those in flight.
 *
 * A call is over for the backend when its last callback has returned. That is when the server has
 * sent the last response and has released the request or, for a call with a timeout, earlier. The
 * object exists until the backend has destroyed it and the server has finished with it.
 *
 * Locks are taken in this order: that of the watch, `turn`, `lock`.
 */
#ifndef KELP_SDK_CALL_H_
#define KELP_SDK_CALL_H_

#include "sdk/sdk.h"

struct kelp_backend_call {
    kelp_sdk_watch *watch;
    TRITONSERVER_Server *server;
    TRITONSERVER_InferenceRequest *raw;
    TRITONSERVER_ResponseAllocator *allocator;
    TRITONSERVER_InferenceTrace *trace;    /* owned until the start */
    TRITONBACKEND_ResponseFactory *parent; /* tells if the parent request is cancelled, also after
                                              its release; NULL: no parent, or the call is over */
    kelp_arena arena;                      /* copies of inputs */
    kelp_arena strings;                    /* strings of outputs */
    kelp_backend_call_fn fn;
    void *userp;
    uint64_t timeout_ns; /* 0: none */
    bool has_inputs;
    pthread_mutex_t turn; /* serializes callbacks; guards the following four */
    TRITONSERVER_InferenceResponse **responses;
    size_t response_count, response_capacity;
    kelp_status *failure; /* the first one */
    bool closed;          /* further responses are dropped */
    pthread_mutex_t lock; /* guards the following fields */
    pthread_cond_t changed;
    unsigned refs;   /* the backend, the server while the call is in flight, threads at work */
    unsigned active; /* running callbacks of the server */
    bool started, final, released;
    bool ended;   /* a thread has started to end the call */
    bool over;    /* for the backend */
    bool in_last; /* the last callback is running, on `last_thread` */
    pthread_t last_thread;
    /* Guarded by the lock of the watch. */
    kelp_backend_call *previous, *next; /* in the list of the watch */
    bool watched, cancelled;
    uint64_t deadline_ns; /* 0: none */
};

/* Ends a call before the server has finished, unless it has ended. Takes the failure. */
void kelp_sdk_call_abort(kelp_backend_call *call, kelp_status *take_failure);
/* Adds a reference. */
void kelp_sdk_call_retain(kelp_backend_call *call);
/* Drops a reference; the last one frees the call. */
void kelp_sdk_call_release(kelp_backend_call *call);

/* Starts the thread of a watch, unless it runs. */
kelp_status *kelp_sdk_watch_start(kelp_sdk_watch *watch) KELP_MUST_USE;
/* Adds a started call, unless it has ended. */
void kelp_sdk_watch_add(kelp_sdk_watch *watch, kelp_backend_call *call);
/* Removes a call that was added, or was not. */
void kelp_sdk_watch_remove(kelp_sdk_watch *watch, kelp_backend_call *call);

#endif
