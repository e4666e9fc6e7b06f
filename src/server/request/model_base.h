/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model as requests see it: the first member of kelp_model, so that TRITONBACKEND_Model points at
 * it too.
 *
 * Two counts. `refs` keeps the memory: requests (idle ones too), factories and the table of models
 * hold references. `live` counts submissions in flight; its top bit says that the model is retired
 * and accepts no more. When the count of a retired model reaches 0 the server's reaper finalizes
 * it.
 */
#ifndef KELP_SERVER_REQUEST_MODEL_BASE_H_
#define KELP_SERVER_REQUEST_MODEL_BASE_H_

#include "server/config/config.h"
#include "server/metrics/stats.h"
#include "server/request/host.h"

#include <stdatomic.h>

typedef struct kelp_response_cache kelp_response_cache;

/* Implemented by the model. */
typedef struct kelp_model_ops {
    /* Frees the model, whose last reference was released. */
    void (*destroy)(kelp_model_base *model);
    /* Queues or executes a PENDING request. The request may be over when this returns. On failure
     * it stays the caller's. */
    kelp_status *(*submit)(kelp_model_base *model, kelp_request *request);
} kelp_model_ops;

struct kelp_model_base {
    const kelp_model_ops *ops;
    kelp_request_host *host; /* a reference */
    atomic_uint refs;
    atomic_uint live;
    char *name;
    int64_t version;
    kelp_model_config *config; /* what requests are checked against; immutable while the model
                                  serves */
    const char *backend_name;
    bool decoupled;
    kelp_response_cache *cache; /* NULL: its responses are not cached */
    uint64_t fingerprint;       /* of files and configuration, if `cache` is set */
    kelp_latency *latency;      /* distributions of durations; usually NULL */
    kelp_stats stats; /* the model's memory, and requests that never reached an instance; each
                         instance has statistics of its own */
};

void kelp_model_retain(kelp_model_base *model);
/* NULL is ignored. */
void kelp_model_release(kelp_model_base *model);

/* Returns false if the model is retired; otherwise the submission counts until kelp_model_leave. */
bool kelp_model_enter(kelp_model_base *model);
void kelp_model_leave(kelp_model_base *model);
/* Rejects further submissions; the reaper gets the model after the last one. Called once. */
void kelp_model_retire(kelp_model_base *model);

#endif
