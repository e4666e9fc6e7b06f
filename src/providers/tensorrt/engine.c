/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of TensorRT: loaded, looked into, refitted. Without a GPU its library says why it cannot.
 */
#include "providers/tensorrt/engine.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "providers/tensorrt/provider.h"

#include <string.h>

static void destroy(void *userp) {
    trt_loaded *loaded = userp;
    if (loaded->cuda != NULL)
        kelp_status_free(trt_cuda_use(loaded->cuda, loaded->device));
    trt_destroy(loaded->engine);
    trt_destroy(loaded->runtime);
    trt_cuda_destroy(loaded->cuda);
    trt_log_destroy(loaded->log);
    kelp_free(loaded->allocator, loaded->inputs, loaded->input_count * sizeof *loaded->inputs);
    kelp_free(loaded->allocator, loaded->outputs, loaded->output_count * sizeof *loaded->outputs);
    kelp_free(loaded->allocator, loaded, sizeof *loaded);
}

/* ---- inspect ---- */
static kelp_status *inspect(void *userp, bool json,
                            void (*write)(void *userp, const char *text, size_t length),
                            void *write_userp) {
    trt_loaded *e = userp;
    KELP_TRY(trt_cuda_use(e->cuda, e->device));
    trt_log_clear(e->log);
    trt_inspector *inspector = trt_engine_create_engine_inspector(e->m, e->engine);
    const char *text =
        inspector != NULL
            ? trt_inspector_get_engine_information(e->m, inspector,
                                                   json ? TRT_LAYER_INFORMATION_FORMAT_JSON
                                                        : TRT_LAYER_INFORMATION_FORMAT_ONELINE)
            : NULL;
    kelp_status *status = NULL;
    if (text != NULL)
        write(write_userp, text, strlen(text));
    else
        status = trt_log_failure(e->log, KELP_INTERNAL, "TensorRT: cannot inspect the engine");
    trt_destroy(inspector);
    return status;
}

static kelp_status *workspace_bytes(void *userp, size_t profile, size_t *out) {
    trt_loaded *e = userp;
    if (profile > INT32_MAX)
        return KELP_ERROR(KELP_OUT_OF_RANGE, "there is no profile %zu", profile);
    trt_log_clear(e->log);
    int64_t size =
        trt_engine_get_device_memory_size_for_profile_v2(e->m, e->engine, (int32_t)profile);
    if (size < 0 || trt_log_has_errors(e->log))
        return trt_log_failure(e->log, KELP_OUT_OF_RANGE, "TensorRT: profile %zu has no known size",
                               profile);
    *out = (size_t)size;
    return NULL;
}

/* ---- refit ---- */
static kelp_status *not_refittable(trt_loaded *e, trt_refitter *refitter, const char *name) {
    const char *names[64];
    int32_t count = trt_refitter_get_all_weights(e->m, refitter, 64, names);
    kelp_buf list;
    kelp_buf_init(&list, e->allocator);
    for (int32_t i = 0; i < count && i < 64; i++)
        kelp_buf_printf(&list, "%s'%s'", i > 0 ? ", " : "", names[i]);
    const char *text = kelp_buf_cstr(&list);
    kelp_status *status = trt_log_failure(
        e->log, KELP_NOT_FOUND, "TensorRT: weights '%s' cannot be exchanged; those that can: %s%s",
        name, text != NULL ? text : "", count > 64 ? ", …" : "");
    kelp_buf_deinit(&list);
    return status;
}

static kelp_status *set_weights(trt_loaded *e, trt_refitter *refitter,
                                const kelp_weights *weights) {
    trt_weights values = {.values = weights->data, .count = weights->count};
    const char *name = weights->name != NULL ? weights->name : "";
    KELP_TRY(trt_data_type_from(weights->dtype, &values.type));
    trt_weights wanted = trt_refitter_get_weights_prototype(e->m, refitter, name);
    if (wanted.count <= 0)
        return not_refittable(e, refitter, name);
    if (wanted.count != values.count || wanted.type != values.type) {
        kelp_dtype type = KELP_DTYPE_INVALID;
        kelp_status_free(trt_data_type_to(wanted.type, &type));
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "weights '%s': expected %lld of %s, found %lld of %s", name,
                          (long long)wanted.count, kelp_dtype_name(type), (long long)values.count,
                          kelp_dtype_name(weights->dtype));
    }
    return trt_check(e->log, trt_refitter_set_named_weights(e->m, refitter, name, values),
                     "taking the weights");
}

/* The refitter is asked for all before it changes any. */
static kelp_status *refit(void *userp, const kelp_weights *weights, size_t count) {
    trt_loaded *e = userp;
    trt_refitter *refitter = NULL;
    KELP_TRY(trt_cuda_use(e->cuda, e->device));
    kelp_status *status = trt_create_refitter(e->library, e->log, e->engine, &refitter);
    for (size_t i = 0; status == NULL && i < count; i++)
        status = set_weights(e, refitter, &weights[i]);
    if (status == NULL)
        status = trt_check(e->log, trt_refitter_refit_cuda_engine(e->m, refitter), "refitting");
    trt_destroy(refitter);
    return status;
}

