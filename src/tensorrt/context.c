/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of TensorRT engines. Each has a stream, and device memory for tensors that are bound in
 * host memory. Inputs in host memory are copied to the device; inputs on the device are used in
 * allocate. TensorRT requests the memory of outputs from an allocator, since some sizes depend on
 * data; they are copied back.
 *
 * Threads: a context is used by one thread at a time, which can change. Each call makes the device
 * current.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "tensorrt/context.h"

#include <kelp/dlpack.h>

#include <stdlib.h>
#include <string.h>

#define HOST_ALIGNMENT 64

const char *trt_input_name(const trt_running *r, size_t index) {
    KELP_ASSERT(index < r->engine->input_count);
    return r->engine->inputs[index].name;
}

const char *trt_output_name(const trt_running *r, size_t index) {
    KELP_ASSERT(index < r->engine->output_count);
    return r->engine->outputs[index].name;
}

/* ---- memory ---- */
/* Replaces memory that is too small. The driver frees it when no kernel uses it. */
static kelp_status *grow_device(const trt_running *r, size_t size_bytes, void **inout,
                                size_t *inout_bytes) {
    if (size_bytes == 0)
        size_bytes = 1; /* TensorRT requires an address even for 0 bytes */
    if (*inout != NULL && *inout_bytes >= size_bytes)
        return NULL;
    if (*inout != NULL)
        KELP_TRY(kelp_cuda_free(r->engine->cuda, *inout));
    *inout = NULL;
    *inout_bytes = 0;
    KELP_TRY(kelp_cuda_alloc(r->engine->cuda, size_bytes, inout));
    *inout_bytes = size_bytes;
    return NULL;
}

static kelp_status *grow_host(const trt_running *r, size_t size_bytes, void **inout,
                              size_t *inout_bytes) {
    void *data = NULL;
    if (size_bytes == 0)
        size_bytes = 1;
    if (*inout != NULL && *inout_bytes >= size_bytes)
        return NULL;
    KELP_TRY(kelp_alloc_aligned(r->engine->allocator, size_bytes, HOST_ALIGNMENT, &data));
    kelp_free_aligned(r->engine->allocator, *inout, *inout_bytes, HOST_ALIGNMENT);
    *inout = data;
    *inout_bytes = size_bytes;
    return NULL;
}

static kelp_status *reserve_output(trt_running *r, trt_output_slot *slot, size_t size_bytes) {
    if (slot->on_host)
        return grow_host(r, size_bytes, &slot->own_data, &slot->own_data_bytes);
    if (slot->target == NULL)
        return grow_device(r, size_bytes, &slot->own, &slot->own_bytes);
    if (size_bytes <= slot->target_bytes)
        return NULL;
    return KELP_ERROR(KELP_OUT_OF_RANGE,
                      "the memory bound to output '%s' is too small: expected %zu bytes, found %zu",
                      trt_output_name(r, (size_t)(slot - r->outputs)), size_bytes,
                      slot->target_bytes);
}

/* Called by TensorRT during enqueue, on the same thread. */
static void *allocate_output(void *userp, const char *tensor, void *current, uint64_t size,
                             uint64_t alignment, trt_stream stream) {
    trt_output_slot *slot = userp;
    trt_running *r = slot->context;
    KELP_ASSERT(slot >= r->outputs && slot < r->outputs + r->engine->output_count);
    (void)tensor, (void)current, (void)alignment, (void)stream; /* CUDA aligns to 256 bytes */
    kelp_status *status = reserve_output(r, slot, (size_t)size);
    if (status != NULL) {
        kelp_status_free(r->failure);
        r->failure = status;
        return NULL;
    }
    if (slot->on_host)
        return slot->own_data;
    return slot->target != NULL ? slot->target : slot->own;
}

static void store_shape(void *userp, const char *tensor, const trt_dims *dims) {
    (void)tensor;
    ((trt_output_slot *)userp)->shape = *dims;
}

