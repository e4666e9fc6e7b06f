/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a TensorRT context, for context.c and context_more.c. */
#ifndef KELP_TENSORRT_CONTEXT_H_
#define KELP_TENSORRT_CONTEXT_H_

#include "tensorrt/callbacks.h"
#include "tensorrt/engine.h"

typedef struct trt_input_slot {
    kelp_tensor tensor;
    bool is_bound, on_host; /* on_host: TensorRT reads it in host memory, to infer shapes */
    void *own;              /* device memory, for a tensor in host memory */
    size_t own_bytes;
} trt_input_slot;

typedef struct trt_output_slot {
    struct trt_running *context;
    trt_output_memory memory;
    bool on_host;   /* TensorRT writes it to host memory */
    bool on_device; /* the caller requested it in device memory */
    void *own;      /* device memory, unless on_host */
    void *target;   /* the caller's device memory in this run, or NULL */
    size_t own_bytes, target_bytes;
    void *own_data, *user_data; /* host memory; user_data is device memory if on_device */
    size_t own_data_bytes, user_bytes;
    kelp_output_allocator allocate;
    void *allocate_userp;
    trt_dims shape; /* of this run */
} trt_output_slot;

typedef struct trt_running {
    trt_loaded *engine; /* the kelp_context retains it */
    trt_log *log;
    trt_context *context;
    trt_stream stream;
    trt_input_slot *inputs;
    trt_output_slot *outputs;
    kelp_status *failure; /* of an allocation during enqueue */
    uint32_t stamp;       /* incremented by each change of bindings and options */
    size_t profile;
    bool has_profile; /* `profile` was set */
    trt_layer_times times;
    kelp_profile_fn profile_fn; /* NULL: no profiling */
    void *profile_userp;
    size_t profiled_layers; /* in this run */
    void *workspace;        /* the caller's device memory; NULL: TensorRT allocates it */
    size_t workspace_bytes;
} trt_running;

const char *trt_input_name(const trt_running *r, size_t index);
const char *trt_output_name(const trt_running *r, size_t index);
/* Creates TensorRT's context, or replaces it, with all bindings and options. */
kelp_status *trt_context_open(trt_running *r) KELP_MUST_USE;
/* Enqueues a run into `stream`, from the copies of inputs to TensorRT's last kernel. */
kelp_status *trt_context_start(trt_running *r, trt_stream stream) KELP_MUST_USE;
/* Describes an output, and enqueues its copy to the memory that the caller reads. */
kelp_status *trt_context_fetch(trt_running *r, size_t index, trt_stream stream,
                               kelp_tensor *out) KELP_MUST_USE;

#endif
