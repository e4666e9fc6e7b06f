/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Factories. A factory creates the responses of one submission of a request, and outlives the
 * request. TRITONBACKEND_ResponseFactory is a counted reference to it.
 *
 * A factory has two counts. `refs` keeps its memory. `open` counts the objects that may still
 * respond: the executing request, each TRITONBACKEND_ResponseFactory, each response that is not
 * sent. If FINAL was not sent when it reaches 0, the server sends it, with an error if there was no
 * response, so that no client waits forever. The model stays entered until then.
 *
 * Thread-safe: counts and flags are atomic.
 */
#ifndef KELP_SERVER_REQUEST_FACTORY_H_
#define KELP_SERVER_REQUEST_FACTORY_H_

#include "server/request/request.h"

/* A factory. `released` and `serial` tell whether a submission is over. */
struct kelp_factory {
    kelp_factory *next;      /* in a pool */
    kelp_request_pool *home; /* the pool that it returns to; holds its allocator */
    kelp_model_base *model;  /* a reference */
    atomic_uint refs;
    atomic_uint open;
    atomic_uint late; /* TRITONBACKEND_ResponseFactory objects that were created after the end */
    atomic_bool cancelled;
    _Atomic(void *) execution; /* of the model, for its `cancel`; NULL if it has none */
    atomic_bool final_sent;
    atomic_bool starved;          /* there was no memory for a response */
    uint64_t start_ns;            /* of the request; monotonic */
    atomic_ullong response_count; /* sent */
    atomic_bool failed;           /* a response carried an error */
    atomic_ullong reported_count; /* responses whose statistics were reported */
    kelp_response_allocator *allocator;
    void *allocator_userp;
    TRITONSERVER_InferenceResponseCompleteFn_t response_fn;
    void *response_userp;
    kelp_text id;
    kelp_trace *trace;       /* owned until the submission is over and its responses are deleted */
    atomic_uint trace_users; /* the submission, and its responses */
    atomic_bool released;    /* the request is its caller's again */
    atomic_ullong serial;    /* of the submission; changes when the object is reused */
    kelp_stats *counted_by;  /* set on release, if the server counts for a backend that cannot
                                report */
    kelp_request_times times;
    uint32_t batch_size;
    kelp_response_slot slot; /* in the order of the model's responses */
    _Atomic(struct kelp_cache_ticket *)
        ticket; /* owned; NULL unless the response is to be cached */
};

/* Creates the factory of one submission. `refs` is 2 (for the request and for `open`), `open` is 1
 * (for the request). The model must be entered. */
kelp_status *kelp_factory_create(kelp_request *request, kelp_factory **out) KELP_MUST_USE;
void kelp_factory_retain(kelp_factory *factory);
void kelp_factory_release(kelp_factory *factory);
/* Increments `open`. Returns false if the submission is over. */
bool kelp_factory_open(kelp_factory *factory);
/* Decrements `open`. The last call may call the response callback, and leaves the model. */
void kelp_factory_close(kelp_factory *factory);
/* Counts a request, once, for a backend that cannot report, according to its responses. No response
 * is sent concurrently. */
void kelp_factory_count(kelp_factory *factory);
/* Ends a submission that is closed: the last call for it. */
void kelp_factory_retire(kelp_factory *factory);
/* Sets the flag that the submission is cancelled, and cancels the requests that it made to other
 * models. Thread-safe. */
void kelp_factory_cancel(kelp_factory *factory);
/* Undoes a submission that the model did not accept: closes without a response. */
void kelp_factory_abandon(kelp_factory *factory);
/* Frees a factory. Called by the pool. */
void kelp_factory_free(kelp_factory *factory);

/* Returns true if a response or flags may be sent, false after FINAL. Records FINAL. */
bool kelp_factory_may_send(kelp_factory *factory, uint32_t flags);
/* Sends flags without a response. INTERNAL after FINAL. */
kelp_status *kelp_factory_send_flags(kelp_factory *factory, uint32_t flags) KELP_MUST_USE;
/* Returns the error of a submission that is over. */
kelp_status *kelp_factory_over(const kelp_factory *factory) KELP_MUST_USE;
/* Releases one use of the trace; the last one returns it to its creator. */
void kelp_factory_leave_trace(kelp_factory *factory);

#endif
