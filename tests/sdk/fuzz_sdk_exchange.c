/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors as they come over the wire, read by the kit: a byte of type, a byte of rank, that many
 * bytes of extents, then the data. What is accepted is written again, and is the same.
 */
#include "base/triton/convert.h"
#include "sdk/sdk.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int64_t shape[8];
    kelp_tensor tensor;
    kelp_arena arena;
    if (size < 2)
        return 0;
    kelp_dtype dtype = kelp_dtype_from_triton((TRITONSERVER_DataType)(data[0] % 15));
    int32_t rank = data[1] % 8;
    if (size < 2 + (size_t)rank)
        return 0;
    for (int32_t i = 0; i < rank; i++)
        shape[i] = (int8_t)data[2 + i];
    const uint8_t *bytes = data + 2 + rank;
    size_t length = size - 2 - (size_t)rank;
    kelp_arena_init(&arena, kelp_allocator_system(), 0);
    kelp_status *status =
        kit_tensor_from_wire(&arena, "input", "x", dtype, rank, shape, bytes, length, &tensor);
    size_t again = 0;
    if (!status)
        status = kit_wire_bytes(&tensor, &again);
    if (!status) {
        char *copy = malloc(again + 1);
        if (again != length || !copy)
            abort();
        kit_wire_write(&tensor, copy);
        if (length && memcmp(copy, bytes, length) != 0)
            abort();
        free(copy);
    }
    kelp_status_free(status);
    kelp_arena_deinit(&arena);
    return 0;
}
