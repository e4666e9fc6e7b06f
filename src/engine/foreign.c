/* SPDX-License-Identifier: Apache-2.0 */
/* Engines and contexts of other providers: what a table lacks is answered here. */
#include "base/alloc.h"
#include "engine/engine_internal.h"

#include <kelp/engine_provider.h>

#include <string.h>

kelp_status *kelp_foreign_missing(const kelp_engine *engine, const char *call) {
    return KELP_ERROR(KELP_UNIMPLEMENTED, "engines of provider '%s' have no %s", engine->provider,
                      call);
}

static kelp_status *copy_io(const kelp_engine *engine, const kelp_io_info *from, size_t count,
                            kelp_io_info **out, size_t *out_count) {
    KELP_TRY(kelp_alloc_zero(engine->allocator, count, sizeof *from, (void **)out));
    if (count > 0)
        memcpy(*out, from, count * sizeof *from);
    *out_count = count;
    return NULL;
}

kelp_status *kelp_engine_wrap(kelp_runtime *runtime, const kelp_engine_parts *parts,
                              kelp_engine **out) {
    kelp_engine *engine = NULL;
    kelp_status *status = kelp_engine_new(runtime, &engine);
    if (status != NULL) {
        if (parts->vtbl->destroy_engine != NULL)
            parts->vtbl->destroy_engine(parts->engine);
        return status;
    }
    engine->vtbl = parts->vtbl;
    engine->foreign = parts->engine;
    engine->provider = parts->provider;
    status =
        copy_io(engine, parts->inputs, parts->input_count, &engine->inputs, &engine->input_count);
    if (status == NULL)
        status = copy_io(engine, parts->outputs, parts->output_count, &engine->outputs,
                         &engine->output_count);
    if (status == NULL && parts->profile_count > 0) {
        engine->profiles = KELP_ARENA_ARRAY(&engine->arena, parts->profile_count,
                                            kelp_engine_profile); /* without bounds: its own */
        engine->profile_count = engine->profiles != NULL ? parts->profile_count : 0;
        status = engine->profiles != NULL ? NULL : kelp_status_oom();
    }
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
