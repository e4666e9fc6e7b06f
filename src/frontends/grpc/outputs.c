/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of outputs. Called on threads of models. */
#include "base/alloc.h"
#include "base/checked.h"
#include "frontends/grpc/exchange.h"

#include <stdio.h>

/* Precedes the output of a decoupled model, which is freed with its response. */
typedef struct heap_output {
    kelp_allocator allocator;
    size_t total_bytes;
} heap_output;

/* Returns the memory of an output in a shared memory region, NULL in *out if it is in none. */
static TRITONSERVER_Error *find_region(const kelp_grpc_request *request, const char *name,
                                       size_t size_bytes, void **out) {
    const kelp_grpc_requested_output *requested =
        kelp_grpc_find_requested(&request->decoded, 0, name);
    if (requested == NULL || requested->region == NULL)
        return NULL;
    if (size_bytes > requested->memory_bytes) {
        char text[256];
        snprintf(text, sizeof text,
                 "shared memory size specified with the request for output '%.96s' (%llu bytes) "
                 "should be at least %zu bytes to hold the results",
                 name, (unsigned long long)requested->memory_bytes, size_bytes);
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, text);
    }
    *out = requested->memory;
    return NULL;
}

TRITONSERVER_Error *kelp_grpc_allocate_output(TRITONSERVER_ResponseAllocator *allocator,
                                              const char *tensor_name, size_t byte_size,
                                              TRITONSERVER_MemoryType memory_type,
                                              int64_t memory_type_id, void *userp, void **buffer,
                                              void **buffer_userp,
                                              TRITONSERVER_MemoryType *actual_memory_type,
                                              int64_t *actual_memory_type_id) {
    (void)allocator, (void)memory_type, (void)memory_type_id;
    kelp_grpc_request *request = userp;
    size_t total;
    *buffer = *buffer_userp = NULL;
    *actual_memory_type = TRITONSERVER_MEMORY_CPU;
    *actual_memory_type_id = 0;
    if (byte_size == 0)
        return NULL;
    TRITONSERVER_Error *failed = find_region(request, tensor_name, byte_size, buffer);
    if (failed != NULL || *buffer != NULL)
        return failed;
    if (!request->decoupled) {
        *buffer = kelp_arena_alloc(&request->outputs, byte_size, KELP_TENSOR_ALIGNMENT);
    } else if (kelp_size_add(byte_size, KELP_TENSOR_ALIGNMENT, &total)) {
        kelp_allocator heap = request->exchange->base.allocator;
        heap_output *output = heap.realloc(heap.userp, NULL, 0, total, KELP_TENSOR_ALIGNMENT);
        if (output != NULL) {
            *output = (heap_output){heap, total};
            *buffer = (char *)output + KELP_TENSOR_ALIGNMENT;
            *buffer_userp = output;
        }
    }
    if (*buffer != NULL)
        return NULL;
    kelp_status *status = KELP_ERROR(KELP_UNAVAILABLE, "out of memory for output '%s' of %zu bytes",
                                     tensor_name, byte_size);
    TRITONSERVER_Error *error =
        TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, kelp_status_message(status));
    kelp_status_free(status);
    return error;
}

TRITONSERVER_Error *kelp_grpc_release_output(TRITONSERVER_ResponseAllocator *allocator,
                                             void *buffer, void *buffer_userp, size_t byte_size,
                                             TRITONSERVER_MemoryType memory_type,
                                             int64_t memory_type_id) {
    (void)allocator, (void)buffer, (void)byte_size, (void)memory_type, (void)memory_type_id;
    heap_output *output = buffer_userp;
    if (output != NULL) /* otherwise the request frees its outputs together */
        kelp_free_aligned(output->allocator, output, output->total_bytes, KELP_TENSOR_ALIGNMENT);
    return NULL;
}
