/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that Kelp adds to Triton's C API. */
#include "server/core/error.h"
#include "server/server.h"

#include <kelp/server.h>

TRITONSERVER_Error *KELP_InferenceRequestCheckQueue(TRITONSERVER_InferenceRequest *request) {
    if (request == NULL)
        return kelp_null_error(__func__, "request");
    return kelp_to_error(kelp_request_check_queue((const kelp_request *)request));
}

TRITONSERVER_Error *KELP_ServerMetrics(TRITONSERVER_Server *server, KELP_MetricsFormat format,
                                       TRITONSERVER_Metrics **metrics) {
    if (server == NULL || metrics == NULL)
        return kelp_null_error(__func__, server != NULL ? "metrics" : "server");
    if (format != KELP_METRICS_OPENMETRICS && format != KELP_METRICS_PROTOBUF)
        return kelp_to_error(
            KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown metrics format '%d'", (int)format));
    return kelp_to_error(kelp_server_metrics(
        (kelp_server *)server,
        format == KELP_METRICS_PROTOBUF ? KELP_FORMAT_PROTOBUF : KELP_FORMAT_OPENMETRICS,
        (kelp_message **)metrics));
}
