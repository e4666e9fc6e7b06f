/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and completing the configuration of a model of the built-in `kelp` backend. */
#include "server/builtin/kelp_config.h"

#include <stdio.h>
#include <string.h>

static kelp_status *from_error(TRITONSERVER_Error *error) {
    return (kelp_status *)error; /* the same object */
}

/* A message as JSON, copied to the arena. */
static kelp_status *copy_message(TRITONSERVER_Message *message, kelp_arena *arena, const char *name,
                                 kelp_json **out) {
    const char *text = NULL;
    size_t length = 0;
    kelp_status *status = from_error(TRITONSERVER_MessageSerializeToJson(message, &text, &length));
    char *copy = status == NULL ? kelp_arena_strndup(arena, text, length) : NULL;
    if (status == NULL && copy == NULL)
        status = kelp_status_oom();
    if (status == NULL)
        status = kelp_json_parse(arena, name, copy, length, out);
    return status;
}

static kelp_status *read_message(TRITONSERVER_Message *take_message, kelp_arena *arena,
                                 const char *name, kelp_json **out) {
    kelp_status *status = copy_message(take_message, arena, name, out);
    TRITONSERVER_ErrorDelete(TRITONSERVER_MessageDelete(take_message));
    return status;
}

static kelp_status *copy_string(kelp_arena *arena, const kelp_json *value, const char *fallback,
                                const char **out) {
    *out = fallback;
    if (value == NULL || value->type != KELP_JSON_STRING || value->string.length == 0)
        return NULL;
    *out = kelp_arena_strndup(arena, value->string.data, value->string.length);
    return *out != NULL ? NULL : kelp_status_oom();
}

static const kelp_json *parameter(const kelp_json *config, const char *name) {
    return kelp_json_get(kelp_json_get(kelp_json_get(config, "parameters"), name), "string_value");
}

static kelp_status *read_threads(const kelp_builtin_config *config, int *out) {
    const kelp_json *value = parameter(config->tree, "intra_op_threads");
    int64_t threads = 0;
    if (value != NULL &&
        (!kelp_parse_i64(value->string, &threads) || threads < 0 || threads > 4096))
        return KELP_ERROR(
            KELP_INVALID_ARGUMENT,
            "model '%s': parameter 'intra_op_threads' must be a number from 0 to 4096, "
            "found '%.*s'",
            config->model_name, KELP_STR_ARG(value->string));
    *out = (int)threads;
    return NULL;
}

kelp_status *kelp_builtin_setting(TRITONBACKEND_Backend *backend, kelp_arena *arena,
                                  const char *name, const char **out) {
    TRITONSERVER_Message *message = NULL;
    kelp_json *settings = NULL;
    *out = NULL;
    KELP_TRY(from_error(TRITONBACKEND_BackendConfig(backend, &message)));
    if (message != NULL)
        KELP_TRY(copy_message(message, arena, "the backend's settings", &settings));
    return copy_string(arena, kelp_json_get(kelp_json_get(settings, "cmdline"), name), NULL, out);
}

/* The model's own parameter, else the setting of the backend. */
static kelp_status *read_either(TRITONBACKEND_Model *model, kelp_arena *arena,
                                const kelp_builtin_config *config, const char *name,
                                const char **out) {
    TRITONBACKEND_Backend *backend = NULL;
    const kelp_json *value = parameter(config->tree, name);
    if (value != NULL)
        return copy_string(arena, value, "", out);
    KELP_TRY(from_error(TRITONBACKEND_ModelBackend(model, &backend)));
    return kelp_builtin_setting(backend, arena, name, out);
}

static kelp_status *read_precision(TRITONBACKEND_Model *model, kelp_arena *arena,
                                   const kelp_builtin_config *config, kelp_precision *out) {
    const char *name = NULL;
    KELP_TRY(read_either(model, arena, config, "precision", &name));
    if (name == NULL || kelp_precision_parse(name, out))
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "model '%s': parameter 'precision' must be f32 or bf16, found '%s'",
                      config->model_name, name);
}

/* "kernel_library" and "kernel" name what runs; the other parameters are the kernel's scalars. */
static kelp_status *read_kernel(kelp_arena *arena, kelp_builtin_config *config) {
    const kelp_json *library = parameter(config->tree, "kernel_library");
    const kelp_json *kernel = parameter(config->tree, "kernel");
    const kelp_json *all = kelp_json_get(config->tree, "parameters");
    if (library == NULL && kernel == NULL)
        return NULL;
    if (library == NULL || kernel == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "model '%s': parameters 'kernel_library' and 'kernel' belong together: "
                          "'%s' is missing",
                          config->model_name, library == NULL ? "kernel_library" : "kernel");
    kelp_buf text;
    kelp_buf_init(&text, arena->allocator);
    kelp_buf_printf(&text, "%.*s\n%.*s", KELP_STR_ARG(library->string),
                    KELP_STR_ARG(kernel->string));
    for (const kelp_json *one = all != NULL ? all->child : NULL; one != NULL; one = one->next) {
        kelp_str name = one->key;
        const kelp_json *value = kelp_json_get(one, "string_value");
        if (value != NULL && value != library && value != kernel)
            kelp_buf_printf(&text, "\n%.*s=%.*s", KELP_STR_ARG(name), KELP_STR_ARG(value->string));
    }
    kelp_status *status = kelp_buf_status(&text);
    if (status == NULL) {
        config->kernel = kelp_arena_strndup(arena, text.data, text.length);
        config->provider = "kernels";
        status = config->kernel != NULL ? NULL : kelp_status_oom();
    }
    kelp_buf_deinit(&text);
    return status;
}

