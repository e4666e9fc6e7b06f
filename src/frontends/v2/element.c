/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/v2/element.h"

#include "base/checked.h"

kelp_v2_element kelp_v2_element_of(TRITONSERVER_DataType type) {
    static const kelp_v2_element elements[] = {
        [TRITONSERVER_TYPE_INVALID] = {KELP_V2_INVALID, 0},
        [TRITONSERVER_TYPE_BOOL] = {KELP_V2_BOOL, 1},
        [TRITONSERVER_TYPE_UINT8] = {KELP_V2_UNSIGNED, 1},
        [TRITONSERVER_TYPE_UINT16] = {KELP_V2_UNSIGNED, 2},
        [TRITONSERVER_TYPE_UINT32] = {KELP_V2_UNSIGNED, 4},
        [TRITONSERVER_TYPE_UINT64] = {KELP_V2_UNSIGNED, 8},
        [TRITONSERVER_TYPE_INT8] = {KELP_V2_SIGNED, 1},
        [TRITONSERVER_TYPE_INT16] = {KELP_V2_SIGNED, 2},
        [TRITONSERVER_TYPE_INT32] = {KELP_V2_SIGNED, 4},
        [TRITONSERVER_TYPE_INT64] = {KELP_V2_SIGNED, 8},
        [TRITONSERVER_TYPE_FP16] = {KELP_V2_FLOAT16, 2},
        [TRITONSERVER_TYPE_FP32] = {KELP_V2_FLOAT, 4},
        [TRITONSERVER_TYPE_FP64] = {KELP_V2_FLOAT, 8},
        [TRITONSERVER_TYPE_BYTES] = {KELP_V2_BYTES, 0},
        [TRITONSERVER_TYPE_BF16] = {KELP_V2_BFLOAT16, 2},
    };
    return (size_t)type < KELP_COUNT(elements) ? elements[type] : elements[0];
}
