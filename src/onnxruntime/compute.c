/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider `onnxruntime` for models: runs whole models on ONNX Runtime. The first model loads
 * its library: the file KELP_ONNXRUNTIME_LIBRARY, or the one that the dynamic loader finds. Inputs
 * are read in place. An output is copied only if the caller binds memory for it.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/arena.h"
#include "base/checked.h"
#include "base/dl.h"
#include "runtime/runtime.h"
#include "onnxruntime/ort_api.h"
#include "onnxruntime/provider.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LOG_LEVEL_ERROR 3
#define DEVICE_ALLOCATOR 0
#define MEMORY_DEFAULT 0

/* A session, shared by a model and its forks. */
typedef struct ort_session {
    atomic_uint references;
    kelp_runtime *runtime;
    kelp_dl library; /* not closed: its threads outlive sessions */
    ort_api api;
    ort_object *env, *session, *memory, *allocator;
    kelp_arena arena; /* names */
    kelp_io_info *io; /* inputs, then outputs */
    const char **names;
    size_t input_count, output_count;
    kelp_artifact artifact; /* bytes that the session reads from */
} ort_session;

typedef struct ort_model {
    kelp_compute_model base;
    ort_session *session;
    kelp_compute_metadata metadata;
    ort_object **values; /* inputs of a run, then outputs, which are valid until the next run */
    kelp_arena strings;  /* of the inputs and outputs of a run */
} ort_model;

/* ---- errors ---- */
static kelp_status *convert(const ort_api *api, ort_object *take_status, const char *what) {
    /* enum OrtErrorCode: 1 fail, 2 invalid argument, 3 no such file, 7 invalid protobuf, 9 not
     * implemented, 10 invalid graph */
    static const kelp_code codes[] = {
        [1] = KELP_INTERNAL,         [2] = KELP_INVALID_ARGUMENT, [3] = KELP_NOT_FOUND,
        [7] = KELP_INVALID_ARGUMENT, [9] = KELP_UNIMPLEMENTED,    [10] = KELP_INVALID_ARGUMENT};
    if (take_status == NULL)
        return NULL;
    int code = api->error_code(take_status);
    kelp_code kind = code > 0 && code < (int)KELP_COUNT(codes) && codes[code] != KELP_OK
                         ? codes[code]
                         : KELP_INTERNAL;
    kelp_status *status =
        KELP_ERROR(kind, "ONNX Runtime: %s: %s", what, api->error_message(take_status));
    api->release_status(take_status);
    return status;
}
#define ORT_STATUS(call, what) convert(api, api->call, what)

/* ---- the library ---- */
static kelp_status *open_library(kelp_dl *out) {
    const char *path = getenv("KELP_ONNXRUNTIME_LIBRARY");
    if (path != NULL && *path != '\0')
        return kelp_dl_open(path, out);
    kelp_status *first = kelp_dl_open("libonnxruntime.so.1", out);
    if (first == NULL)
        return NULL;
    kelp_status *second = kelp_dl_open("libonnxruntime.so", out);
    if (second != NULL)
        second = KELP_ANNOTATE(second,
                               "cannot find ONNX Runtime's library: install it, or set "
                               "KELP_ONNXRUNTIME_LIBRARY to its file: %s",
                               kelp_status_message(first));
    kelp_status_free(first);
    return second;
}

static kelp_status *load_library(kelp_dl *out_library, ort_api *out_api) {
    KELP_TRY(open_library(out_library));
    const ort_api_base *(*base)(void);
    void *symbol = kelp_dl_symbol(out_library, "OrtGetApiBase");
    memcpy(&base, &symbol, sizeof base);
    const void *const *table = symbol != NULL ? base()->get_api(ORT_API_VERSION_REQUIRED) : NULL;
    if (table == NULL)
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "the library of ONNX Runtime has no C API of version %d: found %s",
                          ORT_API_VERSION_REQUIRED,
                          symbol != NULL ? base()->version_string() : "no OrtGetApiBase");
    ort_api_copy(table, out_api);
    return NULL;
}

