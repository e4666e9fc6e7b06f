/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of configurations: from a file, from an override, or by the completion of a backend. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/fs.h"
#include "server/config/view.h"

#include <string.h>

#define CONFIG_FILE_MAX_BYTES ((size_t)16 << 20)

/* ---- memory ---- */
static kelp_status *config_create(kelp_allocator allocator, kelp_model_config **out) {
    kelp_model_config *config = NULL;
    kelp_arena *arena = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_arena, &arena));
    kelp_arena_init(arena, allocator, 0);
    kelp_status *status = KELP_NEW(allocator, kelp_model_config, &config);
    if (status != NULL) {
        kelp_free(allocator, arena, sizeof *arena);
        return status;
    }
    atomic_init(&config->refs, 1);
    config->allocator = allocator;
    config->arena = arena;
    config->tree = kelp_config_message_new(arena, &kelp_config_schema_model);
    if (config->tree == NULL) {
        kelp_model_config_release(config);
        return kelp_status_oom();
    }
    *out = config;
    return NULL;
}

void kelp_model_config_retain(kelp_model_config *config) {
    KELP_ASSERT(atomic_load(&config->refs) > 0);
    atomic_fetch_add_explicit(&config->refs, 1, memory_order_relaxed);
}

void kelp_model_config_release(kelp_model_config *config) {
    if (config == NULL || atomic_fetch_sub_explicit(&config->refs, 1, memory_order_acq_rel) != 1)
        return;
    kelp_allocator allocator = config->allocator;
    kelp_arena_deinit(config->arena);
    kelp_free(allocator, config->arena, sizeof *config->arena);
    kelp_free(allocator, config, sizeof *config);
}

/* ---- from text ---- */
static kelp_status *finish(kelp_model_config *config, const kelp_config_load_options *options) {
    kelp_config_explicit explicit;
    KELP_TRY(kelp_config_fill(config, options, &explicit));
    KELP_TRY(kelp_config_view(config, &explicit));
    if (options->draft && kelp_config_sub(config->tree, "model_repository_agents") != NULL)
        return NULL;
    return kelp_config_check(config, options->strict);
}

/* Reads text. The trees point into it, so that the arena needs a copy. */
static kelp_status *read_text(kelp_model_config *config, const char *text, size_t length) {
    kelp_pbtxt *tree = NULL;
    const char *copy = kelp_arena_strndup(config->arena, text, length);
    if (copy == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_pbtxt_parse(config->arena, config->source, copy, length, &tree));
    return kelp_config_from_pbtxt(config->arena, config->source, tree, config->tree);
}

static kelp_status *read_json(kelp_arena *arena, const char *source, const char *text,
                              size_t length, kelp_config_message *out) {
    kelp_json *tree = NULL;
    const char *copy = kelp_arena_strndup(arena, text, length);
    if (copy == NULL)
        return kelp_status_oom();
    KELP_TRY(kelp_json_parse(arena, source, copy, length, &tree));
    return kelp_config_from_json(arena, source, copy, tree, out);
}

kelp_status *kelp_model_config_parse(kelp_allocator allocator,
                                     const kelp_config_load_options *options, const char *file,
                                     const char *text, size_t length, kelp_model_config **out) {
    kelp_model_config *config = NULL;
    KELP_TRY(config_create(allocator, &config));
    config->source = kelp_arena_strndup(config->arena, file, strlen(file));
    kelp_status *status = config->source == NULL ? kelp_status_oom() : NULL;
    if (status == NULL)
        status = read_text(config, text, length);
    if (status == NULL)
        status = finish(config, options);
    if (status != NULL) {
        kelp_model_config_release(config);
        return status;
    }
    *out = config;
    return NULL;
}

