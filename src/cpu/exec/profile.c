/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisation profiles: the shapes that an engine was built for. */
#include "cpu/exec/exec.h"

#include <kelp/engine_provider.h>

#include <stdio.h>
#include <string.h>

size_t kelp_engine_profile_count(const kelp_engine *engine) {
    return engine->profile_count;
}

bool kelp_engine_profile_shape(const kelp_engine *engine, size_t profile, size_t input, int which,
                               kelp_shape *out) {
    if (profile >= engine->profile_count || input >= engine->input_count || which < 0 ||
        which > 2 || engine->profiles[profile].bounds == NULL)
        return false;
    *out = engine->profiles[profile].bounds[input][which];
    return out->rank >= 0;
}

/* Other profiles that would take the shape: the message tells. */
static bool fits(const kelp_engine *engine, size_t profile, size_t input,
                 const kelp_tensor *tensor) {
    kelp_shape low, high;
    if (!kelp_engine_profile_shape(engine, profile, input, 0, &low) ||
        !kelp_engine_profile_shape(engine, profile, input, 2, &high))
        return true;
    bool inside = low.rank == tensor->rank;
    for (int32_t i = 0; inside && i < low.rank; i++)
        inside = tensor->shape[i] >= low.d[i] && tensor->shape[i] <= high.d[i];
    return inside;
}

kelp_status *kelp_engine_check_profile(const kelp_engine *engine, size_t profile, size_t input,
                                       const kelp_tensor *tensor) {
    kelp_shape low = {.rank = 0}, high = {.rank = 0};
    char least[160], most[160], found[160], other[64] = "";
    if (fits(engine, profile, input, tensor))
        return NULL;
    kelp_engine_profile_shape(engine, profile, input, 0, &low);
    kelp_engine_profile_shape(engine, profile, input, 2, &high);
    kelp_shape_format(low.rank, low.d, least, sizeof least);
    kelp_shape_format(high.rank, high.d, most, sizeof most);
    kelp_shape_format(tensor->rank, tensor->shape, found, sizeof found);
    for (size_t i = 0; i < engine->profile_count && *other == '\0'; i++)
        if (i != profile && fits(engine, i, input, tensor))
            snprintf(other, sizeof other, "; profile %zu takes it", i);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "input '%s' has the wrong shape for profile %zu: expected from %s to %s, "
                      "found %s%s",
                      engine->inputs[input].name, profile, least, most, found, other);
}

static int64_t integer_at(const kelp_tensor *tensor, int64_t index) {
    return tensor->dtype == KELP_I64 ? ((const int64_t *)tensor->data)[index]
                                     : ((const int32_t *)tensor->data)[index];
}

static kelp_status *check_value(const kelp_engine *engine, size_t profile, size_t input,
                                const kelp_tensor *tensor) {
    const kelp_shape *bounds = engine->profiles[profile].values[input];
    if (bounds[0].rank < 0 || (tensor->dtype != KELP_I64 && tensor->dtype != KELP_I32))
        return NULL;
    if (kelp_tensor_elements(tensor) != bounds[0].rank || bounds[2].rank != bounds[0].rank)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s': profile %zu bounds %d values, found %lld",
                          engine->inputs[input].name, profile, bounds[0].rank,
                          (long long)kelp_tensor_elements(tensor));
    for (int32_t i = 0; i < bounds[0].rank; i++) {
        int64_t value = integer_at(tensor, i);
        if (value < bounds[0].d[i] || value > bounds[2].d[i])
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "input '%s', value %d: profile %zu expects %lld to %lld, found %lld",
                              engine->inputs[input].name, i, profile, (long long)bounds[0].d[i],
                              (long long)bounds[2].d[i], (long long)value);
    }
    return NULL;
}

kelp_status *kelp_engine_check_values(const kelp_engine *engine, size_t profile,
                                      const kelp_tensor *inputs) {
    if (profile >= engine->profile_count || engine->profiles[profile].values == NULL)
        return NULL;
    for (size_t i = 0; i < engine->input_count; i++)
        if (inputs[i].data != NULL)
            KELP_TRY(check_value(engine, profile, i, &inputs[i]));
    return NULL;
}

static kelp_status *smallest(const kelp_io_info *info, kelp_tensor *out) {
    kelp_shape shape = {.rank = info->rank > 0 ? info->rank : 0};
    for (int32_t axis = 0; axis < shape.rank; axis++)
        shape.d[axis] = info->shape[axis] >= 0 ? info->shape[axis] : 1;
    return kelp_tensor_init(out, info->dtype, shape.rank, shape.d, NULL);
}

