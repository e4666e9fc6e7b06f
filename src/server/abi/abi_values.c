/* SPDX-License-Identifier: Apache-2.0 */
/* The small value objects of the C API: parameters, messages, buffer attributes, response
 * allocators. */
#include "base/arena.h"
#include "base/json.h"
#include "server/core/values.h"

/* ---- parameters ---- */

static kelp_parameter *parameter_create(const char *name, TRITONSERVER_ParameterType type) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_parameter *parameter = NULL;
    kelp_status *status = KELP_NEW(heap, kelp_parameter, &parameter);
    if (!status)
        status = kelp_strdup(heap, name, &parameter->name);
    if (status) {
        /* The API has no way to say more than NULL here. */
        kelp_status_free(status);
        if (parameter)
            kelp_free(heap, parameter, sizeof *parameter);
        return NULL;
    }
    parameter->type = type;
    return parameter;
}

TRITONSERVER_Parameter *TRITONSERVER_ParameterNew(const char *name,
                                                  const TRITONSERVER_ParameterType type,
                                                  const void *value) {
    if (!name || !value || (unsigned)type > TRITONSERVER_PARAMETER_DOUBLE)
        return NULL;
    kelp_parameter *parameter = parameter_create(name, type);
    if (!parameter)
        return NULL;
    switch (type) {
    case TRITONSERVER_PARAMETER_STRING: {
        kelp_status *status = kelp_strdup(kelp_allocator_system(), value, &parameter->string);
        if (status) {
            kelp_status_free(status);
            TRITONSERVER_ParameterDelete((TRITONSERVER_Parameter *)parameter);
            return NULL;
        }
        break;
    }
    case TRITONSERVER_PARAMETER_INT:
        parameter->i64 = *(const int64_t *)value;
        break;
    case TRITONSERVER_PARAMETER_BOOL:
        parameter->boolean = *(const bool *)value;
        break;
    case TRITONSERVER_PARAMETER_DOUBLE:
        parameter->f64 = *(const double *)value;
        break;
    case TRITONSERVER_PARAMETER_BYTES:
        break;
    }
    return (TRITONSERVER_Parameter *)parameter;
}

TRITONSERVER_Parameter *TRITONSERVER_ParameterBytesNew(const char *name, const void *byte_ptr,
                                                       const uint64_t size) {
    if (!name || (!byte_ptr && size))
        return NULL;
    kelp_parameter *parameter = parameter_create(name, TRITONSERVER_PARAMETER_BYTES);
    if (!parameter)
        return NULL;
    parameter->bytes = byte_ptr;
    parameter->size_bytes = size;
    return (TRITONSERVER_Parameter *)parameter;
}

void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter *handle) {
    kelp_parameter *parameter = (kelp_parameter *)handle;
    if (!parameter)
        return;
    kelp_allocator heap = kelp_allocator_system();
    kelp_free_string(heap, parameter->string);
    kelp_free_string(heap, parameter->name);
    kelp_free(heap, parameter, sizeof *parameter);
}

/* ---- messages ---- */

kelp_status *kelp_message_create(kelp_buf *take_json, kelp_message **out) {
    kelp_message *message = NULL;
    kelp_buf_cstr(take_json);
    KELP_TRY(kelp_buf_status(take_json));
    KELP_TRY(KELP_NEW(kelp_allocator_system(), kelp_message, &message));
    message->text = kelp_buf_take(take_json, &message->length, &message->capacity);
    *out = message;
    return NULL;
}

kelp_status *kelp_message_copy(const char *text, size_t length, kelp_message **out) {
    kelp_buf json;
    kelp_buf_init(&json, kelp_allocator_system());
    kelp_buf_append(&json, text, length);
    kelp_status *status = kelp_message_create(&json, out);
    kelp_buf_deinit(&json);
    return status;
}

void kelp_message_destroy(kelp_message *message) {
    if (!message)
        return;
    kelp_allocator heap = kelp_allocator_system();
    kelp_free(heap, message->text, message->capacity);
    kelp_free(heap, message, sizeof *message);
}

TRITONSERVER_Error *TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message **message,
                                                              const char *base, size_t byte_size) {
    if (!message || !base)
        return kelp_abi_null(__func__, message ? "base" : "message");
    kelp_arena arena;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_json *root = NULL;
    kelp_status *status = kelp_json_parse(&arena, "message", base, byte_size, &root);
    kelp_arena_deinit(&arena);
    if (!status)
        status = kelp_message_copy(base, byte_size, (kelp_message **)message);
    return kelp_to_error(status);
}

TRITONSERVER_Error *TRITONSERVER_MessageDelete(TRITONSERVER_Message *message) {
    kelp_message_destroy((kelp_message *)message);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *handle,
                                                        const char **base, size_t *byte_size) {
    if (!handle || !base || !byte_size)
        return kelp_abi_null(__func__, !handle ? "message" : !base ? "base" : "byte_size");
    const kelp_message *message = (const kelp_message *)handle;
    *base = message->text;
    *byte_size = message->length;
    return NULL;
}

