/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ensembles: models whose requests run as a data flow over other models, the members
 * (`ensemble_scheduling`). An ensemble has no backend, no instances and no threads.
 *
 * A request starts on the submitting thread. Each step is an internal request, which is submitted
 * to the member as a request of a client is; batching, statistics, cache, traces and cancellation
 * of the member therefore apply. The flow continues on the thread on which a step completes. All
 * events of one request are processed by one thread at a time, and no lock is held while a model or
 * a callback is called. Response callbacks that submit requests are nested up to a limit; then the
 * thread processes the request after the callback has returned.
 *
 * Steps. A step runs when all of its inputs are set. A response of a decoupled member starts an
 * iteration: the steps that depend on it run once for each response. An output that a member does
 * not produce is an absent optional input of the following steps. If the client requests some of
 * the outputs, steps that do not contribute to them do not run.
 *
 * Memory. Tensors are passed by reference: a response of a step lives until the last step that
 * reads it has released its request. The requested outputs are copied to the buffers of the
 * client. With `max_inflight_requests` = n, at most n requests of each step are in flight for a
 * request of the ensemble, and a thread on which a decoupled member responds waits while more than
 * n responses of its step are unprocessed. It waits at most KELP_ENSEMBLE_MAX_WAIT_NS for each
 * response, and not at all if the flow itself called the member on this thread, so that it cannot
 * deadlock.
 *
 * Members are looked up for each request, and held until the request is over: unloading or
 * reloading a member fails no request that was accepted. A member whose tensors do not fit any
 * more makes the ensemble unavailable.
 *
 * Responses of decoupled ensembles are sent in the order of the iterations. The first failure of a
 * step cancels the other steps and becomes the final response after all of them are over.
 */
#ifndef KELP_SERVER_ENSEMBLE_ENSEMBLE_H_
#define KELP_SERVER_ENSEMBLE_ENSEMBLE_H_

#include "server/request/factory.h"

#define KELP_ENSEMBLE_MAX_WAIT_NS 10000000000ull

typedef struct kelp_ensemble kelp_ensemble;

/* Creates the data flow of a model from its configuration, and checks it against the members, which
 * must serve. INVALID_ARGUMENT for a tensor that nothing produces, a cycle, unknown tensors of a
 * member, or types and shapes that differ: the message contains the path through the ensemble.
 * UNAVAILABLE if a member does not serve. The model is borrowed and must outlive the ensemble. */
kelp_status *kelp_ensemble_create(kelp_model_base *model, kelp_ensemble **out) KELP_MUST_USE;
/* Frees an ensemble without requests. NULL is ignored. */
void kelp_ensemble_destroy(kelp_ensemble *ensemble);

/* Returns true if a request may have several responses: a member is decoupled. */
bool kelp_ensemble_is_decoupled(const kelp_ensemble *ensemble);
/* Returns UNAVAILABLE, with the reason, unless all members serve and fit. Thread-safe. */
kelp_status *kelp_ensemble_check(kelp_ensemble *ensemble) KELP_MUST_USE;

/* Returns a number that changes when a member, or a member of a member, is loaded or unloaded.
 * Thread-safe. */
uint64_t kelp_ensemble_fingerprint(kelp_ensemble *ensemble);

/* Returns the member that produces an output of the ensemble, and the name of the output there;
 * NULL if it is not loaded. The caller releases the model. The name lives as long as the ensemble.
 * Thread-safe. */
kelp_model_base *kelp_ensemble_find_producer(const kelp_ensemble *ensemble, const char *output,
                                             const char **out_output);

/* Starts a PENDING request, which may be over on return. On failure it stays the caller's.
 * Thread-safe. */
kelp_status *kelp_ensemble_submit(kelp_ensemble *ensemble, kelp_request *request) KELP_MUST_USE;
/* Cancels the steps of a submission that are in flight. Its flag is set already. Thread-safe. */
void kelp_ensemble_cancel(kelp_ensemble *ensemble, kelp_factory *factory);

#endif