kelp_status *kelp_onnxruntime_check_library(void) {
    kelp_dl library;
    ort_api api;
    return load_library(&library, &api);
}

/* ---- inputs and outputs of the session ---- */
static kelp_status *read_info(ort_session *s, const ort_object *info, kelp_io_info *out) {
    const ort_api *api = &s->api;
    int type = 0;
    size_t rank = 0;
    const char *symbols[KELP_MAX_RANK] = {0};
    KELP_TRY(ORT_STATUS(element_type(info, &type), "an element type"));
    KELP_TRY(ORT_STATUS(rank(info, &rank), "a rank"));
    if (rank > KELP_MAX_RANK)
        return KELP_ERROR(KELP_UNIMPLEMENTED, "'%s' has %zu dimensions: at most %d are supported",
                          out->name, rank, KELP_MAX_RANK);
    KELP_TRY(ORT_STATUS(shape(info, out->shape, rank), "a shape"));
    KELP_TRY(ORT_STATUS(symbols(info, symbols, rank), "names of dimensions"));
    out->dtype = (kelp_dtype)type;
    out->rank = (int32_t)rank;
    for (size_t axis = 0; axis < rank; axis++) {
        if (symbols[axis] == NULL || *symbols[axis] == '\0')
            continue;
        out->symbols[axis] = kelp_arena_strndup(&s->arena, symbols[axis], strlen(symbols[axis]));
        if (out->symbols[axis] == NULL)
            return kelp_status_oom();
    }
    return NULL;
}

static kelp_status *read_io(ort_session *s, size_t index, bool input, kelp_io_info *out) {
    const ort_api *api = &s->api;
    char *name = NULL;
    ort_object *type = NULL;
    const ort_object *info = NULL;
    KELP_TRY(convert(api,
                     input ? api->input_name(s->session, index, s->allocator, &name)
                           : api->output_name(s->session, index, s->allocator, &name),
                     "a name"));
    out->name = kelp_arena_strndup(&s->arena, name, strlen(name));
    kelp_status *status = convert(api, api->allocator_free(s->allocator, name), "freeing a name");
    if (status == NULL && out->name == NULL)
        status = kelp_status_oom();
    if (status == NULL)
        status = convert(api,
                         input ? api->input_type(s->session, index, &type)
                               : api->output_type(s->session, index, &type),
                         "a type");
    if (status == NULL)
        status = convert(api, api->type_as_tensor(type, &info), "a type");
    if (status == NULL && info == NULL)
        status = KELP_ERROR(KELP_UNIMPLEMENTED, "'%s' is not a tensor", out->name);
    if (status == NULL)
        status = read_info(s, info, out);
    if (type != NULL)
        api->release_type(type);
    return status;
}

static kelp_status *read_all_io(ort_session *s) {
    const ort_api *api = &s->api;
    KELP_TRY(ORT_STATUS(input_count(s->session, &s->input_count), "the number of inputs"));
    KELP_TRY(ORT_STATUS(output_count(s->session, &s->output_count), "the number of outputs"));
    size_t count = s->input_count + s->output_count;
    s->io = KELP_ARENA_ARRAY(&s->arena, count, kelp_io_info);
    s->names = KELP_ARENA_ARRAY(&s->arena, count, const char *);
    if (s->io == NULL || s->names == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < count; i++) {
        bool input = i < s->input_count;
        KELP_TRY(read_io(s, input ? i : i - s->input_count, input, &s->io[i]));
        s->names[i] = s->io[i].name;
    }
    return NULL;
}

