/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/tensor/element.h"

#include "base/checked.h"

kelp_v2_element kelp_v2_element_of(TRITONSERVER_DataType type) {
    static const kelp_v2_element elements[] = {
        [TRITONSERVER_TYPE_INVALID] = {KELP_V2_INVALID, 0},
#define KELP_TYPE_ROW(triton, config, kelp, kind, size_bytes) \
    [TRITONSERVER_TYPE_##triton] = {KELP_V2_##kind, size_bytes},
#include "base/triton/types.inc"
    };
    return (size_t)type < KELP_COUNT(elements) ? elements[type] : elements[0];
}
