/* SPDX-License-Identifier: Apache-2.0 */
/* The parsed configuration of a model, and queries of hosts, models and instances. */
#include "sdk/sdk.h"

#include "base/buf.h"

#include <stdio.h>

/* Copies the strings of a tree: the copies end with NUL and do not depend on the message. */
static kelp_status *own_texts(kelp_arena *arena, kelp_json *node) {
    for (; node != NULL; node = node->next) {
        if (node->key.data != NULL) {
            node->key.data = kelp_arena_strndup(arena, node->key.data, node->key.length);
            if (node->key.data == NULL)
                return kelp_status_oom();
        }
        if (node->type == KELP_JSON_STRING) {
            node->string.data = kelp_arena_strndup(arena, node->string.data, node->string.length);
            if (node->string.data == NULL)
                return kelp_status_oom();
        }
        KELP_TRY(own_texts(arena, node->child));
    }
    return NULL;
}

kelp_status *kelp_sdk_message_parse(TRITONSERVER_Message *message, bool take, kelp_arena *arena,
                                    const char *name, const kelp_json **out) {
    const char *text = NULL;
    size_t length = 0;
    kelp_json *tree = NULL;
    kelp_status *status =
        kelp_backend_status(TRITONSERVER_MessageSerializeToJson(message, &text, &length));
    if (status == NULL)
        status = kelp_json_parse(arena, name, text, length, &tree);
    if (status == NULL)
        status = own_texts(arena, tree);
    if (take)
        TRITONSERVER_ErrorDelete(TRITONSERVER_MessageDelete(message));
    if (status == NULL)
        *out = tree;
    return status;
}

/* ---- parsing the configuration ---- */

static kelp_status *read_dims(kelp_arena *arena, const kelp_json *dims, kelp_backend_io *io) {
    int64_t *shape = KELP_ARENA_ARRAY(arena, dims ? dims->count : 0, int64_t);
    if (shape == NULL)
        return kelp_status_oom();
    io->shape = shape;
    io->rank = 0;
    for (const kelp_json *dim = dims != NULL ? dims->child : NULL; dim != NULL; dim = dim->next)
        shape[io->rank++] = kelp_backend_value_i64((const kelp_backend_value *)dim, -1);
    return NULL;
}

static kelp_status *read_ios(kelp_arena *arena, const kelp_json *list, kelp_backend_io **out,
                             size_t *out_count) {
    size_t count = list != NULL ? list->count : 0;
    kelp_backend_io *ios = KELP_ARENA_ARRAY(arena, count, kelp_backend_io);
    if (ios == NULL)
        return kelp_status_oom();
    size_t i = 0;
    for (const kelp_json *item = list != NULL ? list->child : NULL; item != NULL;
         item = item->next, i++) {
        const kelp_backend_value *io = (const kelp_backend_value *)item;
        ios[i].name = kelp_backend_value_text(kelp_backend_value_get(io, "name"), "");
        ios[i].dtype =
            kelp_dtype_parse(kelp_backend_value_text(kelp_backend_value_get(io, "data_type"), ""));
        ios[i].is_optional = kelp_backend_value_bool(kelp_backend_value_get(io, "optional"), false);
        KELP_TRY(read_dims(arena, kelp_json_get(item, "dims"), &ios[i]));
    }
    KELP_ASSERT(i == count);
    *out = ios;
    *out_count = count;
    return NULL;
}

kelp_status *kelp_sdk_model_read_config(kelp_backend_model *model) {
    TRITONSERVER_Message *message = NULL;
    const kelp_json *config = NULL;
    KELP_TRY(sdk_status(TRITONBACKEND_ModelConfig(model->raw, 1, &message)));
    KELP_TRY(kelp_sdk_message_parse(message, true, &model->arena, "model configuration", &config));
    model->config = config;
    const kelp_backend_value *root = (const kelp_backend_value *)config;
    model->max_batch = kelp_backend_value_i64(kelp_backend_value_get(root, "max_batch_size"), 0);
    model->is_decoupled = kelp_backend_value_bool(
        kelp_backend_value_get(kelp_backend_value_get(root, "model_transaction_policy"),
                               "decoupled"),
        false);
    KELP_TRY(read_ios(&model->arena, kelp_json_get(config, "input"), &model->inputs,
                      &model->input_count));
    return read_ios(&model->arena, kelp_json_get(config, "output"), &model->outputs,
                    &model->output_count);
}