/* Returns configs/NAME.pbtxt if it is requested and exists, otherwise config.pbtxt. */
static kelp_status *find_file(kelp_model_config *config, const kelp_config_load_options *options,
                              const char **out) {
    const char *directory = options->model_directory;
    if (options->config_name != NULL && *options->config_name != '\0') {
        *out = kelp_arena_printf(config->arena, "%s/configs/%s.pbtxt", directory,
                                 options->config_name);
        if (*out == NULL)
            return kelp_status_oom();
        if (kelp_fs_kind_of(*out) == KELP_FS_FILE)
            return NULL;
    }
    *out = kelp_arena_printf(config->arena, "%s/config.pbtxt", directory);
    return *out != NULL ? NULL : kelp_status_oom();
}

static kelp_status *load_file(kelp_model_config *config, const kelp_config_load_options *options) {
    const char *path = NULL;
    kelp_buf text;
    KELP_TRY(find_file(config, options, &path));
    if (kelp_fs_kind_of(path) == KELP_FS_NONE) {
        if (options->strict)
            return KELP_ERROR(KELP_NOT_FOUND,
                              "model '%s' has no configuration, and auto-completion is off: failed "
                              "to open text file for read %s: No such file or directory",
                              options->model_name, path);
        config->source =
            kelp_arena_printf(config->arena, "configuration of model '%s'", options->model_name);
        return config->source != NULL ? NULL : kelp_status_oom();
    }
    config->source = path;
    kelp_buf_init(&text, config->allocator);
    kelp_status *status = kelp_fs_read(path, CONFIG_FILE_MAX_BYTES, &text);
    if (status == NULL)
        status = read_text(config, text.data != NULL ? text.data : "", text.length);
    kelp_buf_deinit(&text);
    return status;
}

static kelp_status *read_override(kelp_model_config *config,
                                  const kelp_config_load_options *options) {
    kelp_status *status = read_json(config->arena, config->source, options->override_json,
                                    options->override_length, config->tree);
    if (status == NULL)
        return NULL;
    kelp_status *failure = KELP_ERROR(kelp_status_code(status), "Invalid config override: %s",
                                      kelp_status_message(status));
    kelp_status_free(status);
    return failure;
}

kelp_status *kelp_model_config_load(kelp_allocator allocator,
                                    const kelp_config_load_options *options,
                                    kelp_model_config **out) {
    kelp_model_config *config = NULL;
    KELP_TRY(config_create(allocator, &config));
    kelp_status *status = NULL;
    if (options->override_json != NULL) {
        config->source = kelp_arena_printf(config->arena, "override of the configuration of '%s'",
                                           options->model_name);
        status = config->source == NULL ? kelp_status_oom() : read_override(config, options);
    } else {
        status = load_file(config, options);
    }
    if (status == NULL)
        status = finish(config, options);
    if (status != NULL) {
        kelp_model_config_release(config);
        return status;
    }
    *out = config;
    return NULL;
}

/* ---- from another configuration ---- */
/* Returns a copy, or the failure to make it. */
static kelp_status *finish_copy(kelp_model_config *take_copy, kelp_status *take_status,
                                kelp_model_config **out) {
    if (take_status == NULL)
        *out = take_copy;
    else
        kelp_model_config_release(take_copy);
    return take_status;
}

static kelp_status *copy_config(const kelp_model_config *config, kelp_model_config **out) {
    kelp_buf text;
    kelp_model_config *copy = NULL;
    kelp_buf_init(&text, config->allocator);
    kelp_status *status = kelp_model_config_to_json(config, 1, &text);
    if (status == NULL)
        status = config_create(config->allocator, &copy);
    if (status == NULL) {
        copy->source = kelp_arena_strndup(copy->arena, config->source, strlen(config->source));
        status = copy->source == NULL
                     ? kelp_status_oom()
                     : read_json(copy->arena, config->source, text.data, text.length, copy->tree);
    }
    kelp_buf_deinit(&text);
    return finish_copy(copy, status, out);
}

static kelp_status *explicit_of(const kelp_model_config *config, kelp_arena *arena,
                                kelp_config_explicit *out) {
    *out = (kelp_config_explicit){config->has_instance_groups, config->instance_group_count,
                                  KELP_ARENA_ARRAY(arena, config->instance_group_count + 1, bool),
                                  KELP_ARENA_ARRAY(arena, config->instance_group_count + 1, bool)};
    if (out->kind == NULL || out->number == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < out->count; i++) {
        out->kind[i] = config->instance_groups[i].has_kind;
        out->number[i] = config->instance_groups[i].has_count;
    }
    return NULL;
}

