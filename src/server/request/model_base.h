/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of a model to requests: the first member of kelp_model, so that
 * TRITONBACKEND_Model is a pointer to it.
 *
 * A model has two counts. `refs` keeps the memory: requests (also idle ones), factories and the
 * table of models hold references. `live` counts submissions in flight; its top bit means that the
 * model is retired and accepts no more submissions. When the count of a retired model reaches 0,
 * the server's reaper finalizes it.
 */
#ifndef KELP_SERVER_REQUEST_MODEL_BASE_H_
#define KELP_SERVER_REQUEST_MODEL_BASE_H_

#include "server/config/config.h"
#include "server/metrics/stats.h"
#include "server/request/host.h"
#include "server/request/response_order.h"

#include <stdatomic.h>

typedef struct kelp_due kelp_due; /* due.h */
typedef struct kelp_response_cache kelp_response_cache;

/* The functions that the model implements. */
typedef struct kelp_model_ops {
    /* Frees the model after the last reference was released. */
    void (*destroy)(kelp_model_base *model);
    /* Queues or executes a PENDING request, which may be over on return. On failure it stays the
     * caller's. */
    kelp_status *(*submit)(kelp_model_base *model, kelp_request *request);
    /* Cancels the requests that a submission of the model made to other models. NULL: it makes
     * none. Completes no request on the calling thread. Thread-safe. */
    void (*cancel)(kelp_model_base *model, kelp_factory *factory);
    /* Returns UNAVAILABLE, with the reason, if the model depends on other models and cannot serve
     * at present. NULL: it depends on none. Thread-safe. */
    kelp_status *(*check)(kelp_model_base *model);
    /* Returns UNAVAILABLE if the queue of the model is full for every request. NULL: unknown before
     * the submission. The model is entered. Thread-safe. */
    kelp_status *(*check_queue)(kelp_model_base *model, const kelp_request *request);
    /* Executes a batch on the calling thread if it is due and this thread has promised it, and adds
     * the model to `due` again if requests are left. Called for models that a submission has added;
     * the model is entered. */
    void (*execute_due)(kelp_model_base *model, kelp_due *due);
    /* For requests of sequences: the request returns to its caller, or is queued again. Called
     * before the request's callback. */
    void (*release)(kelp_model_base *model, kelp_request *request);
    void (*reschedule)(kelp_model_base *model, kelp_request *request);
    /* Returns a number that changes with the models on which the model depends, for the response
     * cache. NULL: it depends on none. Thread-safe. */
    uint64_t (*fingerprint)(kelp_model_base *model);
} kelp_model_ops;

/* The part of a model that requests use. */
struct kelp_model_base {
    const kelp_model_ops *ops;
    kelp_request_host *host; /* a reference */
    atomic_uint refs;
    atomic_uint live;
    atomic_uint cancellations; /* of requests, ever; for schedulers */
    char *name;
    const char *space; /* the namespace; "" without namespaces; borrowed from the repository */
    int64_t version;
    uint64_t serial;           /* of all models of the process; from 1 */
    kelp_model_config *config; /* for the checks of requests; immutable while the model serves */
    const char *backend_name;
    bool decoupled;
    kelp_response_order order;  /* of responses */
    kelp_response_cache *cache; /* NULL: responses are not cached */
    uint64_t fingerprint;       /* of files and configuration, if `cache` is set */
    kelp_latency *latency;      /* distributions of durations; usually NULL */
    kelp_stats stats;           /* the model's memory, and requests that no instance executed; each
                                   instance has its own statistics */
};

/* Adds a reference. */
void kelp_model_retain(kelp_model_base *model);
/* Drops a reference. NULL is ignored. */
void kelp_model_release(kelp_model_base *model);

/* Returns the fingerprint of the model and of those on which it depends. */
uint64_t kelp_model_fingerprint(kelp_model_base *model);

/* Counts a submission until kelp_model_leave. Returns false if the model is retired. */
bool kelp_model_enter(kelp_model_base *model);
/* Counts another submission of a model that the caller has entered, also if it is retired. */
void kelp_model_enter_again(kelp_model_base *model);
/* Ends a submission. The last one of a retired model passes the model to the reaper. */
void kelp_model_leave(kelp_model_base *model);
/* Returns the number of submissions in flight. */
unsigned kelp_model_live(const kelp_model_base *model);
/* Rejects further submissions. Called once. */
void kelp_model_retire(kelp_model_base *model);

#endif
