/* SPDX-License-Identifier: Apache-2.0 */
/* Records: the activities of a request and its parts, as text of the trace file. */
#include "frontends/trace/record.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/text/json.h"

/* A record that becomes longer is dropped. */
#define MAX_RECORD_BYTES ((size_t)16 * 1024 * 1024)

struct kelp_trace_record {
    kelp_allocator allocator;
    kelp_trace_setting *setting;
    uint64_t id;          /* of the request's trace */
    pthread_mutex_t lock; /* guards what follows */
    unsigned refs;        /* the front end, and the traces of the server */
    kelp_buf text;
    uint64_t *parts; /* the traces of parts of the request */
    size_t part_count, part_capacity;
};

static void ignore(TRITONSERVER_Error *error) {
    if (error != NULL)
        TRITONSERVER_ErrorDelete(error);
}

static void drop_reference(kelp_trace_record *record) {
    pthread_mutex_lock(&record->lock);
    KELP_ASSERT(record->refs > 0);
    bool last = --record->refs == 0;
    pthread_mutex_unlock(&record->lock);
    if (!last)
        return;
    kelp_str text = {record->text.data, record->text.failed ? 0 : record->text.length};
    kelp_trace_setting_collect(record->setting, text);
    kelp_trace_setting_release(record->setting);
    kelp_buf_deinit(&record->text);
    kelp_free(record->allocator, record->parts, record->part_capacity * sizeof *record->parts);
    pthread_mutex_destroy(&record->lock);
    kelp_free(record->allocator, record, sizeof *record);
}

/* Begins an element of the array. The lock is held. */
static void begin_element(kelp_trace_record *record, uint64_t id) {
    kelp_buf_append_cstr(&record->text, record->text.length > 0 ? ",{\"id\":" : "{\"id\":");
    kelp_buf_append_u64(&record->text, id);
}

static void append_text(kelp_buf *out, const char *key, const char *value) {
    kelp_buf_append_cstr(out, key);
    kelp_json_escape(out, kelp_str_from(value));
}

static void append_timestamp(kelp_trace_record *record, uint64_t id, const char *name,
                             uint64_t time_ns) {
    begin_element(record, id);
    append_text(&record->text, ",\"timestamps\":[{\"name\":", name);
    kelp_buf_append_cstr(&record->text, ",\"ns\":");
    kelp_buf_append_u64(&record->text, time_ns);
    kelp_buf_append_cstr(&record->text, "}]}");
}

/* ---- callbacks of the server, on any thread ---- */

/* Appends the model of a trace, and for a part of a request also the trace of the request. */
static void append_model(kelp_trace_record *record, TRITONSERVER_InferenceTrace *trace,
                         uint64_t id) {
    const char *model = "", *request = "";
    int64_t version = 0;
    uint64_t parent = 0;
    kelp_buf *out = &record->text;
    ignore(TRITONSERVER_InferenceTraceModelName(trace, &model));
    ignore(TRITONSERVER_InferenceTraceModelVersion(trace, &version));
    ignore(TRITONSERVER_InferenceTraceParentId(trace, &parent));
    ignore(TRITONSERVER_InferenceTraceRequestId(trace, &request));
    begin_element(record, id);
    append_text(out, ",\"model_name\":", model);
    kelp_buf_append_cstr(out, ",\"model_version\":");
    kelp_buf_append_i64(out, version);
    if (request[0] != 0)
        append_text(out, ",\"request_id\":", request);
    if (parent != 0) {
        kelp_buf_append_cstr(out, ",\"parent_id\":");
        kelp_buf_append_u64(out, parent);
    }
    kelp_buf_append_char(out, '}');
}

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
    pthread_mutex_unlock(&record->lock);
    return found;
}

static void on_activity(TRITONSERVER_InferenceTrace *trace,
                        TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns,
                        void *userp) {
    kelp_trace_record *record = userp;
    uint64_t id = 0;
    const char *name = TRITONSERVER_InferenceTraceActivityString(activity);
    ignore(TRITONSERVER_InferenceTraceId(trace, &id));
    if (activity == TRITONSERVER_TRACE_CUSTOM_ACTIVITY)
        ignore(TRITONSERVER_InferenceTraceContext(trace, &name));
    pthread_mutex_lock(&record->lock);
    if (activity == TRITONSERVER_TRACE_REQUEST_START) {
        if (id != record->id)
            add_part(record, id);
        append_model(record, trace, id);
    }
    append_timestamp(record, id, name, timestamp_ns);
    pthread_mutex_unlock(&record->lock);
}

static void append_element(kelp_buf *out, TRITONSERVER_DataType type, const void *base, size_t i) {
#define APPEND(kind, append)                                  \
    do {                                                      \
        kind value;                                           \
        memcpy(&value, (const kind *)base + i, sizeof value); \
        append(out, value);                                   \
    } while (0)
    switch (type) {
    case TRITONSERVER_TYPE_BOOL:
    case TRITONSERVER_TYPE_UINT8:
        APPEND(uint8_t, kelp_buf_append_u64);
        break;
    case TRITONSERVER_TYPE_UINT16:
        APPEND(uint16_t, kelp_buf_append_u64);
        break;
    case TRITONSERVER_TYPE_UINT32:
        APPEND(uint32_t, kelp_buf_append_u64);
        break;
    case TRITONSERVER_TYPE_UINT64:
        APPEND(uint64_t, kelp_buf_append_u64);
        break;
    case TRITONSERVER_TYPE_INT8:
        APPEND(int8_t, kelp_buf_append_i64);
        break;
    case TRITONSERVER_TYPE_INT16:
        APPEND(int16_t, kelp_buf_append_i64);
        break;
    case TRITONSERVER_TYPE_INT32:
        APPEND(int32_t, kelp_buf_append_i64);
        break;
    case TRITONSERVER_TYPE_INT64:
        APPEND(int64_t, kelp_buf_append_i64);
        break;
    case TRITONSERVER_TYPE_FP32: {
        float value;
        memcpy(&value, (const float *)base + i, sizeof value);
        kelp_buf_printf(out, "%g", (double)value);
        break;
    }
    case TRITONSERVER_TYPE_FP64:
        APPEND(double, kelp_buf_append_f64);
        break;
    default: /* 16-bit floats have no text in this format */
        break;
    }
#undef APPEND
}