kelp_status *kelp_engine_warm(kelp_engine *engine, const kelp_profile_shape *shapes, size_t count,
                              int which) {
    kelp_context *context = NULL;
    KELP_TRY(kelp_context_create(engine, &context));
    kelp_status *status = NULL;
    for (size_t i = 0; status == NULL && i < engine->input_count; i++) {
        const kelp_io_info *info = &engine->inputs[i];
        const kelp_shape *shape = NULL;
        for (size_t k = 0; k < count; k++)
            if (shapes[k].has_shape && strcmp(shapes[k].input, info->name) == 0)
                shape = &shapes[k].shapes[which];
        status = shape == NULL ? smallest(info, &context->main.inputs[i])
                               : kelp_tensor_init(&context->main.inputs[i], info->dtype,
                                                  shape->rank, shape->d, NULL);
    }
    if (status == NULL)
        status = kelp_context_prepare(context);
    kelp_context_destroy(context);
    return status;
}

static bool likely_shape(const kelp_engine *engine, size_t input, kelp_shape *out) {
    const kelp_io_info *info = &engine->inputs[input];
    *out = (kelp_shape){.rank = info->rank};
    for (int32_t axis = 0; axis < info->rank; axis++) {
        out->d[axis] = axis == 0 && info->shape[axis] < 0 ? 1 : info->shape[axis];
        if (out->d[axis] < 0)
            return false;
    }
    return info->rank >= 0;
}

void kelp_context_foresee(kelp_context *context) {
    const kelp_engine *engine = context->engine;
    kelp_tensor *inputs = context->main.inputs;
    kelp_status *status = NULL;
    bool known = true;
    if (engine->vtbl != NULL || engine->packs != NULL)
        return;
    for (size_t i = 0; known && i < engine->input_count; i++) {
        kelp_dtype dtype = engine->inputs[i].dtype;
        kelp_shape shape;
        known =
            dtype != KELP_DTYPE_INVALID && dtype != KELP_LIST && likely_shape(engine, i, &shape);
        if (known)
            status = kelp_tensor_init(&inputs[i], dtype, shape.rank, shape.d, NULL);
        known = known && status == NULL && !kelp_plan_may_know(&inputs[i]);
    }
    if (known)
        status = kelp_context_prepare(context);
    for (size_t i = 0; i < engine->input_count; i++)
        inputs[i] = (kelp_tensor){0};
    context->main.planned = false;
    kelp_status_free(status);
}

/* The shape to plan the most memory for. */
static kelp_status *largest(const kelp_engine *engine, size_t profile, size_t input,
                            kelp_tensor *out) {
    const kelp_io_info *info = &engine->inputs[input];
    kelp_shape shape = {.rank = info->rank};
    if (!kelp_engine_profile_shape(engine, profile, input, 2, &shape)) {
        for (int32_t i = 0; i < info->rank; i++) {
            shape.d[i] = info->shape[i];
            if (info->shape[i] < 0)
                return KELP_ERROR(KELP_FAILED_PRECONDITION,
                                  "input '%s' has an open axis %d: give it an optimisation profile",
                                  info->name, i);
        }
        if (info->rank < 0)
            return KELP_ERROR(KELP_FAILED_PRECONDITION, "input '%s' has no known rank", info->name);
    }
    return kelp_tensor_init(out, info->dtype, shape.rank, shape.d, NULL);
}

/* Without profiles open extents are 1, as plans are built for. */
static kelp_status *plan_for(const kelp_engine *engine, size_t profile, bool open_is_one,
                             kelp_plan_stats *out) {
    kelp_context *context = NULL;
    kelp_engine *shared = (kelp_engine *)(uintptr_t)engine; /* counted, not changed */
    KELP_TRY(kelp_context_create(shared, &context));
    kelp_status *status = NULL;
    for (size_t i = 0; status == NULL && i < engine->input_count; i++)
        status = open_is_one ? smallest(&engine->inputs[i], &context->main.inputs[i])
                             : largest(engine, profile, i, &context->main.inputs[i]);
    if (status == NULL)
        status = kelp_context_prepare(context);
    if (status == NULL)
        *out = kelp_context_plan_stats(context);
    kelp_context_destroy(context);
    return status;
}

bool kelp_engine_measure(const kelp_engine *engine, size_t profile, kelp_plan_stats *out) {
    kelp_status *status = engine->stripped && engine->refitted == NULL
                              ? KELP_ERROR(KELP_FAILED_PRECONDITION, "weights are missing")
                              : plan_for(engine, profile, engine->profile_count == 0, out);
    bool made = status == NULL;
    kelp_status_free(status);
    return made;
}

kelp_status *kelp_engine_workspace_bytes(const kelp_engine *engine, size_t profile, size_t *out) {
    kelp_plan_stats stats = {0};
    if (engine->vtbl != NULL)
        return engine->vtbl->workspace_bytes != NULL
                   ? engine->vtbl->workspace_bytes(engine->foreign, profile, out)
                   : kelp_foreign_missing(engine, "known workspace");
    if (profile > 0 && profile >= engine->profile_count)
        return KELP_ERROR(KELP_OUT_OF_RANGE, "there is no profile %zu: the engine has %zu", profile,
                          engine->profile_count);
    KELP_TRY(plan_for(engine, profile, false, &stats));
    *out = stats.workspace_bytes;
    return NULL;
}