/* ---- session ---- */
static void release_session(ort_session *s) {
    if (s == NULL || atomic_fetch_sub(&s->references, 1) != 1)
        return;
    kelp_runtime *runtime = s->runtime;
    if (s->session != NULL)
        s->api.release_session(s->session);
    if (s->memory != NULL)
        s->api.release_memory(s->memory);
    if (s->env != NULL)
        s->api.release_env(s->env);
    if (s->artifact.release != NULL)
        s->artifact.release(s->artifact.userp);
    kelp_arena_deinit(&s->arena);
    kelp_free(kelp_runtime_allocator(runtime), s, sizeof *s);
    kelp_runtime_release(runtime);
}

static kelp_status *open_session(ort_session *s, const ort_object *options) {
    const ort_api *api = &s->api;
    const kelp_artifact *a = &s->artifact;
    if (a->data != NULL)
        KELP_TRY(ORT_STATUS(
            create_session_from_array(s->env, a->data, a->size_bytes, options, &s->session),
            a->label ? a->label : "(bytes)"));
    else
        KELP_TRY(ORT_STATUS(create_session(s->env, a->path, options, &s->session), a->path));
    KELP_TRY(ORT_STATUS(create_cpu_memory(DEVICE_ALLOCATOR, MEMORY_DEFAULT, &s->memory), "memory"));
    KELP_TRY(ORT_STATUS(default_allocator(&s->allocator), "an allocator"));
    return read_all_io(s);
}

static kelp_status *start(ort_session *s) {
    const ort_api *api = &s->api;
    ort_object *options = NULL;
    KELP_TRY(load_library(&s->library, &s->api));
    KELP_TRY(ORT_STATUS(create_env(LOG_LEVEL_ERROR, "kelp", &s->env), "an environment"));
    KELP_TRY(ORT_STATUS(create_session_options(&options), "options"));
    kelp_status *status = convert(
        api, api->set_intra_op_threads(options, kelp_runtime_threads(s->runtime)), "threads");
    if (status == NULL)
        status = convert(api, api->set_inter_op_threads(options, 1), "threads");
    if (status == NULL)
        status = open_session(s, options);
    api->release_options(options);
    return status;
}

/* ---- model ---- */
static const kelp_compute_model_vtbl model_vtbl;

static kelp_status *new_model(ort_session *session, kelp_compute_model **out) {
    kelp_allocator allocator = kelp_runtime_allocator(session->runtime);
    size_t count = session->input_count + session->output_count;
    ort_model *model = NULL;
    KELP_TRY(KELP_NEW(allocator, ort_model, &model));
    kelp_status *status =
        kelp_alloc_zero(allocator, count, sizeof *model->values, (void **)&model->values);
    if (status != NULL) {
        kelp_free(allocator, model, sizeof *model);
        return status;
    }
    model->base.vtbl = &model_vtbl;
    model->session = session;
    atomic_fetch_add(&session->references, 1);
    kelp_arena_init(&model->strings, allocator, 0);
    model->metadata = (kelp_compute_metadata){.input_count = session->input_count,
                                              .inputs = session->io,
                                              .output_count = session->output_count,
                                              .outputs = session->io + session->input_count};
    *out = &model->base;
    return NULL;
}

static void release_values(ort_model *model, size_t begin, size_t end) {
    KELP_ASSERT(end <= model->session->input_count + model->session->output_count);
    for (size_t i = begin; i < end; i++) {
        if (model->values[i] != NULL)
            model->session->api.release_value(model->values[i]);
        model->values[i] = NULL;
    }
}

static kelp_status *string_value(ort_model *model, const kelp_tensor *tensor, ort_object **out) {
    const ort_api *api = &model->session->api;
    size_t count = (size_t)kelp_tensor_elements(tensor);
    const kelp_string *strings = tensor->data;
    const char **terminated = KELP_ARENA_ARRAY(&model->strings, count, const char *);
    if (terminated == NULL)
        return kelp_status_oom();
    for (size_t i = 0; i < count; i++) {
        terminated[i] = kelp_arena_strndup(&model->strings, strings[i].data, strings[i].length);
        if (terminated[i] == NULL)
            return kelp_status_oom();
    }
    KELP_TRY(ORT_STATUS(create_tensor(model->session->allocator, tensor->shape,
                                      (size_t)tensor->rank, (int)tensor->dtype, out),
                        "a tensor of strings"));
    return convert(api, api->fill_strings(*out, terminated, count), "strings");
}

