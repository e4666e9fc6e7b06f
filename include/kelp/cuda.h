/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/cuda.h: NVIDIA's driver (libcuda.so.1), loaded at run time and nothing of it linked:
 * devices, memory, streams, events and captured graphs, as far as running engines on a GPU needs
 * them.
 *
 * Who manages CUDA already needs none of this: engines take device pointers (a kelp_tensor whose
 * device is {kDLCUDA, n}; kelp_context_set_output_on) and streams (kelp_stream_wrap) of any origin,
 * CUDA's runtime, PyTorch and cudarc among them. What is made here goes the same way, since all of
 * them share the device's primary context.
 *
 *   kelp_cuda *cuda;                       void *x, *stream;
 *   KELP_TRY(kelp_cuda_open(allocator, &cuda));
 *   KELP_TRY(kelp_cuda_use(cuda, 0));
 *   KELP_TRY(kelp_cuda_stream_create(cuda, &stream));
 *   KELP_TRY(kelp_cuda_alloc(cuda, size, &x));
 *   KELP_TRY(kelp_cuda_upload(cuda, x, host, size, stream));
 *
 * Units: sizes in bytes. Ownership: what a function makes is freed by its counterpart, before the
 * kelp_cuda goes. Threads: a kelp_cuda is constant once opened, any thread may use it; calls work
 * on the calling thread's current context, which kelp_cuda_use sets. Errors: UNAVAILABLE with the
 * failed call and the driver's own words; RESOURCE_EXHAUSTED when memory is short.
 * Source: the CUDA driver API of CUDA 11.4, whose functions each of these names.
 */
#ifndef KELP_CUDA_H_
#define KELP_CUDA_H_

#include <kelp/allocator.h>
#include <kelp/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kelp_cuda kelp_cuda;

/* ---- driver and devices ---- */
/* UNAVAILABLE when there is no driver, or it finds no device; the message says which, and what to
 * install. KELP_CUDA_LIBRARY is the driver's file in place of libcuda.so.1. */
KELP_API kelp_status *kelp_cuda_open(kelp_allocator allocator, kelp_cuda **out) KELP_MUST_USE;
/* Lets go of the contexts that were used. NULL is fine. */
KELP_API void kelp_cuda_destroy(kelp_cuda *cuda);
KELP_API int kelp_cuda_driver_version(const kelp_cuda *cuda); /* 12080 is CUDA 12.8 */
KELP_API int kelp_cuda_device_count(const kelp_cuda *cuda);
typedef struct kelp_cuda_device {
    char name[128];
    int compute_major, compute_minor; /* compute capability */
    size_t memory_bytes;
} kelp_cuda_device;
/* OUT_OF_RANGE for a device that is not there. */
KELP_API kelp_status *kelp_cuda_describe(const kelp_cuda *cuda, int device,
                                         kelp_cuda_device *out) KELP_MUST_USE;
/* Makes the device's primary context, which CUDA's runtime and TensorRT share, the current one of
 * this thread. OUT_OF_RANGE for a device that is not there. */
KELP_API kelp_status *kelp_cuda_use(kelp_cuda *cuda, int device) KELP_MUST_USE;

/* ---- memory: on the device (aligned to 256 bytes at least), and pinned on the host ---- */
/* NULL for no bytes. */
KELP_API kelp_status *kelp_cuda_alloc(const kelp_cuda *cuda, size_t size_bytes,
                                      void **out) KELP_MUST_USE;
KELP_API kelp_status *kelp_cuda_free(const kelp_cuda *cuda, void *pointer) KELP_MUST_USE;
KELP_API kelp_status *kelp_cuda_alloc_host(const kelp_cuda *cuda, size_t size_bytes,
                                           void **out) KELP_MUST_USE;
KELP_API kelp_status *kelp_cuda_free_host(const kelp_cuda *cuda, void *pointer) KELP_MUST_USE;
KELP_API kelp_status *kelp_cuda_memory(const kelp_cuda *cuda, size_t *out_free_bytes,
                                       size_t *out_total_bytes) KELP_MUST_USE;
/* `to` and `from` are of the device in all but the host's side of an upload and a download. Done in
 * the stream's order: the host's memory must stay until the stream got there. `stream` is a
 * CUstream; NULL is the default one. */
KELP_API kelp_status *kelp_cuda_upload(const kelp_cuda *cuda, void *to, const void *from,
                                       size_t size_bytes, void *stream) KELP_MUST_USE;
KELP_API kelp_status *kelp_cuda_download(const kelp_cuda *cuda, void *to, const void *from,
                                         size_t size_bytes, void *stream) KELP_MUST_USE;
KELP_API kelp_status *kelp_cuda_copy(const kelp_cuda *cuda, void *to, const void *from,
                                     size_t size_bytes, void *stream) KELP_MUST_USE;
KELP_API kelp_status *kelp_cuda_fill(const kelp_cuda *cuda, void *to, uint8_t value,
                                     size_t size_bytes, void *stream) KELP_MUST_USE;

/* ---- streams (CUstream) and events (CUevent) ---- */
/* A stream that does not wait for the default one. */
KELP_API kelp_status *kelp_cuda_stream_create(const kelp_cuda *cuda, void **out) KELP_MUST_USE;
/* Waits for all that was put into it. */
KELP_API kelp_status *kelp_cuda_stream_wait(const kelp_cuda *cuda, void *stream) KELP_MUST_USE;
KELP_API void kelp_cuda_stream_destroy(const kelp_cuda *cuda, void *stream);
KELP_API kelp_status *kelp_cuda_event_create(const kelp_cuda *cuda, void **out) KELP_MUST_USE;
KELP_API kelp_status *kelp_cuda_event_record(const kelp_cuda *cuda, void *event,
                                             void *stream) KELP_MUST_USE;
KELP_API kelp_status *kelp_cuda_event_wait(const kelp_cuda *cuda, void *event) KELP_MUST_USE;
/* What is put into `stream` from here on waits for the event. */
KELP_API kelp_status *kelp_cuda_stream_wait_event(const kelp_cuda *cuda, void *stream,
                                                  void *event) KELP_MUST_USE;
/* Between two events that are done. */
KELP_API kelp_status *kelp_cuda_event_elapsed(const kelp_cuda *cuda, void *begin, void *end,
                                              float *out_milliseconds) KELP_MUST_USE;
KELP_API void kelp_cuda_event_destroy(const kelp_cuda *cuda, void *event);

/* ---- graphs (CUgraphExec): what is put into the stream between begin and end is kept, not run
 * ---- */
KELP_API kelp_status *kelp_cuda_capture_begin(const kelp_cuda *cuda, void *stream) KELP_MUST_USE;
/* Ends the capture in any case; `out` is NULL after a failure. */
KELP_API kelp_status *kelp_cuda_capture_end(const kelp_cuda *cuda, void *stream,
                                            void **out) KELP_MUST_USE;
KELP_API kelp_status *kelp_cuda_graph_launch(const kelp_cuda *cuda, void *graph,
                                             void *stream) KELP_MUST_USE;
KELP_API void kelp_cuda_graph_destroy(const kelp_cuda *cuda, void *graph);

#ifdef __cplusplus
}
#endif
#endif
