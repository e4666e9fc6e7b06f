/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the CUDA driver's functions by name, and describes its errors. */
#include <kelp/cuda.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/dl.h"
#include "base/domain.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(void *) == sizeof(uint64_t), "a CUdeviceptr is an unsigned long long");

#define MAX_DEVICES 64
#define OUT_OF_MEMORY 2
#define NO_DEVICE 100
#define STREAM_NON_BLOCKING 1u
#define CAPTURE_THREAD_LOCAL 1
#define COMPUTE_MAJOR 75 /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
#define COMPUTE_MINOR 76

/* X(field, symbol, parameters): all functions return a CUresult. A CUdeviceptr has 64 bits like a
 * pointer, and is passed as one. */
#define DRIVER(X)                                                                              \
    X(init, "cuInit", (unsigned flags))                                                        \
    X(driver_version, "cuDriverGetVersion", (int *out))                                        \
    X(error_name, "cuGetErrorName", (int code, const char **out))                              \
    X(error_string, "cuGetErrorString", (int code, const char **out))                          \
    X(device_count, "cuDeviceGetCount", (int *out))                                            \
    X(device_get, "cuDeviceGet", (int *out, int ordinal))                                      \
    X(device_name, "cuDeviceGetName", (char *out, int length, int device))                     \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t * out, int device))                        \
    X(device_attribute, "cuDeviceGetAttribute", (int *out, int attribute, int device))         \
    X(context_retain, "cuDevicePrimaryCtxRetain", (void **out, int device))                    \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                           \
    X(context_set, "cuCtxSetCurrent", (void *context))                                         \
    X(memory_alloc, "cuMemAlloc_v2", (void **out, size_t size))                                \
    X(memory_free, "cuMemFree_v2", (void *pointer))                                            \
    X(host_alloc, "cuMemAllocHost_v2", (void **out, size_t size))                              \
    X(host_free, "cuMemFreeHost", (void *pointer))                                             \
    X(memory_info, "cuMemGetInfo_v2", (size_t * free_bytes, size_t * total_bytes))             \
    X(upload, "cuMemcpyHtoDAsync_v2", (void *to, const void *from, size_t size, void *s))      \
    X(download, "cuMemcpyDtoHAsync_v2", (void *to, const void *from, size_t size, void *s))    \
    X(copy, "cuMemcpyDtoDAsync_v2", (void *to, const void *from, size_t size, void *s))        \
    X(fill, "cuMemsetD8Async", (void *to, unsigned char value, size_t count, void *s))         \
    X(stream_create, "cuStreamCreate", (void **out, unsigned flags))                           \
    X(stream_wait, "cuStreamSynchronize", (void *stream))                                      \
    X(stream_destroy, "cuStreamDestroy_v2", (void *stream))                                    \
    X(stream_wait_event, "cuStreamWaitEvent", (void *stream, void *event, unsigned flags))     \
    X(event_create, "cuEventCreate", (void **out, unsigned flags))                             \
    X(event_record, "cuEventRecord", (void *event, void *stream))                              \
    X(event_wait, "cuEventSynchronize", (void *event))                                         \
    X(event_elapsed, "cuEventElapsedTime", (float *out, void *begin, void *end))               \
    X(event_destroy, "cuEventDestroy_v2", (void *event))                                       \
    X(capture_begin, "cuStreamBeginCapture_v2", (void *stream, int mode))                      \
    X(capture_end, "cuStreamEndCapture", (void *stream, void **out))                           \
    X(graph_instantiate, "cuGraphInstantiateWithFlags", (void **out, void *graph, uint64_t f)) \
    X(graph_launch, "cuGraphLaunch", (void *graph, void *stream))                              \
    X(graph_destroy, "cuGraphDestroy", (void *graph))                                          \
    X(graph_exec_destroy, "cuGraphExecDestroy", (void *graph))

struct kelp_cuda {
    kelp_allocator allocator;
    kelp_dl dl; /* stays loaded: TensorRT also uses it */
    int version, count;
    pthread_mutex_t lock;
    void *contexts[MAX_DEVICES]; /* retained; NULL until used */
#define X(field, symbol, parameters) int(*field) parameters;
    DRIVER(X)
#undef X
};