/* ---- lifetime ---- */
void trt_context_free(void *userp) {
    trt_running *r = userp;
    const trt_loaded *e = r->engine;
    kelp_status_free(kelp_cuda_use(e->cuda, e->device));
    if (r->stream != NULL)
        kelp_status_free(kelp_cuda_stream_wait(e->cuda, r->stream));
    trt_destroy(r->context);
    for (size_t i = 0; r->inputs != NULL && i < e->input_count; i++)
        if (r->inputs[i].own != NULL)
            kelp_status_free(kelp_cuda_free(e->cuda, r->inputs[i].own));
    for (size_t i = 0; r->outputs != NULL && i < e->output_count; i++) {
        if (r->outputs[i].own != NULL)
            kelp_status_free(kelp_cuda_free(e->cuda, r->outputs[i].own));
        kelp_free_aligned(e->allocator, r->outputs[i].own_data, r->outputs[i].own_data_bytes,
                          HOST_ALIGNMENT);
    }
    if (r->stream != NULL)
        kelp_cuda_stream_destroy(e->cuda, r->stream);
    kelp_free(e->allocator, r->inputs, e->input_count * sizeof *r->inputs);
    kelp_free(e->allocator, r->outputs, e->output_count * sizeof *r->outputs);
    trt_log_destroy(r->log);
    kelp_status_free(r->failure);
    kelp_free(e->allocator, r, sizeof *r);
}

/* Creates TensorRT's context. All contexts share the engine's configuration, so the lock is needed.
 */
static kelp_status *make_context(const trt_running *r, trt_context **out) {
    trt_loaded *e = r->engine;
    trt_execution_context_allocation_strategy strategy =
        r->workspace != NULL ? TRT_EXECUTION_CONTEXT_ALLOCATION_STRATEGY_USER_MANAGED
                             : TRT_EXECUTION_CONTEXT_ALLOCATION_STRATEGY_STATIC;
    kelp_status *status = NULL;
    pthread_mutex_lock(&e->lock);
    trt_log_clear(e->log);
    if (e->config == NULL) {
        *out = trt_engine_create_execution_context(e->m, e->engine, strategy);
    } else {
        trt_runtime_config_set_execution_context_allocation_strategy(e->m, e->config, strategy);
        *out = trt_engine_create_execution_context_with_runtime_config(e->m, e->engine, e->config);
    }
    if (*out == NULL)
        status =
            trt_log_failure(e->log, KELP_RESOURCE_EXHAUSTED, "TensorRT: cannot create a context");
    pthread_mutex_unlock(&e->lock);
    return status;
}

static kelp_status *choose_profile(const trt_running *r, trt_context *context, size_t profile) {
    trt_log_clear(r->log);
    if (!trt_context_set_optimization_profile_async(r->engine->m, context, (int32_t)profile,
                                                    r->stream))
        return trt_log_failure(r->log, KELP_INVALID_ARGUMENT, "TensorRT: profile %zu is invalid",
                               profile);
    return NULL;
}

/* Sets the shape of an input, and its address if it is in host memory. */
static kelp_status *set_input(const trt_running *r, trt_context *context, size_t index,
                              const kelp_tensor *tensor) {
    const trt_loaded *e = r->engine;
    const char *name = trt_input_name(r, index);
    trt_dims dims;
    KELP_TRY(trt_dims_from((size_t)tensor->rank, tensor->shape, &dims));
    trt_log_clear(r->log);
    if (!trt_context_set_input_shape(e->m, context, name, &dims)) {
        char shape[160];
        trt_dims_format(&dims, shape, sizeof shape);
        return trt_log_failure(r->log, KELP_INVALID_ARGUMENT,
                               "TensorRT: invalid shape %s of input '%s'", shape, name);
    }
    if (!r->inputs[index].on_host)
        return NULL;
    return trt_check(r->log, trt_context_set_tensor_address(e->m, context, name, tensor->data),
                     "binding an input");
}

