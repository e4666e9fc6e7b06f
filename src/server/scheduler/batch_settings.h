/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of the batch policy, from a model's configuration: `dynamic_batching`, and the
 * parameters `kelp_max_queue_size` (requests that may be queued), `kelp_max_queue_bytes` (bytes of
 * their inputs), `kelp_queue_timeout_us` (queue timeout of models without `dynamic_batching`, which
 * a request may shorten) and `kelp_latency_target_us` (pace.h).
 */
#ifndef KELP_SERVER_SCHEDULER_BATCH_SETTINGS_H_
#define KELP_SERVER_SCHEDULER_BATCH_SETTINGS_H_

#include "server/scheduler/queue.h"

/* The queue limits of a priority level. */
typedef struct kelp_level_limits {
    uint64_t level;
    kelp_queue_limits limits;
} kelp_level_limits;

/* The settings. */
typedef struct kelp_batch_settings {
    uint32_t max_batch_size;       /* of an execution; 0: one request for each execution */
    uint32_t *preferred_sizes;     /* ascending */
    size_t preferred_count;        /* at least 1 if max_batch_size is not 0 */
    uint64_t delay_ns;             /* the maximum time to wait for a preferred size, without waking
                                      up a thread */
    uint64_t levels;               /* 0: no priorities */
    uint64_t default_level;        /* 0 if there are no priorities */
    kelp_queue_limits limits;      /* of each level */
    kelp_level_limits *exceptions; /* ascending */
    size_t exception_count;
    size_t preferred_capacity, exception_capacity;
    uint32_t max_requests;    /* in the queue; 0: unlimited */
    uint64_t max_input_bytes; /* in the queue; 0: unlimited */
    size_t counter_count;     /* of levels with a maximum size; see kelp_batch_settings_counter */
    uint64_t target_ns;       /* of the latency; 0: none */
    uint32_t instances;       /* of the model */
    uint32_t hold;            /* the first execution waits for this number of requests */
} kelp_batch_settings;

/* Reads the settings. INVALID_ARGUMENT names the field or parameter. On failure, the caller still
 * deinitializes the settings. */
kelp_status *kelp_batch_settings_init(kelp_batch_settings *settings, kelp_allocator allocator,
                                      const kelp_model_config *config) KELP_MUST_USE;
void kelp_batch_settings_deinit(kelp_batch_settings *settings, kelp_allocator allocator);
/* Returns the level of a request: the default level if its priority is not a level. */
uint64_t kelp_batch_settings_level(const kelp_batch_settings *settings,
                                   const kelp_request *request);
/* Returns the index of the counter of a level's queued requests; SIZE_MAX if the level has no
 * maximum size. */
size_t kelp_batch_settings_counter(const kelp_batch_settings *settings, uint64_t level);
/* Returns the queue limits of a level. */
const kelp_queue_limits *kelp_batch_settings_limits(const kelp_batch_settings *settings,
                                                    uint64_t level);

#endif
