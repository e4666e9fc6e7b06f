/* SPDX-License-Identifier: Apache-2.0 */
/* Optimization profiles: bounds of the values of inputs, and schedules of the shapes of a profile.
 */
#include "base/assert.h"
#include "cpu/exec/context.h"

#include <kelp/engine_provider.h>

#include <string.h>

static int64_t integer_at(const kelp_tensor *tensor, int64_t index) {
    return tensor->dtype == KELP_I64 ? ((const int64_t *)tensor->data)[index]
                                     : ((const int32_t *)tensor->data)[index];
}

static kelp_status *check_value(const kelp_cpu_engine *engine, size_t profile, size_t input,
                                const kelp_tensor *tensor) {
    KELP_ASSERT(profile < engine->profile_count && input < engine->input_count);
    const kelp_shape *bounds = engine->profile_values[profile * engine->input_count + input];
    if (bounds[0].rank < 0 || (tensor->dtype != KELP_I64 && tensor->dtype != KELP_I32))
        return NULL;
    if (kelp_tensor_elements(tensor) != bounds[0].rank || bounds[2].rank != bounds[0].rank)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s' has the wrong number of values: expected %d in profile %zu, "
                          "found %lld",
                          engine->inputs[input].name, bounds[0].rank, profile,
                          (long long)kelp_tensor_elements(tensor));
    for (int32_t i = 0; i < bounds[0].rank; i++) {
        int64_t value = integer_at(tensor, i);
        if (value < bounds[0].d[i] || value > bounds[2].d[i])
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "value %d of input '%s' is out of range: expected %lld to %lld in "
                              "profile %zu, found %lld",
                              i, engine->inputs[input].name, (long long)bounds[0].d[i],
                              (long long)bounds[2].d[i], profile, (long long)value);
    }
    return NULL;
}

kelp_status *kelp_cpu_engine_check_values(const kelp_cpu_engine *engine, size_t profile,
                                          const kelp_tensor *inputs) {
    if (profile >= engine->profile_count || engine->profile_values == NULL)
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

kelp_status *kelp_cpu_engine_warm_up(kelp_cpu_engine *engine, const kelp_profile_shape *shapes,
                                     size_t count, int which) {
    kelp_cpu_context *context = NULL;
    KELP_TRY(kelp_cpu_context_create(engine, &context));
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
        status = kelp_cpu_context_prepare(context);
    kelp_cpu_context_destroy(context);
    return status;
}

static bool likely_shape(const kelp_cpu_engine *engine, size_t input, kelp_shape *out) {
    const kelp_io_info *info = &engine->inputs[input];
    *out = (kelp_shape){.rank = info->rank};
    for (int32_t axis = 0; axis < info->rank; axis++) {
        out->d[axis] = axis == 0 && info->shape[axis] < 0 ? 1 : info->shape[axis];
        if (out->d[axis] < 0)
            return false;
    }
    return info->rank >= 0;
}

void kelp_cpu_context_warm_up(kelp_cpu_context *context) {
    const kelp_cpu_engine *engine = context->engine;
    kelp_tensor *inputs = context->main.inputs;
    kelp_status *status = NULL;
    bool known = true;
    if (engine->packs != NULL)
        return;
    for (size_t i = 0; known && i < engine->input_count; i++) {
        kelp_dtype dtype = engine->inputs[i].dtype;
        kelp_shape shape;
        known =
            dtype != KELP_DTYPE_INVALID && dtype != KELP_LIST && likely_shape(engine, i, &shape);
        if (known)
            status = kelp_tensor_init(&inputs[i], dtype, shape.rank, shape.d, NULL);
        known = known && status == NULL && !kelp_cpu_may_specialize(&inputs[i]);
    }
    if (known)
        status = kelp_cpu_context_prepare(context);
    for (size_t i = 0; i < engine->input_count; i++)
        inputs[i] = (kelp_tensor){0};
    context->main.scheduled = false;
    kelp_status_free(status);
}

/* Describes an input with its largest shape. */
static kelp_status *largest(const kelp_cpu_engine *engine, size_t profile, size_t input,
                            kelp_tensor *out) {
    const kelp_io_info *info = &engine->inputs[input];
    kelp_shape shape = {.rank = info->rank};
    const kelp_shape *bounds = engine->profile_count > 0
                                   ? engine->profile_shapes[profile * engine->input_count + input]
                                   : NULL;
    if (bounds != NULL && bounds[KELP_PROFILE_MAX].rank >= 0) {
        shape = bounds[KELP_PROFILE_MAX];
    } else {
        for (int32_t i = 0; i < info->rank; i++) {
            shape.d[i] = info->shape[i];
            if (info->shape[i] < 0)
                return KELP_ERROR(
                    KELP_FAILED_PRECONDITION,
                    "dimension %d of input '%s' has no bound: expected an optimization profile", i,
                    info->name);
        }
        if (info->rank < 0)
            return KELP_ERROR(KELP_FAILED_PRECONDITION, "the rank of input '%s' is unknown",
                              info->name);
    }
    return kelp_tensor_init(out, info->dtype, shape.rank, shape.d, NULL);
}

/* Compiles the schedule of the largest shapes, or of shapes with dynamic dimensions 1. */
static kelp_status *schedule_for(const kelp_cpu_engine *engine, size_t profile, bool dynamic_is_one,
                                 kelp_plan_stats *out) {
    kelp_cpu_context *context = NULL;
    kelp_cpu_engine *shared = (kelp_cpu_engine *)(uintptr_t)engine; /* only its references change */
    KELP_TRY(kelp_cpu_context_create(shared, &context));
    kelp_status *status = NULL;
    for (size_t i = 0; status == NULL && i < engine->input_count; i++)
        status = dynamic_is_one ? smallest(&engine->inputs[i], &context->main.inputs[i])
                                : largest(engine, profile, i, &context->main.inputs[i]);
    if (status == NULL)
        status = kelp_cpu_context_prepare(context);
    if (status == NULL)
        *out = kelp_cpu_context_plan_stats(context);
    kelp_cpu_context_destroy(context);
    return status;
}

bool kelp_cpu_engine_measure(const kelp_cpu_engine *engine, size_t profile, kelp_plan_stats *out) {
    kelp_status *status = engine->stripped && engine->refitted == NULL
                              ? KELP_ERROR(KELP_FAILED_PRECONDITION, "weights are missing")
                              : schedule_for(engine, profile, engine->profile_count == 0, out);
    bool made = status == NULL;
    kelp_status_free(status);
    return made;
}

kelp_status *kelp_cpu_engine_workspace(const kelp_cpu_engine *engine, size_t profile, size_t *out) {
    kelp_plan_stats stats = {0};
    KELP_TRY(schedule_for(engine, profile, false, &stats));
    *out = stats.workspace_bytes;
    return NULL;
}