/* ---- load ---- */
static kelp_status *read_tensor(trt_loaded *e, const char *name, kelp_io_info *out) {
    trt_dims dims = trt_engine_get_tensor_shape(e->m, e->engine, name);
    *out = (kelp_io_info){.name = name, .rank = dims.rank};
    for (int32_t i = 0; i < dims.rank && i < TRT_MAX_DIMS; i++)
        out->shape[i] = dims.d[i];
    return trt_data_type_to(trt_engine_get_tensor_data_type(e->m, e->engine, name), &out->dtype);
}

static kelp_status *read_tensors(trt_loaded *e) {
    int32_t count = trt_engine_get_nb_io_tensors(e->m, e->engine);
    size_t inputs = 0, outputs = 0;
    for (int32_t i = 0; i < count; i++) {
        const char *name = trt_engine_get_io_tensor_name(e->m, e->engine, i);
        inputs += trt_engine_get_tensor_io_mode(e->m, e->engine, name) == TRT_TENSOR_IO_MODE_INPUT;
    }
    outputs = (size_t)count - inputs;
    e->input_count = inputs; /* also what is freed */
    KELP_TRY(kelp_alloc_zero(e->allocator, inputs, sizeof *e->inputs, (void **)&e->inputs));
    e->output_count = outputs;
    KELP_TRY(kelp_alloc_zero(e->allocator, outputs, sizeof *e->outputs, (void **)&e->outputs));
    inputs = outputs = 0;
    for (int32_t i = 0; i < count; i++) {
        const char *name = trt_engine_get_io_tensor_name(e->m, e->engine, i);
        bool is_input =
            trt_engine_get_tensor_io_mode(e->m, e->engine, name) == TRT_TENSOR_IO_MODE_INPUT;
        KELP_TRY(read_tensor(e, name, is_input ? &e->inputs[inputs++] : &e->outputs[outputs++]));
    }
    return NULL;
}

/* The driver is opened first, so that the engine is made in the context that runs use; when there
 * is none, TensorRT is asked all the same, since it says what it misses. */
static kelp_status *open_engine(trt_loaded *e, kelp_runtime *runtime, const void *data,
                                size_t size_bytes) {
    KELP_TRY(trt_runtime_log(runtime, &e->log));
    kelp_status *driver = trt_cuda_open(e->allocator, &e->cuda);
    if (driver == NULL)
        driver = trt_cuda_use(e->cuda, e->device);
    kelp_status *status = trt_create_runtime(e->library, e->log, &e->runtime);
    if (status == NULL)
        status = trt_deserialize(e->library, e->log, e->runtime, data, size_bytes, &e->engine);
    if (status != NULL) {
        bool of_device = driver != NULL && kelp_status_code(status) == KELP_UNAVAILABLE;
        kelp_status_set_domain(status, of_device ? KELP_DOMAIN_DEVICE : KELP_DOMAIN_RUNTIME);
        kelp_status_free(driver);
        return status;
    }
    if (driver != NULL) {
        kelp_status_set_domain(driver, KELP_DOMAIN_DEVICE);
        return driver;
    }
    return read_tensors(e);
}

static const kelp_engine_vtbl vtbl = {
    .struct_size = sizeof vtbl,
    .destroy_engine = destroy,
    .inspect = inspect,
    .workspace_bytes = workspace_bytes,
    .refit = refit,
    .create_context = trt_context_new,
    .destroy_context = trt_context_free,
    .set_profile = trt_context_profile,
    .set_input = trt_context_bind_input,
    .set_output = trt_context_bind_output,
    .prepare = trt_context_shapes,
    .invoke = trt_context_run,
    .enqueue = trt_context_run_on,
};

static kelp_status *load(kelp_runtime *runtime, const void *data, size_t size_bytes,
                         const char *label, kelp_engine **out) {
    const trt_library *library = NULL;
    trt_loaded *e = NULL;
    KELP_TRY(trt_shared_library(&library));
    KELP_TRY(KELP_NEW(runtime->allocator, trt_loaded, &e));
    e->allocator = runtime->allocator;
    e->library = library;
    e->m = library->methods;
    kelp_status *status = open_engine(e, runtime, data, size_bytes);
    if (status != NULL) {
        destroy(e);
        return KELP_ANNOTATE(status, "plan '%s' cannot be loaded", label != NULL ? label : "");
    }
    int32_t profiles = trt_engine_get_nb_optimization_profiles(e->m, e->engine);
    kelp_engine_parts parts = {.struct_size = sizeof parts,
                               .provider = "tensorrt",
                               .vtbl = &vtbl,
                               .engine = e,
                               .inputs = e->inputs,
                               .outputs = e->outputs,
                               .input_count = e->input_count,
                               .output_count = e->output_count,
                               .profile_count = profiles > 0 ? (size_t)profiles : 0};
    return kelp_engine_wrap(runtime, &parts, out);
}

kelp_status *trt_engine_load(void *self, kelp_runtime *runtime, const void *data, size_t size_bytes,
                             const char *label, void (*release)(void *userp), void *userp,
                             kelp_engine **out) {
    (void)self;
    kelp_status *status = load(runtime, data, size_bytes, label, out);
    if (release != NULL)
        release(userp); /* the engine has copied what it keeps */
    return status;
}
