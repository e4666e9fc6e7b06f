/* SPDX-License-Identifier: Apache-2.0 */
/* Engines of TensorRT: loading, inspection, refitting. Without a GPU, its library reports the
 * reason. */
#include "tensorrt/engine.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "tensorrt/provider.h"

#include <string.h>

static void destroy(void *userp) {
    trt_loaded *loaded = userp;
    if (loaded->cuda != NULL)
        kelp_status_free(kelp_cuda_use(loaded->cuda, loaded->device));
    trt_destroy(loaded->refitter); /* uses the engine and the log */
    trt_destroy(loaded->config);
    trt_destroy(loaded->cache);
    trt_destroy(loaded->engine);
    trt_destroy(loaded->runtime);
    kelp_cuda_destroy(loaded->cuda);
    trt_log_destroy(loaded->log);
    pthread_mutex_destroy(&loaded->lock);
    kelp_free(loaded->allocator, loaded->inputs, loaded->input_count * sizeof *loaded->inputs);
    kelp_free(loaded->allocator, loaded->outputs, loaded->output_count * sizeof *loaded->outputs);
    kelp_free(loaded->allocator, loaded, sizeof *loaded);
}

/* ---- inspect ---- */
static kelp_status *inspect(void *userp, bool json,
                            void (*write)(void *userp, const char *text, size_t length),
                            void *write_userp) {
    trt_loaded *e = userp;
    KELP_TRY(kelp_cuda_use(e->cuda, e->device));
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
        return trt_log_failure(e->log, KELP_OUT_OF_RANGE,
                               "TensorRT: the workspace size of profile %zu is unknown", profile);
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
        e->log, KELP_NOT_FOUND, "TensorRT: weights '%s' cannot be refitted: expected one of %s%s",
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
                     "setting the weights");
}

/* Checks all weights before the engine changes. */
static kelp_status *refit(void *userp, const kelp_weights *weights, size_t count) {
    trt_loaded *e = userp;
    trt_refitter *refitter = NULL;
    KELP_TRY(kelp_cuda_use(e->cuda, e->device));
    kelp_status *status = trt_create_refitter(e->library, e->log, e->engine, &refitter);
    for (size_t i = 0; status == NULL && i < count; i++)
        status = set_weights(e, refitter, &weights[i]);
    if (status == NULL)
        status = trt_check(e->log, trt_refitter_refit_cuda_engine(e->m, refitter), "refitting");
    trt_destroy(refitter);
    return status;
}

