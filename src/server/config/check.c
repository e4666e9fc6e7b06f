/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a configuration. Every message contains the source, the tensor or group, and the field.
 */
#include "base/assert.h"
#include "base/map.h"
#include "server/config/view.h"

#include <string.h>

/* Computes the number of elements; returns false if a dimension is dynamic or the number is too
 * large. */
static bool fixed_elements(const int64_t *dims, uint32_t rank, int64_t *out) {
    *out = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] < 0 || __builtin_mul_overflow(*out, dims[i], out))
            return false;
    }
    return true;
}

static kelp_status *check_dims(const kelp_model_config *config, const char *kind,
                               const kelp_config_io *io) {
    for (uint32_t i = 0; i < io->rank; i++)
        if (io->dims[i] < 1 && io->dims[i] != -1)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "%s: %s '%s': field 'dims': expected dimensions above 0 or -1, found %lld",
                config->source, kind, io->name, (long long)io->dims[i]);
    if (io->rank > KELP_MAX_RANK)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: %s '%s': field 'dims': expected at most %d dimensions, found %u",
                          config->source, kind, io->name, KELP_MAX_RANK, io->rank);
    for (uint32_t i = 0; i < io->reshape_rank; i++)
        if (io->reshape[i] < 1 && io->reshape[i] != -1)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "%s: %s '%s': field 'reshape': expected dimensions above 0 or -1, found %lld",
                config->source, kind, io->name, (long long)io->reshape[i]);
    int64_t from, to;
    if (io->has_reshape && fixed_elements(io->dims, io->rank, &from) &&
        fixed_elements(io->reshape, io->reshape_rank, &to) && from != to)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "%s: %s '%s': field 'reshape': expected the number of elements of 'dims' (%lld), "
            "found %lld",
            config->source, kind, io->name, (long long)from, (long long)to);
    return NULL;
}

/* Checks that inputs or outputs have names, and that the names are unique. */
static kelp_status *check_names(const kelp_model_config *config, const char *kind,
                                const kelp_config_io *items, size_t count) {
    kelp_map names;
    kelp_status *status = NULL;
    kelp_map_init(&names, config->allocator);
    for (size_t i = 0; i < count && status == NULL; i++) {
        kelp_str name = {items[i].name, items[i].name_length};
        KELP_ASSERT(strlen(items[i].name) == items[i].name_length);
        if (name.length == 0)
            status = KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: %s %zu has no name", config->source,
                                kind, i);
        else if (kelp_map_find(&names, name, NULL))
            status = KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: %s '%s' is defined twice",
                                config->source, kind, items[i].name);
        else
            status = kelp_map_put(&names, name, NULL);
    }
    kelp_map_deinit(&names);
    return status;
}

static kelp_status *check_ios(const kelp_model_config *config, const char *kind,
                              const kelp_config_io *items, size_t count, bool complete) {
    KELP_TRY(check_names(config, kind, items, count));
    for (size_t i = 0; i < count; i++) {
        const kelp_config_io *io = &items[i];
        if (complete && io->dtype == KELP_DTYPE_INVALID)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: %s '%s': field 'data_type' is missing",
                              config->source, kind, io->name);
        if (complete && io->rank == 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: %s '%s': field 'dims' is missing",
                              config->source, kind, io->name);
        KELP_TRY(check_dims(config, kind, io));
        if (io->allow_ragged_batch && config->max_batch_size == 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "%s: %s '%s': 'allow_ragged_batch' requires max_batch_size above 0",
                              config->source, kind, io->name);
    }
    return NULL;
}

static kelp_status *check_groups(const kelp_model_config *config) {
    enum { MAX_INSTANCES = 4096 };
    for (size_t i = 0; i < config->instance_group_count; i++) {
        const kelp_config_instance_group *group = &config->instance_groups[i];
        if (group->count < 1)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "%s: instance group '%s': field 'count': expected 1 or more, found %d",
                config->source, group->name, group->count);
        if (group->count > MAX_INSTANCES)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "%s: instance group '%s': field 'count': expected at most %d, found %d",
                config->source, group->name, MAX_INSTANCES, group->count);
        if (group->kind != TRITONSERVER_INSTANCEGROUPKIND_GPU && group->gpu_count > 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "%s: instance group '%s': field 'gpus' requires kind KIND_GPU",
                              config->source, group->name);
        if (group->kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "%s: instance group '%s': kind KIND_GPU, but this server has no GPU; expected "
                "KIND_CPU, KIND_MODEL or KIND_AUTO",
                config->source, group->name);
    }
    return NULL;
}

