/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the growing byte buffer. */
#include "base/buf.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"

#include <stdarg.h>
#include <stdio.h>

void kelp_buf_init(kelp_buf *buf, kelp_allocator allocator) {
    *buf = (kelp_buf){.allocator = allocator};
}

void kelp_buf_deinit(kelp_buf *buf) {
    kelp_free(buf->allocator, buf->data, buf->capacity);
    buf->data = NULL;
    buf->length = 0;
    buf->capacity = 0;
    buf->failed = false;
}

void kelp_buf_clear(kelp_buf *buf) {
    buf->length = 0;
    buf->failed = false;
}

/* Grows the capacity to `total` bytes. The limit applies to the text; the terminator may exceed it
 * by one byte. */
static bool buf_grow(kelp_buf *buf, size_t total) {
    if (total <= buf->capacity)
        return true;
    size_t capacity = KELP_MAX(buf->capacity, (size_t)64);
    while (capacity < total) {
        if (!kelp_size_mul(capacity, 2, &capacity))
            capacity = total;
    }
    char *data = buf->allocator.realloc(buf->allocator.userp, buf->data, buf->capacity, capacity,
                                        KELP_DEFAULT_ALIGNMENT);
    if (data == NULL)
        return false;
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

static __attribute__((noinline)) char *reserve_slow(kelp_buf *buf, size_t more_bytes) {
    if (buf->failed)
        return NULL;
    size_t total;
    if (!kelp_size_add(buf->length, more_bytes, &total) ||
        (buf->limit_bytes && total > buf->limit_bytes) || !buf_grow(buf, KELP_MAX(total, 1u))) {
        buf->failed = true;
        return NULL;
    }
    return buf->data + buf->length;
}

static inline char *reserve(kelp_buf *buf, size_t more_bytes) {
    KELP_ASSERT(buf->length <= buf->capacity);
    if (more_bytes < buf->capacity - buf->length && buf->limit_bytes == 0 && !buf->failed)
        return buf->data + buf->length;
    return reserve_slow(buf, more_bytes);
}

char *kelp_buf_reserve(kelp_buf *buf, size_t more_bytes) {
    return reserve(buf, more_bytes);
}

static inline void append(kelp_buf *buf, const void *data, size_t length) {
    char *to = length > 0 ? reserve(buf, length) : NULL;
    if (to == NULL)
        return;
    memcpy(to, data, length);
    buf->length += length;
}

void kelp_buf_append(kelp_buf *buf, const void *data, size_t length) {
    append(buf, data, length);
}

void kelp_buf_append_str(kelp_buf *buf, kelp_str s) {
    append(buf, s.data, s.length);
}

void kelp_buf_append_cstr(kelp_buf *buf, const char *text) {
    append(buf, text, strlen(text));
}

void kelp_buf_append_char(kelp_buf *buf, char c) {
    append(buf, &c, 1);
}

static void append_decimal(kelp_buf *buf, bool negative, uint64_t magnitude) {
    char text[24] = {'-'};
    size_t length = kelp_format_u64(magnitude, text + 1);
    kelp_buf_append(buf, negative ? text : text + 1, length + negative);
}

void kelp_buf_append_i64(kelp_buf *buf, int64_t value) {
    append_decimal(buf, value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void kelp_buf_append_u64(kelp_buf *buf, uint64_t value) {
    append_decimal(buf, false, value);
}

void kelp_buf_append_f64(kelp_buf *buf, double value) {
    char text[32];
    kelp_buf_append(buf, text, kelp_format_f64(value, text));
}

void kelp_buf_printf(kelp_buf *buf, const char *format, ...) {
    if (buf->failed)
        return;
    va_list args;
    va_start(args, format);
    KELP_ASSERT(buf->length <= buf->capacity);
    size_t available = buf->capacity - buf->length;
    int length = vsnprintf(available ? buf->data + buf->length : NULL, available, format, args);
    va_end(args);
    size_t total;
    if (length < 0 || !kelp_size_add(buf->length, (size_t)length, &total) ||
        (buf->limit_bytes && total > buf->limit_bytes)) {
        buf->failed = true;
        return;
    }
    if ((size_t)length >= available) {
        if (!buf_grow(buf, total + 1)) {
            buf->failed = true;
            return;
        }
        va_start(args, format);
        (void)vsnprintf(buf->data + buf->length, (size_t)length + 1, format, args);
        va_end(args);
    }
    buf->length = total;
}

const char *kelp_buf_cstr(kelp_buf *buf) {
    size_t total;
    if (buf->failed)
        return NULL;
    if (!kelp_size_add(buf->length, 1, &total) || !buf_grow(buf, total)) {
        buf->failed = true;
        return NULL;
    }
    buf->data[buf->length] = '\0';
    return buf->data;
}

kelp_status *kelp_buf_status(const kelp_buf *buf) {
    if (!buf->failed)
        return NULL;
    if (buf->limit_bytes)
        return KELP_ERROR(KELP_RESOURCE_EXHAUSTED,
                          "buffer is full: it holds %zu bytes, its limit is %zu bytes", buf->length,
                          buf->limit_bytes);
    return kelp_status_oom();
}

char *kelp_buf_take(kelp_buf *buf, size_t *out_length, size_t *out_capacity) {
    char *data = buf->data;
    *out_length = buf->length;
    *out_capacity = buf->capacity;
    buf->data = NULL;
    buf->length = 0;
    buf->capacity = 0;
    return data;
}
