/* SPDX-License-Identifier: Apache-2.0 */
/* Text that the C API returns: JSON, or a page of metrics. TRITONSERVER_Message and
 * TRITONSERVER_Metrics are pointers to it. Immutable. */
#ifndef KELP_SERVER_CORE_MESSAGE_H_
#define KELP_SERVER_CORE_MESSAGE_H_

#include "base/buf.h"

/* A terminated text and its length. */
typedef struct kelp_message {
    kelp_allocator allocator;
    char *text;
    size_t length;
    size_t capacity;
} kelp_message;

/* Creates a message from the contents of a buffer, with its allocator, and empties the buffer.
 * Returns the buffer's failure if it had one. */
kelp_status *kelp_message_create(kelp_buf *take_text, kelp_message **out) KELP_MUST_USE;
/* Creates a message from a copy of the text. */
kelp_status *kelp_message_copy(kelp_allocator allocator, const char *text, size_t length,
                               kelp_message **out) KELP_MUST_USE;
/* Frees a message. NULL is ignored. */
void kelp_message_destroy(kelp_message *message);

#endif
