/* SPDX-License-Identifier: Apache-2.0 */
/* The C API for backends: model instances, and the statistics that backends report. */
#include "base/assert.h"
#include "server/core/error.h"
#include "server/core/heap.h"
#include "server/model/model.h"
#include "server/model/report.h"

static kelp_instance *of(TRITONBACKEND_ModelInstance *handle) {
    return (kelp_instance *)handle;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance *instance,
                                                    const char **name) {
    if (instance == NULL || name == NULL)
        return kelp_null_error(__func__, instance != NULL ? "name" : "instance");
    *name = of(instance)->name;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance *instance,
                                                    TRITONSERVER_InstanceGroupKind *kind) {
    if (instance == NULL || kind == NULL)
        return kelp_null_error(__func__, instance != NULL ? "kind" : "instance");
    *kind = of(instance)->kind;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance *instance,
                                                        int32_t *device_id) {
    if (instance == NULL || device_id == NULL)
        return kelp_null_error(__func__, instance != NULL ? "device_id" : "instance");
    *device_id = of(instance)->device_id;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceHostPolicy(TRITONBACKEND_ModelInstance *instance,
                                                          TRITONSERVER_Message **host_policy) {
    if (instance == NULL || host_policy == NULL)
        return kelp_null_error(__func__, instance != NULL ? "host_policy" : "instance");
    KELP_ASSERT(of(instance)->host_policy != NULL); /* created before ModelInstanceInitialize */
    *host_policy = (TRITONSERVER_Message *)of(instance)->host_policy;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceIsPassive(TRITONBACKEND_ModelInstance *instance,
                                                         bool *is_passive) {
    if (instance == NULL || is_passive == NULL)
        return kelp_null_error(__func__, instance != NULL ? "is_passive" : "instance");
    *is_passive = of(instance)->passive;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceProfileCount(TRITONBACKEND_ModelInstance *instance,
                                                            uint32_t *count) {
    if (instance == NULL || count == NULL)
        return kelp_null_error(__func__, instance != NULL ? "count" : "instance");
    *count = (uint32_t)of(instance)->profile_count;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceProfileName(TRITONBACKEND_ModelInstance *instance,
                                                           const uint32_t index,
                                                           const char **profile_name) {
    if (instance == NULL || profile_name == NULL)
        return kelp_null_error(__func__, instance != NULL ? "profile_name" : "instance");
    if (index >= of(instance)->profile_count)
        return kelp_to_error(KELP_ERROR(KELP_INVALID_ARGUMENT,
                                        "out of bounds index %u: instance is configured with %zu "
                                        "profiles",
                                        index, of(instance)->profile_count));
    KELP_ASSERT(of(instance)->profiles[index] != NULL);
    *profile_name = of(instance)->profiles[index];
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSecondaryDeviceCount(TRITONBACKEND_ModelInstance *instance,
                                                uint32_t *count) {
    if (instance == NULL || count == NULL)
        return kelp_null_error(__func__, instance != NULL ? "count" : "instance");
    *count = 0; /* secondary devices are not supported */
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(
    TRITONBACKEND_ModelInstance *instance, uint32_t index, const char **kind, int64_t *id) {
    if (instance == NULL || kind == NULL || id == NULL)
        return kelp_null_error(__func__, instance != NULL ? NULL : "instance");
    return kelp_to_error(KELP_ERROR(KELP_INVALID_ARGUMENT,
                                    "out of bounds index %u: instance is configured with 0 "
                                    "secondary devices",
                                    index));
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance *instance,
                                                     TRITONBACKEND_Model **model) {
    if (instance == NULL || model == NULL)
        return kelp_null_error(__func__, instance != NULL ? "model" : "instance");
    KELP_ASSERT(of(instance)->model != NULL);
    *model = (TRITONBACKEND_Model *)of(instance)->model;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance *instance,
                                                     void **state) {
    if (instance == NULL || state == NULL)
        return kelp_null_error(__func__, instance != NULL ? "state" : "instance");
    *state = of(instance)->state;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance *instance,
                                                        void *state) {
    if (instance == NULL)
        return kelp_null_error(__func__, "instance");
    of(instance)->state = state;
    return NULL;
}

/* ---- statistics ---- */

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request, const bool success,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns) {
    if (instance == NULL || request == NULL)
        return kelp_null_error(__func__, instance != NULL ? "request" : "instance");
    const kelp_request_times times = {.execute_start_ns = exec_start_ns,
                                      .compute_start_ns = compute_start_ns,
                                      .compute_end_ns = compute_end_ns,
                                      .execute_end_ns = exec_end_ns};
    kelp_instance_report(of(instance), (const kelp_request *)request, success, &times);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance *instance, const uint64_t batch_size, const uint64_t exec_start_ns,
    const uint64_t compute_start_ns, const uint64_t compute_end_ns, const uint64_t exec_end_ns) {
    if (instance == NULL)
        return kelp_null_error(__func__, "instance");
    kelp_request_times times = {.execute_start_ns = exec_start_ns,
                                .compute_start_ns = compute_start_ns,
                                .compute_end_ns = compute_end_ns,
                                .execute_end_ns = exec_end_ns};
    return kelp_to_error(kelp_stats_batch(&of(instance)->base.stats, batch_size, &times));
}

TRITONSERVER_Error *TRITONBACKEND_ModelReportMemoryUsage(TRITONBACKEND_Model *model,
                                                         TRITONSERVER_BufferAttributes **usage,
                                                         uint32_t usage_size) {
    if (model == NULL || (usage == NULL && usage_size))
        return kelp_null_error(__func__, model != NULL ? "usage" : "model");
    return kelp_to_error(
        kelp_report_usage(&((kelp_model *)model)->base.stats,
                          (const kelp_buffer_attributes *const *)(const void *)usage, usage_size));
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportMemoryUsage(TRITONBACKEND_ModelInstance *instance,
                                             TRITONSERVER_BufferAttributes **usage,
                                             uint32_t usage_size) {
    if (instance == NULL || (usage == NULL && usage_size))
        return kelp_null_error(__func__, instance != NULL ? "usage" : "instance");
    return kelp_to_error(
        kelp_report_usage(&of(instance)->base.stats,
                          (const kelp_buffer_attributes *const *)(const void *)usage, usage_size));
}

static kelp_response_report *report_of(TRITONBACKEND_ModelInstanceResponseStatistics *handle) {
    return (kelp_response_report *)handle;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsNew(
    TRITONBACKEND_ModelInstanceResponseStatistics **response_statistics) {
    if (response_statistics == NULL)
        return kelp_null_error(__func__, "response_statistics");
    return kelp_to_error(
        KELP_NEW(kelp_process_allocator(), kelp_response_report, response_statistics));
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsDelete(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics) {
    kelp_free(kelp_process_allocator(), response_statistics, sizeof(kelp_response_report));
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ModelInstance *model_instance) {
    if (response_statistics == NULL)
        return kelp_null_error(__func__, "response_statistics");
    report_of(response_statistics)->instance = of(model_instance);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ResponseFactory *response_factory) {
    if (response_statistics == NULL)
        return kelp_null_error(__func__, "response_statistics");
    report_of(response_statistics)->factory = (kelp_factory *)response_factory;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, uint64_t response_start) {
    if (response_statistics == NULL)
        return kelp_null_error(__func__, "response_statistics");
    report_of(response_statistics)->start_ns = response_start;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    uint64_t compute_output_start) {
    if (response_statistics == NULL)
        return kelp_null_error(__func__, "response_statistics");
    report_of(response_statistics)->output_start_ns = compute_output_start;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, uint64_t response_end) {
    if (response_statistics == NULL)
        return kelp_null_error(__func__, "response_statistics");
    report_of(response_statistics)->end_ns = response_end;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetError(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, TRITONSERVER_Error *error) {
    if (response_statistics == NULL)
        return kelp_null_error(__func__, "response_statistics");
    report_of(response_statistics)->error = kelp_from_error(error);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportResponseStatistics(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics) {
    if (response_statistics == NULL)
        return kelp_null_error(__func__, "response_statistics");
    kelp_response_report *report = report_of(response_statistics);
    if (report->instance == NULL || report->factory == NULL)
        return kelp_null_error(__func__,
                               report->instance != NULL ? "response_factory" : "model_instance");
    return kelp_to_error(kelp_response_report_enter(report));
}
