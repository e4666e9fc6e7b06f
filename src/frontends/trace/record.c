/* SPDX-License-Identifier: Apache-2.0 */
/* Records: the activities of a request and its parts, as text of the trace file or as spans. */
#include "frontends/trace/record.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/text/json.h"
#include "frontends/common/status.h"
#include "frontends/trace/record_text.h"
#include "frontends/trace/spans.h"

#include <stdio.h>

/* A record that becomes longer is dropped. */
#define MAX_RECORD_BYTES ((size_t)16 * 1024 * 1024)

struct kelp_trace_record {
    kelp_allocator allocator;
    kelp_trace_setting *setting;
    uint64_t id;                              /* of the request's trace */
    TRITONSERVER_InferenceTrace *unsubmitted; /* used by the front end */
    pthread_mutex_t lock;                     /* guards what follows */
    unsigned refs;                            /* the front end, and the traces of the server */
    kelp_trace_spans *spans;                  /* NULL: `text` */
    kelp_buf text;
    uint64_t *parts; /* the traces of parts of the request */
    size_t part_count, part_capacity;
};

static void drop_reference(kelp_trace_record *record) {
    pthread_mutex_lock(&record->lock);
    KELP_ASSERT(record->refs > 0);
    bool last = --record->refs == 0;
    pthread_mutex_unlock(&record->lock);
    if (!last)
        return;
    kelp_str text = {record->text.data, record->text.failed ? 0 : record->text.length};
    if (record->spans != NULL)
        kelp_trace_spans_destroy(record->spans);
    kelp_trace_setting_collect(record->setting, text);
    kelp_trace_setting_release(record->setting);
    kelp_buf_deinit(&record->text);
    kelp_free(record->allocator, record->parts, record->part_capacity * sizeof *record->parts);
    pthread_mutex_destroy(&record->lock);
    kelp_free(record->allocator, record, sizeof *record);
}

/* ---- callbacks of the server, on any thread ---- */

/* Adds the reference of the trace of a part. The lock is held. */
static void add_part(kelp_trace_record *record, uint64_t id) {
    kelp_status *status =
        kelp_grow(record->allocator, (void **)&record->parts, &record->part_capacity,
                  record->part_count + 1, sizeof *record->parts);
    if (status == NULL) {
        record->parts[record->part_count++] = id;
        record->refs++;
    }
    kelp_status_free(status);
}

/* Returns true if a trace holds a reference: that of the request, or of a part that was submitted.
 */
static bool take_part(kelp_trace_record *record, uint64_t id) {
    bool found = id == record->id;
    pthread_mutex_lock(&record->lock);
    for (size_t i = 0; i < record->part_count && !found; i++) {
        if (record->parts[i] == id) {
            record->parts[i] = record->parts[--record->part_count];
            found = true;
        }
    }
    if (found && record->spans != NULL)
        kelp_trace_spans_release(record->spans, id);
    pthread_mutex_unlock(&record->lock);
    return found;
}

/* Returns the name of a custom activity: the member of the trace's context that its time names.
 * `arena` owns it. */
static const char *custom_name(kelp_arena *arena, TRITONSERVER_InferenceTrace *trace,
                               uint64_t timestamp_ns) {
    const char *context = "", *name = NULL;
    char key[24];
    kelp_json *json;
    kelp_v2_ignore(TRITONSERVER_InferenceTraceContext(trace, &context));
    snprintf(key, sizeof key, "%llu", (unsigned long long)timestamp_ns);
    kelp_status *status = kelp_json_parse(arena, "context", context, strlen(context), &json);
    const kelp_json *member = status == NULL ? kelp_json_get(json, key) : NULL;
    if (member != NULL && member->type == KELP_JSON_STRING)
        name = kelp_arena_strndup(arena, member->string.data, member->string.length);
    kelp_status_free(status);
    return name != NULL
               ? name
               : TRITONSERVER_InferenceTraceActivityString(TRITONSERVER_TRACE_CUSTOM_ACTIVITY);
}

static void report(kelp_trace_record *record, TRITONSERVER_InferenceTrace *trace,
                   TRITONSERVER_InferenceTraceActivity activity, const char *name,
                   uint64_t timestamp_ns) {
    uint64_t id = 0;
    bool begins = activity == TRITONSERVER_TRACE_REQUEST_START;
    kelp_v2_ignore(TRITONSERVER_InferenceTraceId(trace, &id));
    pthread_mutex_lock(&record->lock);
    if (begins && id != record->id)
        add_part(record, id);
    if (record->spans != NULL) {
        kelp_trace_spans_report(record->spans, trace, id, activity, name, timestamp_ns);
    } else {
        if (begins)
            kelp_trace_text_add_model(&record->text, trace, id);
        kelp_trace_text_add_timestamp(&record->text, id, name, timestamp_ns);
    }
    pthread_mutex_unlock(&record->lock);
}

static void on_activity(TRITONSERVER_InferenceTrace *trace,
                        TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns,
                        void *userp) {
    kelp_trace_record *record = userp;
    if (activity != TRITONSERVER_TRACE_CUSTOM_ACTIVITY) {
        report(record, trace, activity, TRITONSERVER_InferenceTraceActivityString(activity),
               timestamp_ns);
        return;
    }
    kelp_arena arena;
    kelp_arena_init(&arena, record->allocator, 0);
    report(record, trace, activity, custom_name(&arena, trace, timestamp_ns), timestamp_ns);
    kelp_arena_deinit(&arena);
}

