/* SPDX-License-Identifier: Apache-2.0 */
/* The C API: parameters, messages, buffer attributes and response allocators. */
#include "server/core/values.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/assert.h"
#include "base/text/json.h"
#include "server/core/error.h"
#include "server/core/heap.h"
#include "server/core/message.h"

/* ---- parameters ---- */

/* Returns NULL on failure, because these functions of the API return no errors. */
static TRITONSERVER_Parameter *create_parameter(const char *name, TRITONSERVER_ParameterType type,
                                                const void *value, uint64_t size_bytes) {
    kelp_parameter *parameter = NULL;
    kelp_status_free(kelp_parameter_create(name, type, value, size_bytes, &parameter));
    return (TRITONSERVER_Parameter *)parameter;
}

TRITONSERVER_Parameter *TRITONSERVER_ParameterNew(const char *name,
                                                  const TRITONSERVER_ParameterType type,
                                                  const void *value) {
    if (name == NULL || value == NULL || (unsigned)type > TRITONSERVER_PARAMETER_DOUBLE)
        return NULL;
    return create_parameter(name, type, type == TRITONSERVER_PARAMETER_BYTES ? NULL : value, 0);
}

TRITONSERVER_Parameter *TRITONSERVER_ParameterBytesNew(const char *name, const void *byte_ptr,
                                                       const uint64_t size) {
    if (name == NULL || (byte_ptr == NULL && size))
        return NULL;
    return create_parameter(name, TRITONSERVER_PARAMETER_BYTES, byte_ptr, size);
}

void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter *parameter) {
    kelp_parameter_destroy((kelp_parameter *)parameter);
}

/* ---- messages ---- */

TRITONSERVER_Error *TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message **message,
                                                              const char *base, size_t byte_size) {
    if (message == NULL || base == NULL)
        return kelp_null_error(__func__, message != NULL ? "base" : "message");
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_process_allocator(), 0);
    kelp_json *root = NULL;
    kelp_status *status = kelp_json_parse(&arena, "message", base, byte_size, &root);
    kelp_arena_deinit(&arena);
    if (status == NULL)
        status =
            kelp_message_copy(kelp_process_allocator(), base, byte_size, (kelp_message **)message);
    return kelp_to_error(status);
}

TRITONSERVER_Error *TRITONSERVER_MessageDelete(TRITONSERVER_Message *message) {
    kelp_message_destroy((kelp_message *)message);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *handle,
                                                        const char **base, size_t *byte_size) {
    if (handle == NULL || base == NULL || byte_size == NULL)
        return kelp_null_error(__func__, handle == NULL ? "message"
                                         : base == NULL ? "base"
                                                        : "byte_size");
    const kelp_message *message = (const kelp_message *)handle;
    KELP_ASSERT(message->text != NULL && message->text[message->length] == '\0');
    *base = message->text;
    *byte_size = message->length;
    return NULL;
}

