/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/trace/record_text.h"

#include "base/text/json.h"
#include "frontends/common/status.h"

#include <string.h>

/* Begins an element of the array. */
static void begin_element(kelp_buf *out, uint64_t id) {
    kelp_buf_append_cstr(out, out->length > 0 ? ",{\"id\":" : "{\"id\":");
    kelp_buf_append_u64(out, id);
}

static void append_text(kelp_buf *out, const char *key, const char *value) {
    kelp_buf_append_cstr(out, key);
    kelp_json_escape(out, kelp_str_from(value));
}

void kelp_trace_text_add_timestamp(kelp_buf *out, uint64_t id, const char *name, uint64_t time_ns) {
    begin_element(out, id);
    append_text(out, ",\"timestamps\":[{\"name\":", name);
    kelp_buf_append_cstr(out, ",\"ns\":");
    kelp_buf_append_u64(out, time_ns);
    kelp_buf_append_cstr(out, "}]}");
}

kelp_trace_model kelp_trace_model_of(TRITONSERVER_InferenceTrace *trace) {
    kelp_trace_model model = {.name = "", .request = ""};
    kelp_v2_ignore(TRITONSERVER_InferenceTraceModelName(trace, &model.name));
    kelp_v2_ignore(TRITONSERVER_InferenceTraceModelVersion(trace, &model.version));
    kelp_v2_ignore(TRITONSERVER_InferenceTraceParentId(trace, &model.parent));
    kelp_v2_ignore(TRITONSERVER_InferenceTraceRequestId(trace, &model.request));
    return model;
}

void kelp_trace_text_add_model(kelp_buf *out, TRITONSERVER_InferenceTrace *trace, uint64_t id) {
    kelp_trace_model model = kelp_trace_model_of(trace);
    begin_element(out, id);
    append_text(out, ",\"model_name\":", model.name);
    kelp_buf_append_cstr(out, ",\"model_version\":");
    kelp_buf_append_i64(out, model.version);
    if (model.request[0] != 0)
        append_text(out, ",\"request_id\":", model.request);
    if (model.parent != 0) {
        kelp_buf_append_cstr(out, ",\"parent_id\":");
        kelp_buf_append_u64(out, model.parent);
    }
    kelp_buf_append_char(out, '}');
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
static void append_data(kelp_buf *out, TRITONSERVER_DataType type, const void *base,
                        size_t size_bytes) {
    kelp_buf data;
    size_t element = TRITONSERVER_DataTypeByteSize(type);
    kelp_buf_init(&data, out->allocator);
    data.limit_bytes = out->limit_bytes;
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
    out->failed = out->failed || data.failed;
    kelp_json_escape(out, (kelp_str){data.data, data.length});
    kelp_buf_deinit(&data);
}

void kelp_trace_text_add_tensor(kelp_buf *out, uint64_t id, const kelp_trace_tensor *tensor) {
    begin_element(out, id);
    append_text(out, ",\"activity\":", tensor->activity);
    append_text(out, ",\"tensor\":{\"name\":", tensor->name);
    kelp_buf_append_cstr(out, ",\"data\":");
    append_data(out, tensor->type, tensor->base, tensor->size_bytes);
    kelp_buf_append_cstr(out, ",\"shape\":\"");
    for (uint64_t i = 0; i < tensor->rank; i++) {
        if (i > 0)
            kelp_buf_append_char(out, ',');
        kelp_buf_append_i64(out, tensor->shape[i]);
    }
    append_text(out, "\",\"dtype\":", TRITONSERVER_DataTypeString(tensor->type));
    kelp_buf_append_cstr(out, "}}");
}
