/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a model in force, which sample requests and collect their records. A setting
 * never changes: an update replaces it, and records keep the one that sampled them. */
#ifndef KELP_FRONTENDS_TRACE_SETTING_H_
#define KELP_FRONTENDS_TRACE_SETTING_H_

#include "base/buf.h"
#include "frontends/trace/tracing.h"
#include "frontends/trace/writer.h"

#include <pthread.h>

typedef struct kelp_trace_setting {
    kelp_allocator allocator;
    kelp_trace_writer *writer; /* NULL: records have no text */
    pthread_mutex_t lock;      /* guards what follows */
    unsigned refs;
    kelp_trace_values values; /* only `count` changes */
    uint64_t seen;            /* requests */
    uint64_t open;            /* records that are not collected yet */
    uint64_t collected;       /* records in `text` */
    kelp_buf text;            /* collected records, separated by commas */
} kelp_trace_setting;

/* Creates a setting with one reference. */
kelp_status *kelp_trace_setting_create(kelp_allocator allocator, kelp_trace_writer *writer,
                                       const kelp_trace_values *values,
                                       kelp_trace_setting **out) KELP_MUST_USE;
void kelp_trace_setting_retain(kelp_trace_setting *setting);
/* Drops a reference. The last one writes what is collected. NULL is allowed. */
void kelp_trace_setting_release(kelp_trace_setting *setting);
/* Whether rate and count decide about a request. */
typedef enum kelp_trace_decision {
    KELP_TRACE_BY_RATE,
    KELP_TRACE_ALWAYS,
    KELP_TRACE_NEVER
} kelp_trace_decision;

/* Returns true if the next request is traced, which must then be collected. All requests count for
 * the rate. */
bool kelp_trace_setting_sample(kelp_trace_setting *setting, kelp_trace_decision decision);
/* Takes the text of a record; an empty one was dropped. */
void kelp_trace_setting_collect(kelp_trace_setting *setting, kelp_str record);
/* Returns the values with the current count. */
kelp_trace_values kelp_trace_setting_values(kelp_trace_setting *setting);

#endif