static kelp_status *check_scheduler(const kelp_model_config *config) {
    const kelp_config_dynamic_batching *batching = &config->dynamic_batching;
    if (config->scheduling == KELP_SCHEDULING_ENSEMBLE && config->step_count == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: field 'ensemble_scheduling': expected at least one step",
                          config->source);
    if (config->scheduling == KELP_SCHEDULING_SEQUENCE)
        return kelp_config_check_sequence(config);
    if (config->scheduling != KELP_SCHEDULING_DYNAMIC)
        return NULL;
    for (size_t i = 0; i < batching->preferred_count; i++) {
        int32_t size = batching->preferred_batch_sizes[i];
        if (size < 1 || size > (config->max_batch_size > 0 ? config->max_batch_size : INT32_MAX))
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "%s: field 'preferred_batch_size': expected 1 to max_batch_size (%d), found %d",
                config->source, config->max_batch_size, size);
    }
    if (batching->priority_levels > 0 &&
        (batching->default_priority_level == 0 ||
         batching->default_priority_level > batching->priority_levels))
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "%s: field 'default_priority_level': expected 1 to priority_levels (%llu), found "
            "%llu",
            config->source, (unsigned long long)batching->priority_levels,
            (unsigned long long)batching->default_priority_level);
    return NULL;
}

/* Checks that an ensemble has no fields of models with a backend. */
static kelp_status *check_ensemble(const kelp_model_config *config) {
    const char *problem = NULL;
    if (config->scheduling != KELP_SCHEDULING_ENSEMBLE)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: platform 'ensemble' requires 'ensemble_scheduling' with steps",
                          config->source);
    if (*config->backend != '\0')
        problem = "field 'backend': an ensemble has no backend";
    else if (config->instance_group_count > 0)
        problem = "field 'instance_group': an ensemble has no instances, instance group should not "
                  "be specified";
    else if (config->has_warmup)
        problem = "field 'model_warmup': an ensemble cannot be warmed up; warm up its members";
    return problem == NULL ? NULL
                           : KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: %s", config->source, problem);
}

static kelp_status *check_versions(const kelp_model_config *config) {
    const kelp_version_policy *policy = &config->version_policy;
    for (size_t i = 0; policy->kind == KELP_VERSIONS_SPECIFIC && i < policy->version_count; i++)
        if (policy->versions[i] < 1)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "%s: field 'version_policy': expected versions above 0, found %lld",
                              config->source, (long long)policy->versions[i]);
    return NULL;
}

kelp_status *kelp_config_check(const kelp_model_config *config, bool complete) {
    KELP_ASSERT(config->source != NULL && config->platform != NULL && config->backend != NULL);
    bool ensemble = strcmp(config->platform, "ensemble") == 0;
    if (config->max_batch_size < 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: field 'max_batch_size': expected 0 or more, found %d",
                          config->source, config->max_batch_size);
    if (*config->backend == '\0' && !ensemble)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "%s: the model has no backend, and its files do not determine one: set 'backend' (or "
            "'platform'), or name the model file after its format, such as model.onnx",
            config->source);
    if (ensemble)
        KELP_TRY(check_ensemble(config));
    if (strchr(config->backend, '/') != NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: field 'backend': expected a name, found the path '%s'",
                          config->source, config->backend);
    if (strchr(config->default_model_filename, '/') != NULL)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "%s: field 'default_model_filename': expected a name, found the path '%s'",
            config->source, config->default_model_filename);
    if (complete && config->input_count == 0 && config->output_count == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: the model has neither inputs nor outputs",
                          config->source);
    KELP_TRY(check_ios(config, "input", config->inputs, config->input_count, complete));
    KELP_TRY(check_ios(config, "output", config->outputs, config->output_count, complete));
    if (complete)
        KELP_TRY(kelp_config_check_batch_io(config));
    KELP_TRY(check_versions(config));
    KELP_TRY(check_scheduler(config));
    return check_groups(config);
}
