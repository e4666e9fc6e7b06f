/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the C API share: the border between kelp_status and TRITONSERVER_Error, and the
 * objects that exist only at that border. A TRITONSERVER_Error is a kelp_status; only the pointer's
 * type changes.
 */
#ifndef KELP_SERVER_CORE_VALUES_H_
#define KELP_SERVER_CORE_VALUES_H_

#include "base/alloc.h"
#include "base/buf.h"

#include <triton/core/tritonbackend.h>
#include <triton/core/tritonserver.h>

/* Hands a status over the border. A status with causes becomes one whose message names them all. */
TRITONSERVER_Error *kelp_to_error(kelp_status *take_status);

static inline kelp_status *kelp_from_error(TRITONSERVER_Error *error) {
    return (kelp_status *)error;
}

TRITONSERVER_Error_Code kelp_code_to_triton(kelp_code code);
kelp_code kelp_code_from_triton(TRITONSERVER_Error_Code code);

/* INVALID_ARG: "FUNCTION: 'what' must not be NULL". */
TRITONSERVER_Error *kelp_abi_null(const char *function, const char *what);

/* ---- messages: a JSON text ---- */
typedef struct kelp_message {
    char *text;
    size_t length;
    size_t capacity;
} kelp_message;

/* Takes what the buffer holds (which is empty afterwards), or reports that the buffer had failed.
 */
kelp_status *kelp_message_create(kelp_buf *take_json, kelp_message **out) KELP_MUST_USE;
kelp_status *kelp_message_copy(const char *text, size_t length, kelp_message **out) KELP_MUST_USE;
void kelp_message_destroy(kelp_message *message);

/* ---- buffer attributes ---- */
typedef struct kelp_buffer_attributes {
    size_t size_bytes;
    TRITONSERVER_MemoryType memory_type;
    int64_t memory_type_id;
    void *cuda_ipc_handle;
} kelp_buffer_attributes;

/* ---- response allocator ---- */
typedef struct kelp_response_allocator {
    TRITONSERVER_ResponseAllocatorAllocFn_t alloc_fn;
    TRITONSERVER_ResponseAllocatorReleaseFn_t release_fn;
    TRITONSERVER_ResponseAllocatorStartFn_t start_fn;
    TRITONSERVER_ResponseAllocatorQueryFn_t query_fn;
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t attributes_fn;
} kelp_response_allocator;

/* ---- parameter ---- */
typedef struct kelp_parameter {
    char *name;
    TRITONSERVER_ParameterType type;
    char *string; /* STRING */
    int64_t i64;
    double f64;
    bool boolean;
    const void *bytes; /* BYTES, borrowed */
    uint64_t size_bytes;
} kelp_parameter;

#endif
