/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults: values that are derived from the model's files and from other fields. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/fs.h"
#include "server/config/model_files.h"
#include "server/config/view.h"
#include "server/core/log.h"

#include <stdio.h>
#include <string.h>

/* Known combinations of backend, platform and file name. A backend with several platforms uses its
 * first one. */
static const struct known_backend {
    const char *backend, *platform, *file;
} known[] = {
    {"onnxruntime", "onnxruntime_onnx", "model.onnx"},
    {"kelp", "", "model.onnx"},
    {"tensorrt", "tensorrt_plan", "model.plan"},
    {"tensorflow", "tensorflow_savedmodel", "model.savedmodel"},
    {"tensorflow", "tensorflow_graphdef", "model.graphdef"},
    {"pytorch", "pytorch_libtorch", "model.pt"},
    {"openvino", "", "model.xml"},
    {"python", "", "model.py"},
};

static bool is_set(const kelp_config_message *tree, const char *field) {
    const kelp_config_value *value = kelp_config_get(tree, field);
    return value != NULL && value->text.length > 0;
}

static kelp_status *set_text(kelp_model_config *config, const char *field, const char *text) {
    kelp_config_value *value = kelp_config_set(config->arena, config->tree, field);
    if (value == NULL)
        return kelp_status_oom();
    value->text = kelp_str_from(text);
    return NULL;
}

static bool text_is(const kelp_model_config *config, const char *field, const char *text) {
    const kelp_config_value *value = kelp_config_get(config->tree, field);
    return value != NULL && kelp_str_is(value->text, text);
}

/* ---- backend ---- */
/* Finds the backend of the model file in the directory of the highest version; *out stays NULL if
 * no file has a known name. */
static kelp_status *find_by_files(kelp_model_config *config, const char *directory,
                                  const struct known_backend **out) {
    int64_t *versions = NULL;
    size_t count = 0;
    KELP_TRY(kelp_model_files_versions(config->allocator, directory, false, &versions, &count));
    for (size_t i = 0; count > 0 && *out == NULL && i < KELP_COUNT(known); i++) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/%lld/%s", directory,
                              (long long)versions[count - 1], known[i].file);
        if (length > 0 && (size_t)length < sizeof path && kelp_fs_kind_of(path) != KELP_FS_NONE)
            *out = &known[i];
    }
    kelp_free(config->allocator, versions, count * sizeof *versions);
    return NULL;
}

static kelp_status *fill_backend(kelp_model_config *config,
                                 const kelp_config_load_options *options) {
    const kelp_config_message *tree = config->tree;
    const struct known_backend *found = NULL;
    if (text_is(config, "platform", "ensemble") ||
        (kelp_config_get(tree, "ensemble_scheduling") != NULL && !is_set(tree, "platform")))
        return set_text(config, "platform", "ensemble");
    for (size_t i = 0; found == NULL && i < KELP_COUNT(known); i++)
        if (is_set(tree, "platform") && *known[i].platform != '\0' &&
            text_is(config, "platform", known[i].platform))
            found = &known[i];
    for (size_t i = 0; found == NULL && i < KELP_COUNT(known); i++)
        if (is_set(tree, "backend") && text_is(config, "backend", known[i].backend))
            found = &known[i];
    bool unspecified = !is_set(tree, "backend") && !is_set(tree, "platform");
    if (unspecified && !options->strict && options->model_directory != NULL)
        KELP_TRY(find_by_files(config, options->model_directory, &found));
    if (found != NULL) {
        if (!is_set(tree, "backend"))
            KELP_TRY(set_text(config, "backend", found->backend));
        if (!is_set(tree, "platform"))
            KELP_TRY(set_text(config, "platform", found->platform));
        if (!is_set(tree, "default_model_filename"))
            KELP_TRY(set_text(config, "default_model_filename", found->file));
        return NULL;
    }
    /* Triton derives the backend from a model name of the form "name.backend". */
    const char *dot = options->model_name != NULL ? strrchr(options->model_name, '.') : NULL;
    if (unspecified && !options->strict && dot != NULL && dot[1] != '\0')
        return set_text(config, "backend", dot + 1);
    return NULL;
}

static kelp_status *fill_name(kelp_model_config *config, const kelp_config_load_options *options) {
    if (options->model_name == NULL)
        return NULL;
    const kelp_config_value *name = kelp_config_get(config->tree, "name");
    if (name != NULL && name->text.length > 0 && !kelp_str_is(name->text, options->model_name) &&
        !(options->directory_name != NULL && kelp_str_is(name->text, options->directory_name)))
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "%s: field 'name': expected '%s' (the model's directory) or no name, found "
            "'%.*s'",
            config->source, options->model_name, KELP_STR_ARG(name->text));
    const char *copy =
        kelp_arena_strndup(config->arena, options->model_name, strlen(options->model_name));
    if (copy == NULL)
        return kelp_status_oom();
    return set_text(config, "name", copy);
}

/* ---- instance groups ---- */
enum { KIND_AUTO = 0, KIND_GPU = 1, KIND_CPU = 2 };

/* Records which fields the configuration sets itself. */
static kelp_status *note_explicit(kelp_model_config *config, kelp_config_explicit *out) {
    const kelp_config_value *group = kelp_config_get(config->tree, "instance_group");
    *out = (kelp_config_explicit){.groups = group != NULL};
    for (const kelp_config_value *at = group; at != NULL; at = at->next)
        out->count++;
    out->kind = KELP_ARENA_ARRAY(config->arena, out->count + 1, bool);
    out->number = KELP_ARENA_ARRAY(config->arena, out->count + 1, bool);
    if (out->kind == NULL || out->number == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < out->count; i++, group = group->next) {
        out->kind[i] = kelp_config_number(group->message, "kind") != KIND_AUTO;
        out->number[i] = kelp_config_number(group->message, "count") > 0;
    }
    return NULL;
}

