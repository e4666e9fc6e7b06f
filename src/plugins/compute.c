/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider `kernels`: a model that is one kernel of a library. Its artifact is text, as bytes
 * or in a file: the library's name or path on the first line, the kernel's name on the second, then
 * NAME=VALUE for each scalar. Inputs and outputs are the tensors of the signature.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/fs.h"
#include "base/str.h"
#include "plugins/model.h"
#include "plugins/provider.h"

#include <string.h>

typedef kelp_kernels_model kernels_model;
typedef kelp_kernels_scalar scalar;

static const kelp_compute_model_vtbl model_vtbl, async_vtbl;

#define TEXT_LIMIT_BYTES (64u << 10)

/* ---- the artifact ---- */
static kelp_str next_line(kelp_str *rest) {
    const char *end = rest->length > 0 ? memchr(rest->data, '\n', rest->length) : NULL;
    kelp_str line = {rest->data, end != NULL ? (size_t)(end - rest->data) : rest->length};
    size_t taken = line.length + (end != NULL);
    *rest = (kelp_str){rest->data + taken, rest->length - taken};
    return line;
}

static kelp_status *keep(kernels_model *model, kelp_str text, const char **out) {
    *out = kelp_arena_strndup(&model->arena, text.data, text.length);
    return *out != NULL ? NULL : kelp_status_oom();
}

static kelp_status *read_scalar(kernels_model *model, kelp_str line) {
    const char *equals = memchr(line.data, '=', line.length), *value = NULL;
    if (line.length == 0)
        return NULL;
    if (model->scalar_count == KELP_SIGNATURE_PARAMS)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "too many scalars: expected at most %d",
                          KELP_SIGNATURE_PARAMS);
    if (equals == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "expected NAME=VALUE, found '%.*s'",
                          KELP_STR_ARG(line));
    scalar *s = &model->scalars[model->scalar_count++];
    size_t length = (size_t)(equals - line.data);
    KELP_TRY(keep(model, (kelp_str){line.data, length}, &s->name));
    KELP_TRY(keep(model, (kelp_str){equals + 1, line.length - length - 1}, &value));
    s->value = (kelp_str){value, line.length - length - 1};
    return NULL;
}

static kelp_status *read_text(kernels_model *model, kelp_str text) {
    const char *library_name = NULL, *kernel_name = NULL;
    kelp_kernel_library *library = NULL;
    kelp_str rest = text;
    if (text.length == 0 || memchr(text.data, '\0', text.length) != NULL ||
        memchr(text.data, '\n', text.length) == NULL)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "a model of provider 'kernels' is text: a library on the first line, a "
                          "kernel on the second, then NAME=VALUE for each scalar");
    KELP_TRY(keep(model, next_line(&rest), &library_name));
    KELP_TRY(keep(model, next_line(&rest), &kernel_name));
    while (rest.length > 0)
        KELP_TRY(read_scalar(model, next_line(&rest)));
    KELP_TRY(kelp_kernel_registry_open(model->registry, library_name, &library));
    KELP_TRY(kelp_kernel_library_find(library, kernel_name, &model->kernel));
    if (!kelp_kernel_shapes_follow(model->kernel))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "kernel '%s' of library '%s' cannot be a model: it needs a signature in "
                          "which the outputs' shapes and types follow from the inputs'",
                          kernel_name, library_name);
    return NULL;
}

kelp_status *kelp_kernels_scalar_of(const kernels_model *model, const kelp_signature_param *p,
                                    kelp_kernel_arg *out) {
    for (size_t i = 0; i < model->scalar_count; i++) {
        const scalar *s = &model->scalars[i];
        bool good = true;
        if (strcmp(s->name, p->name) != 0)
            continue;
        if (p->kind == KELP_ARG_STRING)
            out->as.s = s->value.data;
        else if (p->dtype == KELP_BOOL && kelp_str_is(s->value, "true"))
            out->as.i = 1;
        else if (p->dtype == KELP_BOOL && kelp_str_is(s->value, "false"))
            out->as.i = 0;
        else if (p->kind == KELP_ARG_FLOAT)
            good = kelp_parse_f64(s->value, &out->as.f);
        else
            good = kelp_parse_i64(s->value, &out->as.i);
        return good ? NULL
                    : KELP_ERROR(KELP_INVALID_ARGUMENT, "parameter '%s' is '%.*s': expected %s",
                                 p->name, KELP_STR_ARG(s->value),
                                 p->dtype == KELP_BOOL ? "true, false, 0 or 1"
                                                       : kelp_dtype_name(p->dtype));
    }
    out->kind = 0;
    if (p->symbol >= 0 || p->has_default) /* the dimension of a tensor may have the value */
        return NULL;
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "parameter '%s' (%s) is missing", p->name,
                      kelp_dtype_name(p->dtype));
}

