/* SPDX-License-Identifier: Apache-2.0 */
/* Implements shapes and tensor descriptors. */
#include <kelp/tensor.h>

#include "base/checked.h"

#include <stdio.h>
#include <string.h>

bool kelp_shape_elements(int32_t rank, const int64_t *shape, int64_t *out_elements) {
    int64_t count = 1;
    bool empty = false;
    for (int32_t i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return false;
        if (shape[i] == 0)
            empty = true;
        else if (!kelp_i64_mul(count, shape[i], &count))
            return false;
    }
    *out_elements = empty ? 0 : count;
    return true;
}

bool kelp_dtype_bytes(kelp_dtype dtype, int64_t elements, size_t *out_bytes) {
    uint32_t bits = kelp_dtype_bits(dtype);
    size_t total;
    if (bits == 0 || elements < 0)
        return false;
    if (bits >= 8)
        return kelp_size_mul((size_t)elements, bits / 8, out_bytes);
    if (!kelp_size_mul((size_t)elements, bits, &total) || total > SIZE_MAX - 7)
        return false;
    *out_bytes = (total + 7) / 8;
    return true;
}

kelp_status *kelp_tensor_init(kelp_tensor *out, kelp_dtype dtype, int32_t rank,
                              const int64_t *shape, void *data) {
    int64_t elements;
    size_t bytes;
    if (rank < 0 || rank > KELP_MAX_RANK)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "invalid tensor rank %d: expected 0 to %d", rank,
                          KELP_MAX_RANK);
    if (kelp_dtype_bits(dtype) == 0)
        return KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown element type %d", (int)dtype);
    if (!kelp_shape_elements(rank, shape, &elements) ||
        !kelp_dtype_bytes(dtype, elements, &bytes)) {
        char text[256];
        kelp_shape_format(rank, shape, text, sizeof text);
        return KELP_ERROR(KELP_INVALID_ARGUMENT,
                          "invalid tensor shape %s: expected no negative dimension and a size that "
                          "fits the address space",
                          text);
    }
    out->data = data;
    out->dtype = dtype;
    out->rank = rank;
    int64_t stride = 1;
    for (int32_t i = rank; i-- > 0;) {
        out->shape[i] = shape[i];
        out->strides[i] = stride;
        stride *= shape[i] > 0 ? shape[i] : 1;
    }
    out->device = (DLDevice){kDLCPU, 0};
    out->flags = 0;
    return NULL;
}

int64_t kelp_tensor_elements(const kelp_tensor *tensor) {
    int64_t elements = 1;
    for (int32_t i = 0; i < tensor->rank; i++)
        elements *= tensor->shape[i];
    return elements;
}

size_t kelp_tensor_bytes(const kelp_tensor *tensor) {
    size_t bytes = 0;
    kelp_dtype_bytes(tensor->dtype, kelp_tensor_elements(tensor), &bytes);
    return bytes;
}

bool kelp_tensor_is_compact(const kelp_tensor *tensor) {
    int64_t stride = 1;
    for (int32_t i = tensor->rank; i-- > 0;) {
        if (tensor->shape[i] == 0)
            return true;
        if (tensor->shape[i] != 1 && tensor->strides[i] != stride)
            return false;
        stride *= tensor->shape[i];
    }
    return true;
}

size_t kelp_shape_format(int32_t rank, const int64_t *shape, char *buffer, size_t capacity) {
    size_t length = 0;
    char piece[32];
    if (rank < 0) {
        int unknown = snprintf(buffer, capacity, "of unknown rank");
        return (size_t)unknown;
    }
    for (int32_t i = 0; i <= rank; i++) {
        int n = i < rank ? snprintf(piece, sizeof piece, "%s%lld", i == 0 ? "[" : ",",
                                    (long long)shape[i])
                         : snprintf(piece, sizeof piece, "%s", rank == 0 ? "[]" : "]");
        for (int k = 0; k < n; k++, length++)
            if (length + 1 < capacity)
                buffer[length] = piece[k];
    }
    if (capacity > 0)
        buffer[length < capacity ? length : capacity - 1] = '\0';
    return length;
}