/* Applies all bindings and options to a new context. Does not change `r`. */
static kelp_status *configure_context(trt_running *r, trt_context *context) {
    const trt_loaded *e = r->engine;
    trt_context_set_error_recorder(e->m, context, trt_log_recorder(r->log));
    if (r->workspace != NULL)
        trt_context_set_device_memory_v2(e->m, context, r->workspace, (int64_t)r->workspace_bytes);
    trt_context_set_profiler(e->m, context,
                             r->profile_fn != NULL ? TRT_LAYER_TIMES(&r->times) : NULL);
    for (size_t i = 0; i < e->output_count; i++)
        KELP_TRY(
            trt_check(r->log,
                      trt_context_set_output_allocator(e->m, context, trt_output_name(r, i),
                                                       TRT_OUTPUT_MEMORY(&r->outputs[i].memory)),
                      "setting an output allocator"));
    if (r->has_profile)
        KELP_TRY(choose_profile(r, context, r->profile));
    for (size_t i = 0; i < e->input_count; i++)
        if (r->inputs[i].is_bound)
            KELP_TRY(set_input(r, context, i, &r->inputs[i].tensor));
    return kelp_cuda_stream_wait(e->cuda, r->stream);
}

/* The old context remains in use until the new one is complete. */
kelp_status *trt_context_open(trt_running *r) {
    trt_context *made = NULL;
    KELP_TRY(make_context(r, &made));
    kelp_status *status = configure_context(r, made);
    if (status != NULL) {
        kelp_status_free(kelp_cuda_stream_wait(r->engine->cuda, r->stream)); /* for its profile */
        trt_destroy(made);
        return status;
    }
    trt_destroy(r->context);
    r->context = made;
    return NULL;
}

static kelp_status *fill_context(trt_running *r) {
    trt_loaded *e = r->engine;
    KELP_TRY(kelp_cuda_use(e->cuda, e->device));
    KELP_TRY(trt_log_create(e->allocator, TRT_SEVERITY_INFO, NULL, NULL, &r->log));
    KELP_TRY(kelp_alloc_zero(e->allocator, e->input_count, sizeof *r->inputs, (void **)&r->inputs));
    KELP_TRY(
        kelp_alloc_zero(e->allocator, e->output_count, sizeof *r->outputs, (void **)&r->outputs));
    KELP_TRY(kelp_cuda_stream_create(e->cuda, &r->stream));
    for (size_t i = 0; i < e->input_count; i++)
        r->inputs[i].on_host =
            trt_engine_get_tensor_location(e->m, e->engine, trt_input_name(r, i)) ==
            TRT_TENSOR_LOCATION_HOST;
    for (size_t i = 0; i < e->output_count; i++) {
        trt_output_slot *slot = &r->outputs[i];
        slot->context = r;
        slot->on_host = trt_engine_get_tensor_location(e->m, e->engine, trt_output_name(r, i)) ==
                        TRT_TENSOR_LOCATION_HOST;
        trt_output_memory_init(e->m, &slot->memory);
        slot->memory.reallocate = allocate_output;
        slot->memory.shape = store_shape;
        slot->memory.userp = slot;
    }
    return trt_context_open(r);
}

kelp_status *trt_context_new(void *engine, void **out) {
    trt_loaded *e = engine;
    trt_running *r = NULL;
    KELP_TRY(KELP_NEW(e->allocator, trt_running, &r));
    r->engine = e;
    kelp_status *status = fill_context(r);
    if (status != NULL) {
        trt_context_free(r);
        return status;
    }
    *out = r;
    return NULL;
}

kelp_status *trt_context_profile(void *context, size_t profile) {
    trt_running *r = context;
    const trt_loaded *e = r->engine;
    KELP_TRY(kelp_cuda_use(e->cuda, e->device));
    if (profile > INT32_MAX)
        return KELP_ERROR(KELP_OUT_OF_RANGE, "there is no profile %zu", profile);
    KELP_TRY(choose_profile(r, r->context, profile));
    r->profile = profile;
    r->has_profile = true;
    r->stamp++;
    /* TensorRT resets the shapes. Inputs that do not match the new profile are unbound. */
    for (size_t i = 0; i < e->input_count; i++) {
        trt_input_slot *slot = &r->inputs[i];
        trt_dims dims = {.rank = -1};
        if (slot->is_bound)
            KELP_TRY(trt_dims_from((size_t)slot->tensor.rank, slot->tensor.shape, &dims));
        slot->is_bound = slot->is_bound &&
                         trt_context_set_input_shape(e->m, r->context, trt_input_name(r, i), &dims);
    }
    trt_log_clear(r->log);
    return kelp_cuda_stream_wait(e->cuda, r->stream);
}