/* ---- runtime cache: kernels that TensorRT-RTX compiled during runs ---- */
static kelp_status *set_runtime_cache(void *userp, const void *data, size_t size_bytes) {
    trt_loaded *e = userp;
    KELP_TRY(trt_require(e->library, TRT_M_runtime_config_create_runtime_cache));
    KELP_TRY(kelp_cuda_use(e->cuda, e->device));
    trt_log_clear(e->log);
    trt_runtime_config *config = trt_engine_create_runtime_config(e->m, e->engine);
    trt_runtime_cache *cache =
        config != NULL ? trt_runtime_config_create_runtime_cache(e->m, config) : NULL;
    kelp_status *status = NULL;
    if (cache == NULL)
        status = trt_log_failure(e->log, KELP_INTERNAL, "TensorRT: cannot create a runtime cache");
    if (status == NULL && size_bytes > 0 &&
        !trt_runtime_cache_deserialize(e->m, cache, data, size_bytes))
        status = trt_log_failure(e->log, KELP_INVALID_ARGUMENT,
                                 "TensorRT: invalid runtime cache of %zu bytes", size_bytes);
    if (status == NULL)
        status = trt_check(e->log, trt_runtime_config_set_runtime_cache(e->m, config, cache),
                           "setting the runtime cache");
    if (status != NULL) {
        trt_destroy(config);
        trt_destroy(cache);
        return status;
    }
    pthread_mutex_lock(&e->lock);
    trt_destroy(e->config);
    trt_destroy(e->cache);
    e->config = config;
    e->cache = cache;
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

static kelp_status *write_runtime_cache(void *userp,
                                        void (*write)(void *userp, const char *data, size_t length),
                                        void *write_userp) {
    trt_loaded *e = userp;
    if (e->cache == NULL)
        return KELP_ERROR(KELP_FAILED_PRECONDITION,
                          "the engine has no runtime cache: set one (0 bytes for an empty one) "
                          "before contexts are created");
    KELP_TRY(kelp_cuda_use(e->cuda, e->device));
    trt_log_clear(e->log);
    trt_memory *bytes = trt_runtime_cache_serialize(e->m, e->cache);
    if (bytes == NULL)
        return trt_log_failure(e->log, KELP_INTERNAL, "TensorRT: cannot write the runtime cache");
    write(write_userp, trt_memory_data(e->m, bytes), trt_memory_size(e->m, bytes));
    trt_destroy(bytes);
    return NULL;
}

/* ---- weights that can be streamed from host memory ---- */
static kelp_status *streamable_weights(void *userp, size_t *out_bytes) {
    trt_loaded *e = userp;
    int64_t size = trt_engine_get_streamable_weights_size(e->m, e->engine);
    *out_bytes = size > 0 ? (size_t)size : 0;
    return NULL;
}

static kelp_status *set_weight_budget(void *userp, size_t device_bytes) {
    trt_loaded *e = userp;
    int64_t budget = device_bytes > INT64_MAX ? INT64_MAX : (int64_t)device_bytes;
    KELP_TRY(kelp_cuda_use(e->cuda, e->device));
    trt_log_clear(e->log);
    if (trt_engine_set_weight_streaming_budget_v2(e->m, e->engine, budget))
        return NULL;
    return trt_log_failure(e->log, KELP_FAILED_PRECONDITION,
                           "TensorRT: cannot set a weight budget of %zu bytes (build with "
                           "flag WEIGHT_STREAMING, and set it before contexts are created)",
                           device_bytes);
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
    KELP_ASSERT(e->inputs == NULL && inputs <= (size_t)count);
    e->input_count = inputs; /* `destroy` uses it */
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

/* Opens the driver first, so that the engine is created in the CUDA context of the runs. Without a
 * driver, calls TensorRT anyway for its error message. */
static kelp_status *open_engine(trt_loaded *e, kelp_runtime *runtime, const void *data,
                                size_t size_bytes) {
    KELP_TRY(trt_runtime_log(runtime, &e->log));
    kelp_status *driver = kelp_cuda_open(e->allocator, &e->cuda);
    if (driver == NULL)
        driver = kelp_cuda_use(e->cuda, e->device);
    kelp_status *status = trt_create_runtime(e->library, e->log, &e->runtime);
    if (status == NULL)
        status = trt_deserialize(e->library, e->log, e->runtime, data, size_bytes, &e->engine);
    if (status != NULL) {
        bool of_device = driver != NULL && kelp_status_code(status) == KELP_UNAVAILABLE;
        kelp_status_set_domain(status, of_device ? KELP_DOMAIN_DEVICE : KELP_DOMAIN_RUNTIME);
        kelp_status_free(driver);
        return status;
    }
    KELP_TRY(driver);
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
    .set_output_device = trt_context_output_device,
    .set_output_allocator = trt_context_output_place,
    .set_workspace = trt_context_memory,
    .set_profiler = trt_context_times,
    .capture = trt_context_capture,
    .replay = trt_capture_run,
    .destroy_capture = trt_capture_free,
    .set_runtime_cache = set_runtime_cache,
    .write_runtime_cache = write_runtime_cache,
    .streamable_weights = streamable_weights,
    .set_weight_budget = set_weight_budget,
};

/* Reads the bounds of an input. TensorRT checks the bounds of inputs whose values define shapes. */
static void read_bounds(const trt_loaded *e, size_t profile, size_t input, kelp_shape out[3]) {
    static const trt_opt_profile_selector selectors[] = {
        [KELP_PROFILE_MIN] = TRT_OPT_PROFILE_SELECTOR_MIN,
        [KELP_PROFILE_OPT] = TRT_OPT_PROFILE_SELECTOR_OPT,
        [KELP_PROFILE_MAX] = TRT_OPT_PROFILE_SELECTOR_MAX,
    };
    KELP_ASSERT(input < e->input_count);
    for (int which = 0; which < 3; which++) {
        trt_dims dims = trt_engine_get_profile_shape(e->m, e->engine, e->inputs[input].name,
                                                     (int32_t)profile, selectors[which]);
        out[which].rank = dims.rank;
        for (int32_t i = 0; i < dims.rank && i < TRT_MAX_DIMS; i++)
            out[which].d[i] = dims.d[i];
    }
}

/* Information for kelp_engine_wrap. The refitter owns the names and exists until the engine is
 * wrapped. */
typedef struct loaded_parts {
    kelp_shape (*bounds)[3];
    size_t bounds_count;
    const char **names;
    size_t name_count;
} loaded_parts;

static kelp_status *read_parts(trt_loaded *e, size_t profiles, loaded_parts *parts) {
    parts->bounds_count = profiles * e->input_count;
    KELP_TRY(kelp_alloc_zero(e->allocator, parts->bounds_count, sizeof *parts->bounds,
                             (void **)&parts->bounds));
    for (size_t i = 0; i < parts->bounds_count; i++)
        read_bounds(e, i / e->input_count, i % e->input_count, parts->bounds[i]);
    if (!trt_engine_is_refittable(e->m, e->engine))
        return NULL;
    KELP_TRY(trt_create_refitter(e->library, e->log, e->engine, &e->refitter));
    int32_t count = trt_refitter_get_all_weights(e->m, e->refitter, 0, NULL);
    if (count <= 0)
        return NULL;
    KELP_TRY(
        kelp_alloc_zero(e->allocator, (size_t)count, sizeof *parts->names, (void **)&parts->names));
    parts->name_count = (size_t)count;
    (void)trt_refitter_get_all_weights(e->m, e->refitter, count, parts->names);
    return NULL;
}

static void free_parts(kelp_allocator allocator, loaded_parts *parts) {
    kelp_free(allocator, parts->bounds, parts->bounds_count * sizeof *parts->bounds);
    kelp_free(allocator, parts->names, parts->name_count * sizeof *parts->names);
}

static kelp_status *load(kelp_runtime *runtime, const void *data, size_t size_bytes,
                         const char *label, kelp_engine **out) {
    const trt_library *library = NULL;
    trt_loaded *e = NULL;
    KELP_TRY(trt_shared_library(&library));
    KELP_TRY(KELP_NEW(runtime->allocator, trt_loaded, &e));
    e->allocator = runtime->allocator;
    e->library = library;
    e->m = library->methods;
    if (pthread_mutex_init(&e->lock, NULL) != 0) {
        kelp_free(e->allocator, e, sizeof *e);
        return kelp_status_oom();
    }
    loaded_parts found = {0};
    size_t profiles = 0;
    kelp_status *status = open_engine(e, runtime, data, size_bytes);
    if (status == NULL) {
        int32_t count = trt_engine_get_nb_optimization_profiles(e->m, e->engine);
        profiles = count > 0 ? (size_t)count : 0;
        status = read_parts(e, profiles, &found);
    }
    if (status != NULL) {
        free_parts(runtime->allocator, &found);
        destroy(e);
        return KELP_ANNOTATE(status, "cannot load plan '%s'", label != NULL ? label : "");
    }
    kelp_engine_parts parts = {.struct_size = sizeof parts,
                               .provider = "tensorrt",
                               .vtbl = &vtbl,
                               .engine = e,
                               .inputs = e->inputs,
                               .outputs = e->outputs,
                               .input_count = e->input_count,
                               .output_count = e->output_count,
                               .profile_count = profiles,
                               .profile_shapes = found.bounds,
                               .refittable = found.names,
                               .refittable_count = found.name_count};
    status = kelp_engine_wrap(runtime, &parts, out);
    free_parts(runtime->allocator, &found);
    if (status == NULL) { /* otherwise it was destroyed with the engine */
        trt_destroy(e->refitter);
        e->refitter = NULL;
    }
    return status;
}

kelp_status *trt_engine_load(void *self, kelp_runtime *runtime, const void *data, size_t size_bytes,
                             const char *label, void (*release)(void *userp), void *userp,
                             kelp_engine **out) {
    (void)self;
    kelp_status *status = load(runtime, data, size_bytes, label, out);
    if (release != NULL)
        release(userp); /* TensorRT has copied the plan */
    return status;
}
