/* SPDX-License-Identifier: Apache-2.0 */
/* Latency-targeted batching. */
#include "server/scheduler/pace.h"

#include "base/assert.h"

#include <stddef.h>

/* The weight of a new execution time, and of a new arrival, in their averages. */
static const double time_weight = 1.0 / 16, late_weight = 1.0 / 128;
/* The average of arrivals covers this number of targets. */
enum { RATE_TARGETS = 8 };
/* Times vary: an execution is expected to take its average and this number of deviations. */
static const double deviations = 3;
/* A time above this multiple of the average counts as this multiple: a thread that lost its CPU for
 * a time slice must not make the model look slow. */
static const double max_growth = 4;
static const double max_fraction = 0.85, min_fraction = 0.2;
/* Above this share of the time of the instances, single requests are too slow. */
static const double max_load = 0.5;

void kelp_pace_init(kelp_pace *pace, uint64_t target_ns, uint64_t max_delay_ns,
                    uint32_t max_batch_size, uint32_t instances) {
    KELP_ASSERT(target_ns > 0 && max_batch_size > 0 && instances > 0);
    *pace = (kelp_pace){.target_ns = target_ns,
                        .max_delay_ns = max_delay_ns > 0 ? max_delay_ns : target_ns,
                        .max_batch_size = max_batch_size,
                        .instances = instances,
                        .fraction = max_fraction,
                        .max_size = max_batch_size,
                        .full_size = 1};
}

void kelp_pace_arrive(kelp_pace *pace, uint32_t batch_size, uint64_t now_ns) {
    double period_ns = (double)pace->target_ns * RATE_TARGETS;
    double passed_ns =
        pace->now_ns > 0 && now_ns > pace->now_ns ? (double)(now_ns - pace->now_ns) : 0;
    pace->rate = (pace->rate * period_ns + batch_size) / (period_ns + passed_ns);
    pace->now_ns = now_ns;
}

static unsigned class_of(uint32_t batch_size) {
    unsigned class_index = 0;
    while (class_index + 1 < KELP_PACE_CLASSES && (1u << class_index) < batch_size)
        class_index++;
    return class_index;
}

/* Returns the average time of a batch size plus a number of deviations, from that of the closest
 * measured class. Beyond the measured sizes, times grow with the size; below, they are equal. */
static double time_with(const kelp_pace *pace, uint32_t batch_size, double deviation_count) {
    unsigned wanted = class_of(batch_size);
    const kelp_pace_time *closest = NULL;
    for (unsigned k = 0; k < KELP_PACE_CLASSES; k++) {
        const kelp_pace_time *time = &pace->times[k];
        if (time->executions == 0 || (k > wanted && closest != NULL))
            continue;
        closest = time;
    }
    if (closest == NULL)
        return 0;
    double time_ns = closest->time_ns + deviation_count * closest->deviation_ns;
    return batch_size > closest->size ? time_ns * batch_size / closest->size : time_ns;
}

/* Returns the time that a batch size rarely exceeds. */
static double time_of(const kelp_pace *pace, uint32_t batch_size) {
    return time_with(pace, batch_size, deviations);
}

uint64_t kelp_pace_time_ns(const kelp_pace *pace, uint32_t batch_size) {
    return (uint64_t)time_of(pace, batch_size);
}

static void add_time(kelp_pace *pace, uint32_t batch_size, double time_ns) {
    kelp_pace_time *time = &pace->times[class_of(batch_size)];
    if (time->executions < 2) { /* the second one replaces the first one */
        *time = (kelp_pace_time){time->executions + 1, batch_size, time_ns, time_ns / 8};
        return;
    }
    if (time_ns > max_growth * time->time_ns)
        time_ns = max_growth * time->time_ns;
    double distance_ns = time_ns - time->time_ns;
    time->size += (batch_size - time->size) * time_weight;
    time->time_ns += distance_ns * time_weight;
    time->deviation_ns +=
        ((distance_ns < 0 ? -distance_ns : distance_ns) - time->deviation_ns) * time_weight;
}

/* Adapts the fraction to the share of late executions. */
static void add_lateness(kelp_pace *pace, bool is_late) {
    pace->late += ((is_late ? 1 : 0) - pace->late) * late_weight;
    if (is_late && pace->late > 0.01)
        pace->fraction *= 0.97;
    else if (pace->late < 0.005)
        pace->fraction *= 1.002;
    if (pace->fraction < min_fraction)
        pace->fraction = min_fraction;
    if (pace->fraction > max_fraction)
        pace->fraction = max_fraction;
}

/* Returns true if batches of a size keep up with the arrivals. */
static bool keeps_up(const kelp_pace *pace, uint32_t size) {
    return pace->rate * time_of(pace, size) <= 0.9 * size * pace->instances;
}

static void compute(kelp_pace *pace) {
    double budget_ns = pace->fraction * (double)pace->target_ns;
    uint32_t largest = 1, full = 1;
    for (uint32_t size = 2, before = 1; before < pace->max_batch_size; size += (size + 3) / 4) {
        size = size < pace->max_batch_size ? size : pace->max_batch_size;
        double time_ns = time_of(pace, size);
        /* Under overload, larger batches are faster than a longer queue. */
        if (2 * time_ns <= budget_ns || !keeps_up(pace, before))
            largest = size;
        before = size;
        if (size / pace->rate + 2 * time_ns <= budget_ns)
            full = size;
    }
    bool is_loaded = pace->rate * time_with(pace, 1, 0) > max_load * pace->instances;
    double delay_ns = is_loaded && full > 1 ? full / pace->rate : 0;
    pace->max_size = largest;
    pace->full_size = full < largest ? full : largest;
    pace->delay_ns =
        delay_ns < (double)pace->max_delay_ns ? (uint64_t)delay_ns : pace->max_delay_ns;
}

void kelp_pace_executed(kelp_pace *pace, uint32_t batch_size, uint64_t oldest_ns, uint64_t start_ns,
                        uint64_t end_ns) {
    KELP_ASSERT(batch_size > 0 && start_ns <= end_ns);
    add_time(pace, batch_size, (double)(end_ns - start_ns));
    add_lateness(pace, end_ns - oldest_ns > pace->target_ns);
    compute(pace);
}
