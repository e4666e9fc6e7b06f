/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/event.h: reports the completion of asynchronous work.
 *
 * An event tracks one operation at a time and can be reused after it has completed. A new event
 * counts as completed. All functions are thread-safe.
 */
#ifndef KELP_EVENT_H_
#define KELP_EVENT_H_

#include <kelp/allocator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A completion event. */
typedef struct kelp_event kelp_event;

/* Creates an event. The caller destroys it. */
KELP_API kelp_status *kelp_event_create(kelp_allocator allocator, kelp_event **out) KELP_MUST_USE;

/* Waits for the operation in flight, if any, and destroys the event. NULL is allowed. */
KELP_API void kelp_event_destroy(kelp_event *event);

/* Returns true if no operation is in flight. Does not block. */
KELP_API bool kelp_event_done(kelp_event *event);

/* Waits until the operation has completed. Returns false if `timeout_ns` nanoseconds passed first.
 * UINT64_MAX waits without a limit. */
KELP_API bool kelp_event_wait(kelp_event *event, uint64_t timeout_ns);

/* Sets a function that is called each time an operation completes, on the thread that completes it
 * and before a waiting thread continues. It must return soon, and must not use the event.
 * `callback` NULL removes it. Call this function only while no operation is in flight. */
KELP_API void kelp_event_set_callback(kelp_event *event, void (*callback)(void *userp),
                                      void *userp);

#ifdef __cplusplus
}
#endif
#endif