/* ---- binding ---- */
kelp_status *trt_context_bind_input(void *context, size_t index, const kelp_tensor *tensor) {
    trt_running *r = context;
    const trt_loaded *e = r->engine;
    trt_input_slot *slot = &r->inputs[index];
    const char *name = trt_input_name(r, index);
    bool in_host = tensor->device.device_type == kDLCPU;
    KELP_TRY(kelp_cuda_use(e->cuda, e->device));
    if (!kelp_tensor_is_compact(tensor) ||
        (tensor->data == NULL && kelp_tensor_elements(tensor) > 0))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s' must have data and be compact", name);
    if (!in_host && (slot->on_host || tensor->device.device_type != kDLCUDA ||
                     tensor->device.device_id != e->device))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s' must be in host memory%s: found device %d of type %d", name,
                          slot->on_host ? "" : ", or on the engine's device",
                          (int)tensor->device.device_id, (int)tensor->device.device_type);
    KELP_TRY(set_input(r, r->context, index, tensor));
    slot->tensor = *tensor;
    slot->is_bound = true;
    r->stamp++;
    return NULL;
}

kelp_status *trt_context_bind_output(void *context, size_t index, void *data,
                                     size_t capacity_bytes) {
    trt_running *r = context;
    r->outputs[index].user_data = data;
    r->outputs[index].user_bytes = capacity_bytes;
    r->outputs[index].allocate = NULL;
    r->stamp++;
    return NULL;
}

kelp_status *trt_context_output_place(void *context, size_t index, kelp_output_allocator fn,
                                      void *userp) {
    trt_running *r = context;
    r->outputs[index].allocate = fn;
    r->outputs[index].allocate_userp = userp;
    r->stamp++;
    return NULL;
}

kelp_status *trt_context_output_device(void *context, size_t index, DLDevice device) {
    trt_running *r = context;
    trt_output_slot *slot = &r->outputs[index];
    bool on_device = device.device_type == kDLCUDA && device.device_id == r->engine->device;
    if (device.device_type != kDLCPU && (!on_device || slot->on_host))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "output '%s' must be in host memory%s: found device %d of type %d",
                          trt_output_name(r, index),
                          slot->on_host ? "" : ", or on the engine's device", (int)device.device_id,
                          (int)device.device_type);
    slot->on_device = on_device;
    r->stamp++;
    return NULL;
}

static kelp_status *check_bound(const trt_running *r) {
    for (size_t i = 0; i < r->engine->input_count; i++)
        if (!r->inputs[i].is_bound)
            return KELP_ERROR(KELP_FAILED_PRECONDITION, "input '%s' is not bound",
                              trt_input_name(r, i));
    return NULL;
}

/* Describes an output. The rank is -1 if the shape depends on data. */
static void fill_output(const trt_running *r, size_t index, const trt_dims *dims,
                        kelp_tensor *out) {
    *out = (kelp_tensor){.dtype = r->engine->outputs[index].dtype,
                         .rank = dims->rank,
                         .device = {.device_type = kDLCPU}};
    if (r->outputs[index].on_device)
        out->device = (DLDevice){.device_type = kDLCUDA, .device_id = r->engine->device};
    for (int32_t i = 0; i < dims->rank && i < TRT_MAX_DIMS; i++) {
        out->shape[i] = dims->d[i];
        if (dims->d[i] < 0)
            out->rank = -1;
    }
}

