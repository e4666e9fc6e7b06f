/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of the batch policy. */
#include "server/scheduler/batch_settings.h"

#include "base/alloc.h"
#include "base/str.h"

#include <stdlib.h>

/* A request for which no limit is configured must not make the server run out of memory. */
enum { DEFAULT_MAX_REQUESTS = 16384 };
static const uint64_t default_max_input_bytes = (uint64_t)1 << 30;
/* The policy counts the requests of each level. */
/* The maximum number of levels with a maximum queue size, because each has a counter. */
enum { MAX_LEVELS = 1 << 20 };
/* NVIDIA's tests set this variable, so that all requests of a test are queued before the first one
 * runs. */
static const char hold_variable[] = "TRITONSERVER_DELAY_SCHEDULER";

static kelp_queue_limits limits_from(const kelp_queue_policy *from) {
    return (kelp_queue_limits){.max_size = from->max_queue_size,
                               .timeout_us = from->default_timeout_us,
                               .allow_timeout_override = from->allow_timeout_override,
                               .reject_on_timeout = from->timeout_action == KELP_TIMEOUT_REJECT};
}

static int compare_sizes(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static int compare_levels(const void *left, const void *right) {
    uint64_t a = ((const kelp_level_limits *)left)->level;
    uint64_t b = ((const kelp_level_limits *)right)->level;
    return (a > b) - (a < b);
}

/* ---- parameters ---- */

/* Reads a number; the default if the parameter is not set. */
static kelp_status *read_number(const kelp_model_config *config, const char *name, uint64_t maximum,
                                uint64_t *inout) {
    const char *text = kelp_model_config_parameter(config, name);
    if (text == NULL)
        return NULL;
    if (kelp_parse_u64(kelp_str_from(text), inout) && *inout <= maximum)
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "%s: parameter '%s': expected a number from 0 to %llu, found '%s'",
                      config->source, name, (unsigned long long)maximum, text);
}

static kelp_status *read_queue_limits(kelp_batch_settings *settings,
                                      const kelp_model_config *config) {
    uint64_t max_requests = settings->limits.max_size > 0 ? 0 : DEFAULT_MAX_REQUESTS;
    static const char timeout[] = "kelp_queue_timeout_us";
    settings->max_input_bytes = default_max_input_bytes;
    KELP_TRY(read_number(config, "kelp_max_queue_size", UINT32_MAX, &max_requests));
    KELP_TRY(read_number(config, "kelp_max_queue_bytes", INT64_MAX, &settings->max_input_bytes));
    settings->max_requests = (uint32_t)max_requests;
    if (config->scheduling != KELP_SCHEDULING_DYNAMIC) {
        settings->limits =
            (kelp_queue_limits){.allow_timeout_override = true, .reject_on_timeout = true};
        return read_number(config, timeout, INT64_MAX, &settings->limits.timeout_us);
    }
    if (kelp_model_config_parameter(config, timeout) != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: parameter '%s' is for models without dynamic_batching: set "
                          "default_queue_policy { default_timeout_microseconds } instead",
                          config->source, timeout);
    return NULL;
}

/* ---- dynamic_batching ---- */

static kelp_status *read_preferred(kelp_batch_settings *settings, kelp_allocator allocator,
                                   const kelp_model_config *config) {
    const kelp_config_dynamic_batching *from = &config->dynamic_batching;
    settings->preferred_capacity = from->preferred_count + 1;
    KELP_TRY(kelp_alloc_zero(allocator, settings->preferred_capacity,
                             sizeof *settings->preferred_sizes,
                             (void **)&settings->preferred_sizes));
    for (size_t i = 0; i < from->preferred_count; i++)
        settings->preferred_sizes[i] = (uint32_t)from->preferred_batch_sizes[i];
    settings->preferred_count = from->preferred_count;
    if (settings->preferred_count == 0)
        settings->preferred_sizes[settings->preferred_count++] = settings->max_batch_size;
    qsort(settings->preferred_sizes, settings->preferred_count, sizeof *settings->preferred_sizes,
          compare_sizes);
    return NULL;
}

static kelp_status *read_levels(kelp_batch_settings *settings, kelp_allocator allocator,
                                const kelp_model_config *config) {
    const kelp_config_dynamic_batching *from = &config->dynamic_batching;
    settings->exception_capacity = from->policy_count + 1;
    KELP_TRY(kelp_alloc_zero(allocator, settings->exception_capacity, sizeof *settings->exceptions,
                             (void **)&settings->exceptions));
    for (size_t i = 0; i < from->policy_count; i++) {
        kelp_level_limits *to = &settings->exceptions[settings->exception_count++];
        *to = (kelp_level_limits){from->policy_levels[i], limits_from(&from->policies[i])};
    }
    qsort(settings->exceptions, settings->exception_count, sizeof *settings->exceptions,
          compare_levels);
    settings->levels = from->priority_levels;
    settings->default_level = settings->levels > 0 ? from->default_priority_level : 0;
    if (settings->limits.max_size > 0 && settings->levels > MAX_LEVELS)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: field 'priority_levels': expected at most %d with max_queue_size in "
                          "default_queue_policy, found %llu",
                          config->source, MAX_LEVELS, (unsigned long long)settings->levels);
    /* Those of the exceptions, followed by those of all levels if each has a maximum size. */
    settings->counter_count = settings->exception_count;
    if (settings->limits.max_size > 0)
        settings->counter_count += (size_t)settings->levels + 1;
    return NULL;
}

