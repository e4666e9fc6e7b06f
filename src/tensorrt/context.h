/* SPDX-License-Identifier: Apache-2.0 */
/* What a context of TensorRT's is made of, for the two files that work on it. */
#ifndef KELP_TENSORRT_CONTEXT_H_
#define KELP_TENSORRT_CONTEXT_H_

#include "tensorrt/callbacks.h"
#include "tensorrt/engine.h"

typedef struct trt_input_slot {
    kelp_tensor tensor;
    bool is_bound, on_host; /* on_host: TensorRT reads it there, to work out shapes */
    void *own;              /* device memory, for what is bound in the host's */
    size_t own_bytes;
} trt_input_slot;

typedef struct trt_output_slot {
    struct trt_running *context;
    trt_output_memory memory;
    bool on_host; /* TensorRT writes it there */
    bool stays;   /* on the device, where the caller wants it */
    void *own;    /* device memory, unless on_host */
    void *target; /* of this run: the caller's memory on the device that TensorRT writes to */
    size_t own_bytes, target_bytes;
    void *own_data, *user_data; /* host memory; user_data is the device's when it `stays` */
    size_t own_data_bytes, user_bytes;
    kelp_output_allocator place;
    void *place_userp;
    trt_dims shape; /* of this run */
} trt_output_slot;

typedef struct trt_running {
    trt_loaded *engine; /* the kelp_context keeps it */
    trt_log *log;
    trt_context *context;
    trt_stream stream;
    trt_input_slot *inputs;
    trt_output_slot *outputs;
    kelp_status *failure; /* of an allocation while TensorRT was running */
    uint32_t stamp;       /* grows when something is bound anew */
    size_t profile;
    bool has_profile; /* one was chosen */
    trt_layer_times times;
    kelp_profile_fn told; /* NULL: nobody */
    void *told_userp;
    size_t layers_told; /* of this run */
    void *workspace;    /* the caller's, on the device; NULL: TensorRT's own */
    size_t workspace_bytes;
} trt_running;

const char *trt_input_name(const trt_running *r, size_t index);
const char *trt_output_name(const trt_running *r, size_t index);
/* TensorRT's part of a context, anew, with all that was bound and chosen. */
kelp_status *trt_context_open(trt_running *r) KELP_MUST_USE;
/* Puts a run into `stream`, from the inputs' copies to TensorRT's last kernel. */
kelp_status *trt_context_start(trt_running *r, trt_stream stream) KELP_MUST_USE;
/* Where an output goes, and its way there put into the stream. */
kelp_status *trt_context_fetch(trt_running *r, size_t index, trt_stream stream,
                               kelp_tensor *out) KELP_MUST_USE;

#endif
