/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files, formats 1.0 to 3.0 (numpy.lib.format, "Format Version"). Supported: booleans,
 * integers, float16/32/64, complex64/128, |S and <U strings (as UTF-8), little-endian, C order, and
 * Fortran order (transposed). Pickled objects are rejected. */
#ifndef KELP_CLI_NPY_H_
#define KELP_CLI_NPY_H_

#include "base/buf.h"

#include <kelp/tensor.h>

/* A tensor with its memory: contiguous, row-major, aligned to 64 bytes. A zeroed array is empty. */
typedef struct kelp_array {
    kelp_tensor tensor;
    void *data;
    size_t data_bytes;
    char *text; /* bytes of string elements */
    size_t text_bytes;
} kelp_array;

/* Allocates zeroed memory for a tensor of this type and shape. */
kelp_status *kelp_array_init(kelp_array *out, kelp_dtype dtype, int32_t rank,
                             const int64_t *shape) KELP_MUST_USE;
void kelp_array_deinit(kelp_array *array);

/* Parse a file. INVALID_ARGUMENT quotes `label`; UNIMPLEMENTED for an unsupported type. `out` is
 * empty on failure. */
kelp_status *kelp_npy_parse(const char *label, const void *data, size_t size_bytes,
                            kelp_array *out) KELP_MUST_USE;
kelp_status *kelp_npy_load(const char *path, kelp_array *out) KELP_MUST_USE;

/* Appends a file of format 1.0, or 3.0 if the header needs it. Strings become <U, or |S for invalid
 * UTF-8. UNIMPLEMENTED for types that NumPy lacks: bfloat16, 8-bit floats, 4-bit numbers. `label`
 * identifies the tensor in errors. */
kelp_status *kelp_npy_write(const char *label, const kelp_tensor *tensor,
                            kelp_buf *out) KELP_MUST_USE;
kelp_status *kelp_npy_save(const char *path, const char *label,
                           const kelp_tensor *tensor) KELP_MUST_USE;

#endif
