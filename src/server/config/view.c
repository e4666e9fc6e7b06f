/* SPDX-License-Identifier: Apache-2.0 */
/* The typed view of a configuration. */
#include "server/config/view.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/triton/convert.h"

#include <string.h>

const char *kelp_config_text(kelp_arena *arena, const kelp_config_message *message,
                             const char *field) {
    const kelp_config_value *value = kelp_config_get(message, field);
    if (value == NULL || value->text.length == 0)
        return "";
    return kelp_arena_strndup(arena, value->text.data, value->text.length);
}

int64_t kelp_config_number(const kelp_config_message *message, const char *field) {
    const kelp_config_value *value = kelp_config_get(message, field);
    return value != NULL ? value->i : 0;
}

kelp_config_message *kelp_config_sub(const kelp_config_message *message, const char *field) {
    const kelp_config_value *value = kelp_config_get(message, field);
    return value != NULL ? value->message : NULL;
}

size_t kelp_config_count(const kelp_config_value *value) {
    size_t count = 0;
    for (; value != NULL; value = value->next)
        count++;
    return count;
}

/* ---- arrays; the functions return false if memory is exhausted ---- */
bool kelp_config_copy_i64s(kelp_arena *arena, const kelp_config_value *value, const int64_t **out,
                           size_t *out_count) {
    size_t count = kelp_config_count(value);
    int64_t *items = KELP_ARENA_ARRAY(arena, count + 1, int64_t);
    if (items == NULL)
        return false;
    for (size_t i = 0; i < count; i++, value = value->next)
        items[i] = value->i;
    *out = items;
    *out_count = count;
    return true;
}

static bool copy_i32s(kelp_arena *arena, const kelp_config_value *value, const int32_t **out,
                      size_t *out_count) {
    size_t count = kelp_config_count(value);
    int32_t *items = KELP_ARENA_ARRAY(arena, count + 1, int32_t);
    if (items == NULL)
        return false;
    for (size_t i = 0; i < count; i++, value = value->next)
        items[i] = (int32_t)value->i;
    *out = items;
    *out_count = count;
    return true;
}

static bool copy_pairs(kelp_arena *arena, const kelp_config_value *value, bool in_message,
                       const kelp_config_parameter **out, size_t *out_count) {
    size_t count = kelp_config_count(value);
    kelp_config_parameter *items = KELP_ARENA_ARRAY(arena, count + 1, kelp_config_parameter);
    if (items == NULL)
        return false;
    for (size_t i = 0; i < count; i++, value = value->next) {
        items[i].key = kelp_arena_strndup(arena, value->key.data, value->key.length);
        items[i].value = in_message
                             ? kelp_config_text(arena, value->message, "string_value")
                             : kelp_arena_strndup(arena, value->text.data, value->text.length);
        if (items[i].key == NULL || items[i].value == NULL)
            return false;
    }
    *out = items;
    *out_count = count;
    return true;
}

/* ---- inputs and outputs ---- */
static bool view_io(kelp_arena *arena, const kelp_config_message *from, kelp_config_io *to) {
    size_t rank = 0;
    const kelp_config_message *reshape = kelp_config_sub(from, "reshape");
    to->name = kelp_config_text(arena, from, "name");
    to->label_filename = kelp_config_text(arena, from, "label_filename");
    if (to->name == NULL || to->label_filename == NULL ||
        !kelp_config_copy_i64s(arena, kelp_config_get(from, "dims"), &to->dims, &rank))
        return false;
    to->name_length = strlen(to->name);
    to->rank = (uint32_t)rank;
    to->data_type = (TRITONSERVER_DataType)kelp_config_number(from, "data_type");
    to->dtype = kelp_dtype_from_triton(to->data_type);
    to->has_reshape = reshape != NULL;
    if (reshape != NULL) {
        if (!kelp_config_copy_i64s(arena, kelp_config_get(reshape, "shape"), &to->reshape, &rank))
            return false;
        to->reshape_rank = (uint32_t)rank;
    }
    to->is_shape_tensor = kelp_config_number(from, "is_shape_tensor") != 0;
    to->is_non_linear_format = kelp_config_number(from, "is_non_linear_format_io") != 0;
    to->allow_ragged_batch = kelp_config_number(from, "allow_ragged_batch") != 0;
    to->optional = kelp_config_number(from, "optional") != 0;
    to->format = (kelp_config_format)kelp_config_number(from, "format");
    return true;
}

