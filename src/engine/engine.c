/* SPDX-License-Identifier: Apache-2.0 */
/* Engines: functions that all providers share, and dispatch to the provider's table. */
#include "engine/engine.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/domain.h"
#include "base/log.h"
#include "runtime/provider.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

kelp_status *kelp_engine_lacks(const kelp_engine *engine, const char *feature) {
    return kelp_in_domain(KELP_ERROR(KELP_UNIMPLEMENTED, "engines of provider '%s' have no %s",
                                     engine->provider, feature),
                          KELP_DOMAIN_ENGINE);
}

/* ---- creation ---- */
/* Copies the provider's table, which may be shorter than this version's. */
static kelp_status *copy_table(kelp_engine *engine, const kelp_engine_vtbl *from) {
    kelp_engine_vtbl *table = KELP_ARENA_NEW(&engine->arena, kelp_engine_vtbl);
    if (table == NULL)
        return kelp_status_oom();
    memcpy(table, from, KELP_MIN(from->struct_size, sizeof *table));
    engine->vtbl = table;
    return NULL;
}

static kelp_status *copy_array(kelp_engine *engine, const void *from, size_t count,
                               size_t item_bytes, void **out) {
    *out = kelp_arena_array(&engine->arena, count + 1, item_bytes);
    if (*out == NULL)
        return kelp_status_oom();
    if (count > 0)
        memcpy(*out, from, count * item_bytes);
    return NULL;
}

static kelp_status *copy_refittable(kelp_engine *engine, const kelp_engine_parts *parts) {
    engine->refittable =
        KELP_ARENA_ARRAY(&engine->arena, parts->refittable_count + 1, const char *);
    if (engine->refittable == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < parts->refittable_count; i++) {
        engine->refittable[i] =
            kelp_arena_strndup(&engine->arena, parts->refittable[i], strlen(parts->refittable[i]));
        if (engine->refittable[i] == NULL)
            return kelp_status_oom();
    }
    engine->refittable_count = parts->refittable_count;
    return NULL;
}

static kelp_status *copy_parts(kelp_engine *engine, const kelp_engine_parts *parts) {
    KELP_TRY(copy_array(engine, parts->inputs, parts->input_count, sizeof *engine->inputs,
                        (void **)&engine->inputs));
    KELP_TRY(copy_array(engine, parts->outputs, parts->output_count, sizeof *engine->outputs,
                        (void **)&engine->outputs));
    engine->input_count = parts->input_count;
    engine->output_count = parts->output_count;
    engine->profile_count = parts->profile_count;
    if (parts->profile_shapes != NULL)
        KELP_TRY(copy_array(engine, parts->profile_shapes,
                            parts->profile_count * parts->input_count,
                            sizeof *engine->profile_shapes, (void **)&engine->profile_shapes));
    return copy_refittable(engine, parts);
}

static kelp_status *new_engine(kelp_runtime *runtime, kelp_engine **out) {
    kelp_engine *engine = NULL;
    KELP_TRY(KELP_NEW(runtime->allocator, kelp_engine, &engine));
    atomic_init(&engine->references, 1);
    engine->runtime = kelp_runtime_retain(runtime);
    engine->allocator = runtime->allocator;
    kelp_arena_init(&engine->arena, engine->allocator, 4 << 10);
    *out = engine;
    return NULL;
}

kelp_status *kelp_engine_wrap(kelp_runtime *runtime, const kelp_engine_parts *provider_parts,
                              kelp_engine **out) {
    kelp_engine_parts parts = {.struct_size = sizeof parts};
    kelp_engine *engine = NULL;
    memcpy(&parts, provider_parts, KELP_MIN(provider_parts->struct_size, sizeof parts));
    kelp_status *status = new_engine(runtime, &engine);
    if (status == NULL)
        status = copy_table(engine, parts.vtbl);
    if (status != NULL) {
        kelp_engine_release(engine);
        if (parts.vtbl->destroy_engine != NULL)
            parts.vtbl->destroy_engine(parts.engine);
        return status;
    }
    engine->self = parts.engine;
    engine->provider = parts.provider;
    status = copy_parts(engine, &parts);
    if (status != NULL) {
        kelp_engine_release(engine);
        return status;
    }
    *out = engine;
    return NULL;
}

