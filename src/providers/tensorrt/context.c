/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of TensorRT's engines: a stream of their own, device memory for what is bound in the
 * host's. Inputs in the host's memory are copied to the device, those on the device are used where
 * they are; outputs are asked for through an allocator, since the sizes of some are known only
 * when they are computed, and copied back.
 *
 * Threads: one at a time for a context, whichever it is; each call makes the device current.
 */
#include "base/alloc.h"
#include "base/checked.h"
#include "providers/tensorrt/engine.h"

#include <kelp/dlpack.h>

#include <stdlib.h>
#include <string.h>

#define HOST_ALIGNMENT 64

typedef struct input_slot {
    kelp_tensor tensor;
    bool is_bound, on_host; /* on_host: TensorRT reads it there, to work out shapes */
    trt_cuda_pointer own;
    size_t own_bytes;
} input_slot;

typedef struct output_slot {
    struct running *context;
    trt_output_memory memory;
    bool on_host;
    trt_cuda_pointer own; /* or, on_host, own_data only */
    size_t own_bytes;
    void *own_data, *user_data;
    size_t own_data_bytes, user_bytes;
    trt_dims shape; /* of this run */
} output_slot;

typedef struct running {
    trt_loaded *engine; /* the kelp_context keeps it */
    trt_log *log;
    trt_context *context;
    trt_stream stream;
    input_slot *inputs;
    output_slot *outputs;
    kelp_status *failure; /* of an allocation while TensorRT was running */
} running;

static const char *input_name(const running *r, size_t index) {
    return r->engine->inputs[index].name;
}

static const char *output_name(const running *r, size_t index) {
    return r->engine->outputs[index].name;
}

/* ---- memory ---- */
/* What is too small goes; a driver waits until nobody uses it. */
static kelp_status *grow_device(const running *r, size_t size_bytes, trt_cuda_pointer *inout,
                                size_t *inout_bytes) {
    if (size_bytes == 0)
        size_bytes = 1; /* an address is needed even for nothing */
    if (*inout != 0 && *inout_bytes >= size_bytes)
        return NULL;
    if (*inout != 0)
        KELP_TRY(trt_cuda_free(r->engine->cuda, *inout));
    *inout = 0;
    *inout_bytes = 0;
    KELP_TRY(trt_cuda_alloc(r->engine->cuda, size_bytes, inout));
    *inout_bytes = size_bytes;
    return NULL;
}

