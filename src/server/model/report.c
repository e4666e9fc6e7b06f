/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics that backends report. */
#include "server/model/report.h"

#include "base/assert.h"

#include "server/request/trace.h"

void kelp_instance_report(kelp_instance *instance, const kelp_request *request, bool success,
                          const kelp_request_times *times) {
    if (request->is_null)
        return;
    kelp_request_times all = *times;
    all.request_start_ns = request->request_start_ns;
    all.queue_start_ns = request->queue_start_ns;
    if (request->trace != NULL) {
        kelp_trace *trace = request->trace;
        kelp_trace_report(trace, TRITONSERVER_TRACE_COMPUTE_START, times->execute_start_ns);
        kelp_trace_report(trace, TRITONSERVER_TRACE_COMPUTE_INPUT_END, times->compute_start_ns);
        kelp_trace_report(trace, TRITONSERVER_TRACE_COMPUTE_OUTPUT_START, times->compute_end_ns);
        kelp_trace_report(trace, TRITONSERVER_TRACE_COMPUTE_END, times->execute_end_ns);
    }
    kelp_stats_request(&instance->base.stats, success, request->batch_size, &all);
}

kelp_status *kelp_report_usage(kelp_stats *stats, const kelp_buffer_attributes *const *usage,
                               uint32_t count) {
    kelp_memory_usage *list = NULL;
    kelp_status *status = kelp_alloc_zero(stats->allocator, count, sizeof *list, (void **)&list);
    for (uint32_t i = 0; i < count && status == NULL; i++) {
        if (usage[i] == NULL)
            status = KELP_ERROR(KELP_INVALID_ARGUMENT, "memory usage %u is NULL", i);
        else
            list[i] = (kelp_memory_usage){.type = usage[i]->memory_type,
                                          .id = usage[i]->memory_type_id,
                                          .size_bytes = usage[i]->size_bytes};
    }
    if (status == NULL)
        status = kelp_stats_set_usage(stats, list, count);
    kelp_free(stats->allocator, list, count * sizeof *list);
    return status;
}

kelp_status *kelp_response_report_enter(const kelp_response_report *report) {
    KELP_ASSERT(report->factory != NULL && report->instance != NULL);
    uint64_t index = atomic_fetch_add(&report->factory->reported_count, 1);
    return kelp_stats_response(&report->instance->base.stats, index, report->start_ns,
                               report->output_start_ns, report->end_ns, report->error);
}
