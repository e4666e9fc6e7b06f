/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/cuda.h: NVIDIA's driver (libcuda.so.1), loaded at run time: devices, memory, streams,
 * events and graphs, as far as engines on a GPU need them. Nothing is linked.
 *
 * Applications that manage CUDA already need none of this: engines accept device pointers (a
 * kelp_tensor whose device is {kDLCUDA, n}; kelp_context_set_output_device) and streams
 * (kelp_stream_wrap) of any origin, such as the CUDA runtime, PyTorch or cudarc. All of them share
 * the device's primary context.
 *
 *   kelp_cuda *cuda;                       void *x, *stream;
 *   KELP_TRY(kelp_cuda_open(allocator, &cuda));
 *   KELP_TRY(kelp_cuda_use(cuda, 0));
 *   KELP_TRY(kelp_cuda_stream_create(cuda, &stream));
 *   KELP_TRY(kelp_cuda_alloc(cuda, size, &x));
 *   KELP_TRY(kelp_cuda_upload(cuda, x, host, size, stream));
 *
 * Unless stated otherwise:
 *   - The caller frees what a function creates with its counterpart, before kelp_cuda_destroy.
 *   - A kelp_cuda is constant and thread-safe. Functions use the calling thread's current context,
 *     which kelp_cuda_use sets.
 *   - `stream` is a CUstream; NULL is the default stream.
 *   - Errors: UNAVAILABLE with the failed driver call and the driver's message; RESOURCE_EXHAUSTED
 *     if memory is exhausted.
 *
 * Source: CUDA driver API of CUDA 11.4.
 */
#ifndef KELP_CUDA_H_
#define KELP_CUDA_H_

#include <kelp/allocator.h>
#include <kelp/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The loaded driver. */
typedef struct kelp_cuda kelp_cuda;

/* ---- Driver and devices ---- */

/* Loads the driver, from the file named by the environment variable KELP_CUDA_LIBRARY if it is
 * set. Fails with UNAVAILABLE if there is no driver or no device; the message tells what to
 * install. */
KELP_API kelp_status *kelp_cuda_open(kelp_allocator allocator, kelp_cuda **out) KELP_MUST_USE;

/* Releases the contexts that were used. NULL is allowed. */
KELP_API void kelp_cuda_destroy(kelp_cuda *cuda);

/* Returns the driver's CUDA version as 1000 * major + 10 * minor: 12080 is CUDA 12.8. */
KELP_API int kelp_cuda_driver_version(const kelp_cuda *cuda);

/* Returns the number of devices. */
KELP_API int kelp_cuda_device_count(const kelp_cuda *cuda);

/* Properties of a device. */
typedef struct kelp_cuda_device {
    char name[128]; /* name, terminated by NUL */
    /* compute capability: compute_major and compute_minor */
    int compute_major, compute_minor;
    size_t memory_bytes; /* size of the device memory */
} kelp_cuda_device;

/* Gets the properties of a device. Fails with OUT_OF_RANGE if there is no such device. */
KELP_API kelp_status *kelp_cuda_describe(const kelp_cuda *cuda, int device,
                                         kelp_cuda_device *out) KELP_MUST_USE;

/* Makes the device's primary context current on the calling thread. Fails with OUT_OF_RANGE if
 * there is no such device. */
KELP_API kelp_status *kelp_cuda_use(kelp_cuda *cuda, int device) KELP_MUST_USE;

/* ---- Memory ---- */

/* Allocates device memory, aligned to at least 256 bytes. Sets `*out` to NULL for 0 bytes. */
KELP_API kelp_status *kelp_cuda_alloc(const kelp_cuda *cuda, size_t size_bytes,
                                      void **out) KELP_MUST_USE;

/* Frees device memory. NULL is allowed. */
KELP_API kelp_status *kelp_cuda_free(const kelp_cuda *cuda, void *pointer) KELP_MUST_USE;

/* Allocates page-locked host memory. */
KELP_API kelp_status *kelp_cuda_alloc_host(const kelp_cuda *cuda, size_t size_bytes,
                                           void **out) KELP_MUST_USE;

