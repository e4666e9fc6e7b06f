/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of a build. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "builder/builder.h"
#include "builder/network.h"
#include "runtime/provider.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define PROFILES_MAX 16
#define POOL_COUNT 2

typedef struct profile {
    kelp_profile_shape *shapes;
    size_t count, capacity;
} profile;

struct kelp_builder_config {
    _Atomic uint32_t references;
    kelp_builder *builder;
    kelp_allocator allocator;
    kelp_arena arena; /* owns names */
    uint32_t flags;
    size_t limits[POOL_COUNT];
    int level;
    int capabilities[32];
    size_t capability_count;
    void *timing;
    size_t timing_bytes;
    kelp_progress_fn progress;
    void *progress_userp;
    profile profiles[PROFILES_MAX];
    size_t profile_count;
};

static kelp_status *parameter_error(kelp_status *status) {
    return kelp_in_domain(status, KELP_DOMAIN_PARAMETER);
}

kelp_status *kelp_builder_create_config(kelp_builder *builder, kelp_builder_config **out) {
    kelp_builder_config *config = NULL;
    kelp_allocator allocator = builder->runtime->allocator;
    KELP_TRY(KELP_NEW(allocator, kelp_builder_config, &config));
    atomic_init(&config->references, 1);
    config->builder = kelp_builder_retain(builder);
    config->allocator = allocator;
    config->level = 3;
    kelp_arena_init(&config->arena, allocator, 1 << 10);
    *out = config;
    return NULL;
}

kelp_builder_config *kelp_builder_config_retain(kelp_builder_config *config) {
    atomic_fetch_add_explicit(&config->references, 1, memory_order_relaxed);
    return config;
}

void kelp_builder_config_release(kelp_builder_config *config) {
    if (config == NULL ||
        atomic_fetch_sub_explicit(&config->references, 1, memory_order_acq_rel) != 1)
        return;
    kelp_builder *builder = config->builder;
    for (size_t i = 0; i < config->profile_count; i++)
        kelp_free(config->allocator, config->profiles[i].shapes,
                  config->profiles[i].capacity * sizeof(kelp_profile_shape));
    kelp_free(config->allocator, config->timing, config->timing_bytes);
    kelp_arena_deinit(&config->arena);
    kelp_free(config->allocator, config, sizeof *config);
    kelp_builder_release(builder);
}

/* ---- flags, limits ---- */
static const char *const flag_names[] = {"BF16",
                                         "TF32",
                                         "REFIT",
                                         "REFIT_INDIVIDUAL",
                                         "STRIP_WEIGHTS",
                                         "WEIGHT_STREAMING",
                                         "VERSION_COMPATIBLE",
                                         "DISABLE_FUSION",
                                         "MONITOR_MEMORY",
                                         "DETAILED"};
static const char *const pool_names[POOL_COUNT] = {"WORKSPACE", "DEVICE"};

/* Writes the names whose bits are set as "A, B", or "none". */
static void list_names(char *out, size_t capacity, uint32_t bits, const char *const *names,
                       size_t count) {
    size_t length = 0;
    KELP_ASSERT(capacity > 0 && count <= 32);
    snprintf(out, capacity, "none");
    for (size_t bit = 0; bit < count; bit++)
        if ((bits >> bit & 1u) != 0 && length < capacity)
            length += (size_t)snprintf(out + length, capacity - length, "%s%s",
                                       length > 0 ? ", " : "", names[bit]);
}

kelp_status *kelp_builder_config_set_flags(kelp_builder_config *config, uint32_t flags) {
    const kelp_engine_provider *provider = config->builder->provider;
    uint32_t unknown = flags & ~provider->flags;
    char supported[200];
    list_names(supported, sizeof supported, provider->flags, flag_names, KELP_COUNT(flag_names));
    for (uint32_t bit = 0; unknown != 0; bit++, unknown >>= 1)
        if ((unknown & 1u) != 0)
            return parameter_error(KELP_ERROR(
                KELP_UNIMPLEMENTED,
                "provider '%s' does not support builder flag %s (bit %u): it supports %s",
                provider->name, bit < KELP_COUNT(flag_names) ? flag_names[bit] : "of this number",
                bit, supported));
    config->flags = flags;
    return NULL;
}

uint32_t kelp_builder_config_flags(const kelp_builder_config *config) {
    return config->flags;
}

