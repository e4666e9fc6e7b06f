/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of .npy files; what it accepts must be written and read back to the same
 * tensor. */
#include "cli/npy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kelp_array array, again;
    kelp_status *status = kelp_npy_parse("fuzz", data, size, &array);
    if (status) {
        kelp_status_free(status);
        return 0;
    }
    kelp_buf file;
    kelp_buf_init(&file, kelp_allocator_system());
    status = kelp_npy_write("fuzz", &array.tensor, &file);
    if (!status)
        status = kelp_npy_parse("again", file.data, file.length, &again);
    if (status)
        abort();
    if (again.tensor.dtype != array.tensor.dtype || again.tensor.rank != array.tensor.rank ||
        kelp_tensor_bytes(&again.tensor) != kelp_tensor_bytes(&array.tensor))
        abort();
    if (array.tensor.dtype != KELP_STRING && array.data_bytes &&
        memcmp(again.data, array.data, array.data_bytes) != 0)
        abort();
    kelp_array_deinit(&again);
    kelp_array_deinit(&array);
    kelp_buf_deinit(&file);
    return 0;
}