/* Frees page-locked host memory. NULL is allowed. */
KELP_API kelp_status *kelp_cuda_free_host(const kelp_cuda *cuda, void *pointer) KELP_MUST_USE;

/* Gets the free and total bytes of the current device. */
KELP_API kelp_status *kelp_cuda_memory(const kelp_cuda *cuda, size_t *out_free_bytes,
                                       size_t *out_total_bytes) KELP_MUST_USE;

/* Copies from host to device memory, asynchronously in stream order. The host memory must stay
 * valid until the copy is done. */
KELP_API kelp_status *kelp_cuda_upload(const kelp_cuda *cuda, void *to, const void *from,
                                       size_t size_bytes, void *stream) KELP_MUST_USE;

/* Copies from device to host memory, asynchronously in stream order. The host memory must stay
 * valid until the copy is done. */
KELP_API kelp_status *kelp_cuda_download(const kelp_cuda *cuda, void *to, const void *from,
                                         size_t size_bytes, void *stream) KELP_MUST_USE;

/* Copies within device memory, asynchronously in stream order. */
KELP_API kelp_status *kelp_cuda_copy(const kelp_cuda *cuda, void *to, const void *from,
                                     size_t size_bytes, void *stream) KELP_MUST_USE;

/* Sets bytes of device memory, asynchronously in stream order. */
KELP_API kelp_status *kelp_cuda_fill(const kelp_cuda *cuda, void *to, uint8_t value,
                                     size_t size_bytes, void *stream) KELP_MUST_USE;

/* ---- Streams and events ---- */

/* Creates a stream that does not synchronize with the default stream. */
KELP_API kelp_status *kelp_cuda_stream_create(const kelp_cuda *cuda, void **out) KELP_MUST_USE;

/* Waits until all work enqueued in the stream is done. */
KELP_API kelp_status *kelp_cuda_stream_wait(const kelp_cuda *cuda, void *stream) KELP_MUST_USE;

/* Destroys a stream. */
KELP_API void kelp_cuda_stream_destroy(const kelp_cuda *cuda, void *stream);

/* Creates an event (CUevent). */
KELP_API kelp_status *kelp_cuda_event_create(const kelp_cuda *cuda, void **out) KELP_MUST_USE;

/* Records an event in a stream: it is done once all work enqueued before it is. */
KELP_API kelp_status *kelp_cuda_event_record(const kelp_cuda *cuda, void *event,
                                             void *stream) KELP_MUST_USE;

/* Waits on the calling thread until an event is done. */
KELP_API kelp_status *kelp_cuda_event_wait(const kelp_cuda *cuda, void *event) KELP_MUST_USE;

/* Makes work enqueued in the stream from now on wait for an event. */
KELP_API kelp_status *kelp_cuda_stream_wait_event(const kelp_cuda *cuda, void *stream,
                                                  void *event) KELP_MUST_USE;

/* Gets the milliseconds between two events that are done. */
KELP_API kelp_status *kelp_cuda_event_elapsed(const kelp_cuda *cuda, void *begin, void *end,
                                              float *out_milliseconds) KELP_MUST_USE;

/* Destroys an event. */
KELP_API void kelp_cuda_event_destroy(const kelp_cuda *cuda, void *event);

/* ---- Graphs ---- */

/* Starts recording: work enqueued in the stream is recorded instead of run. */
KELP_API kelp_status *kelp_cuda_capture_begin(const kelp_cuda *cuda, void *stream) KELP_MUST_USE;

/* Ends recording and creates a graph (CUgraphExec). The recording ends even if this fails; `*out`
 * is then NULL. */
KELP_API kelp_status *kelp_cuda_capture_end(const kelp_cuda *cuda, void *stream,
                                            void **out) KELP_MUST_USE;

/* Enqueues a recorded graph in a stream. */
KELP_API kelp_status *kelp_cuda_graph_launch(const kelp_cuda *cuda, void *graph,
                                             void *stream) KELP_MUST_USE;

/* Destroys a graph. */
KELP_API void kelp_cuda_graph_destroy(const kelp_cuda *cuda, void *graph);

#ifdef __cplusplus
}
#endif
#endif
