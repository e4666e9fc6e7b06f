/* SPDX-License-Identifier: Apache-2.0 */
/* Builds plans with TensorRT: checks if a model is supported, configures and runs the build. */
#include "tensorrt/provider.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/fs.h"
#include "builder/builder.h"
#include "tensorrt/lower.h"

#include <pthread.h>
#include <string.h>

/* ---- supported models ---- */
static kelp_status *check_model(const trt_library *library, trt_log *log, trt_builder *builder,
                                const kelp_network *network, const void *data, size_t size) {
    bool all = false;
    char *reasons = NULL;
    kelp_status *status = trt_supports_model(library, log, builder, data, size,
                                             network->source_path, NULL, NULL, &all, &reasons);
    if (status == NULL && !all)
        status =
            KELP_ERROR(KELP_UNIMPLEMENTED, "TensorRT does not support all nodes of model '%s': %s",
                       kelp_network_name(network),
                       reasons != NULL && *reasons != '\0' ? reasons : "it gave no reason");
    kelp_free_string(library->allocator, reasons);
    return status;
}

kelp_status *trt_engine_supports(void *self, kelp_runtime *runtime, const kelp_network *network) {
    const trt_library *library = NULL;
    trt_log *log = NULL;
    trt_builder *builder = NULL;
    kelp_mapping file = {0};
    (void)self;
    if (network->parsed == NULL)
        return NULL; /* TensorRT has all layer types */
    KELP_TRY(trt_shared_library(&library));
    KELP_TRY(trt_runtime_log(runtime, &log));
    kelp_status *status = trt_create_builder(library, log, &builder);
    if (status == NULL && network->source_path != NULL)
        status = kelp_fs_map(network->source_path, &file);
    if (status == NULL && network->source_path != NULL)
        status = check_model(library, log, builder, network, file.data, file.size_bytes);
    else if (status == NULL)
        status = check_model(library, log, builder, network, network->source_data,
                             network->source_bytes);
    kelp_fs_unmap(&file);
    trt_destroy(builder);
    trt_log_destroy(log);
    return status;
}

/* ---- progress ---- */
/* The current phases by name, with the values that each progress report needs. */
typedef struct watch {
    kelp_builder_config *config;
    trt_progress progress;
    pthread_mutex_t mutex;
    struct phase {
        char name[200], parent[200];
        int32_t steps;
    } phases[16];
    int count;
} watch;

static void copy_text(char *to, size_t capacity, const char *from) {
    size_t length = from != NULL ? strlen(from) : 0;
    length = length < capacity ? length : capacity - 1;
    if (length > 0)
        memcpy(to, from, length);
    to[length] = '\0';
}

static void phase_starts(void *userp, const char *phase, const char *parent, int32_t steps) {
    watch *w = userp;
    pthread_mutex_lock(&w->mutex);
    if (w->count < (int)KELP_COUNT(w->phases)) {
        struct phase *p = &w->phases[w->count++];
        copy_text(p->name, sizeof p->name, phase);
        copy_text(p->parent, sizeof p->parent, parent);
        p->steps = steps;
    }
    if (!kelp_builder_config_progress(w->config, phase, parent, 0, steps))
        atomic_store(&w->progress.cancelled, true);
    pthread_mutex_unlock(&w->mutex);
}

static struct phase *find_phase(watch *w, const char *name) {
    KELP_ASSERT_HELD(&w->mutex);
    KELP_ASSERT(w->count <= (int)KELP_COUNT(w->phases));
    for (int i = w->count; i-- > 0;)
        if (strncmp(w->phases[i].name, name, sizeof w->phases[i].name - 1) == 0)
            return &w->phases[i];
    return NULL;
}

