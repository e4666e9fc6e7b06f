/* SPDX-License-Identifier: Apache-2.0 */
/* Internal interface of events, and the initialization of a mutex and condition variable. */
#ifndef KELP_BASE_SYNC_EVENT_H_
#define KELP_BASE_SYNC_EVENT_H_

#include <kelp/event.h>
#include <pthread.h>

/* Initializes a mutex and a condition variable on the monotonic clock. On failure, neither is
 * initialized. */
kelp_status *kelp_lock_init(pthread_mutex_t *mutex, pthread_cond_t *changed) KELP_MUST_USE;

/* Marks work as started (true) or done (false). NULL has no effect. Notifies while holding the
 * mutex, so that a waiting thread may destroy the event at once. */
void kelp_event_set_pending(kelp_event *event, bool pending);

#endif
