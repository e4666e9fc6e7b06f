/* SPDX-License-Identifier: Apache-2.0 */
/* Engines of the provider `cpu`. The engine image is the graph after the passes, with its weights.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "builder/builder.h"
#include "builder/network.h"
#include "cpu/image/image.h"
#include "cpu/ops/optional.h"
#include "cpu/provider.h"
#include "graph/save.h"

#include <limits.h>
#include <string.h>

static kelp_status *cancelled(void) {
    return KELP_ERROR(KELP_CANCELLED, "the build was cancelled by its progress callback");
}

/* ---- refittable weights ---- */
static bool is_marked(const kelp_network *network, const char *name) {
    for (size_t i = 0; i < network->refittable_count; i++)
        if (strcmp(network->refittable[i], name) == 0)
            return true;
    return false;
}

static bool is_named_constant(const kelp_value *value) {
    return value->constant != NULL && value->use_count > 0 && value->name[0] != '\0' &&
           value->constant->dtype != KELP_STRING && value->producer == NULL;
}

/* Returns the reason why the marked weights cannot be refitted. */
static kelp_status *not_refittable(const kelp_network *network, const kelp_block *main,
                                   const char *name) {
    for (size_t i = 0; i < main->value_count; i++)
        if (is_named_constant(main->values[i]) && strcmp(main->values[i]->name, name) == 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "network '%s': weights '%s' cannot be refitted: they determine a "
                              "shape or are a constant of a layer",
                              network->name, name);
    return KELP_ERROR(KELP_NOT_FOUND, "network '%s' has no weights '%s' that could be refitted",
                      network->name, name);
}

/* Lists the named constants of the main block, except those that determine shapes and those that
 * layers created. The first constant of a name counts. */
static kelp_status *list_named(const kelp_network *network, const kelp_block *main, bool all,
                               kelp_map *seen, const char **names, size_t *inout_count) {
    for (size_t i = 0; i < main->value_count; i++) {
        kelp_value *value = main->values[i];
        kelp_str name = kelp_str_from(value->name);
        if (!is_named_constant(value) || kelp_map_find(seen, name, NULL))
            continue;
        if (value->is_generated || kelp_value_sets_shape(value) ||
            !(all || is_marked(network, value->name)))
            continue;
        KELP_TRY(kelp_map_put(seen, name, value));
        names[(*inout_count)++] = value->name;
    }
    return NULL;
}

static kelp_status *list_refittable(const kelp_network *network, kelp_graph *graph, uint32_t flags,
                                    kelp_arena *arena, kelp_cpu_image_contents *out) {
    const kelp_block *main = graph->main;
    bool all = (flags & KELP_BUILD_REFIT) != 0 || (flags & KELP_BUILD_REFIT_INDIVIDUAL) == 0;
    const char **names = KELP_ARENA_ARRAY(arena, main->value_count + 1, const char *);
    if (names == NULL)
        return kelp_status_oom();
    kelp_map seen;
    kelp_graph_find_shape_values(graph);
    kelp_map_init(&seen, graph->allocator);
    kelp_status *status = list_named(network, main, all, &seen, names, &out->refittable_count);
    kelp_map_deinit(&seen);
    KELP_TRY(status);
    for (size_t i = 0; i < network->refittable_count; i++) {
        bool found = false;
        for (size_t k = 0; !found && k < out->refittable_count; k++)
            found = strcmp(names[k], network->refittable[i]) == 0;
        if (!found)
            return not_refittable(network, main, network->refittable[i]);
    }
    out->refittable = names;
    return NULL;
}

/* ---- build ---- */
/* The lowest optimization level that runs passes and packs weights in the build, not when the image
 * is loaded. */
#define LEVEL_PREPARED 3

typedef struct owned_bytes {
    kelp_allocator allocator;
    char *data;
    size_t capacity, alignment;
} owned_bytes;

static void free_bytes(void *userp) {
    owned_bytes *owned = userp;
    kelp_allocator allocator = owned->allocator;
    kelp_free_aligned(allocator, owned->data, owned->capacity, owned->alignment);
    kelp_free(allocator, owned, sizeof *owned);
}

/* Checks the workspace of every profile's largest shapes against the limit. */
static kelp_status *check_workspace(kelp_cpu_engine *engine, const kelp_builder_config *config,
                                    const char *plan, size_t length) {
    size_t limit = kelp_builder_config_memory_limit(config, KELP_POOL_WORKSPACE), needed = 0;
    kelp_cpu_engine *loaded = NULL;
    if (limit == 0)
        return NULL;
    /* only a loaded image has the profiles */
    KELP_TRY(kelp_cpu_image_load(engine->runtime, plan, length, "the plan", NULL, NULL, &loaded));
    size_t count = loaded->profile_count;
    kelp_status *status = NULL;
    for (size_t i = 0; status == NULL && i < (count > 0 ? count : 1); i++) {
        status = kelp_cpu_engine_workspace(loaded, i, &needed);
        if (status == NULL && needed > limit)
            status = KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                                "profile %zu needs a workspace of %zu bytes, the limit is %zu", i,
                                needed, limit);
    }
    kelp_cpu_engine_release(loaded);
    return status;
}

