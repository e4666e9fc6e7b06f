/* SPDX-License-Identifier: Apache-2.0 */
/* kelp serve --with-backend: a temporary model repository with a model for each library. */
#ifndef KELP_CLI_WITH_BACKEND_H_
#define KELP_CLI_WITH_BACKEND_H_

#include "cli/args.h"

/* Creates the repository with a model NAME for each 'libtriton_NAME.so': a link to the library, and
 * 'config.pbtxt' with its numbered directories from the directory of the library or the two above,
 * or otherwise a configuration that only names the backend. The caller owns `*out_path`
 * (kelp_free_string), which is also set on failure if something must be removed. INVALID_ARGUMENT
 * and NOT_FOUND name the library. */
kelp_status *kelp_with_backend_make(const kelp_arg_list *libraries, char **out_path) KELP_MUST_USE;

/* Removes the repository and frees the path. NULL is allowed. */
void kelp_with_backend_remove(char *take_path);

#endif