kelp_status *kelp_builder_config_set_memory_limit(kelp_builder_config *config,
                                                  kelp_memory_pool pool, size_t size_bytes) {
    if ((unsigned)pool >= POOL_COUNT)
        return parameter_error(
            KELP_ERROR(KELP_INVALID_ARGUMENT, "invalid memory pool %d", (int)pool));
    const kelp_engine_provider *provider = config->builder->provider;
    if (size_bytes != 0 && KELP_ENGINE_PROVIDER_HAS(provider, pools) &&
        (provider->pools >> pool & 1u) == 0) {
        char supported[100];
        list_names(supported, sizeof supported, provider->pools, pool_names, POOL_COUNT);
        return parameter_error(KELP_ERROR(
            KELP_UNIMPLEMENTED, "provider '%s' does not limit memory pool %s: it limits %s",
            provider->name, pool_names[pool], supported));
    }
    config->limits[pool] = size_bytes;
    return NULL;
}

size_t kelp_builder_config_memory_limit(const kelp_builder_config *config, kelp_memory_pool pool) {
    return (unsigned)pool < POOL_COUNT ? config->limits[pool] : 0;
}

kelp_status *kelp_builder_config_set_optimization_level(kelp_builder_config *config, int level) {
    if (level < 0 || level > 5)
        return parameter_error(KELP_ERROR(
            KELP_INVALID_ARGUMENT, "invalid optimization level: expected 0 to 5, found %d", level));
    config->level = level;
    return NULL;
}

int kelp_builder_config_optimization_level(const kelp_builder_config *config) {
    return config->level;
}

kelp_status *kelp_builder_config_add_compute_capability(kelp_builder_config *config,
                                                        int capability) {
    const kelp_engine_provider *provider = config->builder->provider;
    if (!provider->has_devices)
        return parameter_error(
            KELP_ERROR(KELP_INVALID_ARGUMENT,
                       "provider '%s' has no devices: a compute capability cannot be selected",
                       provider->name));
    if (capability < 10 || capability > 999)
        return parameter_error(KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "invalid compute capability: expected 10 * major + minor, found %d", capability));
    if (config->capability_count == KELP_COUNT(config->capabilities))
        return parameter_error(KELP_ERROR(KELP_OUT_OF_RANGE,
                                          "too many compute capabilities: expected at most %zu",
                                          KELP_COUNT(config->capabilities)));
    KELP_ASSERT(config->capability_count < KELP_COUNT(config->capabilities));
    config->capabilities[config->capability_count++] = capability;
    return NULL;
}

size_t kelp_builder_config_capabilities(const kelp_builder_config *config, const int **out) {
    *out = config->capabilities;
    return config->capability_count;
}

/* ---- timing cache, progress ---- */
kelp_status *kelp_builder_config_store_timing_cache(kelp_builder_config *config, const void *data,
                                                    size_t size_bytes) {
    void *copy = NULL;
    if (size_bytes > 0) {
        KELP_TRY(kelp_alloc(config->allocator, size_bytes, &copy));
        memcpy(copy, data, size_bytes);
    }
    kelp_free(config->allocator, config->timing, config->timing_bytes);
    config->timing = copy;
    config->timing_bytes = size_bytes;
    return NULL;
}

kelp_status *kelp_builder_config_set_timing_cache(kelp_builder_config *config, const void *data,
                                                  size_t size_bytes) {
    const kelp_engine_provider *provider = config->builder->provider;
    if (KELP_ENGINE_PROVIDER_HAS(provider, timing_cache) && !provider->timing_cache)
        return parameter_error(
            KELP_ERROR(KELP_UNIMPLEMENTED,
                       "provider '%s' has no timing cache: its builds do not measure kernels",
                       provider->name));
    return kelp_builder_config_store_timing_cache(config, data, size_bytes);
}

const void *kelp_builder_config_timing_cache(const kelp_builder_config *config,
                                             size_t *out_size_bytes) {
    *out_size_bytes = config->timing_bytes;
    return config->timing;
}

void kelp_builder_config_set_progress(kelp_builder_config *config, kelp_progress_fn fn,
                                      void *userp) {
    config->progress = fn;
    config->progress_userp = userp;
}

bool kelp_builder_config_progress(kelp_builder_config *config, const char *phase,
                                  const char *parent, int step, int steps) {
    return config->progress == NULL ||
           config->progress(config->progress_userp, phase, parent, step, steps);
}

