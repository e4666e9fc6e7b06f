/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of records; tracing.h declares their use. */
#ifndef KELP_FRONTENDS_TRACE_RECORD_H_
#define KELP_FRONTENDS_TRACE_RECORD_H_

#include "frontends/trace/setting.h"

/* Creates a record with a reference of the caller and one of the trace. Takes the reference to the
 * setting on success. */
kelp_status *kelp_trace_record_create(kelp_allocator allocator, kelp_trace_setting *setting,
                                      kelp_trace_record **out,
                                      TRITONSERVER_InferenceTrace **out_trace) KELP_MUST_USE;

#endif
