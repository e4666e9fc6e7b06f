/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of the models at an address: a model repository in a cache directory.
 *
 *   CACHE/NAME-HASH/lock         locked by the process that uses the copy
 *                   blobs/ID     files; the name depends on the path and the version in the store
 *                   blobs/state  the ETag and the digest of a single file
 *                   trees/ID/    hard links to the files, as a model repository
 *                   current      link to the repository of the latest complete tree
 *
 * An update builds a tree before `current` leads to it, so that readers never see a part of a
 * change. Files that have not changed keep their modification times, so that the server does not
 * load their models again. Used by one thread at a time.
 */
#ifndef KELP_CLI_SERVE_REMOTE_MIRROR_H_
#define KELP_CLI_SERVE_REMOTE_MIRROR_H_

#include "cli/pull/source.h"

typedef struct kelp_mirror kelp_mirror;

/* Checks an address: a file NAME.onnx or NAME.plan of an HTTP server or of S3, a prefix of S3
 * (which needs no '/' at its end), or an artifact of a registry. INVALID_ARGUMENT if it is none. */
kelp_status *kelp_mirror_check(const char *address) KELP_MUST_USE;
/* Creates the directory of the copy below `cache`, and locks it. ABORTED if another process uses
 * it. */
kelp_status *kelp_mirror_create(const char *cache, const char *address, bool plain_http,
                                kelp_mirror **out) KELP_MUST_USE;
void kelp_mirror_destroy(kelp_mirror *mirror);
/* Returns the address, and the path of the model repository. */
const char *kelp_mirror_address(const kelp_mirror *mirror);
const char *kelp_mirror_path(const kelp_mirror *mirror);
/* Returns true if the repository exists, of this update or an earlier one. */
bool kelp_mirror_exists(const kelp_mirror *mirror);
/* Downloads the files that have changed. An interrupted update continues with the next one. After a
 * failure, the repository is that of the latest update. Fails like kelp_pull_run, and with
 * INVALID_ARGUMENT if the files are not models. */
kelp_status *kelp_mirror_update(kelp_mirror *mirror, kelp_fetch *fetch) KELP_MUST_USE;

#endif