static kelp_status *bind_inputs(ort_model *model, const kelp_infer_item *item) {
    const ort_api *api = &model->session->api;
    for (size_t i = 0; i < model->metadata.input_count; i++) {
        const kelp_tensor *tensor = &item->inputs[i];
        KELP_ASSERT(model->values[i] == NULL && kelp_tensor_is_compact(tensor));
        if (tensor->dtype == KELP_STRING) {
            KELP_TRY(string_value(model, tensor, &model->values[i]));
            continue;
        }
        KELP_TRY(ORT_STATUS(create_tensor_over(model->session->memory, tensor->data,
                                               kelp_tensor_bytes(tensor), tensor->shape,
                                               (size_t)tensor->rank, (int)tensor->dtype,
                                               &model->values[i]),
                            model->metadata.inputs[i].name));
    }
    return NULL;
}

static kelp_status *read_strings(ort_model *model, const ort_object *value, kelp_tensor *out) {
    const ort_api *api = &model->session->api;
    size_t count = (size_t)kelp_tensor_elements(out), bytes = 0;
    KELP_TRY(ORT_STATUS(strings_length(value, &bytes), "strings"));
    char *text = kelp_arena_alloc(&model->strings, bytes, 1);
    size_t *offsets = KELP_ARENA_ARRAY(&model->strings, count, size_t);
    kelp_string *strings = KELP_ARENA_ARRAY(&model->strings, count, kelp_string);
    if (text == NULL || offsets == NULL || strings == NULL)
        return kelp_status_oom();
    KELP_TRY(ORT_STATUS(strings_content(value, text, bytes, offsets, count), "strings"));
    for (size_t i = 0; i < count; i++)
        strings[i] =
            (kelp_string){text + offsets[i], (i + 1 < count ? offsets[i + 1] : bytes) - offsets[i]};
    out->data = strings;
    return NULL;
}

/* Describes output `index`, and copies it to the caller's memory, if any. */
static kelp_status *take_output(ort_model *model, size_t index, kelp_tensor *inout) {
    const ort_api *api = &model->session->api;
    const char *name = model->metadata.outputs[index].name;
    ort_object *value = model->values[model->metadata.input_count + index], *info = NULL;
    KELP_ASSERT(value != NULL); /* the run succeeded */
    kelp_io_info found = {.name = name};
    kelp_tensor result;
    KELP_TRY(ORT_STATUS(value_info(value, &info), name));
    kelp_status *status = convert(api, api->element_type(info, (int *)&found.dtype), name);
    size_t rank = 0;
    if (status == NULL)
        status = convert(api, api->rank(info, &rank), name);
    if (status == NULL && rank <= KELP_MAX_RANK)
        status = convert(api, api->shape(info, found.shape, rank), name);
    api->release_info(info);
    KELP_TRY(status);
    KELP_TRY(kelp_tensor_init(&result, found.dtype, (int32_t)rank, found.shape, NULL));
    if (result.dtype == KELP_STRING)
        KELP_TRY(read_strings(model, value, &result));
    else
        KELP_TRY(ORT_STATUS(tensor_data(value, &result.data), name));
    if (inout->data != NULL) {
        size_t bytes = kelp_tensor_bytes(&result), capacity_bytes = kelp_tensor_bytes(inout);
        if (capacity_bytes < bytes)
            return KELP_ERROR(KELP_OUT_OF_RANGE,
                              "the memory for output '%s' is too small: expected %zu bytes, found "
                              "%zu",
                              name, bytes, capacity_bytes);
        if (bytes > 0)
            memcpy(inout->data, result.data, bytes);
        result.data = inout->data;
    }
    *inout = result;
    return NULL;
}

