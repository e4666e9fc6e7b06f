/* SPDX-License-Identifier: Apache-2.0 */
/* Small value objects of the C API: buffer attributes, response allocators, parameters. */
#ifndef KELP_SERVER_CORE_VALUES_H_
#define KELP_SERVER_CORE_VALUES_H_

#include <kelp/status.h>
#include <triton/core/tritonserver.h>

/* Size and location of a buffer. TRITONSERVER_BufferAttributes is a pointer to it. */
typedef struct kelp_buffer_attributes {
    size_t size_bytes;
    TRITONSERVER_MemoryType memory_type;
    int64_t memory_type_id;
    void *cuda_ipc_handle;
} kelp_buffer_attributes;

/* The callbacks that provide buffers for outputs. TRITONSERVER_ResponseAllocator is a pointer to
 * it.
 */
typedef struct kelp_response_allocator {
    TRITONSERVER_ResponseAllocatorAllocFn_t alloc_fn;
    TRITONSERVER_ResponseAllocatorReleaseFn_t release_fn;
    TRITONSERVER_ResponseAllocatorStartFn_t start_fn;
    TRITONSERVER_ResponseAllocatorQueryFn_t query_fn;
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t attributes_fn;
} kelp_response_allocator;

/* A named value: a parameter of a load, a label of a metric. TRITONSERVER_Parameter is a pointer to
 * it. */
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

/* Creates a parameter from the value that `value` points to. BYTES: from `size_bytes` bytes, which
 * are borrowed. Uses the process-wide allocator, because parameters have no parent. */
kelp_status *kelp_parameter_create(const char *name, TRITONSERVER_ParameterType type,
                                   const void *value, uint64_t size_bytes,
                                   kelp_parameter **out) KELP_MUST_USE;
/* Frees a parameter. NULL is ignored. */
void kelp_parameter_destroy(kelp_parameter *parameter);

#endif