/* Checks the workspace of a stripped engine. It has no schedules, so the same engine with its
 * weights is checked instead. */
static kelp_status *check_stripped(kelp_cpu_engine *engine,
                                   const kelp_cpu_image_contents *contents) {
    kelp_cpu_image_contents whole = *contents;
    kelp_allocator allocator = engine->runtime->allocator;
    char *data = NULL;
    size_t size_bytes = 0;
    whole.stripped = false;
    if (kelp_builder_config_memory_limit(contents->config, KELP_POOL_WORKSPACE) == 0)
        return NULL;
    KELP_TRY(kelp_cpu_image_write(&whole, allocator, &data, &size_bytes));
    kelp_status *status = check_workspace(engine, contents->config, data, size_bytes);
    kelp_free_aligned(allocator, data, size_bytes, KELP_CPU_IMAGE_ALIGNMENT);
    return status;
}

/* Schedules the shapes that the image is built for, since some kernels pack weights for shapes.
 * Shapes that cannot be scheduled fail when they are bound. */
static kelp_status *warm(kelp_cpu_engine *engine, const kelp_builder_config *config) {
    size_t profiles = kelp_builder_config_profile_count(config);
    for (size_t i = 0; i < (profiles > 0 ? 3 * profiles : 1); i++) {
        const kelp_profile_shape *shapes = NULL;
        size_t count = profiles > 0 ? kelp_builder_config_profile(config, i / 3, &shapes) : 0;
        kelp_status *status = kelp_cpu_engine_warm_up(engine, shapes, count, (int)(i % 3));
        if (kelp_status_code(status) == KELP_RESOURCE_EXHAUSTED)
            return status;
        kelp_status_free(status);
    }
    return NULL;
}

/* Reports how many operators are created, which takes the longest part of a build. */
static bool report_operators(void *userp, size_t done, size_t total) {
    size_t max = total < INT_MAX ? total : INT_MAX;
    KELP_ASSERT(done <= total);
    return kelp_builder_config_progress(userp, "creating operators", "optimizing",
                                        (int)(done < max ? done : max), (int)max);
}

/* One build, from the lowered graph to the bytes of the engine image. */
typedef struct image_build {
    kelp_runtime *runtime;
    const kelp_network *network;
    kelp_graph *graph;
    kelp_builder_config *config;
    uint32_t flags; /* KELP_BUILD_* */
    kelp_arena arena;
    kelp_cpu_engine *engine;
    kelp_cpu_image_contents contents;
} image_build;

static bool is_stripped(const image_build *build) {
    return (build->flags & KELP_BUILD_STRIP_WEIGHTS) != 0;
}

/* A stripped engine gets its weights by a refit. */
static bool is_refittable(const image_build *build) {
    return (build->flags &
            (KELP_BUILD_STRIP_WEIGHTS | KELP_BUILD_REFIT | KELP_BUILD_REFIT_INDIVIDUAL)) != 0;
}

static kelp_precision precision_of(const image_build *build) {
    return (build->flags & KELP_BUILD_BF16) != 0 ? KELP_PRECISION_BF16 : KELP_PRECISION_F32;
}

static bool is_unfused(const image_build *build) {
    return (build->flags & KELP_BUILD_DISABLE_FUSION) != 0;
}

static kelp_status *make_engine(image_build *build) {
    kelp_cpu_origin origin = {.prepared = false};
    kelp_engine_options options = {.struct_size = sizeof options,
                                   .progress = report_operators,
                                   .progress_userp = build->config,
                                   .disable_fusion = is_unfused(build),
                                   .precision = precision_of(build)};
    if (!kelp_builder_config_progress(build->config, "optimizing", "building", 1, 3))
        return cancelled();
    KELP_TRY(kelp_cpu_packs_create(build->runtime->allocator, true, NULL, &origin.take_packs));
    kelp_status *status =
        kelp_cpu_engine_make(build->runtime, build->graph, &options, &origin, &build->engine);
    if (kelp_status_code(status) != KELP_CANCELLED)
        return status;
    kelp_status_free(status);
    return cancelled();
}

/* Fills `contents` from the graph as it was built, or after the passes if the image is prepared. */
static kelp_status *choose_contents(image_build *build) {
    kelp_cpu_image_contents *contents = &build->contents;
    *contents = (kelp_cpu_image_contents){.name = build->network->name,
                                          .graph = build->graph,
                                          .stripped = is_stripped(build),
                                          .no_fusion = is_unfused(build),
                                          .precision = precision_of(build),
                                          .config = build->config};
    if (is_refittable(build))
        KELP_TRY(
            list_refittable(build->network, build->graph, build->flags, &build->arena, contents));
    /* subgraphs of other providers are partitioned again where the image is loaded */
    contents->prepared = !contents->stripped && build->engine->partition.count == 0 &&
                         kelp_builder_config_optimization_level(build->config) >= LEVEL_PREPARED;
    if (!contents->prepared)
        return NULL;
    contents->graph = build->engine->graph;
    contents->engine = build->engine;
    contents->source = is_refittable(build) ? build->graph : NULL;
    return warm(build->engine, build->config);
}