static kelp_status *fill_group(kelp_model_config *config, kelp_config_message *group, size_t index,
                               const kelp_config_load_options *options) {
    kelp_config_value *name = kelp_config_set(config->arena, group, "name");
    kelp_config_value *kind = kelp_config_set(config->arena, group, "kind");
    kelp_config_value *count = kelp_config_set(config->arena, group, "count");
    const kelp_config_value *model = kelp_config_get(config->tree, "name");
    if (name == NULL || kind == NULL || count == NULL)
        return kelp_status_oom();
    if (name->text.length == 0) {
        const char *text = kelp_arena_printf(
            config->arena, "%.*s_%zu", KELP_STR_ARG(model ? model->text : KELP_STR("")), index);
        if (text == NULL)
            return kelp_status_oom();
        name->text = kelp_str_from(text);
    }
    if (kind->i == KIND_AUTO)
        kind->i =
            options->gpu_count > 0 || kelp_config_get(group, "gpus") != NULL ? KIND_GPU : KIND_CPU;
    if (kind->i == KIND_GPU && options->gpu_fallback) {
        KELP_SERVER_LOG(KELP_LOG_WARNING,
                        "model '%s': instance group '%.*s' has kind KIND_GPU, but this server has "
                        "no GPU: its instances run on the CPU",
                        options->model_name, KELP_STR_ARG(name->text));
        kind->i = KIND_CPU;
        group->values[kelp_config_field_index(group->schema, KELP_STR("gpus"))] = NULL;
    }
    /* Triton's default for these backends on a CPU is two instances. */
    bool two = text_is(config, "backend", "onnxruntime") || text_is(config, "backend", "kelp") ||
               text_is(config, "backend", "tensorflow");
    if (count->i == 0)
        count->i = kind->i == KIND_CPU && two ? 2 : 1;
    KELP_ASSERT(kind->i != KIND_AUTO && count->i != 0);
    return NULL;
}

static kelp_status *fill_groups(kelp_model_config *config,
                                const kelp_config_load_options *options) {
    if (text_is(config, "platform", "ensemble"))
        return NULL;
    if (kelp_config_get(config->tree, "instance_group") == NULL) {
        kelp_config_value *group = kelp_config_add(config->arena, config->tree, "instance_group");
        if (group == NULL)
            return kelp_status_oom();
        kelp_config_value *name = kelp_config_set(config->arena, group->message, "name");
        if (name == NULL)
            return kelp_status_oom();
        const kelp_config_value *model = kelp_config_get(config->tree, "name");
        name->text = model != NULL ? model->text : KELP_STR("");
    }
    size_t index = 0;
    for (kelp_config_value *group = kelp_config_get(config->tree, "instance_group"); group != NULL;
         group = group->next)
        KELP_TRY(fill_group(config, group->message, index++, options));
    return NULL;
}

/* Fills in `optimization`, which an ensemble does not have. */
static kelp_status *fill_optimization(kelp_model_config *config) {
    kelp_arena *arena = config->arena;
    static const char *const pinned[] = {"input_pinned_memory", "output_pinned_memory"};
    kelp_config_value *optimization = kelp_config_set(arena, config->tree, "optimization");
    if (optimization == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < KELP_COUNT(pinned); i++) {
        if (kelp_config_get(optimization->message, pinned[i]) != NULL)
            continue;
        kelp_config_value *memory = kelp_config_set(arena, optimization->message, pinned[i]);
        if (memory == NULL)
            return kelp_status_oom();
        kelp_config_value *enable = kelp_config_set(arena, memory->message, "enable");
        if (enable == NULL)
            return kelp_status_oom();
        enable->i = 1;
    }
    return NULL;
}

/* ---- other fields ---- */
static kelp_status *fill_policies(kelp_model_config *config) {
    kelp_arena *arena = config->arena;
    kelp_config_value *policy = kelp_config_set(arena, config->tree, "version_policy");
    if (policy == NULL)
        return kelp_status_oom();
    if (kelp_config_get(policy->message, "all") == NULL &&
        kelp_config_get(policy->message, "specific") == NULL) {
        kelp_config_value *latest = kelp_config_set(arena, policy->message, "latest");
        if (latest == NULL)
            return kelp_status_oom();
        kelp_config_value *number = kelp_config_set(arena, latest->message, "num_versions");
        if (number == NULL)
            return kelp_status_oom();
        if (number->i == 0)
            number->i = 1;
    }
    kelp_config_message *sequence = kelp_config_sub(config->tree, "sequence_batching");
    if (sequence != NULL) {
        kelp_config_value *idle =
            kelp_config_set(arena, sequence, "max_sequence_idle_microseconds");
        if (idle == NULL)
            return kelp_status_oom();
        if (idle->i == 0)
            idle->i = 1000000;
    }
    return NULL;
}

kelp_status *kelp_config_fill(kelp_model_config *config, const kelp_config_load_options *options,
                              kelp_config_explicit *out_explicit) {
    KELP_ASSERT(config->tree->schema == &kelp_config_schema_model && options != NULL);
    KELP_TRY(note_explicit(config, out_explicit));
    KELP_TRY(fill_name(config, options));
    KELP_TRY(fill_backend(config, options));
    KELP_TRY(fill_policies(config));
    if (!text_is(config, "platform", "ensemble"))
        KELP_TRY(fill_optimization(config));
    return fill_groups(config, options);
}
