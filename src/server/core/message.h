/* SPDX-License-Identifier: Apache-2.0 */
/* A text that is handed to callers of the C API: JSON, or a page of metrics. What
 * TRITONSERVER_Message and TRITONSERVER_Metrics point at. Immutable once created. */
#ifndef KELP_SERVER_CORE_MESSAGE_H_
#define KELP_SERVER_CORE_MESSAGE_H_

#include "base/buf.h"

typedef struct kelp_message {
    kelp_allocator allocator;
    char *text; /* terminated */
    size_t length;
    size_t capacity;
} kelp_message;

/* Creates a message from the contents and with the allocator of a buffer, which is empty
 * afterwards. Returns the buffer's failure if it had one. */
kelp_status *kelp_message_create(kelp_buf *take_text, kelp_message **out) KELP_MUST_USE;
kelp_status *kelp_message_copy(kelp_allocator allocator, const char *text, size_t length,
                               kelp_message **out) KELP_MUST_USE;
/* NULL is ignored. */
void kelp_message_destroy(kelp_message *message);

#endif