/* The driver's names of the functions, for error messages. */
static const struct {
#define X(field, symbol, parameters) const char *field;
    DRIVER(X)
#undef X
} symbols = {
#define X(field, symbol, parameters) .field = symbol,
    DRIVER(X)
#undef X
};

#define DEVICE_ERROR(code, ...) kelp_in_domain(KELP_ERROR((code), __VA_ARGS__), KELP_DOMAIN_DEVICE)

static kelp_status *failed(const kelp_cuda *cuda, int code, const char *call) {
    const char *name = NULL, *words = NULL;
    if (code == 0)
        return NULL;
    (void)cuda->error_name(code, &name); /* on failure, the message has the number only */
    (void)cuda->error_string(code, &words);
    return DEVICE_ERROR(code == OUT_OF_MEMORY ? KELP_RESOURCE_EXHAUSTED : KELP_UNAVAILABLE,
                        "CUDA: %s failed: %s (%d, %s)", call,
                        words != NULL ? words : "no description", code,
                        name != NULL ? name : "unknown");
}
#define CUDA_STATUS(cuda, field, ...) failed((cuda), (cuda)->field(__VA_ARGS__), symbols.field)

static kelp_status *load(kelp_cuda *cuda) {
    static const struct {
        const char *symbol;
        size_t offset;
    } functions[] = {
#define X(field, symbol, parameters) {symbol, offsetof(kelp_cuda, field)},
        DRIVER(X)
#undef X
    };
    const char *path = getenv("KELP_CUDA_LIBRARY");
    path = path != NULL && *path != '\0' ? path : "libcuda.so.1";
    kelp_status *status = kelp_dl_open(path, &cuda->dl);
    if (status != NULL) {
        kelp_status *unavailable = DEVICE_ERROR(
            KELP_UNAVAILABLE,
            "there is no NVIDIA driver, which is required to run on a GPU (install the "
            "driver for your GPU; building ahead of time does not require it): %s",
            kelp_status_message(status));
        kelp_status_free(status);
        return unavailable;
    }
    for (size_t i = 0; i < KELP_COUNT(functions); i++) {
        void *address = kelp_dl_symbol(&cuda->dl, functions[i].symbol);
        if (address == NULL)
            return DEVICE_ERROR(KELP_UNAVAILABLE,
                                "NVIDIA's driver '%s' lacks %s: expected CUDA 11.4 or newer", path,
                                functions[i].symbol);
        memcpy((char *)cuda + functions[i].offset, &address, sizeof address);
    }
    return NULL;
}

static kelp_status *start(kelp_cuda *cuda) {
    KELP_TRY(load(cuda));
    (void)cuda->driver_version(&cuda->version); /* 0 if unknown */
    const char *call = symbols.init;
    int code = cuda->init(0);
    if (code == 0) {
        call = symbols.device_count;
        code = cuda->device_count(&cuda->count);
    }
    if (code == NO_DEVICE || (code == 0 && cuda->count == 0))
        return DEVICE_ERROR(KELP_UNAVAILABLE, "NVIDIA's driver (CUDA %d.%d) finds no GPU",
                            cuda->version / 1000, cuda->version % 1000 / 10);
    return failed(cuda, code, call);
}

kelp_status *kelp_cuda_open(kelp_allocator allocator, kelp_cuda **out) {
    kelp_cuda *cuda = NULL;
    *out = NULL;
    KELP_TRY(KELP_NEW(allocator, kelp_cuda, &cuda));
    cuda->allocator = allocator;
    if (pthread_mutex_init(&cuda->lock, NULL) != 0) {
        kelp_free(allocator, cuda, sizeof *cuda);
        return kelp_status_oom();
    }
    kelp_status *status = start(cuda);
    if (status != NULL) {
        kelp_cuda_destroy(cuda);
        return status;
    }
    *out = cuda;
    return NULL;
}

void kelp_cuda_destroy(kelp_cuda *cuda) {
    if (cuda == NULL)
        return;
    for (int i = 0; i < MAX_DEVICES; i++) {
        int device = 0;
        if (cuda->contexts[i] != NULL && cuda->device_get(&device, i) == 0)
            (void)cuda->context_release(device); /* a failure has no consequence here */
    }
    pthread_mutex_destroy(&cuda->lock);
    kelp_free(cuda->allocator, cuda, sizeof *cuda);
}