void kelp_engine_log_created(const kelp_engine *engine, const char *what, const char *label,
                             uint64_t began_ns) {
    kelp_engine_stats stats = kelp_engine_get_stats(engine);
    KELP_LOGF(&engine->runtime->logger, KELP_LOG_INFO,
              "%s '%s': engine of provider '%s' with %zu nodes (%zu in the graph), %zu bytes of "
              "weights in place and %zu packed, created in %.1f ms",
              what, label, engine->provider, stats.nodes_planned, stats.nodes_loaded,
              stats.weight_bytes_borrowed, stats.weight_bytes_packed,
              (double)(kelp_now_ns() - began_ns) / 1e6);
}

static kelp_status *create_engine(kelp_runtime *runtime, kelp_graph *graph,
                                  const kelp_engine_options *options, kelp_engine **out) {
    uint64_t began_ns = kelp_now_ns();
    size_t count = kelp_engine_provider_count(runtime);
    for (size_t i = 0; i < count; i++) {
        const kelp_engine_provider *provider = kelp_engine_provider_at(runtime, i);
        if (KELP_ENGINE_PROVIDER_HAS(provider, create_engine) && provider->create_engine != NULL) {
            KELP_TRY(provider->create_engine(provider->self, runtime, graph, options, out));
            kelp_engine_log_created(*out, "model", kelp_graph_get_info(graph).label, began_ns);
            return NULL;
        }
    }
    return KELP_ERROR(KELP_UNIMPLEMENTED,
                      "no engine provider creates engines from graphs (%zu providers)", count);
}

kelp_status *kelp_engine_create(kelp_runtime *runtime, kelp_graph *graph,
                                const kelp_engine_options *options, kelp_engine **out) {
    return kelp_in_domain(create_engine(runtime, graph, options, out), KELP_DOMAIN_RUNTIME);
}

kelp_engine *kelp_engine_retain(kelp_engine *engine) {
    KELP_ASSERT(atomic_load(&engine->references) > 0);
    atomic_fetch_add_explicit(&engine->references, 1, memory_order_relaxed);
    return engine;
}

void kelp_engine_release(kelp_engine *engine) {
    if (engine == NULL ||
        atomic_fetch_sub_explicit(&engine->references, 1, memory_order_acq_rel) != 1)
        return;
    KELP_ASSERT(engine->vtbl != NULL || engine->self == NULL);
    kelp_runtime *runtime = engine->runtime;
    if (engine->self != NULL && engine->vtbl->destroy_engine != NULL)
        engine->vtbl->destroy_engine(engine->self);
    kelp_arena_deinit(&engine->arena);
    kelp_free(engine->allocator, engine, sizeof *engine);
    kelp_runtime_release(runtime);
}

/* ---- precision ---- */
static const char *const precisions[] = {"f32", "bf16"};

bool kelp_precision_parse(const char *name, kelp_precision *out) {
    for (size_t i = 0; i < KELP_COUNT(precisions); i++)
        if (strcmp(precisions[i], name) == 0) {
            *out = (kelp_precision)i;
            return true;
        }
    return false;
}

const char *kelp_precision_name(kelp_precision precision) {
    return precision == KELP_PRECISION_BF16 ? precisions[1] : precisions[0];
}

/* ---- inputs and outputs ---- */
size_t kelp_engine_input_count(const kelp_engine *engine) {
    return engine->input_count;
}

size_t kelp_engine_output_count(const kelp_engine *engine) {
    return engine->output_count;
}

const kelp_io_info *kelp_engine_input(const kelp_engine *engine, size_t index) {
    return index < engine->input_count ? &engine->inputs[index] : NULL;
}

const kelp_io_info *kelp_engine_output(const kelp_engine *engine, size_t index) {
    return index < engine->output_count ? &engine->outputs[index] : NULL;
}