static bool step_done(void *userp, const char *phase, int32_t step) {
    watch *w = userp;
    pthread_mutex_lock(&w->mutex);
    const struct phase *p = find_phase(w, phase);
    bool proceed = kelp_builder_config_progress(
        w->config, phase, p != NULL && p->parent[0] != '\0' ? p->parent : NULL, step + 1,
        p != NULL ? p->steps : step + 1);
    pthread_mutex_unlock(&w->mutex);
    return proceed;
}

static void phase_ends(void *userp, const char *phase) {
    watch *w = userp;
    pthread_mutex_lock(&w->mutex);
    struct phase *p = find_phase(w, phase);
    KELP_ASSERT(p == NULL || w->count > 0);
    if (p != NULL)
        *p = w->phases[--w->count];
    pthread_mutex_unlock(&w->mutex);
}

/* ---- configuration ---- */
typedef struct job {
    kelp_runtime *runtime;
    const kelp_network *network;
    kelp_builder_config *config;
    trt_log *log;
    trt_builder *builder;
    trt_config *to;
    trt_parser *parser;
    trt_timing_cache *cache;
    trt_memory *plan;
    trt_lowering lowering;
    watch watch;
} job;

static const struct {
    uint32_t flag;
    trt_builder_flag to;
} flags[] = {{KELP_BUILD_REFIT, TRT_BUILDER_FLAG_REFIT},
             {KELP_BUILD_REFIT_INDIVIDUAL, TRT_BUILDER_FLAG_REFIT_INDIVIDUAL},
             {KELP_BUILD_STRIP_WEIGHTS, TRT_BUILDER_FLAG_STRIP_PLAN},
             {KELP_BUILD_WEIGHT_STREAMING, TRT_BUILDER_FLAG_WEIGHT_STREAMING},
             {KELP_BUILD_VERSION_COMPATIBLE, TRT_BUILDER_FLAG_VERSION_COMPATIBLE},
             {KELP_BUILD_MONITOR_MEMORY, TRT_BUILDER_FLAG_MONITOR_MEMORY}};

static void set_limits(job *j) {
    const trt_methods *m = j->lowering.m;
    size_t workspace = kelp_builder_config_memory_limit(j->config, KELP_POOL_WORKSPACE);
    size_t device = kelp_builder_config_memory_limit(j->config, KELP_POOL_DEVICE);
    if (workspace != 0)
        trt_config_set_memory_pool_limit(m, j->to, TRT_MEMORY_POOL_TYPE_WORKSPACE, workspace);
    if (device != 0)
        trt_config_set_memory_pool_limit(m, j->to, TRT_MEMORY_POOL_TYPE_TACTIC_DRAM, device);
}

/* Sets a timing cache if the user provides one, or if TensorRT (not TensorRT-RTX) measures kernels:
 * on TensorRT-RTX, creating one needs a GPU. */
static kelp_status *set_timing_cache(job *j) {
    const trt_methods *m = j->lowering.m;
    size_t size = 0;
    const void *data = kelp_builder_config_timing_cache(j->config, &size);
    if (size == 0 && j->lowering.library->flavor != TRT_FLAVOR_ENTERPRISE)
        return NULL;
    trt_log_clear(j->log);
    j->cache = trt_config_create_timing_cache(m, j->to, data, size);
    if (j->cache == NULL || !trt_config_set_timing_cache(m, j->to, j->cache, false))
        return trt_log_failure(j->log, KELP_INVALID_ARGUMENT,
                               "TensorRT: cannot use the timing cache of %zu bytes", size);
    return NULL;
}