/* ---- values: a kelp_backend_value is a node of the tree ---- */

static const kelp_json *node(const kelp_backend_value *value) {
    return (const kelp_json *)value;
}

const kelp_backend_value *kelp_backend_value_get(const kelp_backend_value *object,
                                                 const char *name) {
    return (const kelp_backend_value *)kelp_json_get(node(object), name);
}

const kelp_backend_value *kelp_backend_value_first(const kelp_backend_value *container) {
    return container != NULL ? (const kelp_backend_value *)node(container)->child : NULL;
}

const kelp_backend_value *kelp_backend_value_next(const kelp_backend_value *value) {
    return value != NULL ? (const kelp_backend_value *)node(value)->next : NULL;
}

size_t kelp_backend_value_count(const kelp_backend_value *container) {
    return container != NULL ? node(container)->count : 0;
}

const char *kelp_backend_value_name(const kelp_backend_value *member) {
    return member != NULL ? node(member)->key.data : NULL;
}

const char *kelp_backend_value_text(const kelp_backend_value *value, const char *fallback) {
    return value != NULL && node(value)->type == KELP_JSON_STRING ? node(value)->string.data
                                                                  : fallback;
}

int64_t kelp_backend_value_i64(const kelp_backend_value *value, int64_t fallback) {
    int64_t number = fallback;
    if (value == NULL)
        return fallback;
    if (node(value)->type == KELP_JSON_INT)
        return node(value)->i64;
    if (node(value)->type == KELP_JSON_STRING && kelp_parse_i64(node(value)->string, &number))
        return number;
    return fallback;
}

double kelp_backend_value_f64(const kelp_backend_value *value, double fallback) {
    double number = fallback;
    if (value == NULL)
        return fallback;
    switch (node(value)->type) {
    case KELP_JSON_INT:
    case KELP_JSON_UINT:
    case KELP_JSON_DOUBLE:
        return node(value)->f64;
    case KELP_JSON_STRING:
        return kelp_parse_f64(node(value)->string, &number) ? number : fallback;
    default:
        return fallback;
    }
}

bool kelp_backend_value_bool(const kelp_backend_value *value, bool fallback) {
    return value != NULL && node(value)->type == KELP_JSON_BOOL ? node(value)->boolean : fallback;
}

/* ---- parameters of the configuration ---- */

const char *kelp_backend_model_text(const kelp_backend_model *model, const char *name,
                                    const char *fallback) {
    const kelp_json *parameter = kelp_json_get(kelp_json_get(model->config, "parameters"), name);
    return kelp_backend_value_text(
        (const kelp_backend_value *)kelp_json_get(parameter, "string_value"), fallback);
}

static kelp_status *bad_parameter(const kelp_backend_model *model, const char *name,
                                  const char *expected, const char *found) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "parameter '%s' of model '%s': expected %s, found '%s'", name, model->name,
                      expected, found);
}

kelp_status *kelp_backend_model_i64(const kelp_backend_model *model, const char *name,
                                    int64_t fallback, int64_t *out) {
    const char *text = kelp_backend_model_text(model, name, NULL);
    *out = fallback;
    if (text != NULL && !kelp_parse_i64(kelp_str_from(text), out))
        return bad_parameter(model, name, "a whole number", text);
    return NULL;
}

kelp_status *kelp_backend_model_f64(const kelp_backend_model *model, const char *name,
                                    double fallback, double *out) {
    const char *text = kelp_backend_model_text(model, name, NULL);
    *out = fallback;
    if (text != NULL && !kelp_parse_f64(kelp_str_from(text), out))
        return bad_parameter(model, name, "a number", text);
    return NULL;
}

