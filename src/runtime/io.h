/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of tensors against the inputs that a model declares. Called for every run. */
#ifndef KELP_RUNTIME_IO_H_
#define KELP_RUNTIME_IO_H_

#include <kelp/engine.h>

/* Returns INVALID_ARGUMENT; the message has the input's name, the expected and the found value. */
kelp_status *kelp_io_wrong_dtype(const kelp_io_info *info, const kelp_tensor *tensor) KELP_MUST_USE;
kelp_status *kelp_io_wrong_shape(const kelp_io_info *info, const kelp_tensor *tensor) KELP_MUST_USE;

/* Checks the element type. An input without a declared element type accepts all types. */
KELP_MUST_USE static inline kelp_status *kelp_io_check_dtype(const kelp_io_info *info,
                                                             const kelp_tensor *tensor) {
    return info->dtype == KELP_DTYPE_INVALID || info->dtype == tensor->dtype
               ? NULL
               : kelp_io_wrong_dtype(info, tensor);
}

/* Checks the shape. An input without a declared rank accepts all shapes, and a dynamic dimension
 * accepts all sizes. */
KELP_MUST_USE static inline kelp_status *kelp_io_check_shape(const kelp_io_info *info,
                                                             const kelp_tensor *tensor) {
    bool matches = info->rank < 0 || info->rank == tensor->rank;
    for (int32_t i = 0; matches && i < info->rank; i++)
        matches = info->shape[i] < 0 || info->shape[i] == tensor->shape[i];
    return matches ? NULL : kelp_io_wrong_shape(info, tensor);
}

#endif