/* Fills the typed view of a copy whose tree was changed. Instance groups are explicit where they
 * are in `original`. */
static kelp_status *view_again(kelp_model_config *copy, const kelp_model_config *original) {
    kelp_config_explicit explicit;
    KELP_TRY(explicit_of(original, copy->arena, &explicit));
    return kelp_config_view(copy, &explicit);
}

static void move_field(kelp_config_message *to, const kelp_config_message *from,
                       const char *field) {
    KELP_ASSERT(to->schema == from->schema);
    size_t index = kelp_config_field_index(to->schema, kelp_str_from(field));
    KELP_ASSERT(index != SIZE_MAX);
    if (from->values[index] != NULL)
        to->values[index] = from->values[index];
}

static kelp_status *take_completion(kelp_model_config *config, const char *json, size_t length) {
    static const char *const fields[] = {"max_batch_size", "input", "output",
                                         "model_transaction_policy"};
    static const char *const choices[] = {"dynamic_batching", "sequence_batching",
                                          "ensemble_scheduling"};
    kelp_config_message *found = kelp_config_message_new(config->arena, &kelp_config_schema_model);
    const char *source = kelp_arena_printf(config->arena, "completion of %s", config->source);
    if (found == NULL || source == NULL)
        return kelp_status_oom();
    KELP_TRY(read_json(config->arena, source, json, length, found));
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        move_field(config->tree, found, fields[i]);
    bool chosen = false;
    for (size_t i = 0; i < 3; i++)
        chosen = chosen || kelp_config_get(found, choices[i]) != NULL;
    for (size_t i = 0; chosen && i < 3; i++) {
        size_t index = kelp_config_field_index(found->schema, kelp_str_from(choices[i]));
        config->tree->values[index] = found->values[index];
    }
    return NULL;
}

kelp_status *kelp_model_config_complete(const kelp_model_config *config, const char *json,
                                        size_t length, kelp_model_config **out) {
    kelp_model_config *copy = NULL;
    KELP_TRY(copy_config(config, &copy));
    kelp_status *status = take_completion(copy, json, length);
    if (status == NULL)
        status = view_again(copy, config);
    if (status == NULL)
        status = kelp_config_check(copy, false);
    return finish_copy(copy, status, out);
}

kelp_status *kelp_model_config_set_decoupled(const kelp_model_config *config, bool decoupled,
                                             kelp_model_config **out) {
    kelp_model_config *copy = NULL;
    KELP_TRY(copy_config(config, &copy));
    kelp_config_value *policy =
        kelp_config_set(copy->arena, copy->tree, "model_transaction_policy");
    kelp_config_value *value =
        policy != NULL ? kelp_config_set(copy->arena, policy->message, "decoupled") : NULL;
    kelp_status *status = value != NULL ? NULL : kelp_status_oom();
    if (status == NULL) {
        value->i = decoupled;
        status = view_again(copy, config);
    }
    return finish_copy(copy, status, out);
}

/* ---- batching ---- */
/* Sets the fields of a copy; returns OOM if that fails. */
static kelp_status *set_batching(kelp_model_config *copy) {
    kelp_config_value *dynamic = kelp_config_set(copy->arena, copy->tree, "dynamic_batching");
    if (dynamic == NULL)
        return kelp_status_oom();
    if (kelp_config_get(dynamic->message, "preferred_batch_size") != NULL)
        return NULL;
    kelp_config_value *size =
        kelp_config_add(copy->arena, dynamic->message, "preferred_batch_size");
    if (size == NULL)
        return kelp_status_oom();
    size->i = copy->max_batch_size;
    return NULL;
}

