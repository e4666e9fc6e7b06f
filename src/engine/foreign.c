/* SPDX-License-Identifier: Apache-2.0 */
/* Engines and contexts of other providers: what a table lacks is answered here. */
#include "base/alloc.h"
#include "cpu/exec/exec.h"

#include <kelp/engine_provider.h>

#include <string.h>

kelp_status *kelp_foreign_missing(const kelp_engine *engine, const char *call) {
    return KELP_ERROR(KELP_UNIMPLEMENTED, "engines of provider '%s' have no %s",
                      kelp_engine_provider_name(engine), call);
}

/* A full table, whatever the length of the provider's. */
static kelp_status *copy_table(kelp_engine *engine, const kelp_engine_vtbl *from) {
    kelp_engine_vtbl *table = KELP_ARENA_NEW(&engine->arena, kelp_engine_vtbl);
    if (table == NULL)
        return kelp_status_oom();
    memcpy(table, from, from->struct_size < sizeof *table ? from->struct_size : sizeof *table);
    engine->vtbl = table;
    return NULL;
}

static kelp_status *copy_profiles(kelp_engine *engine, const kelp_engine_parts *parts) {
    engine->profiles = KELP_ARENA_ARRAY(&engine->arena, parts->profile_count, kelp_engine_profile);
    if (engine->profiles == NULL)
        return kelp_status_oom();
    engine->profile_count = parts->profile_count;
    for (size_t i = 0; parts->profile_shapes != NULL && i < parts->profile_count; i++) {
        kelp_shape(*bounds)[3] = kelp_arena_alloc(
            &engine->arena, (parts->input_count + 1) * sizeof *bounds, _Alignof(kelp_shape));
        if (bounds == NULL)
            return kelp_status_oom();
        memcpy(bounds, &parts->profile_shapes[i * parts->input_count],
               parts->input_count * sizeof *bounds);
        engine->profiles[i].bounds = bounds;
    }
    return NULL;
}