/* Checks that every value is for a scalar parameter of the kernel, and that none is repeated. */
static kelp_status *check_scalars(const kernels_model *model) {
    const kelp_signature *signature = &model->kernel->signature;
    for (size_t i = 0; i < model->scalar_count; i++) {
        const char *name = model->scalars[i].name;
        bool found = false;
        for (int32_t j = 0; j < signature->count && !found; j++)
            found = signature->params[j].kind != KELP_ARG_TENSOR &&
                    strcmp(signature->params[j].name, name) == 0;
        if (!found)
            return KELP_ERROR(KELP_INVALID_ARGUMENT, "kernel '%s' has no scalar parameter '%s'",
                              model->kernel->name, name);
        for (size_t j = 0; j < i; j++)
            if (strcmp(model->scalars[j].name, name) == 0)
                return KELP_ERROR(KELP_INVALID_ARGUMENT, "parameter '%s' has two values", name);
    }
    return NULL;
}

/* ---- inputs and outputs ---- */
static void describe(const kelp_signature *s, const kelp_signature_param *p, kelp_io_info *out) {
    out->name = p->name;
    out->dtype = p->dtype;
    out->rank = p->leading ? -1 : p->dim_count;
    for (int32_t i = 0; !p->leading && i < p->dim_count; i++) {
        out->shape[i] = p->dims[i] >= 0 ? p->dims[i] : -1;
        if (p->dims[i] <= -2)
            out->symbols[i] = s->symbols[-2 - p->dims[i]];
    }
}

static kelp_status *describe_all(kernels_model *model) {
    const kelp_signature *s = &model->kernel->signature;
    size_t inputs = 0, outputs = 0;
    kelp_kernel_arg ignored;
    model->inputs = KELP_ARENA_ARRAY(&model->arena, (size_t)s->count + 1, kelp_io_info);
    model->outputs = KELP_ARENA_ARRAY(&model->arena, (size_t)s->count + 1, kelp_io_info);
    if (model->inputs == NULL || model->outputs == NULL)
        return kelp_status_oom();
    for (int32_t i = 0; i < s->count; i++) {
        const kelp_signature_param *p = &s->params[i];
        if (p->kind != KELP_ARG_TENSOR)
            KELP_TRY(kelp_kernels_scalar_of(
                model, p, &ignored)); /* reports errors when the model is loaded */
        else if (p->direction != KELP_PARAM_OUT)
            describe(s, p, &model->inputs[inputs++]);
        if (p->kind == KELP_ARG_TENSOR && p->direction != KELP_PARAM_IN)
            describe(s, p, &model->outputs[outputs++]);
    }
    model->metadata = (kelp_compute_metadata){.input_count = inputs,
                                              .inputs = model->inputs,
                                              .output_count = outputs,
                                              .outputs = model->outputs};
    return NULL;
}

/* ---- lifetime ---- */
static void kernels_destroy(kelp_compute_model *base) {
    kernels_model *model = (kernels_model *)base;
    kelp_runtime *runtime = model->runtime;
    kelp_allocator allocator = kelp_runtime_allocator(runtime);
    KELP_ASSERT(model->first == NULL); /* the stream waited */
    kelp_kernels_call_destroy(model->own);
    kelp_kernels_call_destroy_all(model->spare);
    pthread_mutex_destroy(&model->mutex);
    kelp_kernel_registry_release(model->registry);
    kelp_arena_deinit(&model->arena);
    kelp_free(allocator, model, sizeof *model);
    kelp_runtime_release(runtime);
}

