/* SPDX-License-Identifier: Apache-2.0 */
/* Text that the C API returns. */
#include "server/core/message.h"

#include "base/alloc.h"
#include "base/assert.h"

kelp_status *kelp_message_create(kelp_buf *take_text, kelp_message **out) {
    kelp_allocator allocator = take_text->allocator;
    kelp_message *message = NULL;
    kelp_buf_cstr(take_text);
    KELP_TRY(kelp_buf_status(take_text));
    KELP_TRY(KELP_NEW(allocator, kelp_message, &message));
    message->allocator = allocator;
    message->text = kelp_buf_take(take_text, &message->length, &message->capacity);
    *out = message;
    return NULL;
}

kelp_status *kelp_message_copy(kelp_allocator allocator, const char *text, size_t length,
                               kelp_message **out) {
    KELP_ASSERT(text != NULL || length == 0);
    kelp_buf copy;
    kelp_buf_init(&copy, allocator);
    kelp_buf_append(&copy, text, length);
    kelp_status *status = kelp_message_create(&copy, out);
    kelp_buf_deinit(&copy);
    return status;
}

void kelp_message_destroy(kelp_message *message) {
    if (message == NULL)
        return;
    kelp_allocator allocator = message->allocator;
    kelp_free(allocator, message->text, message->capacity);
    kelp_free(allocator, message, sizeof *message);
}