static kelp_status *grow_host(const running *r, size_t size_bytes, void **inout,
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

/* Called by TensorRT while it enqueues, on the same thread. */
static void *give_output(void *userp, const char *tensor, void *current, uint64_t size,
                         uint64_t alignment, trt_stream stream) {
    output_slot *slot = userp;
    running *r = slot->context;
    (void)tensor, (void)current, (void)alignment, (void)stream; /* 256 bytes are always enough */
    kelp_status *status = slot->on_host
                              ? grow_host(r, (size_t)size, &slot->own_data, &slot->own_data_bytes)
                              : grow_device(r, (size_t)size, &slot->own, &slot->own_bytes);
    if (status != NULL) {
        kelp_status_free(r->failure);
        r->failure = status;
        return NULL;
    }
    return slot->on_host ? slot->own_data : (void *)(uintptr_t)slot->own;
}

static void take_shape(void *userp, const char *tensor, const trt_dims *dims) {
    (void)tensor;
    ((output_slot *)userp)->shape = *dims;
}

/* ---- life ---- */
void trt_context_free(void *userp) {
    running *r = userp;
    const trt_loaded *e = r->engine;
    kelp_status_free(trt_cuda_use(e->cuda, e->device));
    if (r->stream != NULL)
        kelp_status_free(trt_cuda_stream_wait(e->cuda, r->stream));
    trt_destroy(r->context);
    for (size_t i = 0; r->inputs != NULL && i < e->input_count; i++)
        if (r->inputs[i].own != 0)
            kelp_status_free(trt_cuda_free(e->cuda, r->inputs[i].own));
    for (size_t i = 0; r->outputs != NULL && i < e->output_count; i++) {
        if (r->outputs[i].own != 0)
            kelp_status_free(trt_cuda_free(e->cuda, r->outputs[i].own));
        kelp_free_aligned(e->allocator, r->outputs[i].own_data, r->outputs[i].own_data_bytes,
                          HOST_ALIGNMENT);
    }
    if (r->stream != NULL)
        trt_cuda_stream_destroy(e->cuda, r->stream);
    kelp_free(e->allocator, r->inputs, e->input_count * sizeof *r->inputs);
    kelp_free(e->allocator, r->outputs, e->output_count * sizeof *r->outputs);
    trt_log_destroy(r->log);
    kelp_status_free(r->failure);
    kelp_free(e->allocator, r, sizeof *r);
}

static kelp_status *open_context(running *r) {
    trt_loaded *e = r->engine;
    KELP_TRY(trt_cuda_use(e->cuda, e->device));
    KELP_TRY(trt_log_create(e->allocator, TRT_SEVERITY_INFO, NULL, NULL, &r->log));
    KELP_TRY(kelp_alloc_zero(e->allocator, e->input_count, sizeof *r->inputs, (void **)&r->inputs));
    KELP_TRY(
        kelp_alloc_zero(e->allocator, e->output_count, sizeof *r->outputs, (void **)&r->outputs));
    KELP_TRY(trt_cuda_stream_create(e->cuda, &r->stream));
    trt_log_clear(e->log);
    r->context = trt_engine_create_execution_context(
        e->m, e->engine, TRT_EXECUTION_CONTEXT_ALLOCATION_STRATEGY_STATIC);
    if (r->context == NULL)
        return trt_log_failure(e->log, KELP_RESOURCE_EXHAUSTED, "TensorRT: cannot make a context");
    trt_context_set_error_recorder(e->m, r->context, trt_log_recorder(r->log));
    for (size_t i = 0; i < e->input_count; i++)
        r->inputs[i].on_host = trt_engine_get_tensor_location(e->m, e->engine, input_name(r, i)) ==
                               TRT_TENSOR_LOCATION_HOST;
    for (size_t i = 0; i < e->output_count; i++) {
        output_slot *slot = &r->outputs[i];
        slot->context = r;
        slot->on_host = trt_engine_get_tensor_location(e->m, e->engine, output_name(r, i)) ==
                        TRT_TENSOR_LOCATION_HOST;
        trt_output_memory_init(e->m, &slot->memory);
        slot->memory.reallocate = give_output;
        slot->memory.shape = take_shape;
        slot->memory.userp = slot;
        KELP_TRY(trt_check(r->log,
                           trt_context_set_output_allocator(e->m, r->context, output_name(r, i),
                                                            TRT_OUTPUT_MEMORY(&slot->memory)),
                           "taking an allocator of outputs"));
    }
    return NULL;
}

kelp_status *trt_context_new(void *engine, void **out) {
    trt_loaded *e = engine;
    running *r = NULL;
    KELP_TRY(KELP_NEW(e->allocator, running, &r));
    r->engine = e;
    kelp_status *status = open_context(r);
    if (status != NULL) {
        trt_context_free(r);
        return status;
    }
    *out = r;
    return NULL;
}

kelp_status *trt_context_profile(void *context, size_t profile) {
    running *r = context;
    const trt_loaded *e = r->engine;
    KELP_TRY(trt_cuda_use(e->cuda, e->device));
    if (profile > INT32_MAX)
        return KELP_ERROR(KELP_OUT_OF_RANGE, "there is no profile %zu", profile);
    trt_log_clear(r->log);
    if (!trt_context_set_optimization_profile_async(e->m, r->context, (int32_t)profile, r->stream))
        return trt_log_failure(r->log, KELP_INVALID_ARGUMENT, "TensorRT: profile %zu is refused",
                               profile);
    /* Shapes are forgotten; what does not fit this profile is no longer bound. */
    for (size_t i = 0; i < e->input_count; i++) {
        input_slot *slot = &r->inputs[i];
        trt_dims dims = {.rank = -1};
        if (slot->is_bound)
            KELP_TRY(trt_dims_from((size_t)slot->tensor.rank, slot->tensor.shape, &dims));
        slot->is_bound = slot->is_bound &&
                         trt_context_set_input_shape(e->m, r->context, input_name(r, i), &dims);
    }
    trt_log_clear(r->log);
    return trt_cuda_stream_wait(e->cuda, r->stream);
}

/* ---- binding ---- */
kelp_status *trt_context_bind_input(void *context, size_t index, const kelp_tensor *tensor) {
    running *r = context;
    const trt_loaded *e = r->engine;
    input_slot *slot = &r->inputs[index];
    const char *name = input_name(r, index);
    trt_dims dims;
    bool in_host = tensor->device.device_type == kDLCPU;
    KELP_TRY(trt_cuda_use(e->cuda, e->device));
    if (!kelp_tensor_is_compact(tensor) ||
        (tensor->data == NULL && kelp_tensor_elements(tensor) > 0))
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s' must have data and be compact", name);
    if (!in_host && (slot->on_host || tensor->device.device_type != kDLCUDA ||
                     tensor->device.device_id != e->device))
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "input '%s' must be in host memory%s: found device %d of type %d", name,
                          slot->on_host ? "" : ", or on the engine's device",
                          (int)tensor->device.device_id, (int)tensor->device.device_type);
    KELP_TRY(trt_dims_from((size_t)tensor->rank, tensor->shape, &dims));
    trt_log_clear(r->log);
    if (!trt_context_set_input_shape(e->m, r->context, name, &dims)) {
        char shape[160];
        trt_dims_format(&dims, shape, sizeof shape);
        return trt_log_failure(r->log, KELP_INVALID_ARGUMENT,
                               "TensorRT: the shape %s of input '%s' is refused", shape, name);
    }
    if (slot->on_host)
        KELP_TRY(trt_check(r->log,
                           trt_context_set_tensor_address(e->m, r->context, name, tensor->data),
                           "binding an input"));
    slot->tensor = *tensor;
    slot->is_bound = true;
    return NULL;
}

