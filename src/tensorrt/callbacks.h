/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callback objects for TensorRT: progress, profiles, output memory, device memory, streams of
 * engine bytes, debug tensors. Each has a handwritten method table that calls plain functions. The
 * caller owns the storage; the objects must not move and must outlive the TensorRT object that uses
 * them. A function that is NULL has no effect.
 *
 * Threads: TensorRT may call them on its own threads, and some of them on several threads at once.
 */
#ifndef KELP_TENSORRT_CALLBACKS_H_
#define KELP_TENSORRT_CALLBACKS_H_

#include "tensorrt/tables/calls.h"
#include "tensorrt/tables/slots.h"

#include <stdatomic.h>

/* ---- for method tables ---- */
typedef struct trt_interface_info {
    const char *kind;
    int32_t major, minor;
} trt_interface_info;

int32_t trt_callback_language(const void *self); /* returns C++ */
void trt_callback_destroy(void *self);           /* has no effect: the caller owns the storage */

#define TRT_ADDRESS(function) ((const void *)(uintptr_t)(function))
/* The first entries of a table. Two unused words precede the slots: the offset to the top and the
 * type information. */
#define TRT_CALLBACK_HEAD(name, info)                                             \
    [2] = TRT_ADDRESS(trt_callback_language),                                     \
    [2 + TRT_SLOT_##name##_GET_INTERFACE_INFO] = TRT_ADDRESS(info),               \
    [2 + TRT_SLOT_##name##_DESTROY_COMPLETE] = TRT_ADDRESS(trt_callback_destroy), \
    [2 + TRT_SLOT_##name##_DESTROY_DELETING] = TRT_ADDRESS(trt_callback_destroy)

/* ---- progress and cancellation of a build ---- */
typedef struct trt_progress {
    const void *const *table;
    /* Called at the start of a phase of `steps` steps. `parent` is its outer phase or NULL. */
    void (*start)(void *userp, const char *phase, const char *parent, int32_t steps);
    /* Called after step `step`. Returns false to end the build. */
    bool (*step)(void *userp, const char *phase, int32_t step);
    void (*finish)(void *userp, const char *phase);
    void *userp;
    atomic_bool cancelled; /* any thread may set it to end the build */
} trt_progress;
void trt_progress_init(trt_progress *progress);
#define TRT_PROGRESS(p) ((trt_progress_monitor *)(void *)(p))

/* ---- time by layer ---- */
typedef struct trt_layer_times {
    const void *const *table;
    void (*report)(void *userp, const char *layer, float milliseconds);
    void *userp;
} trt_layer_times;
void trt_layer_times_init(trt_layer_times *times);
#define TRT_LAYER_TIMES(p) ((trt_profiler *)(void *)(p))

/* ---- memory for outputs whose size depends on data ---- */
typedef struct trt_output_memory {
    const void *const *table;
    /* Returns at least `size` bytes at `alignment`, or NULL on failure. `current` is the tensor's
     * memory. */
    void *(*reallocate)(void *userp, const char *tensor, void *current, uint64_t size,
                        uint64_t alignment, trt_stream stream);
    void (*shape)(void *userp, const char *tensor, const trt_dims *dims);
    void *userp;
} trt_output_memory;
void trt_output_memory_init(const trt_methods *m, trt_output_memory *memory);
#define TRT_OUTPUT_MEMORY(p) ((trt_output_allocator *)(void *)(p))

/* ---- device memory ---- */
typedef struct trt_device_memory {
    const void *const *table;
    void *(*allocate)(void *userp, uint64_t size, uint64_t alignment, trt_stream stream);
    bool (*free)(void *userp, void *pointer, trt_stream stream);
    void *userp;
} trt_device_memory;
void trt_device_memory_init(trt_device_memory *memory);
#define TRT_DEVICE_MEMORY(p) ((trt_gpu_allocator *)(void *)(p))

/* ---- an engine's bytes, out and in ---- */
typedef struct trt_writer {
    const void *const *table;
    int64_t (*write)(void *userp, const void *data,
                     int64_t size); /* returns the bytes written; fewer than size is a failure */
    void *userp;
} trt_writer;
void trt_writer_init(trt_writer *writer);
#define TRT_WRITER(p) ((trt_stream_writer *)(void *)(p))

typedef struct trt_reader {
    const void *const *table;
    /* `out` is host memory, or device memory for copies on `stream`. */
    int64_t (*read)(void *userp, void *out, int64_t size, trt_stream stream);
    bool (*seek)(void *userp, int64_t offset, trt_seek_position from);
    void *userp;
} trt_reader;
void trt_reader_init(trt_reader *reader);
#define TRT_READER(p) ((trt_stream_reader_v2 *)(void *)(p))

/* ---- debug tensors ---- */
typedef struct trt_debugger {
    const void *const *table;
    bool (*tensor)(void *userp, const char *name, const void *data, trt_tensor_location location,
                   trt_data_type type, const trt_dims *dims, trt_stream stream);
    void *userp;
} trt_debugger;
void trt_debugger_init(trt_debugger *debugger);
#define TRT_DEBUGGER(p) ((trt_debug_listener *)(void *)(p))

#endif
