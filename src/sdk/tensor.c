/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of tensors from and to Triton's serialized form: compact, and strings are preceded by
 * their length. */
#include "sdk/sdk.h"

/* Returns the name of a type as in the inference protocol. */
static const char *type_name(kelp_dtype dtype) {
    const char *name = kelp_dtype_triton_name(dtype);
    return name != NULL ? name : kelp_dtype_name(dtype);
}

DLDevice kelp_sdk_device_of(kelp_backend_memory memory) {
    switch (memory.type) {
    case TRITONSERVER_MEMORY_GPU:
        return (DLDevice){kDLCUDA, (int32_t)memory.id};
    case TRITONSERVER_MEMORY_CPU_PINNED:
        return (DLDevice){kDLCUDAHost, 0};
    case TRITONSERVER_MEMORY_CPU:
        break;
    }
    return (DLDevice){kDLCPU, 0};
}

kelp_status *kelp_sdk_not_on_host(const char *what, const char *name, int64_t id) {
    return KELP_ERROR(KELP_UNIMPLEMENTED,
                      "%s '%s' is in the memory of GPU %lld: expected host memory", what, name,
                      (long long)id);
}

kelp_status *kelp_sdk_check(const char *what, const char *name, kelp_dtype dtype, int64_t rank,
                            kelp_dtype expected_dtype, int32_t expected_rank) {
    if (expected_dtype != KELP_DTYPE_INVALID && dtype != expected_dtype)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s '%s': expected type %s, found %s", what, name,
                          type_name(expected_dtype), type_name(dtype));
    if (expected_rank != KELP_ANY_RANK && rank != expected_rank)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "%s '%s': expected %d dimensions, found %lld",
                          what, name, expected_rank, (long long)rank);
    if (rank > KELP_MAX_RANK)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "%s '%s' has %lld dimensions: at most %d are supported", what, name,
                          (long long)rank, KELP_MAX_RANK);
    return NULL;
}

static kelp_status *bad_size(const char *what, const char *name, uint64_t found,
                             const kelp_tensor *tensor, const char *why) {
    char shape[256];
    kelp_shape_format(tensor->rank, tensor->shape, shape, sizeof shape);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "%s '%s' has the wrong size: %llu bytes for %s elements %s%s", what, name,
                      (unsigned long long)found, type_name(tensor->dtype), shape, why);
}

/* Parses serialized strings. */
static kelp_status *read_strings(kelp_arena *arena, const char *what, const char *name,
                                 const char *data, uint64_t size_bytes, kelp_tensor *tensor) {
    int64_t count = kelp_tensor_elements(tensor);
    /* Each string has at least a length: this limits the allocation by the received bytes. */
    if ((uint64_t)count > size_bytes / 4)
        return bad_size(what, name, size_bytes, tensor, ", each preceded by its length in 4 bytes");
    kelp_string *strings = KELP_ARENA_ARRAY(arena, (size_t)count, kelp_string);
    if (strings == NULL)
        return kelp_status_oom();
    uint64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t length;
        if (size_bytes - at < 4)
            return bad_size(what, name, size_bytes, tensor, ": too few");
        memcpy(&length, data + at, 4);
        at += 4;
        if (length > size_bytes - at)
            return bad_size(what, name, size_bytes, tensor,
                            ": a string exceeds the remaining bytes");
        strings[i] = (kelp_string){data + at, length};
        at += length;
    }
    if (at != size_bytes)
        return bad_size(what, name, size_bytes, tensor, ": too many");
    tensor->data = strings;
    return NULL;
}

kelp_status *kelp_sdk_tensor_from_wire(kelp_arena *arena, const char *what, const char *name,
                                       kelp_dtype dtype, int64_t rank, const int64_t *shape,
                                       const void *data, uint64_t size_bytes, kelp_tensor *out) {
    kelp_tensor tensor;
    KELP_ASSERT(rank >= 0 && rank <= KELP_MAX_RANK); /* kelp_sdk_check checked it */
    kelp_status *status =
        kelp_tensor_init(&tensor, dtype, (int32_t)rank, shape, (void *)(uintptr_t)data);
    if (status != NULL)
        return KELP_ANNOTATE(status, "%s '%s'", what, name);
    tensor.flags |= KELP_TENSOR_READ_ONLY;
    if (dtype == KELP_STRING)
        KELP_TRY(read_strings(arena, what, name, data, size_bytes, &tensor));
    else if (kelp_tensor_bytes(&tensor) != size_bytes)
        return bad_size(what, name, size_bytes, &tensor, "");
    *out = tensor;
    return NULL;
}

