/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion between statuses and Triton's errors; the log. */
#include "sdk/sdk.h"

#include "base/triton/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

kelp_status *kelp_backend_status(TRITONSERVER_Error *take_error) {
    if (KELP_LIKELY(!take_error))
        return NULL;
    kelp_status *status = KELP_ERROR(kelp_code_from_triton(TRITONSERVER_ErrorCode(take_error)),
                                     "%s", TRITONSERVER_ErrorMessage(take_error));
    TRITONSERVER_ErrorDelete(take_error);
    return status;
}

TRITONSERVER_Error *kelp_backend_error(kelp_status *take_status) {
    if (KELP_LIKELY(!take_status))
        return NULL;
    char text[1024];
    char *message = text;
    size_t length = kelp_status_format(take_status, text, sizeof text);
    if (length >= sizeof text) {
        char *whole = malloc(length + 1);
        if (whole != NULL) {
            kelp_status_format(take_status, whole, length + 1);
            message = whole;
        }
    }
    TRITONSERVER_Error *error =
        TRITONSERVER_ErrorNew(kelp_code_to_triton(kelp_status_code(take_status)), message);
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
