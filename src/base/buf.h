/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer. Errors are kept: after a failed append, `failed` is set and later appends
 * have no effect. kelp_buf_status reports the failure at the end, so that callers need not check
 * every append.
 */
#ifndef KELP_BASE_BUF_H_
#define KELP_BASE_BUF_H_

#include "base/str.h"

#include <kelp/allocator.h>

typedef struct kelp_buf {
    kelp_allocator allocator;
    char *data;
    size_t length;
    size_t capacity;
    size_t limit_bytes; /* 0: none; an append that exceeds it fails */
    bool failed;
} kelp_buf;

void kelp_buf_init(kelp_buf *buf, kelp_allocator allocator);
void kelp_buf_deinit(kelp_buf *buf);
void kelp_buf_clear(kelp_buf *buf); /* keeps the memory and clears a failure */

/* Reserves `more_bytes` after the end and returns where to write, or NULL. The caller then
 * increases `length`. */
char *kelp_buf_reserve(kelp_buf *buf, size_t more_bytes);
void kelp_buf_append(kelp_buf *buf, const void *data, size_t length);
void kelp_buf_append_str(kelp_buf *buf, kelp_str s);
void kelp_buf_append_cstr(kelp_buf *buf, const char *text);
void kelp_buf_append_char(kelp_buf *buf, char c);
void kelp_buf_append_i64(kelp_buf *buf, int64_t value);
void kelp_buf_append_u64(kelp_buf *buf, uint64_t value);
void kelp_buf_append_f64(kelp_buf *buf, double value);
void kelp_buf_printf(kelp_buf *buf, const char *format, ...) KELP_PRINTF(2, 3);
/* Terminates and returns the text (`length` does not count the NUL), or NULL after a failed
 * append. */
const char *kelp_buf_cstr(kelp_buf *buf);
/* Returns NULL, or RESOURCE_EXHAUSTED if memory or the limit was exhausted. */
kelp_status *kelp_buf_status(const kelp_buf *buf) KELP_MUST_USE;
/* Transfers the memory (capacity bytes, default alignment) to the caller and empties the buffer. */
char *kelp_buf_take(kelp_buf *buf, size_t *out_length, size_t *out_capacity);

#endif
