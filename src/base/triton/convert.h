/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion between the status codes and element types of Kelp and those of Triton. */
#ifndef KELP_BASE_TRITON_CONVERT_H_
#define KELP_BASE_TRITON_CONVERT_H_

#include "base/checked.h"

#include <kelp/status.h>
#include <kelp/tensor.h>
#include <triton/core/tritonserver.h>

static inline TRITONSERVER_Error_Code kelp_code_to_triton(kelp_code code) {
    static const TRITONSERVER_Error_Code codes[] = {
#define KELP_CODE_ROW(kelp, triton, http) [KELP_##kelp] = TRITONSERVER_ERROR_##triton,
#define KELP_CODE_ROW_TO KELP_CODE_ROW
#include "base/triton/codes.inc"
    };
    return (size_t)code < KELP_COUNT(codes) ? codes[code] : TRITONSERVER_ERROR_UNKNOWN;
}

static inline kelp_code kelp_code_from_triton(TRITONSERVER_Error_Code code) {
    static const kelp_code codes[] = {
#define KELP_CODE_ROW(kelp, triton, http) [TRITONSERVER_ERROR_##triton] = KELP_##kelp,
#define KELP_CODE_ROW_TO(kelp, triton, http)
#include "base/triton/codes.inc"
    };
    return (size_t)code < KELP_COUNT(codes) ? codes[code] : KELP_UNKNOWN;
}

/* Returns TRITONSERVER_TYPE_INVALID if Triton lacks the type. */
static inline TRITONSERVER_DataType kelp_dtype_to_triton(kelp_dtype dtype) {
    static const TRITONSERVER_DataType types[KELP_DTYPE_COUNT] = {
#define KELP_TYPE_ROW(triton, config, kelp, kind, size_bytes) \
    [KELP_##kelp] = TRITONSERVER_TYPE_##triton,
#include "base/triton/types.inc"
    };
    return (size_t)dtype < KELP_COUNT(types) ? types[dtype] : TRITONSERVER_TYPE_INVALID;
}

/* Returns KELP_DTYPE_INVALID for TRITONSERVER_TYPE_INVALID and for unknown values. */
static inline kelp_dtype kelp_dtype_from_triton(TRITONSERVER_DataType type) {
    static const kelp_dtype dtypes[] = {
#define KELP_TYPE_ROW(triton, config, kelp, kind, size_bytes) \
    [TRITONSERVER_TYPE_##triton] = KELP_##kelp,
#include "base/triton/types.inc"
    };
    return (size_t)type < KELP_COUNT(dtypes) ? dtypes[type] : KELP_DTYPE_INVALID;
}

#endif
