/* SPDX-License-Identifier: Apache-2.0 */
/* The row of the provider `onnxruntime`. */
#include "onnxruntime/provider.h"

const kelp_provider kelp_onnxruntime_provider = {
    .name = "onnxruntime",
    .operators = &kelp_onnxruntime_operators,
    .models = &kelp_onnxruntime_models,
    .check = kelp_onnxruntime_check_library,
};
