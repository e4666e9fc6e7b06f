/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that wait to be written to a socket: frames that are copied, and parts of responses that
 * are not. */
#ifndef KELP_FRONTENDS_H2_OUTPUT_H_
#define KELP_FRONTENDS_H2_OUTPUT_H_

#include "base/buf.h"

#include <sys/uio.h>

typedef struct kelp_http2_stream kelp_http2_stream;

/* Consecutive bytes of the output. */
typedef struct kelp_http2_segment {
    const char *data; /* borrowed from the exchange of `stream`; NULL: in output->bytes */
    size_t offset;    /* in output->bytes */
    size_t length;
    kelp_http2_stream *stream; /* owner of `data`, or of the part that ends after the segment */
    bool ends_part;
} kelp_http2_segment;

/* Segments in order. */
typedef struct kelp_http2_output {
    kelp_allocator allocator;
    kelp_buf bytes;
    kelp_http2_segment *segments;
    size_t capacity;
    size_t count;
    size_t at;         /* the first segment that is not completely written */
    size_t sent_bytes; /* of that segment */
    uint64_t unsent_bytes;
} kelp_http2_output;

void kelp_http2_output_init(kelp_http2_output *output, kelp_allocator allocator);
void kelp_http2_output_deinit(kelp_http2_output *output);
/* Empties the output; keeps small buffers. */
void kelp_http2_output_clear(kelp_http2_output *output);
static inline bool kelp_http2_output_empty(const kelp_http2_output *output) {
    return output->at == output->count;
}
/* Appends a copy. Returns false if memory is exhausted. */
bool kelp_http2_output_copy(kelp_http2_output *output, const void *data, size_t length);
/* Appends bytes without a copy, which belong to the exchange of `stream`. */
bool kelp_http2_output_borrow(kelp_http2_output *output, const void *data, size_t length,
                              kelp_http2_stream *stream);
/* Marks the end of a part of a stream. */
bool kelp_http2_output_end_part(kelp_http2_output *output, kelp_http2_stream *stream);
/* Copies the bytes that are borrowed from `stream`, and removes its marks. */
bool kelp_http2_output_detach(kelp_http2_output *output, const kelp_http2_stream *stream);
/* Collects unsent bytes; returns the number of iov elements, at most `capacity`. */
size_t kelp_http2_output_gather(const kelp_http2_output *output, struct iovec *iov,
                                size_t capacity);
/* Records that `length` bytes were written. Then kelp_http2_output_next returns the segments that
 * are completely written. */
void kelp_http2_output_advance(kelp_http2_output *output, size_t length);
/* Returns the next completely written segment and removes it, or NULL. Valid until the output
 * changes. */
const kelp_http2_segment *kelp_http2_output_next(kelp_http2_output *output);

#endif
