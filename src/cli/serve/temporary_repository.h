/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary model repository, with links to the models that the command line names. */
#ifndef KELP_CLI_SERVE_TEMPORARY_REPOSITORY_H_
#define KELP_CLI_SERVE_TEMPORARY_REPOSITORY_H_

#include <kelp/status.h>

/* Creates an empty directory below TMPDIR. The caller passes `*out_path` to remove. */
kelp_status *kelp_temporary_repository_create(char **out_path) KELP_MUST_USE;
/* Removes the directory without following links, and frees the path. NULL is allowed. */
void kelp_temporary_repository_remove(char *take_path);

#endif
