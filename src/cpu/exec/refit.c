/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refits: a new engine is created from the graph before the passes, with other constants. It
 * replaces the previous one inside the engine; contexts switch to it before their next run.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "cpu/exec/engine.h"

#include <kelp/engine_provider.h>

#include <string.h>

/* ---- the graph of an engine image before the passes ---- */
static void release_graph(void *userp) {
    kelp_graph_release(userp);
}

/* Loads the graph, which retains the bytes of the image. */
static kelp_status *load_source(const kelp_cpu_engine *engine, kelp_graph **out) {
    const kelp_cpu_image_source *source = &engine->refittable_source;
    const char *label = engine->source->info.label;
    if (kelp_cpu_image_hash(source->model.data, source->model.length) != source->model_hash)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: the graph to refit was altered: its hash differs from the stored "
                          "hash",
                          label);
    if (engine->packs != NULL)
        KELP_TRY(kelp_cpu_packs_check_originals(engine->packs));
    kelp_graph_limits limits = kelp_runtime_graph_limits(engine->runtime);
    return kelp_graph_load_parts(engine->allocator, source->model, source->parts, label,
                                 release_graph, kelp_graph_retain(engine->source), &limits, out);
}

static kelp_status *source_of(kelp_cpu_engine *engine, kelp_graph **out) {
    kelp_cpu_engine *current = kelp_cpu_engine_current(engine);
    if (current == engine && engine->refittable_source.model.length > 0)
        return load_source(engine, out);
    *out = kelp_graph_retain(current->source);
    return NULL;
}

/* ---- names and elements ---- */
static kelp_value *find_constant(kelp_block *block, const char *name) {
    for (size_t i = 0; i < block->value_count; i++)
        if (block->values[i]->constant != NULL && strcmp(block->values[i]->name, name) == 0)
            return block->values[i];
    return NULL;
}

/* Returns the reason why the weights are not refittable, which only the graph before the passes
 * tells. */
static kelp_status *find_reason(kelp_cpu_engine *engine, const char *name, const char **out) {
    kelp_graph *source = NULL, *graph = NULL;
    KELP_TRY(source_of(engine, &source));
    kelp_status *status = kelp_graph_clone_for_engine(source, &graph);
    kelp_graph_release(source);
    KELP_TRY(status);
    const kelp_value *value = find_constant(graph->main, name);
    kelp_graph_find_shape_values(graph);
    *out = value == NULL                  ? "the model has no such weights"
           : kelp_value_sets_shape(value) ? "they determine a shape"
                                          : "the plan was not built to refit them";
    kelp_graph_release(graph);
    return NULL;
}

static kelp_status *unknown(kelp_cpu_engine *engine, const char *name) {
    kelp_buf names;
    const char *reason = "the plan was not built for refits";
    if (engine->refittable_count > 0)
        KELP_TRY(find_reason(engine, name, &reason));
    kelp_buf_init(&names, engine->allocator);
    for (size_t i = 0; i < engine->refittable_count && i < 20; i++)
        kelp_buf_printf(&names, "%s'%s'", i ? ", " : "", engine->refittable[i]);
    if (engine->refittable_count > 20)
        kelp_buf_printf(&names, " and %zu more", engine->refittable_count - 20);
    const char *list = kelp_buf_cstr(&names);
    kelp_status *status = KELP_ERROR(
        KELP_NOT_FOUND, "weights '%s' cannot be refitted: %s: expected one of %s", name, reason,
        engine->refittable_count > 0 && list != NULL
            ? list
            : "none: build the plan with flag REFIT or REFIT_INDIVIDUAL");
    kelp_buf_deinit(&names);
    return status;
}

static kelp_status *check_name(kelp_cpu_engine *engine, const char *name) {
    for (size_t i = 0; name != NULL && i < engine->refittable_count; i++)
        if (strcmp(engine->refittable[i], name) == 0)
            return NULL;
    return unknown(engine, name != NULL ? name : "");
}

/* Replaces a constant by weights of the caller, which are copied to the arena of the graph. */
static kelp_status *replace_weights(kelp_graph *graph, const kelp_weights *weights) {
    kelp_value *value = find_constant(graph->main, weights->name);
    if (value == NULL)
        return KELP_ERROR(KELP_INTERNAL, "the graph of the plan lacks weights '%s'", weights->name);
    const kelp_tensor *old = value->constant;
    int64_t count = kelp_tensor_elements(old);
    char shape[160];
    kelp_shape_format(old->rank, old->shape, shape, sizeof shape);
    if (weights->dtype != old->dtype || weights->count != count ||
        (weights->data == NULL && count > 0))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "weights '%s' do not fit: expected %s %s (%lld elements), found %s (%lld "
                          "elements)%s",
                          weights->name, kelp_dtype_name(old->dtype), shape, (long long)count,
                          kelp_dtype_name(weights->dtype), (long long)weights->count,
                          weights->data == NULL ? " without data" : "");
    size_t bytes = kelp_tensor_bytes(old);
    kelp_tensor *tensor = KELP_ARENA_NEW(&graph->arena, kelp_tensor);
    void *data = kelp_arena_alloc(&graph->arena, bytes + 1, KELP_TENSOR_ALIGNMENT);
    if (tensor == NULL || data == NULL)
        return kelp_status_oom();
    *tensor = *old;
    memcpy(data, weights->data, bytes);
    tensor->data = data;
    value->constant = tensor;
    return NULL;
}