static size_t find_io(const kelp_io_info *items, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(items[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

size_t kelp_engine_find_input(const kelp_engine *engine, const char *name) {
    return find_io(engine->inputs, engine->input_count, name);
}

size_t kelp_engine_find_output(const kelp_engine *engine, const char *name) {
    return find_io(engine->outputs, engine->output_count, name);
}

/* ---- information from the provider ---- */
const char *kelp_engine_provider_name(const kelp_engine *engine) {
    return engine->provider;
}

kelp_engine_stats kelp_engine_get_stats(const kelp_engine *engine) {
    return engine->vtbl->stats != NULL ? engine->vtbl->stats(engine->self) : (kelp_engine_stats){0};
}

size_t kelp_engine_subgraph_count(const kelp_engine *engine) {
    return engine->vtbl->subgraph_count != NULL ? engine->vtbl->subgraph_count(engine->self) : 0;
}

kelp_subgraph_info kelp_engine_subgraph(const kelp_engine *engine, size_t index) {
    return engine->vtbl->subgraph != NULL && index < kelp_engine_subgraph_count(engine)
               ? engine->vtbl->subgraph(engine->self, index)
               : (kelp_subgraph_info){0};
}

kelp_status *kelp_engine_inspect(const kelp_engine *engine, bool json,
                                 void (*write)(void *userp, const char *text, size_t length),
                                 void *userp) {
    if (engine->vtbl->inspect == NULL)
        return kelp_engine_lacks(engine, "inspector");
    return kelp_in_domain(engine->vtbl->inspect(engine->self, json, write, userp),
                          KELP_DOMAIN_ENGINE);
}

kelp_status *kelp_engine_workspace_bytes(const kelp_engine *engine, size_t profile, size_t *out) {
    if (profile > 0 && profile >= engine->profile_count)
        return kelp_in_argument_domain(KELP_ERROR(KELP_OUT_OF_RANGE,
                                                  "there is no profile %zu: the engine has %zu",
                                                  profile, engine->profile_count));
    if (engine->vtbl->workspace_bytes == NULL)
        return kelp_engine_lacks(engine, "known workspace");
    return kelp_in_domain(engine->vtbl->workspace_bytes(engine->self, profile, out),
                          KELP_DOMAIN_ENGINE);
}

/* ---- refitting ---- */
size_t kelp_engine_refittable_count(const kelp_engine *engine) {
    return engine->refittable_count;
}

const char *kelp_engine_refittable(const kelp_engine *engine, size_t index) {
    return index < engine->refittable_count ? engine->refittable[index] : NULL;
}

kelp_status *kelp_engine_refit(kelp_engine *engine, const kelp_weights *weights, size_t count) {
    if (engine->vtbl->refit == NULL)
        return kelp_engine_lacks(engine, "refitting");
    return kelp_in_domain(engine->vtbl->refit(engine->self, weights, count), KELP_DOMAIN_ENGINE);
}

/* ---- engines on a device ---- */
kelp_status *kelp_engine_set_runtime_cache(kelp_engine *engine, const void *data,
                                           size_t size_bytes) {
    if (engine->vtbl->set_runtime_cache == NULL)
        return kelp_engine_lacks(engine, "runtime cache");
    return kelp_in_argument_domain(engine->vtbl->set_runtime_cache(engine->self, data, size_bytes));
}

kelp_status *kelp_engine_write_runtime_cache(
    kelp_engine *engine, void (*write)(void *userp, const char *data, size_t length), void *userp) {
    if (engine->vtbl->write_runtime_cache == NULL)
        return kelp_engine_lacks(engine, "runtime cache");
    return kelp_in_domain(engine->vtbl->write_runtime_cache(engine->self, write, userp),
                          KELP_DOMAIN_ENGINE);
}

kelp_status *kelp_engine_streamable_weights(const kelp_engine *engine, size_t *out_bytes) {
    *out_bytes = 0;
    if (engine->vtbl->streamable_weights == NULL)
        return kelp_engine_lacks(engine, "weights that are streamed");
    return kelp_in_domain(engine->vtbl->streamable_weights(engine->self, out_bytes),
                          KELP_DOMAIN_ENGINE);
}

kelp_status *kelp_engine_set_weight_budget(kelp_engine *engine, size_t device_bytes) {
    if (engine->vtbl->set_weight_budget == NULL)
        return kelp_engine_lacks(engine, "weights that are streamed");
    return kelp_in_argument_domain(engine->vtbl->set_weight_budget(engine->self, device_bytes));
}
