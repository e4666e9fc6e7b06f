/* SPDX-License-Identifier: Apache-2.0 */
/* Model instances as a backend sees them, and the statistics that it reports. */
#include "server/core/values.h"
#include "server/server.h"
#include "server/request/trace.h"

static kelp_instance *of(TRITONBACKEND_ModelInstance *handle) {
    return (kelp_instance *)handle;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance *instance,
                                                    const char **name) {
    if (!instance || !name)
        return kelp_abi_null(__func__, instance ? "name" : "instance");
    *name = of(instance)->name;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance *instance,
                                                    TRITONSERVER_InstanceGroupKind *kind) {
    if (!instance || !kind)
        return kelp_abi_null(__func__, instance ? "kind" : "instance");
    *kind = of(instance)->kind;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance *instance,
                                                        int32_t *device_id) {
    if (!instance || !device_id)
        return kelp_abi_null(__func__, instance ? "device_id" : "instance");
    *device_id = of(instance)->device_id;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceHostPolicy(TRITONBACKEND_ModelInstance *instance,
                                                          TRITONSERVER_Message **host_policy) {
    if (!instance || !host_policy)
        return kelp_abi_null(__func__, instance ? "host_policy" : "instance");
    *host_policy = (TRITONSERVER_Message *)of(instance)->host_policy;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceIsPassive(TRITONBACKEND_ModelInstance *instance,
                                                         bool *is_passive) {
    if (!instance || !is_passive)
        return kelp_abi_null(__func__, instance ? "is_passive" : "instance");
    *is_passive = of(instance)->passive;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceProfileCount(TRITONBACKEND_ModelInstance *instance,
                                                            uint32_t *count) {
    if (!instance || !count)
        return kelp_abi_null(__func__, instance ? "count" : "instance");
    *count = (uint32_t)of(instance)->profile_count;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceProfileName(TRITONBACKEND_ModelInstance *instance,
                                                           const uint32_t index,
                                                           const char **profile_name) {
    if (!instance || !profile_name)
        return kelp_abi_null(__func__, instance ? "profile_name" : "instance");
    if (index >= of(instance)->profile_count)
        return kelp_to_error(KELP_ERROR(KELP_INVALID_ARGUMENT,
                                        "out of bounds index %u: instance is configured with %zu "
                                        "profiles",
                                        index, of(instance)->profile_count));
    *profile_name = of(instance)->profiles[index];
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSecondaryDeviceCount(TRITONBACKEND_ModelInstance *instance,
                                                uint32_t *count) {
    if (!instance || !count)
        return kelp_abi_null(__func__, instance ? "count" : "instance");
    *count = 0; /* further devices are accelerators, which this server has none of */
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(
    TRITONBACKEND_ModelInstance *instance, uint32_t index, const char **kind, int64_t *id) {
    if (!instance || !kind || !id)
        return kelp_abi_null(__func__, instance ? "an output" : "instance");
    return kelp_to_error(KELP_ERROR(KELP_INVALID_ARGUMENT,
                                    "out of bounds index %u: instance is configured with 0 "
                                    "secondary devices",
                                    index));
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance *instance,
                                                     TRITONBACKEND_Model **model) {
    if (!instance || !model)
        return kelp_abi_null(__func__, instance ? "model" : "instance");
    *model = (TRITONBACKEND_Model *)of(instance)->model;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance *instance,
                                                     void **state) {
    if (!instance || !state)
        return kelp_abi_null(__func__, instance ? "state" : "instance");
    *state = of(instance)->state;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance *instance,
                                                        void *state) {
    if (!instance)
        return kelp_abi_null(__func__, "instance");
    of(instance)->state = state;
    return NULL;
}

/* ---- statistics ---- */

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request, const bool success,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns) {
    if (!instance || !request)
        return kelp_abi_null(__func__, instance ? "request" : "instance");
    const kelp_request *r = (const kelp_request *)request;
    kelp_request_times times = {.request_start_ns = r->request_start_ns,
                                .queue_start_ns = r->queue_start_ns,
                                .execute_start_ns = exec_start_ns,
                                .compute_start_ns = compute_start_ns,
                                .compute_end_ns = compute_end_ns,
                                .execute_end_ns = exec_end_ns};
    if (r->trace) {
        kelp_trace_report(r->trace, TRITONSERVER_TRACE_COMPUTE_START, exec_start_ns);
        kelp_trace_report(r->trace, TRITONSERVER_TRACE_COMPUTE_INPUT_END, compute_start_ns);
        kelp_trace_report(r->trace, TRITONSERVER_TRACE_COMPUTE_OUTPUT_START, compute_end_ns);
        kelp_trace_report(r->trace, TRITONSERVER_TRACE_COMPUTE_END, exec_end_ns);
    }
    kelp_stats_request(&of(instance)->stats, success, r->batch_size, &times);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance *instance, const uint64_t batch_size, const uint64_t exec_start_ns,
    const uint64_t compute_start_ns, const uint64_t compute_end_ns, const uint64_t exec_end_ns) {
    if (!instance)
        return kelp_abi_null(__func__, "instance");
    kelp_request_times times = {.execute_start_ns = exec_start_ns,
                                .compute_start_ns = compute_start_ns,
                                .compute_end_ns = compute_end_ns,
                                .execute_end_ns = exec_end_ns};
    return kelp_to_error(kelp_stats_batch(&of(instance)->stats, batch_size, &times));
}

static TRITONSERVER_Error *report_usage(kelp_stats *stats, TRITONSERVER_BufferAttributes **usage,
                                        uint32_t count) {
    kelp_allocator heap = kelp_allocator_system();
    kelp_memory_usage *list = NULL;
    kelp_status *status = kelp_alloc_zero(heap, count, sizeof *list, (void **)&list);
    for (uint32_t i = 0; i < count && !status; i++) {
        const kelp_buffer_attributes *attributes = (const kelp_buffer_attributes *)usage[i];
        if (!attributes)
            status = KELP_ERROR(KELP_INVALID_ARGUMENT, "memory usage %u is NULL", i);
        else
            list[i] = (kelp_memory_usage){.type = attributes->memory_type,
                                          .id = attributes->memory_type_id,
                                          .size_bytes = attributes->size_bytes};
    }
    if (!status)
        status = kelp_stats_set_usage(stats, list, count);
    kelp_free(heap, list, count * sizeof *list);
    return kelp_to_error(status);
}

TRITONSERVER_Error *TRITONBACKEND_ModelReportMemoryUsage(TRITONBACKEND_Model *model,
                                                         TRITONSERVER_BufferAttributes **usage,
                                                         uint32_t usage_size) {
    if (!model || (!usage && usage_size))
        return kelp_abi_null(__func__, model ? "usage" : "model");
    return report_usage(&((kelp_model *)model)->stats, usage, usage_size);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportMemoryUsage(TRITONBACKEND_ModelInstance *instance,
                                             TRITONSERVER_BufferAttributes **usage,
                                             uint32_t usage_size) {
    if (!instance || (!usage && usage_size))
        return kelp_abi_null(__func__, instance ? "usage" : "instance");
    return report_usage(&of(instance)->stats, usage, usage_size);
}

/* A report on one response; the setters fill it, the report enters it. */
typedef struct response_report {
    kelp_instance *instance;
    kelp_factory *factory;
    uint64_t start_ns, output_start_ns, end_ns;
    const kelp_status *error; /* the backend's */
} response_report;

static response_report *report_of(TRITONBACKEND_ModelInstanceResponseStatistics *handle) {
    return (response_report *)handle;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsNew(
    TRITONBACKEND_ModelInstanceResponseStatistics **response_statistics) {
    if (!response_statistics)
        return kelp_abi_null(__func__, "response_statistics");
    return kelp_to_error(KELP_NEW(kelp_allocator_system(), response_report, response_statistics));
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsDelete(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics) {
    kelp_free(kelp_allocator_system(), response_statistics, sizeof(response_report));
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ModelInstance *model_instance) {
    if (!response_statistics)
        return kelp_abi_null(__func__, "response_statistics");
    report_of(response_statistics)->instance = of(model_instance);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ResponseFactory *response_factory) {
    if (!response_statistics)
        return kelp_abi_null(__func__, "response_statistics");
    report_of(response_statistics)->factory = (kelp_factory *)response_factory;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, uint64_t response_start) {
    if (!response_statistics)
        return kelp_abi_null(__func__, "response_statistics");
    report_of(response_statistics)->start_ns = response_start;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    uint64_t compute_output_start) {
    if (!response_statistics)
        return kelp_abi_null(__func__, "response_statistics");
    report_of(response_statistics)->output_start_ns = compute_output_start;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, uint64_t response_end) {
    if (!response_statistics)
        return kelp_abi_null(__func__, "response_statistics");
    report_of(response_statistics)->end_ns = response_end;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetError(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, TRITONSERVER_Error *error) {
    if (!response_statistics)
        return kelp_abi_null(__func__, "response_statistics");
    report_of(response_statistics)->error = kelp_from_error(error);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportResponseStatistics(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics) {
    if (!response_statistics)
        return kelp_abi_null(__func__, "response_statistics");
    response_report *report = report_of(response_statistics);
    if (!report->instance || !report->factory)
        return kelp_abi_null(__func__, report->instance ? "response_factory" : "model_instance");
    uint64_t index = atomic_fetch_add(&report->factory->reported_count, 1);
    return kelp_to_error(kelp_stats_response(&report->instance->stats, index, report->start_ns,
                                             report->output_start_ns, report->end_ns,
                                             report->error));
}