kelp_status *kelp_builtin_config_read(TRITONBACKEND_Model *model, kelp_arena *arena,
                                      kelp_builtin_config *out) {
    *out = (kelp_builtin_config){0};
    TRITONSERVER_Message *message = NULL;
    kelp_json *tree = NULL;
    KELP_TRY(from_error(TRITONBACKEND_ModelName(model, &out->model_name)));
    KELP_TRY(from_error(TRITONBACKEND_ModelConfig(model, 1, &message)));
    KELP_TRY(read_message(message, arena, out->model_name, &tree));
    out->tree = tree;
    KELP_TRY(copy_string(arena, kelp_json_get(tree, "default_model_filename"), "model.onnx",
                         &out->file_name));
    KELP_TRY(copy_string(arena, parameter(tree, "provider"), "cpu", &out->provider));
    KELP_TRY(read_kernel(arena, out));
    KELP_TRY(read_threads(out, &out->threads));
    KELP_TRY(read_precision(model, arena, out, &out->precision));
    KELP_TRY(read_either(model, arena, out, "providers", &out->providers));
    const kelp_json *batch = kelp_json_get(tree, "max_batch_size");
    out->max_batch_size = batch != NULL ? batch->i64 : 0;
    const kelp_json *decoupled =
        kelp_json_get(kelp_json_get(tree, "model_transaction_policy"), "decoupled");
    out->decoupled = decoupled != NULL && decoupled->boolean;
    return NULL;
}

/* ---- completing ---- */
static bool has_items(const kelp_json *array) {
    return array != NULL && array->type == KELP_JSON_ARRAY && array->count > 0;
}

static kelp_status *write_tensors(const kelp_builtin_config *config, kelp_json_writer *writer,
                                  const char *key, const kelp_io_info *tensors, size_t count,
                                  bool batched) {
    kelp_json_key(writer, key);
    kelp_json_begin_array(writer);
    for (size_t i = 0; i < count; i++) {
        const kelp_io_info *info = &tensors[i];
        const char *type = kelp_dtype_triton_name(info->dtype);
        if (type == NULL)
            return KELP_ERROR(KELP_UNIMPLEMENTED,
                              "model '%s': %s '%s' has type %s, which the inference protocol lacks",
                              config->model_name, key, info->name, kelp_dtype_name(info->dtype));
        if (info->rank < 0)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "model '%s': the number of dimensions of %s '%s' is not known; give "
                              "its dims in config.pbtxt",
                              config->model_name, key, info->name);
        char type_name[32] = "TYPE_";
        strncat(type_name, info->dtype == KELP_STRING ? "STRING" : type,
                sizeof type_name - strlen(type_name) - 1);
        kelp_json_begin_object(writer);
        kelp_json_key(writer, "name");
        kelp_json_put_cstr(writer, info->name);
        kelp_json_key(writer, "data_type");
        kelp_json_put_cstr(writer, type_name);
        kelp_json_key(writer, "dims");
        kelp_json_begin_array(writer);
        for (int32_t axis = batched ? 1 : 0; axis < info->rank; axis++)
            kelp_json_put_i64(writer, info->shape[axis]);
        /* dims may not be empty: one value a request is [ 1 ] to clients and [ ] to the model */
        bool scalar = info->rank == (batched ? 1 : 0);
        if (scalar)
            kelp_json_put_i64(writer, 1);
        kelp_json_end_array(writer);
        if (scalar) {
            kelp_json_key(writer, "reshape");
            kelp_json_begin_object(writer);
            kelp_json_key(writer, "shape");
            kelp_json_begin_array(writer);
            kelp_json_end_array(writer);
            kelp_json_end_object(writer);
        }
        kelp_json_end_object(writer);
    }
    kelp_json_end_array(writer);
    return NULL;
}

static kelp_status *complete(TRITONBACKEND_Model *model, kelp_builtin_config *config,
                             const kelp_compute_metadata *metadata) {
    bool inputs_given = has_items(kelp_json_get(config->tree, "input"));
    bool outputs_given = has_items(kelp_json_get(config->tree, "output"));
    if (inputs_given && outputs_given)
        return NULL;
    /* Without max_batch_size the model's own extents stand: an open first one takes any batch. */
    bool batched = config->max_batch_size > 0;
    kelp_buf text;
    kelp_json_writer writer;
    kelp_buf_init(&text, kelp_allocator_system());
    kelp_json_writer_init(&writer, &text);
    kelp_json_begin_object(&writer);
    kelp_json_key(&writer, "max_batch_size");
    kelp_json_put_i64(&writer, config->max_batch_size);
    kelp_status *status = NULL;
    if (!inputs_given)
        status = write_tensors(config, &writer, "input", metadata->inputs, metadata->input_count,
                               batched);
    if (status == NULL && !outputs_given)
        status = write_tensors(config, &writer, "output", metadata->outputs, metadata->output_count,
                               batched);
    kelp_json_end_object(&writer);
    if (status == NULL)
        status = kelp_buf_status(&text);
    TRITONSERVER_Message *message = NULL;
    if (status == NULL)
        status =
            from_error(TRITONSERVER_MessageNewFromSerializedJson(&message, text.data, text.length));
    if (status == NULL) {
        status = from_error(TRITONBACKEND_ModelSetConfig(model, 1, message));
        TRITONSERVER_ErrorDelete(TRITONSERVER_MessageDelete(message));
    }
    kelp_buf_deinit(&text);
    return status;
}