static bool view_ios(kelp_arena *arena, const kelp_config_value *value, const kelp_config_io **out,
                     size_t *out_count) {
    size_t count = kelp_config_count(value);
    kelp_config_io *items = KELP_ARENA_ARRAY(arena, count + 1, kelp_config_io);
    if (items == NULL)
        return false;
    for (size_t i = 0; i < count; i++, value = value->next)
        if (!view_io(arena, value->message, &items[i]))
            return false;
    *out = items;
    *out_count = count;
    return true;
}

/* ---- instance groups ---- */
static bool view_resources(kelp_arena *arena, const kelp_config_message *limiter,
                           kelp_config_instance_group *to) {
    const kelp_config_value *value = kelp_config_get(limiter, "resources");
    size_t count = kelp_config_count(value);
    kelp_config_resource *items = KELP_ARENA_ARRAY(arena, count + 1, kelp_config_resource);
    if (items == NULL)
        return false;
    for (size_t i = 0; i < count; i++, value = value->next) {
        items[i].name = kelp_config_text(arena, value->message, "name");
        items[i].global = kelp_config_number(value->message, "global") != 0;
        items[i].count = (uint32_t)kelp_config_number(value->message, "count");
        if (items[i].name == NULL)
            return false;
    }
    to->resources = items;
    to->resource_count = count;
    to->priority = (uint32_t)kelp_config_number(limiter, "priority");
    return true;
}

static bool view_group(kelp_arena *arena, const kelp_config_message *from,
                       kelp_config_instance_group *to) {
    const kelp_config_value *profile = kelp_config_get(from, "profile");
    size_t profiles = kelp_config_count(profile);
    const char **names = KELP_ARENA_ARRAY(arena, profiles + 1, const char *);
    /* The numbers of the proto differ from those of TRITONSERVER_InstanceGroupKind. */
    static const TRITONSERVER_InstanceGroupKind kinds[] = {
        TRITONSERVER_INSTANCEGROUPKIND_AUTO, TRITONSERVER_INSTANCEGROUPKIND_GPU,
        TRITONSERVER_INSTANCEGROUPKIND_CPU, TRITONSERVER_INSTANCEGROUPKIND_MODEL};
    to->name = kelp_config_text(arena, from, "name");
    to->host_policy = kelp_config_text(arena, from, "host_policy");
    if (names == NULL || to->name == NULL || to->host_policy == NULL ||
        !copy_i32s(arena, kelp_config_get(from, "gpus"), &to->gpus, &to->gpu_count) ||
        !view_resources(arena, kelp_config_sub(from, "rate_limiter"), to))
        return false;
    for (size_t i = 0; i < profiles; i++, profile = profile->next)
        if ((names[i] = kelp_arena_strndup(arena, profile->text.data, profile->text.length)) ==
            NULL)
            return false;
    to->profiles = names;
    to->profile_count = profiles;
    size_t kind = (size_t)kelp_config_number(from, "kind");
    KELP_ASSERT(kind < KELP_COUNT(kinds));
    to->kind = kinds[kind];
    to->count = (int32_t)kelp_config_number(from, "count");
    to->passive = kelp_config_number(from, "passive") != 0;
    return true;
}

