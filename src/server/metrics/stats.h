/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of an instance, counted as in Triton: inferences only if the backend reports them,
 * executions only if it reports a batch. Instances have separate statistics, so that they share no
 * cache line; readers add them. Thread-safe.
 */
#ifndef KELP_SERVER_METRICS_STATS_H_
#define KELP_SERVER_METRICS_STATS_H_

#include "base/text/json.h"

#include <pthread.h>
#include <triton/core/tritonserver.h>

/* A number of events and their total duration. */
typedef struct kelp_duration {
    uint64_t count;
    uint64_t ns;
} kelp_duration;

/* The executions of one batch size. */
typedef struct kelp_batch_stats {
    uint64_t batch_size;
    uint64_t count;
    uint64_t input_ns, infer_ns, output_ns;
} kelp_batch_stats;

/* The responses of one index within their requests. */
typedef struct kelp_response_stats {
    kelp_duration compute_infer, compute_output, success, fail, empty, cancel;
} kelp_response_stats;

/* Memory of one type and id that a model or an instance reports. */
typedef struct kelp_memory_usage {
    TRITONSERVER_MemoryType type;
    int64_t id;
    uint64_t size_bytes;
} kelp_memory_usage;

/* The reason of a failed request, for the metrics. */
typedef enum kelp_failure {
    KELP_FAILURE_BACKEND,  /* the backend reported the failure */
    KELP_FAILURE_REJECTED, /* the queue was full, or the queue timeout expired */
    KELP_FAILURE_CANCELED, /* before it was executed */
    KELP_FAILURE_OTHER,
    KELP_FAILURE_COUNT
} kelp_failure;

/* The statistics of an instance or a model. */
typedef struct kelp_stats {
    kelp_allocator allocator;
    pthread_mutex_t lock;
    struct kelp_latency *latency; /* the model's distributions; usually NULL */
    uint64_t last_inference_ms;   /* since 1970 */
    uint64_t inference_count;
    uint64_t execution_count;
    kelp_duration success, fail, queue, compute_input, compute_infer, compute_output;
    kelp_duration cache_hit, cache_miss;
    uint64_t failures[KELP_FAILURE_COUNT]; /* the sum is fail.count */
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

/* Times of a request on the monotonic clock, in chronological order. */
typedef struct kelp_request_times {
    uint64_t request_start_ns, queue_start_ns;
    uint64_t execute_start_ns, compute_start_ns, compute_end_ns, execute_end_ns;
} kelp_request_times;

void kelp_stats_init(kelp_stats *stats, kelp_allocator allocator);
void kelp_stats_deinit(kelp_stats *stats);
/* Counts a request that the backend reported. */
void kelp_stats_request(kelp_stats *stats, bool success, uint32_t batch_size,
                        const kelp_request_times *times);
/* Counts a request that the server rejected with an error of the code. */
void kelp_stats_rejection(kelp_stats *stats, kelp_code code, uint64_t request_start_ns);
/* Counts a request with a response from the cache: a success, but not an inference. */
void kelp_stats_cache_hit(kelp_stats *stats, uint64_t request_start_ns, uint64_t queue_ns,
                          uint64_t lookup_ns);
/* Counts a request that was not in the cache, with the time of lookup and storing. */
void kelp_stats_cache_miss(kelp_stats *stats, uint64_t spent_ns);
/* Counts an execution. */
kelp_status *kelp_stats_batch(kelp_stats *stats, uint64_t batch_size,
                              const kelp_request_times *times) KELP_MUST_USE;
/* Counts the response `index` of a request; output_start_ns is 0 if it had no output. */
kelp_status *kelp_stats_response(kelp_stats *stats, uint64_t index, uint64_t start_ns,
                                 uint64_t output_start_ns, uint64_t end_ns,
                                 const kelp_status *error) KELP_MUST_USE;
/* Replaces the reported memory usage. */
kelp_status *kelp_stats_set_usage(kelp_stats *stats, const kelp_memory_usage *usage,
                                  size_t count) KELP_MUST_USE;
/* Adds `from` to `into`, which is used by the calling thread only. */
kelp_status *kelp_stats_add(kelp_stats *into, kelp_stats *from) KELP_MUST_USE;
/* Writes one element of "model_stats". */
void kelp_stats_write(const kelp_stats *stats, const char *name, int64_t version,
                      kelp_json_writer *writer);

#endif
