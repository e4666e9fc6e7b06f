/* SPDX-License-Identifier: Apache-2.0 */
#include "frontends/h2/output.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/checked.h"
#include "frontends/h2/internal.h"

#define KEEP_BYTES ((size_t)256 * 1024)
#define KEEP_SEGMENTS 512

void kelp_http2_output_init(kelp_http2_output *output, kelp_allocator allocator) {
    *output = (kelp_http2_output){.allocator = allocator};
    kelp_buf_init(&output->bytes, allocator);
}

void kelp_http2_output_deinit(kelp_http2_output *output) {
    kelp_buf_deinit(&output->bytes);
    kelp_free(output->allocator, output->segments, output->capacity * sizeof *output->segments);
    kelp_http2_output_init(output, output->allocator);
}

void kelp_http2_output_clear(kelp_http2_output *output) {
    if (output->bytes.capacity > KEEP_BYTES || output->capacity > KEEP_SEGMENTS)
        kelp_http2_output_deinit(output);
    kelp_buf_clear(&output->bytes);
    output->count = output->at = output->sent_bytes = 0;
    output->unsent_bytes = 0;
}

static bool add_segment(kelp_http2_output *output, kelp_http2_segment segment) {
    kelp_status *status = kelp_grow(output->allocator, (void **)&output->segments,
                                    &output->capacity, output->count + 1, sizeof segment);
    if (status != NULL) {
        kelp_status_free(status);
        return false;
    }
    if (segment.stream != NULL)
        segment.stream->queued++;
    output->segments[output->count++] = segment;
    output->unsent_bytes += segment.length;
    return true;
}

bool kelp_http2_output_copy(kelp_http2_output *output, const void *data, size_t length) {
    size_t offset = output->bytes.length;
    kelp_buf_append(&output->bytes, data, length);
    if (output->bytes.failed)
        return false;
    kelp_http2_segment *last =
        output->count > output->at ? &output->segments[output->count - 1] : NULL;
    if (last != NULL && last->data == NULL && last->stream == NULL &&
        last->offset + last->length == offset) {
        last->length += length;
        output->unsent_bytes += length;
        return true;
    }
    return add_segment(output, (kelp_http2_segment){.offset = offset, .length = length});
}

bool kelp_http2_output_borrow(kelp_http2_output *output, const void *data, size_t length,
                              kelp_http2_stream *stream) {
    return add_segment(output,
                       (kelp_http2_segment){.data = data, .length = length, .stream = stream});
}

bool kelp_http2_output_end_part(kelp_http2_output *output, kelp_http2_stream *stream) {
    kelp_http2_segment *last =
        output->count > output->at ? &output->segments[output->count - 1] : NULL;
    if (last != NULL && !last->ends_part && (last->stream == NULL || last->stream == stream)) {
        if (last->stream == NULL)
            stream->queued++;
        last->stream = stream;
        last->ends_part = true;
        return true;
    }
    return add_segment(output, (kelp_http2_segment){.stream = stream, .ends_part = true});
}

bool kelp_http2_output_detach(kelp_http2_output *output, const kelp_http2_stream *stream) {
    for (size_t i = output->at; i < output->count; i++) {
        kelp_http2_segment *segment = &output->segments[i];
        if (segment->stream != stream)
            continue;
        if (segment->data != NULL) {
            size_t offset = output->bytes.length;
            kelp_buf_append(&output->bytes, segment->data, segment->length);
            if (output->bytes.failed)
                return false;
            segment->data = NULL;
            segment->offset = offset;
        }
        segment->stream->queued--;
        segment->stream = NULL;
        segment->ends_part = false;
    }
    return true;
}

size_t kelp_http2_output_gather(const kelp_http2_output *output, struct iovec *iov,
                                size_t capacity) {
    size_t n = 0, skip = output->sent_bytes;
    const char *end = NULL; /* of the last element */
    for (size_t i = output->at; i < output->count; i++) {
        const kelp_http2_segment *segment = &output->segments[i];
        const char *data =
            segment->data != NULL ? segment->data : output->bytes.data + segment->offset;
        size_t length = segment->length - skip;
        if (length > 0 && data + skip == end) {
            iov[n - 1].iov_len += length;
            end += length;
        } else if (length > 0) {
            if (n == capacity)
                break;
            iov[n].iov_base = (void *)(uintptr_t)(data + skip);
            iov[n++].iov_len = length;
            end = data + skip + length;
        }
        skip = 0;
    }
    return n;
}

void kelp_http2_output_advance(kelp_http2_output *output, size_t length) {
    KELP_ASSERT(length <= output->unsent_bytes);
    output->unsent_bytes -= length;
    output->sent_bytes += length;
}

const kelp_http2_segment *kelp_http2_output_next(kelp_http2_output *output) {
    if (output->at == output->count)
        return NULL;
    const kelp_http2_segment *segment = &output->segments[output->at];
    if (output->sent_bytes < segment->length)
        return NULL;
    output->sent_bytes -= segment->length;
    output->at++;
    if (segment->stream != NULL)
        segment->stream->queued--;
    return segment;
}
