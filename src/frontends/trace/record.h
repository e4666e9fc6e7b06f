/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of records; tracing.h declares their use. */
#ifndef KELP_FRONTENDS_TRACE_RECORD_H_
#define KELP_FRONTENDS_TRACE_RECORD_H_

#include "frontends/otlp/exporter.h"
#include "frontends/trace/setting.h"

/* Where the spans of records go; without an exporter, records are text for the setting. */
typedef struct kelp_trace_target {
    kelp_otlp_exporter *exporter; /* may be NULL */
    kelp_trace_ids *ids;
    kelp_trace_id trace_id; /* of the record */
} kelp_trace_target;

/* Creates a record with a reference of the caller and one of its trace. Takes the reference to the
 * setting on success. */
kelp_status *kelp_trace_record_create(kelp_allocator allocator, kelp_trace_setting *setting,
                                      const kelp_trace_origin *origin,
                                      const kelp_trace_target *target,
                                      kelp_trace_record **out) KELP_MUST_USE;

#endif
