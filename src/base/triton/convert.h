/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion between the status codes and element types of Kelp and those of Triton. */
#ifndef KELP_BASE_TRITON_CONVERT_H_
#define KELP_BASE_TRITON_CONVERT_H_

#include <kelp/status.h>
#include <kelp/tensor.h>
#include <triton/core/tritonserver.h>

/* clang-format off */
static inline TRITONSERVER_Error_Code kelp_code_to_triton(kelp_code code) {
    switch (code) {
#define KELP_CODE_ROW(kelp, triton, http) case KELP_##kelp: return TRITONSERVER_ERROR_##triton;
#define KELP_CODE_ROW_TO KELP_CODE_ROW
#include "base/triton/codes.inc"
    }
    return TRITONSERVER_ERROR_UNKNOWN;
}

static inline kelp_code kelp_code_from_triton(TRITONSERVER_Error_Code code) {
    switch (code) {
#define KELP_CODE_ROW(kelp, triton, http) case TRITONSERVER_ERROR_##triton: return KELP_##kelp;
#define KELP_CODE_ROW_TO(kelp, triton, http)
#include "base/triton/codes.inc"
    }
    return KELP_UNKNOWN;
}

/* Returns TRITONSERVER_TYPE_INVALID if Triton lacks the type. */
static inline TRITONSERVER_DataType kelp_dtype_to_triton(kelp_dtype dtype) {
    switch ((int)dtype) {
#define KELP_TYPE_ROW(triton, config, kelp, kind, size_bytes) case KELP_##kelp: return TRITONSERVER_TYPE_##triton;
#include "base/triton/types.inc"
    default: return TRITONSERVER_TYPE_INVALID;
    }
}

/* Returns KELP_DTYPE_INVALID for TRITONSERVER_TYPE_INVALID and for unknown values. */
static inline kelp_dtype kelp_dtype_from_triton(TRITONSERVER_DataType type) {
    switch ((int)type) {
#define KELP_TYPE_ROW(triton, config, kelp, kind, size_bytes) case TRITONSERVER_TYPE_##triton: return KELP_##kelp;
#include "base/triton/types.inc"
    default: return KELP_DTYPE_INVALID;
    }
}
/* clang-format on */

#endif
