/* SPDX-License-Identifier: Apache-2.0 */
/* A driver with one device whose memory is host memory. Work in a stream is done at once; during a
 * capture it is only counted. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define OUT_OF_MEMORY 2
#define INVALID_VALUE 1

static int live, capturing, captured, launched;
static char a_context, a_stream, a_graph;

/* For the test: number of blocks, streams and events that are not yet destroyed. */
EXPORT int fake_cuda_live(void);
EXPORT int fake_cuda_launched(void);
int fake_cuda_live(void) {
    return live;
}
int fake_cuda_launched(void) {
    return launched;
}

/* A function of the driver. It fails with code 999 if FAKE_CUDA_FAILS is its name. */
#define DRIVER(name, ...)         \
    EXPORT int name(__VA_ARGS__); \
    int name(__VA_ARGS__)

static int fails(const char *name) {
    const char *chosen = getenv("FAKE_CUDA_FAILS");
    return chosen != NULL && strcmp(chosen, name) == 0;
}

DRIVER(cuInit, unsigned flags) {
    if (fails("cuInit"))
        return 999;
    const char *code = getenv("FAKE_CUDA_INIT");
    return flags == 0 ? (code != NULL ? atoi(code) : 0) : INVALID_VALUE;
}
DRIVER(cuDriverGetVersion, int *out) {
    if (fails("cuDriverGetVersion"))
        return 999;
    *out = 12080;
    return 0;
}
DRIVER(cuGetErrorName, int code, const char **out) {
    if (fails("cuGetErrorName"))
        return 999;
    *out = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
    return 0;
}
DRIVER(cuGetErrorString, int code, const char **out) {
    if (fails("cuGetErrorString"))
        return 999;
    *out = code == OUT_OF_MEMORY ? "out of memory" : "something else";
    return 0;
}
DRIVER(cuDeviceGetCount, int *out) {
    if (fails("cuDeviceGetCount"))
        return 999;
    *out = 1;
    return 0;
}
DRIVER(cuDeviceGet, int *out, int ordinal) {
    if (fails("cuDeviceGet"))
        return 999;
    *out = 40 + ordinal;
    return ordinal == 0 ? 0 : INVALID_VALUE;
}
DRIVER(cuDeviceGetName, char *out, int length, int device) {
    if (fails("cuDeviceGetName"))
        return 999;
    strncpy(out, "Fake 9000", (size_t)length);
    return device == 40 ? 0 : INVALID_VALUE;
}
DRIVER(cuDeviceTotalMem_v2, size_t *out, int device) {
    if (fails("cuDeviceTotalMem_v2"))
        return 999;
    *out = 1u << 30;
    return device == 40 ? 0 : INVALID_VALUE;
}
DRIVER(cuDeviceGetAttribute, int *out, int attribute, int device) {
    if (fails("cuDeviceGetAttribute"))
        return 999;
    *out = attribute == 75 ? 8 : attribute == 76 ? 6 : -1;
    return device == 40 ? 0 : INVALID_VALUE;
}
DRIVER(cuDevicePrimaryCtxRetain, void **out, int device) {
    if (fails("cuDevicePrimaryCtxRetain"))
        return 999;
    *out = &a_context;
    live++;
    return device == 40 ? 0 : INVALID_VALUE;
}
DRIVER(cuDevicePrimaryCtxRelease_v2, int device) {
    if (fails("cuDevicePrimaryCtxRelease_v2"))
        return 999;
    live--;
    return device == 40 ? 0 : INVALID_VALUE;
}
DRIVER(cuCtxSetCurrent, void *context) {
    if (fails("cuCtxSetCurrent"))
        return 999;
    return context == &a_context ? 0 : INVALID_VALUE;
}
DRIVER(cuMemAlloc_v2, uint64_t *out, size_t size) {
    if (fails("cuMemAlloc_v2"))
        return 999;
    if (size > 1u << 30)
        return OUT_OF_MEMORY;
    *out = (uint64_t)(uintptr_t)malloc(size);
    live++;
    return 0;
}
DRIVER(cuMemFree_v2, uint64_t pointer) {
    if (fails("cuMemFree_v2"))
        return 999;
    free((void *)(uintptr_t)pointer);
    live--;
    return 0;
}
DRIVER(cuMemAllocHost_v2, void **out, size_t size) {
    if (fails("cuMemAllocHost_v2"))
        return 999;
    *out = malloc(size);
    live++;
    return 0;
}
DRIVER(cuMemFreeHost, void *pointer) {
    if (fails("cuMemFreeHost"))
        return 999;
    free(pointer);
    live--;
    return 0;
}
DRIVER(cuMemGetInfo_v2, size_t *free_bytes, size_t *total_bytes) {
    if (fails("cuMemGetInfo_v2"))
        return 999;
    *free_bytes = 1u << 29;
    *total_bytes = 1u << 30;
    return 0;
}
static int put(void *to, const void *from, size_t size, void *stream) {
    if (stream != &a_stream)
        return INVALID_VALUE;
    if (capturing)
        captured++;
    else
        memcpy(to, from, size);
    return 0;
}
DRIVER(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t size, void *stream) {
    if (fails("cuMemcpyHtoDAsync_v2"))
        return 999;
    return put((void *)(uintptr_t)to, from, size, stream);
}
DRIVER(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t size, void *stream) {
    if (fails("cuMemcpyDtoHAsync_v2"))
        return 999;
    return put(to, (const void *)(uintptr_t)from, size, stream);
}
DRIVER(cuMemcpyDtoDAsync_v2, uint64_t to, uint64_t from, size_t size, void *stream) {
    if (fails("cuMemcpyDtoDAsync_v2"))
        return 999;
    return put((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size, stream);
}
DRIVER(cuMemsetD8Async, uint64_t to, unsigned char value, size_t count, void *stream) {
    if (fails("cuMemsetD8Async"))
        return 999;
    memset((void *)(uintptr_t)to, value, count);
    return stream == &a_stream ? 0 : INVALID_VALUE;
}
DRIVER(cuStreamCreate, void **out, unsigned flags) {
    if (fails("cuStreamCreate"))
        return 999;
    *out = &a_stream;
    live++;
    return flags == 1 ? 0 : INVALID_VALUE;
}
DRIVER(cuStreamSynchronize, void *stream) {
    if (fails("cuStreamSynchronize"))
        return 999;
    return stream == &a_stream ? 0 : INVALID_VALUE;
}
DRIVER(cuStreamDestroy_v2, void *stream) {
    if (fails("cuStreamDestroy_v2"))
        return 999;
    live--;
    return stream == &a_stream ? 0 : INVALID_VALUE;
}
DRIVER(cuStreamWaitEvent, void *stream, void *event, unsigned flags) {
    if (fails("cuStreamWaitEvent"))
        return 999;
    return stream == &a_stream && event != NULL && flags == 0 ? 0 : INVALID_VALUE;
}
DRIVER(cuEventCreate, void **out, unsigned flags) {
    if (fails("cuEventCreate"))
        return 999;
    *out = malloc(1);
    live++;
    return flags == 0 ? 0 : INVALID_VALUE;
}
DRIVER(cuEventRecord, void *event, void *stream) {
    if (fails("cuEventRecord"))
        return 999;
    return event != NULL && stream == &a_stream ? 0 : INVALID_VALUE;
}
DRIVER(cuEventSynchronize, void *event) {
    if (fails("cuEventSynchronize"))
        return 999;
    return event != NULL ? 0 : INVALID_VALUE;
}
DRIVER(cuEventElapsedTime, float *out, void *begin, void *end) {
    if (fails("cuEventElapsedTime"))
        return 999;
    *out = 1.5f;
    return begin != end ? 0 : INVALID_VALUE;
}
DRIVER(cuEventDestroy_v2, void *event) {
    if (fails("cuEventDestroy_v2"))
        return 999;
    free(event);
    live--;
    return 0;
}
DRIVER(cuStreamBeginCapture_v2, void *stream, int mode) {
    if (fails("cuStreamBeginCapture_v2"))
        return 999;
    capturing = 1;
    captured = 0;
    return stream == &a_stream && mode == 1 ? 0 : INVALID_VALUE;
}
DRIVER(cuStreamEndCapture, void *stream, void **out) {
    if (fails("cuStreamEndCapture"))
        return 999;
    if (!capturing)
        return INVALID_VALUE;
    capturing = 0;
    *out = &a_graph;
    live++;
    return stream == &a_stream ? 0 : INVALID_VALUE;
}
DRIVER(cuGraphInstantiateWithFlags, void **out, void *graph, uint64_t flags) {
    if (fails("cuGraphInstantiateWithFlags"))
        return 999;
    *out = &captured;
    live++;
    return graph == &a_graph && flags == 0 ? 0 : INVALID_VALUE;
}
DRIVER(cuGraphLaunch, void *graph, void *stream) {
    if (fails("cuGraphLaunch"))
        return 999;
    launched += captured;
    return graph == &captured && stream == &a_stream ? 0 : INVALID_VALUE;
}
DRIVER(cuGraphDestroy, void *graph) {
    if (fails("cuGraphDestroy"))
        return 999;
    live--;
    return graph == &a_graph ? 0 : INVALID_VALUE;
}
DRIVER(cuGraphExecDestroy, void *graph) {
    if (fails("cuGraphExecDestroy"))
        return 999;
    live--;
    return graph == &captured ? 0 : INVALID_VALUE;
}