kelp_status *kelp_model_config_complete_batching(kelp_model_config *config, bool batches_all,
                                                 kelp_model_config **out) {
    bool is_dynamic = config->scheduling == KELP_SCHEDULING_DYNAMIC && config->max_batch_size > 0;
    bool adds =
        batches_all && config->scheduling == KELP_SCHEDULING_DEFAULT && config->max_batch_size > 1;
    kelp_model_config *copy = NULL;
    if (!adds && !(is_dynamic && config->dynamic_batching.preferred_count == 0)) {
        kelp_model_config_retain(config);
        *out = config;
        return NULL;
    }
    KELP_TRY(copy_config(config, &copy));
    copy->max_batch_size = config->max_batch_size;
    kelp_status *status = set_batching(copy);
    if (status == NULL)
        status = view_again(copy, config);
    return finish_copy(copy, status, out);
}

/* ---- preferences of the backend ---- */
/* Returns the number of a kind in model_config.proto. */
static int64_t proto_kind(TRITONSERVER_InstanceGroupKind kind) {
    switch (kind) {
    case TRITONSERVER_INSTANCEGROUPKIND_GPU:
        return 1;
    case TRITONSERVER_INSTANCEGROUPKIND_CPU:
        return 2;
    case TRITONSERVER_INSTANCEGROUPKIND_MODEL:
        return 3;
    case TRITONSERVER_INSTANCEGROUPKIND_AUTO:
        return 0;
    }
    return 0;
}

/* Returns the first preferred group that this machine supports. */
static const kelp_preferred_group *choose_group(const kelp_preferred_group *groups, size_t count,
                                                uint32_t gpu_count) {
    for (size_t i = 0; i < count; i++)
        if (groups[i].kind != TRITONSERVER_INSTANCEGROUPKIND_GPU || gpu_count > 0)
            return &groups[i];
    return NULL;
}

kelp_status *kelp_model_config_prefer(kelp_model_config *config, const kelp_preferred_group *groups,
                                      size_t count, uint32_t gpu_count, kelp_model_config **out) {
    const kelp_preferred_group *preferred = choose_group(groups, count, gpu_count);
    bool changes = false;
    for (size_t i = 0; preferred != NULL && i < config->instance_group_count; i++)
        changes = changes || !config->instance_groups[i].has_kind ||
                  !config->instance_groups[i].has_count;
    if (!changes) {
        kelp_model_config_retain(config);
        *out = config;
        return NULL;
    }
    kelp_model_config *copy = NULL;
    KELP_TRY(copy_config(config, &copy));
    kelp_config_value *group = kelp_config_get(copy->tree, "instance_group");
    for (size_t i = 0; group != NULL && i < config->instance_group_count;
         i++, group = group->next) {
        /* A copy has every field set. */
        KELP_ASSERT(kelp_config_get(group->message, "kind") != NULL);
        KELP_ASSERT(kelp_config_get(group->message, "count") != NULL);
        if (!config->instance_groups[i].has_kind &&
            preferred->kind != TRITONSERVER_INSTANCEGROUPKIND_AUTO)
            kelp_config_get(group->message, "kind")->i = proto_kind(preferred->kind);
        if (!config->instance_groups[i].has_count && preferred->count > 0)
            kelp_config_get(group->message, "count")->i = (int64_t)preferred->count;
    }
    return finish_copy(copy, view_again(copy, config), out);
}

/* ---- changes without reloading ---- */

/* The fields that change without loading the model again. Sequences are bound to instances, so that
 * only the last one does in a model that batches sequences. */
static const char *const updatable[] = {"instance_group", "version_policy"};