static kelp_status *copy_refittable(kelp_engine *engine, const kelp_engine_parts *parts) {
    engine->refittable = KELP_ARENA_ARRAY(&engine->arena, parts->refittable_count, const char *);
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

static kelp_status *copy_io(const kelp_engine *engine, const kelp_io_info *from, size_t count,
                            kelp_io_info **out, size_t *out_count) {
    KELP_TRY(kelp_alloc_zero(engine->allocator, count, sizeof *from, (void **)out));
    if (count > 0)
        memcpy(*out, from, count * sizeof *from);
    *out_count = count;
    return NULL;
}

kelp_status *kelp_engine_wrap(kelp_runtime *runtime, const kelp_engine_parts *given,
                              kelp_engine **out) {
    kelp_engine_parts known = {.struct_size = sizeof known}, *parts = &known;
    kelp_engine *engine = NULL;
    memcpy(&known, given, given->struct_size < sizeof known ? given->struct_size : sizeof known);
    kelp_status *status = kelp_engine_new(runtime, &engine);
    if (status == NULL)
        status = copy_table(engine, parts->vtbl);
    if (status != NULL) {
        kelp_engine_release(engine);
        if (parts->vtbl->destroy_engine != NULL)
            parts->vtbl->destroy_engine(parts->engine);
        return status;
    }
    engine->foreign = parts->engine;
    engine->provider = parts->provider;
    status =
        copy_io(engine, parts->inputs, parts->input_count, &engine->inputs, &engine->input_count);
    if (status == NULL)
        status = copy_io(engine, parts->outputs, parts->output_count, &engine->outputs,
                         &engine->output_count);
    if (status == NULL && parts->profile_count > 0)
        status = copy_profiles(engine, parts);
    if (status == NULL && parts->refittable_count > 0)
        status = copy_refittable(engine, parts);
    if (status != NULL) {
        kelp_engine_release(engine);
        return status;
    }
    *out = engine;
    return NULL;
}

/* ---- contexts ---- */
kelp_status *kelp_foreign_create(kelp_context *context) {
    const kelp_engine *engine = context->engine;
    if (engine->vtbl->create_context == NULL)
        return kelp_foreign_missing(engine, "contexts");
    KELP_TRY(kelp_alloc_zero(context->allocator, engine->output_count,
                             sizeof *context->foreign_outputs, (void **)&context->foreign_outputs));
    for (size_t i = 0; i < engine->output_count; i++)
        context->foreign_outputs[i] = (kelp_tensor){.dtype = engine->outputs[i].dtype, .rank = -1};
    return engine->vtbl->create_context(engine->foreign, &context->foreign);
}

void kelp_foreign_destroy(kelp_context *context) {
    const kelp_engine *engine = context->engine;
    if (context->foreign != NULL && engine->vtbl->destroy_context != NULL)
        engine->vtbl->destroy_context(context->foreign);
    kelp_free(context->allocator, context->foreign_outputs,
              context->foreign_outputs != NULL
                  ? engine->output_count * sizeof *context->foreign_outputs
                  : 0);
}

kelp_status *kelp_foreign_set_input(kelp_context *context, size_t index,
                                    const kelp_tensor *tensor) {
    const kelp_engine *engine = context->engine;
    return engine->vtbl->set_input != NULL
               ? engine->vtbl->set_input(context->foreign, index, tensor)
               : kelp_foreign_missing(engine, "inputs that can be bound");
}

kelp_status *kelp_foreign_set_output(kelp_context *context, size_t index, void *data,
                                     size_t capacity_bytes) {
    const kelp_engine *engine = context->engine;
    return engine->vtbl->set_output != NULL
               ? engine->vtbl->set_output(context->foreign, index, data, capacity_bytes)
               : kelp_foreign_missing(engine, "outputs that can be bound");
}

kelp_status *kelp_foreign_set_output_allocator(kelp_context *context, size_t index,
                                               kelp_output_allocator fn, void *userp) {
    const kelp_engine *engine = context->engine;
    if (engine->vtbl->set_output_allocator != NULL)
        return engine->vtbl->set_output_allocator(context->foreign, index, fn, userp);
    return fn == NULL ? NULL : kelp_foreign_missing(engine, "output allocators");
}

kelp_status *kelp_foreign_prepare(kelp_context *context) {
    const kelp_engine *engine = context->engine;
    return engine->vtbl->prepare != NULL
               ? engine->vtbl->prepare(context->foreign, context->foreign_outputs)
               : kelp_foreign_missing(engine, "shapes before a run");
}

kelp_status *kelp_foreign_invoke(kelp_context *context) {
    const kelp_engine *engine = context->engine;
    return engine->vtbl->invoke != NULL
               ? engine->vtbl->invoke(context->foreign, context->foreign_outputs)
               : kelp_foreign_missing(engine, "synchronous runs");
}

/* ---- what only engines on a device have ---- */
static const kelp_engine_vtbl nothing = {.struct_size = sizeof nothing};

static const kelp_engine_vtbl *table_of(const kelp_engine *engine) {
    return engine->vtbl != NULL ? engine->vtbl : &nothing;
}

kelp_status *kelp_engine_set_runtime_cache(kelp_engine *engine, const void *data,
                                           size_t size_bytes) {
    const kelp_engine_vtbl *table = table_of(engine);
    return table->set_runtime_cache != NULL
               ? table->set_runtime_cache(engine->foreign, data, size_bytes)
               : kelp_foreign_missing(engine, "runtime cache");
}

kelp_status *kelp_engine_write_runtime_cache(
    kelp_engine *engine, void (*write)(void *userp, const char *data, size_t length), void *userp) {
    const kelp_engine_vtbl *table = table_of(engine);
    return table->write_runtime_cache != NULL
               ? table->write_runtime_cache(engine->foreign, write, userp)
               : kelp_foreign_missing(engine, "runtime cache");
}

kelp_status *kelp_engine_streamable_weights(const kelp_engine *engine, size_t *out_bytes) {
    const kelp_engine_vtbl *table = table_of(engine);
    *out_bytes = 0;
    return table->streamable_weights != NULL
               ? table->streamable_weights(engine->foreign, out_bytes)
               : kelp_foreign_missing(engine, "weights that are streamed");
}

kelp_status *kelp_engine_set_weight_budget(kelp_engine *engine, size_t device_bytes) {
    const kelp_engine_vtbl *table = table_of(engine);
    return table->set_weight_budget != NULL
               ? table->set_weight_budget(engine->foreign, device_bytes)
               : kelp_foreign_missing(engine, "weights that are streamed");
}