/* ---- holding what is given against the model ---- */
static kelp_status *list_names(kelp_arena *arena, const kelp_io_info *tensors, size_t count,
                               const char **out) {
    const char *list = count > 0 ? "" : "none";
    for (size_t i = 0; i < count; i++) {
        list = kelp_arena_printf(arena, "%s%s'%s'", list, i > 0 ? ", " : "", tensors[i].name);
        if (list == NULL)
            return kelp_status_oom();
    }
    *out = list;
    return NULL;
}

static kelp_status *check_dims(const kelp_builtin_config *config, const char *kind,
                               const kelp_json *tensor, const kelp_io_info *info) {
    const kelp_json *dims = kelp_json_get(tensor, "dims");
    const kelp_json *reshape = kelp_json_get(kelp_json_get(tensor, "reshape"), "shape");
    if (reshape != NULL)
        dims = reshape;
    if (info->rank < 0 || dims == NULL || dims->type != KELP_JSON_ARRAY)
        return NULL;
    int64_t shape[KELP_MAX_RANK];
    int32_t rank = 0;
    if (config->max_batch_size > 0)
        shape[rank++] = -1;
    for (const kelp_json *dim = dims->child; dim != NULL && rank < KELP_MAX_RANK; dim = dim->next)
        shape[rank++] = dim->i64;
    bool fits = rank == info->rank;
    for (int32_t i = 0; fits && i < rank; i++)
        fits = shape[i] < 0 || info->shape[i] < 0 || shape[i] == info->shape[i];
    if (fits)
        return NULL;
    char found[256], expected[256];
    kelp_shape_format(rank, shape, found, sizeof found);
    kelp_shape_format(info->rank, info->shape, expected, sizeof expected);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "model '%s', %s '%s': the configuration's dims%s give %s, the model has %s",
                      config->model_name, kind, info->name,
                      config->max_batch_size > 0 ? " with the batch dimension (max_batch_size > 0)"
                                                 : "",
                      found, expected);
}

static kelp_status *check_tensors(const kelp_builtin_config *config, kelp_arena *arena,
                                  const char *kind, const kelp_io_info *tensors, size_t count) {
    const kelp_json *list = kelp_json_get(config->tree, kind);
    for (const kelp_json *tensor = list ? list->child : NULL; tensor; tensor = tensor->next) {
        const kelp_json *name = kelp_json_get(tensor, "name"),
                        *type = kelp_json_get(tensor, "data_type");
        const kelp_io_info *info = NULL;
        for (size_t i = 0; name != NULL && i < count; i++)
            if (kelp_str_is(name->string, tensors[i].name))
                info = &tensors[i];
        if (info == NULL) {
            const char *names = NULL;
            KELP_TRY(list_names(arena, tensors, count, &names));
            return KELP_ERROR(
                KELP_INVALID_ARGUMENT,
                "model '%s': the configuration's %s '%.*s' is not in the model, which "
                "has %s",
                config->model_name, kind, KELP_STR_ARG(name ? name->string : KELP_STR("")), names);
        }
        char type_name[32] = "";
        if (type != NULL && type->string.length < sizeof type_name)
            memcpy(type_name, type->string.data, type->string.length);
        kelp_dtype given = kelp_dtype_parse(type_name);
        if (given != info->dtype && info->dtype != KELP_DTYPE_INVALID)
            return KELP_ERROR(KELP_INVALID_ARGUMENT,
                              "model '%s', %s '%s': the configuration's data_type %s is not the "
                              "model's %s",
                              config->model_name, kind, info->name, type_name,
                              kelp_dtype_name(info->dtype));
        KELP_TRY(check_dims(config, kind, tensor, info));
    }
    return NULL;
}

kelp_status *kelp_builtin_config_complete(TRITONBACKEND_Model *model, kelp_arena *arena,
                                          kelp_builtin_config *config,
                                          const kelp_compute_metadata *metadata) {
    bool asked = false;
    KELP_TRY(check_tensors(config, arena, "input", metadata->inputs, metadata->input_count));
    KELP_TRY(check_tensors(config, arena, "output", metadata->outputs, metadata->output_count));
    KELP_TRY(from_error(TRITONBACKEND_ModelAutoCompleteConfig(model, &asked)));
    return asked ? complete(model, config, metadata) : NULL;
}
