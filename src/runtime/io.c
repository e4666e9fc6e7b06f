/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of tensors against the inputs that a model declares. */
#include "runtime/io.h"

kelp_status *kelp_io_wrong_dtype(const kelp_io_info *info, const kelp_tensor *tensor) {
    return KELP_ERROR(KELP_INVALID_ARGUMENT, "input '%s' has the wrong type: expected %s, found %s",
                      info->name, kelp_dtype_name(info->dtype), kelp_dtype_name(tensor->dtype));
}

kelp_status *kelp_io_wrong_shape(const kelp_io_info *info, const kelp_tensor *tensor) {
    char expected[256], found[256];
    kelp_shape_format(info->rank, info->shape, expected, sizeof expected);
    kelp_shape_format(tensor->rank, tensor->shape, found, sizeof found);
    return KELP_ERROR(KELP_INVALID_ARGUMENT,
                      "input '%s' has the wrong shape: expected %s, found %s", info->name, expected,
                      found);
}
