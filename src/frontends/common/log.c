/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/common/log.h"

#include <stdio.h>
#include <triton/core/tritonserver.h>

/* A longer message is cut off. */
#define MAX_TEXT 1024

static void write_text(int line, const char *text) {
    TRITONSERVER_Error *error =
        TRITONSERVER_LogMessage(TRITONSERVER_LOG_VERBOSE, "log.c", line, text);
    if (error != NULL)
        TRITONSERVER_ErrorDelete(error);
}

void kelp_log_request(const char *protocol, const kelp_http_request *request) {
    if (!TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_VERBOSE))
        return;
    char text[MAX_TEXT];
    snprintf(text, sizeof text, "%s request: %.*s %.*s", protocol, KELP_STR_ARG(request->method),
             KELP_STR_ARG(request->path));
    write_text(__LINE__, text);
}

void kelp_log_failure(const char *protocol, const kelp_status *failure) {
    if (!TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_VERBOSE))
        return;
    char text[MAX_TEXT];
    int length = snprintf(text, sizeof text, "%s request failed: ", protocol);
    kelp_status_format(failure, text + length, sizeof text - (size_t)length);
    write_text(__LINE__, text);
}
