/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of the server to models: the first member of kelp_server. */
#ifndef KELP_SERVER_MODEL_HOST_H_
#define KELP_SERVER_MODEL_HOST_H_

#include "base/sync/timer.h"
#include "server/model/backend.h"
#include "server/request/model_base.h"
#include "server/scheduler/rate_limiter.h"

/* The part of the server that models use. */
typedef struct kelp_model_host {
    kelp_request_host base;
    kelp_server_options *options;
    kelp_latency_rules latency_rules;
    kelp_response_cache *cache; /* NULL if none is configured */
    kelp_server_backend_set backends;
    kelp_timers *timers;             /* for queue timeouts */
    kelp_rate_limiter *rate_limiter; /* NULL: executions are not limited */
} kelp_model_host;

#endif
