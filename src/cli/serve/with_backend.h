/* SPDX-License-Identifier: Apache-2.0 */
/* --with-backend: a model for each library, in the temporary repository. */
#ifndef KELP_CLI_SERVE_WITH_BACKEND_H_
#define KELP_CLI_SERVE_WITH_BACKEND_H_

#include "cli/args.h"

/* Adds a model NAME for each 'libtriton_NAME.so': a link to the library, and 'config.pbtxt' with
 * its numbered directories from the directory of the library or the two above, or otherwise a
 * configuration that only names the backend. INVALID_ARGUMENT and NOT_FOUND name the library. */
kelp_status *kelp_with_backend_add(const kelp_arg_list *libraries,
                                   const char *repository) KELP_MUST_USE;

#endif
