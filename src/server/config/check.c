/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a configuration. Every message contains the source, the tensor or group, and the field.
 */
#include "base/assert.h"
#include "base/map.h"
#include "server/config/view.h"

#include <string.h>

static kelp_status *io_error(const kelp_model_config *config, const char *kind,
                             const kelp_config_io *io, const char *problem) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: model %s '%s' %s for %s", config->source, kind,
                      io->name, problem, config->name);
}

static bool are_dims(const int64_t *dims, uint32_t rank) {
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 1 && dims[i] != -1)
            return false;
    return true;
}

/* Computes the number of elements of the dimensions up to the next dynamic one, and skips them. The
 * number is at most INT64_MAX. Returns false if no dynamic dimension follows. */
static bool next_part(const int64_t *dims, uint32_t rank, uint32_t *inout_at, int64_t *out) {
    *out = 1;
    while (*inout_at < rank) {
        int64_t dim = dims[(*inout_at)++];
        if (dim < 0)
            return true;
        if (__builtin_mul_overflow(*out, dim, out))
            *out = INT64_MAX;
    }
    return false;
}

/* Checks that the parts of both shapes between dynamic dimensions have equal sizes. */
static kelp_status *check_reshape(const kelp_model_config *config, const char *kind,
                                  const kelp_config_io *io) {
    uint32_t at = 0, reshape_at = 0, parts = 0;
    int64_t size, reshape_size;
    bool more, reshape_more;
    do {
        more = next_part(io->dims, io->rank, &at, &size);
        reshape_more = next_part(io->reshape, io->reshape_rank, &reshape_at, &reshape_size);
        if (more != reshape_more && parts > 0)
            return io_error(
                config, kind, io,
                "has different number of variable-size dimensions for dims and reshape");
        if (more != reshape_more || size != reshape_size)
            return io_error(config, kind, io, "has different size for dims and reshape");
        parts++;
    } while (more);
    return NULL;
}

static kelp_status *check_dims(const kelp_model_config *config, const char *kind,
                               const kelp_config_io *io) {
    if (!are_dims(io->dims, io->rank))
        return io_error(config, kind, io,
                        "dimension must be integer >= 1, or -1 to indicate a variable-size "
                        "dimension");
    if (io->rank > KELP_MAX_RANK)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: %s '%s': field 'dims': expected at most %d dimensions, found %u",
                          config->source, kind, io->name, KELP_MAX_RANK, io->rank);
    if (!are_dims(io->reshape, io->reshape_rank))
        return io_error(config, kind, io,
                        "reshape dimensions must be integer >= 1, or -1 to indicate a "
                        "variable-size dimension");
    return io->has_reshape && io->rank > 0 ? check_reshape(config, kind, io) : NULL;
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
            return io_error(config, kind, io, "must specify 'data_type'");
        if (complete && io->rank == 0)
            return io_error(config, kind, io, "must specify 'dims'");
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
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "%s: instance group %s of model %s has kind KIND_%s but specifies one or "
                "more GPUs",
                config->source, group->name, config->name,
                TRITONSERVER_InstanceGroupKindString(group->kind));
        if (group->kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "%s: instance group '%s': kind KIND_GPU, but this server has no GPU; expected "
                "KIND_CPU, KIND_MODEL or KIND_AUTO",
                config->source, group->name);
    }
    return NULL;
}

static kelp_status *check_priorities(const kelp_model_config *config) {
    const kelp_config_dynamic_batching *batching = &config->dynamic_batching;
    unsigned long long levels = batching->priority_levels;
    if (levels > 0 && (batching->default_priority_level == 0 ||
                       batching->default_priority_level > batching->priority_levels))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: default priority level must be in range [1, %llu] for %s: found "
                          "%llu",
                          config->source, levels, config->name,
                          (unsigned long long)batching->default_priority_level);
    for (size_t i = 0; i < batching->policy_count; i++) {
        unsigned long long level = batching->policy_levels[i];
        if (levels > 0 && (level == 0 || level > levels))
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "%s: priority queue policy must have priority level in range [1, "
                              "%llu] for %s: found %llu",
                              config->source, levels, config->name, level);
    }
    return NULL;
}

static kelp_status *check_scheduler(const kelp_model_config *config) {
    const kelp_config_dynamic_batching *batching = &config->dynamic_batching;
    if (config->scheduling == KELP_SCHEDULING_ENSEMBLE && config->step_count == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: must specify 'step' for ensemble '%s'",
                          config->source, config->name);
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
    return check_priorities(config);
}

/* Checks that an ensemble has no fields of models with a backend. */
static kelp_status *check_ensemble(const kelp_model_config *config) {
    const char *problem = NULL;
    if (*config->backend != '\0')
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: Ensemble model '%s' must have platform type 'ensemble' and empty "
                          "backend type",
                          config->source, config->name);
    if (config->scheduling != KELP_SCHEDULING_ENSEMBLE)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: ensemble scheduling must be set for ensemble %s whose platform is "
                          "ensemble",
                          config->source, config->name);
    if (config->instance_group_count > 0)
        problem = "instance group should not be specified";
    else if (config->has_warmup)
        problem = "model_warmup can not be specified";
    else if (kelp_config_get(config->tree, "optimization") != NULL)
        problem = "optimization should not be specified";
    return problem == NULL ? NULL
                           : KELP_ERROR(KELP_INVALID_ARGUMENT, "%s: %s for ensemble '%s'",
                                        config->source, problem, config->name);
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
                          "%s: 'max_batch_size' must be non-negative value for %s: found %d",
                          config->source, config->name, config->max_batch_size);
    if (*config->backend == '\0' && !ensemble)
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "Invalid model name: Could not determine backend for model '%s' with no backend in "
            "model "
            "configuration. Expected model name of the form 'model.<backend_name>'. In %s, set "
            "'backend' or 'platform'; or name the model file after its format, such as "
            "%s/1/model.onnx",
            config->name, config->source, config->name);
    if (ensemble)
        KELP_TRY(check_ensemble(config));
    else if (config->scheduling == KELP_SCHEDULING_ENSEMBLE)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s: ensemble scheduling cannot be set for model '%s' whose platform is "
                          "not ensemble",
                          config->source, config->name);
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