/* Reads the latency target, which replaces the preferred sizes. */
static kelp_status *read_target(kelp_batch_settings *settings, const kelp_model_config *config) {
    static const char name[] = "kelp_latency_target_us";
    uint64_t target_us = 0;
    KELP_TRY(read_number(config, name, 3600000000, &target_us));
    settings->target_ns = target_us * 1000;
    for (size_t i = 0; i < config->instance_group_count; i++)
        settings->instances += (uint32_t)config->instance_groups[i].count;
    if (settings->instances == 0)
        settings->instances = 1;
    if (target_us == 0)
        return NULL;
    if (config->scheduling != KELP_SCHEDULING_DYNAMIC || settings->max_batch_size < 2)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: parameter '%s' requires dynamic_batching and max_batch_size above 1",
                          config->source, name);
    if (settings->preferred_count > 1 || settings->preferred_sizes[0] != settings->max_batch_size)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: parameter '%s' chooses the batch size: remove "
                          "'preferred_batch_size'",
                          config->source, name);
    return NULL;
}

/* Returns the time after which a thread is woken up for a batch that is not full: waking up takes
 * up to WAKE_UP_NS, which belongs to the delay. */
static uint64_t wait_of(uint64_t delay_us) {
    enum { SHORTEST_NS = 110000, WAKE_UP_NS = 90000 };
    uint64_t delay_ns = delay_us > KELP_NEVER_NS / 4000 ? KELP_NEVER_NS / 4 : delay_us * 1000;
    uint64_t longer_ns = delay_ns > SHORTEST_NS ? delay_ns - SHORTEST_NS : 0;
    return delay_ns - (longer_ns < WAKE_UP_NS ? longer_ns : WAKE_UP_NS);
}

static kelp_status *read_dynamic(kelp_batch_settings *settings, kelp_allocator allocator,
                                 const kelp_model_config *config) {
    const kelp_config_dynamic_batching *from = &config->dynamic_batching;
    const char *hold = getenv(hold_variable);
    uint64_t held = 0;
    settings->max_batch_size = config->max_batch_size > 0 ? (uint32_t)config->max_batch_size : 0;
    settings->delay_ns = wait_of(from->max_queue_delay_us);
    if (from->has_default_queue_policy)
        settings->limits = limits_from(&from->default_queue_policy);
    if (hold != NULL && kelp_parse_u64(kelp_str_from(hold), &held))
        settings->hold = held > UINT32_MAX ? UINT32_MAX : (uint32_t)held;
    KELP_TRY(read_preferred(settings, allocator, config));
    return read_levels(settings, allocator, config);
}

kelp_status *kelp_batch_settings_init(kelp_batch_settings *settings, kelp_allocator allocator,
                                      const kelp_model_config *config) {
    *settings = (kelp_batch_settings){0};
    if (config->scheduling == KELP_SCHEDULING_DYNAMIC)
        KELP_TRY(read_dynamic(settings, allocator, config));
    KELP_TRY(read_target(settings, config));
    return read_queue_limits(settings, config);
}

void kelp_batch_settings_deinit(kelp_batch_settings *settings, kelp_allocator allocator) {
    kelp_free(allocator, settings->preferred_sizes,
              settings->preferred_capacity * sizeof *settings->preferred_sizes);
    kelp_free(allocator, settings->exceptions,
              settings->exception_capacity * sizeof *settings->exceptions);
}

/* ---- levels ---- */

uint64_t kelp_batch_settings_level(const kelp_batch_settings *settings,
                                   const kelp_request *request) {
    return request->priority == 0 || request->priority > settings->levels ? settings->default_level
                                                                          : request->priority;
}

/* Returns the index of the exception of a level, or `exception_count`. */
static size_t exception_of(const kelp_batch_settings *settings, uint64_t level) {
    size_t low = 0, high = settings->exception_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (settings->exceptions[middle].level == level)
            return middle;
        if (settings->exceptions[middle].level < level)
            low = middle + 1;
        else
            high = middle;
    }
    return settings->exception_count;
}

const kelp_queue_limits *kelp_batch_settings_limits(const kelp_batch_settings *settings,
                                                    uint64_t level) {
    size_t index = exception_of(settings, level);
    return index < settings->exception_count ? &settings->exceptions[index].limits
                                             : &settings->limits;
}

size_t kelp_batch_settings_counter(const kelp_batch_settings *settings, uint64_t level) {
    size_t index = exception_of(settings, level);
    if (index < settings->exception_count)
        return index;
    return settings->limits.max_size > 0 ? settings->exception_count + (size_t)level : SIZE_MAX;
}
