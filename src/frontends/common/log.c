/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/common/log.h"

#include "frontends/common/status.h"

#include <stdio.h>

/* A longer message is cut off. */
#define MAX_TEXT 1024

static void write_text(int line, const char *text) {
    kelp_v2_ignore(TRITONSERVER_LogMessage(TRITONSERVER_LOG_VERBOSE, "log.c", line, text));
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