static kelp_status *configure(job *j) {
    const trt_methods *m = j->lowering.m;
    uint32_t wanted = kelp_builder_config_flags(j->config);
    const int *capabilities = NULL;
    size_t count = kelp_builder_config_capabilities(j->config, &capabilities);
    trt_log_clear(j->log);
    for (size_t i = 0; i < KELP_COUNT(flags); i++)
        if ((wanted & flags[i].flag) != 0)
            trt_config_set_flag(m, j->to, flags[i].to);
    if ((wanted & KELP_BUILD_TF32) == 0)
        trt_config_clear_flag(m, j->to, TRT_BUILDER_FLAG_TF32);
    if ((wanted & KELP_BUILD_DETAILED) != 0)
        trt_config_set_profiling_verbosity(m, j->to, TRT_PROFILING_VERBOSITY_DETAILED);
    trt_config_set_builder_optimization_level(m, j->to,
                                              kelp_builder_config_optimization_level(j->config));
    set_limits(j);
    if (count > 0)
        KELP_TRY(
            trt_set_compute_capabilities(j->lowering.library, j->log, j->to, capabilities, count));
    return set_timing_cache(j);
}

/* ---- profiles ---- */
static kelp_status *set_values(job *j, trt_profile *to, const kelp_profile_shape *from) {
    for (int i = 0; i < 3; i++)
        if (!trt_profile_set_shape_values_v2(j->lowering.m, to, from->input,
                                             (trt_opt_profile_selector)i, from->values[i].d,
                                             from->values[i].rank))
            return trt_log_failure(j->log, KELP_INVALID_ARGUMENT,
                                   "TensorRT: invalid values of input '%s' in the profile",
                                   from->input);
    return NULL;
}

static kelp_status *add_profile(job *j, size_t index) {
    const trt_methods *m = j->lowering.m;
    const kelp_profile_shape *shapes = NULL;
    size_t count = kelp_builder_config_profile(j->config, index, &shapes);
    trt_log_clear(j->log);
    trt_profile *profile = trt_builder_create_optimization_profile(m, j->builder);
    if (profile == NULL)
        return trt_log_failure(j->log, KELP_INTERNAL, "TensorRT: cannot create profile %zu", index);
    for (size_t i = 0; i < count; i++) {
        trt_dims ends[3];
        for (int k = 0; shapes[i].has_shape && k < 3; k++)
            KELP_TRY(
                trt_dims_from((size_t)shapes[i].shapes[k].rank, shapes[i].shapes[k].d, &ends[k]));
        if (shapes[i].has_shape)
            KELP_TRY(trt_set_profile(j->lowering.library, j->log, profile, shapes[i].input,
                                     &ends[0], &ends[1], &ends[2]));
        if (shapes[i].has_values)
            KELP_TRY(set_values(j, profile, &shapes[i]));
    }
    if (!trt_profile_is_valid(m, profile) ||
        trt_config_add_optimization_profile(m, j->to, profile) < 0)
        return trt_log_failure(j->log, KELP_INVALID_ARGUMENT, "TensorRT: profile %zu is invalid",
                               index);
    return NULL;
}

/* ---- build ---- */
static kelp_status *make_network(job *j) {
    const trt_library *library = j->lowering.library;
    const kelp_network *network = j->network;
    KELP_ASSERT(j->builder != NULL && j->lowering.to == NULL);
    KELP_TRY(trt_create_network(library, j->log, j->builder,
                                1u << TRT_NETWORK_DEFINITION_CREATION_FLAG_STRONGLY_TYPED,
                                &j->lowering.to));
    if (network->parsed != NULL) {
        KELP_TRY(trt_create_parser(library, j->log, j->lowering.to, &j->parser));
        if (network->source_path != NULL)
            KELP_TRY(trt_parse_file(library, j->log, j->parser, network->source_path));
        else
            KELP_TRY(trt_parse(library, j->log, j->parser, network->source_data,
                               network->source_bytes, NULL));
    }
    KELP_TRY(trt_lower(&j->lowering));
    for (size_t i = 0; i < network->refittable_count; i++) {
        if (trt_network_mark_weights_refittable(j->lowering.m, j->lowering.to,
                                                network->refittable[i]))
            continue;
        trt_log_clear(j->log); /* its message has the same information */
        return KELP_ERROR(KELP_NOT_FOUND, "network '%s' has no refittable weights '%s'",
                          network->name, network->refittable[i]);
    }
    return NULL;
}

