/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of models that batch: an event loop executes the batches of its requests when their
 * queue delay ends, and lets requests skip the delay while it is busy. Called on the thread of the
 * loop.
 */
#ifndef KELP_FRONTENDS_COMMON_BATCHES_H_
#define KELP_FRONTENDS_COMMON_BATCHES_H_

#include "frontends/http/thread.h"

#include <triton/core/tritonserver.h>

/* Prepares a request for its submission by the thread. */
kelp_status *kelp_batches_prepare(kelp_http_thread *thread,
                                  TRITONSERVER_InferenceRequest *request) KELP_MUST_USE;
/* Called after the submission of a prepared request that is not complete. */
void kelp_batches_wait(kelp_http_thread *thread);

#endif
