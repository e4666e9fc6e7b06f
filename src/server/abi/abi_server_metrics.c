/* SPDX-License-Identifier: Apache-2.0 */
/* The C API for applications: the page of metrics. */
#include "base/assert.h"
#include "server/core/error.h"
#include "server/server.h"

TRITONSERVER_Error *TRITONSERVER_ServerMetrics(TRITONSERVER_Server *server,
                                               TRITONSERVER_Metrics **metrics) {
    if (server == NULL || metrics == NULL)
        return kelp_null_error(__func__, server != NULL ? "metrics" : "server");
    return kelp_to_error(
        kelp_server_metrics((kelp_server *)server, KELP_FORMAT_TEXT, (kelp_message **)metrics));
}

TRITONSERVER_Error *TRITONSERVER_MetricsDelete(TRITONSERVER_Metrics *metrics) {
    kelp_message_destroy((kelp_message *)metrics);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricsFormatted(TRITONSERVER_Metrics *metrics,
                                                  TRITONSERVER_MetricFormat format,
                                                  const char **base, size_t *byte_size) {
    if (metrics == NULL || base == NULL || byte_size == NULL)
        return kelp_null_error(__func__, metrics != NULL ? NULL : "metrics");
    if (format != TRITONSERVER_METRIC_PROMETHEUS)
        return kelp_to_error(
            KELP_ERROR(KELP_INVALID_ARGUMENT, "unknown metrics format '%d'", (int)format));
    KELP_ASSERT(((const kelp_message *)metrics)->text != NULL);
    *base = ((const kelp_message *)metrics)->text;
    *byte_size = ((const kelp_message *)metrics)->length;
    return NULL;
}