kelp_status *trt_context_shapes(void *context, kelp_tensor *out_outputs) {
    trt_running *r = context;
    const trt_loaded *e = r->engine;
    const char *missing = NULL;
    KELP_TRY(kelp_cuda_use(e->cuda, e->device));
    KELP_TRY(check_bound(r));
    trt_log_clear(r->log);
    if (trt_context_infer_shapes(e->m, r->context, 1, &missing) != 0)
        return trt_log_failure(
            r->log, KELP_INVALID_ARGUMENT, "TensorRT: cannot infer the shapes%s%s",
            missing != NULL ? ": missing input " : "", missing != NULL ? missing : "");
    for (size_t i = 0; i < e->output_count; i++) {
        trt_dims dims = trt_context_get_tensor_shape(e->m, r->context, trt_output_name(r, i));
        fill_output(r, i, &dims, &out_outputs[i]);
    }
    return NULL;
}

/* ---- execution ---- */
static kelp_status *copy_inputs(trt_running *r, trt_stream stream) {
    const trt_loaded *e = r->engine;
    for (size_t i = 0; i < e->input_count; i++) {
        trt_input_slot *slot = &r->inputs[i];
        void *data = slot->tensor.data;
        if (slot->on_host)
            continue; /* already bound in place */
        if (slot->tensor.device.device_type == kDLCPU) {
            size_t size = kelp_tensor_bytes(&slot->tensor);
            KELP_TRY(grow_device(r, size, &slot->own, &slot->own_bytes));
            KELP_TRY(kelp_cuda_upload(e->cuda, slot->own, data, size, stream));
            data = slot->own;
        }
        KELP_TRY(trt_check(
            r->log, trt_context_set_tensor_address(e->m, r->context, trt_input_name(r, i), data),
            "binding an input"));
    }
    return NULL;
}

static kelp_status *request_memory(trt_running *r, size_t index, const kelp_tensor *output,
                                   void **out_data) {
    const trt_output_slot *slot = &r->outputs[index];
    size_t size = kelp_tensor_bytes(output);
    *out_data = slot->allocate(slot->allocate_userp, index, output, size);
    return *out_data != NULL || size == 0
               ? NULL
               : KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                            "the allocator of output '%s' returned no memory for %zu bytes",
                            trt_output_name(r, index), size);
}

/* Lets TensorRT write to the caller's device memory, if it is known before the run. */
static kelp_status *prepare_output(trt_running *r, size_t index) {
    const trt_loaded *e = r->engine;
    trt_output_slot *slot = &r->outputs[index];
    kelp_tensor output;
    slot->shape = (trt_dims){.rank = -1};
    slot->target = slot->on_device ? slot->user_data : NULL;
    slot->target_bytes = slot->target != NULL ? slot->user_bytes : 0;
    if (!slot->on_device || slot->allocate == NULL)
        return NULL;
    trt_dims dims = trt_context_get_tensor_shape(e->m, r->context, trt_output_name(r, index));
    fill_output(r, index, &dims, &output);
    if (output.rank < 0)
        return NULL; /* requested when the run has computed the shape */
    KELP_TRY(request_memory(r, index, &output, &slot->target));
    slot->target_bytes = kelp_tensor_bytes(&output);
    return NULL;
}

kelp_status *trt_context_start(trt_running *r, trt_stream stream) {
    const trt_loaded *e = r->engine;
    KELP_ASSERT(r->context != NULL && r->failure == NULL);
    KELP_TRY(kelp_cuda_use(e->cuda, e->device));
    KELP_TRY(check_bound(r));
    trt_log_clear(r->log);
    r->profiled_layers = 0;
    KELP_TRY(copy_inputs(r, stream));
    for (size_t i = 0; i < e->output_count; i++)
        KELP_TRY(prepare_output(r, i));
    if (trt_context_enqueue_v3(e->m, r->context, stream))
        return NULL;
    kelp_status *status = r->failure;
    r->failure = NULL;
    if (status == NULL)
        return trt_log_failure(r->log, KELP_INTERNAL, "TensorRT: the run failed");
    trt_log_clear(r->log);
    return KELP_ANNOTATE(status, "TensorRT: the run failed");
}