kelp_status *trt_context_bind_output(void *context, size_t index, void *data,
                                     size_t capacity_bytes) {
    running *r = context;
    r->outputs[index].user_data = data;
    r->outputs[index].user_bytes = capacity_bytes;
    return NULL;
}

static kelp_status *check_bound(const running *r) {
    for (size_t i = 0; i < r->engine->input_count; i++)
        if (!r->inputs[i].is_bound)
            return KELP_ERROR(KELP_FAILED_PRECONDITION, "input '%s' is not bound",
                              input_name(r, i));
    return NULL;
}

/* What an output is; rank -1 when only running tells. */
static void fill_output(const running *r, size_t index, const trt_dims *dims, kelp_tensor *out) {
    *out = (kelp_tensor){.dtype = r->engine->outputs[index].dtype,
                         .rank = dims->rank,
                         .device = {.device_type = kDLCPU}};
    for (int32_t i = 0; i < dims->rank && i < TRT_MAX_DIMS; i++) {
        out->shape[i] = dims->d[i];
        if (dims->d[i] < 0)
            out->rank = -1;
    }
}

kelp_status *trt_context_shapes(void *context, kelp_tensor *out_outputs) {
    running *r = context;
    const trt_loaded *e = r->engine;
    const char *missing = NULL;
    KELP_TRY(trt_cuda_use(e->cuda, e->device));
    KELP_TRY(check_bound(r));
    trt_log_clear(r->log);
    if (trt_context_infer_shapes(e->m, r->context, 1, &missing) != 0)
        return trt_log_failure(
            r->log, KELP_INVALID_ARGUMENT, "TensorRT: cannot work out the shapes%s%s",
            missing != NULL ? ": it lacks input " : "", missing != NULL ? missing : "");
    for (size_t i = 0; i < e->output_count; i++) {
        trt_dims dims = trt_context_get_tensor_shape(e->m, r->context, output_name(r, i));
        fill_output(r, i, &dims, &out_outputs[i]);
    }
    return NULL;
}

/* ---- running ---- */
static kelp_status *place_inputs(running *r, trt_stream stream) {
    const trt_loaded *e = r->engine;
    for (size_t i = 0; i < e->input_count; i++) {
        input_slot *slot = &r->inputs[i];
        void *data = slot->tensor.data;
        if (slot->on_host)
            continue; /* bound where it is */
        if (slot->tensor.device.device_type == kDLCPU) {
            size_t size = kelp_tensor_bytes(&slot->tensor);
            KELP_TRY(grow_device(r, size, &slot->own, &slot->own_bytes));
            if (size > 0)
                KELP_TRY(trt_cuda_upload(e->cuda, slot->own, data, size, stream));
            data = (void *)(uintptr_t)slot->own;
        }
        KELP_TRY(trt_check(r->log,
                           trt_context_set_tensor_address(e->m, r->context, input_name(r, i), data),
                           "binding an input"));
    }
    return NULL;
}

