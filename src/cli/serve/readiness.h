/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that a serving process prints at startup. */
#ifndef KELP_CLI_SERVE_READINESS_H_
#define KELP_CLI_SERVE_READINESS_H_

#include "base/buf.h"
#include "cli/serve/options/options.h"

/* The words of TRITONSERVER_ServerNew's error if models are not loaded. */
#define KELP_SERVE_NOT_LOADED "failed to load all models"

/* Appends the table. With `reasons`, failures have a reason, whose end is cut to the width of
 * the terminal. */
kelp_status *kelp_serve_append_models(TRITONSERVER_Server *core, bool reasons,
                                      kelp_buf *out) KELP_MUST_USE;
/* Counts the versions of models that are ready, and those that the repositories contain. */
kelp_status *kelp_serve_count_models(TRITONSERVER_Server *core, size_t *out_ready,
                                     size_t *out_all) KELP_MUST_USE;
/* Appends the table of options that Triton's server logs. */
kelp_status *kelp_serve_append_options(const kelp_serve_options *o, TRITONSERVER_Server *core,
                                       kelp_buf *out) KELP_MUST_USE;

#endif