/* ---- writing ---- */

/* Visits a run of contiguous elements. */
typedef void (*run_fn)(void *userp, const char *data, size_t elements);

/* Calls `visit` for each run of contiguous elements, in row-major order. */
static void each_run(const kelp_tensor *tensor, run_fn visit, void *userp) {
    int64_t index[KELP_MAX_RANK] = {0};
    size_t element =
        tensor->dtype == KELP_STRING ? sizeof(kelp_string) : kelp_dtype_bits(tensor->dtype) / 8;
    int32_t outer = tensor->rank; /* dimensions before the run */
    int64_t run = 1;
    if (kelp_tensor_elements(tensor) == 0)
        return;
    while (outer > 0 && (tensor->strides[outer - 1] == run || tensor->shape[outer - 1] == 1))
        run *= tensor->shape[--outer];
    for (;;) {
        int64_t offset = 0;
        for (int32_t i = 0; i < outer; i++)
            offset += index[i] * tensor->strides[i];
        visit(userp, (const char *)tensor->data + offset * (int64_t)element, (size_t)run);
        int32_t at = outer - 1;
        while (at >= 0 && ++index[at] == tensor->shape[at])
            index[at--] = 0;
        if (at < 0)
            return;
    }
}

typedef struct wire {
    char *at;
    size_t element_bytes;
    size_t size_bytes;
    bool too_long;
} wire;

static void measure_strings(void *userp, const char *data, size_t elements) {
    const kelp_string *strings = (const kelp_string *)(const void *)data;
    wire *w = userp;
    for (size_t i = 0; i < elements; i++)
        w->too_long |= strings[i].length > UINT32_MAX ||
                       !kelp_size_add(w->size_bytes, 4 + strings[i].length, &w->size_bytes);
}

static void write_strings(void *userp, const char *data, size_t elements) {
    const kelp_string *strings = (const kelp_string *)(const void *)data;
    wire *w = userp;
    for (size_t i = 0; i < elements; i++) {
        uint32_t length = (uint32_t)strings[i].length;
        memcpy(w->at, &length, 4);
        if (length)
            memcpy(w->at + 4, strings[i].data, length);
        w->at += 4 + (size_t)length;
    }
}

static void write_elements(void *userp, const char *data, size_t elements) {
    wire *w = userp;
    memcpy(w->at, data, elements * w->element_bytes);
    w->at += elements * w->element_bytes;
}

static bool is_on_host(const kelp_tensor *tensor) {
    return tensor->device.device_type == kDLCPU || tensor->device.device_type == kDLCUDAHost;
}

kelp_status *kelp_sdk_wire_bytes(const kelp_tensor *tensor, size_t *out) {
    wire w = {0};
    if (!is_on_host(tensor))
        return KELP_ERROR(KELP_UNIMPLEMENTED,
                          "the tensor is on a device of type %d: expected host memory",
                          (int)tensor->device.device_type);
    if (tensor->dtype != KELP_STRING) {
        *out = kelp_tensor_bytes(tensor);
        return NULL;
    }
    each_run(tensor, measure_strings, &w);
    if (w.too_long)
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "a string is too long: at most 4294967295 bytes are supported");
    *out = w.size_bytes;
    return NULL;
}

void kelp_sdk_wire_write(const kelp_tensor *tensor, void *out) {
    wire w = {.at = out};
    KELP_ASSERT(is_on_host(tensor)); /* kelp_sdk_wire_bytes checked it */
    if (tensor->dtype == KELP_STRING) {
        each_run(tensor, write_strings, &w);
        return;
    }
    w.element_bytes = kelp_dtype_bits(tensor->dtype) / 8;
    each_run(tensor, write_elements, &w);
}

kelp_status *kelp_backend_slice(const kelp_tensor *tensor, int32_t axis, int64_t begin, int64_t end,
                                kelp_tensor *out) {
    if (axis < 0 || axis >= tensor->rank || begin < 0 || begin > end || end > tensor->shape[axis])
        return KELP_ERROR(
            KELP_OUT_OF_RANGE,
            "a tensor with %d dimensions has no range [%lld, %lld) along dimension %d",
            tensor->rank, (long long)begin, (long long)end, axis);
    size_t element = kelp_dtype_bits(tensor->dtype) / 8;
    *out = *tensor;
    out->shape[axis] = end - begin;
    if (out->data != NULL)
        out->data = (char *)out->data + begin * tensor->strides[axis] * (int64_t)element;
    return NULL;
}