static kelp_status *start(running *r, trt_stream stream) {
    const trt_loaded *e = r->engine;
    KELP_TRY(trt_cuda_use(e->cuda, e->device));
    KELP_TRY(check_bound(r));
    trt_log_clear(r->log);
    for (size_t i = 0; i < e->output_count; i++)
        r->outputs[i].shape = (trt_dims){.rank = -1};
    KELP_TRY(place_inputs(r, stream));
    if (trt_context_enqueue_v3(e->m, r->context, stream))
        return NULL;
    kelp_status *status = r->failure;
    r->failure = NULL;
    if (status == NULL)
        return trt_log_failure(r->log, KELP_INTERNAL, "TensorRT: the run failed");
    trt_log_clear(r->log);
    return KELP_ANNOTATE(status, "TensorRT: the run failed");
}

/* Where an output goes, and its way there put into the stream. */
static kelp_status *fetch_output(running *r, size_t index, trt_stream stream, kelp_tensor *out) {
    output_slot *slot = &r->outputs[index];
    if (slot->shape.rank < 0) /* it was known before, so that nobody told */
        slot->shape = trt_context_get_tensor_shape(r->engine->m, r->context, output_name(r, index));
    fill_output(r, index, &slot->shape, out);
    if (out->rank < 0)
        return KELP_ERROR(KELP_INTERNAL, "TensorRT: output '%s' has no shape after the run",
                          output_name(r, index));
    size_t size = kelp_tensor_bytes(out);
    void *data = slot->user_data;
    if (data != NULL && size > slot->user_bytes)
        return KELP_ERROR(KELP_OUT_OF_RANGE,
                          "output '%s' takes %zu bytes, the memory that was bound has %zu",
                          output_name(r, index), size, slot->user_bytes);
    if (data == NULL && !slot->on_host)
        KELP_TRY(grow_host(r, size, &slot->own_data, &slot->own_data_bytes));
    out->data = data != NULL ? data : slot->own_data;
    if (size == 0 || out->data == NULL)
        return NULL;
    if (!slot->on_host)
        return trt_cuda_download(r->engine->cuda, out->data, slot->own, size, stream);
    if (data != NULL)
        memcpy(data, slot->own_data, size);
    return NULL;
}

kelp_status *trt_context_run(void *context, kelp_tensor *out_outputs) {
    running *r = context;
    const trt_loaded *e = r->engine;
    kelp_status *status = start(r, r->stream);
    if (status == NULL) /* shapes that depend on data are known then */
        status = trt_cuda_stream_wait(e->cuda, r->stream);
    for (size_t i = 0; status == NULL && i < e->output_count; i++)
        status = fetch_output(r, i, r->stream, &out_outputs[i]);
    kelp_status *waited = trt_cuda_stream_wait(e->cuda, r->stream); /* what is bound may go */
    if (status == NULL)
        return waited;
    kelp_status_free(waited);
    return status;
}

kelp_status *trt_context_run_on(void *context, void *native_stream) {
    running *r = context;
    const trt_loaded *e = r->engine;
    kelp_tensor output;
    for (size_t i = 0; i < e->output_count; i++)
        if (r->outputs[i].user_data == NULL || r->outputs[i].on_host)
            return KELP_ERROR(KELP_FAILED_PRECONDITION,
                              "output '%s' must be bound to be put on a stream", output_name(r, i));
    KELP_TRY(start(r, native_stream));
    for (size_t i = 0; i < e->output_count; i++) {
        trt_dims dims = trt_context_get_tensor_shape(e->m, r->context, output_name(r, i));
        fill_output(r, i, &dims, &output);
        if (output.rank < 0)
            return KELP_ERROR(KELP_FAILED_PRECONDITION,
                              "output '%s' has a shape that only the run tells: invoke instead",
                              output_name(r, i));
        KELP_TRY(fetch_output(r, i, native_stream, &output));
    }
    return NULL;
}