/* ---- stripped engine images ---- */
size_t kelp_cpu_engine_missing_bytes(const kelp_cpu_engine *engine, const char *name) {
    const kelp_value *value = find_constant(engine->source->main, name);
    kelp_str stripped = engine->refittable_source.parts[KELP_PART_STRIPPED];
    uintptr_t begin = (uintptr_t)stripped.data,
              at = value != NULL ? (uintptr_t)value->constant->data : 0;
    return at >= begin && at < begin + stripped.length ? kelp_tensor_bytes(value->constant) : 0;
}

kelp_status *kelp_cpu_engine_check_complete(const kelp_cpu_engine *engine) {
    kelp_buf names;
    size_t count = 0;
    if (!kelp_cpu_engine_is_stripped(engine))
        return NULL;
    kelp_buf_init(&names, engine->allocator);
    for (size_t i = 0; i < engine->refittable_count; i++)
        if (kelp_cpu_engine_missing_bytes(engine, engine->refittable[i]) > 0 && count++ < 20)
            kelp_buf_printf(&names, "%s'%s'", count > 1 ? ", " : "", engine->refittable[i]);
    if (count > 20)
        kelp_buf_printf(&names, " and %zu more", count - 20);
    const char *list = kelp_buf_cstr(&names);
    kelp_status *status = KELP_ERROR(
        KELP_FAILED_PRECONDITION,
        "%s: the plan was built without its weights: refit the engine before use with %s",
        engine->source->info.label, list != NULL ? list : "all of them");
    kelp_buf_deinit(&names);
    return status;
}

/* Checks that the first refit of a stripped engine sets all weights. */
static kelp_status *check_complete_refit(const kelp_cpu_engine *engine, const kelp_weights *weights,
                                         size_t count) {
    for (size_t i = 0; kelp_cpu_engine_is_stripped(engine) && i < engine->refittable_count; i++) {
        bool present = kelp_cpu_engine_missing_bytes(engine, engine->refittable[i]) == 0;
        for (size_t k = 0; !present && k < count; k++)
            present = strcmp(weights[k].name, engine->refittable[i]) == 0;
        if (!present)
            return KELP_ERROR(
                KELP_FAILED_PRECONDITION,
                "%s: the refit lacks weights '%s': the plan was built without weights",
                engine->source->info.label, engine->refittable[i]);
    }
    return NULL;
}

/* Checks dimensions that are known before and after; weights may make more of them known. */
static kelp_status *check_same(const kelp_io_info *before, const kelp_io_info *after,
                               const char *what) {
    char expected[160], found[160];
    bool same = before->rank < 0 || after->rank < 0 || before->rank == after->rank;
    for (int32_t i = 0; same && i < before->rank && after->rank >= 0; i++)
        same = before->shape[i] < 0 || after->shape[i] < 0 || before->shape[i] == after->shape[i];
    if (same)
        return NULL;
    kelp_shape_format(before->rank, before->shape, expected, sizeof expected);
    kelp_shape_format(after->rank, after->shape, found, sizeof found);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "the weights change the shape of %s '%s': expected %s, found %s", what,
                      before->name, expected, found);
}

/* Checks that the inputs and outputs are those that the engine declares. */
static kelp_status *check_declared(const kelp_cpu_engine *engine, const kelp_cpu_engine *fresh) {
    KELP_ASSERT(fresh->input_count == engine->input_count);
    KELP_ASSERT(fresh->output_count == engine->output_count);
    for (size_t i = 0; i < engine->input_count; i++)
        KELP_TRY(check_same(&engine->inputs[i], &fresh->inputs[i], "input"));
    for (size_t i = 0; i < engine->output_count; i++)
        KELP_TRY(check_same(&engine->outputs[i], &fresh->outputs[i], "output"));
    return NULL;
}

kelp_status *kelp_cpu_engine_refit(kelp_cpu_engine *engine, const kelp_weights *weights,
                                   size_t count) {
    kelp_graph *graph = NULL, *source = NULL;
    kelp_cpu_engine *fresh = NULL;
    kelp_engine_options options = {.struct_size = sizeof options,
                                   .disable_fusion = engine->no_fusion,
                                   .precision = engine->precision,
                                   .max_plans = engine->max_schedules};
    for (size_t i = 0; i < count; i++)
        KELP_TRY(check_name(engine, weights[i].name));
    KELP_TRY(check_complete_refit(engine, weights, count));
    KELP_TRY(source_of(engine, &source));
    kelp_status *status = kelp_graph_clone_for_engine(source, &graph);
    kelp_graph_release(source);
    for (size_t i = 0; status == NULL && i < count; i++)
        status = replace_weights(graph, &weights[i]);
    if (status == NULL)
        status =
            kelp_cpu_engine_make(engine->runtime, graph, &options, &(kelp_cpu_origin){0}, &fresh);
    kelp_graph_release(graph);
    if (status == NULL)
        status = check_declared(engine, fresh);
    if (status != NULL) {
        kelp_cpu_engine_release(fresh);
        return status;
    }
    kelp_cpu_engine_release(engine->refitted);
    engine->refitted = fresh;
    return NULL;
}
