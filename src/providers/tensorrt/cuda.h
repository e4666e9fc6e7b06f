/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's driver (libcuda.so.1), loaded at run time and nothing of it linked: devices, memory,
 * streams, events and captured graphs, as far as running engines needs them. Each failure names the
 * call and the driver's own error.
 *
 * Threads: a trt_cuda is constant once opened. Calls work on the calling thread's current context:
 * trt_cuda_use sets it.
 */
#ifndef KELP_PROVIDERS_TENSORRT_CUDA_H_
#define KELP_PROVIDERS_TENSORRT_CUDA_H_

#include "base/dl.h"
#include "providers/tensorrt/methods.h"

typedef struct trt_cuda trt_cuda;
typedef uint64_t trt_cuda_pointer; /* CUdeviceptr: what TensorRT takes as void * */
typedef void *trt_cuda_graph;      /* CUgraphExec */

typedef struct trt_cuda_device {
    char name[128];
    int compute_major, compute_minor;
    size_t memory_bytes;
} trt_cuda_device;

/* UNAVAILABLE when there is no driver, or it finds no device; the message says which, and what to
 * install. KELP_CUDA_LIBRARY is the driver's file in place of libcuda.so.1. */
kelp_status *trt_cuda_open(kelp_allocator allocator, trt_cuda **out) KELP_MUST_USE;
void trt_cuda_destroy(trt_cuda *cuda); /* lets go of the contexts that were used */

int trt_cuda_driver_version(const trt_cuda *cuda); /* 12080 is CUDA 12.8 */
int trt_cuda_device_count(const trt_cuda *cuda);
kelp_status *trt_cuda_describe(const trt_cuda *cuda, int device,
                               trt_cuda_device *out) KELP_MUST_USE;
/* Makes the device's primary context, which CUDA's runtime and TensorRT share, the current one of
 * this thread. OUT_OF_RANGE for a device that is not there. */
kelp_status *trt_cuda_use(trt_cuda *cuda, int device) KELP_MUST_USE;

/* ---- memory: device (aligned to 256 bytes at least), and pinned on the host ---- */
kelp_status *trt_cuda_alloc(const trt_cuda *cuda, size_t size_bytes,
                            trt_cuda_pointer *out) KELP_MUST_USE; /* RESOURCE_EXHAUSTED */
kelp_status *trt_cuda_free(const trt_cuda *cuda, trt_cuda_pointer pointer) KELP_MUST_USE;
kelp_status *trt_cuda_alloc_host(const trt_cuda *cuda, size_t size_bytes, void **out) KELP_MUST_USE;
kelp_status *trt_cuda_free_host(const trt_cuda *cuda, void *pointer) KELP_MUST_USE;
kelp_status *trt_cuda_memory(const trt_cuda *cuda, size_t *out_free_bytes,
                             size_t *out_total_bytes) KELP_MUST_USE;
/* In the stream's order; host memory must stay until the stream got there. `stream` NULL is the
 * default one. */
kelp_status *trt_cuda_upload(const trt_cuda *cuda, trt_cuda_pointer to, const void *from,
                             size_t size_bytes, trt_stream stream) KELP_MUST_USE;
kelp_status *trt_cuda_download(const trt_cuda *cuda, void *to, trt_cuda_pointer from,
                               size_t size_bytes, trt_stream stream) KELP_MUST_USE;
kelp_status *trt_cuda_copy(const trt_cuda *cuda, trt_cuda_pointer to, trt_cuda_pointer from,
                           size_t size_bytes, trt_stream stream) KELP_MUST_USE;
kelp_status *trt_cuda_fill(const trt_cuda *cuda, trt_cuda_pointer to, uint8_t value,
                           size_t size_bytes, trt_stream stream) KELP_MUST_USE;

/* ---- streams and events ---- */
/* A stream that does not wait for the default one. */
kelp_status *trt_cuda_stream_create(const trt_cuda *cuda, trt_stream *out) KELP_MUST_USE;
kelp_status *trt_cuda_stream_wait(const trt_cuda *cuda, trt_stream stream) KELP_MUST_USE;
void trt_cuda_stream_destroy(const trt_cuda *cuda, trt_stream stream);
kelp_status *trt_cuda_event_create(const trt_cuda *cuda, trt_event *out) KELP_MUST_USE;
kelp_status *trt_cuda_event_record(const trt_cuda *cuda, trt_event event,
                                   trt_stream stream) KELP_MUST_USE;
kelp_status *trt_cuda_event_wait(const trt_cuda *cuda, trt_event event) KELP_MUST_USE;
/* What is put into `stream` from here on waits for the event. */
kelp_status *trt_cuda_stream_wait_event(const trt_cuda *cuda, trt_stream stream,
                                        trt_event event) KELP_MUST_USE;
kelp_status *trt_cuda_event_elapsed(const trt_cuda *cuda, trt_event begin, trt_event end,
                                    float *out_milliseconds) KELP_MUST_USE;
void trt_cuda_event_destroy(const trt_cuda *cuda, trt_event event);

/* ---- graphs: what is put into the stream between begin and end is kept, not run ---- */
kelp_status *trt_cuda_capture_begin(const trt_cuda *cuda, trt_stream stream) KELP_MUST_USE;
/* Ends the capture in any case; `out` is NULL after a failure. */
kelp_status *trt_cuda_capture_end(const trt_cuda *cuda, trt_stream stream,
                                  trt_cuda_graph *out) KELP_MUST_USE;
kelp_status *trt_cuda_graph_launch(const trt_cuda *cuda, trt_cuda_graph graph,
                                   trt_stream stream) KELP_MUST_USE;
void trt_cuda_graph_destroy(const trt_cuda *cuda, trt_cuda_graph graph);

#endif