/* ---- buffer attributes ---- */

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesNew(TRITONSERVER_BufferAttributes **buffer_attributes) {
    if (buffer_attributes == NULL)
        return kelp_null_error(__func__, "buffer_attributes");
    return kelp_to_error(
        KELP_NEW(kelp_process_allocator(), kelp_buffer_attributes, buffer_attributes));
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesDelete(TRITONSERVER_BufferAttributes *buffer_attributes) {
    kelp_free(kelp_process_allocator(), buffer_attributes, sizeof(kelp_buffer_attributes));
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryTypeId(TRITONSERVER_BufferAttributes *buffer_attributes,
                                             int64_t memory_type_id) {
    if (buffer_attributes == NULL)
        return kelp_null_error(__func__, "buffer_attributes");
    ((kelp_buffer_attributes *)buffer_attributes)->memory_type_id = memory_type_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryType(TRITONSERVER_BufferAttributes *buffer_attributes,
                                           TRITONSERVER_MemoryType memory_type) {
    if (buffer_attributes == NULL)
        return kelp_null_error(__func__, "buffer_attributes");
    ((kelp_buffer_attributes *)buffer_attributes)->memory_type = memory_type;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetCudaIpcHandle(TRITONSERVER_BufferAttributes *buffer_attributes,
                                              void *cuda_ipc_handle) {
    if (buffer_attributes == NULL)
        return kelp_null_error(__func__, "buffer_attributes");
    ((kelp_buffer_attributes *)buffer_attributes)->cuda_ipc_handle = cuda_ipc_handle;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetByteSize(TRITONSERVER_BufferAttributes *buffer_attributes,
                                         size_t byte_size) {
    if (buffer_attributes == NULL)
        return kelp_null_error(__func__, "buffer_attributes");
    ((kelp_buffer_attributes *)buffer_attributes)->size_bytes = byte_size;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryTypeId(TRITONSERVER_BufferAttributes *buffer_attributes,
                                          int64_t *memory_type_id) {
    if (buffer_attributes == NULL || memory_type_id == NULL)
        return kelp_null_error(__func__,
                               buffer_attributes != NULL ? "memory_type_id" : "buffer_attributes");
    *memory_type_id = ((kelp_buffer_attributes *)buffer_attributes)->memory_type_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryType(TRITONSERVER_BufferAttributes *buffer_attributes,
                                        TRITONSERVER_MemoryType *memory_type) {
    if (buffer_attributes == NULL || memory_type == NULL)
        return kelp_null_error(__func__,
                               buffer_attributes != NULL ? "memory_type" : "buffer_attributes");
    *memory_type = ((kelp_buffer_attributes *)buffer_attributes)->memory_type;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesCudaIpcHandle(TRITONSERVER_BufferAttributes *buffer_attributes,
                                           void **cuda_ipc_handle) {
    if (buffer_attributes == NULL || cuda_ipc_handle == NULL)
        return kelp_null_error(__func__,
                               buffer_attributes != NULL ? "cuda_ipc_handle" : "buffer_attributes");
    *cuda_ipc_handle = ((kelp_buffer_attributes *)buffer_attributes)->cuda_ipc_handle;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesByteSize(TRITONSERVER_BufferAttributes *buffer_attributes,
                                      size_t *byte_size) {
    if (buffer_attributes == NULL || byte_size == NULL)
        return kelp_null_error(__func__,
                               buffer_attributes != NULL ? "byte_size" : "buffer_attributes");
    *byte_size = ((kelp_buffer_attributes *)buffer_attributes)->size_bytes;
    return NULL;
}

/* ---- response allocators ---- */

TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorNew(TRITONSERVER_ResponseAllocator **allocator,
                                  TRITONSERVER_ResponseAllocatorAllocFn_t alloc_fn,
                                  TRITONSERVER_ResponseAllocatorReleaseFn_t release_fn,
                                  TRITONSERVER_ResponseAllocatorStartFn_t start_fn) {
    if (allocator == NULL || alloc_fn == NULL || release_fn == NULL)
        return kelp_null_error(__func__, allocator == NULL  ? "allocator"
                                         : alloc_fn == NULL ? "alloc_fn"
                                                            : "release_fn");
    kelp_response_allocator *created = NULL;
    kelp_status *status = KELP_NEW(kelp_process_allocator(), kelp_response_allocator, &created);
    if (status != NULL)
        return kelp_to_error(status);
    created->alloc_fn = alloc_fn;
    created->release_fn = release_fn;
    created->start_fn = start_fn;
    *allocator = (TRITONSERVER_ResponseAllocator *)created;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
    TRITONSERVER_ResponseAllocator *allocator,
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t buffer_attributes_fn) {
    if (allocator == NULL)
        return kelp_null_error(__func__, "allocator");
    ((kelp_response_allocator *)allocator)->attributes_fn = buffer_attributes_fn;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorSetQueryFunction(TRITONSERVER_ResponseAllocator *allocator,
                                               TRITONSERVER_ResponseAllocatorQueryFn_t query_fn) {
    if (allocator == NULL)
        return kelp_null_error(__func__, "allocator");
    ((kelp_response_allocator *)allocator)->query_fn = query_fn;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorDelete(TRITONSERVER_ResponseAllocator *allocator) {
    kelp_free(kelp_process_allocator(), allocator, sizeof(kelp_response_allocator));
    return NULL;
}