kelp_status *kelp_backend_model_bool(const kelp_backend_model *model, const char *name,
                                     bool fallback, bool *out) {
    static const char *const truths[] = {"true", "1", "yes", "on"};
    static const char *const falsehoods[] = {"false", "0", "no", "off"};
    const char *text = kelp_backend_model_text(model, name, NULL);
    *out = fallback;
    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < KELP_COUNT(truths); i++) {
        if (strcmp(text, truths[i]) == 0 || strcmp(text, falsehoods[i]) == 0) {
            *out = strcmp(text, truths[i]) == 0;
            return NULL;
        }
    }
    return bad_parameter(model, name, "true or false", text);
}

kelp_status *kelp_backend_model_wants_config(const kelp_backend_model *model, bool *out_wants) {
    return kelp_backend_status(TRITONBACKEND_ModelAutoCompleteConfig(model->raw, out_wants));
}

kelp_status *kelp_backend_model_set_config(kelp_backend_model *model, const char *json,
                                           size_t length) {
    TRITONSERVER_Message *message = NULL;
    KELP_TRY(sdk_status(TRITONSERVER_MessageNewFromSerializedJson(&message, json, length)));
    kelp_status *status = kelp_backend_status(TRITONBACKEND_ModelSetConfig(model->raw, 1, message));
    TRITONSERVER_ErrorDelete(TRITONSERVER_MessageDelete(message));
    return status != NULL ? status : kelp_sdk_model_read_config(model);
}

/* ---- completing the configuration ---- */

static void write_numbers(kelp_json_writer *writer, const char *key, const int64_t *items,
                          int32_t count) {
    kelp_json_key(writer, key);
    kelp_json_begin_array(writer);
    for (int32_t i = 0; i < count; i++)
        kelp_json_put_i64(writer, items[i]);
    kelp_json_end_array(writer);
}

/* Writes a shape. `dims` cannot be empty: a scalar is [ 1 ] for clients, and is reshaped to [ ]. */
static void write_shape(kelp_json_writer *writer, const kelp_backend_io *io) {
    static const int64_t one = 1;
    write_numbers(writer, "dims", io->rank > 0 ? io->shape : &one, KELP_MAX(io->rank, 1));
    if (io->rank > 0)
        return;
    kelp_json_key(writer, "reshape");
    kelp_json_begin_object(writer);
    write_numbers(writer, "shape", NULL, 0);
    kelp_json_end_object(writer);
}

static kelp_status *write_ios(const kelp_backend_model *model, kelp_json_writer *writer,
                              const char *key, const kelp_backend_io *ios, size_t count) {
    if (count == 0)
        return NULL;
    kelp_json_key(writer, key);
    kelp_json_begin_array(writer);
    for (size_t i = 0; i < count; i++) {
        const char *type = kelp_dtype_triton_name(ios[i].dtype);
        char type_name[32];
        if (type == NULL)
            return KELP_ERROR(
                KELP_UNIMPLEMENTED,
                "model '%s': %s '%s' has type %s, which the inference protocol does not support",
                model->name, key, ios[i].name, kelp_dtype_name(ios[i].dtype));
        snprintf(type_name, sizeof type_name, "TYPE_%s",
                 ios[i].dtype == KELP_STRING ? "STRING" : type);
        kelp_json_begin_object(writer);
        kelp_json_key(writer, "name");
        kelp_json_put_cstr(writer, ios[i].name);
        kelp_json_key(writer, "data_type");
        kelp_json_put_cstr(writer, type_name);
        write_shape(writer, &ios[i]);
        if (ios[i].is_optional) {
            kelp_json_key(writer, "optional");
            kelp_json_put_bool(writer, true);
        }
        kelp_json_end_object(writer);
    }
    kelp_json_end_array(writer);
    return NULL;
}