/* Writes a message as JSON without some of its fields. */
static kelp_status *write_without(const kelp_config_message *message, const char *const *fields,
                                  size_t count, kelp_buf *out) {
    enum { MAX_FIELDS = 64 }; /* of any message of the schema */
    kelp_config_value *values[MAX_FIELDS];
    kelp_config_message rest = {.schema = message->schema, .values = values};
    kelp_json_writer writer;
    KELP_ASSERT(message->schema->field_count <= MAX_FIELDS);
    memcpy(values, message->values, message->schema->field_count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[kelp_config_field_index(message->schema, kelp_str_from(fields[i]))] = NULL;
    kelp_json_writer_init(&writer, out);
    kelp_config_to_json(&rest, &writer);
    return kelp_buf_status(out);
}

kelp_status *kelp_model_config_same_model(const kelp_model_config *a, const kelp_model_config *b,
                                          bool *out_same) {
    kelp_buf left, right;
    kelp_buf_init(&left, a->allocator);
    kelp_buf_init(&right, a->allocator);
    size_t first = a->scheduling == KELP_SCHEDULING_SEQUENCE ? KELP_COUNT(updatable) - 1 : 0;
    size_t count = KELP_COUNT(updatable) - first;
    kelp_status *status = write_without(a->tree, updatable + first, count, &left);
    if (status == NULL)
        status = write_without(b->tree, updatable + first, count, &right);
    if (status == NULL)
        *out_same = left.length == right.length && memcmp(left.data, right.data, left.length) == 0;
    kelp_buf_deinit(&left);
    kelp_buf_deinit(&right);
    return status;
}

static kelp_status *take_groups(kelp_model_config *config, const kelp_model_config *from) {
    kelp_buf text;
    kelp_buf_init(&text, config->allocator);
    kelp_config_message *groups = kelp_config_message_new(config->arena, &kelp_config_schema_model);
    kelp_status *status = groups == NULL ? kelp_status_oom() : NULL;
    if (status == NULL)
        status = kelp_model_config_to_json(from, 1, &text);
    if (status == NULL)
        status = read_json(config->arena, from->source, text.data, text.length, groups);
    kelp_buf_deinit(&text);
    if (status != NULL)
        return status;
    for (size_t i = 0; i < KELP_COUNT(updatable); i++) {
        size_t index = kelp_config_field_index(groups->schema, kelp_str_from(updatable[i]));
        config->tree->values[index] = groups->values[index];
    }
    KELP_TRY(view_again(config, from));
    return kelp_config_check(config, true);
}

kelp_status *kelp_model_config_regroup(const kelp_model_config *config,
                                       const kelp_model_config *groups_of,
                                       kelp_model_config **out) {
    kelp_model_config *copy = NULL;
    KELP_TRY(copy_config(config, &copy));
    return finish_copy(copy, take_groups(copy, groups_of), out);
}

kelp_status *kelp_model_config_group_key(const kelp_model_config *config, size_t index,
                                         kelp_buf *out) {
    static const char *const own[] = {"name", "count"};
    KELP_ASSERT(index < config->instance_group_count);
    const kelp_config_value *group = kelp_config_get(config->tree, "instance_group");
    for (; group != NULL && index > 0; index--)
        group = group->next;
    return group != NULL ? write_without(group->message, own, 2, out) : NULL;
}

/* ---- reading ---- */
kelp_status *kelp_model_config_to_json(const kelp_model_config *config, uint32_t version,
                                       kelp_buf *out) {
    kelp_json_writer writer;
    if (version != 1)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "model configuration version %u is not supported: expected 1", version);
    kelp_json_writer_init(&writer, out);
    kelp_config_to_json(config->tree, &writer);
    return kelp_buf_status(out);
}

static const kelp_config_io *find_io(const kelp_config_io *items, size_t count, kelp_str name) {
    for (size_t i = 0; i < count; i++)
        if (items[i].name_length == name.length &&
            memcmp(items[i].name, name.data, name.length) == 0)
            return &items[i];
    return NULL;
}

const kelp_config_io *kelp_model_config_input(const kelp_model_config *config, kelp_str name) {
    return find_io(config->inputs, config->input_count, name);
}

const kelp_config_io *kelp_model_config_output(const kelp_model_config *config, kelp_str name) {
    return find_io(config->outputs, config->output_count, name);
}

const char *kelp_model_config_parameter(const kelp_model_config *config, const char *key) {
    for (size_t i = 0; i < config->parameter_count; i++)
        if (strcmp(config->parameters[i].key, key) == 0)
            return config->parameters[i].value;
    return NULL;
}

kelp_status *kelp_model_config_validate(const kelp_model_config *config) {
    return kelp_config_check(config, true);
}
