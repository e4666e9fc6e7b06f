/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of tensors against the inputs that a model declares, on the path of every run. */
#ifndef KELP_RUNTIME_IO_H_
#define KELP_RUNTIME_IO_H_

#include <kelp/engine.h>

/* Return INVALID_ARGUMENT that names the input, what was expected and what was found. */
kelp_status *kelp_io_wrong_dtype(const kelp_io_info *info, const kelp_tensor *tensor) KELP_MUST_USE;
kelp_status *kelp_io_wrong_shape(const kelp_io_info *info, const kelp_tensor *tensor) KELP_MUST_USE;

/* An input without a declared element type takes any. */
KELP_MUST_USE static inline kelp_status *kelp_io_check_dtype(const kelp_io_info *info,
                                                             const kelp_tensor *tensor) {
    return info->dtype == KELP_DTYPE_INVALID || info->dtype == tensor->dtype
               ? NULL
               : kelp_io_wrong_dtype(info, tensor);
}

/* An input without a declared rank takes any, and so does a dynamic dimension. */
KELP_MUST_USE static inline kelp_status *kelp_io_check_shape(const kelp_io_info *info,
                                                             const kelp_tensor *tensor) {
    bool fits = info->rank < 0 || info->rank == tensor->rank;
    for (int32_t i = 0; fits && i < info->rank; i++)
        fits = info->shape[i] < 0 || info->shape[i] == tensor->shape[i];
    return fits ? NULL : kelp_io_wrong_shape(info, tensor);
}

#endif
