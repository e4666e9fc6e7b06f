/* SPDX-License-Identifier: Apache-2.0 */
/* A loaded TensorRT engine. context.c has its contexts. */
#ifndef KELP_TENSORRT_ENGINE_H_
#define KELP_TENSORRT_ENGINE_H_

#include "tensorrt/call.h"

#include <kelp/cuda.h>
#include <kelp/engine_provider.h>

#include <pthread.h>

/* A loaded engine. Immutable except for refitting, during which no context may run, and for the
 * fields that `lock` guards. */
typedef struct trt_loaded {
    kelp_allocator allocator;
    const trt_library *library;
    const trt_methods *m;
    trt_log *log;
    kelp_cuda *cuda;
    int device; /* of the engine and its contexts */
    trt_runtime *runtime;
    trt_engine *engine;
    pthread_mutex_t lock;       /* guards config, cache and the creation of contexts */
    trt_runtime_config *config; /* for contexts with a cache; NULL without a cache */
    trt_runtime_cache *cache;
    trt_refitter *refitter;         /* used only during loading */
    kelp_io_info *inputs, *outputs; /* the engine owns the names */
    size_t input_count, output_count;
} trt_loaded;

/* ---- functions of the kelp_engine_vtbl ---- */
kelp_status *trt_context_new(void *engine, void **out) KELP_MUST_USE;
void trt_context_free(void *context);
kelp_status *trt_context_profile(void *context, size_t profile) KELP_MUST_USE;
kelp_status *trt_context_bind_input(void *context, size_t index,
                                    const kelp_tensor *tensor) KELP_MUST_USE;
kelp_status *trt_context_bind_output(void *context, size_t index, void *data,
                                     size_t capacity_bytes) KELP_MUST_USE;
kelp_status *trt_context_output_place(void *context, size_t index, kelp_output_allocator fn,
                                      void *userp) KELP_MUST_USE;
kelp_status *trt_context_output_device(void *context, size_t index, DLDevice device) KELP_MUST_USE;
kelp_status *trt_context_memory(void *context, void *data, size_t size_bytes) KELP_MUST_USE;
kelp_status *trt_context_times(void *context, kelp_profile_fn fn, void *userp) KELP_MUST_USE;
kelp_status *trt_context_capture(void *context, void **out, size_t *out_steps) KELP_MUST_USE;
kelp_status *trt_capture_run(void *capture, kelp_tensor *out_outputs) KELP_MUST_USE;
void trt_capture_free(void *capture);
kelp_status *trt_context_shapes(void *context, kelp_tensor *out_outputs) KELP_MUST_USE;
kelp_status *trt_context_run(void *context, kelp_tensor *out_outputs) KELP_MUST_USE;
kelp_status *trt_context_run_on(void *context, void *native_stream) KELP_MUST_USE;

#endif