/* ---- profiles ---- */
kelp_status *kelp_builder_config_add_profile(kelp_builder_config *config, size_t *out_index) {
    if (config->profile_count == PROFILES_MAX)
        return parameter_error(KELP_ERROR(KELP_OUT_OF_RANGE,
                                          "too many optimization profiles: expected at most %d",
                                          PROFILES_MAX));
    *out_index = config->profile_count++;
    return NULL;
}

static kelp_status *entry_of(kelp_builder_config *config, size_t index, const char *input,
                             kelp_profile_selector selector, size_t count,
                             kelp_profile_shape **out) {
    if (index >= config->profile_count)
        return parameter_error(KELP_ERROR(KELP_OUT_OF_RANGE,
                                          "profile %zu does not exist: the configuration has %zu",
                                          index, config->profile_count));
    if ((unsigned)selector > KELP_PROFILE_MAX || count > KELP_MAX_RANK)
        return parameter_error(
            KELP_ERROR(KELP_INVALID_ARGUMENT,
                       "profile %zu, input '%s': invalid selector %d or number of values %zu",
                       index, input, (int)selector, count));
    KELP_ASSERT(config->profile_count <= PROFILES_MAX);
    profile *p = &config->profiles[index];
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->shapes[i].input, input) == 0) {
            *out = &p->shapes[i];
            return NULL;
        }
    const char *name = kelp_arena_strndup(&config->arena, input, strlen(input));
    if (name == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_grow(config->allocator, (void **)&p->shapes, &p->capacity, p->count + 1,
                       sizeof *p->shapes));
    p->shapes[p->count] = (kelp_profile_shape){.input = name};
    for (int i = 0; i < 3; i++)
        p->shapes[p->count].shapes[i].rank = p->shapes[p->count].values[i].rank = -1;
    *out = &p->shapes[p->count++];
    return NULL;
}

kelp_status *kelp_builder_config_set_profile_shape(kelp_builder_config *config, size_t index,
                                                   const char *input,
                                                   kelp_profile_selector selector, int32_t rank,
                                                   const int64_t *shape) {
    kelp_profile_shape *entry = NULL;
    KELP_TRY(entry_of(config, index, input, selector, rank < 0 ? SIZE_MAX : (size_t)rank, &entry));
    for (int32_t i = 0; i < rank; i++)
        if (shape[i] < 0)
            return parameter_error(
                KELP_ERROR(KELP_INVALID_ARGUMENT,
                           "profile %zu, input '%s': axis %d must not be negative, found %lld",
                           index, input, i, (long long)shape[i]));
    entry->has_shape = true;
    entry->shapes[selector].rank = rank;
    for (int32_t i = 0; i < rank; i++)
        entry->shapes[selector].d[i] = shape[i];
    return NULL;
}

kelp_status *kelp_builder_config_set_profile_values(kelp_builder_config *config, size_t index,
                                                    const char *input,
                                                    kelp_profile_selector selector,
                                                    const int64_t *values, size_t count) {
    kelp_profile_shape *entry = NULL;
    KELP_TRY(entry_of(config, index, input, selector, count, &entry));
    entry->has_values = true;
    entry->values[selector].rank = (int32_t)count;
    for (size_t i = 0; i < count; i++)
        entry->values[selector].d[i] = values[i];
    return NULL;
}

size_t kelp_builder_config_profile_count(const kelp_builder_config *config) {
    return config->profile_count;
}

size_t kelp_builder_config_profile(const kelp_builder_config *config, size_t index,
                                   const kelp_profile_shape **out) {
    *out = index < config->profile_count ? config->profiles[index].shapes : NULL;
    return index < config->profile_count ? config->profiles[index].count : 0;
}

/* ---- checks of profiles ---- */
static const char *const selector_names[3] = {"minimum", "optimum", "maximum"};

static kelp_status *check_bounds(const kelp_shape bounds[3], size_t index, const char *input,
                                 const char *what) {
    for (int s = 0; s < 3; s++)
        if (bounds[s].rank < 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "profile %zu, input '%s': the %s %s is missing", index, input,
                              selector_names[s], what);
    if (bounds[0].rank != bounds[1].rank || bounds[1].rank != bounds[2].rank)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "profile %zu, input '%s': %s has different lengths: minimum %d, "
                          "optimum %d, maximum %d",
                          index, input, what, bounds[0].rank, bounds[1].rank, bounds[2].rank);
    for (int32_t i = 0; i < bounds[0].rank; i++)
        if (bounds[0].d[i] > bounds[1].d[i] || bounds[1].d[i] > bounds[2].d[i])
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "profile %zu, input '%s', %s %d: expected minimum <= optimum <= "
                              "maximum, found %lld, %lld, %lld",
                              index, input, what, i, (long long)bounds[0].d[i],
                              (long long)bounds[1].d[i], (long long)bounds[2].d[i]);
    return NULL;
}