static kelp_status *write_contents(const image_build *build, owned_bytes *out) {
    if (!kelp_builder_config_progress(build->config, "serializing", "building", 2, 3))
        return cancelled();
    if (is_stripped(build))
        KELP_TRY(check_stripped(build->engine, &build->contents));
    KELP_TRY(kelp_cpu_image_write(&build->contents, build->runtime->allocator, &out->data,
                                  &out->capacity));
    return is_stripped(build)
               ? NULL
               : check_workspace(build->engine, build->config, out->data, out->capacity);
}

static kelp_status *write_plan(kelp_runtime *runtime, const kelp_network *network,
                               kelp_graph *graph, kelp_builder_config *config, owned_bytes *out) {
    image_build build = {.runtime = runtime,
                         .network = network,
                         .graph = graph,
                         .config = config,
                         .flags = kelp_builder_config_flags(config)};
    kelp_arena_init(&build.arena, runtime->allocator, 4 << 10);
    kelp_status *status = make_engine(&build);
    if (status == NULL)
        status = choose_contents(&build);
    if (status == NULL)
        status = write_contents(&build, out);
    kelp_arena_deinit(&build.arena);
    kelp_cpu_engine_release(build.engine);
    return status;
}

static kelp_status *cpu_build(void *self, kelp_runtime *runtime, const kelp_network *network,
                              kelp_builder_config *config, kelp_blob **out_plan) {
    kelp_graph *graph = NULL;
    owned_bytes *plan = NULL;
    (void)self;
    if (!kelp_builder_config_progress(config, "lowering", "building", 0, 3))
        return cancelled();
    KELP_TRY(kelp_network_lower(network, &graph));
    kelp_status *status = KELP_NEW(runtime->allocator, owned_bytes, &plan);
    if (status == NULL) {
        plan->allocator = runtime->allocator;
        plan->alignment = KELP_CPU_IMAGE_ALIGNMENT;
        status = write_plan(runtime, network, graph, config, plan);
    }
    if (status == NULL && !kelp_builder_config_progress(config, "done", "building", 3, 3))
        status = cancelled();
    kelp_graph_release(graph);
    if (status == NULL)
        return kelp_blob_wrap(runtime->allocator, plan->data, plan->capacity, free_bytes, plan,
                              out_plan);
    if (plan != NULL)
        free_bytes(plan);
    return status;
}

static kelp_status *cpu_supports(void *self, kelp_runtime *runtime, const kelp_network *network) {
    (void)self;
    return network->parsed != NULL ? kelp_opset_check_ready(runtime->registry, network->parsed)
                                   : NULL;
}

static bool cpu_recognises(void *self, const void *data, size_t size_bytes) {
    (void)self;
    return kelp_cpu_image_is(data, size_bytes);
}

static kelp_status *cpu_load(void *self, kelp_runtime *runtime, const void *data, size_t size_bytes,
                             const char *label, void (*release)(void *userp), void *userp,
                             kelp_engine **out) {
    kelp_cpu_engine *engine = NULL;
    (void)self;
    KELP_TRY(kelp_cpu_image_load(runtime, data, size_bytes, label, release, userp, &engine));
    return kelp_cpu_engine_wrap(engine, out);
}

static kelp_status *cpu_describe(void *self, kelp_runtime *runtime,
                                 void (*write)(void *userp, const char *text, size_t length),
                                 void *userp) {
    (void)self, (void)runtime;
    kelp_optional_describe(write, userp);
    return NULL;
}

static kelp_status *cpu_create_engine(void *self, kelp_runtime *runtime, kelp_graph *graph,
                                      const kelp_engine_options *options, kelp_engine **out) {
    kelp_cpu_engine *engine = NULL;
    (void)self;
    KELP_TRY(kelp_cpu_engine_make(runtime, graph, options, &(kelp_cpu_origin){0}, &engine));
    return kelp_cpu_engine_wrap(engine, out);
}

const kelp_engine_provider kelp_cpu_engines = {
    .abi_version = KELP_ENGINE_PROVIDER_ABI_VERSION,
    .struct_size = sizeof(kelp_engine_provider),
    .name = "cpu",
    /* Without the flags that have no effect: tensors determine the precision, the weights of a plan
     * file are memory-mapped, and the inspector always reports everything. */
    .flags = KELP_BUILD_BF16 | KELP_BUILD_REFIT | KELP_BUILD_REFIT_INDIVIDUAL |
             KELP_BUILD_STRIP_WEIGHTS | KELP_BUILD_DISABLE_FUSION,
    .pools = 1u << KELP_POOL_WORKSPACE,
    .supports = cpu_supports,
    .build = cpu_build,
    .recognises = cpu_recognises,
    .load = cpu_load,
    .describe = cpu_describe,
    .create_engine = cpu_create_engine,
};
