/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the message ModelInferRequest. The inputs of the server's request are slices of the
 * message, without a copy, if they are in raw_input_contents and aligned for their type.
 *
 * Decoding has two steps, because a request of the server is created with the name of its model.
 * Malformed messages fail with INTERNAL, as in Triton, and wrong contents with INVALID_ARGUMENT.
 * Unknown fields are ignored.
 */
#ifndef KELP_FRONTENDS_GRPC_CODEC_INFER_REQUEST_H_
#define KELP_FRONTENDS_GRPC_CODEC_INFER_REQUEST_H_

#include "frontends/grpc/codec/decode.h"
#include "frontends/shm/uses.h"

#include <triton/core/tritonserver.h>

/* An output that the client requested. */
typedef struct kelp_grpc_requested_output {
    const char *name;
    uint32_t classes;   /* 0: the tensor itself */
    const char *region; /* the shared memory region that receives the output, or NULL */
    void *memory;       /* in the region */
    uint64_t memory_bytes;
} kelp_grpc_requested_output;

/* A decoded message. Everything is borrowed from the message or is in the arena. */
typedef struct kelp_grpc_infer_request {
    const char *model;
    int64_t version; /* -1: the server selects */
    const char *id;
    kelp_grpc_slices inputs, outputs, parameters, raw;
    /* set by kelp_grpc_fill_request */
    const kelp_grpc_requested_output *requested;
    size_t requested_count;
    bool sends_empty_final; /* triton_enable_empty_final_response */
    kelp_shm_use *regions;  /* the caller releases them, also after a failure */
} kelp_grpc_infer_request;

/* Returns the offset of the first tensor in raw_input_contents; 0 if there is none, or if it begins
 * after the first `length` bytes. */
size_t kelp_grpc_find_tensor(const void *message, size_t length);
/* Reads model, version and id, and finds the other parts. */
kelp_status *kelp_grpc_scan_request(kelp_arena *arena, kelp_str message,
                                    kelp_grpc_infer_request *out) KELP_MUST_USE;
/* Reads model and version from the first bytes of a message, where all clients put them. *out_model
 * is NULL if it was not found. */
kelp_status *kelp_grpc_peek_model(kelp_arena *arena, kelp_str first, const char **out_model,
                                  int64_t *out_version) KELP_MUST_USE;
/* Returns the requested output of a name, or NULL. `index` is its probable position. */
const kelp_grpc_requested_output *kelp_grpc_find_requested(const kelp_grpc_infer_request *request,
                                                           size_t index, const char *name);
/* Fills in the server's request. `shm` may be NULL. The message and the arena must live until the
 * server releases the request. */
kelp_status *kelp_grpc_fill_request(kelp_arena *arena, kelp_shm_registry *shm,
                                    kelp_grpc_infer_request *inout,
                                    TRITONSERVER_InferenceRequest *request) KELP_MUST_USE;

#endif
