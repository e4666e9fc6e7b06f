/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of events, and the lock that they and queues are made with. */
#ifndef KELP_BASE_EVENT_H_
#define KELP_BASE_EVENT_H_

#include <kelp/event.h>
#include <pthread.h>

/* A mutex and a condition variable on the monotonic clock; on failure neither is made. */
kelp_status *kelp_lock_init(pthread_mutex_t *mutex, pthread_cond_t *changed) KELP_MUST_USE;

/* Work begins (true) or is done. NULL does nothing. Wakes under the event's mutex, so that whoever
 * waited may destroy it at once. */
void kelp_event_set_pending(kelp_event *event, bool pending);

#endif