static bool view_groups(kelp_model_config *config, const kelp_config_explicit *explicit) {
    const kelp_config_value *value = kelp_config_get(config->tree, "instance_group");
    size_t count = kelp_config_count(value);
    kelp_config_instance_group *items =
        KELP_ARENA_ARRAY(config->arena, count + 1, kelp_config_instance_group);
    if (items == NULL)
        return false;
    for (size_t i = 0; i < count; i++, value = value->next) {
        if (!view_group(config->arena, value->message, &items[i]))
            return false;
        items[i].has_kind = i < explicit->count && explicit->kind[i];
        items[i].has_count = i < explicit->count && explicit->number[i];
    }
    config->instance_groups = items;
    config->instance_group_count = count;
    config->has_instance_groups = explicit->groups;
    return true;
}

/* ---- schedulers ---- */
static kelp_queue_policy view_policy(const kelp_config_message *from) {
    return (kelp_queue_policy){
        .timeout_action = (kelp_timeout_action)kelp_config_number(from, "timeout_action"),
        .default_timeout_us = (uint64_t)kelp_config_number(from, "default_timeout_microseconds"),
        .allow_timeout_override = kelp_config_number(from, "allow_timeout_override") != 0,
        .max_queue_size = (uint32_t)kelp_config_number(from, "max_queue_size")};
}

static bool view_dynamic(kelp_arena *arena, const kelp_config_message *from,
                         kelp_config_dynamic_batching *to) {
    const kelp_config_value *value = kelp_config_get(from, "priority_queue_policy");
    size_t count = kelp_config_count(value);
    uint64_t *levels = KELP_ARENA_ARRAY(arena, count + 1, uint64_t);
    kelp_queue_policy *policies = KELP_ARENA_ARRAY(arena, count + 1, kelp_queue_policy);
    if (levels == NULL || policies == NULL ||
        !copy_i32s(arena, kelp_config_get(from, "preferred_batch_size"), &to->preferred_batch_sizes,
                   &to->preferred_count))
        return false;
    for (size_t i = 0; i < count; i++, value = value->next) {
        if (!kelp_parse_u64(value->key, &levels[i]))
            levels[i] = 0;
        policies[i] = view_policy(value->message);
    }
    to->policy_levels = levels;
    to->policies = policies;
    to->policy_count = count;
    to->max_queue_delay_us = (uint64_t)kelp_config_number(from, "max_queue_delay_microseconds");
    to->preserve_ordering = kelp_config_number(from, "preserve_ordering") != 0;
    to->priority_levels = (uint64_t)kelp_config_number(from, "priority_levels");
    to->default_priority_level = (uint64_t)kelp_config_number(from, "default_priority_level");
    to->has_default_queue_policy = kelp_config_get(from, "default_queue_policy") != NULL;
    to->default_queue_policy = view_policy(kelp_config_sub(from, "default_queue_policy"));
    return true;
}

static bool view_ensemble(kelp_model_config *config, const kelp_config_message *from) {
    kelp_arena *arena = config->arena;
    const kelp_config_value *value = kelp_config_get(from, "step");
    size_t count = kelp_config_count(value);
    kelp_config_step *items = KELP_ARENA_ARRAY(arena, count + 1, kelp_config_step);
    if (items == NULL)
        return false;
    for (size_t i = 0; i < count; i++, value = value->next) {
        const kelp_config_message *step = value->message;
        items[i].model_name = kelp_config_text(arena, step, "model_name");
        items[i].model_namespace = kelp_config_text(arena, step, "model_namespace");
        items[i].model_version = kelp_config_number(step, "model_version");
        if (items[i].model_name == NULL || items[i].model_namespace == NULL ||
            !copy_pairs(arena, kelp_config_get(step, "input_map"), false, &items[i].input_map,
                        &items[i].input_count) ||
            !copy_pairs(arena, kelp_config_get(step, "output_map"), false, &items[i].output_map,
                        &items[i].output_count))
            return false;
    }
    config->steps = items;
    config->step_count = count;
    config->max_inflight_requests = (uint64_t)kelp_config_number(from, "max_inflight_requests");
    return true;
}