kelp_status *kelp_backend_model_complete(kelp_backend_model *model, const kelp_backend_io *inputs,
                                         size_t input_count, const kelp_backend_io *outputs,
                                         size_t output_count) {
    kelp_buf text;
    kelp_json_writer writer;
    if (input_count == 0 && output_count == 0)
        return NULL;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_json_writer_init(&writer, &text);
    kelp_json_begin_object(&writer);
    kelp_json_key(&writer, "max_batch_size");
    kelp_json_put_i64(&writer, model->max_batch);
    kelp_status *status = write_ios(model, &writer, "input", inputs, input_count);
    if (status == NULL)
        status = write_ios(model, &writer, "output", outputs, output_count);
    kelp_json_end_object(&writer);
    if (status == NULL)
        status = kelp_buf_status(&text);
    if (status == NULL)
        status = kelp_backend_model_set_config(model, text.data, text.length);
    kelp_buf_deinit(&text);
    return status;
}

/* ---- queries ---- */

TRITONBACKEND_Backend *kelp_backend_host_raw(const kelp_backend_host *host) {
    return host->raw;
}

void *kelp_backend_host_state(const kelp_backend_host *host) {
    return host->state;
}

const char *kelp_backend_host_directory(const kelp_backend_host *host) {
    return host->directory;
}

const char *kelp_backend_host_setting(const kelp_backend_host *host, const char *key,
                                      const char *fallback) {
    return kelp_backend_value_text((const kelp_backend_value *)kelp_json_get(host->settings, key),
                                   fallback);
}

TRITONBACKEND_Model *kelp_backend_model_raw(const kelp_backend_model *model) {
    return model->raw;
}

kelp_backend_host *kelp_backend_model_host(const kelp_backend_model *model) {
    return model->host;
}

void *kelp_backend_model_state(const kelp_backend_model *model) {
    return model->state;
}

const char *kelp_backend_model_name(const kelp_backend_model *model) {
    return model->name;
}

uint64_t kelp_backend_model_version(const kelp_backend_model *model) {
    return model->version;
}

const char *kelp_backend_model_directory(const kelp_backend_model *model) {
    return model->directory;
}

int64_t kelp_backend_model_max_batch(const kelp_backend_model *model) {
    return model->max_batch;
}

bool kelp_backend_model_is_decoupled(const kelp_backend_model *model) {
    return model->is_decoupled;
}

const kelp_backend_value *kelp_backend_model_config(const kelp_backend_model *model) {
    return (const kelp_backend_value *)model->config;
}

const kelp_backend_io *kelp_backend_model_inputs(const kelp_backend_model *model,
                                                 size_t *out_count) {
    *out_count = model->input_count;
    return model->inputs;
}

const kelp_backend_io *kelp_backend_model_outputs(const kelp_backend_model *model,
                                                  size_t *out_count) {
    *out_count = model->output_count;
    return model->outputs;
}

TRITONBACKEND_ModelInstance *kelp_backend_instance_raw(const kelp_backend_instance *instance) {
    return instance->raw;
}

kelp_backend_model *kelp_backend_instance_model(const kelp_backend_instance *instance) {
    return instance->model;
}

void *kelp_backend_instance_state(const kelp_backend_instance *instance) {
    return instance->state;
}

const char *kelp_backend_instance_name(const kelp_backend_instance *instance) {
    return instance->name;
}

TRITONSERVER_InstanceGroupKind kelp_backend_instance_kind(const kelp_backend_instance *instance) {
    return instance->kind;
}

int32_t kelp_backend_instance_device(const kelp_backend_instance *instance) {
    return instance->device;
}

kelp_backend_memory kelp_backend_instance_memory(const kelp_backend_instance *instance) {
    return instance->kind == TRITONSERVER_INSTANCEGROUPKIND_GPU
               ? (kelp_backend_memory){TRITONSERVER_MEMORY_GPU, instance->device}
               : KELP_BACKEND_HOST_MEMORY;
}

void kelp_backend_compute_begins(kelp_backend_instance *instance) {
    instance->begin_ns = kelp_backend_now_ns();
}

void kelp_backend_compute_ends(kelp_backend_instance *instance) {
    instance->end_ns = kelp_backend_now_ns();
}