/* Appends the elements as one JSON string. */
static void append_data(kelp_trace_record *record, TRITONSERVER_DataType type, const void *base,
                        size_t size_bytes) {
    kelp_buf data;
    size_t element = TRITONSERVER_DataTypeByteSize(type);
    kelp_buf_init(&data, record->allocator);
    data.limit_bytes = MAX_RECORD_BYTES;
    if (type == TRITONSERVER_TYPE_BYTES) {
        for (size_t at = 0; size_bytes - at >= sizeof(uint32_t);) {
            uint32_t length;
            memcpy(&length, (const char *)base + at, sizeof length);
            at += sizeof length;
            if (length > size_bytes - at)
                break;
            kelp_buf_append_cstr(&data, data.length > 0 ? ",\"" : "\"");
            kelp_buf_append(&data, (const char *)base + at, length);
            kelp_buf_append_char(&data, '"');
            at += length;
        }
    } else if (type != TRITONSERVER_TYPE_FP16 && type != TRITONSERVER_TYPE_BF16 && element != 0) {
        for (size_t i = 0; i < size_bytes / element && !data.failed; i++) {
            if (i > 0)
                kelp_buf_append_char(&data, ',');
            append_element(&data, type, base, i);
        }
    }
    record->text.failed = record->text.failed || data.failed;
    kelp_json_escape(&record->text, (kelp_str){data.data, data.length});
    kelp_buf_deinit(&data);
}

static void on_tensor(TRITONSERVER_InferenceTrace *trace,
                      TRITONSERVER_InferenceTraceActivity activity, const char *name,
                      TRITONSERVER_DataType datatype, const void *base, size_t byte_size,
                      const int64_t *shape, uint64_t dim_count, TRITONSERVER_MemoryType memory_type,
                      int64_t memory_type_id, void *userp) {
    kelp_trace_record *record = userp;
    uint64_t id = 0;
    kelp_buf *out = &record->text;
    (void)memory_type_id;
    if (memory_type == TRITONSERVER_MEMORY_GPU)
        return;
    ignore(TRITONSERVER_InferenceTraceId(trace, &id));
    pthread_mutex_lock(&record->lock);
    begin_element(record, id);
    append_text(out, ",\"activity\":", TRITONSERVER_InferenceTraceActivityString(activity));
    append_text(out, ",\"tensor\":{\"name\":", name);
    kelp_buf_append_cstr(out, ",\"data\":");
    append_data(record, datatype, base, byte_size);
    kelp_buf_append_cstr(out, ",\"shape\":\"");
    for (uint64_t i = 0; i < dim_count; i++) {
        if (i > 0)
            kelp_buf_append_char(out, ',');
        kelp_buf_append_i64(out, shape[i]);
    }
    append_text(out, "\",\"dtype\":", TRITONSERVER_DataTypeString(datatype));
    kelp_buf_append_cstr(out, "}}");
    pthread_mutex_unlock(&record->lock);
}

static void on_release(TRITONSERVER_InferenceTrace *trace, void *userp) {
    uint64_t id = 0;
    ignore(TRITONSERVER_InferenceTraceId(trace, &id));
    ignore(TRITONSERVER_InferenceTraceDelete(trace));
    if (take_part(userp, id))
        drop_reference(userp);
}

/* ---- front ends ---- */

kelp_status *kelp_trace_record_create(kelp_allocator allocator, kelp_trace_setting *setting,
                                      kelp_trace_record **out,
                                      TRITONSERVER_InferenceTrace **out_trace) {
    kelp_trace_record *record;
    KELP_TRY(KELP_NEW(allocator, kelp_trace_record, &record));
    unsigned level = kelp_trace_setting_values(setting).level;
    TRITONSERVER_Error *error =
        TRITONSERVER_InferenceTraceTensorNew(out_trace, (TRITONSERVER_InferenceTraceLevel)level, 0,
                                             on_activity, on_tensor, on_release, record);
    if (error != NULL) {
        ignore(error);
        kelp_free(allocator, record, sizeof *record);
        return kelp_status_oom();
    }
    record->allocator = allocator;
    record->setting = setting;
    record->refs = 2;
    ignore(TRITONSERVER_InferenceTraceId(*out_trace, &record->id));
    kelp_buf_init(&record->text, allocator);
    record->text.limit_bytes = MAX_RECORD_BYTES;
    pthread_mutex_init(&record->lock, NULL);
    *out = record;
    return NULL;
}

void kelp_trace_stamp_at(kelp_trace_record *record, const char *activity, uint64_t time_ns) {
    if (record == NULL)
        return;
    pthread_mutex_lock(&record->lock);
    append_timestamp(record, record->id, activity, time_ns);
    pthread_mutex_unlock(&record->lock);
}

void kelp_trace_stamp(kelp_trace_record *record, const char *activity) {
    if (record != NULL)
        kelp_trace_stamp_at(record, activity, kelp_now_ns());
}

void kelp_trace_abandon(kelp_trace_record *record, TRITONSERVER_InferenceTrace *trace) {
    if (trace != NULL)
        on_release(trace, record);
}

void kelp_trace_record_release(kelp_trace_record *record) {
    if (record != NULL)
        drop_reference(record);
}
