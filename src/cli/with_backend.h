/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kelp serve --with-backend: a model made up for each library that is named, in a repository of its
 * own in a temporary folder.
 */
#ifndef KELP_CLI_WITH_BACKEND_H_
#define KELP_CLI_WITH_BACKEND_H_

#include "cli/args.h"

/* Makes the repository, with a model NAME for each library 'libtriton_NAME.so' of the list: a link
 * to the library, and 'config.pbtxt' from the library's folder or the two above (with the numbered
 * folders beside it), else a configuration that names the backend and leaves the rest to it.
 * `*out_path` is the caller's (kelp_free_string), and set also on failure when there is something
 * to remove. INVALID_ARGUMENT, NOT_FOUND naming the library. */
kelp_status *kelp_with_backend_make(const kelp_arg_list *libraries, char **out_path) KELP_MUST_USE;

/* Removes the repository and frees the path; NULL is fine. */
void kelp_with_backend_remove(char *take_path);

#endif