/* ---- devices ---- */
int kelp_cuda_driver_version(const kelp_cuda *cuda) {
    return cuda->version;
}

int kelp_cuda_device_count(const kelp_cuda *cuda) {
    return cuda->count;
}

static kelp_status *check_device(const kelp_cuda *cuda, int device) {
    if (device >= 0 && device < cuda->count && device < MAX_DEVICES)
        return NULL;
    return DEVICE_ERROR(KELP_OUT_OF_RANGE, "there is no GPU %d: expected 0 to %d", device,
                        KELP_MIN(cuda->count, MAX_DEVICES) - 1);
}

kelp_status *kelp_cuda_describe(const kelp_cuda *cuda, int device, kelp_cuda_device *out) {
    int handle = 0;
    *out = (kelp_cuda_device){0};
    KELP_TRY(check_device(cuda, device));
    KELP_TRY(CUDA_STATUS(cuda, device_get, &handle, device));
    KELP_TRY(CUDA_STATUS(cuda, device_name, out->name, (int)sizeof out->name, handle));
    KELP_TRY(CUDA_STATUS(cuda, device_memory, &out->memory_bytes, handle));
    KELP_TRY(CUDA_STATUS(cuda, device_attribute, &out->compute_major, COMPUTE_MAJOR, handle));
    KELP_TRY(CUDA_STATUS(cuda, device_attribute, &out->compute_minor, COMPUTE_MINOR, handle));
    return NULL;
}

static kelp_status *retain_context(kelp_cuda *cuda, int device, void **out) {
    kelp_status *status = NULL;
    KELP_ASSERT(device >= 0 && device < MAX_DEVICES);
    pthread_mutex_lock(&cuda->lock);
    if (cuda->contexts[device] == NULL) {
        int handle = 0;
        status = failed(cuda, cuda->device_get(&handle, device), symbols.device_get);
        if (status == NULL)
            status = failed(cuda, cuda->context_retain(&cuda->contexts[device], handle),
                            symbols.context_retain);
    }
    *out = cuda->contexts[device];
    KELP_ASSERT(status != NULL || *out != NULL);
    pthread_mutex_unlock(&cuda->lock);
    return status;
}

kelp_status *kelp_cuda_use(kelp_cuda *cuda, int device) {
    void *context = NULL;
    KELP_TRY(check_device(cuda, device));
    KELP_TRY(retain_context(cuda, device, &context));
    KELP_TRY(CUDA_STATUS(cuda, context_set, context));
    return NULL;
}

/* ---- memory ---- */
kelp_status *kelp_cuda_alloc(const kelp_cuda *cuda, size_t size_bytes, void **out) {
    *out = NULL;
    if (size_bytes == 0)
        return NULL;
    return failed(cuda, cuda->memory_alloc(out, size_bytes), "cuMemAlloc");
}

kelp_status *kelp_cuda_free(const kelp_cuda *cuda, void *pointer) {
    return pointer != NULL ? failed(cuda, cuda->memory_free(pointer), "cuMemFree") : NULL;
}

kelp_status *kelp_cuda_alloc_host(const kelp_cuda *cuda, size_t size_bytes, void **out) {
    *out = NULL;
    if (size_bytes == 0)
        return NULL;
    return failed(cuda, cuda->host_alloc(out, size_bytes), "cuMemAllocHost");
}

kelp_status *kelp_cuda_free_host(const kelp_cuda *cuda, void *pointer) {
    return pointer != NULL ? failed(cuda, cuda->host_free(pointer), "cuMemFreeHost") : NULL;
}

kelp_status *kelp_cuda_memory(const kelp_cuda *cuda, size_t *out_free_bytes,
                              size_t *out_total_bytes) {
    return failed(cuda, cuda->memory_info(out_free_bytes, out_total_bytes), "cuMemGetInfo");
}

kelp_status *kelp_cuda_upload(const kelp_cuda *cuda, void *to, const void *from, size_t size_bytes,
                              void *stream) {
    return size_bytes > 0
               ? failed(cuda, cuda->upload(to, from, size_bytes, stream), "cuMemcpyHtoDAsync")
               : NULL;
}

