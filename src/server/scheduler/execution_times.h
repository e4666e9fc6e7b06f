/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured execution times of a model by the size of its inputs. Sizes are divided into classes by
 * powers of two of the bytes of all inputs: the bytes grow with the batch size, and for models with
 * dynamic dimensions also with the length of a sequence.
 *
 * The first execution of a class is ignored, because it plans memory and fills caches. The
 * following ones are averaged with more weight for recent ones.
 *
 * Not thread-safe: the instance pool's lock is held.
 */
#ifndef KELP_SERVER_SCHEDULER_EXECUTION_TIMES_H_
#define KELP_SERVER_SCHEDULER_EXECUTION_TIMES_H_

#include "base/clock.h"
#include "server/request/request.h"

/* Class k > 0 contains sizes from 2^(k-1) bytes, class 0 the size 0; the last one is unlimited. */
#define KELP_EXECUTION_CLASSES 40

/* The times of one class. */
typedef struct kelp_execution_time {
    uint32_t executions; /* at most 2: nothing, ignored, or averaged */
    uint64_t average_ns; /* valid from 2 executions on */
} kelp_execution_time;

/* The times of a model. Zero-initialized, no class is known. */
typedef struct kelp_execution_times {
    kelp_execution_time classes[KELP_EXECUTION_CLASSES];
} kelp_execution_times;

/* Returns the bytes of the inputs of requests. */
uint64_t kelp_execution_bytes(kelp_request *const *requests, uint32_t count);
/* Returns the class of one execution with inputs of a size. */
unsigned kelp_execution_class(uint64_t size_bytes);
/* Adds the duration of an execution. A duration above `max_ns` counts as `max_ns`, so that a few
 * long ones are soon forgotten. */
void kelp_execution_times_add(kelp_execution_times *times, unsigned class_index,
                              uint64_t duration_ns, uint64_t max_ns);
/* Returns the average of a class or, if it is unknown, of the next larger class that is known: an
 * execution with more bytes takes at least as long. KELP_NEVER_NS if none is known. */
uint64_t kelp_execution_times_get(const kelp_execution_times *times, unsigned class_index);

#endif