static kelp_status *check_values(const kelp_value *input, const kelp_profile_shape *entry,
                                 size_t index) {
    KELP_TRY(check_bounds(entry->values, index, entry->input, "value"));
    if (input->dtype != KELP_I64 && input->dtype != KELP_I32)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "profile %zu, input '%s': value bounds need an input of int32 or int64, found %s",
            index, entry->input, kelp_dtype_name(input->dtype));
    int64_t count = 1;
    for (int32_t i = 0; i < input->rank; i++)
        if (input->shape[i] < 0 || input->shape[i] > KELP_MAX_RANK)
            return NULL; /* dynamic, or too many values for a profile: checked when it is bound */
        else if (!kelp_i64_mul(count, input->shape[i], &count))
            return NULL;
    if (input->rank >= 0 && count != entry->values[0].rank)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "profile %zu, input '%s': expected %lld values, found %d", index,
                          entry->input, (long long)count, entry->values[0].rank);
    return NULL;
}

static kelp_status *check_entry(const kelp_network *network, const kelp_profile_shape *entry,
                                size_t index) {
    const kelp_value *input = NULL;
    for (size_t i = 0; i < network->input_count; i++)
        if (strcmp(network->inputs[i]->name, entry->input) == 0)
            input = network->inputs[i]->draft;
    if (input == NULL)
        return KELP_ERROR(KELP_NOT_FOUND, "profile %zu: network '%s' has no input '%s'", index,
                          network->name, entry->input);
    if (entry->has_values)
        KELP_TRY(check_values(input, entry, index));
    if (!entry->has_shape)
        return NULL;
    KELP_TRY(check_bounds(entry->shapes, index, entry->input, "shape"));
    for (int s = 0; s < 3; s++) {
        const kelp_shape *shape = &entry->shapes[s];
        bool fits = input->rank < 0 || input->rank == shape->rank;
        for (int32_t i = 0; fits && i < input->rank; i++)
            fits = input->shape[i] < 0 || input->shape[i] == shape->d[i];
        if (fits)
            continue;
        char declared[160], found[160];
        kelp_shape_format(input->rank, input->shape, declared, sizeof declared);
        kelp_shape_format(shape->rank, shape->d, found, sizeof found);
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "profile %zu, input '%s': the network declares %s, but the %s shape is %s", index,
            entry->input, declared, selector_names[s], found);
    }
    return NULL;
}

kelp_status *kelp_builder_check_config(const kelp_builder *builder, const kelp_network *network,
                                       const kelp_builder_config *config) {
    const kelp_engine_provider *owner = config->builder->provider;
    if (owner != builder->provider)
        return parameter_error(
            KELP_ERROR(KELP_INVALID_ARGUMENT,
                       "the configuration belongs to provider '%s', the builder to '%s'",
                       owner->name, builder->provider->name));
    if ((config->flags & (KELP_BUILD_REFIT | KELP_BUILD_REFIT_INDIVIDUAL)) ==
            KELP_BUILD_REFIT_INDIVIDUAL &&
        network->refittable_count == 0)
        return parameter_error(
            KELP_ERROR(KELP_FAILED_PRECONDITION,
                       "flag REFIT_INDIVIDUAL has no effect: no weights of network '%s' are marked "
                       "as refittable",
                       network->name));
    for (size_t p = 0; p < config->profile_count; p++)
        for (size_t i = 0; i < config->profiles[p].count; i++)
            KELP_TRY(check_entry(network, &config->profiles[p].shapes[i], p));
    for (size_t i = 0; builder->provider->needs_profiles && i < network->input_count; i++) {
        const kelp_value *input = network->inputs[i]->draft;
        bool is_dynamic = false;
        for (int32_t d = 0; d < input->rank; d++)
            is_dynamic = is_dynamic || input->shape[d] < 0;
        if (is_dynamic && config->profile_count == 0)
            return KELP_ERROR(KELP_FAILED_PRECONDITION,
                              "input '%s' has dynamic dimensions: provider '%s' needs an "
                              "optimization profile for it",
                              network->inputs[i]->name, builder->provider->name);
    }
    return NULL;
}
