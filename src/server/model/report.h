/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics that backends report. Thread-safe. */
#ifndef KELP_SERVER_MODEL_REPORT_H_
#define KELP_SERVER_MODEL_REPORT_H_

#include "server/model/instance.h"
#include "server/request/factory.h"

/* Counts a request in the statistics of an instance, and reports the times to its trace. */
void kelp_instance_report(kelp_instance *instance, const kelp_request *request, bool success,
                          const kelp_request_times *times);
/* Replaces the memory usage of a model or an instance. */
kelp_status *kelp_report_usage(kelp_stats *stats, const kelp_buffer_attributes *const *usage,
                               uint32_t count) KELP_MUST_USE;

/* The times of a response. TRITONBACKEND_ModelInstanceResponseStatistics is a pointer to it. */
typedef struct kelp_response_report {
    kelp_instance *instance;
    kelp_factory *factory;
    uint64_t start_ns, output_start_ns, end_ns;
    const kelp_status *error; /* borrowed from the backend */
} kelp_response_report;

/* Counts a response in the statistics of its instance. */
kelp_status *kelp_response_report_enter(const kelp_response_report *report) KELP_MUST_USE;

#endif
