/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of an instance, as Triton counts them: inferences only where the backend reports them,
 * executions only where it reports a batch. Each instance has its own, so that instances do not
 * share a cache line; a reader adds them up.
 */
#ifndef KELP_SERVER_METRICS_STATS_H_
#define KELP_SERVER_METRICS_STATS_H_

#include "base/json.h"

#include <pthread.h>
#include <triton/core/tritonserver.h>

typedef struct kelp_duration {
    uint64_t count;
    uint64_t ns;
} kelp_duration;

typedef struct kelp_batch_stats {
    uint64_t batch_size;
    uint64_t count;
    uint64_t input_ns, infer_ns, output_ns;
} kelp_batch_stats;

typedef struct kelp_response_stats {
    kelp_duration compute_infer, compute_output, success, fail, empty, cancel;
} kelp_response_stats;

/* Memory that a model or an instance says it holds in one place. */
typedef struct kelp_memory_usage {
    TRITONSERVER_MemoryType type;
    int64_t id;
    uint64_t size_bytes;
} kelp_memory_usage;

/* Why a request failed, as the metrics tell it. */
typedef enum kelp_failure {
    KELP_FAILURE_BACKEND,  /* so its backend says */
    KELP_FAILURE_REJECTED, /* the queue was full, or it waited too long there */
    KELP_FAILURE_CANCELED, /* before it was executed */
    KELP_FAILURE_OTHER,
    KELP_FAILURE_COUNT
} kelp_failure;

typedef struct kelp_stats {
    kelp_allocator allocator;
    pthread_mutex_t lock;
    struct kelp_latency *latency; /* the model's, where durations go too; mostly NULL */
    uint64_t last_inference_ms;   /* since 1970 */
    uint64_t inference_count;
    uint64_t execution_count;
    kelp_duration success, fail, queue, compute_input, compute_infer, compute_output;
    kelp_duration cache_hit, cache_miss;
    uint64_t failures[KELP_FAILURE_COUNT]; /* which make up fail.count */
    kelp_batch_stats *batches;             /* ascending batch_size */
    size_t batch_count;
    size_t batch_capacity;
    kelp_response_stats *responses; /* by index of the response within its request */
    size_t response_count;
    size_t response_capacity;
    kelp_memory_usage *usage;
    size_t usage_count;
    size_t usage_capacity;
} kelp_stats;

/* Times on the monotonic clock, in the order in which they pass. */
typedef struct kelp_request_times {
    uint64_t request_start_ns, queue_start_ns;
    uint64_t execute_start_ns, compute_start_ns, compute_end_ns, execute_end_ns;
} kelp_request_times;

void kelp_stats_init(kelp_stats *stats, kelp_allocator allocator);
void kelp_stats_deinit(kelp_stats *stats);
/* Any thread. */
void kelp_stats_request(kelp_stats *stats, bool success, uint32_t batch_size,
                        const kelp_request_times *times);
/* A request that the server itself answers, with an error of that code. */
void kelp_stats_refusal(kelp_stats *stats, kelp_code code, uint64_t request_start_ns);
/* A request that the cache answered: a success that is no inference. */
void kelp_stats_cache_hit(kelp_stats *stats, uint64_t request_start_ns, uint64_t queue_ns,
                          uint64_t lookup_ns);
/* What looking up and storing took for a request that it did not. */
void kelp_stats_cache_miss(kelp_stats *stats, uint64_t spent_ns);
kelp_status *kelp_stats_batch(kelp_stats *stats, uint64_t batch_size,
                              const kelp_request_times *times) KELP_MUST_USE;
/* `infer_ns` until output began (0 when it did not), `output_ns` after. */
kelp_status *kelp_stats_response(kelp_stats *stats, uint64_t index, uint64_t start_ns,
                                 uint64_t output_start_ns, uint64_t end_ns,
                                 const kelp_status *error) KELP_MUST_USE;
/* Replaces what was reported before. */
kelp_status *kelp_stats_set_usage(kelp_stats *stats, const kelp_memory_usage *usage,
                                  size_t count) KELP_MUST_USE;
/* Adds `from` to `into` (which nobody else uses). */
kelp_status *kelp_stats_add(kelp_stats *into, kelp_stats *from) KELP_MUST_USE;
/* One element of "model_stats", as Triton prints it. */
void kelp_stats_write(const kelp_stats *stats, const char *name, int64_t version,
                      kelp_json_writer *writer);

#endif