/* Creates a model. If `registry` is NULL, the model creates one. */
static kelp_status *new_model(kelp_runtime *runtime, kelp_kernel_registry *registry, kelp_str text,
                              kelp_compute_model **out) {
    kelp_allocator allocator = kelp_runtime_allocator(runtime);
    kelp_kernel_registry_options options = {.struct_size = sizeof options,
                                            .threads = kelp_runtime_threads(runtime),
                                            .allocator = allocator};
    kernels_model *model = NULL;
    KELP_TRY(KELP_NEW(allocator, kernels_model, &model));
    model->base.vtbl = &model_vtbl;
    model->runtime = kelp_runtime_retain(runtime);
    kelp_arena_init(&model->arena, allocator, 0);
    pthread_mutex_init(&model->mutex, NULL);
    kelp_status *status = NULL;
    if (registry != NULL)
        model->registry = kelp_kernel_registry_retain(registry);
    else
        status = kelp_kernel_registry_create(&options, &model->registry);
    if (status == NULL) {
        model->text = kelp_arena_strndup(&model->arena, text.length ? text.data : "", text.length);
        status = model->text != NULL ? NULL : kelp_status_oom();
    }
    if (status == NULL)
        status = kelp_kernels_call_create(model, &model->own);
    if (status == NULL)
        status = read_text(model, text);
    if (status == NULL)
        status = check_scalars(model);
    if (status == NULL)
        status = describe_all(model);
    if (status != NULL) {
        kernels_destroy(&model->base);
        return status;
    }
    if ((model->kernel->flags & KELP_KERNEL_ASYNC) != 0)
        model->base.vtbl = &async_vtbl;
    *out = &model->base;
    return NULL;
}

static kelp_status *kernels_nothing(kelp_compute_model *base) {
    (void)base;
    return NULL;
}

static kelp_status *kernels_fork(kelp_compute_model *base, kelp_compute_model **out) {
    kernels_model *model = (kernels_model *)base;
    return new_model(model->runtime, model->registry, (kelp_str){model->text, strlen(model->text)},
                     out);
}

static const kelp_compute_metadata *kernels_metadata(const kelp_compute_model *base) {
    return &((const kernels_model *)base)->metadata;
}

#define KERNELS_MODEL                                                                 \
    .struct_size = sizeof(kelp_compute_model_vtbl), .init = kernels_nothing,          \
    .infer_one = kelp_kernels_infer_one, .infer_shapes = kelp_kernels_infer_shapes,   \
    .drain = kernels_nothing, .reset = kernels_nothing, .metadata = kernels_metadata, \
    .fork = kernels_fork, .destroy = kernels_destroy
static const kelp_compute_model_vtbl model_vtbl = {KERNELS_MODEL};
static const kelp_compute_model_vtbl async_vtbl = {KERNELS_MODEL, .submit = kelp_kernels_submit};

static kelp_compute_capabilities kernels_capabilities(void *self) {
    (void)self;
    return (kelp_compute_capabilities){.device_streams = true,
                                       .dtype_mask = ~(((uint64_t)1 << KELP_STRING) | 1)};
}

static kelp_status *kernels_load(void *self, kelp_runtime *runtime, const kelp_artifact *artifact,
                                 kelp_compute_model **out) {
    (void)self;
    kelp_buf text;
    kelp_buf_init(&text, kelp_runtime_allocator(runtime));
    kelp_status *status = NULL;
    if (artifact->data != NULL)
        status = new_model(runtime, NULL, (kelp_str){artifact->data, artifact->size_bytes}, out);
    else if ((status = kelp_fs_read(artifact->path, TEXT_LIMIT_BYTES, &text)) == NULL)
        status = new_model(runtime, NULL, (kelp_str){text.data, text.length}, out);
    kelp_buf_deinit(&text);
    if (status != NULL)
        status = KELP_ANNOTATE(status, "cannot load '%s'",
                               artifact->label  ? artifact->label
                               : artifact->path ? artifact->path
                                                : "(bytes)");
    if (artifact->release != NULL) /* the text was copied */
        artifact->release(artifact->userp);
    return status;
}

static const kelp_compute_backend models = {
    .abi_version = KELP_COMPUTE_ABI_VERSION,
    .struct_size = sizeof(kelp_compute_backend),
    .name = "kernels",
    .capabilities = kernels_capabilities,
    .load_model = kernels_load,
};

const kelp_provider kelp_kernels_provider = {.name = "kernels", .models = &models};