/* Copies an output on the device, if its memory could not be requested before the run. */
static kelp_status *fetch_on_device(trt_running *r, size_t index, trt_stream stream,
                                    kelp_tensor *out) {
    const trt_output_slot *slot = &r->outputs[index];
    out->data = slot->target != NULL ? slot->target : slot->own;
    if (slot->allocate == NULL || slot->target != NULL)
        return NULL;
    KELP_TRY(request_memory(r, index, out, &out->data));
    return kelp_cuda_copy(r->engine->cuda, out->data, slot->own, kelp_tensor_bytes(out), stream);
}

kelp_status *trt_context_fetch(trt_running *r, size_t index, trt_stream stream, kelp_tensor *out) {
    trt_output_slot *slot = &r->outputs[index];
    if (slot->shape.rank < 0) /* TensorRT did not report it, since it was known before */
        slot->shape =
            trt_context_get_tensor_shape(r->engine->m, r->context, trt_output_name(r, index));
    fill_output(r, index, &slot->shape, out);
    if (out->rank < 0)
        return KELP_ERROR(KELP_INTERNAL, "TensorRT: output '%s' has no shape after the run",
                          trt_output_name(r, index));
    if (slot->on_device)
        return fetch_on_device(r, index, stream, out);
    size_t size = kelp_tensor_bytes(out);
    void *data = slot->user_data;
    if (data != NULL && size > slot->user_bytes)
        return KELP_ERROR(KELP_OUT_OF_RANGE,
                          "the memory bound to output '%s' is too small: expected %zu bytes, found "
                          "%zu",
                          trt_output_name(r, index), size, slot->user_bytes);
    if (slot->allocate != NULL)
        KELP_TRY(request_memory(r, index, out, &data));
    else if (data == NULL && !slot->on_host)
        KELP_TRY(grow_host(r, size, &slot->own_data, &slot->own_data_bytes));
    out->data = data != NULL ? data : slot->own_data;
    if (size == 0 || out->data == NULL)
        return NULL;
    if (!slot->on_host)
        return kelp_cuda_download(r->engine->cuda, out->data, slot->own, size, stream);
    if (data != NULL)
        memcpy(data, slot->own_data, size);
    return NULL;
}

kelp_status *trt_context_run(void *context, kelp_tensor *out_outputs) {
    trt_running *r = context;
    const trt_loaded *e = r->engine;
    kelp_status *status = trt_context_start(r, r->stream);
    if (status == NULL) /* afterwards, shapes that depend on data are known */
        status = kelp_cuda_stream_wait(e->cuda, r->stream);
    for (size_t i = 0; status == NULL && i < e->output_count; i++)
        status = trt_context_fetch(r, i, r->stream, &out_outputs[i]);
    kelp_status *waited =
        kelp_cuda_stream_wait(e->cuda, r->stream); /* bound memory may be freed after this */
    if (status == NULL)
        return waited;
    kelp_status_free(waited);
    return status;
}

kelp_status *trt_context_run_on(void *context, void *native_stream) {
    trt_running *r = context;
    const trt_loaded *e = r->engine;
    kelp_tensor output;
    for (size_t i = 0; i < e->output_count; i++)
        if (r->outputs[i].user_data == NULL || r->outputs[i].on_host)
            return KELP_ERROR(KELP_FAILED_PRECONDITION,
                              "output '%s' is not bound: a stream requires device or host memory",
                              trt_output_name(r, i));
    KELP_TRY(trt_context_start(r, native_stream));
    for (size_t i = 0; i < e->output_count; i++) {
        trt_dims dims = trt_context_get_tensor_shape(e->m, r->context, trt_output_name(r, i));
        fill_output(r, i, &dims, &output);
        if (output.rank < 0)
            return KELP_ERROR(
                KELP_FAILED_PRECONDITION,
                "the shape of output '%s' depends on data: run the context without a stream",
                trt_output_name(r, i));
        KELP_TRY(trt_context_fetch(r, i, native_stream, &output));
    }
    return NULL;
}
