/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency-targeted batching: chooses the batch size and the queue delay from the measured execution
 * times of the batch sizes and from the arrival rate, so that the 99th percentile of the time from
 * the submission of a request to the end of its execution stays below a target.
 *
 * A request waits at worst for a batch to fill, for an instance that has just begun a batch, and
 * for its own batch. The largest batch is the one for which the last two fit into the target. At
 * low load, requests do not wait: a batch forms while all instances are busy. If single requests
 * would take more than half of the time of the instances, a batch waits until it has the largest
 * size for which all three parts fit into the target.
 *
 * The parts are computed for a fraction of the target. The fraction shrinks when more than 1 % of
 * the executions end late, and grows slowly again.
 *
 * Never reads a clock. The instance pool's lock is held.
 */
#ifndef KELP_SERVER_SCHEDULER_PACE_H_
#define KELP_SERVER_SCHEDULER_PACE_H_

#include <stdbool.h>
#include <stdint.h>

/* Batch sizes are divided into classes: class k has sizes above 2^(k-1), up to 2^k. */
#define KELP_PACE_CLASSES 17

/* The measured times of a class of batch sizes. */
typedef struct kelp_pace_time {
    uint32_t executions; /* at most 2: nothing, ignored (it plans memory), or averaged */
    double size;         /* average batch size */
    double time_ns;      /* average execution time */
    double deviation_ns; /* average distance from it */
} kelp_pace_time;

/* The measurements of a model, and what follows from them. */
typedef struct kelp_pace {
    uint64_t target_ns;
    uint64_t max_delay_ns;
    uint32_t max_batch_size;
    uint32_t instances;
    kelp_pace_time times[KELP_PACE_CLASSES];
    double rate;     /* arrivals per nanosecond, in units of the batch size */
    uint64_t now_ns; /* of the last arrival; 0: none */
    double fraction; /* of the target that the parts may take */
    double late;     /* average share of executions that end after the target */
    /* The result. */
    uint32_t max_size;  /* of a batch; a larger request is executed alone */
    uint32_t full_size; /* a batch of this size does not wait */
    uint64_t delay_ns;  /* the maximum wait of the first request */
} kelp_pace;

/* Initializes the measurements. `max_delay_ns` 0: the delay is limited by the target only. */
void kelp_pace_init(kelp_pace *pace, uint64_t target_ns, uint64_t max_delay_ns,
                    uint32_t max_batch_size, uint32_t instances);
/* Adds a request of a batch size. */
void kelp_pace_arrive(kelp_pace *pace, uint32_t batch_size, uint64_t now_ns);
/* Adds an execution whose oldest request was submitted at `oldest_ns`, and computes the result. */
void kelp_pace_executed(kelp_pace *pace, uint32_t batch_size, uint64_t oldest_ns, uint64_t start_ns,
                        uint64_t end_ns);
/* Returns the time that an execution rarely exceeds; 0 if nothing was measured. */
uint64_t kelp_pace_time_ns(const kelp_pace *pace, uint32_t batch_size);

#endif