static kelp_status *store_timing_cache(job *j) {
    if (j->cache == NULL)
        return NULL;
    trt_memory *bytes = trt_timing_cache_serialize(j->lowering.m, j->cache);
    kelp_status *status =
        bytes != NULL
            ? kelp_builder_config_store_timing_cache(j->config,
                                                     trt_memory_data(j->lowering.m, bytes),
                                                     trt_memory_size(j->lowering.m, bytes))
            : trt_log_failure(j->log, KELP_INTERNAL, "TensorRT: cannot serialize the timing cache");
    trt_destroy(bytes);
    return status;
}

static kelp_status *build(job *j, kelp_blob **out_plan) {
    const trt_library *library = j->lowering.library;
    KELP_ASSERT(library != NULL && j->log != NULL && j->plan == NULL);
    kelp_buf bytes;
    KELP_TRY(trt_create_builder(library, j->log, &j->builder));
    KELP_TRY(kelp_in_domain(make_network(j), KELP_DOMAIN_NETWORK));
    KELP_TRY(trt_create_config(library, j->log, j->builder, &j->to));
    KELP_TRY(kelp_in_domain(configure(j), KELP_DOMAIN_PARAMETER));
    for (size_t i = 0; i < kelp_builder_config_profile_count(j->config); i++)
        KELP_TRY(kelp_in_domain(add_profile(j, i), KELP_DOMAIN_PARAMETER));
    KELP_TRY(trt_build(library, j->log, j->builder, j->lowering.to, j->to, &j->watch.progress,
                       &j->plan));
    KELP_TRY(store_timing_cache(j));
    kelp_buf_init(&bytes, j->runtime->allocator);
    kelp_buf_append(&bytes, trt_memory_data(library->methods, j->plan),
                    trt_memory_size(library->methods, j->plan));
    kelp_status *status = kelp_buf_status(&bytes);
    if (status == NULL)
        status = kelp_blob_of(&bytes, out_plan);
    kelp_buf_deinit(&bytes);
    return status;
}

/* Destroys the objects in reverse order of creation. */
static void close_job(job *j) {
    trt_destroy(j->plan);
    trt_destroy(j->cache);
    trt_destroy(j->to);
    trt_destroy_parser(j->parser);
    trt_destroy(j->lowering.to);
    trt_destroy(j->builder);
    trt_log_destroy(j->log);
    kelp_arena_deinit(&j->lowering.arena);
    pthread_mutex_destroy(&j->watch.mutex);
}

kelp_status *trt_engine_build(void *self, kelp_runtime *runtime, const kelp_network *network,
                              kelp_builder_config *config, kelp_blob **out_plan) {
    const trt_library *library = NULL;
    job *j = NULL;
    (void)self;
    KELP_TRY(trt_shared_library(&library));
    KELP_TRY(KELP_NEW(runtime->allocator, job, &j));
    j->runtime = runtime;
    j->network = network;
    j->config = config;
    j->lowering.library = library;
    j->lowering.m = library->methods;
    j->lowering.from = network;
    j->lowering.names_weights =
        (kelp_builder_config_flags(config) &
         (KELP_BUILD_REFIT | KELP_BUILD_REFIT_INDIVIDUAL | KELP_BUILD_STRIP_WEIGHTS)) != 0;
    kelp_arena_init(&j->lowering.arena, runtime->allocator, 4 << 10);
    pthread_mutex_init(&j->watch.mutex, NULL);
    trt_progress_init(&j->watch.progress);
    j->watch.config = config;
    j->watch.progress.start = phase_starts;
    j->watch.progress.step = step_done;
    j->watch.progress.finish = phase_ends;
    j->watch.progress.userp = &j->watch;
    kelp_status *status = trt_runtime_log(runtime, &j->log);
    j->lowering.log = j->log;
    if (status == NULL)
        status = build(j, out_plan);
    close_job(j);
    kelp_free(runtime->allocator, j, sizeof *j);
    return status;
}
