/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of statuses, errors and element types, and logging. */
#include "sdk/sdk.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static kelp_code code_of(TRITONSERVER_Error_Code code) {
    switch (code) {
    case TRITONSERVER_ERROR_UNKNOWN:
        break;
    case TRITONSERVER_ERROR_INTERNAL:
        return KELP_INTERNAL;
    case TRITONSERVER_ERROR_NOT_FOUND:
        return KELP_NOT_FOUND;
    case TRITONSERVER_ERROR_INVALID_ARG:
        return KELP_INVALID_ARGUMENT;
    case TRITONSERVER_ERROR_UNAVAILABLE:
        return KELP_UNAVAILABLE;
    case TRITONSERVER_ERROR_UNSUPPORTED:
        return KELP_UNIMPLEMENTED;
    case TRITONSERVER_ERROR_ALREADY_EXISTS:
        return KELP_ALREADY_EXISTS;
    case TRITONSERVER_ERROR_CANCELLED:
        return KELP_CANCELLED;
    }
    return KELP_UNKNOWN;
}

static TRITONSERVER_Error_Code triton_code_of(kelp_code code) {
    static const uint8_t codes[] = {
        [KELP_OK] = TRITONSERVER_ERROR_UNKNOWN,
        [KELP_CANCELLED] = TRITONSERVER_ERROR_CANCELLED,
        [KELP_UNKNOWN] = TRITONSERVER_ERROR_UNKNOWN,
        [KELP_INVALID_ARGUMENT] = TRITONSERVER_ERROR_INVALID_ARG,
        [KELP_DEADLINE_EXCEEDED] = TRITONSERVER_ERROR_UNAVAILABLE,
        [KELP_NOT_FOUND] = TRITONSERVER_ERROR_NOT_FOUND,
        [KELP_ALREADY_EXISTS] = TRITONSERVER_ERROR_ALREADY_EXISTS,
        [KELP_PERMISSION_DENIED] = TRITONSERVER_ERROR_UNAVAILABLE,
        [KELP_RESOURCE_EXHAUSTED] = TRITONSERVER_ERROR_UNAVAILABLE,
        [KELP_FAILED_PRECONDITION] = TRITONSERVER_ERROR_INVALID_ARG,
        [KELP_ABORTED] = TRITONSERVER_ERROR_UNAVAILABLE,
        [KELP_OUT_OF_RANGE] = TRITONSERVER_ERROR_INVALID_ARG,
        [KELP_UNIMPLEMENTED] = TRITONSERVER_ERROR_UNSUPPORTED,
        [KELP_INTERNAL] = TRITONSERVER_ERROR_INTERNAL,
        [KELP_UNAVAILABLE] = TRITONSERVER_ERROR_UNAVAILABLE,
        [KELP_DATA_LOSS] = TRITONSERVER_ERROR_INTERNAL,
        [KELP_UNAUTHENTICATED] = TRITONSERVER_ERROR_UNAVAILABLE,
    };
    return (unsigned)code < KELP_COUNT(codes) ? (TRITONSERVER_Error_Code)codes[code]
                                              : TRITONSERVER_ERROR_UNKNOWN;
}

kelp_status *kelp_backend_status(TRITONSERVER_Error *take_error) {
    if (KELP_LIKELY(take_error == NULL))
        return NULL;
    kelp_status *status = KELP_ERROR(code_of(TRITONSERVER_ErrorCode(take_error)), "%s",
                                     TRITONSERVER_ErrorMessage(take_error));
    TRITONSERVER_ErrorDelete(take_error);
    return status;
}

TRITONSERVER_Error *kelp_backend_error(kelp_status *take_status) {
    if (KELP_LIKELY(take_status == NULL))
        return NULL;
    char text[1024];
    char *message = text;
    size_t length = kelp_status_format(take_status, text, sizeof text);
    if (length >= sizeof text) {
        char *full_text = malloc(length + 1);
        if (full_text != NULL) {
            kelp_status_format(take_status, full_text, length + 1);
            message = full_text;
        }
    }
    TRITONSERVER_Error *error =
        TRITONSERVER_ErrorNew(triton_code_of(kelp_status_code(take_status)), message);
    if (message != text)
        free(message);
    kelp_status_free(take_status);
    return error;
}

void kelp_backend_log(TRITONSERVER_LogLevel level, const char *file, int line, const char *format,
                      ...) {
    char text[2048];
    if (!TRITONSERVER_LogIsEnabled(level))
        return;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    TRITONSERVER_ErrorDelete(
        TRITONSERVER_LogMessage(level, file, line, length < 0 ? format : text));
}

void kelp_backend_log_status(const char *file, int line, const char *doing,
                             kelp_status *take_status) {
    char text[1024];
    if (take_status == NULL)
        return;
    kelp_status_format(take_status, text, sizeof text);
    kelp_backend_log(TRITONSERVER_LOG_ERROR, file, line, "%s: %s", doing, text);
    kelp_status_free(take_status);
}

uint64_t kelp_backend_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

kelp_dtype kelp_sdk_dtype(TRITONSERVER_DataType type) {
    static const uint8_t types[] = {
        [TRITONSERVER_TYPE_BOOL] = KELP_BOOL,    [TRITONSERVER_TYPE_UINT8] = KELP_U8,
        [TRITONSERVER_TYPE_UINT16] = KELP_U16,   [TRITONSERVER_TYPE_UINT32] = KELP_U32,
        [TRITONSERVER_TYPE_UINT64] = KELP_U64,   [TRITONSERVER_TYPE_INT8] = KELP_I8,
        [TRITONSERVER_TYPE_INT16] = KELP_I16,    [TRITONSERVER_TYPE_INT32] = KELP_I32,
        [TRITONSERVER_TYPE_INT64] = KELP_I64,    [TRITONSERVER_TYPE_FP16] = KELP_F16,
        [TRITONSERVER_TYPE_FP32] = KELP_F32,     [TRITONSERVER_TYPE_FP64] = KELP_F64,
        [TRITONSERVER_TYPE_BYTES] = KELP_STRING, [TRITONSERVER_TYPE_BF16] = KELP_BF16,
    };
    return (unsigned)type < KELP_COUNT(types) ? (kelp_dtype)types[type] : KELP_DTYPE_INVALID;
}

TRITONSERVER_DataType kelp_sdk_triton_type(kelp_dtype dtype) {
    static const uint8_t types[KELP_DTYPE_COUNT] = {
        [KELP_BOOL] = TRITONSERVER_TYPE_BOOL,    [KELP_U8] = TRITONSERVER_TYPE_UINT8,
        [KELP_U16] = TRITONSERVER_TYPE_UINT16,   [KELP_U32] = TRITONSERVER_TYPE_UINT32,
        [KELP_U64] = TRITONSERVER_TYPE_UINT64,   [KELP_I8] = TRITONSERVER_TYPE_INT8,
        [KELP_I16] = TRITONSERVER_TYPE_INT16,    [KELP_I32] = TRITONSERVER_TYPE_INT32,
        [KELP_I64] = TRITONSERVER_TYPE_INT64,    [KELP_F16] = TRITONSERVER_TYPE_FP16,
        [KELP_F32] = TRITONSERVER_TYPE_FP32,     [KELP_F64] = TRITONSERVER_TYPE_FP64,
        [KELP_STRING] = TRITONSERVER_TYPE_BYTES, [KELP_BF16] = TRITONSERVER_TYPE_BF16,
    };
    return (unsigned)dtype < KELP_COUNT(types) ? (TRITONSERVER_DataType)types[dtype]
                                               : TRITONSERVER_TYPE_INVALID;
}