kelp_status *kelp_cuda_download(const kelp_cuda *cuda, void *to, const void *from,
                                size_t size_bytes, void *stream) {
    return size_bytes > 0
               ? failed(cuda, cuda->download(to, from, size_bytes, stream), "cuMemcpyDtoHAsync")
               : NULL;
}

kelp_status *kelp_cuda_copy(const kelp_cuda *cuda, void *to, const void *from, size_t size_bytes,
                            void *stream) {
    return size_bytes > 0
               ? failed(cuda, cuda->copy(to, from, size_bytes, stream), "cuMemcpyDtoDAsync")
               : NULL;
}

kelp_status *kelp_cuda_fill(const kelp_cuda *cuda, void *to, uint8_t value, size_t size_bytes,
                            void *stream) {
    return size_bytes > 0
               ? failed(cuda, cuda->fill(to, value, size_bytes, stream), "cuMemsetD8Async")
               : NULL;
}

/* ---- streams and events ---- */
kelp_status *kelp_cuda_stream_create(const kelp_cuda *cuda, void **out) {
    *out = NULL;
    return failed(cuda, cuda->stream_create(out, STREAM_NON_BLOCKING), "cuStreamCreate");
}

kelp_status *kelp_cuda_stream_wait(const kelp_cuda *cuda, void *stream) {
    return failed(cuda, cuda->stream_wait(stream), "cuStreamSynchronize");
}

void kelp_cuda_stream_destroy(const kelp_cuda *cuda, void *stream) {
    if (stream != NULL)
        (void)cuda->stream_destroy(stream); /* fails only after an earlier, reported failure */
}

kelp_status *kelp_cuda_event_create(const kelp_cuda *cuda, void **out) {
    *out = NULL;
    return failed(cuda, cuda->event_create(out, 0), "cuEventCreate");
}

kelp_status *kelp_cuda_event_record(const kelp_cuda *cuda, void *event, void *stream) {
    return failed(cuda, cuda->event_record(event, stream), "cuEventRecord");
}

kelp_status *kelp_cuda_event_wait(const kelp_cuda *cuda, void *event) {
    return failed(cuda, cuda->event_wait(event), "cuEventSynchronize");
}

kelp_status *kelp_cuda_stream_wait_event(const kelp_cuda *cuda, void *stream, void *event) {
    return failed(cuda, cuda->stream_wait_event(stream, event, 0), "cuStreamWaitEvent");
}

kelp_status *kelp_cuda_event_elapsed(const kelp_cuda *cuda, void *begin, void *end,
                                     float *out_milliseconds) {
    return failed(cuda, cuda->event_elapsed(out_milliseconds, begin, end), "cuEventElapsedTime");
}

void kelp_cuda_event_destroy(const kelp_cuda *cuda, void *event) {
    if (event != NULL)
        (void)cuda->event_destroy(event); /* see kelp_cuda_stream_destroy */
}

/* ---- graphs ---- */
kelp_status *kelp_cuda_capture_begin(const kelp_cuda *cuda, void *stream) {
    return failed(cuda, cuda->capture_begin(stream, CAPTURE_THREAD_LOCAL), "cuStreamBeginCapture");
}

kelp_status *kelp_cuda_capture_end(const kelp_cuda *cuda, void *stream, void **out) {
    void *graph = NULL;
    *out = NULL;
    kelp_status *status = failed(cuda, cuda->capture_end(stream, &graph), "cuStreamEndCapture");
    if (status == NULL)
        status = failed(cuda, cuda->graph_instantiate(out, graph, 0), "cuGraphInstantiate");
    if (graph != NULL)
        (void)cuda->graph_destroy(graph); /* the instance is a copy */
    return status;
}

kelp_status *kelp_cuda_graph_launch(const kelp_cuda *cuda, void *graph, void *stream) {
    return failed(cuda, cuda->graph_launch(graph, stream), "cuGraphLaunch");
}

void kelp_cuda_graph_destroy(const kelp_cuda *cuda, void *graph) {
    if (graph != NULL)
        (void)cuda->graph_exec_destroy(graph); /* see kelp_cuda_stream_destroy */
}