static bool view_scheduler(kelp_model_config *config) {
    const kelp_config_message *dynamic = kelp_config_sub(config->tree, "dynamic_batching");
    const kelp_config_message *ensemble = kelp_config_sub(config->tree, "ensemble_scheduling");
    config->scheduling = KELP_SCHEDULING_DEFAULT;
    if (dynamic != NULL) {
        config->scheduling = KELP_SCHEDULING_DYNAMIC;
        return view_dynamic(config->arena, dynamic, &config->dynamic_batching);
    }
    if (ensemble != NULL) {
        config->scheduling = KELP_SCHEDULING_ENSEMBLE;
        return view_ensemble(config, ensemble);
    }
    if (kelp_config_sub(config->tree, "sequence_batching") != NULL)
        config->scheduling = KELP_SCHEDULING_SEQUENCE;
    return true;
}

static bool view_versions(kelp_model_config *config) {
    const kelp_config_message *policy = kelp_config_sub(config->tree, "version_policy");
    const kelp_config_message *latest = kelp_config_sub(policy, "latest");
    const kelp_config_message *specific = kelp_config_sub(policy, "specific");
    kelp_version_policy *to = &config->version_policy;
    int64_t number = kelp_config_number(latest, "num_versions");
    to->kind = KELP_VERSIONS_LATEST;
    to->latest = number > 0 ? (uint32_t)number : 1;
    if (kelp_config_sub(policy, "all") != NULL)
        to->kind = KELP_VERSIONS_ALL;
    if (specific == NULL)
        return true;
    to->kind = KELP_VERSIONS_SPECIFIC;
    return kelp_config_copy_i64s(config->arena, kelp_config_get(specific, "versions"),
                                 &to->versions, &to->version_count);
}

kelp_status *kelp_config_view(kelp_model_config *config, const kelp_config_explicit *explicit) {
    kelp_arena *arena = config->arena;
    const kelp_config_message *tree = config->tree;
    config->name = kelp_config_text(arena, tree, "name");
    config->platform = kelp_config_text(arena, tree, "platform");
    config->backend = kelp_config_text(arena, tree, "backend");
    config->runtime = kelp_config_text(arena, tree, "runtime");
    config->default_model_filename = kelp_config_text(arena, tree, "default_model_filename");
    config->max_batch_size = (int32_t)kelp_config_number(tree, "max_batch_size");
    config->decoupled =
        kelp_config_number(kelp_config_sub(tree, "model_transaction_policy"), "decoupled") != 0;
    config->response_cache =
        kelp_config_number(kelp_config_sub(tree, "response_cache"), "enable") != 0;
    config->has_warmup = kelp_config_get(tree, "model_warmup") != NULL;
    config->eager_batching =
        kelp_config_number(kelp_config_sub(tree, "optimization"), "eager_batching") != 0;
    bool complete =
        config->name != NULL && config->platform != NULL && config->backend != NULL &&
        config->runtime != NULL && config->default_model_filename != NULL &&
        view_ios(arena, kelp_config_get(tree, "input"), &config->inputs, &config->input_count) &&
        view_ios(arena, kelp_config_get(tree, "output"), &config->outputs, &config->output_count) &&
        view_versions(config) && view_groups(config, explicit) && view_scheduler(config) &&
        copy_pairs(arena, kelp_config_get(tree, "parameters"), true, &config->parameters,
                   &config->parameter_count) &&
        copy_pairs(arena, kelp_config_get(tree, "metric_tags"), false, &config->metric_tags,
                   &config->metric_tag_count);
    if (!complete)
        return kelp_status_oom();
    if (config->scheduling == KELP_SCHEDULING_SEQUENCE)
        return kelp_config_view_sequence(config, kelp_config_sub(tree, "sequence_batching"));
    return NULL;
}
