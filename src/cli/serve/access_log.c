/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/access_log.h"

#include "cli/serve/options/options.h"

/* Counts dropped lines. Called on the thread of the log. */
static void on_dropped(void *userp, uint64_t lines) {
    kelp_serve_access_log *access_log = userp;
    TRITONSERVER_Error *error = TRITONSERVER_MetricIncrement(access_log->dropped, (double)lines);
    if (error != NULL)
        TRITONSERVER_ErrorDelete(error);
}

kelp_status *kelp_serve_access_log_init(kelp_serve_access_log *inout, const char *path,
                                        const kelp_logger *logger) {
    const kelp_request_log_options options = {
        .path = path, .logger = logger, .on_dropped = on_dropped, .userp = inout};
    KELP_TRY(kelp_serve_set(TRITONSERVER_MetricFamilyNew(
        &inout->family, TRITONSERVER_METRIC_KIND_COUNTER, "kelp_access_log_dropped_lines_total",
        "Number of lines of the access log that were dropped")));
    KELP_TRY(kelp_serve_set(TRITONSERVER_MetricNew(&inout->dropped, inout->family, NULL, 0)));
    return kelp_request_log_create(&options, &inout->log);
}

void kelp_serve_access_log_deinit(kelp_serve_access_log *access_log, bool held) {
    if (held && access_log->log != NULL)
        kelp_request_log_stop(access_log->log);
    else
        kelp_request_log_destroy(access_log->log);
    TRITONSERVER_Error *error =
        access_log->dropped != NULL ? TRITONSERVER_MetricDelete(access_log->dropped) : NULL;
    if (error == NULL && access_log->family != NULL)
        error = TRITONSERVER_MetricFamilyDelete(access_log->family);
    if (error != NULL)
        TRITONSERVER_ErrorDelete(error);
    *access_log = (kelp_serve_access_log){0};
}