/* ---- buffer attributes ---- */

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesNew(TRITONSERVER_BufferAttributes **buffer_attributes) {
    if (!buffer_attributes)
        return kelp_abi_null(__func__, "buffer_attributes");
    return kelp_to_error(
        KELP_NEW(kelp_allocator_system(), kelp_buffer_attributes, buffer_attributes));
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesDelete(TRITONSERVER_BufferAttributes *buffer_attributes) {
    kelp_free(kelp_allocator_system(), buffer_attributes, sizeof(kelp_buffer_attributes));
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryTypeId(TRITONSERVER_BufferAttributes *buffer_attributes,
                                             int64_t memory_type_id) {
    if (!buffer_attributes)
        return kelp_abi_null(__func__, "buffer_attributes");
    ((kelp_buffer_attributes *)buffer_attributes)->memory_type_id = memory_type_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryType(TRITONSERVER_BufferAttributes *buffer_attributes,
                                           TRITONSERVER_MemoryType memory_type) {
    if (!buffer_attributes)
        return kelp_abi_null(__func__, "buffer_attributes");
    ((kelp_buffer_attributes *)buffer_attributes)->memory_type = memory_type;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetCudaIpcHandle(TRITONSERVER_BufferAttributes *buffer_attributes,
                                              void *cuda_ipc_handle) {
    if (!buffer_attributes)
        return kelp_abi_null(__func__, "buffer_attributes");
    ((kelp_buffer_attributes *)buffer_attributes)->cuda_ipc_handle = cuda_ipc_handle;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetByteSize(TRITONSERVER_BufferAttributes *buffer_attributes,
                                         size_t byte_size) {
    if (!buffer_attributes)
        return kelp_abi_null(__func__, "buffer_attributes");
    ((kelp_buffer_attributes *)buffer_attributes)->size_bytes = byte_size;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryTypeId(TRITONSERVER_BufferAttributes *buffer_attributes,
                                          int64_t *memory_type_id) {
    if (!buffer_attributes || !memory_type_id)
        return kelp_abi_null(__func__, buffer_attributes ? "memory_type_id" : "buffer_attributes");
    *memory_type_id = ((kelp_buffer_attributes *)buffer_attributes)->memory_type_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryType(TRITONSERVER_BufferAttributes *buffer_attributes,
                                        TRITONSERVER_MemoryType *memory_type) {
    if (!buffer_attributes || !memory_type)
        return kelp_abi_null(__func__, buffer_attributes ? "memory_type" : "buffer_attributes");
    *memory_type = ((kelp_buffer_attributes *)buffer_attributes)->memory_type;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesCudaIpcHandle(TRITONSERVER_BufferAttributes *buffer_attributes,
                                           void **cuda_ipc_handle) {
    if (!buffer_attributes || !cuda_ipc_handle)
        return kelp_abi_null(__func__, buffer_attributes ? "cuda_ipc_handle" : "buffer_attributes");
    *cuda_ipc_handle = ((kelp_buffer_attributes *)buffer_attributes)->cuda_ipc_handle;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesByteSize(TRITONSERVER_BufferAttributes *buffer_attributes,
                                      size_t *byte_size) {
    if (!buffer_attributes || !byte_size)
        return kelp_abi_null(__func__, buffer_attributes ? "byte_size" : "buffer_attributes");
    *byte_size = ((kelp_buffer_attributes *)buffer_attributes)->size_bytes;
    return NULL;
}

/* ---- response allocators ---- */

TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorNew(TRITONSERVER_ResponseAllocator **allocator,
                                  TRITONSERVER_ResponseAllocatorAllocFn_t alloc_fn,
                                  TRITONSERVER_ResponseAllocatorReleaseFn_t release_fn,
                                  TRITONSERVER_ResponseAllocatorStartFn_t start_fn) {
    if (!allocator || !alloc_fn || !release_fn)
        return kelp_abi_null(__func__, !allocator  ? "allocator"
                                       : !alloc_fn ? "alloc_fn"
                                                   : "release_fn");
    kelp_response_allocator *made = NULL;
    kelp_status *status = KELP_NEW(kelp_allocator_system(), kelp_response_allocator, &made);
    if (status)
        return kelp_to_error(status);
    made->alloc_fn = alloc_fn;
    made->release_fn = release_fn;
    made->start_fn = start_fn;
    *allocator = (TRITONSERVER_ResponseAllocator *)made;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
    TRITONSERVER_ResponseAllocator *allocator,
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t buffer_attributes_fn) {
    if (!allocator)
        return kelp_abi_null(__func__, "allocator");
    ((kelp_response_allocator *)allocator)->attributes_fn = buffer_attributes_fn;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorSetQueryFunction(TRITONSERVER_ResponseAllocator *allocator,
                                               TRITONSERVER_ResponseAllocatorQueryFn_t query_fn) {
    if (!allocator)
        return kelp_abi_null(__func__, "allocator");
    ((kelp_response_allocator *)allocator)->query_fn = query_fn;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorDelete(TRITONSERVER_ResponseAllocator *allocator) {
    kelp_free(kelp_allocator_system(), allocator, sizeof(kelp_response_allocator));
    return NULL;
}