static kelp_status *ort_init(kelp_compute_model *base) {
    (void)base;
    return NULL;
}

static kelp_status *ort_infer_one(kelp_compute_model *base, kelp_infer_item *item) {
    ort_model *model = (ort_model *)base;
    const ort_api *api = &model->session->api;
    size_t inputs = model->metadata.input_count, outputs = model->metadata.output_count;
    release_values(model, inputs, inputs + outputs);
    kelp_arena_clear(&model->strings);
    kelp_status *status = bind_inputs(model, item);
    if (status == NULL)
        status = convert(api,
                         api->run(model->session->session, NULL, model->session->names,
                                  (const ort_object *const *)model->values, inputs,
                                  model->session->names + inputs, outputs, model->values + inputs),
                         "the run");
    release_values(model, 0, inputs);
    for (size_t i = 0; status == NULL && i < outputs; i++)
        status = take_output(model, i, &item->outputs[i]);
    return status;
}

static kelp_status *ort_drain(kelp_compute_model *base) {
    (void)base;
    return NULL;
}

static kelp_status *ort_reset(kelp_compute_model *base) {
    ort_model *model = (ort_model *)base;
    release_values(model, 0, model->metadata.input_count + model->metadata.output_count);
    kelp_arena_clear(&model->strings);
    return NULL;
}

static const kelp_compute_metadata *ort_metadata(const kelp_compute_model *base) {
    return &((const ort_model *)base)->metadata;
}

static kelp_status *ort_fork(kelp_compute_model *base, kelp_compute_model **out) {
    return new_model(((ort_model *)base)->session, out);
}

static void ort_destroy(kelp_compute_model *base) {
    ort_model *model = (ort_model *)base;
    ort_session *session = model->session;
    kelp_allocator allocator = kelp_runtime_allocator(session->runtime);
    size_t count = session->input_count + session->output_count;
    release_values(model, 0, count);
    kelp_arena_deinit(&model->strings);
    kelp_free(allocator, model->values, count * sizeof *model->values);
    kelp_free(allocator, model, sizeof *model);
    release_session(session);
}

static const kelp_compute_model_vtbl model_vtbl = {
    .struct_size = sizeof(kelp_compute_model_vtbl),
    .init = ort_init,
    .infer_one = ort_infer_one,
    .drain = ort_drain,
    .reset = ort_reset,
    .metadata = ort_metadata,
    .fork = ort_fork,
    .destroy = ort_destroy,
};

static kelp_compute_capabilities ort_capabilities(void *self) {
    (void)self;
    uint64_t types = 0;
    for (int dtype = KELP_F32; dtype <= KELP_U64; dtype++)
        types |= (uint64_t)1 << dtype;
    for (int dtype = KELP_BF16; dtype <= KELP_F8E5M2FNUZ; dtype++)
        types |= (uint64_t)1 << dtype;
    return (kelp_compute_capabilities){.dtype_mask = types};
}

static kelp_status *ort_load(void *self, kelp_runtime *runtime, const kelp_artifact *artifact,
                             kelp_compute_model **out) {
    kelp_allocator allocator = kelp_runtime_allocator(runtime);
    ort_session *session = NULL;
    (void)self;
    kelp_status *status = KELP_NEW(allocator, ort_session, &session);
    if (status != NULL) {
        if (artifact->release != NULL)
            artifact->release(artifact->userp);
        return status;
    }
    atomic_init(&session->references, 1);
    session->runtime = kelp_runtime_retain(runtime);
    session->artifact = *artifact;
    kelp_arena_init(&session->arena, allocator, 0);
    status = start(session);
    if (status == NULL)
        status = new_model(session, out);
    release_session(session);
    return status;
}

const kelp_compute_backend kelp_onnxruntime_models = {
    .abi_version = KELP_COMPUTE_ABI_VERSION,
    .struct_size = sizeof(kelp_compute_backend),
    .name = "onnxruntime",
    .capabilities = ort_capabilities,
    .load_model = ort_load,
};
