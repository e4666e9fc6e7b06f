/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model repositories of the command line that are addresses. Their models are downloaded to a
 * cache before the server loads them, and in poll mode again before each poll.
 *
 * A thread downloads, one update at a time, so that the main thread keeps responding to signals and
 * to the service manager. The main thread owns the object, starts updates and gets their results;
 * no thread of the front ends is involved. The server never reads a directory while it changes: an
 * update replaces a link when it is complete.
 */
#ifndef KELP_CLI_SERVE_REMOTE_REMOTE_H_
#define KELP_CLI_SERVE_REMOTE_REMOTE_H_

#include "cli/serve/options/models.h"

typedef struct kelp_serve_remote kelp_serve_remote;

/* Checks the addresses among the repositories. INVALID_ARGUMENT names the address. */
kelp_status *kelp_serve_remote_check(const kelp_serve_models *models) KELP_MUST_USE;
/* Creates the cache, and replaces each address among the repositories by the path of its copy,
 * which exists after the first update. `*out` is NULL if there are no addresses. Fails with
 * FAILED_PRECONDITION without libcurl, ABORTED if another process uses a copy. */
kelp_status *kelp_serve_remote_create(kelp_serve_models *models,
                                      kelp_serve_remote **out) KELP_MUST_USE;
/* Stops an update that is in progress, within about a second, and frees the object. The paths of
 * the repositories are not valid any more. NULL is allowed. */
void kelp_serve_remote_destroy(kelp_serve_remote *remote);
/* Begins an update; none is in progress. */
kelp_status *kelp_serve_remote_begin(kelp_serve_remote *remote) KELP_MUST_USE;
/* Returns a descriptor that is readable when the update has ended. */
int kelp_serve_remote_wake(const kelp_serve_remote *remote);
/* Ends the update, and waits for it if needed. Returns its failures. The models of a repository
 * that failed are those of its latest update; if that is in a cache and the store cannot be reached
 * by the first update, a warning is printed instead. */
kelp_status *kelp_serve_remote_end(kelp_serve_remote *remote) KELP_MUST_USE;

#endif
