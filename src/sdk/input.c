/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of a request: as the server's pieces, or as one tensor. */
#include "sdk/sdk.h"

#include "base/triton/convert.h"

bool kelp_backend_has_input(const kelp_backend_request *request, const char *name) {
    TRITONBACKEND_Input *input = NULL;
    return sdk_ok(TRITONBACKEND_RequestInput(request->raw, name, &input));
}

kelp_status *kelp_backend_pieces_init(kelp_backend_pieces *pieces,
                                      const kelp_backend_request *request, const char *name) {
    TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
    uint32_t rank = 0;
    *pieces = (kelp_backend_pieces){.name = name};
    KELP_TRY(sdk_status(TRITONBACKEND_RequestInput(request->raw, name, &pieces->raw)));
    KELP_TRY(
        sdk_status(TRITONBACKEND_InputProperties(pieces->raw, &pieces->name, &type, &pieces->shape,
                                                 &rank, &pieces->size_bytes, &pieces->count)));
    pieces->dtype = kelp_dtype_from_triton(type);
    return kelp_sdk_check("input", pieces->name, pieces->dtype, pieces->rank = (int32_t)rank,
                          KELP_DTYPE_INVALID, KELP_ANY_RANK);
}

kelp_status *kelp_backend_pieces_next(kelp_backend_pieces *pieces, const void **out_data,
                                      size_t *out_size_bytes) {
    const void *data = NULL;
    uint64_t size_bytes = 0;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    *out_data = NULL;
    *out_size_bytes = 0;
    while (pieces->index < pieces->count) {
        type = TRITONSERVER_MEMORY_CPU;
        id = 0;
        KELP_TRY(sdk_status(
            TRITONBACKEND_InputBuffer(pieces->raw, pieces->index, &data, &size_bytes, &type, &id)));
        if (type == TRITONSERVER_MEMORY_GPU)
            return kelp_sdk_not_on_host("input", pieces->name, id);
        pieces->index++;
        if (size_bytes == 0)
            continue; /* an empty piece may have no address */
        *out_data = data;
        *out_size_bytes = (size_t)size_bytes;
        return NULL;
    }
    return NULL;
}

kelp_status *kelp_backend_pieces_copy(kelp_backend_pieces *pieces, void *buffer,
                                      size_t capacity_bytes) {
    size_t filled = 0;
    for (;;) {
        KELP_ASSERT(filled <= capacity_bytes);
        const void *data;
        size_t size_bytes;
        KELP_TRY(kelp_backend_pieces_next(pieces, &data, &size_bytes));
        if (data == NULL)
            return NULL;
        if (size_bytes > capacity_bytes - filled)
            return KELP_ERROR(KELP_RESOURCE_EXHAUSTED, "input '%s' is larger than %zu bytes",
                              pieces->name, capacity_bytes);
        memcpy((char *)buffer + filled, data, size_bytes);
        filled += size_bytes;
    }
}

/* Returns the alignment of elements. Strings are read byte by byte. */
static uintptr_t alignment_of(kelp_dtype dtype) {
    return dtype == KELP_STRING ? 1 : KELP_MAX(kelp_dtype_bits(dtype) / 8, 1u);
}

/* Returns all bytes of an input: in place if they are one aligned piece, otherwise a copy. In the
 * body of an HTTP request, an input may be unaligned. */
static kelp_status *contiguous(kelp_backend_request *request, kelp_backend_pieces *pieces,
                               const void **out) {
    const void *first;
    size_t first_bytes;
    KELP_TRY(kelp_backend_pieces_next(pieces, &first, &first_bytes));
    if (first_bytes == pieces->size_bytes && (uintptr_t)first % alignment_of(pieces->dtype) == 0) {
        *out = first;
        return NULL;
    }
    char *copy = kelp_backend_request_alloc(request, (size_t)pieces->size_bytes);
    if (copy == NULL)
        return kelp_status_oom();
    if (first_bytes > pieces->size_bytes)
        return KELP_ERROR(KELP_INTERNAL, "input '%s' is larger than its declared size",
                          pieces->name);
    if (first != NULL)
        memcpy(copy, first, first_bytes);
    KELP_TRY(kelp_backend_pieces_copy(pieces, copy + first_bytes,
                                      (size_t)pieces->size_bytes - first_bytes));
    *out = copy;
    return NULL;
}

kelp_status *kelp_backend_input(kelp_backend_request *request, const char *name, kelp_dtype dtype,
                                int32_t rank, kelp_tensor *out) {
    kelp_backend_pieces pieces;
    const void *data = NULL;
    KELP_TRY(kelp_backend_pieces_init(&pieces, request, name));
    KELP_TRY(kelp_sdk_check("input", pieces.name, pieces.dtype, pieces.rank, dtype, rank));
    KELP_TRY(contiguous(request, &pieces, &data));
    return kelp_sdk_tensor_from_wire(&request->arena, "input", pieces.name, pieces.dtype,
                                     pieces.rank, pieces.shape, data, pieces.size_bytes, out);
}

/* Gets the data of an input that can be used in place; NULL if it has to be copied. */
static kelp_status *in_place(const kelp_backend_pieces *pieces, kelp_backend_memory *inout_memory,
                             const void **out) {
    const void *data = NULL;
    uint64_t size_bytes = 0;
    *out = NULL;
    if (pieces->count != 1 || pieces->dtype == KELP_STRING)
        return NULL;
    KELP_TRY(sdk_status(TRITONBACKEND_InputBuffer(pieces->raw, 0, &data, &size_bytes,
                                                  &inout_memory->type, &inout_memory->id)));
    if (size_bytes == pieces->size_bytes && (inout_memory->type == TRITONSERVER_MEMORY_GPU ||
                                             (uintptr_t)data % alignment_of(pieces->dtype) == 0))
        *out = data;
    return NULL;
}

kelp_status *kelp_backend_input_in(kelp_backend_request *request, const char *name,
                                   kelp_dtype dtype, int32_t rank, kelp_backend_memory preferred,
                                   kelp_tensor *out) {
    kelp_backend_pieces pieces;
    const void *data = NULL;
    kelp_backend_memory memory = preferred;
    KELP_TRY(kelp_backend_pieces_init(&pieces, request, name));
    KELP_TRY(kelp_sdk_check("input", pieces.name, pieces.dtype, pieces.rank, dtype, rank));
    KELP_TRY(in_place(&pieces, &memory, &data));
    if (data == NULL) {
        memory = KELP_BACKEND_HOST_MEMORY;
        KELP_TRY(contiguous(request, &pieces, &data));
    }
    KELP_TRY(kelp_sdk_tensor_from_wire(&request->arena, "input", pieces.name, pieces.dtype,
                                       pieces.rank, pieces.shape, data, pieces.size_bytes, out));
    out->device = kelp_sdk_device_of(memory);
    return NULL;
}
