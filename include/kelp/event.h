/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp/event.h: says when something that runs beside its caller is done.
 *
 * An event stands for one piece of work at a time and is used again and again. Threads: any.
 */
#ifndef KELP_EVENT_H_
#define KELP_EVENT_H_

#include <kelp/allocator.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kelp_event kelp_event;
KELP_API kelp_status *kelp_event_create(kelp_allocator allocator, kelp_event **out) KELP_MUST_USE;
/* Waits for work that is under way. */
KELP_API void kelp_event_destroy(kelp_event *event);
/* Never used counts as done. */
KELP_API bool kelp_event_done(kelp_event *event);
/* false when timeout_ns passed first; UINT64_MAX waits for ever. */
KELP_API bool kelp_event_wait(kelp_event *event, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif
#endif
