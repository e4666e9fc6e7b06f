/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that Kelp adds to Triton's C API. */
#include "base/alloc.h"
#include "base/clock.h"
#include "server/core/error.h"
#include "server/core/heap.h"
#include "server/request/due.h"
#include "server/server.h"

#include <kelp/server.h>

TRITONSERVER_Error *KELP_InferenceRequestCheckQueue(TRITONSERVER_InferenceRequest *request) {
    if (request == NULL)
        return kelp_null_error(__func__, "request");
    return kelp_to_error(kelp_request_check_queue((const kelp_request *)request));
}

TRITONSERVER_Error *KELP_InferenceRequestSkipQueueDelay(TRITONSERVER_InferenceRequest *request) {
    if (request == NULL)
        return kelp_null_error(__func__, "request");
    ((kelp_request *)request)->skips_delay = true;
    return NULL;
}

TRITONSERVER_Error *KELP_DueBatchesNew(KELP_DueBatches **due) {
    kelp_due *created = NULL;
    if (due == NULL)
        return kelp_null_error(__func__, "due");
    kelp_status *status = KELP_NEW(kelp_process_allocator(), kelp_due, &created);
    if (status != NULL)
        return kelp_to_error(status);
    created->allocator = kelp_process_allocator();
    *due = (KELP_DueBatches *)created;
    return NULL;
}

TRITONSERVER_Error *KELP_DueBatchesDelete(KELP_DueBatches *due) {
    kelp_due *deleted = (kelp_due *)due;
    if (deleted == NULL)
        return NULL;
    kelp_due_deinit(deleted);
    kelp_free(kelp_process_allocator(), deleted, sizeof *deleted);
    return NULL;
}

TRITONSERVER_Error *KELP_DueBatchesExecute(KELP_DueBatches *due, uint64_t *next_ns) {
    if (due == NULL || next_ns == NULL)
        return kelp_null_error(__func__, due != NULL ? "next_ns" : "due");
    kelp_due *batches = (kelp_due *)due;
    if (batches->count > 0)
        kelp_due_execute(batches, kelp_now_ns());
    *next_ns = kelp_due_time_ns(batches);
    return NULL;
}

TRITONSERVER_Error *KELP_InferenceRequestSetDueBatches(TRITONSERVER_InferenceRequest *request,
                                                       KELP_DueBatches *due) {
    if (request == NULL)
        return kelp_null_error(__func__, "request");
    ((kelp_request *)request)->due = (kelp_due *)due;
    return NULL;
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