static void on_tensor(TRITONSERVER_InferenceTrace *trace,
                      TRITONSERVER_InferenceTraceActivity activity, const char *name,
                      TRITONSERVER_DataType datatype, const void *base, size_t byte_size,
                      const int64_t *shape, uint64_t dim_count, TRITONSERVER_MemoryType memory_type,
                      int64_t memory_type_id, void *userp) {
    kelp_trace_record *record = userp;
    const kelp_trace_tensor tensor = {.activity =
                                          TRITONSERVER_InferenceTraceActivityString(activity),
                                      .name = name,
                                      .type = datatype,
                                      .base = base,
                                      .size_bytes = byte_size,
                                      .shape = shape,
                                      .rank = dim_count};
    uint64_t id = 0;
    (void)memory_type_id;
    if (memory_type == TRITONSERVER_MEMORY_GPU)
        return;
    kelp_v2_ignore(TRITONSERVER_InferenceTraceId(trace, &id));
    pthread_mutex_lock(&record->lock);
    kelp_trace_text_add_tensor(&record->text, id, &tensor);
    pthread_mutex_unlock(&record->lock);
}

static void on_release(TRITONSERVER_InferenceTrace *trace, void *userp) {
    uint64_t id = 0;
    kelp_v2_ignore(TRITONSERVER_InferenceTraceId(trace, &id));
    kelp_v2_ignore(TRITONSERVER_InferenceTraceDelete(trace));
    if (take_part(userp, id))
        drop_reference(userp);
}

/* ---- front ends ---- */

/* Creates the server's trace, and the spans. */
static kelp_status *start(kelp_trace_record *record, const kelp_trace_origin *origin,
                          const kelp_trace_target *target) {
    unsigned level = kelp_trace_setting_values(record->setting).level;
    TRITONSERVER_Error *error = TRITONSERVER_InferenceTraceTensorNew(
        &record->unsubmitted, (TRITONSERVER_InferenceTraceLevel)level, 0, on_activity, on_tensor,
        on_release, record);
    kelp_v2_ignore(error);
    if (error != NULL)
        return kelp_status_oom();
    kelp_v2_ignore(TRITONSERVER_InferenceTraceId(record->unsubmitted, &record->id));
    if (target->exporter == NULL)
        return NULL;
    kelp_status *status = kelp_trace_spans_create(record->allocator, target->exporter, target->ids,
                                                  origin, &target->trace_id, &record->spans);
    if (status != NULL)
        kelp_v2_ignore(TRITONSERVER_InferenceTraceDelete(record->unsubmitted));
    return status;
}

kelp_status *kelp_trace_record_create(kelp_allocator allocator, kelp_trace_setting *setting,
                                      const kelp_trace_origin *origin,
                                      const kelp_trace_target *target, kelp_trace_record **out) {
    kelp_trace_record *record;
    KELP_TRY(KELP_NEW(allocator, kelp_trace_record, &record));
    record->allocator = allocator;
    record->setting = setting;
    record->refs = 2;
    kelp_buf_init(&record->text, allocator);
    record->text.limit_bytes = MAX_RECORD_BYTES;
    kelp_status *status = start(record, origin, target);
    if (status != NULL) {
        kelp_free(allocator, record, sizeof *record);
        return status;
    }
    pthread_mutex_init(&record->lock, NULL);
    *out = record;
    return NULL;
}

void kelp_trace_stamp_at(kelp_trace_record *record, const char *activity, uint64_t time_ns) {
    if (record == NULL)
        return;
    pthread_mutex_lock(&record->lock);
    if (record->spans != NULL)
        kelp_trace_spans_stamp(record->spans, activity, time_ns);
    else
        kelp_trace_text_add_timestamp(&record->text, record->id, activity, time_ns);
    pthread_mutex_unlock(&record->lock);
}

void kelp_trace_stamp(kelp_trace_record *record, const char *activity) {
    if (record != NULL)
        kelp_trace_stamp_at(record, activity, kelp_now_ns());
}

void kelp_trace_finish(kelp_trace_record *record, unsigned code, const char *message) {
    if (record == NULL)
        return;
    pthread_mutex_lock(&record->lock);
    if (record->spans != NULL)
        kelp_trace_spans_finish(record->spans, code, message);
    pthread_mutex_unlock(&record->lock);
}

TRITONSERVER_InferenceTrace *kelp_trace_submit(kelp_trace_record *record) {
    if (record == NULL)
        return NULL;
    TRITONSERVER_InferenceTrace *trace = record->unsubmitted;
    record->unsubmitted = NULL;
    return trace;
}

void kelp_trace_take_back(kelp_trace_record *record, TRITONSERVER_InferenceTrace *trace) {
    if (record != NULL)
        record->unsubmitted = trace;
}

void kelp_trace_record_release(kelp_trace_record *record) {
    if (record == NULL)
        return;
    if (record->unsubmitted != NULL)
        on_release(record->unsubmitted, record);
    drop_reference(record);
}
